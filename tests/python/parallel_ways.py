"""Ways of data parallel, which tests/lua/parallel_run.lua and tests/capi/parallel_run.c have too: `parallel_ways.py DEVICE WAY...`.

Each rank prints parameters and gradients to the last bit. DEVICE: "cuda" is the card of the local rank, "cpu" the host.
"""
import math
import os
import signal
import sys

import yoke
from yoke import nn

IN, WIDTH, OUT, BATCH = 6, 16, 12, 2
LOST_AT = 3  # steps of all ranks


def wave(shape, scale, pitch, phase):
    """Makes a tensor of numbers that each language has to the last bit: C's sin of doubles."""
    return yoke.tensor([scale * math.sin(pitch * i + phase) for i in range(math.prod(shape))]).reshape(shape)


class Run:
    def __init__(self, group, compression=None):
        self.group = group
        self.net = nn.Sequential(nn.Linear(IN, WIDTH), nn.Tanh(), nn.Linear(WIDTH, OUT))
        with yoke.no_grad():
            for i, each in enumerate(self.net.parameters()):
                each.copy_(wave(tuple(each.shape), 0.3, 0.7, i))
        self.optimizer = yoke.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.ddp = yoke.DistributedDataParallel(self.net, group, bucket_mb=0.0003, compression=compression)

    def go_back(self, step):
        y = self.ddp(wave((BATCH, IN), 3., 1.7, self.group.rank + 0.3 * step))
        (y * y).mean().backward()

    def steps(self, first, last):
        for step in range(first, last + 1):
            self.optimizer.zero_grad()
            self.go_back(step)
            self.optimizer.step()

    def finish(self, name):
        self.optimizer.zero_grad()
        self.go_back(4)
        every = [*(each.detach() for each in self.net.parameters()), *(each.grad for each in self.net.parameters())]
        print(name, ",".join(each.cpu().numpy().tobytes().hex() for each in every), flush=True)


def compressed(compression):
    def go(group, name):
        run = Run(group, compression)
        run.steps(0, 3)
        run.finish(name)
    return go


def no_sync(group, name):
    run = Run(group)
    run.steps(0, 0)
    run.optimizer.zero_grad()
    with run.ddp.no_sync():
        run.go_back(1)
    run.go_back(2)
    run.optimizer.step()
    run.finish(name)


def join(group, name):
    """Gives each rank two steps more than the one before."""
    run = Run(group)
    with group.join(run.optimizer):
        run.steps(0, 2 * group.rank)
    run.steps(2, 3)  # with the momentum of the last rank to arrive
    run.finish(name)


def lost(group, name):
    """Loses the last rank behind the backward of a step, which rank 1 alone has made whole."""
    run = Run(group)
    run.steps(0, LOST_AT - 1)
    run.optimizer.zero_grad()
    run.go_back(LOST_AT)
    try:
        group.barrier()  # all ranks have the gradients on their cards
        if group.rank == group.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        group.barrier()
        print("told nothing")
    except yoke.Error as error:
        print("told", error)
    if group.rank == 1:
        run.optimizer.step()
    run.group = group.shrink(20.)
    run.ddp.regroup(run.group, run.optimizer)
    run.steps(LOST_AT + 1, LOST_AT + 3)
    run.finish(name)
    print("group", repr(run.group))


def mean_of(bucket, group):
    return group.all_reduce(bucket.tensor, op="avg", async_op=True)


WAYS = {"plain": compressed(None), "bf16": compressed("bf16"), "powersgd": compressed("powersgd:rank=2,start=2"), "hook": compressed(mean_of),
        "no_sync": no_sync, "join": join, "lost": lost}

if __name__ == "__main__":
    every = yoke.comm.init(timeout=60.)
    yoke.set_device(f"cuda:{every.local_rank}" if sys.argv[1] == "cuda" else sys.argv[1])
    for way in sys.argv[2:]:
        WAYS[way](every, way)
    print("group", repr(every))
