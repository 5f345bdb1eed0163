"""Each allocation of libyoke fails once, from Python: an exception each time, the interpreter lives, no memory leaks, the next call
works. libfail_alloc.so must be preloaded (fail_alloc.c).
"""

import ctypes
import gc
import sys

import yoke
from yoke import nn, optim

host = ctypes.CDLL(None)
host.fail_alloc_arm.argtypes = [ctypes.c_long]

x = yoke.ones((48, 48))


def open_and_choose():
    yoke.device("cpu")
    yoke.select(1)
    yoke.explain("auto:min_free=1MiB")


def ops():
    assert (x + x).sum().item() == 2 * 48 * 48
    yoke.cat([yoke.softmax(x @ x, -1), x]).to(dtype=yoke.bfloat16)


def backward():
    w = yoke.ones((48, 48)).requires_grad_(True)
    yoke.relu(x @ w).sum().backward()
    assert w.grad is not None


def step():
    net = nn.Linear(48, 8)
    optimizer = optim.AdamW(net.parameters(), lr=0.1)
    with yoke.autocast(dtype=yoke.bfloat16):
        net(x).sum().backward()
    optimizer.step()


def capture():
    graph = yoke.Graph()
    with graph.capture():
        yoke.sin(x @ x)
    graph.replay()


def doctor():
    yoke.inventory()
    yoke.doctor()


def fail_each(work, step=1):
    work()
    n = 1
    while True:
        gc.collect()
        live, bytes_before = yoke.live_tensor_count(), yoke.memory_allocated()
        host.fail_alloc_arm(n)
        problem = None
        try:
            work()
        except (yoke.OutOfMemoryError, MemoryError) as error:
            problem = str(error)
        finally:
            failed = host.fail_alloc_disarm()
        gc.collect()
        assert problem is None or (failed and "memory" in problem), (work.__name__, n, problem)
        assert yoke.live_tensor_count() == live, (work.__name__, n, "a tensor stays")
        assert yoke.memory_allocated() == bytes_before, (work.__name__, n, "memory stays")
        assert yoke.is_grad_enabled() and not yoke.is_autocast_enabled(), (work.__name__, n, "a mode stays")
        work()
        if not failed:
            print(f"{work.__name__}: {n - 1} allocations")
            return
        n += step


if __name__ == "__main__":
    for work in (open_and_choose, ops, backward, step, capture):
        fail_each(work)
    fail_each(doctor, 199)
    print("1 passed")
    sys.exit(0)
