"""Errors name the call of a script, never an op inside, in whole characters."""

import pytest

import yoke
from yoke import nn

X = yoke.ones((3, 4))
FAR = yoke.tensor([5])


def put(x, index, values):
    x[index] = values


def leaf(x):
    return x.clone().requires_grad_(True)


def expanded(value):
    return yoke.full((1,), value).expand((4,))


@pytest.mark.parametrize("call, kind, begins", [
    (lambda: yoke.binary_cross_entropy(yoke.full((3,), 2.0), yoke.ones(3)), yoke.ValueError,
     "binary_cross_entropy: argument 'x' has an element of 2"),
    (lambda: X[FAR], yoke.IndexError, "index: the index[0] is 5"),
    (lambda: put(yoke.ones((3, 4)), FAR, 1.0), yoke.IndexError, "index_put_: the index[0] is 5"),
    (lambda: put(yoke.ones((3, 4)), yoke.tensor([0]), yoke.ones(7)), yoke.ValueError, "index_put_: the values have shape [7]"),
    (lambda: put(expanded(1.0), yoke.tensor([0]), 2.0), yoke.ValueError, "index_put_: argument 'x' is expanded"),
    (lambda: put(leaf(X), yoke.tensor([0]), 2.0), yoke.StateError, "index_put_: argument 'x' is a leaf"),
    (lambda: yoke.batch_norm(X, expanded(0.0), yoke.ones(4), training=True), yoke.ValueError,
     "batch_norm: argument 'running_mean' is expanded"),
    (lambda: yoke.batch_norm(X, yoke.zeros(4), expanded(1.0), training=True), yoke.ValueError,
     "batch_norm: argument 'running_var' is expanded"),
    (lambda: yoke.cross_entropy(yoke.ones((2, 0)), yoke.tensor([0, 0])), yoke.ValueError,
     "cross_entropy: argument 'x' has shape [2, 0]; it must have at least 1 class"),
    (lambda: yoke.nll_loss(yoke.ones((2, 0)), yoke.tensor([0, 0])), yoke.ValueError,
     "nll_loss: argument 'x' has shape [2, 0]; it must have at least 1 class"),
    (lambda: yoke.einsum("\u00e9j->j", [X]), yoke.ValueError,
     "einsum: equation \"\u00e9j->j\": '\u00e9' in \"\u00e9j\" is not a letter"),
    (lambda: yoke.einsum("i\u20ac->i", [X]), yoke.ValueError,
     "einsum: equation \"i\u20ac->i\": '\u20ac' in \"i\u20ac\" is not a letter"),
    (lambda: yoke.one_hot(yoke.tensor([0, 3]), 0), yoke.IndexError, "one_hot: argument 'x' has 2 indices, but 'num_classes' is 0"),
    (lambda: nn.MultiheadAttention(8, 2)(yoke.ones((3, 8))), yoke.ValueError, "MultiheadAttention: argument 'x' has shape [3, 8]"),
    (lambda: nn.TransformerBlock(8, 2)(yoke.ones((3, 8))), yoke.ValueError, "TransformerBlock: argument 'x' has shape [3, 8]"),
    (lambda: nn.TransformerBlock(8, 2)(yoke.ones((1, 3, 9))), yoke.ValueError, "TransformerBlock: argument 'x' has shape [1, 3, 9]"),
])
def test_an_error_begins_with_what_was_called(call, kind, begins):
    with pytest.raises(kind) as told:
        call()
    if yoke.current_device().kind == "cpu":
        assert str(told.value).startswith(begins)
    assert begins in str(told.value)  # a later call may report an error of a device's kernel
    assert isinstance(told.value, yoke.Error)


def test_no_index_is_none_too_many_for_no_classes():
    assert yoke.one_hot(yoke.zeros(0, dtype=yoke.int64), 0).shape == (0, 0)
    assert yoke.cross_entropy(yoke.ones((0, 0)), yoke.zeros(0, dtype=yoke.int64), reduction="sum").item() == 0
