"""Worker of cpu_kernels.py: the same in PyTorch. AdamW is the default of 1.x, and `fused=True` where a CPU has it."""

import functools
import time

import torch
import torch.nn.functional as F
from bench import hold_torch, op_cases, serve

ROWS, FAR_ROWS, WIDTH = 4096, 131072, 1024

torch.manual_seed(1)
x = torch.randn(ROWS, WIDTH)
weight, bias = torch.rand(WIDTH), torch.randn(WIDTH)
target = torch.randint(0, WIDTH, (ROWS,))


def adamw():
    parameter = torch.randn(ROWS, WIDTH, requires_grad=True)
    parameter.grad = torch.randn(ROWS, WIDTH)
    fused = int(torch.__version__.split(".")[0]) > 1
    return torch.optim.AdamW([parameter], lr=1e-3, **({"fused": True} if fused else {})), fused


@functools.cache
def far():
    return torch.randn(FAR_ROWS, WIDTH)


optimizer, is_fused = adamw()
CASES = {
    "gelu": lambda: F.gelu(x),
    "gelu tanh": lambda: F.gelu(x, approximate="tanh"),
    "layer_norm": lambda: F.layer_norm(x, (WIDTH,), weight, bias),
    "far layer_norm": lambda: F.layer_norm(far(), (WIDTH,), weight, bias),
    "softmax": lambda: torch.softmax(x, -1),
    "cross_entropy": lambda: F.cross_entropy(x, target),
    "adamw": optimizer.step,
}


@functools.lru_cache(1)
def of_op(case):
    _, name_and_dtype = case.split(" ", 1)
    return op_cases.prepare(torch, *name_and_dtype.rsplit(" ", 1))


def measure(case, count):
    name, threads = case.rsplit(" ", 1)
    hold_torch(torch, int(threads))
    repeat = of_op(name) if name.startswith("op ") else CASES[name]
    with torch.no_grad():
        repeat()
        start = time.perf_counter()
        for _ in range(count):
            repeat()
        return (time.perf_counter() - start) / count


serve(f"PyTorch {torch.__version__}, AdamW {'fused' if is_fused else 'as it comes'}", measure)
