"""Ops that change a tensor: what they refuse, overlapping memory, gradients, and that a failure changes nothing."""
import numpy as np
import pytest

import yoke
from op_table import ALL, FLOATS, to_numpy, to_yoke

IN_PLACE = {
    "copy_": lambda x: x.copy_(yoke.ones_like(x)),
    "fill_": lambda x: x.fill_(7),
    "add_": lambda x: x.add_(1),
}
names = pytest.mark.parametrize("name", IN_PLACE)


@names
def test_a_leaf_that_requires_grad_cannot_change_while_the_tape_records(name):
    x = to_yoke(np.arange(3.0), requires_grad=True)
    with pytest.raises(yoke.StateError, match=rf"{name}: argument 'x' is a leaf that requires grad.*no_grad"):
        IN_PLACE[name](x)
    assert to_numpy(x).tolist() == [0.0, 1.0, 2.0]
    with yoke.no_grad():
        IN_PLACE[name](x)
    assert x.requires_grad and x.is_leaf and to_numpy(x)[0] == {"copy_": 1, "fill_": 7, "add_": 1}[name]


@names
def test_an_expanded_tensor_cannot_be_written(name):
    x = to_yoke(np.arange(3.0))
    with pytest.raises(yoke.ValueError, match=rf"{name}: argument 'x' is expanded: axis 0.*clone\(\)"):
        IN_PLACE[name](yoke.expand(x, (2, 3)))
    assert to_numpy(x).tolist() == [0.0, 1.0, 2.0]


@names
def test_a_view_writes_into_its_base_and_nowhere_else(name):
    base = to_yoke(np.zeros((4, 6)))
    IN_PLACE[name](yoke.slice(yoke.slice(yoke.transpose(base, 0, 1), 0, 5, 0, -2), 1, 1, 3))
    want = np.zeros((4, 6))
    want[1:3, [5, 3, 1]] = {"copy_": 1, "fill_": 7, "add_": 1}[name]
    np.testing.assert_array_equal(to_numpy(base), want)


def test_reading_and_writing_overlapping_parts_is_as_if_the_source_were_copied_first():
    def fresh():
        return to_yoke(np.arange(10.0))
    x, want = fresh(), np.arange(10.0)
    yoke.slice(x, 0, 1).copy_(yoke.slice(x, 0, 0, 9))
    want[1:] = want[:9].copy()
    np.testing.assert_array_equal(to_numpy(x), want)
    x, want = fresh(), np.arange(10.0)
    yoke.slice(x, 0, 0, 9).add_(yoke.slice(x, 0, 1))
    want[:9] += np.arange(10.0)[1:]
    np.testing.assert_array_equal(to_numpy(x), want)
    x = fresh()
    x.copy_(yoke.slice(x, 0, None, None, -1))
    np.testing.assert_array_equal(to_numpy(x), np.arange(10.0)[::-1])
    x = fresh()
    x.add_(x)
    np.testing.assert_array_equal(to_numpy(x), 2 * np.arange(10.0))
    square = to_yoke(np.arange(9.0).reshape(3, 3))
    square.add_(yoke.transpose(square, 0, 1))
    np.testing.assert_array_equal(to_numpy(square), np.arange(9.0).reshape(3, 3) + np.arange(9.0).reshape(3, 3).T)
    column = to_yoke(np.arange(9.0).reshape(3, 3))
    column.add_(yoke.slice(column, 1, 0, 1))  # its own first column, broadcast
    np.testing.assert_array_equal(to_numpy(column), np.arange(9.0).reshape(3, 3) + [[0], [3], [6]])


def test_large_overlapping_copies_do_not_depend_on_threads():
    for threads in (1, 2):
        yoke.set_num_threads(threads)
        x = to_yoke(np.arange(200_001.0))
        yoke.slice(x, 0, 1).copy_(yoke.slice(x, 0, 0, 200_000))
        np.testing.assert_array_equal(to_numpy(x), np.concatenate([[0.0], np.arange(200_000.0)]))
    yoke.set_num_threads(0)


def test_a_shape_that_does_not_broadcast_to_the_target_is_refused_with_both():
    x = to_yoke(np.zeros((2, 3)))
    for op, message in ((yoke.copy_, r"copy_: argument 'src' of shape \[2\].*\[2, 3\]"),
                        (yoke.add_, r"add_: shapes \[2, 3\] and \[2\] do not broadcast: axis 1 has 3 and 2")):
        with pytest.raises(yoke.ValueError, match=message):
            op(x, to_yoke(np.zeros(2)))
        with pytest.raises(yoke.ValueError, match=r"\[4, 2, 3\].*\[2, 3\]"):
            op(x, to_yoke(np.zeros((4, 2, 3))))


