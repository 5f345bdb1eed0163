"""Worker of images.py: a case is "PART DTYPE ORDER"; seconds are those of the process."""

import functools
import time

import yoke
from bench import serve

N, C, SIDE = 32, 64, 56

yoke.set_device("cpu")
yoke.set_num_threads(1)
yoke.manual_seed(1)
weight, bias = (make((C,)).requires_grad_(True) for make in (yoke.ones, yoke.zeros))
mean, variance = yoke.zeros((C,)), yoke.ones((C,))


@functools.cache
def image(number, dtype, order):
    x = yoke.randn((N, C, SIDE, SIDE)) if order == "nchw" else yoke.randn((N, SIDE, SIDE, C)).permute((0, 3, 1, 2))
    return x.to(dtype).requires_grad_(True)


def forward(part, dtype, order):
    x = image(0, dtype, order)
    if part == "pool":
        return yoke.max_pool2d(x, 3, 2, 1)
    return yoke.batch_norm_add_relu(x, image(1, dtype, order), mean, variance, weight, bias, True)


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


serve(f"Yoke {yoke.__version__}", measure)
