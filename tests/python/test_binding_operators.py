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


COMPARE = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
           ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


@pytest.mark.parametrize("sign", COMPARE)
def test_comparisons_are_elementwise_and_take_numbers_on_either_side(sign):
    compare, a, b = COMPARE[sign], np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    x, y = yoke.tensor(a), yoke.tensor(b)
    for got, want in ((compare(x, y), compare(a, b)), (compare(x, 2), compare(a, 2)), (compare(2.0, x), compare(2.0, a)),
                      (compare(np.float32(2), x), compare(2.0, a))):
        assert got.dtype is yoke.bool and got.tolist() == want.tolist()


def test_equality_with_what_is_no_number_is_identity_and_order_is_refused():
    x = yoke.ones(2)
    for other in (None, "text", [1.0, 1.0], object()):
        assert (x == other) is False and (x != other) is True
        with pytest.raises(TypeError):
            x < other


def test_tensors_are_keys_by_identity():
    x, y = yoke.ones(2), yoke.ones(2)
    names = {x: "x", y: "y"}
    assert names[x] == "x" and names[y] == "y" and hash(x) != hash(y) and x in {x} and y not in {x}


def test_membership_asks_whether_an_element_is_equal():
    x = yoke.tensor([[1, 2], [3, 4]])
    assert 3 in x and 5 not in x and yoke.tensor(2) in x and 2.5 not in x
    with pytest.raises(yoke.TypeError, match="'value' must be a number, a tensor or an array, not str"):
        "1" in x


def test_a_tensor_of_one_element_alone_is_true_or_false():
    assert yoke.tensor([2.0]) == 2 and not yoke.tensor([[0]])
    for wrong in (yoke.ones(2), yoke.ones(0)):
        with pytest.raises((yoke.ValueError, yoke.TypeError), match="one"):
            bool(wrong == wrong)


def test_bools_combine_by_logical_operators():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    x, y = yoke.tensor(a), yoke.tensor(b)
    for got, want in ((x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x & True, a), (False | x, a), (True ^ x, ~a)):
        assert got.dtype is yoke.bool and got.tolist() == want.tolist()
    x &= y
    assert x.tolist() == (a & b).tolist()


def test_operators_with_text_are_refused_by_python():
    for operate in (lambda x: x & "text", lambda x: "text" | x, lambda x: x << "text", lambda x: x // "text"):
        with pytest.raises(TypeError):
            operate(yoke.tensor([1]))


def test_powers_and_absolute_values():
    x = yoke.tensor([1.0, -2.0, 3.0])
    assert (x ** 2).tolist() == [1, 4, 9] and (2 ** x).tolist() == [2, 0.25, 8] and abs(x).tolist() == [1, 2, 3]
    assert (x ** yoke.tensor([0.0, 3.0, 1.0])).tolist() == [1, -8, 3] and pow(x, 2).tolist() == [1, 4, 9]
    with pytest.raises(yoke.TypeError, match="modulus"):
        pow(x, 2, 3)


def test_operators_in_place_keep_object_and_memory():
    x = yoke.tensor([1.0, 2.0, 3.0])
    same, address = x, x.data_ptr()
    x -= 1
    x *= yoke.tensor([1.0, 2.0, 3.0])
    x /= 2
    x **= 2
    assert x is same and x.data_ptr() == address and x.tolist() == [0, 1, 9]
    y = yoke.ones(2, dtype=yoke.int64)
    with pytest.raises(yoke.TypeError, match="div_: the result has dtype float32"):
        y /= 2
    for wrong in ("text", None, [1]):
        with pytest.raises(TypeError):
            x -= wrong


def test_a_leaf_changes_in_place_under_no_grad_alone():
    x = yoke.ones(2).requires_grad_(True)
    with pytest.raises(yoke.StateError, match="sub_: argument 'x' is a leaf that requires grad"):
        x -= 1
    with yoke.no_grad():
        x -= 0.5
    assert x.is_leaf and x.requires_grad and x.tolist() == [0.5, 0.5]


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
    (["a"], yoke.TypeError, "is not a number"),
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
