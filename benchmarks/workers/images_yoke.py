"""Worker of images.py."""

import yoke
from bench import serve
from bench.images_cases import SIDE, C, N, measure_of

yoke.set_device("cpu")
yoke.set_num_threads(1)
yoke.manual_seed(1)
weight, bias = (make((C,)).requires_grad_(True) for make in (yoke.ones, yoke.zeros))
mean, variance = yoke.zeros((C,)), yoke.ones((C,))


def image(_number, dtype, order):
    x = yoke.randn((N, C, SIDE, SIDE)) if order == "nchw" else yoke.randn((N, SIDE, SIDE, C)).permute((0, 3, 1, 2))
    return x.to(dtype).requires_grad_(True)


def forward(part, x, residual):
    if part == "pool":
        return yoke.max_pool2d(x(), 3, 2, 1)
    return yoke.batch_norm_add_relu(x(), residual(), mean, variance, weight, bias, True)


serve(f"Yoke {yoke.__version__}", measure_of(image, forward, (weight, bias)))
