"""The rules of autograd: recorded ops, kept tensors, and the times of gradients and errors."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke


def leaf(*numbers, dtype="float64"):
    return to_yoke(np.array(numbers, dtype), requires_grad=True)


# ---- Accumulation ----------------------------------------------------------------------------------------------------


def test_gradients_add_up_over_calls_until_they_are_taken_away():
    x = leaf(1.0, 2.0)
    yoke.sum(x * 3).backward()
    first = x.grad
    yoke.sum(x * x).backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert first.tolist() == [5.0, 7.0], "gradients gather in the same memory"
    x.grad = None
    assert x.grad is None
    yoke.sum(x * 2).backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_tensor_used_twice_gets_both_gradients():
    x = leaf(3.0)
    yoke.sum(x * x + x).backward()
    assert x.grad.tolist() == [7.0]


def test_a_diamond_sums_before_it_goes_on():
    x = leaf(2.0)
    y = x * 3
    yoke.sum(y * y + y).backward()
    assert x.grad.tolist() == [39.0]


def test_the_same_tensor_on_both_sides_of_every_binary_op():
    for op, slope in ((yoke.add, 2), (yoke.sub, 0), (yoke.mul, 6), (yoke.div, 0)):
        x = leaf(3.0)
        yoke.sum(op(x, x)).backward()
        np.testing.assert_allclose(to_numpy(x.grad), [slope], atol=1e-15)


def test_leaves_that_share_an_upstream_gradient_do_not_share_its_memory():
    x, y, z = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)
    upstream = to_yoke(np.array([1.0, 1.0]))
    (x + y + z).backward(upstream)
    for a, b in ((x.grad, y.grad), (y.grad, z.grad), (x.grad, upstream), (z.grad, upstream)):
        assert not yoke.shares_memory(a, b)
    x.grad.fill_(9)
    assert upstream.tolist() == y.grad.tolist() == [1.0, 1.0]


def test_results_of_grad_do_not_share_memory_either():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    upstream = to_yoke(np.array([1.0, 1.0]))
    out = x + y
    dx, dy, dout = yoke.grad(out, [x, y, out], upstream)
    for a, b in ((dx, dy), (dx, upstream), (dout, upstream), (dout, dx)):
        assert not yoke.shares_memory(a, b)


# ---- Freeing and retaining -------------------------------------------------------------------------------------------


def test_backward_twice_is_an_error_that_says_how_to_go_twice():
    x = leaf(1.0, 2.0)
    y = yoke.sum(yoke.exp(x))
    y.backward()
    with pytest.raises(yoke.StateError, match=r"backward: the graph through '\w+' was freed by an earlier backward.*retain_graph"):
        y.backward()
    np.testing.assert_allclose(to_numpy(x.grad), np.exp([1, 2]))


def test_a_retained_graph_can_be_walked_again():
    x = leaf(1.0, 2.0)
    y = yoke.sum(x * x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(yoke.StateError):
        y.backward()


def test_two_losses_over_one_part_need_the_first_to_retain_it():
    x = leaf(2.0)
    shared = x * x
    first, second = yoke.sum(shared * 2), yoke.sum(shared * 3)
    first.backward()
    with pytest.raises(yoke.StateError, match="freed by an earlier backward"):
        second.backward()


# ---- Errors ----------------------------------------------------------------------------------------------------------


def test_a_result_of_many_elements_needs_a_gradient_to_start_from():
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(yoke.ValueError, match=r"gradient.*\[3\].*3 elements"):
        (x * 2).backward()
    (x * 2).backward(to_yoke(np.array([1.0, 0.0, -1.0])))
    assert x.grad.tolist() == [2.0, 0.0, -2.0]


@pytest.mark.parametrize("gradient, error", [(np.ones(2), yoke.ValueError), (np.ones((3, 1)), yoke.ValueError),
                                             (np.ones(3, np.float32), yoke.TypeError), (np.ones(3, np.int64), yoke.TypeError)])
def test_a_gradient_of_another_shape_or_dtype_is_refused_with_both(gradient, error):
    y = leaf(1.0, 2.0, 3.0) * 2
    with pytest.raises(error, match=r"gradient.*\[3\] float64"):
        y.backward(to_yoke(gradient))


def test_backward_of_what_was_not_recorded_is_an_error():
    with pytest.raises(yoke.StateError, match="backward.*does not require grad"):
        yoke.sum(to_yoke(np.ones(3))).backward()
    x = leaf(1.0)
    with yoke.no_grad():
        y = yoke.sum(x * 2)
    with pytest.raises(yoke.StateError, match="does not require grad"):
        y.backward()


@pytest.mark.parametrize("dtype", [yoke.int64, yoke.int32, yoke.int8, yoke.uint8, yoke.bool])
def test_only_floating_tensors_can_require_grad(dtype):
    with pytest.raises(yoke.TypeError, match="requires_grad_.*cast it to a floating dtype"):
        yoke.zeros(3, dtype=dtype).requires_grad_()


def test_a_saved_tensor_that_was_changed_is_named_with_its_op_and_its_writer():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(yoke.StateError, match=r"backward of mul needs '[xy]' as it was.*add_ has changed it.*clone\(\)"):
        yoke.sum(z).backward()


def test_a_saved_result_that_was_changed_is_named_too():
    x = leaf(1.0, 2.0)
    y = yoke.exp(x)
    z = y + 1
    with yoke.no_grad():
        y.fill_(0)
    with pytest.raises(yoke.StateError, match="backward of exp needs 'its result' as it was.*fill_"):
        z.backward(to_yoke(np.ones(2)))


def test_changing_what_no_gradient_reads_is_allowed():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y + 1  # add reads neither
    y.add_(1)
    yoke.sum(z).backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_grad_of_an_op_result_is_an_error_and_of_a_plain_tensor_none():
    x = leaf(1.0)
    with pytest.raises(yoke.StateError, match="was made by mul.*only leaves hold a gradient"):
        (x * 2).grad
    assert yoke.zeros(3).grad is None and x.grad is None


def test_a_failed_backward_leaves_what_was_gathered_as_it_was():
    x = leaf(1.0, 2.0)
    yoke.sum(x * 2).backward()
    with pytest.raises(yoke.ValueError):
        (x * 3).backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ---- Modes -----------------------------------------------------------------------------------------------------------


def test_nothing_is_recorded_without_grad_mode():
    x = leaf(1.0, 2.0)
    with yoke.no_grad():
        y = yoke.exp(x * 2)
        assert not y.requires_grad and y.is_leaf
        with yoke.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_grad_mode_belongs_to_its_thread():
    x, seen = leaf(1.0), []
    with yoke.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_shares_memory_and_stops_the_gradient():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y.detach()
    assert yoke.shares_memory(y, z) and not z.requires_grad and z.is_leaf
    yoke.sum(y * z).backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_changing_a_detached_alias_of_a_saved_tensor_is_seen():
    x = leaf(1.0, 2.0)
    y = yoke.exp(x)
    y.detach().fill_(0)
    with pytest.raises(yoke.StateError, match="exp.*fill_"):
        y.backward(to_yoke(np.ones(2)))


# ---- grad() ----------------------------------------------------------------------------------------------------------


def test_grad_returns_gradients_of_leaves_and_of_results_and_touches_no_leaf():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = yoke.sum(y * y)
    dx, dy = yoke.grad(z, [x, y], retain_graph=True)
    assert dx.tolist() == [18.0, 36.0] and dy.tolist() == [6.0, 12.0]
    assert x.grad is None
    (again,) = yoke.grad(z, [z])
    assert again.item() == 1.0


def test_grad_sums_over_outputs_and_weighs_them():
    x = leaf(1.0, 2.0)
    a, b = yoke.sum(x), x * x
    (dx,) = yoke.grad([a, b], [x], [None, to_yoke(np.array([1.0, 10.0]))])
    assert dx.tolist() == [3.0, 41.0]


def test_grad_of_an_input_that_takes_no_part_is_an_error_naming_it():
    x, other = leaf(1.0), leaf(2.0)
    with pytest.raises(yoke.ValueError, match=r"grad.*(input 1|inputs\[1\])"):
        yoke.grad(yoke.sum(x * 2), [x, other])
    with pytest.raises(yoke.StateError, match="grad: input 0.*does not require grad"):
        yoke.grad(yoke.sum(x * 2), [to_yoke(np.ones(1))])


def test_grad_runs_only_the_part_between_outputs_and_inputs():
    x, y = leaf(1.0), leaf(2.0)
    side = yoke.exp(y)
    middle = x * 3
    out = yoke.sum(middle * side)
    side.detach().fill_(0)  # would fail the backward of exp and of mul towards middle
    with pytest.raises(yoke.StateError, match="mul"):
        yoke.grad(out, [middle])
    out = yoke.sum(middle + yoke.exp(y))
    (dmiddle,) = yoke.grad(out, [middle])
    assert dmiddle.tolist() == [1.0] and y.grad is None


def test_grad_up_to_a_result_leaves_the_record_behind_it_for_later():
    x = leaf(1.0, 2.0)
    y = yoke.exp(x)
    (dy,) = yoke.grad(yoke.sum(y * 3), [y])
    y.backward(dy)
    np.testing.assert_allclose(to_numpy(x.grad), 3 * np.exp([1, 2]))


def test_freezing_a_leaf_keeps_its_gradient_and_its_place_in_recorded_graphs():
    x = leaf(1.0, 2.0)
    loss = yoke.sum(x * 3)
    yoke.sum(x * 2).backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [2.0, 2.0] and not (x * 2).requires_grad
    x.requires_grad_(True)
    loss.backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_gradients_of_empty_tensors_add_up_where_one_is_expanded():
    x = yoke.zeros((0, 4)).requires_grad_()
    yoke.sum(yoke.sum(x - x * x, 1) * yoke.zeros((0,))).backward()
    assert x.grad.shape == (0, 4)


def test_one_hot_refuses_negative_indices_where_it_has_to_guess_the_number_of_classes():
    with pytest.raises(yoke.IndexError, match="one_hot: the largest index is -1"):
        yoke.one_hot(yoke.tensor([-1, -3]))


def test_a_bfloat16_scalar_is_rounded_once():
    x = yoke.zeros((1,), dtype=yoke.bfloat16)
    # 1 + 2^-8 lies in the middle of two values; a little more must go up, though float32 does not see it.
    assert (x + (1 + 2.0**-8 + 2.0**-40)).tolist() == [1.0078125]
    assert (x + (1 + 2.0**-8)).tolist() == [1.0]
    assert (x + -(1 + 2.0**-8 + 2.0**-40)).tolist() == [-1.0078125]


# ---- Views -----------------------------------------------------------------------------------------------------------


def test_gradients_flow_through_views_to_their_base():
    x = to_yoke(np.arange(12.0).reshape(3, 4), requires_grad=True)
    part = yoke.slice(yoke.transpose(x, 0, 1), 0, 1, 4, 2)
    part.backward(to_yoke(np.ones((2, 3))))
    np.testing.assert_array_equal(to_numpy(x.grad), [[0, 1, 0, 1]] * 3)


def test_a_view_whose_base_was_changed_takes_the_bases_history():
    x = to_yoke(np.ones((2, 3)), requires_grad=True)
    y = x * 1
    row = yoke.slice(y, 0, 0, 1)
    y.mul_(2)
    (row * row).sum().backward()
    assert to_numpy(x.grad).tolist() == [[8.0] * 3, [0.0] * 3]


def test_a_view_from_no_grad_whose_base_was_changed_is_stale():
    x = to_yoke(np.ones((2, 3)), requires_grad=True)
    y = x * 1
    with yoke.no_grad():
        row = yoke.slice(y, 0, 0, 1)
    y.add_(1)
    with pytest.raises(yoke.StateError, match=r"exp: .*is a view of memory that add_ has changed in place.*create the view again"):
        yoke.exp(row)
    assert yoke.slice(y, 0, 0, 1).tolist() == [[2.0, 2.0, 2.0]]


def test_a_view_taken_before_a_recorded_change_does_not_lose_its_gradient():
    weight, buffer = to_yoke(np.ones((2, 3)), requires_grad=True), to_yoke(np.zeros((2, 3)))
    row = yoke.slice(buffer, 0, 0, 1)
    buffer.copy_(weight)
    yoke.neg(row).sum().backward()
    assert to_numpy(weight.grad).tolist() == [[-1.0] * 3, [0.0] * 3]
    with yoke.no_grad():
        assert yoke.neg(row).tolist() == [[-1.0, -1.0, -1.0]]


def test_a_view_of_a_weight_stays_usable_after_a_change_outside_the_record():
    weight = to_yoke(np.ones((2, 3)), requires_grad=True)
    turned = yoke.transpose(weight, 0, 1)
    with yoke.no_grad():
        weight.add_(1)
    yoke.sum(turned * turned).backward()
    np.testing.assert_array_equal(to_numpy(weight.grad), np.full((2, 3), 4.0))


# ---- Depth and threads -----------------------------------------------------------------------------------------------

CHAIN = """
import yoke
x = yoke.ones((1,), dtype=yoke.float64).requires_grad_()
def chain():
    y = x
    for _ in range(100_000):
        y = y + 1
    return y
y = chain()
y.backward()
assert x.grad.tolist() == [1.0], x.grad
assert yoke.grad(chain(), [x])[0].tolist() == [1.0]
y = chain()
del y          # freed without a backward
z = chain()
x.close()      # the graph holds what it needs
z.close()
assert yoke.live_tensor_count() <= 2
"""


def test_a_chain_of_100000_ops_needs_no_deep_stack():
    # A main thread's stack of 256 KiB holds a few thousand frames of any recursion.
    command = f"ulimit -s 256 && exec {sys.executable} -c \"$CHAIN\""
    done = subprocess.run(["sh", "-c", command], env={**os.environ, "CHAIN": CHAIN}, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_threads_that_go_back_over_one_leaf_add_all_their_gradients():
    x = to_yoke(np.ones(1000), requires_grad=True)

    def work():
        for _ in range(50):
            yoke.sum(x * 2).backward()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(to_numpy(x.grad), np.full(1000, 400.0))
