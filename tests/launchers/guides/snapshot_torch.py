"""Shows: LOCAL_RANK chooses the card before the group is made, a sampler shuffles by epoch, torchrun's restart goes on from a snapshot."""
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from figures import begin, kinds_of, lose_a_rank, numbers, tell, wave
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

EPOCHS, LOST_AT = 4, 2
ROWS, WIDTH, KINDS = 12, 6, 3
HAS_CARDS = torch.cuda.is_available()


def go_on(path, net, optimizer, home):
    """Returns the first epoch that is still to be made."""
    if not path.exists():
        return 0
    found = torch.load(path, map_location=home)
    net.load_state_dict(found["net"])
    optimizer.load_state_dict(found["optimizer"])
    return found["epochs"]


def main(folder):
    card = int(os.environ["LOCAL_RANK"])
    home = f"cuda:{card}" if HAS_CARDS else "cpu"
    if HAS_CARDS:
        torch.cuda.set_device(card)
    dist.init_process_group("nccl" if HAS_CARDS else "gloo")
    rank = dist.get_rank()

    net = torch.nn.Linear(WIDTH, KINDS).to(home)
    begin(net, torch.tensor)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    path = pathlib.Path(folder, "snapshot")
    first = go_on(path, net, optimizer, home)
    ddp = DistributedDataParallel(net, device_ids=[card] if HAS_CARDS else None)

    inputs, kinds = torch.tensor(wave(ROWS, WIDTH, 0)), torch.tensor(kinds_of(ROWS, KINDS))
    sampler = DistributedSampler(range(ROWS))
    taken = []
    for epoch in range(first, EPOCHS):
        sampler.set_epoch(epoch)
        rows = list(sampler)
        taken.append(rows)
        if epoch == LOST_AT:
            lose_a_rank(rank)
        optimizer.zero_grad()
        cross_entropy(ddp(inputs[rows]), kinds[rows].to(home)).backward()
        optimizer.step()
        if rank == 0:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epochs": epoch + 1}, path)
        dist.barrier()  # no rank is lost while rank 0 writes

    tell(folder, rank, first=first, taken=taken, parameters=numbers(net))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
