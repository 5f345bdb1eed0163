"""Worker of overhead.py: the calls from Python."""

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
    "forward and backward": "g.grad = None; (g + b).sum().backward()",
}
timers = {case: timeit.Timer(code, timer=time.process_time, globals=names) for case, code in CASES.items()}
serve(f"Yoke {yoke.__version__}, Python", lambda case, count: timers[case].timeit(count) / count)
