"""Shows: gradients that pass as bfloat16 and by PowerSGD, no_sync around all but the last batch of a step, Join around unlike numbers of batches."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from figures import begin, differ, numbers, tell, wave
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

WIDTH, OUT = 16, 12
HAS_CARDS = torch.cuda.is_available()
CARD = int(os.environ["LOCAL_RANK"])


def wrapped(hook=None):
    net = torch.nn.Linear(WIDTH, OUT).to(f"cuda:{CARD}" if HAS_CARDS else "cpu")
    begin(net, torch.tensor)
    ddp = DistributedDataParallel(net, device_ids=[CARD] if HAS_CARDS else None)
    if hook:
        ddp.register_comm_hook(*hook)
    return ddp, torch.optim.SGD(ddp.parameters(), lr=0.2)


def go_back(ddp, at):
    """Gives the weight a gradient with a single row on each rank, so the mean of two ranks is a matrix of rank 2."""
    y = ddp(torch.tensor(wave(1, WIDTH, dist.get_rank() + 0.4 * at)))
    (y * y).mean().backward()


def step(ddp, optimizer, at):
    optimizer.zero_grad()
    go_back(ddp, at)
    optimizer.step()


def hooked(hook=None):
    ddp, optimizer = wrapped(hook)
    for at in range(5):
        step(ddp, optimizer, at)
    return numbers(ddp.module)


def power_sgd(rank):
    state = PowerSGDState(process_group=None, matrix_approximation_rank=rank, start_powerSGD_iter=2, min_compression_rate=2)
    return hooked((state, powerSGD_hook))


def accumulated():
    """Returns the gradient of this rank alone, and what the step of all ranks comes to."""
    ddp, optimizer = wrapped()
    with ddp.no_sync():
        go_back(ddp, 0)
        go_back(ddp, 1)
    alone = ddp.module.weight.grad.tolist()
    go_back(ddp, 2)
    optimizer.step()
    return alone, numbers(ddp.module)


def uneven():
    ddp, optimizer = wrapped()
    with Join([ddp], divide_by_initial_world_size=False):
        for at in range(2 + 2 * dist.get_rank()):
            step(ddp, optimizer, at)
    joined = numbers(ddp.module)
    step(ddp, optimizer, 6)
    return joined, numbers(ddp.module)


def main(folder):
    if HAS_CARDS:
        torch.cuda.set_device(CARD)
    dist.init_process_group("nccl" if HAS_CARDS else "gloo", timeout=timedelta(seconds=60))
    plain, bf16, exact, rough = hooked(), hooked((None, bf16_compress_hook)), power_sgd(2), power_sgd(1)
    alone, together = accumulated()
    joined, behind = uneven()
    tell(folder, dist.get_rank(), plain=plain, bf16=bf16, exact=exact, lossy=[differ(bf16, plain), differ(rough, plain)],
         alone=alone, together=together, joined=joined, behind=behind)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
