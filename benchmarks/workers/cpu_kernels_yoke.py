"""Worker of cpu_kernels.py: a case is "NAME THREADS"; its input is 16 MiB of float32, or 512 where NAME begins with "far"."""

import functools
import time

import yoke
from bench import op_cases, serve
from yoke import optim

ROWS, FAR_ROWS, WIDTH = 4096, 131072, 1024

yoke.set_device("cpu")
yoke.manual_seed(1)
x = yoke.randn((ROWS, WIDTH))
to = yoke.empty((ROWS, WIDTH))
weight, bias = yoke.rand((WIDTH,)), yoke.randn((WIDTH,))
target = yoke.randint(0, WIDTH, (ROWS,))


parameter = yoke.randn((ROWS, WIDTH)).requires_grad_(True)
parameter.grad = yoke.randn((ROWS, WIDTH))
optimizer = optim.AdamW([parameter], lr=1e-3)


@functools.cache
def far():
    return yoke.randn((FAR_ROWS, WIDTH)), yoke.zeros((FAR_ROWS, WIDTH))


CASES = {
    "copy": lambda: to.copy_(x),
    "gelu": lambda: yoke.gelu(x),
    "gelu tanh": lambda: yoke.gelu(x, "tanh"),
    "layer_norm": lambda: yoke.layer_norm(x, (WIDTH,), weight, bias),
    "far copy": lambda: far()[1].copy_(far()[0]),
    "far layer_norm": lambda: yoke.layer_norm(far()[0], (WIDTH,), weight, bias),
    "softmax": lambda: yoke.softmax(x, -1),
    "cross_entropy": lambda: yoke.cross_entropy(x, target),
    "adamw": optimizer.step,
}


@functools.lru_cache(1)
def of_op(case):
    _, name_and_dtype = case.split(" ", 1)
    return op_cases.prepare(yoke, *name_and_dtype.rsplit(" ", 1))


def measure(case, count):
    name, threads = case.rsplit(" ", 1)
    yoke.set_num_threads(int(threads))
    repeat = of_op(name) if name.startswith("op ") else CASES[name]
    with yoke.no_grad():
        repeat()
        start = time.perf_counter()
        for _ in range(count):
            repeat()
        return (time.perf_counter() - start) / count


serve(f"Yoke {yoke.__version__}", measure)
