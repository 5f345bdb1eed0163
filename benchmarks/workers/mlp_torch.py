"""Worker of mlp.py: the same training loop in PyTorch, as a script would have it. A case is
"train AMP THREADS"."""

import gzip
import pathlib
import time

import torch
import torch.nn.functional as F
from bench import hold_torch, serve
from torch import nn

BATCH, MOST = 128, 468  # pictures in a batch, whole batches in the data
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def load(name, header):
    raw = bytearray(gzip.decompress((DATA / name).read_bytes())[header:])
    return torch.frombuffer(raw, dtype=torch.uint8)


images = load("train-images-idx3-ubyte.gz", 16).reshape(-1, 784).float() / 255
labels = load("train-labels-idx1-ubyte.gz", 8).long()
net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def train(steps, amp):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    order = torch.randperm(steps * BATCH)
    losses = []
    for step in range(steps):
        rows = order[step * BATCH:(step + 1) * BATCH]
        with torch.autocast("cpu", torch.bfloat16, enabled=amp == "bf16"):
            loss = F.cross_entropy(net(images[rows]).float(), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / steps)
        optimizer.step()
        losses.append(loss.detach())


def measure(case, count):
    _, amp, threads = case.split()
    hold_torch(torch, int(threads))
    steps = min(count, MOST)
    start = time.perf_counter()
    train(steps, amp)
    return (time.perf_counter() - start) / steps


serve(f"PyTorch {torch.__version__}", measure)
