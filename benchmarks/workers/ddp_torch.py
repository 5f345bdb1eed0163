"""Worker of ddp.py: a rank, in PyTorch with Gloo, of two: DistributedDataParallel as it is by default. Cases as ddp_yoke.py's of a step."""

import functools
import os
import time

import gpt_torch
import torch
import torch.distributed as dist
import torch.nn.functional as F
from bench import hold_torch, serve
from torch import nn

hold_torch(torch, 1)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
WIDTH, LAYERS = 1024, 12
NO_BYTES = 1e-6


@functools.lru_cache(None)
def join():
    dist.init_process_group("gloo")


def mlp(batch):
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    x, labels = torch.randn(batch, WIDTH), torch.randint(0, WIDTH, (batch,))
    return nn.Sequential(*layers[:-1]), lambda model: F.cross_entropy(model(x), labels)


def gpt_of(batch):
    starts = torch.randint(0, len(gpt_torch.text) - gpt_torch.CONTEXT, (batch, 1))
    pieces = gpt_torch.text[starts + torch.arange(gpt_torch.CONTEXT + 1)]
    return gpt_torch.GPT(), lambda model: F.cross_entropy(model(pieces[:, :-1]).reshape(-1, 256), pieces[:, 1:].reshape(-1))


@functools.lru_cache(None)
def stepper(model, batch, way):
    torch.manual_seed(0)
    net, loss = (mlp if model == "MLP" else gpt_of)(batch)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    if way != "plain":
        join()
    more = {"bucket_cap_mb": NO_BYTES} if way == "each" else {}
    ready = nn.parallel.DistributedDataParallel(net, **more) if way in ("ddp", "each") else net

    def step():
        loss(ready).backward()
        if way == "behind":
            for each in net.parameters():
                dist.all_reduce(each.grad)
                each.grad /= dist.get_world_size()
        optimizer.step()
        optimizer.zero_grad()
    for _ in range(3):
        step()
    return step


def measure(case, count):
    way, model, batch = case.split()
    step = stepper(model, int(batch), way)
    if way != "plain":
        dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


serve(f"PyTorch {torch.__version__}, Gloo", measure)
