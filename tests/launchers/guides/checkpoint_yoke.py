"""Ports checkpoint_torch.py."""
import pathlib
import sys

import yoke
from figures import begin, numbers, tell, wave
from yoke import DistributedDataParallel, mse_loss

BATCH, WIDTH, OUT = 5, 8, 4


def make():
    return yoke.nn.Sequential(yoke.nn.Linear(WIDTH, 7), yoke.nn.Tanh(), yoke.nn.Linear(7, OUT))


def step(ddp, optimizer, phase, home):
    wanted = yoke.tensor(wave(BATCH, OUT, 2 * phase), device=home)
    optimizer.zero_grad()
    mse_loss(ddp(yoke.tensor(wave(BATCH, WIDTH, phase), device="cpu")), wanted).backward()
    optimizer.step()


def forget(net):
    with yoke.no_grad():
        for each in net.parameters():
            each.zero_()


def main(folder):
    group = yoke.comm.init("nccl")
    rank = group.rank
    card = group.local_rank
    home = f"cuda:{card}"
    yoke.set_device(home)

    net = make()
    begin(net, yoke.tensor)
    ddp = DistributedDataParallel(net, group, device_ids=[card])
    optimizer = yoke.optim.SGD(ddp.parameters(), lr=0.1)
    for at in range(3):
        step(ddp, optimizer, rank + at / 3, home)
    saved = numbers(net)

    path = pathlib.Path(folder, "checkpoint")
    if rank == 0:
        yoke.save(path, ddp.state_dict())
    group.barrier()
    forget(net)
    ddp.load_state_dict(yoke.load(path, device=home))
    loaded = numbers(net)
    step(ddp, optimizer, rank + 1, home)

    tell(folder, rank, saved=saved, loaded=loaded, parameters=numbers(net), group=repr(group))


if __name__ == "__main__":
    main(sys.argv[1])
