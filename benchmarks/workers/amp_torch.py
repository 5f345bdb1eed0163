"""Worker of amp.py: autocast's calls in PyTorch."""

import time
import timeit

import torch
from bench import hold_torch, serve

hold_torch(torch, 1)
names = {"mm": torch.mm, "a": torch.rand(8, 8), "b": torch.rand(8, 8), "w": torch.rand(8, 8, requires_grad=True)}
CASES = {"mm": "mm(a, b)", "mm, weight": "mm(a, w)"}
timers = {case: timeit.Timer(code, timer=time.process_time, globals=names) for case, code in CASES.items()}


def measure(case, count):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return timers[case].timeit(count) / count


serve(f"PyTorch {torch.__version__}", measure)
