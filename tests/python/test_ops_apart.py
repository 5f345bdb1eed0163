"""Rows with a small gap in memory, which begin at odd places, have the values and gradients of dense rows; so do elements that share
a place in memory.

A kernel must check its operand before it reads 16 bytes at a time: each operand here is aligned in all respects except a single
respect.
"""
import numpy as np
import pytest

import yoke
from op_table import EPSILON, to_numpy, to_yoke

_rng = np.random.default_rng(3)
LENGTH = 8  # elements of a row; a row begins 9 elements after the row before


def rows(*shape):
    return _rng.standard_normal((*shape, LENGTH + 1))


def pair(array, dtype):
    """Returns a tensor with gaps between rows, and a dense tensor of equal values."""
    return to_yoke(array.astype(dtype))[..., :LENGTH], to_yoke(array[..., :LENGTH].astype(dtype))


def assert_same(ours, dense, dtype):
    for a, b in zip(ours, dense, strict=True):
        scale = np.max(np.abs(to_numpy(b)), initial=0)
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=4 * EPSILON[dtype], atol=4 * EPSILON[dtype] * scale)


def with_gradients(f, leaves, upstream):
    """f(leaves…) and the gradients of the leaves; `upstream` names the layout of the result's gradient."""
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    out = f(*leaves)
    out.backward(upstream if out.ndim else None)
    return [out, *(leaf.grad for leaf in leaves)]


INDEX = [4, 0, 4, 1, 0, 2]
OF_ROWS = {
    "softmax": lambda x: yoke.softmax(x, -1),
    "log_softmax": lambda x: yoke.log_softmax(x, -1),
    "layer_norm": lambda x: yoke.layer_norm(x, (LENGTH,)),
    "cumsum": lambda x: yoke.cumsum(x, -1),
    "index_select": lambda x: yoke.index_select(x, 0, yoke.tensor(INDEX)),
    "gelu": yoke.gelu,
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", OF_ROWS)
def test_ops_of_rows(name, dtype):
    x, grad = rows(6), rows(6)
    ours, dense = (with_gradients(OF_ROWS[name], [leaf], upstream) for leaf, upstream in zip(pair(x, dtype), pair(grad, dtype)))
    assert_same(ours, dense, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_gradient_of_an_embedding(dtype):
    weight, grad = rows(5), rows(6)
    ours, dense = (with_gradients(lambda w: yoke.embedding(yoke.tensor(INDEX), w), [leaf], upstream)
                   for leaf, upstream in zip(pair(weight, dtype), pair(grad, dtype)))
    assert_same(ours, dense, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses(reduction, dtype):
    x, target = rows(6), np.abs(rows(6))
    for loss in (yoke.mse_loss, yoke.l1_loss, yoke.smooth_l1_loss):
        ours, dense = (with_gradients(lambda a, b: loss(a, b, reduction=reduction), leaves, None)
                       for leaves in zip(pair(x, dtype), pair(target, dtype)))
        assert_same(ours, dense, dtype)
    classes = to_yoke(np.arange(6) % LENGTH)
    ours, dense = (with_gradients(lambda a: yoke.cross_entropy(a, classes, reduction=reduction), [leaf], None)
                   for leaf in pair(x, dtype))
    assert_same(ours, dense, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1)])
def test_sums_along_any_axes(axis, dtype):
    for op in (yoke.sum, yoke.mean, lambda x, axis: yoke.var(x, axis)):
        ours, dense = (op(x, axis) for x in pair(rows(40, 3), dtype))
        assert_same([ours], [dense], dtype)


@pytest.mark.parametrize("count", [1, 64, 1000])
def test_a_loss_against_one_value_or_every_second(count):
    x, values = _rng.standard_normal(count).astype("float32"), _rng.standard_normal(2 * count).astype("float32")
    one = yoke.mse_loss(to_yoke(x), to_yoke(values)[:1], reduction="sum")
    np.testing.assert_allclose(to_numpy(one), np.sum((x - values[0])**2.0), rtol=1e-5)
    second = yoke.mse_loss(to_yoke(x), to_yoke(values)[::2], reduction="sum")
    np.testing.assert_allclose(to_numpy(second), np.sum((x - values[::2])**2.0), rtol=1e-5)
    first = yoke.mse_loss(to_yoke(values)[::2], to_yoke(x), reduction="sum")
    np.testing.assert_allclose(to_numpy(first), np.sum((x - values[::2])**2.0), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("training", [True, False])
def test_channels_of_one_value_each_or_of_odd_lengths(training, dtype):
    """A value that stands for 8 has no neighbours to read along; a plane of 7 has no whole packs."""
    def run(x):
        mean, var = (None, None) if training else (yoke.full(x.shape[1], 0.5), yoke.full(x.shape[1], 2.0))
        return with_gradients(lambda leaf: yoke.batch_norm(leaf, mean, var, None, None, training), [x], yoke.ones_like(x))
    values = to_yoke(_rng.standard_normal((4, 3, 1)).astype(dtype)).expand((4, 3, LENGTH))
    wide = values.detach().requires_grad_()
    mean, var = (None, None) if training else (yoke.full(3, 0.5), yoke.full(3, 2.0))
    out = yoke.batch_norm(wide, mean, var, None, None, training)
    out.sum().backward()  # a gradient of a single value, too
    assert_same([out, wide.grad], run(values.contiguous()), dtype)
    plane = _rng.standard_normal((1, 1, 7)).astype(dtype)
    got, grad = run(to_yoke(plane))
    exact = plane.astype("float64")
    centre, spread = (exact.mean(), exact.var()) if training else (0.5, 2.0)
    np.testing.assert_allclose(to_numpy(got), (exact - centre) / np.sqrt(spread + 1e-5), rtol=1e-2 if dtype == "float16" else 1e-5,
                               atol=1e-3 if dtype == "float16" else 1e-6)
    want = np.zeros(7) if training else np.full(7, 1 / np.sqrt(2 + 1e-5))
    np.testing.assert_allclose(to_numpy(grad).reshape(7), want, rtol=1e-3, atol=1e-3)


def test_many_tensors_of_odd_lengths_join():
    """Copies need more than a single launch. The places of the middle tensors are odd, although each tensor is whole."""
    lengths = [1, *[4] * 127, 3]
    parts = [_rng.standard_normal((2, n)).astype("float32") for n in lengths]
    np.testing.assert_array_equal(to_numpy(yoke.cat([to_yoke(part) for part in parts], 1)), np.concatenate(parts, 1))
