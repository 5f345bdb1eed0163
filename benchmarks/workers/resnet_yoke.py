"""Worker of resnet.py: training steps of examples/resnet.py's network.

Cases: "step AMP WIDTH THREADS" gives seconds of a step of ResNet-18 on 32 pictures of 28 x 28, "kept AMP" the bytes that its
forward keeps for backward beside casts of weights, at width 64. For ResNet-50 on 8 pictures of 64 x 64, "budget SHARE WIDTH"
gives seconds of a step under a MemoryBudget of this share, or of a plain step. "peak SHARE WIDTH" gives the peak bytes of a step,
with weights, gradients and momenta.
"""

import functools
import time

import fashion_mnist
import resnet
import yoke
from bench import serve

BATCH, SMALL_BATCH, SIDE = 32, 8, 64
yoke.set_device("cpu")
images, labels = fashion_mnist.load("/usr/share/datasets/fashion-mnist", "train")


def draw(batch):
    rows = yoke.randint(0, len(images), (batch,))
    return images.index_select(0, rows) / 255, labels.index_select(0, rows)


def loss_of(net, amp, batch):
    x, kinds = draw(batch)
    with yoke.autocast(fashion_mnist.AMP[amp], enabled=amp != "off"):
        return yoke.cross_entropy(net(x), kinds)


@functools.lru_cache(None)
def stepper(amp, depth, width, side, batch, share="plain"):
    yoke.manual_seed(0)
    net = resnet.ResNet(depth, width, resnet.SIDE)  # with the stem of small pictures
    net.side = side
    optimizer, schedule = resnet.descend(net.parameters(), 10**6)
    policy = None if share == "plain" else yoke.MemoryBudget(float(share))

    def forward(x):
        return yoke.checkpoint(net, x, policy=policy) if policy else net(x)

    def step():
        loss = loss_of(forward, amp, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()

    for _ in range(4 if policy else 1):  # a budget has learned its plan then
        step()
    return step


def timed(step, count, threads=1):
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    for _ in range(count):
        step()
    return (clock() - start) / count


def step(count, amp, width, threads):
    yoke.set_num_threads(int(threads))
    return timed(stepper(amp, 18, int(width), resnet.SIDE, BATCH), count, int(threads))


def kept(_, amp):
    net = resnet.ResNet(18, 64, resnet.SIDE)
    before = yoke.memory_allocated()
    loss = loss_of(net, amp, BATCH)
    casts = sum(2 * p.numel for p in net.parameters() if p.ndim > 1 or p is net.fc.bias) if amp != "off" else 0
    held = yoke.memory_allocated() - before - casts
    del loss
    return float(held)


def budget(count, share, width):
    yoke.set_num_threads(1)
    return timed(stepper("off", 50, int(width), SIDE, SMALL_BATCH, share), count)


def peak(_, share, width):
    before = yoke.memory_allocated()  # pictures
    step = stepper("off", 50, int(width), SIDE, SMALL_BATCH, share)
    yoke.reset_peak_memory_stats()
    step()
    return float(yoke.max_memory_allocated() - before)


def measure(case, count):
    what, *rest = case.split()
    return {"step": step, "kept": kept, "budget": budget, "peak": peak}[what](count, *rest)


serve(f"Yoke {yoke.__version__}", measure)
