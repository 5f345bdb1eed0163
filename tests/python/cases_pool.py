"""Samples of the ops of core/ops/pool and their references in NumPy."""
import math

import numpy as np

from cases_conv import _pair
from op_samples import Case, call, values
from op_table import FLOATS


def _windows(size, kernel, stride, padding, dilation, rounds_up):
    """(first position, taps' positions within x, end of the padded window) of each window of an axis, as PyTorch's documentation has them."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (math.ceil if rounds_up else math.floor)(room / stride) + 1
    if rounds_up and (count - 1) * stride >= size + padding:
        count -= 1
    for o in range(count):
        first = o * stride - padding
        yield first, [p for p in range(first, first + dilation * kernel, dilation) if 0 <= p < size], min(first + kernel, size + padding)


def _each(x, down, across, value):
    """value(x of a window [N, C, taps, taps], window along height, along width) of all windows."""
    out = np.stack([np.stack([value(x[:, :, d[1]][..., a[1]], d, a) for a in across], -1) for d in down], -2)
    return out.reshape(*x.shape[:2], len(down), len(across))


def _pool(x, kernel_size, stride, padding, dilation, ceil_mode, value):
    if x.ndim == 3:
        return _pool(x[None], kernel_size, stride, padding, dilation, ceil_mode, value)[0]
    kernel = _pair(kernel_size, 1)
    stride, padding, dilation = _pair(stride, kernel), _pair(padding, 0), _pair(dilation, 1)
    down, across = (list(_windows(x.shape[2 + i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode)) for i in (0, 1))
    return _each(x, down, across, value)


def np_max_pool2d(x, kernel_size, stride=None, padding=None, dilation=None, ceil_mode=False):
    return _pool(x, kernel_size, stride, padding, dilation, ceil_mode, lambda seen, *_: seen.max((2, 3)))


def np_avg_pool2d(x, kernel_size, stride=None, padding=None, ceil_mode=False, count_include_pad=True, divisor_override=None):
    def mean(seen, down, across):
        counted = (down[2] - down[0]) * (across[2] - across[0]) if count_include_pad else seen.shape[2] * seen.shape[3]
        return seen.sum((2, 3)) / (divisor_override or counted)
    return _pool(x, kernel_size, stride, padding, None, ceil_mode, mean)


def np_adaptive_avg_pool2d(x, output_size):
    if x.ndim == 3:
        return np_adaptive_avg_pool2d(x[None], output_size)[0]

    def shares(size, count):
        return [(0, range(o * size // count, -(-(o + 1) * size // count)), 0) for o in range(count)]
    size = _pair(output_size, 1)
    return _each(x, shares(x.shape[2], size[0]), shares(x.shape[3], size[1]), lambda seen, *_: seen.mean((2, 3)))


EMPTY = [call(values(0, 3, 5, 6), 2), call(values(2, 0, 4, 4), 3)]

CASES = {
    "max_pool2d": Case(np_max_pool2d, [
        call(values(2, 3, 6, 8), 2), call(values(3, 5, 4), 3), call(values(2, 3, 7, 6), (3, 2), (2, 3), (1, 1)), call(values(1, 2, 9, 8), 3, 2, 1),
        call(values(1, 2, 9, 8), 2, 1, 1, 3), call(values(2, 2, 7, 8), 3, 2, 1, 1, True), call(values(1, 1, 5, 5), 2, 3, None, None, True),
        call(values(1, 2, 6, 7), 3, 1, [1, 0], [2, 1]), call(values(1, 2, 20, 19), 17, 2, 8), call(values(1, 300, 4, 3), 2, 1), call(values(2, 1, 3, 3), 3),
        call(values(1, 3, 4, 4), 2, 5, padding=1), call(values(2, 3, 2, 2), 3, ceil_mode=True), call(values(1, 2, 3, 5), (7, 3), (4, 3), (1, 0), (1, 3), True),
        call(values(2, 9, 1, 20), (20, 17), (20, 3), (3, 8), None, True)], empty=EMPTY, large=call(values(3, 5, 67, 71), 3, 1, 1), dtypes=FLOATS, ulps=0),
    "avg_pool2d": Case(np_avg_pool2d, [
        call(values(2, 3, 6, 8), 2), call(values(3, 5, 4), 3), call(values(2, 3, 7, 6), (3, 2), (2, 3), (1, 1)), call(values(1, 2, 9, 8), 3, 2, 1, False, False),
        call(values(2, 2, 7, 8), 3, 2, 1, True), call(values(2, 2, 7, 8), 3, 2, 1, True, False), call(values(1, 1, 5, 5), 2, 3, None, True, divisor_override=3),
        call(values(1, 2, 20, 19), 17, 2, 8), call(values(1, 300, 4, 3), 2, 1), call(values(1, 3, 4, 4), 2, 5, padding=1), call(values(2, 3, 2, 2), 3, ceil_mode=True),
        call(values(1, 2, 3, 5), (7, 6), (4, 2), (1, 0), True, False), call(values(2, 9, 1, 20), (20, 17), (20, 3), (3, 8), True)], empty=EMPTY,
        large=call(values(3, 5, 67, 71), 3, 1, 1), dtypes=FLOATS, ulps=16, absolute=True),
    "adaptive_avg_pool2d": Case(np_adaptive_avg_pool2d, [
        call(values(2, 3, 6, 8), 1), call(values(3, 5, 4), 2), call(values(2, 3, 7, 6), (3, 4)), call(values(1, 2, 5, 3), 7), call(values(1, 300, 4, 3), [2, 1]),
        call(values(1, 1, 11, 300), (3, 290))], empty=[call(values(0, 3, 5, 6), 2), call(values(2, 0, 4, 4), (3, 1))],
        large=call(values(3, 5, 61, 89), (67, 71)), dtypes=FLOATS, ulps=16, absolute=True),
}
