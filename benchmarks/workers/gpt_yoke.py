"""Worker of gpt.py: the training step of examples/gpt.py, unchanged.

Cases: "train AMP THREADS" gives seconds of a step, "scaler AMP THREADS" seconds added by a GradScaler, and "activations AMP
THREADS" the peak bytes of a step beside weights, gradients, optimizer state and casts of weights.
"""

import functools
import time

import gpt
import yoke
from bench import serve

yoke.set_device("cpu")
options = gpt.read_options([])
text = gpt.load(options.text, options.context)


def make_net():
    yoke.manual_seed(0)
    return gpt.GPT(options.layers, options.width, options.heads, options.context)


@functools.lru_cache(None)
def stepper(amp):
    return gpt.make_step(make_net(), text, 10**6, options.batch, amp=amp)[0]


def loss_of(net, amp):
    x, target = gpt.draw_batch(text, options.batch, options.context)
    with yoke.autocast(gpt.AMP[amp], enabled=amp != "off"):
        return yoke.cross_entropy(net(x).reshape((-1, 256)), target)


def train(amp, count):
    step = stepper(amp)
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def scaler(amp, count):
    net = make_net()
    optimizer, _ = gpt.make_optimizer(net, 1e-3, 10)
    one, scaler = yoke.ones(()), yoke.GradScaler(init_scale=1.0)
    loss_of(net, amp).backward()
    start = time.perf_counter()
    for _ in range(count):
        scaler.scale(one)
        scaler.unscale_(optimizer)
        scaler.update()
    return (time.perf_counter() - start) / count


def activations(amp, _):
    net = make_net()
    optimizer, _ = gpt.make_optimizer(net, 1e-3, 10)
    loss_of(net, amp).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    before = yoke.memory_allocated()  # weights, gradients and state; the gradients stay
    yoke.reset_peak_memory_stats()
    loss_of(net, amp).backward()
    linear = [m for m in net.modules() if isinstance(m, yoke.nn.Linear)]
    casts = sum(2 * p.numel for m in linear for p in m.parameters()) if amp != "off" else 0
    return float(yoke.max_memory_allocated() - before - casts)


def measure(case, count):
    what, amp, threads = case.split()
    yoke.set_num_threads(int(threads))
    return {"train": train, "scaler": scaler, "activations": activations}[what](amp, count)


serve(f"Yoke {yoke.__version__}", measure)
