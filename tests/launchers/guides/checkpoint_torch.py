"""Shows: the group names the card, rank 0 alone writes a checkpoint, and behind a barrier each rank reads the checkpoint onto its
own card.
"""
import pathlib
import sys

import torch
import torch.distributed as dist
from figures import begin, numbers, tell, wave
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

BATCH, WIDTH, OUT = 5, 8, 4
HAS_CARDS = torch.cuda.is_available()


def make():
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 7), torch.nn.Tanh(), torch.nn.Linear(7, OUT))


def step(ddp, optimizer, phase, home):
    wanted = torch.tensor(wave(BATCH, OUT, 2 * phase)).to(home)
    optimizer.zero_grad()
    mse_loss(ddp(torch.tensor(wave(BATCH, WIDTH, phase))), wanted).backward()
    optimizer.step()


def forget(net):
    with torch.no_grad():
        for each in net.parameters():
            each.zero_()


def main(folder):
    dist.init_process_group("nccl" if HAS_CARDS else "gloo")
    rank = dist.get_rank()
    card = rank % torch.cuda.device_count() if HAS_CARDS else None
    home = f"cuda:{card}" if HAS_CARDS else "cpu"
    if HAS_CARDS:
        torch.cuda.set_device(card)

    net = make().to(home)
    begin(net, torch.tensor)
    ddp = DistributedDataParallel(net, device_ids=[card] if HAS_CARDS else None)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for at in range(3):
        step(ddp, optimizer, rank + at / 3, home)
    saved = numbers(net)

    path = pathlib.Path(folder, "checkpoint")
    if rank == 0:
        torch.save(ddp.state_dict(), path)
    dist.barrier()
    forget(net)
    ddp.load_state_dict(torch.load(path, map_location=home))
    loaded = numbers(net)
    step(ddp, optimizer, rank + 1, home)

    tell(folder, rank, saved=saved, loaded=loaded, parameters=numbers(net))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