def test_copy_casts_from_every_dtype_to_every_dtype():
    numbers = np.array([0.0, 1.0, 3.0])
    for source in ALL:
        for target in ALL:
            x = yoke.zeros(3, dtype=getattr(yoke, target))
            x.copy_(yoke.tensor(numbers).to(dtype=getattr(yoke, source)))
            want = (numbers != 0) if "bool" in (source, target) else numbers
            np.testing.assert_array_equal(to_numpy(x).astype(float), want.astype(float), err_msg=f"{source} to {target}")


def test_a_float_sum_does_not_go_into_an_integer_tensor():
    for y in (to_yoke(np.ones(3)), 0.5):
        x = to_yoke(np.arange(3))
        with pytest.raises(yoke.TypeError, match="add_: the result has dtype float.*int64 that is written; use add$"):
            x.add_(y)
        assert to_numpy(x).tolist() == [0, 1, 2]


# ---- Gradients -------------------------------------------------------------------------------------------------------


def test_gradients_flow_into_what_was_written_and_not_into_what_was_overwritten():
    x = to_yoke(np.array([1.0, 2.0]), requires_grad=True)
    w = to_yoke(np.array([3.0, 4.0]), requires_grad=True)
    y = x * 2
    y.copy_(w)
    yoke.sum(y * y).backward()
    assert x.grad.tolist() == [0.0, 0.0] and w.grad.tolist() == [6.0, 8.0]


def test_add_passes_its_gradient_to_both():
    x = to_yoke(np.ones((2, 3)), requires_grad=True)
    w = to_yoke(np.ones(3), requires_grad=True)
    y = x * 2
    y.add_(w)
    y.add_(w)
    yoke.sum(y).backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2 and w.grad.tolist() == [4.0] * 3


def test_fill_ends_the_gradient():
    x = to_yoke(np.ones(3), requires_grad=True)
    y = x * 2
    y.fill_(5)
    yoke.sum(y * x).backward()
    assert x.grad.tolist() == [5.0] * 3


def test_writing_into_a_fresh_tensor_makes_it_part_of_the_graph():
    w = to_yoke(np.array([1.0, 2.0]), requires_grad=True)
    y = yoke.zeros(2, dtype=yoke.float64)
    y.copy_(w)
    y.add_(w)
    assert y.requires_grad and not y.is_leaf
    yoke.sum(y).backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_copying_a_tensor_with_gradient_into_integers_records_nothing():
    w = to_yoke(np.array([1.5, 2.5]), requires_grad=True)
    y = yoke.zeros(2, dtype=yoke.int64)
    y.copy_(w)
    assert y.tolist() == [1, 2]
    assert not y.requires_grad, "integers have no gradient"


def test_a_gradient_through_a_copy_to_another_dtype_has_the_sources_dtype():
    for dtype in FLOATS:
        w = to_yoke(np.array([1.0, 2.0]), dtype, requires_grad=True)
        y = yoke.zeros((2, 2), dtype=yoke.float32)
        y.copy_(w)
        yoke.sum(y * 3).backward()
        assert w.grad.dtype == w.dtype and to_numpy(w.grad).tolist() == [6.0, 6.0]


def test_writing_a_gradient_into_a_view_is_refused_before_anything_changes():
    w = to_yoke(np.ones(3), requires_grad=True)
    base = to_yoke(np.zeros((2, 3)))
    row = yoke.slice(base, 0, 0, 1)
    for write in (lambda: row.copy_(w), lambda: row.add_(w)):
        with pytest.raises(yoke.UnsupportedError, match=r"(copy_|add_): 'x' is a view"):
            write()
        assert not to_numpy(base).any(), "a refused call changes nothing"
    with yoke.no_grad():
        row.copy_(w)
    assert to_numpy(base)[0].tolist() == [1.0] * 3


def test_the_remedies_that_messages_name_exist():
    base = to_yoke(np.zeros((2, 3)))
    with pytest.raises(yoke.UnsupportedError) as raised:
        yoke.slice(base, 0, 0, 1).copy_(to_yoke(np.ones(3), requires_grad=True))
    for word in ("cat", "where", "no_grad", "clone"):
        if f"{word}(" in str(raised.value):
            assert hasattr(yoke, word), f"the message tells to use {word}(), which Yoke does not have"
