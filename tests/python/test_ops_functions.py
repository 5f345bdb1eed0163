"""Elementwise functions beyond the basic ones: ends, special values, gradients at kinks, and refusals."""
import math

import numpy as np
import pytest

import yoke
from op_table import EPSILON, FLOATS, dtype_of, to_numpy

INF, NAN = math.inf, math.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, INF, -INF, NAN, 1e-30, -1e-30, 88.0, -88.0, 0.5, -0.5])
FUNCTIONS = {"log1p": np.log1p, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "exp2": np.exp2, "tan": np.tan, "atan": np.arctan,
             "asin": np.arcsin, "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "trunc": np.trunc, "square": np.square}


def tensor(values, dtype="float32", **named):
    return yoke.tensor(values, dtype=dtype_of(dtype), **named)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_the_c_library(name, dtype):
    x = tensor(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](to_numpy(x).astype(np.float64))
        want = to_numpy(tensor(want, dtype)).astype(np.float64)
    got = to_numpy(getattr(yoke, name)(x)).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=4 * EPSILON[dtype], atol=1e-38)
    for at in (0, 1):
        assert np.signbit(got[at]) == np.signbit(want[at]), f"the sign of {name}({SPECIAL[at]})"


@pytest.mark.parametrize("dtype", FLOATS)
def test_atan2_knows_all_quadrants_and_axes(dtype):
    places = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-30, 0.3, -5.0]
    x, y = (tensor(v.ravel(), dtype) for v in np.meshgrid(places, places))
    want = np.arctan2(to_numpy(x).astype(np.float64), to_numpy(y).astype(np.float64))
    got = to_numpy(yoke.atan2(x, y)).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=2 * EPSILON[dtype])
    finite = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[finite], np.signbit(want)[finite])
    assert 4 * yoke.atan(tensor([1.0])).item() == np.float32(math.pi)


def test_erfinv_inverts_erf_to_the_last_digits():
    for dtype, bound in (("float32", 4), ("float64", 8)):
        y = np.linspace(-3, 3, 2001)
        x = to_numpy(yoke.erf(tensor(y, dtype)))
        x = x[np.abs(x) < 1]
        back = to_numpy(yoke.erf(yoke.erfinv(tensor(x, dtype))))
        np.testing.assert_allclose(back, x, rtol=bound * EPSILON[dtype])
    got = yoke.erfinv(tensor([1.0, -1.0, 1.5, NAN, 0.0], "float64"))
    np.testing.assert_array_equal(to_numpy(got), [INF, -INF, NAN, NAN, 0.0])


def test_nan_to_num_has_the_ends_of_each_dtype():
    for dtype, most in (("float64", np.finfo(np.float64).max), ("float32", np.finfo(np.float32).max), ("float16", 65504.0),
                        ("bfloat16", float.fromhex("0x1.fep127"))):
        x = tensor([NAN, INF, -INF, 2.0], dtype)
        assert yoke.nan_to_num(x).tolist() == [0.0, most, -most, 2.0]
        assert yoke.nan_to_num(x, 7, 8, 9).tolist() == [7, 8, 9, 2]
        assert x.nan_to_num_(posinf=5.0) is x and x.tolist() == [0.0, 5.0, -most, 2.0]
    assert yoke.nan_to_num(yoke.tensor([3, 4])).tolist() == [3, 4]
    x = tensor([NAN, INF, 2.0], requires_grad=True)
    yoke.nan_to_num(x).backward(yoke.ones(3))
    assert x.grad.tolist() == [0, 0, 1]


def test_logaddexp_of_infinities():
    x, y = tensor([INF, -INF, INF, -INF, 1.0, NAN]), tensor([INF, -INF, -INF, 3.0, -INF, 1.0])
    np.testing.assert_array_equal(to_numpy(yoke.logaddexp(x, y)), [INF, -INF, INF, 3.0, 1.0, NAN])


def test_isclose_of_special_values_is_numpys():
    places = np.array([0.0, 1.0, 1 + 1e-6, INF, -INF, NAN, 1e-9, -1.0])
    a, b = (v.ravel() for v in np.meshgrid(places, places))
    for equal_nan in (False, True):
        got = yoke.isclose(tensor(a, "float64"), tensor(b, "float64"), equal_nan=equal_nan)
        np.testing.assert_array_equal(to_numpy(got), np.isclose(a, b, equal_nan=equal_nan))
    x = yoke.tensor([2**62, 5, -5])
    assert yoke.isclose(x, yoke.tensor([2**62 + 1, 6, 5])).tolist() == [True, False, False]
    assert yoke.isclose(yoke.tensor([True, False]), True).tolist() == [True, False]


def test_equal_and_allclose_are_one_truth():
    x = tensor([1.0, 2.0])
    assert yoke.equal(x, x) and not yoke.equal(x, tensor([1.0, 2.5])) and not yoke.equal(x, tensor([[1.0, 2.0]]))
    assert yoke.equal(tensor([]), tensor([])) and not yoke.equal(tensor([NAN]), tensor([NAN]))
    assert yoke.allclose(x, x + 1e-9) and not yoke.allclose(x, tensor([NAN, 2.0])) and yoke.allclose(tensor([NAN]), tensor([NAN]), equal_nan=True)


def test_gradients_at_kinks_are_pytorchs():
    def gradient(function, values, dtype="float64"):
        x = tensor(values, dtype, requires_grad=True)
        function(x).sum().backward()
        return x.grad.tolist()
    assert gradient(yoke.trunc, [0.5, -1.5]) == [0, 0] and gradient(yoke.frac, [0.5, -1.5]) == [1, 1]
    assert gradient(lambda x: yoke.fmod(x, 2.0), [5.0, -3.0]) == [1, 1] and gradient(lambda x: x // 2.0, [5.0]) == [0]
    assert gradient(lambda x: yoke.remainder(7.0, x), [2.0, -2.0]) == [-3, 4]
    assert gradient(lambda x: yoke.fmod(-7.0, x), [2.0, -2.0]) == [3, -3]
    assert gradient(lambda x: yoke.atan2(x, x * 0), [0.0]) == [0]
    assert gradient(yoke.square, [0.0, 3.0]) == [0, 6] and gradient(yoke.asin, [1.0]) == [INF] and gradient(yoke.log2, [0.0]) == [INF]


@pytest.mark.parametrize("make, kind, told", [
    (lambda x: yoke.nan_to_num(x, "a"), TypeError, "nan_to_num"),
    (lambda x: yoke.square(x > 0), yoke.TypeError, "square: bool tensors do not support square"),
    (lambda x: yoke.lerp(x, yoke.ones(3), 0.5), yoke.ValueError, r"lerp: shapes \[2\] and \[3\]"),
    (lambda x: yoke.addcmul(yoke.tensor([1]), yoke.tensor([1]), yoke.tensor([1]), value=0.5), yoke.TypeError,
     "addcmul: argument 'value' is 0.5, and the tensors are int64 together; give an integer"),
    (lambda x: yoke.addcmul(x > 0, x > 0, x > 0), yoke.TypeError, "addcmul: bool tensors do not support addcmul"),
    (lambda x: yoke.atan2(1, 2), yoke.TypeError, "atan2: both arguments are numbers"),
])
def test_errors_say_what_is_the_matter(make, kind, told):
    with pytest.raises(kind, match=told):
        make(yoke.ones(2))
