"""Ports epochs_torch.py."""
import argparse
import itertools
import pathlib

import yoke
from figures import begin, kinds_of, numbers, tell, wave
from yoke import DistributedDataParallel, cross_entropy
from yoke.data import DistributedSampler

ROWS, HELD_OUT, WIDTH, KINDS = 24, 11, 10, 3


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4, help="rows of each rank")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--fall-every", type=int, default=3, help="epochs between two falls of the rate")
    return parser.parse_args()


def make():
    return yoke.nn.Sequential(yoke.nn.Linear(WIDTH, 8), yoke.nn.LayerNorm(8), yoke.nn.GELU(), yoke.nn.Linear(8, KINDS))


def rows_of(count, phase):
    return yoke.tensor(wave(count, WIDTH, phase), device="cpu"), yoke.tensor(kinds_of(count, KINDS), device="cpu")


def batches_of(sampler, size):
    inputs, kinds = rows_of(ROWS, 0)
    order = iter(sampler)
    while rows := list(itertools.islice(order, size)):
        yield inputs[rows], kinds[rows]


def train(ddp, optimizer, batches, home):
    ddp.train()
    for inputs, kinds in batches:
        optimizer.zero_grad()
        cross_entropy(ddp(inputs), kinds.to(home)).backward()
        optimizer.step()


def judge(ddp, home):
    """Returns the loss and the accuracy of the held-out rows, of which each rank sees some."""
    mine = list(DistributedSampler(HELD_OUT, shuffle=False, pad=False))
    inputs, kinds = (each[mine].to(home) for each in rows_of(HELD_OUT, 0.4))
    ddp.eval()
    with yoke.no_grad():
        scores = ddp.module(inputs)
        right = (scores.argmax(1) == kinds).sum()
        sums = yoke.stack([cross_entropy(scores, kinds, reduction="sum"), right.float()])
    ddp.group.all_reduce(sums, op="sum")
    return [each / HELD_OUT for each in sums.tolist()]


def main(asked):
    group = yoke.comm.init("nccl", init_method="env://")
    card = group.local_rank
    home = f"cuda:{card}"
    yoke.set_device(home)
    net = make()
    begin(net, yoke.tensor)
    ddp = DistributedDataParallel(net, group, device_ids=[card])
    optimizer = yoke.optim.SGD(ddp.parameters(), asked.lr, momentum=0.9, weight_decay=1e-4)
    schedule = yoke.optim.schedule.step(optimizer, step_size=asked.fall_every, gamma=0.3)
    sampler = DistributedSampler(ROWS, shuffle=False)

    path = asked.folder / "best"
    judged, rates = [], []
    for epoch in range(asked.epochs):
        sampler.set_epoch(epoch)
        train(ddp, optimizer, batches_of(sampler, asked.batch), home)
        judged.append(judge(ddp, home))
        rates.append(optimizer.param_groups[0]["lr"])
        schedule.step()
        if judged[-1] == min(judged) and group.rank == 0:
            yoke.save(path, {"epoch": epoch, "net": ddp.module})
    last = numbers(net)

    group.barrier()
    best = yoke.load(path, device=home)
    ddp.module.load_state_dict(best["net"])
    tell(asked.folder, group.rank, judged=judged, rates=rates, last=last, best=best["epoch"], parameters=numbers(net), again=judge(ddp, home),
         group=repr(group))


if __name__ == "__main__":
    main(options())
