"""Writing into parts of recorded tensors: gradients through views and their bases, beside finite differences and beside PyTorch."""
import contextlib

import numpy as np
import pytest

import yoke
from op_table import LAYOUTS, to_numpy, to_yoke

PROGRAMS = {}
STEP = 1e-6


def program(function):
    """Registers a function (x [3, 4], w [4], lib) -> scalar, as both libraries write it."""
    PROGRAMS[function.__name__] = function
    return function


def weighed(z, lib):
    """A sum in which each element of z has another gradient."""
    return (z * z * (lib.arange(z.numel if isinstance(z.numel, int) else z.numel()).reshape(z.shape) + 1.0)).sum()


@program
def a_number_into_a_row(x, w, lib):
    z = x * 2
    z[0] = 5
    return weighed(z, lib)


@program
def added_to_a_column(x, w, lib):
    z = x * 2
    z[:, 0] += 1
    z[:, 1] += w[:3]
    return weighed(z, lib)


@program
def times_in_place(x, w, lib):
    z = x * 2
    z[1] *= w
    z[2].mul_(w).exp_()
    return weighed(z, lib)


@program
def a_view_of_a_view_of_other_order(x, w, lib):
    z = (x * 2).transpose(0, 1)
    z[1:][::2].sin_()
    z.transpose(0, 1)[0, 1:3] = w[1:3]
    return weighed(z, lib)


@program
def rows_of_a_buffer(x, w, lib):
    z = lib.zeros(3, 4, dtype=x.dtype)
    for i in range(3):
        z[i] = w * x[i] * (i + 1)
    return weighed(z, lib)


@program
def a_view_taken_before_another_write(x, w, lib):
    z = x * 2
    row, column, all_of_it = z[0], z[:, 1], z.reshape(-1)
    z[0] = w
    column.mul_(3)
    row.add_(x[2])
    return weighed(z, lib) + (row * w).sum() + all_of_it.sin().sum() + (column * column).sum()


@program
def a_view_taken_before_a_change_of_the_base(x, w, lib):
    z = x * 2
    row = z[1]
    z.add_(w)
    row.mul_(w)
    return weighed(z, lib) + row.sin().sum()


@program
def a_buffers_view_taken_before_the_buffer_got_a_gradient(x, w, lib):
    z = lib.zeros(3, 4, dtype=x.dtype)
    first, second = z[0], z[1]
    first.copy_(w)
    second += 1
    second *= w
    return weighed(z, lib) + second.exp().sum()


@program
def an_expanded_view_read_after_a_write(x, w, lib):
    z = w * 2
    wide = z.expand(3, 4)
    z[1:3] *= x[0, 1:3]
    return (wide * x).sum() + weighed(z, lib)


@program
def windows_read_after_a_write(x, w, lib):
    z = w * 2
    windows = z.unfold(0, 3, 1)
    z[1] = x[0, 0]
    return weighed(windows * windows, lib)


@program
def by_indices_in_a_part(x, w, lib):
    z = x * 2
    z[1:, [0, 2]] = w[:2]
    z[0, [3, 1]] = w[2:]
    z[:, 3][z[:, 3].detach() > 100] = 0
    return weighed(z, lib)


@program
def by_a_mask_in_a_part(x, w, lib):
    z = x * 2
    z[0].masked_fill_(lib.tensor([True, False, True, False]), 7)
    z[1:][lib.tensor([[True, False, False, True], [False, True, False, True]])] = w
    return weighed(z, lib)


@program
def by_scatter_and_index_add_in_a_part(x, w, lib):
    z = x * 2
    z[0].scatter_(0, lib.tensor([2, 0]), w[:2])
    z[1:].index_add_(1, lib.tensor([1, 1]), x[:2, :2])
    z[2].index_fill_(0, lib.tensor([3]), 4)
    return weighed(z, lib)


@program
def a_diagonal(x, w, lib):
    z = x * 2
    z.diagonal().copy_(w[:3])
    z.diagonal(1).mul_(2)
    return weighed(z, lib)


