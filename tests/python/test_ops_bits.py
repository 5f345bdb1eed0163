"""Bitwise ops and whole quotients: every integer dtype, shifts beyond the width, the operators of Python, and refusals."""
import numpy as np
import pytest

import yoke
from op_table import INTS, dtype_of, to_numpy

_rng = np.random.default_rng(46)
PAIRS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


def random_integers(dtype, *shape):
    ends = np.iinfo(dtype)
    return _rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", PAIRS)
def test_bits_are_numpys_in_every_integer_dtype(name, dtype):
    a, b = random_integers(dtype, 5, 77), random_integers(dtype, 77)
    got = getattr(yoke, name)(yoke.tensor(a), yoke.tensor(b))
    assert got.dtype == dtype_of(dtype)
    np.testing.assert_array_equal(to_numpy(got), PAIRS[name](a, b))
    np.testing.assert_array_equal(to_numpy(yoke.bitwise_not(yoke.tensor(a))), np.invert(a))


@pytest.mark.parametrize("name", PAIRS)
def test_bits_of_bools_are_logic(name):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    got = getattr(yoke, name)(yoke.tensor(a), yoke.tensor(b))
    assert got.dtype is yoke.bool and got.tolist() == PAIRS[name](a, b).tolist()
    assert yoke.bitwise_not(yoke.tensor(a)).tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_have_a_value_for_any_number_of_places(dtype):
    width, a = np.iinfo(dtype).bits, random_integers(dtype, 200)
    for places in (0, 1, width - 1, width, width + 1, 100, *(() if dtype == "uint8" else (-1, -100))):
        inside, down = 0 <= places < width, 0 <= places < width
        left = np.left_shift(a, np.array(places, dtype)) if inside else np.zeros_like(a)
        right = np.right_shift(a, np.array(places, dtype)) if down else np.where(a < 0, -1, 0).astype(dtype)
        x = yoke.tensor(a)
        np.testing.assert_array_equal(to_numpy(x << places), left, err_msg=f"<< {places}")
        np.testing.assert_array_equal(to_numpy(x >> places), right, err_msg=f">> {places}")


@pytest.mark.parametrize("dtype", INTS)
def test_quotients_of_integers_are_pythons_and_wrap(dtype):
    a, b = random_integers(dtype, 500), random_integers(dtype, 500)
    b[b == 0] = 3
    ends = np.iinfo(dtype)
    a[:3], b[:3] = (ends.min, ends.max, ends.min), ((1, 1, 2) if dtype == "uint8" else (-1, -1, 2))
    x, y = yoke.tensor(a), yoke.tensor(b)
    exact = [(int(p), int(q)) for p, q in zip(a, b)]

    def wrapped(numbers):
        return np.array([(n - ends.min) % 2**ends.bits + ends.min for n in numbers], dtype)
    np.testing.assert_array_equal(to_numpy(x // y), wrapped(p // q for p, q in exact))
    np.testing.assert_array_equal(to_numpy(x % y), wrapped(p % q for p, q in exact))
    np.testing.assert_array_equal(to_numpy(yoke.fmod(x, y)), wrapped(abs(p) % abs(q) * (1 if p > 0 else -1) for p, q in exact))


def test_operators_take_numbers_and_arrays_on_either_side():
    x, a = yoke.tensor([5, -3, 12]), np.array([5, -3, 12])
    for got, want in ((x & 6, a & 6), (6 & x, 6 & a), (x | 8, a | 8), (x ^ 1, a ^ 1), (1 ^ x, 1 ^ a), (~x, ~a), (x << 2, a << 2),
                      (x >> 1, a >> 1), (x // 4, a // 4), (x % 4, a % 4), (17 // x, 17 // a), (17 % x, 17 % a),
                      *(((x & a, a & a), (a % x, a % a)) if x.device.kind == "cpu" else ()), (x // 2.5, a // 2.5), (x % 2.5, a % 2.5)):
        np.testing.assert_array_equal(to_numpy(got), want)
    assert (1 << yoke.tensor([0, 3])).tolist() == [1, 8] and (256 >> yoke.tensor([1, 3])).tolist() == [128, 32]


def test_operators_in_place_keep_the_object():
    x = yoke.tensor([13, 7])
    same = x
    x &= 15
    x |= 16
    x ^= 1
    x <<= 2
    x >>= 1
    x //= 3
    x %= 11
    want = np.array([13, 7])
    want = ((((want & 15 | 16) ^ 1) << 2) >> 1) // 3 % 11
    assert x is same and x.tolist() == want.tolist()


@pytest.mark.parametrize("make, told", [
    (lambda x: x & x, "bitwise_and: the operands are float32 together; it takes integers and bool"),
    (lambda x: x | 1, "bitwise_or: the operands are float32 together"),
    (lambda x: 1 ^ x, "bitwise_xor: the operands are float32 together"),
    (lambda x: ~x, "bitwise_not: argument 'x' is float32; it takes integers and bool"),
    (lambda x: x << 1, "bitwise_left_shift: the operands are float32 together; it takes integers$"),
    (lambda x: x >> 1, "bitwise_right_shift: the operands are float32 together"),
    (lambda x: (x > 0) << yoke.tensor([True]), "bitwise_left_shift: bool tensors do not support bitwise_left_shift; cast one to an integer"),
    (lambda x: (x > 0) // (x > 0), "floor_divide: bool tensors do not support floor_divide"),
    (lambda x: (x > 0) % (x > 0), "remainder: bool tensors do not support remainder"),
])
def test_what_has_no_bits_is_refused(make, told):
    with pytest.raises(yoke.TypeError, match=told):
        make(yoke.ones(2))


@pytest.mark.parametrize("divide", [yoke.floor_divide, yoke.remainder, yoke.fmod])
def test_a_division_of_integers_by_0_is_refused(divide):
    x = yoke.tensor([4, 5])
    name = divide.__name__
    with pytest.raises(yoke.ValueError, match=f"{name}: a divisor is 0, and integers have no infinity or NaN; cast x, which is int64"):
        divide(x, 0)
    with pytest.raises(yoke.ValueError, match=f"{name}: a divisor is 0, and integers have no infinity or NaN; cast x to a floating"):
        divide(x, yoke.tensor([1, 0])).tolist()
        yoke.synchronize()


def test_quotients_of_floats_follow_python_at_their_edges():
    inf, nan = float("inf"), float("nan")
    a = np.array([5.5, -5.5, 5.5, -5.5, 0.0, -0.0, 4.0, -4.0, 1.0, inf, 3.0, -3.0, nan, 1e30, 1.0], np.float32)
    b = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 2.0, 2.0, 0.0, 2.0, inf, inf, 1.0, 0.3, 1e-30], np.float32)
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        x, y = (yoke.tensor(v, dtype=dtype_of(dtype)) for v in (a, b))
        p, q = (to_numpy(v).astype(np.float64) for v in (x, y))
        with np.errstate(all="ignore"):
            if dtype == "float64":
                np.testing.assert_array_equal(to_numpy(yoke.fmod(x, y)), np.fmod(p, q))
                np.testing.assert_array_equal(to_numpy(x // y), np.where(q == 0, p / q, np.floor_divide(p, q)))
            rest = np.fmod(p, q)
            np.testing.assert_array_equal(to_numpy(yoke.fmod(x, y)).astype(np.float64), rest)
            rest = np.where((rest != 0) & ((rest < 0) != (q < 0)), rest + q, rest)
            np.testing.assert_allclose(to_numpy(x % y).astype(np.float64), rest, rtol=1e-2 if dtype == "bfloat16" else 1e-3)
