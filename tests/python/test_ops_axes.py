"""Ops on tensors of the most axes there can be, against the same op on three: what is kept for each axis is then full."""
import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke

FEW = (3, 4, 5)
PLACES = (5, 10, 15)  # places of these axes among sixteen
MANY = tuple(dict(zip(PLACES, FEW)).get(axis, 1) for axis in range(16))
INDEX = np.random.default_rng(1).integers(0, 3, (2, 4, 5))

# name: op of a tensor, its three axes, and an array of indices as a tensor of as many axes
OPS = {
    "sum": lambda x, a, i: yoke.sum(x, [a[0], a[2]]),
    "sum of all": lambda x, a, i: yoke.sum(x),
    "mean": lambda x, a, i: yoke.mean(x, [a[1]], keepdim=True),
    "amax": lambda x, a, i: yoke.amax(x, [a[0], a[1]]),
    "prod": lambda x, a, i: yoke.prod(x, [a[1]]),
    "var": lambda x, a, i: yoke.var(x, [a[0], a[2]]),
    "softmax": lambda x, a, i: yoke.softmax(x, a[1]),
    "cumsum": lambda x, a, i: yoke.cumsum(x, a[0]),
    "sort": lambda x, a, i: yoke.sort(x, a[1])[0],
    "argmax": lambda x, a, i: yoke.argmax(x, a[2]),
    "flip": lambda x, a, i: yoke.flip(x, [a[0], a[2]]),
    "cat": lambda x, a, i: yoke.cat([x, x * 2], a[1]),
    "gather": lambda x, a, i: yoke.gather(x, a[0], i),
    "index_select": lambda x, a, i: yoke.index_select(x, a[1], yoke.tensor([3, 0, 0])),
    "add": lambda x, a, i: x + yoke.amax(x, [a[0]], keepdim=True),
    "copy": lambda x, a, i: yoke.transpose(x, a[0], a[2]).clone() * 3,
    "dense copy": lambda x, a, i: yoke.transpose(yoke.transpose(x, a[0], a[2]).contiguous(), a[0], a[2]),
}


def value_and_gradient(name, shape, axes):
    x = to_yoke(np.random.default_rng(0).normal(size=FEW).reshape(shape), requires_grad=True)
    index = to_yoke(INDEX.reshape([INDEX.shape[PLACES.index(p)] if p in PLACES else 1 for p in range(16)]
                                  if len(shape) == 16 else INDEX.shape))
    y = OPS[name](x, axes, index)
    if name != "argmax":
        yoke.sum(y * y).backward()
    return to_numpy(y).ravel(), to_numpy(x.grad).ravel() if x.grad is not None else None


@pytest.mark.parametrize("name", OPS)
def test_sixteen_axes_give_what_three_give(name):
    value, gradient = value_and_gradient(name, MANY, PLACES)
    want, slope = value_and_gradient(name, FEW, (0, 1, 2))
    if name == "copy":  # the axes lie elsewhere, so only the set of values is equal
        value, want = np.sort(value), np.sort(want)
    np.testing.assert_allclose(value, want, rtol=1e-12)
    assert (gradient is None) == (slope is None) == (name == "argmax")
    if slope is not None:
        np.testing.assert_allclose(gradient, slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [63, 64, 65, 128, 130])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_any_number_of_parts_is_joined(count, dtype):
    parts = [np.full((3, 4 + (i == count - 1)), i, dtype) for i in range(count)]
    joined = yoke.cat([to_yoke(part, dtype) for part in parts], 1)
    np.testing.assert_array_equal(to_numpy(joined), np.concatenate(parts, 1))


@pytest.mark.parametrize("rows, columns", [(8, 8), (33, 9), (9, 70), (64, 64)])
def test_a_transposed_source_is_copied_into_any_layout(rows, columns):
    source = np.arange(float(rows * columns), dtype="float32").reshape(columns, rows)
    for step in (1, 2, 3):
        base = to_yoke(np.zeros((rows, columns * step), "float32"))
        base[:, ::step].copy_(yoke.transpose(to_yoke(source), 0, 1))
        want = np.zeros((rows, columns * step), "float32")
        want[:, ::step] = source.T
        np.testing.assert_array_equal(to_numpy(base), want)