@program
def parts_of_a_split(x, w, lib):
    z = x.clone()
    a, b = z.narrow(0, 0, 1), z.narrow(0, 1, 2)
    a.mul_(w)
    b.mul_(a)
    return weighed(z, lib)


@program
def the_whole_as_a_view(x, w, lib):
    z = x * 2
    z[...] = w * x
    z.reshape(-1)[:] += 1
    return weighed(z, lib)


@program
def one_row_from_the_row_before(x, w, lib):
    z = lib.zeros(3, 4, dtype=x.dtype)
    z[0] = w
    for i in range(1, 3):
        z[i] = z[i - 1].clone() * x[i] + 1
    return weighed(z, lib)


@program
def a_view_with_a_history_of_its_own(x, w, lib):
    z = x * 2
    row = z[0]
    row += w
    rest = row[1:]
    rest *= 2
    return (row * row).sum() + weighed(z, lib)


@program
def a_row_filled_before_it_was_recorded(x, w, lib):
    z = lib.ones(3, 4, dtype=x.dtype)
    z[0] = 3
    z[1] = w
    z[1] = 2
    z[2, 1:] = x[0, 1:]
    return weighed(z, lib)


X = np.array([[0.5, -1.0, 1.5, 0.25], [2.0, 0.75, -0.5, 1.25], [-1.5, 1.0, 0.125, -0.75]])
W = np.array([0.5, -1.25, 2.0, 0.75])


def leaves():
    return to_yoke(X, requires_grad=True), to_yoke(W, requires_grad=True)


def gradients(name, scope=contextlib.nullcontext, change=lambda x: x):
    x, w = leaves()
    with scope():
        out = PROGRAMS[name](change(x), change(w), yoke)
    out.backward()
    return [np.zeros(leaf.shape) if leaf.grad is None else to_numpy(leaf.grad) for leaf in (x, w)]


def differences(name):
    found = []
    for which in range(2):
        inputs = [X.copy(), W.copy()]
        slope = np.zeros(inputs[which].shape)
        for at in np.ndindex(*slope.shape):
            ends = []
            for step in (STEP, -STEP):
                inputs[which][at] += step
                with yoke.no_grad():
                    ends.append(PROGRAMS[name](*(yoke.tensor(a) for a in inputs), yoke).item())
                inputs[which][at] -= step
            slope[at] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(slope)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_finite_differences(name):
    for got, want in zip(gradients(name), differences(name), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


# PyTorch refuses two of the programs. There, a view from before its base got a gradient is a leaf, and a saved part of
# a tensor is missed after a change of another part.
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {
    "a_buffers_view_taken_before_the_buffer_got_a_gradient", "parts_of_a_split"}))
