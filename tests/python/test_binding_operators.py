"""Operators, calls, indexing and assignment."""

from fractions import Fraction

import numpy as np
import pytest

import yoke


@pytest.mark.parametrize("operate", [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
], ids=["+", "-", "*", "/"])
@pytest.mark.parametrize("other", [2.0, 3, True, Fraction(1, 2), np.float32(2.5), np.int64(4)],
                         ids=lambda v: type(v).__name__)
def test_operators_take_numbers_on_either_side(operate, other):
    values = np.array([1.0, -2.0, 4.0], dtype=np.float32)
    x = yoke.tensor(values)
    for got, want in ((operate(x, other), operate(values, float(other))),
                      (operate(other, x), operate(float(other), values))):
        assert isinstance(got, yoke.Tensor) and got.dtype is yoke.float32
        np.testing.assert_allclose(got.tolist(), want, rtol=1e-6)


def test_matmul_and_unary_operators():
    a, b = yoke.tensor([[1.0, 2.0]]), yoke.tensor([[3.0], [4.0]])
    assert (a @ b).tolist() == [[11.0]] and (-a).tolist() == [[-1.0, -2.0]]


def test_weak_scalars_keep_the_dtype_of_the_tensor():
    assert (yoke.ones(1, dtype=yoke.float16) * 2.5).dtype is yoke.float16
    assert (yoke.ones(1, dtype=yoke.int8) + 1).dtype is yoke.int8
    assert (yoke.ones(1, dtype=yoke.int8) + 1.5).dtype is yoke.float32


def test_adding_in_place_keeps_object_and_memory():
    x = yoke.zeros(3)
    same, address = x, x.data_ptr()
    x += 2
    x += yoke.tensor([1.0, 2.0, 3.0])
    assert x is same and x.data_ptr() == address and x.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("other", ["text", None, [1, 2], object()], ids=["str", "None", "list", "object"])
def test_operators_refuse_what_is_no_number(other):
    x = yoke.ones(2)
    for operate in (lambda: x + other, lambda: other + x, lambda: x * other, lambda: x @ other):
        with pytest.raises(TypeError):
            operate()


def test_another_class_may_answer_for_an_operator():
    class Other:
        def __radd__(self, left):
            return "mine"

        def __add__(self, right):
            return "mine"

    assert yoke.ones(1) + Other() == "mine" and Other() + yoke.ones(1) == "mine"


def test_order_comparisons_and_membership_raise():
    x = yoke.ones(2)
    for wrong in (lambda: x < 1, lambda: x >= x, lambda: 1 in x):
        with pytest.raises(yoke.TypeError, match="not supported"):
            wrong()


def test_ops_take_positions_and_keywords():
    x = yoke.tensor([[1.0, 2.0], [3.0, 4.0]])
    want = [4.0, 6.0]
    for got in (yoke.sum(x, 0), yoke.sum(x, axis=0), x.sum(0), x.sum(axis=(0,)), yoke.sum(x=x, axis=[0])):
        assert got.tolist() == want
    assert x.sum(axis=0, keepdim=True).shape == (1, 2) and x.sum(dtype="float64").dtype is yoke.float64
    assert yoke.cat([x, x], axis=1).shape == (2, 4) == yoke.cat((x, x), 1).shape


def test_cat_of_very_many_tensors():
    parts = [yoke.tensor([i]) for i in range(500)]
    assert yoke.cat(parts).tolist() == list(range(500))


def test_devices_are_taken_in_every_form():
    for device in ("cpu", yoke.device("cpu"), 0, None):
        assert yoke.zeros(1, device=device).device.kind in ("cpu", "cuda")


INDEXES = [0, -1, 2, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(-2, None), slice(5, 1, -2),
           slice(10, 20), slice(-100, 100), None, Ellipsis, (1, 2), (0, slice(1, None)), (Ellipsis, 0), (slice(None), None, -1),
           (None, 1, Ellipsis, slice(None, None, -2)), (), (2, 1, 0), (Ellipsis, None)]


@pytest.mark.parametrize("key", INDEXES, ids=repr)
def test_indexing_gives_the_views_of_numpy(key):
    a = np.arange(4 * 3 * 5, dtype=np.int64).reshape(4, 3, 5)
    x = yoke.tensor(a)
    assert x[key].shape == a[key].shape and x[key].tolist() == a[key].tolist()
    assert x[key].storage_id() == x.storage_id() or x[key].numel == 0


@pytest.mark.parametrize("key", INDEXES, ids=repr)
@pytest.mark.parametrize("value", [7, 2.0, [[1], [2], [3]]], ids=["int", "float", "lists"])
def test_assignment_writes_like_numpy(key, value):
    a = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)
    x = yoke.tensor(a)
    try:
        a[key] = value
    except ValueError:
        with pytest.raises(yoke.ValueError):
            x[key] = value
        return
    x[key] = value
    assert x.tolist() == a.tolist()


def test_assignment_takes_tensors_and_arrays_and_changes_through_views():
    x = yoke.zeros((2, 3))
    x[0] = yoke.tensor([1, 2, 3])
    x[1, ::2] = np.array([4.0, 5.0])
    x[0] += 1
    assert x.tolist() == [[2, 3, 4], [4, 0, 5]]
    view = x[:, 1]
    view[:] = -1
    assert x.tolist() == [[2, -1, 4], [4, -1, 5]]


def test_the_sequence_protocol_runs_over_the_first_axis():
    x = yoke.tensor([[1, 2], [3, 4], [5, 6]])
    assert len(x) == 3 and [row.tolist() for row in x] == [[1, 2], [3, 4], [5, 6]]
    first, *rest = x
    assert first.tolist() == [1, 2] and len(rest) == 2


@pytest.mark.parametrize("key, error, words", [
    (4, yoke.IndexError, "4"),
    (-5, yoke.IndexError, "-5"),
    ((0, 0, 0, 0), yoke.IndexError, "4"),
    (10**30, yoke.ValueError, "64-bit"),
    (slice(None, None, 0), yoke.ValueError, "step"),
    ((Ellipsis, Ellipsis), yoke.ValueError, "ellips|\\.\\.\\."),
    ("x", yoke.TypeError, "str"),
    (1.5, yoke.TypeError, "float"),
    (slice("a", None), yoke.TypeError, "str"),
    ([0, 4], yoke.IndexError, "index.1. is 4"),
    (np.array([True]), yoke.IndexError, "mask"),
    (["a"], yoke.TypeError, "is no number"),
    ((None,) * 40, yoke.IndexError, "40"),
], ids=repr)
def test_a_wrong_index_is_refused_by_name(key, error, words):
    x = yoke.zeros((4, 3, 5))
    with pytest.raises(error, match=words):
        x[key]
    with pytest.raises(error, match=words):
        x[key] = 1


def test_elements_cannot_be_deleted():
    x = yoke.zeros(3)
    with pytest.raises(yoke.TypeError, match="deleted"):
        del x[0]


def test_grad_flows_through_operators_and_indexing():
    x = yoke.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ((x[::2] * 3 - 1) / 2).sum().backward()
    assert x.grad.tolist() == [1.5, 0.0, 1.5]
