"""split, chunk and unbind: lists of views, from Python and from C."""
import ctypes

import numpy as np
import pytest

import yoke


def arrays(parts):
    assert type(parts) is tuple
    return [p.detach().numpy() for p in parts]


def assert_parts(parts, wanted):
    for got, want in zip(arrays(parts), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


X = np.arange(42.0).reshape(7, 6)


def test_one_size_cuts_parts_of_that_size_and_the_last_may_be_smaller():
    assert_parts(yoke.tensor(X).split(3), [X[:3], X[3:6], X[6:]])
    assert_parts(yoke.split(yoke.tensor(X), 2, axis=-1), [X[:, :2], X[:, 2:4], X[:, 4:]])
    assert_parts(yoke.tensor(X).split(100), [X])


@pytest.mark.parametrize("cut", [lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.chunk(1 << 30)])
def test_more_parts_than_a_list_can_hold_are_refused_before_one_is_made(cut):
    with pytest.raises(yoke.ValueError, match="there would be .* results; a list has at most 16777216"):
        cut(yoke.ones(1).expand((1 << 40,)))


def test_several_sizes_sum_to_the_axis():
    assert_parts(yoke.tensor(X).split([4, 0, 3]), [X[:4], X[4:4], X[4:]])
    with pytest.raises(yoke.ValueError, match=r"split: argument 'size' is \[4, 2\].* axis 0 of shape \[7, 6\]; several sizes must sum"):
        yoke.tensor(X).split([4, 2])
    with pytest.raises(yoke.ValueError, match=r"split: argument 'size' is \[8, -1\]"):
        yoke.tensor(X).split([8, -1])


def test_a_size_of_nothing_is_refused_except_for_an_empty_axis():
    with pytest.raises(yoke.ValueError, match="single size must be 1 or more"):
        yoke.tensor(X).split(0)
    assert_parts(yoke.zeros((0, 2)).split(0), [np.zeros((0, 2))])
    assert_parts(yoke.zeros((0, 2)).split(3), [np.zeros((0, 2))])


def test_chunks_are_of_one_size_so_that_there_may_be_fewer():
    assert_parts(yoke.tensor(X).chunk(3), [X[:3], X[3:6], X[6:]])
    assert_parts(yoke.tensor(X).chunk(5), [X[:2], X[2:4], X[4:6], X[6:]])
    assert_parts(yoke.zeros((0,)).chunk(4), [np.zeros(0)])
    with pytest.raises(yoke.ValueError, match="chunk: argument 'chunks' is 0"):
        yoke.tensor(X).chunk(0)


def test_unbind_gives_more_parts_than_there_is_room_for_at_first():
    x = np.arange(200.0).reshape(100, 2)
    assert_parts(yoke.tensor(x).unbind(), list(x))
    assert_parts(yoke.tensor(x).unbind(-1), [x[:, 0], x[:, 1]])
    assert yoke.zeros((0, 3)).unbind() == ()


def test_a_tensor_without_axes_has_no_parts():
    for function in (lambda x: x.split(1), lambda x: x.chunk(1), lambda x: x.unbind()):
        with pytest.raises(yoke.ValueError, match="'x' has no axes"):
            function(yoke.tensor(1.0))


def test_parts_share_memory_and_gradients_flow_through_them():
    x = yoke.tensor(X, requires_grad=True)
    first, second, third = x.split([1, 2, 4])
    assert yoke.shares_memory(first, x)
    (second * 3).sum().backward()
    want = np.zeros_like(X)
    want[1:3] = 3
    np.testing.assert_array_equal(x.grad.numpy(), want)
    assert third.requires_grad


def test_too_little_room_in_c_says_how_much_is_needed_and_writes_nothing():
    library = ctypes.CDLL("libyoke.so.0")
    size = (ctypes.c_int64 * 1)(2)
    raw = ctypes.c_void_p()
    shape = (ctypes.c_int64 * 1)(7)
    assert library.yoke_zeros(shape, ctypes.c_int64(1), 0, None, ctypes.byref(raw)) == 0
    outs, count = (ctypes.c_void_p * 4)(1, 1, 1, 1), ctypes.c_int64(-1)
    call = (raw, size, ctypes.c_int64(1), ctypes.c_int64(0), outs)
    assert library.yoke_split(*call, ctypes.c_int64(3), ctypes.byref(count)) != 0
    assert count.value == 4 and list(outs) == [1, 1, 1, 1]
    assert library.yoke_split(*call, ctypes.c_int64(4), ctypes.byref(count)) == 0
    assert count.value == 4 and all(out not in (None, 1) for out in outs)
    for out in [*outs, raw.value]:
        library.yoke_tensor_release(ctypes.c_void_p(out))