def test_the_gradient_is_pytorchs(name):
    torch = pytest.importorskip("torch")
    x, w = (torch.tensor(a, requires_grad=True) for a in (X, W))
    PROGRAMS[name](x, w, torch).backward()
    for got, leaf in zip(gradients(name), (x, w), strict=True):
        want = np.zeros(got.shape) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("policy", ["full", None, ["mul"]])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_checkpoint_scope_changes_no_gradient(name, policy):
    def scope():
        return yoke.checkpoint_scope(policy)
    for got, want in zip(gradients(name, scope), gradients(name), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("layout", ["transposed", "strided", "backwards", "offset"])
# Reshape copies a tensor with another order in memory.
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"a_view_taken_before_another_write", "the_whole_as_a_view"}))
def test_the_layout_of_the_inputs_changes_no_gradient(name, layout):
    for got, want in zip(gradients(name, change=LAYOUTS[layout]), gradients(name), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


def test_a_view_knows_that_its_base_has_a_gradient_now():
    w = to_yoke(W, requires_grad=True)
    z = yoke.zeros(3, 4, dtype=yoke.float64)
    first, second = z[0], z[1]
    assert not second.requires_grad and second.is_leaf
    first.copy_(w)
    assert z.requires_grad and not z.is_leaf and second.requires_grad and not second.is_leaf
    second[2].backward()
    assert w.grad.tolist() == [0.0] * 4
    z[0, 1].backward()
    assert w.grad.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_grad_takes_a_view_that_a_write_has_changed():
    x = to_yoke(X, requires_grad=True)
    z = x * 2
    row = z[0]
    z[0, 1:] = 0
    (got,) = yoke.grad([row.sum()], [x])
    assert to_numpy(got).tolist() == [[2, 0, 0, 0], [0] * 4, [0] * 4]
    z[1] = 1
    row.backward(yoke.ones(4, dtype=yoke.float64))
    assert to_numpy(x.grad)[0].tolist() == [2, 0, 0, 0]


def test_integers_and_tensors_without_a_gradient_are_written_as_before():
    n = yoke.zeros(3, 4, dtype=yoke.int64)
    n[0] = to_yoke(W, requires_grad=True)
    assert n[0].tolist() == [0, -1, 2, 0] and not n.requires_grad
    z = yoke.zeros(3, 4)
    z[0] = 5
    assert not z.requires_grad and z[0].tolist() == [5] * 4


def test_a_detached_tensor_has_a_history_of_its_own():
    x = to_yoke(X, requires_grad=True)
    z = x * 2
    with yoke.no_grad():
        z[0] = 1
    free = z.detach()
    free[1] = to_yoke(W, requires_grad=True)
    assert free.requires_grad
    z.sum().backward()
    assert to_numpy(x.grad).tolist() == [[2] * 4] * 3


def test_a_saved_value_that_a_part_has_changed_is_missed():
    x = to_yoke(X, requires_grad=True)
    z = x * 2
    y = z * z
    z[0] = 1
    with pytest.raises(yoke.StateError, match="backward of mul needs 'x' as it was, but fill_ has changed it"):
        y.sum().backward()


def test_views_that_cannot_be_recorded_are_refused_with_the_reason_and_unchanged():
    leaf = to_yoke(X, requires_grad=True)
    for write in (lambda: leaf[0].fill_(1), lambda: leaf[0, 1:].mul_(2), lambda: leaf.reshape(-1).copy_(leaf.detach().reshape(-1))):
        with pytest.raises(yoke.StateError, match="argument 'x' is a view of a leaf that requires grad.*no_grad"):
            write()
    z = leaf * 2
    with yoke.no_grad():
        blind = z[0]
    with pytest.raises(yoke.UnsupportedError, match="mul_: 'x' is a view that was taken under no_grad.*take the view again"):
        blind.mul_(to_yoke(W, requires_grad=True))
    with pytest.raises(yoke.UnsupportedError, match=r"mul_: 'x' is a view of shape \[3, 3, 2\].*twice.*clone"):
        z.unfold(1, 2, 1).mul_(2)
    with pytest.raises(yoke.ValueError, match="mul_: argument 'x' is expanded"):
        z[0:1].expand(3, 4).mul_(2)
    np.testing.assert_array_equal(to_numpy(z), X * 2)
    with yoke.no_grad():
        leaf[0] = 1
        blind.mul_(2)
    assert leaf[0].tolist() == [1] * 4


def test_many_writes_need_no_recursion():
    w = to_yoke(W, requires_grad=True)
    z = yoke.zeros(4, dtype=yoke.float64)
    for i in range(20_000):
        z[i % 4] = w[i % 4] * 2
    z.sum().backward()
    assert w.grad.tolist() == [2.0] * 4
    del z


def test_no_tensor_stays_alive_after_its_views():
    before = yoke.live_tensor_count()
    x = to_yoke(X, requires_grad=True)
    z = x * 2
    z[0] = 1
    row = z[1]
    del z, x
    assert row.tolist() == [4.0, 1.5, -1.0, 2.5]
    del row
    assert yoke.live_tensor_count() == before
