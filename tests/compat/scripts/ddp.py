"""Data parallel training: torchrun --nproc_per_node=2 ddp.py"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super(ToyModel, self).__init__()
        self.net1 = nn.Linear(10, 32)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(32, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def reduce_mean(tensor, nprocs):
    rt = tensor.detach().clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    rt /= nprocs
    return rt


def shard(x, rank, world_size):
    """The strided part of a rank, as DistributedSampler cuts."""
    return x[rank::world_size]


def main():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    local_rank = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device = torch.device("cuda", local_rank)
    else:
        device = torch.device("cpu")
    print(f"Start running basic DDP example on rank {rank} of {world_size}.")

    torch.manual_seed(0)
    inputs = torch.randn(128, 10)
    targets = (inputs @ torch.randn(10, 5)).tanh()

    torch.manual_seed(100 + rank)  # weights differ until DDP sends those of rank 0
    model = ToyModel().to(device)
    ddp_model = DDP(model, device_ids=[local_rank] if device.type == "cuda" else None)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1, momentum=0.9)

    losses = []
    for epoch in range(10):
        g = torch.Generator()
        g.manual_seed(epoch)
        torch.manual_seed(epoch)
        order = torch.randperm(len(inputs), generator=g)
        for start in range(0, len(inputs), 32):
            idx = shard(order[start:start + 32], rank, world_size)
            optimizer.zero_grad()
            outputs = ddp_model(inputs[idx].to(device))
            loss = loss_fn(outputs, targets[idx].to(device))
            loss.backward()
            optimizer.step()
            losses.append(reduce_mean(loss, world_size).item())

    # all ranks hold the same weights
    checksum = sum(p.detach().abs().sum() for p in ddp_model.module.parameters())
    gathered = [torch.zeros_like(checksum) for _ in range(world_size)]
    dist.all_gather(gathered, checksum)
    assert all(torch.allclose(checksum, other) for other in gathered)

    best = torch.tensor([min(losses)], device=device)
    dist.broadcast(best, src=0)
    dist.barrier()
    if rank == 0:
        print(f"first loss {losses[0]:.4f}, last loss {losses[-1]:.4f}, best {best.item():.4f}")
    dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    losses = main()
