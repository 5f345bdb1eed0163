"""Elementwise ops at the edges: NaN and infinities, kinks, whole-number powers, numbers that a dtype cannot hold."""
import math

import numpy as np
import pytest

import yoke
from op_table import FLOATS, INTS, dtype_of, to_numpy, to_yoke

INF, NAN = math.inf, math.nan
floats = pytest.mark.parametrize("dtype", FLOATS)
LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "int32": (-2**31, 2**31 - 1), "int64": (-2**63, 2**63 - 1)}


def t(values, dtype=yoke.float32):
    return yoke.tensor(values, dtype=dtype)


def same(got, want):
    np.testing.assert_array_equal(to_numpy(got).astype(np.float64), np.asarray(want, dtype=np.float64))


# ---- NaN and infinities ----------------------------------------------------------------------------------------------


@floats
def test_nan_wins_in_maximum_minimum_and_clamp(dtype):
    x, y = t([NAN, 1, NAN, 2], dtype), t([1, NAN, NAN, 3], dtype)
    same(yoke.maximum(x, y), [NAN, NAN, NAN, 3])
    same(yoke.minimum(x, y), [NAN, NAN, NAN, 2])
    same(yoke.maximum(x, 0), [NAN, 1, NAN, 2])
    same(yoke.clamp(x, -1, 1), [NAN, 1, NAN, 1])
    same(yoke.clamp(t([-INF, INF, 0], dtype), -1, 1), [-1, 1, 0])
    same(yoke.clamp(t([1, 2], dtype), min=NAN), [NAN, NAN])


@floats
def test_functions_of_infinities_and_nan_are_their_limits(dtype):
    x = t([INF, -INF, NAN, 1e4, -1e4, 0], dtype)
    same(yoke.sigmoid(x), [1, 0, NAN, 1, 0, 0.5])
    same(yoke.silu(x), [INF, 0, NAN, to_numpy(x)[3], 0, 0])
    same(yoke.softplus(x)[:5], [INF, 0, NAN, to_numpy(x)[3], 0])
    same(yoke.elu(x), [INF, -1, NAN, to_numpy(x)[3], -1, 0])
    same(yoke.erf(x), [1, -1, NAN, 1, -1, 0])
    same(yoke.sign(x), [1, -1, NAN, 1, -1, 0])
    same(yoke.abs(x)[:3], [INF, INF, NAN])
    same(yoke.floor(x)[:3], [INF, -INF, NAN])
    same(yoke.round(t([0.5, 1.5, 2.5, -0.5, -1.5], dtype)), [0, 2, 2, 0, -2])
    same(yoke.rsqrt(t([0, INF, -1, NAN, 4], dtype)), [INF, 0, NAN, NAN, 0.5])
    same(yoke.reciprocal(t([0.0, -0.0, INF, 4], dtype)), [INF, -INF, 0, 0.25])
    same(yoke.sqrt(t([0, -1, INF], dtype)), [0, NAN, INF])
    assert np.isnan(to_numpy(yoke.sin(x))[:3].astype(float)).all() and np.isnan(to_numpy(yoke.cos(x))[:3].astype(float)).all()
    same(yoke.isnan(x), [0, 0, 1, 0, 0, 0])
    same(yoke.isfinite(x), [0, 0, 0, 1, 1, 1])


@floats
def test_powers_at_the_edges_are_those_of_the_c_library(dtype):
    special = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, -8.0, 1 / 3]
    x, y = t(special, dtype), t(special, dtype)
    got = to_numpy(yoke.unsqueeze(x, 1) ** y).astype(np.float64)
    rounded = to_numpy(x).astype(np.float64)
    with np.errstate(all="ignore"):
        want = np.power(rounded[:, None], rounded)
    np.testing.assert_allclose(got, want, rtol={"float64": 1e-15, "float32": 2e-7, "float16": 1e-3, "bfloat16": 8e-3}[dtype])
    same(t([0, -2, -8], dtype) ** t([0, 3, 1 / 3], dtype), [1, -8, NAN])


