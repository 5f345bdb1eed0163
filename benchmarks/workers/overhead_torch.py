"""Worker of overhead.py: the same calls in PyTorch."""

import time
import timeit

import torch
from bench import hold_torch, serve

hold_torch(torch, 1)
names = {"torch": torch, "a": torch.rand(8), "b": torch.rand(8), "g": torch.rand(8, requires_grad=True)}
CASES = {
    "add": "torch.add(a, b)",
    "operator": "a + b",
    "add with grad": "torch.add(g, b)",
    "forward and backward": "g.grad = None; (g + b).sum().backward()",
}
timers = {case: timeit.Timer(code, timer=time.process_time, globals=names) for case, code in CASES.items()}
serve(f"PyTorch {torch.__version__}", lambda case, count: timers[case].timeit(count) / count)
