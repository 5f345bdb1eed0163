"""Worker of images.py: the same in PyTorch."""

import torch
import torch.nn.functional as F
from bench import hold_torch, serve
from bench.images_cases import SIDE, C, N, measure_of

torch.manual_seed(1)
hold_torch(torch, 1)
weight, bias = torch.ones(C, requires_grad=True), torch.zeros(C, requires_grad=True)
mean, variance = torch.zeros(C), torch.ones(C)


def image(_number, dtype, order):
    x = torch.randn(N, C, SIDE, SIDE).to(getattr(torch, dtype))
    return x.contiguous(memory_format=torch.channels_last if order == "nhwc" else torch.contiguous_format).requires_grad_(True)


def forward(part, x, residual):
    if part == "pool":
        return F.max_pool2d(x(), 3, 2, 1)
    return F.batch_norm(x(), mean, variance, weight, bias, True).add_(residual()).relu_()


serve(f"PyTorch {torch.__version__}", measure_of(image, forward, (weight, bias)))
