"""Values with their places along an axis (max, min, median, mode, kthvalue), quantiles, moments with means, cumprod."""
import math

import numpy as np
import pytest

import yoke
from op_table import ALL, FLOATS, dtype_of, to_numpy

NAN, INF = math.nan, math.inf
_rng = np.random.default_rng(8)


def ties(*shape, dtype="float64"):
    return _rng.integers(0, 5, shape).astype("float32" if dtype == "bfloat16" else dtype)


def checked(pair, x, axis):
    """Returns the values of a pair, whose indices name them in x."""
    values, indices = (to_numpy(each) for each in pair)
    np.testing.assert_array_equal(np.squeeze(np.take_along_axis(x, np.expand_dims(indices, axis), axis), axis), values)
    return values, indices


@pytest.mark.parametrize("dtype", ALL)
def test_the_first_of_equal_values_is_named(dtype):
    for shape, axis in (((7, 33), 1), ((33, 7), 0), ((3, 40, 5), 1), ((19, 300), 0)):
        a = ties(*shape, dtype=dtype)
        x = yoke.tensor(a, dtype=dtype_of(dtype))
        order, n = np.sort(a, axis), shape[axis]
        for pair, rank in ((yoke.max(x, axis), n - 1), (yoke.min(x, axis), 0), (yoke.median(x, axis), (n - 1) // 2),
                           (yoke.kthvalue(x, 3, axis), 2), (yoke.kthvalue(x, n, axis), n - 1)):
            values, indices = checked(pair, a, axis)
            np.testing.assert_array_equal(values, np.take(order, rank, axis))
            np.testing.assert_array_equal(indices, np.argmax(a == np.expand_dims(values, axis), axis))


@pytest.mark.parametrize("dtype", ("float64", "float32", "bfloat16", "int64", "int8", "uint8", "bool"))
def test_the_mode_is_the_smallest_of_the_most_frequent_values(dtype):
    a = ties(9, 41, dtype=dtype)
    values, indices = checked(yoke.mode(yoke.tensor(a, dtype=dtype_of(dtype)), 1), a, 1)
    for row, value, index in zip(a, values, indices):
        found, counts = np.unique(row, return_counts=True)
        assert value == found[np.argmax(counts)] and index == np.flatnonzero(row == value)[-1]


def test_nan_wins_but_for_kthvalue_and_mode():
    x = yoke.tensor([[3.0, NAN, 1.0, NAN], [4.0, 2.0, 9.0, 7.0]])
    for function, second in ((yoke.max, (9, 2)), (yoke.min, (2, 1)), (yoke.median, (4, 0))):
        wide = yoke.tile(x.transpose(0, 1), (1, 20))  # rows that lie side by side
        assert function(wide, 0)[1].tolist() == [1, second[1]] * 20
        values, indices = function(x, 1)
        assert math.isnan(values[0].item()) and indices[0].item() == 1
        assert (values[1].item(), indices[1].item()) == second
    assert [t.tolist() for t in yoke.kthvalue(x, 2, 1)] == [[3, 4], [0, 0]]
    assert [t.tolist() for t in yoke.mode(x, 1)] == [[1, 2], [2, 1]]
    assert math.isnan(yoke.quantile(x, 0.5, 1)[0].item()) and yoke.quantile(x, 0.5, 1)[1].item() == 5.5


def test_long_rows_have_the_same_ranks():
    for dtype in ("float32", "int64", "bfloat16"):
        a = to_numpy(yoke.tensor(_rng.normal(0, 1000, 100_001), dtype=yoke.float32).to(dtype=dtype_of(dtype)))
        x = yoke.tensor(a, dtype=dtype_of(dtype))
        for k in (1, 17, 50_001, 100_001):
            value, index = yoke.kthvalue(x, k)
            assert value.item() == np.sort(a)[k - 1] and index.item() == np.argmax(a == value.item())


def test_gradients_go_to_the_places():
    x = yoke.tensor([[1.0, 5.0, 5.0], [7.0, 2.0, 7.0]], requires_grad=True)
    for function, want in ((lambda: yoke.max(x, 1)[0], [[0, 1, 0], [1, 0, 0]]), (lambda: yoke.min(x, 1, True)[0], [[1, 0, 0], [0, 1, 0]]),
                           (lambda: yoke.median(x, 1)[0], [[0, 1, 0], [1, 0, 0]]), (lambda: yoke.mode(x, 1)[0], [[0, 0, 1], [0, 0, 1]])):
        x.grad = None
        function().sum().backward()
        assert x.grad.tolist() == want


@pytest.mark.parametrize("dtype", FLOATS)
def test_quantiles_of_a_vector_stand_on_a_first_axis(dtype):
    a = to_numpy(yoke.tensor(_rng.normal(size=(3, 7, 4)), dtype=yoke.float64).to(dtype=dtype_of(dtype)))
    x, q = yoke.tensor(a, dtype=dtype_of(dtype)), [0.0, 0.25, 0.6, 1.0]
    for axis, keepdim in ((None, False), (1, False), (1, True), (-1, False), (0, True), (None, True)):
        for way in ("linear", "lower", "higher", "midpoint", "nearest"):
            got = yoke.quantile(x, yoke.tensor(q, dtype=yoke.float64), axis, keepdim, interpolation=way)
            want = np.quantile(a.astype(np.float64), q, axis, keepdims=keepdim, method=way)
            assert got.dtype == dtype_of(dtype) and tuple(got.shape) == want.shape
            np.testing.assert_allclose(to_numpy(got), want, rtol=2e-2 if dtype in ("bfloat16", "float16") else 1e-5, atol=1e-5)


def test_moments_come_with_their_means():
    a = _rng.normal(3, 2, (5, 8))
    x = yoke.tensor(a)
    for function, of in ((yoke.var_mean, np.var), (yoke.std_mean, np.std)):
        for named, ddof in (({}, 1), ({"correction": 0}, 0)):
            first, mean = function(x, 1, keepdim=True, **named)
            np.testing.assert_allclose(to_numpy(first), of(a, 1, ddof=ddof, keepdims=True))
            np.testing.assert_allclose(to_numpy(mean), a.mean(1, keepdims=True))
    low, high = yoke.aminmax(x)
    assert (low.item(), high.item()) == (a.min(), a.max())


def test_cumprod_has_a_gradient_through_zeros():
    a = np.array([[2.0, 0.0, 3.0, 0.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0], [1.5, 2.5, -1.0, 0.5, 2.0]])
    for axis in (0, 1):
        x = yoke.tensor(a, requires_grad=True)
        weights = _rng.normal(size=a.shape)
        (yoke.cumprod(x, axis) * yoke.tensor(weights)).sum().backward()
        slopes = np.zeros_like(a)
        for at in np.ndindex(*a.shape):
            step = np.zeros_like(a)
            step[at] = 1e-6
            slopes[at] = np.sum((np.cumprod(a + step, axis) - np.cumprod(a - step, axis)) * weights) / 2e-6
        np.testing.assert_allclose(to_numpy(x.grad), slopes, atol=1e-7)
    assert yoke.cumprod(yoke.tensor([3, 4], dtype=yoke.int8), 0).dtype is yoke.int64
    half = yoke.tensor([200.0, 300.0], dtype=yoke.float16, requires_grad=True)
    out = yoke.cumprod(half, 0, yoke.float32)
    out.sum().backward()
    assert out.tolist() == [200, 60000] and half.grad.tolist() == [301, 200]
    long = _rng.uniform(0.99, 1.01, (3, 70_001))
    np.testing.assert_allclose(to_numpy(yoke.cumprod(yoke.tensor(long), 1)), np.cumprod(long, 1), rtol=1e-10)


@pytest.mark.parametrize("make, kind, told", [
    (lambda x: yoke.kthvalue(x, 0), yoke.ValueError, r"kthvalue: argument 'k' is 0; it must be 1 to 3, the length of axis 1 of shape \[2, 3\]"),
    (lambda x: yoke.kthvalue(x, 4), yoke.ValueError, "kthvalue: argument 'k' is 4; it must be 1 to 3"),
    (lambda x: yoke.median(x, 2), yoke.IndexError, "median: axis 2"),
    (lambda x: yoke.max(yoke.zeros((0, 3)), 0), yoke.ValueError, r"max: axis 0 of shape \[0, 3\] is empty, so it has no largest element"),
    (lambda x: yoke.mode(yoke.zeros((0, 3)), 0), yoke.ValueError, "mode: axis 0 of shape .* is empty"),
    (lambda x: yoke.quantile(x, 1.5), yoke.ValueError, "quantile: argument 'q' is 1.5; it must be 0 to 1"),
    (lambda x: yoke.quantile(x, 0.5, interpolation="cubic"), yoke.ValueError, 'quantile: argument \'interpolation\' is "cubic"; it takes "linear"'),
    (lambda x: yoke.quantile(x, yoke.zeros((2, 2))), yoke.ValueError, r"quantile: argument 'q' has shape \[2, 2\]"),
    (lambda x: yoke.quantile(yoke.tensor([1, 2]), 0.5), yoke.TypeError, "quantile: argument 'x' is int64"),
    (lambda x: yoke.quantile(yoke.zeros(0), 0.5), yoke.ValueError, r"quantile: a tensor of shape \[0\] has no quantile"),
    (lambda x: yoke.var_mean(yoke.tensor([1, 2])), yoke.TypeError, "var_mean: argument 'x' is int64"),
    (lambda x: yoke.cumprod(x, 5), yoke.IndexError, "cumprod: axis 5"),
])
def test_errors_say_what_is_the_matter(make, kind, told):
    with pytest.raises(kind, match=told):
        make(yoke.ones((2, 3)))