@floats
def test_gradients_do_not_overflow_where_functions_saturate(dtype):
    for op in (yoke.sigmoid, yoke.silu, yoke.softplus, yoke.elu, yoke.gelu, yoke.tanh, yoke.erf):
        x = t([1e4, -1e4, INF, -INF], dtype).requires_grad_(True)
        op(x).sum().backward()
        slope = [0, 0, 0, 0] if op in (yoke.sigmoid, yoke.tanh, yoke.erf) else [1, 0, 1, 0]
        same(x.grad, slope)


def test_comparisons_with_nan_are_false_except_unequal():
    x = t([NAN, 1.0])
    assert (x == x).tolist() == [False, True] and (x != x).tolist() == [True, False]
    assert (x < 2).tolist() == [False, True] and (x >= NAN).tolist() == [False, False]


# ---- Gradients at kinks and edges ------------------------------------------------------------------------------------


def slope_of(function, *values):
    leaves = [t(v, yoke.float64).requires_grad_(True) for v in values]
    function(*leaves).sum().backward()
    return [to_numpy(leaf.grad).tolist() for leaf in leaves]


def test_slopes_at_kinks_are_pytorchs():
    assert slope_of(yoke.abs, [-1, 0, 2]) == [[-1, 0, 1]]
    assert slope_of(lambda x: yoke.leaky_relu(x, 0.25), [-1, 0, 2]) == [[0.25, 0.25, 1]]
    assert slope_of(lambda x: yoke.elu(x, 0.5), [0, 2]) == [[0.5, 1]]
    assert slope_of(lambda x: yoke.clamp(x, -1, 1), [-2, -1, 0, 1, 2, NAN]) == [[0, 1, 1, 1, 0, 0]]
    assert slope_of(lambda x: yoke.clamp(x, min=0), [-1, 0, 1]) == [[0, 1, 1]]
    assert slope_of(yoke.maximum, [1, 2, 3], [1, 3, 2]) == [[0.5, 0, 1], [0.5, 1, 0]]
    assert slope_of(yoke.minimum, [1, 2, 3], [1, 3, 2]) == [[0.5, 1, 0], [0.5, 0, 1]]
    assert slope_of(yoke.maximum, [NAN], [1]) == [[1], [1]]
    assert slope_of(lambda x: yoke.floor(x) + yoke.ceil(x) + yoke.round(x) + yoke.sign(x), [0.3, -2]) == [[0, 0]]
    assert slope_of(yoke.sqrt, [0, 4]) == [[INF, 0.25]]
    assert slope_of(lambda x: yoke.softplus(x, 1, 5), [6]) == [[1]]


def test_slopes_of_powers_at_zero_are_finite_where_they_may_be():
    assert slope_of(lambda x: x ** 0, [0, 2]) == [[0, 0]]
    assert slope_of(lambda x: x ** 1, [0, 2]) == [[1, 1]]
    assert slope_of(lambda x: x ** 2, [0, 3]) == [[0, 6]]
    assert slope_of(lambda x: x ** 3, [0, 3]) == [[0, 27]]
    assert slope_of(lambda x: x ** 0.5, [0, 4]) == [[INF, 0.25]]
    assert slope_of(lambda y: 0 ** y, [0, 2]) == [[0, 0]]
    assert slope_of(lambda x, y: x ** y, [0, -2], [2, 2])[0] == [0, -4]
    assert np.isnan(slope_of(lambda x, y: x ** y, [-2], [2])[1]).all(), "the logarithm of a negative number"
    assert slope_of(lambda x: 2 ** x, [3])[0] == pytest.approx([8 * math.log(2)])


