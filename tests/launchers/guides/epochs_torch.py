"""Shows: options, epochs of batches with a rate that falls by steps, loss and accuracy summed over all ranks, the best state in a file."""
import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from figures import begin, kinds_of, numbers, tell, wave
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ROWS, HELD_OUT, WIDTH, KINDS = 24, 11, 10, 3
HAS_CARDS = torch.cuda.is_available()


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4, help="rows of each rank")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--fall-every", type=int, default=3, help="epochs between two falls of the rate")
    return parser.parse_args()


def make():
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, KINDS))


def rows_of(count, phase):
    return torch.tensor(wave(count, WIDTH, phase)), torch.tensor(kinds_of(count, KINDS))


def train(ddp, optimizer, batches, home):
    ddp.train()
    for inputs, kinds in batches:
        optimizer.zero_grad()
        cross_entropy(ddp(inputs), kinds.to(home)).backward()
        optimizer.step()


def judge(ddp, home):
    """Returns the loss and the accuracy of the held-out rows, of which each rank sees some."""
    inputs, kinds = (each.to(home)[dist.get_rank()::dist.get_world_size()] for each in rows_of(HELD_OUT, 0.4))
    ddp.eval()
    with torch.no_grad():
        scores = ddp.module(inputs)
        right = (scores.argmax(1) == kinds).sum()
        sums = torch.stack([cross_entropy(scores, kinds, reduction="sum"), right.float()])
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    return [each / HELD_OUT for each in sums.tolist()]


def main(asked):
    card = int(os.environ["LOCAL_RANK"])
    home = f"cuda:{card}" if HAS_CARDS else "cpu"
    dist.init_process_group("nccl" if HAS_CARDS else "gloo", init_method="env://")
    if HAS_CARDS:
        torch.cuda.set_device(card)
    net = make().to(home)
    begin(net, torch.tensor)
    ddp = DistributedDataParallel(net, device_ids=[card] if HAS_CARDS else None)
    optimizer = torch.optim.SGD(ddp.parameters(), asked.lr, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=asked.fall_every, gamma=0.3)
    sampler = DistributedSampler(range(ROWS), shuffle=False)
    batches = DataLoader(TensorDataset(*rows_of(ROWS, 0)), batch_size=asked.batch, sampler=sampler)

    path = asked.folder / "best"
    judged, rates = [], []
    for epoch in range(asked.epochs):
        sampler.set_epoch(epoch)
        train(ddp, optimizer, batches, home)
        judged.append(judge(ddp, home))
        rates.append(optimizer.param_groups[0]["lr"])
        schedule.step()
        if judged[-1] == min(judged) and dist.get_rank() == 0:
            torch.save({"epoch": epoch, "net": ddp.module.state_dict()}, path)
    last = numbers(net)

    dist.barrier()
    best = torch.load(path, map_location=home)
    ddp.module.load_state_dict(best["net"])
    tell(asked.folder, dist.get_rank(), judged=judged, rates=rates, last=last, best=best["epoch"], parameters=numbers(net), again=judge(ddp, home))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(options())
