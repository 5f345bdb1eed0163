"""Ops that change a tensor: refused calls, overlapping memory, gradients, and failures without changes."""
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
    column.add_(yoke.slice(column, 1, 0, 1))  # its first column, broadcast
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
    for op, message in ((yoke.copy_, r"copy_: argument 'src' has shape \[2\].*\[2, 3\]"),
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
        with pytest.raises(yoke.TypeError, match="add_: the result has dtype float.*int64; use add$"):
            x.add_(y)
        assert to_numpy(x).tolist() == [0, 1, 2]


def test_a_float_result_does_not_go_into_an_integer_tensor_nor_numbers_into_bools():
    x = to_yoke(np.arange(1, 4))
    for write, name in ((lambda: x.div_(2), "div_"), (lambda: x.exp_(), "exp_"), (lambda: x.mul_(0.5), "mul_"),
                        (lambda: x.clamp_(0.5), "clamp_"), (lambda: x.pow_(0.5), "pow_")):
        with pytest.raises(yoke.TypeError, match=rf"{name}: the result has dtype float32.*int64; use {name[:-1]}$"):
            write()
    mask = to_yoke(np.array([True, False]))
    with pytest.raises(yoke.TypeError, match="add_: the result has dtype int64.*bool; use add$"):
        mask.add_(2)
    assert x.tolist() == [1, 2, 3] and mask.tolist() == [True, False]


def test_an_operand_of_a_wider_dtype_is_computed_with_and_rounded_once_at_the_end():
    x = yoke.ones(2, dtype=yoke.float16)
    x.add_(yoke.full(2, 2.0**-11 + 2.0**-20, dtype=yoke.float32))  # above the middle between two halves
    assert x.dtype is yoke.float16 and x.tolist() == [1 + 2.0**-10] * 2
    small = yoke.full(2, 200, dtype=yoke.uint8)
    small.sub_(yoke.full(2, -100, dtype=yoke.int8))
    assert small.dtype is yoke.uint8 and small.tolist() == [44, 44], "integers wrap"


def test_functions_in_place_work_on_any_strides_and_touch_nothing_else():
    base = to_yoke(np.arange(24.0).reshape(4, 6))
    want = np.arange(24.0).reshape(4, 6)
    part = yoke.slice(yoke.slice(yoke.transpose(base, 0, 1), 0, 5, 0, -2), 1, 1, 3)
    assert part.sqrt_().clamp_(2, 3.5).mul_(part) is part
    inner = np.clip(np.sqrt(want[1:3, [5, 3, 1]]), 2, 3.5)
    want[1:3, [5, 3, 1]] = inner * inner
    np.testing.assert_allclose(to_numpy(base), want, rtol=1e-15)


def test_a_write_steps_the_version_of_the_storage_once():
    x = to_yoke(np.ones(3))
    y = x * 2
    for write in (lambda: x.add_(1), lambda: x.mul_(x), lambda: x.exp_(), lambda: x.add_(yoke.ones(3, dtype=yoke.float32))):
        w = to_yoke(np.ones(3), requires_grad=True)
        z = w * x
        write()
        with pytest.raises(yoke.StateError, match="backward of mul needs 'y' as it was.*version [0-9]+, saved at"):
            z.sum().backward()
    assert y.tolist() == [2, 2, 2]


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


def test_operators_in_place_have_the_gradient_of_the_op():
    x = to_yoke(np.array([1.0, 2.0]), requires_grad=True)
    w = to_yoke(np.array([3.0, 4.0]), requires_grad=True)
    y = x * 1
    y *= w
    y -= x
    y /= w
    y **= 2
    assert y.tolist() == pytest.approx([(2 / 3) ** 2, (6 / 4) ** 2])
    y.sum().backward()
    # y = (x - x / w)^2
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(to_numpy(x.grad), 2 * (a - a / b) * (1 - 1 / b), rtol=1e-14)
    np.testing.assert_allclose(to_numpy(w.grad), 2 * (a - a / b) * a / b**2, rtol=1e-14)


def test_a_tensor_may_change_itself_by_itself():
    x = to_yoke(np.array([3.0, -2.0]), requires_grad=True)
    y = x * 1
    y.mul_(y)
    y.mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [4 * 27.0, 4 * -8.0]
    z = x.detach().requires_grad_(True)
    u = z * 1
    u.add_(yoke.slice(u, 0, None, None, -1))
    (u * u).sum().backward()
    assert u.tolist() == [1, 1] and z.grad.tolist() == [4, 4]


def test_functions_in_place_may_follow_each_other():
    x = to_yoke(np.array([0.5, 1.5]), requires_grad=True)
    y = (x * 1).exp_().sqrt_().sigmoid_().neg_().abs_()
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    s = 1 / (1 + np.exp(-np.exp(np.array([0.25, 0.75]))))
    np.testing.assert_allclose(to_numpy(x.grad), s * (1 - s) * np.exp([0.25, 0.75]) / 2, rtol=1e-13)


def test_a_result_that_was_kept_is_missed_once_it_has_changed_and_an_argument_is_not():
    x = to_yoke(np.array([0.5, 1.5]), requires_grad=True)
    z = yoke.exp(x)  # keeps its result
    z.relu_()
    with pytest.raises(yoke.StateError, match="backward of exp needs 'its result' as it was, but relu_ has changed it"):
        z.sum().backward()
    w = x + 1  # keeps no tensor
    w.relu_()
    w.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_an_op_in_place_on_a_view_is_recorded_through_its_base():
    x = to_yoke(np.ones((2, 3)), requires_grad=True)
    y = x * 1
    row = y[0]
    assert row.mul_(2) is row and row.exp_() is row
    np.testing.assert_allclose(to_numpy(y), [[np.exp(2)] * 3, [1.0] * 3], rtol=1e-15)
    y.sum().backward()
    np.testing.assert_allclose(to_numpy(x.grad), [[2 * np.exp(2)] * 3, [1.0] * 3], rtol=1e-15)
    with yoke.no_grad():
        row.mul_(0)
    assert to_numpy(y)[0].tolist() == [0.0] * 3


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


def test_writing_a_gradient_into_a_view_from_no_grad_is_refused_before_anything_changes():
    w = to_yoke(np.ones(3), requires_grad=True)
    base = to_yoke(np.zeros((2, 3)))
    with yoke.no_grad():
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
    with yoke.no_grad():
        row = yoke.slice(base, 0, 0, 1)
    with pytest.raises(yoke.UnsupportedError) as raised:
        row.copy_(to_yoke(np.ones(3), requires_grad=True))
    for word in ("cat", "where", "no_grad", "clone"):
        if f"{word}(" in str(raised.value):
            assert hasattr(yoke, word), f"the message tells to use {word}(), which Yoke does not have"
