"""Worker of amp.py: autocast's calls, and the time added by autocast and the scaler to the steps of the two examples.

A call counts CPU time of one thread; other cases count time of two threads. "step JOB" is a step in bfloat16, "scaler JOB" the
time added by a GradScaler, "logic inside" and "logic outside" a forward pass of GPT's calls with and without a region.
"""

import functools
import time
import timeit

import fashion_mnist
import gpt
import yoke
from bench import serve
from yoke import nn

yoke.set_device("cpu")
names = {"mm": yoke.matmul, "a": yoke.rand((8, 8)), "b": yoke.rand((8, 8)), "w": yoke.rand((8, 8)).requires_grad_(True)}
CASES = {"mm": "mm(a, b)", "mm, weight": "mm(a, w)"}
timers = {case: timeit.Timer(code, timer=time.process_time, globals=names) for case, code in CASES.items()}
options = gpt.read_options([])
text = gpt.load(options.text, options.context)


def call(case, count):
    yoke.set_num_threads(1)
    with yoke.autocast():
        return timers[case].timeit(count) / count


@functools.lru_cache(None)
def small_net():
    net = gpt.GPT(options.layers, 8, options.heads, 4).to(dtype=yoke.float64)
    return net, yoke.randint(0, 256, (1, 4))


def logic(case, count):
    yoke.set_num_threads(1)
    net, index = small_net()
    with yoke.autocast(enabled=case == "logic inside"):
        start = time.process_time()
        for _ in range(count):
            net(index)
        return (time.process_time() - start) / count


BATCHES = 40  # batches of the main job in a call of its loop


@functools.lru_cache(None)
def job(name):
    """Returns (function that trains some steps, number of steps, net, its optimizer for the scaler)."""
    if name == "GPT":
        net = gpt.GPT(options.layers, options.width, options.heads, options.context)
        return gpt.make_step(net, text, 10**6, options.batch, amp="bf16")[0], 1, net, gpt.make_optimizer(net, 1e-3, 10)[0]
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    data = fashion_mnist.load("/usr/share/datasets/fashion-mnist", "train", BATCHES * fashion_mnist.BATCH)
    optimizer = yoke.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return functools.partial(fashion_mnist.train, net, *data, 1, "bf16"), BATCHES, net, optimizer


def step_time(name, count):
    train, steps, _, _ = job(name)
    calls = -(-count // steps)
    start = time.perf_counter()
    for _ in range(calls):
        train()
    return (time.perf_counter() - start) / (calls * steps)


def scaler_time(name, count):
    train, _, net, optimizer = job(name)
    if any(parameter.grad is None for parameter in net.parameters()):
        train()
    scaler, one = yoke.GradScaler(init_scale=1.0), yoke.ones(())
    start = time.perf_counter()
    for _ in range(count):
        scaler.scale(one)
        scaler.unscale_(optimizer)
        scaler.update()
    return (time.perf_counter() - start) / count


def measure(case, count):
    if case in CASES:
        return call(case, count)
    if case.startswith("logic"):
        return logic(case, count)
    yoke.set_num_threads(2)
    what, name = case.split(" ", 1)
    return {"step": step_time, "scaler": scaler_time}[what](name, count)


serve(f"Yoke {yoke.__version__}", measure)