def test_the_gradient_of_where_goes_to_what_was_chosen_even_beside_nan():
    x = t([4.0, -1.0], yoke.float64).requires_grad_(True)
    out = yoke.where(x > 0, x * 2, 0)
    out.sum().backward()
    assert x.grad.tolist() == [2, 0]
    y = t([1.0, NAN], yoke.float64).requires_grad_(True)
    yoke.where(yoke.isnan(y), 0, y).sum().backward()
    assert y.grad.tolist() == [1, 0]


# ---- Integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTS)
def test_integer_powers_stay_integers_and_wrap(dtype):
    x = t([3, 5, 0, 1], dtype)
    assert (x ** 2).dtype is dtype_of(dtype) and (x ** 2).tolist() == [9, 25, 0, 1]
    assert (x ** 0).tolist() == [1, 1, 1, 1] and (2 ** x).tolist() == [8, 32, 1, 2]
    bits = 8 * np.dtype(dtype).itemsize
    want = np.array([3**41 % 2**bits, 5**41 % 2**bits, 0, 1], dtype=f"uint{bits}").astype(dtype)
    assert (x ** 41).tolist() == want.tolist()
    assert (x ** t([41] * 4, dtype)).tolist() == want.tolist()
    assert (x ** 0.5).dtype is yoke.float32


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_a_negative_power_of_an_integer_is_refused(dtype):
    x = t([2, 3], dtype)
    with pytest.raises(yoke.ValueError, match=rf"pow: the exponent is -2, and a negative power.*{dtype}.*floating"):
        x ** -2
    with pytest.raises(yoke.ValueError, match="pow: an exponent is -1, and a negative power.*floating"):
        x ** t([1, -1], dtype)
    with pytest.raises(yoke.ValueError, match="pow_: "):
        x **= -2
    assert x.tolist() == [2, 3]
    assert ((-x) ** 3).tolist() == [-8, -27]


@pytest.mark.parametrize("dtype", INTS)
def test_comparing_with_a_number_beyond_the_dtype_is_right(dtype):
    low, high = LIMITS[dtype]
    x = t([low, 0, high], dtype)
    if dtype != "int64":  # a script's integer is itself an int64
        for beyond in (high + 1, 2**62):
            assert (x == beyond).tolist() == [False] * 3 and (x != beyond).tolist() == [True] * 3
            assert (x < beyond).tolist() == [True] * 3 and (beyond <= x).tolist() == [False] * 3
        assert (x >= low - 1).tolist() == [True] * 3 and (x == low - 1).tolist() == [False] * 3
    assert (x < 1e30).tolist() == [True] * 3 and (x > -INF).tolist() == [True] * 3
    assert (x > 0.5).tolist() == [False, False, True]
    assert (x == high).tolist() == [False, False, True]
    assert (t([2**24 + 1, 2**24], "int64") == float(2**24)).tolist() == [False, True]


def test_comparing_a_half_with_a_number_beyond_it_is_right():
    x = t([INF, 65504.0], "float16")
    assert (x == 70000).tolist() == [False, False] and (x > 70000).tolist() == [True, False]
    assert (t([INF]) == 1e300).tolist() == [False] and (t([0.1]) == 0.1).tolist() == [True]


@pytest.mark.parametrize("dtype", INTS)
def test_a_number_that_does_not_fit_is_refused_and_never_wraps(dtype):
    low, high = LIMITS[dtype]
    x = yoke.ones(2, dtype=dtype_of(dtype))
    wrong = [1e30, -INF, NAN] + ([high + 1, low - 1] if dtype != "int64" else [])
    for value in wrong:
        for name, make in (("full", lambda: yoke.full(2, value, dtype=x.dtype)), ("fill_", lambda: x.fill_(value)),
                           ("full_like", lambda: yoke.full_like(x, value))):
            with pytest.raises(yoke.ValueError, match=rf"{name}: argument 'value' is .*does not fit into {dtype} \({low} to {high}\)"):
                make()
        if isinstance(value, int):
            for name, make in (("add", lambda: x + value), ("mul", lambda: value * x), ("maximum", lambda: yoke.maximum(x, value)),
                               ("where", lambda: yoke.where(x > 0, x, value)), ("add_", lambda: x.add_(value))):
                with pytest.raises(yoke.ValueError, match=rf"{name}: argument '[xy]' is {value}, which does not fit into {dtype}"):
                    make()
    assert x.tolist() == [1, 1]
    assert yoke.full(2, high, dtype=x.dtype).tolist() == [high] * 2 and yoke.full(2, 2.9, dtype=x.dtype).tolist() == [2, 2]


