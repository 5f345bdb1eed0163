"""Ports hooks_torch.py."""
import os
import sys

import yoke
from figures import begin, differ, numbers, tell, wave
from yoke import DistributedDataParallel

WIDTH, OUT = 16, 12
CARD = int(os.environ["LOCAL_RANK"])


def wrapped(group, compression=None):
    net = yoke.nn.Linear(WIDTH, OUT)
    begin(net, yoke.tensor)
    ddp = DistributedDataParallel(net, group, device_ids=[CARD], compression=compression)
    return ddp, yoke.optim.SGD(ddp.parameters(), lr=0.2)


def go_back(ddp, at):
    """Gives the weight a gradient with a single row on each rank, so the mean of two ranks is a matrix of rank 2."""
    y = ddp(yoke.tensor(wave(1, WIDTH, ddp.group.rank + 0.4 * at), device="cpu"))
    (y * y).mean().backward()


def step(ddp, optimizer, at):
    optimizer.zero_grad()
    go_back(ddp, at)
    optimizer.step()


def hooked(group, compression=None):
    ddp, optimizer = wrapped(group, compression)
    for at in range(5):
        step(ddp, optimizer, at)
    return numbers(ddp.module)


def power_sgd(group, rank):
    return hooked(group, f"powersgd:rank={rank},start=2,rate=2")


def accumulated(group):
    """Returns the gradient of this rank alone, and what the step of all ranks comes to."""
    ddp, optimizer = wrapped(group)
    with ddp.no_sync():
        go_back(ddp, 0)
        go_back(ddp, 1)
    alone = ddp.module.weight.grad.tolist()
    go_back(ddp, 2)
    optimizer.step()
    return alone, numbers(ddp.module)


def uneven(group):
    ddp, optimizer = wrapped(group)
    with group.join():
        for at in range(2 + 2 * group.rank):
            step(ddp, optimizer, at)
    joined = numbers(ddp.module)
    step(ddp, optimizer, 6)
    return joined, numbers(ddp.module)


def main(folder):
    yoke.set_device(f"cuda:{CARD}")
    group = yoke.comm.init("nccl", timeout=60.)
    plain, bf16, exact, rough = hooked(group), hooked(group, "bf16"), power_sgd(group, 2), power_sgd(group, 1)
    alone, together = accumulated(group)
    joined, behind = uneven(group)
    tell(folder, group.rank, plain=plain, bf16=bf16, exact=exact, lossy=[differ(bf16, plain), differ(rough, plain)],
         alone=alone, together=together, joined=joined, behind=behind, group=repr(group))


if __name__ == "__main__":
    main(sys.argv[1])
