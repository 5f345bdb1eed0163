"""Ports snapshot_torch.py."""
import os
import pathlib
import sys

import yoke
from figures import begin, kinds_of, lose_a_rank, numbers, tell, wave
from yoke import DistributedDataParallel, cross_entropy
from yoke.data import DistributedSampler

EPOCHS, LOST_AT = 4, 2
ROWS, WIDTH, KINDS = 12, 6, 3


def go_on(path, net, optimizer, home):
    """Returns the first epoch that is still to be made."""
    if not path.exists():
        return 0
    found = yoke.load(path, device=home)
    net.load_state_dict(found["net"])
    optimizer.load_state_dict(found["optimizer"])
    return found["epochs"]


def main(folder):
    card = int(os.environ["LOCAL_RANK"])
    home = f"cuda:{card}"
    yoke.set_device(home)
    group = yoke.comm.init("nccl")
    rank = group.rank

    net = yoke.nn.Linear(WIDTH, KINDS)
    begin(net, yoke.tensor)
    optimizer = yoke.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    path = pathlib.Path(folder, "snapshot")
    first = go_on(path, net, optimizer, home)
    ddp = DistributedDataParallel(net, device_ids=[card])

    inputs, kinds = yoke.tensor(wave(ROWS, WIDTH, 0), device="cpu"), yoke.tensor(kinds_of(ROWS, KINDS), device="cpu")
    sampler = DistributedSampler(ROWS)
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
            yoke.save(path, {"net": net, "optimizer": optimizer, "epochs": epoch + 1})
        group.barrier()  # no rank is lost while rank 0 writes

    tell(folder, rank, first=first, taken=taken, parameters=numbers(net), group=repr(group))


if __name__ == "__main__":
    main(sys.argv[1])
