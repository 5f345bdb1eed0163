"""Worker of overhead.py: an all_reduce of a tensor of a card from Python, over the fakes of a driver and of NCCL.

The answer is the caller's processor time. Between two bursts of calls there is a pause without measurement, so that the device's
queue stays short.
"""

import time

import yoke
from bench import serve

BURST = 100
(group,) = yoke.comm.init_all(["cuda:0"])
tensor = yoke.zeros(4, device="cuda:0")


def burst(count):
    start = time.thread_time()
    for _ in range(count):
        group.all_reduce(tensor)
    worked = time.thread_time() - start
    yoke.synchronize("cuda:0")
    return worked


def measure(case, count):
    return sum(burst(min(BURST, count - done)) for done in range(0, count, BURST)) / count


serve(f"Yoke {yoke.__version__}, Python, one rank over the fake NCCL", measure)
