"""Worker of overhead.py: the calls from Python."""

import contextlib
import time
import timeit

import yoke
from bench import serve

yoke.set_device("cpu")
yoke.set_num_threads(1)
names = {"yoke": yoke, "a": yoke.rand(8), "b": yoke.rand(8), "g": yoke.rand(8).requires_grad_(True)}
CASES = {
    "add": "yoke.add(a, b)",
    "operator": "a + b",
    "add with grad": "yoke.add(g, b)",
    "sum by axis": "a.sum(axis=0)",
    "sum by dim": "a.sum(dim=0)",
    "forward and backward": "g.grad = None; (g + b).sum().backward()",
}
CHAIN = 64  # products in a row; each keeps the product before for backward


def chain(scope):
    x, b = names["g"], names["b"]
    with scope():
        for _ in range(CHAIN):
            x = x * b


chains = {"chain": contextlib.nullcontext, "chain in a scope": yoke.checkpoint_scope}


def measure(case, count):
    if case not in chains:
        return timers[case].timeit(count) / count
    repeats = -(-count // CHAIN)
    return timeit.timeit(lambda: chain(chains[case]), timer=time.process_time, number=repeats) / (repeats * CHAIN)


timers = {case: timeit.Timer(code, timer=time.process_time, globals=names) for case, code in CASES.items()}
serve(f"Yoke {yoke.__version__}, Python", measure)
