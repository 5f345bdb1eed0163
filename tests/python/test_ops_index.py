"""gather, scatter_add, masks, padding and similar ops: refused calls, and cases beyond the tables of samples."""
import numpy as np
import pytest

import yoke
from op_table import to_numpy

X = yoke.tensor(np.arange(12.0).reshape(3, 4))


def index(*values, dtype=np.int64):
    return yoke.tensor(np.array(values, dtype))


REFUSED = {
    "gather out of range": (lambda: X.gather(1, index([0, 1], [2, 4])), yoke.IndexError,
                            r"gather: index\[1, 1\] is 4; along an axis of length 4 use 0 to 3"),
    "gather negative": (lambda: X.gather(0, index([0, -1])), yoke.IndexError, r"gather: index\[0, 1\] is -1; .* use 0 to 2"),
    "gather from nothing": (lambda: yoke.zeros((0, 2)).gather(0, index([0, 0])), yoke.IndexError, "the axis is empty"),
    "gather axes": (lambda: X.gather(0, index(0)), yoke.ValueError, r"'index' has shape \[1\] and 'x' \[3, 4\]; both need the same number of axes"),
    "gather longer": (lambda: X.gather(0, index([0] * 5)), yoke.ValueError, r"longer along any axis, except axis 0"),
    "gather dtype": (lambda: X.gather(0, yoke.tensor([[0.0]])), yoke.TypeError, "gather: argument 'index' is float32; it takes int64 or int32"),
    "gather axis": (lambda: X.gather(2, index([0])), yoke.IndexError, "gather.*axis 2"),
    "scatter out of range": (lambda: X.scatter_add(0, index([0, 3]), X), yoke.IndexError,
                             r"scatter_add: index\[0, 1\] is 3; along an axis of length 3 use 0 to 2"),
    "scatter rows out of range": (lambda: X.scatter_add(0, index([0], [3]).expand((2, 4)), X), yoke.IndexError,
                                  r"scatter_add: index\[1, 0\] is 3; along an axis of length 3 use 0 to 2"),
    "scatter short": (lambda: X.scatter_add(0, index([0, 0, 0]), yoke.zeros((1, 2), yoke.float64)), yoke.ValueError,
                      r"'index' has shape \[1, 3\] and 'src' \[1, 2\]"),
    "scatter dtypes": (lambda: X.scatter_add(0, index([0]), yoke.zeros((1, 1))), yoke.TypeError,
                       "'x' is float64 and 'src' is float32; cast one of them first"),
    "index_select out of range": (lambda: X.index_select(0, index(0, 3)), yoke.IndexError,
                                  r"index_select: index\[1\] is 3; along an axis of length 3 use 0 to 2"),
    "index_select negative": (lambda: X.index_select(0, index(-1)), yoke.IndexError, r"index\[0\] is -1"),
    "mask dtype": (lambda: X.masked_fill(index([1]), 0), yoke.TypeError, "masked_fill: argument 'mask' is int64; it takes bool"),
    "mask shape": (lambda: X.masked_fill(yoke.tensor([True, False]), 0), yoke.ValueError,
                   r"masked_fill: argument 'mask' has shape \[2\]; it must broadcast to shape \[3, 4\]"),
    "select dtype": (lambda: X.masked_select(X), yoke.TypeError, "masked_select: argument 'mask' is float64"),
    "select shape": (lambda: X.masked_select(yoke.tensor([True, False])), yoke.ValueError, r"masked_select: .*\[3, 4\].*\[2\]"),
    "pad odd": (lambda: X.pad([1]), yoke.ValueError, r"pad: argument 'padding' is \[1\]; for shape \[3, 4\] it must be up to 2 pairs"),
    "pad many": (lambda: X.pad([1] * 6), yoke.ValueError, "up to 2 pairs"),
    "pad mode": (lambda: X.pad([1, 1], "mirror"), yoke.ValueError, 'pad: argument \'mode\' is "mirror"; it must be "constant", "reflect"'),
    "pad reflect": (lambda: X.pad([4, 0], "reflect"), yoke.ValueError, r"4 elements cannot be taken from axis 1 .* at most 3"),
    "pad circular": (lambda: X.pad([0, 5], "circular"), yoke.ValueError, r"5 elements cannot be taken from axis 1 .* at most 4"),
    "pad replicate": (lambda: yoke.zeros((0,)).pad([0, 1], "replicate"), yoke.ValueError, "at most 0"),
    "pad away": (lambda: X.pad([-3, -2]), yoke.ValueError, r"padding \(-3, -2\) removes more elements than axis 1"),
    "flip twice": (lambda: X.flip([0, 0]), yoke.ValueError, "flip"),
    "flip axis": (lambda: X.flip([2]), yoke.IndexError, "flip.*axis 2"),
    "roll pairs": (lambda: X.roll([1, 2], [0]), yoke.ValueError, r"'shifts' is \[1, 2\] and 'axes' \[0\]; both must have the same length"),
    "roll flat": (lambda: X.roll([1, 2]), yoke.ValueError, "without 'axes' it must be one number"),
    "tile": (lambda: X.tile([2, -1]), yoke.ValueError, r"tile: argument 'reps' is \[2, -1\]"),
    "tril": (lambda: yoke.zeros((3,)).tril(), yoke.ValueError, r"tril: argument 'x' has shape \[3\]; a triangle needs two axes"),
    "stack": (lambda: yoke.stack([X, X[0]]), yoke.ValueError, r"stack: tensor 1 has shape \[4\] and tensor 0 \[3, 4\]"),
    "stack nothing": (lambda: yoke.stack([]), yoke.ValueError, "'tensors' is an empty list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_what_would(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
        yoke.synchronize()  # a device reports wrong indices when the script waits


def test_a_refused_scatter_changes_nothing_and_a_device_leaves_out_what_is_wrong():
    x = yoke.zeros((3, 4))
    with pytest.raises(yoke.IndexError):
        x.scatter_add_(0, index([0, 1, 9]), yoke.ones((1, 3)))
        yoke.synchronize()
    right = 1.0 if x.device.kind == "cuda" else 0.0
    assert x.tolist() == [[right, 0, 0, 0], [0, right, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("step_of_x, step_of_src", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("shape", [(5, 8), (5, 3, 8), (5, 2, 6)])
def test_rows_that_lie_apart_are_added_like_dense_ones(shape, step_of_x, step_of_src):
    random = np.random.default_rng(7)
    x, src = (random.integers(-9, 9, (*shape[:-1], step * shape[-1] + 4)).astype("float32") for step in (step_of_x, step_of_src))
    of_x, of_src = ((..., slice(0, step * shape[-1], step)) for step in (step_of_x, step_of_src))
    rows = np.array([4, 0, 4, 1, 0])
    into = yoke.tensor(x)
    into[of_x].scatter_add_(0, yoke.tensor(rows.reshape(-1, *[1] * (len(shape) - 1))).expand(shape), yoke.tensor(src)[of_src])
    np.add.at(x[of_x], rows, src[of_src])
    np.testing.assert_array_equal(to_numpy(into), x)


def test_a_tensor_may_be_scattered_into_itself():
    x = yoke.tensor(np.array([1.0, 2.0, 4.0]))
    assert x.scatter_add_(0, index(1, 1, 0), x).tolist() == [5.0, 5.0, 4.0]


@pytest.mark.parametrize("name, value", [("float16", 1.0), ("bfloat16", 1.0), ("float32", 1.0)])
def test_sums_into_one_place_are_kept_in_float32(name, value):
    dtype = getattr(yoke, name)
    src = yoke.full((3000,), value, dtype)
    got = yoke.zeros((2,), dtype).scatter_add(0, yoke.zeros((3000,), yoke.int64), src)
    want = to_numpy(yoke.tensor([3000.0, 0.0], dtype=dtype))
    np.testing.assert_array_equal(to_numpy(got), want)


@pytest.mark.parametrize("shape, axis, lines", [((50, 7), 0, 4000), ((7, 50), 1, 4000), ((90_000,), 0, 300_000)])
def test_scatter_add_has_the_same_bits_with_any_number_of_threads(shape, axis, lines):
    rng = np.random.default_rng(5)
    wide = list(shape)
    wide[axis] = lines
    places, src = rng.integers(0, shape[axis], wide), rng.standard_normal(wide).astype(np.float32)
    want = np.zeros(shape, np.float32)
    np.add.at(want, (places, np.arange(7)) if axis == 0 and len(shape) == 2 else (np.arange(7)[:, None], places) if axis else places, src)
    before, seen = yoke.get_num_threads(), set()
    try:
        for threads in (1, 2, 3, 7):
            yoke.set_num_threads(threads)
            got = yoke.zeros(shape).scatter_add(axis, yoke.tensor(places), yoke.tensor(src))
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)
            seen.add(got.numpy().tobytes())
    finally:
        yoke.set_num_threads(before)
    assert len(seen) == 1


def test_nan_is_not_zero_and_minus_zero_is():
    x = yoke.tensor([float("nan"), -0.0, 0.0, float("inf"), 1e-45])
    assert x.nonzero().tolist() == [[0], [3], [4]]


def test_copies_share_no_memory_even_where_nothing_moves():
    x = yoke.tensor(np.arange(6.0).reshape(2, 3))
    for copy in (x.flip([]), x.tile([1, 1]), x.tile([]), x.roll(0), x.pad([0, 0]), x.pad([-1, 0]), yoke.tensor(1.0).tile([])):
        assert not yoke.shares_memory(copy, x)
    assert not yoke.shares_memory(x[0:1, 0:1].tile([3, 1]), x)


def test_the_gradient_of_a_longer_src_is_zero_beyond_the_index():
    src = yoke.tensor(np.ones((3, 4)), requires_grad=True)
    yoke.zeros((2, 4), yoke.float64).scatter_add(0, index([0, 1]), src).sum().backward()
    want = np.zeros((3, 4))
    want[0, :2] = 1
    np.testing.assert_array_equal(src.grad.numpy(), want)


def test_a_diagonal_far_out_is_a_whole_triangle_or_none():
    x = yoke.ones((3, 3))
    assert x.tril(2**62).sum().item() == 9 and x.tril(-(2**62)).sum().item() == 0
    assert x.triu(2**62).sum().item() == 0 and x.triu(-(2**62)).sum().item() == 9


@pytest.mark.parametrize("name, call", [("masked_fill", lambda x: yoke.masked_fill(x, x > 0, 300)),
                                        ("masked_fill_", lambda x: x.masked_fill_(x > 0, 300)),
                                        ("pad", lambda x: yoke.pad(x, (1, 1), value=300))])
def test_a_value_that_the_dtype_does_not_hold_is_refused(name, call):
    with pytest.raises(yoke.ValueError, match=rf"{name}: .*'value'.*300.*uint8"):
        call(yoke.tensor([1, 2], dtype="uint8"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_a_float_that_fills_integers_is_cut(dtype):
    x, mask = yoke.tensor([1, 2, 3], dtype=dtype), yoke.tensor([True, False, True])
    assert x.masked_fill(mask, 7.9).tolist() == [7, 2, 7] and yoke.masked_fill(x, mask, 7.0).tolist() == [7, 2, 7]
    assert x.masked_fill_(mask, 100.5).tolist() == [100, 2, 100]
    if dtype != "uint8":
        assert x.masked_fill(mask, -2.9).tolist() == [-2, 2, -2]
