"""Worker of ddp.py: one of two ranks, possibly of different speed, that train the main job's network on batches of 1,024 pictures in
all.

"alone 0" gives seconds of a step of all 1,024 by this rank alone. "shared 0" gives seconds of a step by both, with shares by
measure_shares, "equal 0" with a half each. "loss shared" and "loss equal" give the mean loss of the last ten of COUNT steps.
"""

import functools
import itertools
import time

import fashion_mnist
import yoke
from bench import serve
from yoke import nn

BATCH = 1024
yoke.set_device("cpu")
yoke.set_num_threads(1)
images, labels = fashion_mnist.load("/usr/share/datasets/fashion-mnist", "train")


@functools.cache
def group():
    return yoke.comm.init(timeout=300.0)


def make_net():
    yoke.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def take(net, optimizer, rows):
    optimizer.zero_grad()
    loss = yoke.cross_entropy(net(images.index_select(0, rows) / 255), labels.index_select(0, rows))
    loss.backward()
    optimizer.step()
    return loss.detach()


@functools.cache
def sizes(how):
    """Returns how many examples of a batch each rank has."""
    if how == "equal":
        return [BATCH // 2, BATCH // 2]
    net, shares = make_net(), [0.5, 0.5]
    optimizer = yoke.optim.SGD(net.parameters(), lr=0.0)
    for _ in range(3):  # a small batch may take less than its share of the time: so each turn starts from the last measured shares
        rows = yoke.arange(round(BATCH * shares[group().rank]))
        told = yoke.comm.measure_shares(lambda: [take(net, optimizer, rows) for _ in range(5)], group())
        shares = [share * each for share, each in zip(shares, told)]
        shares = [each / sum(shares) for each in shares]
    first = round(BATCH * shares[0])
    return [first, BATCH - first]


def train(how, steps):
    """Returns the seconds of a step, and all losses."""
    mine = sizes(how)[group().rank]
    net = make_net()
    optimizer = yoke.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    ddp = yoke.DistributedDataParallel(net, group())
    ddp.set_weight(mine)
    sampler = yoke.data.DistributedSampler(len(images), rank=group().rank, world_size=2, shares=[each / BATCH for each in sizes(how)])
    epochs = (epoch for epoch in range(steps))
    losses, order = [], iter(())
    group().barrier()
    start = time.perf_counter()
    for _ in range(steps):
        rows = list(itertools.islice(order, mine))
        if len(rows) < mine:
            sampler.set_epoch(next(epochs))
            order = iter(sampler)
            rows = list(itertools.islice(order, mine))
        losses.append(take(ddp, optimizer, yoke.tensor(rows, dtype=yoke.int64)))
    return (time.perf_counter() - start) / steps, losses


def alone(count):
    net = make_net()
    optimizer, rows = yoke.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), yoke.arange(BATCH)
    start = time.perf_counter()
    for _ in range(count):
        take(net, optimizer, rows)
    return (time.perf_counter() - start) / count


def last_loss(how, count):
    """Returns the loss over all pictures: each rank's loss counts by its share."""
    _, losses = train(how, count)
    mean = sum(loss.item() for loss in losses[-10:]) / 10 * sizes(how)[group().rank]
    total = yoke.tensor([mean], dtype=yoke.float64)
    group().all_reduce(total)
    return total.item() / BATCH


def measure(case, count):
    what, how = case.split()
    if what == "alone":
        return alone(count)
    return last_loss(how, count) if what == "loss" else train(what, count)[0]


serve(f"Yoke {yoke.__version__}", measure)