def test_bounds_beyond_the_dtype_bound_nothing_and_unreachable_ones_are_refused():
    x = t([0, 100, 255], "uint8")
    assert yoke.clamp(x, -1, 300).tolist() == [0, 100, 255] and yoke.clamp(x, -1, 50).tolist() == [0, 50, 50]
    with pytest.raises(yoke.ValueError, match=r"clamp: argument 'min' is 300, which does not fit into uint8 \(0 to 255\)"):
        yoke.clamp(x, min=300)
    with pytest.raises(yoke.ValueError, match="clamp_: argument 'max' is -1"):
        x.clamp_(max=-1)
    assert yoke.clamp(x, 0.5, 99.5).dtype is yoke.float32 and yoke.clamp(x, 0.5, 99.5).tolist() == [0.5, 99.5, 99.5]
    big = 2**53 + 1
    assert yoke.clamp(t([0, 2**60], "int64"), big, big + 1).tolist() == [big, big + 1]
    assert yoke.clamp(t([0, 5]), 3, 1).tolist() == [1, 1], "the upper bound wins"


def test_a_logical_op_sees_whether_a_number_is_zero_and_no_more():
    x = t([0, 1, 255], "uint8")
    assert yoke.logical_and(x, 256).tolist() == [False, True, True]
    assert yoke.logical_or(x, 0.5).tolist() == [True] * 3 and yoke.logical_xor(NAN, x).tolist() == [True, False, False]


# ---- Bad input -------------------------------------------------------------------------------------------------------


ERRORS = {
    "clamp without bounds": (lambda: yoke.clamp(t([1.0])), yoke.ValueError, "clamp: arguments 'min' and 'max' are both missing"),
    "a condition of numbers": (lambda: yoke.where(t([1.0]), t([1.0]), 0), yoke.TypeError, "where: argument 'condition' is float32; it takes bool"),
    "shapes of where": (lambda: yoke.where(t([1.0]) > 0, t([1.0] * 2), t([1.0] * 3)), yoke.ValueError, r"where: shapes \[2\] and \[3\]"),
    "shapes of a comparison": (lambda: yoke.eq(t([1.0] * 2), t([1.0] * 3)), yoke.ValueError, r"eq: shapes \[2\] and \[3\]"),
    "two numbers": (lambda: yoke.maximum(1, 2), yoke.TypeError, "maximum: both arguments are numbers"),
    "powers of bools": (lambda: yoke.pow(t([True], "bool"), True), yoke.TypeError, "pow: a power of bool tensors is not supported; cast"),
    "a bound on bools": (lambda: yoke.clamp(t([True], "bool"), 0, 1), yoke.TypeError, "clamp: argument 'x' is bool, which cannot be clamped"),
    "rounding bools": (lambda: yoke.floor(t([True], "bool")), yoke.TypeError, "floor: bool tensors do not support floor"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_bad_input_is_named(what):
    call, error, message = ERRORS[what]
    with pytest.raises(error, match=message):
        call()


def test_elementwise_results_keep_the_memory_order_of_their_input():
    x = yoke.transpose(to_yoke(np.arange(6.0).reshape(2, 3)), 0, 1)
    for y in (yoke.silu(x), x > 1, yoke.where(x > 1, x, 0), yoke.clamp(x, 1, 2), x ** 2, yoke.maximum(x, x)):
        assert y.strides == x.strides
