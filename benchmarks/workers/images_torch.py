"""Worker of images.py: the same in PyTorch."""

import functools
import time

import torch
import torch.nn.functional as F
from bench import hold_torch, serve

N, C, SIDE = 32, 64, 56

torch.manual_seed(1)
hold_torch(torch, 1)
weight, bias = torch.ones(C, requires_grad=True), torch.zeros(C, requires_grad=True)
mean, variance = torch.zeros(C), torch.ones(C)


@functools.cache
def image(number, dtype, order):
    x = torch.randn(N, C, SIDE, SIDE).to(getattr(torch, dtype))
    return x.contiguous(memory_format=torch.channels_last if order == "nhwc" else torch.contiguous_format).requires_grad_(True)


def forward(part, dtype, order):
    x = image(0, dtype, order)
    if part == "pool":
        return F.max_pool2d(x, 3, 2, 1)
    return F.batch_norm(x, mean, variance, weight, bias, True).add_(image(1, dtype, order)).relu_()


@functools.cache
def made(part, dtype, order):
    out = forward(part, dtype, order)
    return out, out.detach() * 0.5


def backward(part, dtype, order):
    for leaf in (image(0, dtype, order), image(1, dtype, order), weight, bias):
        leaf.grad = None
    out, grad = made(part, dtype, order)
    out.backward(grad, retain_graph=True)


def measure(case, count):
    part, way, *rest = case.split()
    repeat = functools.partial({"forward": forward, "backward": backward}[way], part, *rest)
    repeat()
    start = time.process_time()
    for _ in range(count):
        repeat()
    return (time.process_time() - start) / count


serve(f"PyTorch {torch.__version__}", measure)
