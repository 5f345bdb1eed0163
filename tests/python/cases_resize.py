"""Samples of the ops of core/ops/resize and their references in NumPy."""
import math

import numpy as np

from op_samples import Case, call, values
from op_table import FLOATS
from cases_pool import np_adaptive_avg_pool2d


def _weights(size, out, scale, mode, align_corners):
    """Returns the matrix [out, size] by which an axis of the result follows from an axis of x, as PyTorch's documentation has it."""
    matrix = np.zeros((out, size))
    step = (size - 1) / max(out - 1, 1) if align_corners else 1 / scale if scale else size / out
    for o in range(out):
        places = {"nearest": o * step, "nearest-exact": (o + 0.5) * step}
        place = places.get(mode, o * step if align_corners else max((o + 0.5) * step - 0.5, 0))
        near = min(int(place), size - 1)
        share = 0 if mode in places else min(place - near, 1)
        matrix[o, near] += 1 - share
        matrix[o, min(near + 1, size - 1)] += share
    return matrix


def np_interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, recompute_scale_factor=False):
    lengths = x.shape[2:]
    scales = [*scale_factor] if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(lengths)
    scales = scales * len(lengths) if len(scales) < len(lengths) else scales
    sizes = ([math.floor(n * scale) for n, scale in zip(lengths, scales)] if size is None
             else [size] * len(lengths) if isinstance(size, int) else size)
    if mode == "area":
        return np_adaptive_avg_pool2d(x.reshape(*x.shape[:2], *[1] * (x.ndim == 3), *lengths), [1] * (x.ndim == 3) + list(sizes)).reshape(
            *x.shape[:2], *sizes)
    for axis, (n, out, scale) in enumerate(zip(lengths, sizes, scales), 2):
        scale = None if n == out or recompute_scale_factor else scale
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ _weights(n, out, scale, mode, align_corners).T, -1, axis)
    return x


def np_pixel_shuffle(x, upscale_factor):
    r = upscale_factor
    *outer, c, h, w = x.shape
    apart = np.moveaxis(x.reshape(*outer, c // r**2, r, r, h, w), (-4, -3), (-3, -1))
    return apart.reshape(*outer, c // r**2, h * r, w * r)


def np_pixel_unshuffle(x, downscale_factor):
    r = downscale_factor
    *outer, c, h, w = x.shape
    apart = np.moveaxis(x.reshape(*outer, c, h // r, r, w // r, r), (-3, -1), (-4, -3))
    return apart.reshape(*outer, c * r**2, h // r, w // r)


CASES = {
    "interpolate": Case(np_interpolate, [
        call(values(2, 3, 4, 5), (8, 10)), call(values(2, 3, 4, 5), 3), call(values(1, 2, 3, 3), scale_factor=2), call(values(2, 2, 5), 7),
        call(values(1, 3, 4, 6), (2, 9), mode="bilinear"), call(values(2, 3, 4, 5), None, 2.0, "bilinear"),
        call(values(1, 2, 3, 5), None, 1.5, "bilinear"), call(values(1, 2, 5, 3), None, 1.5, "bilinear", False, True),
        call(values(2, 2, 4, 5), (7, 3), mode="bilinear", align_corners=True), call(values(2, 3, 4), 9, mode="linear"),
        call(values(2, 3, 6), 4, None, "linear", True), call(values(1, 1, 4, 5), (1, 1), mode="bilinear", align_corners=True),
        call(values(1, 2, 1, 1), (3, 2), mode="bilinear"), call(values(1, 4, 6, 6), (4, 3), mode="area"), call(values(2, 2, 6), 4, mode="area"),
        call(values(1, 8, 3, 4), (3, 4), mode="bilinear"), call(values(1, 2, 4, 3), None, (2.0, 3.0), "bilinear"),
        call(values(2, 2, 4, 5), None, [1.5, 1], "bilinear"), call(values(2, 1, 3, 5), scale_factor=(3, 0.5)),
        call(values(1, 2, 4, 6), None, (0.5, 1.75), "bilinear", False, True), call(values(1, 2, 5), scale_factor=(2.5,)),
        call(values(1, 2, 4, 4), None, (0.5, 0.25), "area"), call(values(1, 2, 4, 5), (7, 3), mode="nearest-exact"),
        call(values(2, 2, 5), 9, mode="nearest-exact"), call(values(1, 1, 3, 4), None, (2, 0.5), "nearest-exact")],
        empty=[call(values(0, 3, 4, 5), (2, 3)), call(values(2, 0, 4, 5), 6, mode="bilinear")],
        large=call(values(2, 3, 61, 67), (131, 127), mode="bilinear"), dtypes=FLOATS, ulps=8, absolute=True),
    "pixel_shuffle": Case(np_pixel_shuffle, [call(values(2, 8, 3, 2), 2), call(values(9, 2, 2), 3), call(values(1, 2, 4, 2, 3), 2),
                                             call(values(2, 3, 2, 2), 1)],
                          empty=[call(values(0, 4, 2, 3), 2)], large=call(values(1, 16, 63, 71), 4)),
    "pixel_unshuffle": Case(np_pixel_unshuffle, [call(values(2, 2, 6, 4), 2), call(values(1, 6, 6), 3), call(values(2, 1, 2, 4, 6), 2)],
                            empty=[call(values(0, 1, 4, 2), 2)], large=call(values(1, 3, 258, 96), 6)),
}
