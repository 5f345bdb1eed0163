"""Samples of the ops of core/ops/conv and their references in NumPy."""
import numpy as np

from op_samples import Case, call, values
from op_table import FLOATS


def _pair(value, absent):
    value = absent if value is None else value
    pair = [value] if isinstance(value, int) else list(value)
    return pair * 2 if len(pair) == 1 else pair


def _taps(weight, dilation):
    """Yields (place, matrix in each group) for each element of the window."""
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            yield i * dilation[0], j * dilation[1], weight[:, :, i, j]


def _seen(x, y, left, places, stride):
    """Returns the elements that a tap meets, [N, C, places...]."""
    return x[:, :, y:y + (places[0] - 1) * stride[0] + 1:stride[0], left:left + (places[1] - 1) * stride[1] + 1:stride[1]]


def _with_bias(x, bias):
    return x if bias is None else x + bias[:, None, None]


def np_conv2d(x, weight, bias=None, stride=None, padding=None, dilation=None, groups=1):
    if x.ndim == 3:
        return np_conv2d(x[None], weight, bias, stride, padding, dilation, groups)[0]
    stride, dilation, (top, left) = _pair(stride, 1), _pair(dilation, 1), _pair(padding, 0)
    padded = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
    places = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(padded.shape[2:], dilation, weight.shape[2:], stride)]
    out = np.zeros((x.shape[0], groups, weight.shape[0] // groups, *places))
    for i, j, matrix in _taps(weight, dilation):
        seen = _seen(padded, i, j, places, stride).reshape(x.shape[0], groups, x.shape[1] // groups, *places)
        out += np.einsum("ngchw,goc->ngohw", seen, matrix.reshape(groups, -1, weight.shape[1]) if weight.size else
                         np.zeros((groups, out.shape[2], weight.shape[1])))
    return _with_bias(out.reshape(x.shape[0], weight.shape[0], *places), bias)


def np_conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return np_conv2d(x[..., None, :], weight[:, :, None], bias, (1, stride), (0, padding), (1, dilation), groups)[..., 0, :]


def np_conv_transpose2d(x, weight, bias=None, stride=None, padding=None, output_padding=None, groups=1, dilation=None):
    if x.ndim == 3:
        return np_conv_transpose2d(x[None], weight, bias, stride, padding, output_padding, groups, dilation)[0]
    stride, dilation, places = _pair(stride, 1), _pair(dilation, 1), x.shape[2:]
    more, (top, left) = _pair(output_padding, 0), _pair(padding, 0)
    whole = [(n - 1) * s + d * (k - 1) + 1 + m for n, s, d, k, m in zip(places, stride, dilation, weight.shape[2:], more)]
    out = np.zeros((x.shape[0], groups, weight.shape[1], *whole))
    parts = x.reshape(x.shape[0], groups, x.shape[1] // groups, *places)
    for i, j, matrix in _taps(weight, dilation):
        added = np.einsum("ngchw,gco->ngohw", parts, matrix.reshape(groups, parts.shape[2], weight.shape[1]))
        for n in range(groups):
            _seen(out[:, n], i, j, places, stride)[...] += added[:, n]
    out = out.reshape(x.shape[0], groups * weight.shape[1], *whole)
    return _with_bias(out[:, :, top:whole[0] - top, left:whole[1] - left], bias)


CASES = {
    "conv1d": Case(np_conv1d, [
        call(values(2, 3, 7), values(4, 3, 3), values(4)), call(values(3, 6), values(2, 3, 2)),
        call(values(2, 4, 9), values(4, 2, 3), values(4), 2, 1, 2, 2), call(values(1, 2, 5), values(2, 1, 4), padding=3, groups=2),
        call(values(2, 1, 4), values(1, 1, 1), values(1), stride=3)],
        empty=[call(values(0, 3, 7), values(4, 3, 3), values(4)), call(values(2, 0, 5), values(3, 0, 3), values(3))],
        large=call(values(17, 2, 1381), values(3, 2, 5), values(3), 1, 1), dtypes=FLOATS, ulps=16, absolute=True),
    "conv2d": Case(np_conv2d, [
        call(values(2, 3, 5, 6), values(4, 3, 3, 2), values(4)), call(values(3, 4, 5), values(2, 3, 2, 3)),
        call(values(2, 3, 4, 4), values(5, 3, 1, 1), values(5)), call(values(1, 2, 7, 6), values(3, 2, 3, 3), None, 2, 1),
        call(values(1, 3, 6, 5), values(2, 3, 1, 1), None, 2), call(values(1, 2, 6, 7), values(2, 2, 3, 2), None, (2, 3), (1, 2), (2, 1)),
        call(values(2, 4, 5, 4), values(6, 2, 3, 3), values(6), 1, 1, 1, 2), call(values(1, 4, 3, 3), values(4, 1, 2, 2), groups=4),
        call(values(2, 3, 6, 5), values(3, 1, 3, 3), values(3), 2, 1, groups=3), call(values(1, 2, 4, 4), values(4, 1, 3, 3), None, 1, 1, 1, 2),
        call(values(1, 1, 9, 8), values(2, 1, 3, 3), None, 2, 3, 3), call(values(1, 2, 7, 7), values(2, 1, 2, 3), None, 3, 1, 2, 2),
        call(values(1, 2, 3, 3), values(2, 2, 3, 3), padding=[2, 0]), call(values(1, 2, 2, 2), values(2, 2, 2, 2), stride=5),
        call(values(2, 2, 3, 2), values(9, 2, 1, 2), values(9), padding=(0, 1)), call(values(1, 2, 5, 5), values(2, 2, 2, 2), None, 4, 0)],
        empty=[call(values(0, 3, 5, 6), values(4, 3, 3, 2), values(4)), call(values(2, 0, 4, 4), values(3, 0, 3, 3), values(3)),
               call(values(2, 2, 4, 4), values(0, 2, 3, 3))],
        large=call(values(17, 2, 37, 41), values(3, 2, 3, 3), values(3), 1, 1), dtypes=FLOATS, ulps=16, absolute=True),
    "conv_transpose2d": Case(np_conv_transpose2d, [
        call(values(2, 3, 3, 4), values(3, 4, 3, 2), values(4)), call(values(3, 4, 2), values(3, 2, 2, 3)),
        call(values(1, 2, 4, 3), values(2, 3, 3, 3), values(3), 2, 1, 1), call(values(1, 4, 3, 3), values(4, 2, 2, 2), None, 2, groups=2),
        call(values(1, 2, 3, 3), values(2, 2, 3, 2), None, (3, 2), (1, 0), (2, 1), 1, (1, 2)),
        call(values(2, 3, 3, 2), values(3, 1, 3, 3), values(3), 2, 1, 1, 3), call(values(1, 1, 2, 3), values(1, 2, 2, 2), values(2), 4),
        call(values(1, 2, 3, 3), values(2, 1, 2, 2), values(1), stride=3, dilation=3),
        call(values(1, 2, 3, 2), values(2, 9, 2, 1), values(9)), call(values(2, 3, 4, 4), values(3, 2, 1, 1), padding=1),
        call(values(1, 2, 3, 3), values(2, 3, 3, 2), values(3), 1, 1, 1, 1, 2), call(values(2, 4, 3, 2), values(4, 1, 2, 3), values(2), (1, 2), 0, (2, 4), 2, (3, 5))],
        empty=[call(values(0, 3, 3, 4), values(3, 4, 3, 2), values(4)), call(values(2, 0, 3, 3), values(0, 2, 2, 2), values(2)),
               call(values(2, 3, 2, 2), values(3, 0, 2, 2))],
        large=call(values(17, 2, 37, 41), values(2, 3, 3, 3), values(3), 1, 1), dtypes=FLOATS, ulps=16, absolute=True),
}
