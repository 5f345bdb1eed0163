"""Samples of the ops of core/ops/norm and their references in NumPy."""
import math

import numpy as np

from op_samples import Case, call, indices, values
from op_table import ALL, FLOATS


def _normalized(x, axes, eps):
    with np.errstate(all="ignore"):
        mean = x.sum(axes, keepdims=True) / math.prod(x.shape[a] for a in axes)
        variance = ((x - mean) ** 2).sum(axes, keepdims=True) / math.prod(x.shape[a] for a in axes)
        return (x - mean) / np.sqrt(variance + eps), mean, variance


def _affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _by_channel(parameter, x):
    return None if parameter is None else parameter.reshape(-1, *[1] * (x.ndim - 2))


def np_layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    return _affine(_normalized(x, axes, eps)[0], weight, bias)


def np_rms_norm(x, normalized_shape, weight=None, eps=None):
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    mean_square = np.mean(x * x, axes, keepdims=True) if x.size else np.ones(())
    return _affine(x / np.sqrt(mean_square + eps), weight, None)


def np_group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    grouped = x.reshape(x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
    normal = _normalized(grouped, tuple(range(2, grouped.ndim)), eps)[0].reshape(x.shape)
    return _affine(normal, _by_channel(weight, x), _by_channel(bias, x))


def np_batch_norm(x, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training:
        normal = _normalized(x, (0, *range(2, x.ndim)), eps)[0]
    else:
        normal = (x - _by_channel(running_mean, x)) / np.sqrt(_by_channel(running_var, x) + eps)
    return _affine(normal, _by_channel(weight, x), _by_channel(bias, x))


def np_batch_norm_add_relu(x, residual=None, *rest, **named):
    normal = np_batch_norm(x, *rest, **named)
    return np.maximum(normal if residual is None else normal + residual, 0)


def np_add_layer_norm(x, residual, *rest, **named):
    """The norm; test_ops_fused.py judges the sum."""
    return np_layer_norm(x + residual, *rest, **named)


CASES = {
    "layer_norm": Case(np_layer_norm, [
        call(values(4, 6), (6,), values(6), values(6)), call(values(2, 3, 4), (3, 4), values(3, 4), values(3, 4)),
        call(values(5, 7), (7,)), call(values(5), (5,), values(5)), call(values(3, 5), (5,), None, values(5)),
        call(values(3, 4) + 3, (4,), eps=0.1), call(values(2, 83), (83,), values(83), values(83)),
        call(values(2, 3, 2), (3, 2), eps=1e-3)],
        empty=[call(values(0, 4), (4,), values(4), values(4)), call(values(2, 0, 3), (3,))],
        large=call(values(273, 257), (257,), values(257), values(257)), dtypes=FLOATS, ulps=16, absolute=True),
    "rms_norm": Case(np_rms_norm, [
        call(values(4, 6), (6,), values(6), 1e-5), call(values(2, 3, 4), (3, 4), values(3, 4), eps=1e-3),
        call(values(5, 7), (7,), eps=1e-6), call(values(5), (5,), values(5), 0.5),
        call(values(2, 83), (83,), values(83), 1e-5)],
        empty=[call(values(0, 4), (4,), values(4), 1e-5), call(values(2, 0, 3), (3,), None, 1e-5)],
        large=call(values(273, 257), (257,), values(257), 1e-5), dtypes=FLOATS, ulps=16, absolute=True),
    "group_norm": Case(np_group_norm, [
        call(values(2, 6, 3, 2), 3, values(6), values(6)), call(values(3, 4, 5), 1, values(4), values(4)),
        call(values(2, 4, 3, 3), 4), call(values(2, 6, 5), 2, None, values(6)), call(values(3, 8), 2, values(8)),
        call(values(1, 2, 3, 2, 2) + 2, 2, values(2), values(2), 0.1)],
        empty=[call(values(0, 4, 3), 2, values(4), values(4))],
        large=call(values(9, 12, 23, 29), 4, values(12), values(12)), dtypes=FLOATS, ulps=24, absolute=True),
    "batch_norm": Case(np_batch_norm, [
        call(values(4, 3, 2, 3), None, None, values(3), values(3), True), call(values(6, 5), training=True, eps=0.1),
        call(values(3, 4, 5), None, None, values(4), None, True, 0.2, 1e-3),
        call(values(2, 6, 4) + 2, None, None, None, values(6), training=True, eps=0.1)],
        empty=[call(values(0, 3, 2), None, None, values(3), values(3), True)],
        large=call(values(11, 10, 25, 26), None, None, values(10), values(10), True), dtypes=FLOATS, ulps=24, absolute=True),
    "batch_norm_add_relu": Case(np_batch_norm_add_relu, [
        call(values(4, 3, 2, 3), values(4, 3, 2, 3), None, None, values(3), values(3), True),
        call(values(6, 5), training=True, eps=0.1),
        call(values(3, 4, 5), values(3, 4, 5), None, None, values(4), None, True, 0.2, 1e-3),
        call(values(2, 6, 4) + 2, None, None, None, None, values(6), training=True, eps=0.1)],
        empty=[call(values(0, 3, 2), values(0, 3, 2), None, None, values(3), values(3), True)],
        large=call(values(11, 10, 25, 26), values(11, 10, 25, 26), None, None, values(10), values(10), True),
        dtypes=FLOATS, ulps=24, absolute=True),
    "add_layer_norm": Case(np_add_layer_norm, [
        call(values(4, 6), values(4, 6), (6,), values(6), values(6)),
        call(values(2, 3, 4), values(2, 3, 4), (3, 4), values(3, 4), None, 1e-3), call(values(5), values(5), (5,))],
        empty=[call(values(0, 4), values(0, 4), (4,), values(4), values(4)), call(values(2, 0, 3), values(2, 0, 3), (3,))],
        large=call(values(273, 257), values(273, 257), (257,), values(257), values(257)),
        dtypes=FLOATS, ulps=24, absolute=True),
    "embedding": Case(lambda index, weight, padding_idx=None: weight[index], [
        call(indices(5, 4), values(5, 3)), call(indices(5, 2, 3), values(5, 4)), call(np.array(2), values(3, 2)),
        call(np.array([1, 1, 0, 1]), values(4, 3)), call(indices(6, 3, 2).astype(np.int32), values(6, 5))],
        empty=[call(indices(3, 0), values(3, 4)), call(indices(3, 2), values(3, 0))],
        large=call(indices(100, 300), values(100, 257)), dtypes=ALL),
}
