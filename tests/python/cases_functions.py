"""Samples of the elementwise functions beyond cases_pointwise.py, and their references in NumPy."""
import math

import numpy as np

from op_samples import SHAPES, Case, as_real, binary, call, indices, real, unary, values
from op_table import FLOATS, NUMBERS


def np_erfinv(x):
    """Finds the inverse by halving, then, where erf has all digits, by a step of Newton's method."""
    def inverse(v):
        if abs(v) >= 1:
            return math.copysign(math.inf, v) if abs(v) == 1 else math.nan
        if abs(v) < 1e-5:
            return v * math.sqrt(math.pi) / 2
        low, high = 0.0, 6.0
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (middle, high) if math.erfc(middle) > 1 - abs(v) else (low, middle)
        y = (low + high) / 2
        if abs(v) < 0.5:
            y -= (math.erf(y) - abs(v)) * math.sqrt(math.pi) / 2 * math.exp(y * y)
        return math.copysign(y, v)
    return np.vectorize(inverse, otypes=[x.dtype])(x)


def np_nan_to_num(x, nan=None, posinf=None, neginf=None):
    return x if x.dtype.kind != "f" else np.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


def np_logaddexp(x, y):
    return np.logaddexp(as_real(x), as_real(y))


def np_isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(np.asarray(x, np.float64), np.asarray(y, np.float64), rtol, atol, equal_nan)


def np_left(x, y):
    return np.where((y < 0) | (y > 63), 0, np.left_shift(x, np.clip(y, 0, 63)))


def np_right(x, y):
    return np.right_shift(x, np.where((y < 0) | (y > 63), 63, y))


def integers(reference, y_high=9, y_low=-9, scalar=3):
    """A binary case of integers, in int64; test_ops_bits.py has the other dtypes."""
    def whole(low, high, *shape):
        return np.asarray(indices(high - low, *shape) + low)
    pairs = [((), ()), ((7,), (7,)), ((3, 5), (5,)), ((2, 1, 4), (3, 1)), ((5, 1), (1, 6))]
    return Case(reference, [call(whole(-9, 9, *a), whole(y_low, y_high, *b)) for a, b in pairs] +
                [call(whole(-9, 9, 3, 4), scalar), call(scalar, whole(y_low, y_high, 2, 2))],
                empty=[call(indices(2, 0), indices(2, 0)), call(indices(2, 2, 0), 2)],
                large=call(whole(-9, 9, 257, 273), whole(y_low, y_high, 273)), dtypes=("int64",), result="index")


def integers_in_place(case):
    """The in-place form: calls whose first argument has the result's shape."""
    fits = [c for c in case.calls if isinstance(c.args[0], np.ndarray) and
            np.broadcast_shapes(c.args[0].shape, np.shape(c.args[1] if len(c.args) > 1 else 0)) == c.args[0].shape]
    return Case(case.reference, fits, empty=case.empty, large=case.large, dtypes=("int64",), result="index")


def division(reference, **options):
    """A quotient of any signs: divisors are not near 0, of integers not 0."""
    case = binary(reference, y_low=0.6, y_high=2.0, **options)
    case.calls += [call(values(3, 5), -values(5, low=0.6)), call(values(4), -1.5), call(values(2, 3), values(3, low=-2.0, high=-0.6))]
    return case


def division_in_place(reference, **options):
    return Case(reference, [call(values(3, 5), values(3, 5, low=0.6)), call(values(2, 3, 4), -values(3, 1, low=0.6)), call(values(4), 2),
                            call(values(), values(low=0.6))],
                empty=[call(values(0), values(0)), call(values(2, 0), values(1, 1, low=0.6))],
                large=call(values(257, 273), values(273, low=0.6)), **options)


def triple(reference, third=values, **options):
    triples = [((), (), ()), ((7,), (7,), (7,)), ((3, 5), (5,), (3, 1)), ((3, 1), (1, 4), (4,)), ((2, 3), (), (3,))]
    return Case(reference, [call(values(*x), values(*y), third(*z)) for x, y, z in triples],
                empty=[call(values(0), values(0), third(1)), call(values(2, 0), values(1, 1), third(2, 1))],
                large=call(values(257, 273), values(273), third(257, 1)), **options)


def away_from_0(*shape):
    return values(*shape, low=0.6)


def np_addcmul(x, tensor1, tensor2, value=1):
    return x + value * tensor1 * tensor2


def np_addcdiv(x, tensor1, tensor2, value=1):
    return as_real(x) + value * as_real(tensor1) / tensor2


def np_lerp(x, y, weight):
    return as_real(x) + as_real(weight) * (as_real(y) - x)


LERP = triple(np_lerp, result="floating", absolute=True)
LERP.calls += [call(values(3, 4), values(4), 0.25), call(values(5), values(5), 0.75), call(values(5), values(), -1.5)]
ADDCMUL = triple(np_addcmul, dtypes=NUMBERS, absolute=True)
ADDCMUL.calls += [call(values(3, 4), values(4), values(3, 1), value=2), call(values(5), values(5), values(), value=-3)]
ADDCDIV = triple(np_addcdiv, away_from_0, result="floating", absolute=True)
ADDCDIV.calls += [call(values(3, 4), values(4), away_from_0(3, 1), value=2), call(values(5), values(5), away_from_0(), value=-0.5)]
CLOSE = [call(values(3, 5), values(3, 5)), call(values(4), 1.5), call(values(2, 1, 3), values(4, 1), 0.5, 0.25),
         call(values(7), values(7), rtol=0.0, atol=0.5), call(values(), values(), equal_nan=True), call(2, values(3))]

CASES = {
    "log1p": unary(real(np.log1p), low=-0.9, high=4.0, result="floating"),
    "expm1": unary(real(np.expm1), result="floating"),
    "log2": unary(real(np.log2), low=0.3, high=4.0, result="floating"),
    "log10": unary(real(np.log10), low=0.3, high=4.0, result="floating"),
    "exp2": unary(real(np.exp2), result="floating"),
    "square": unary(np.square, dtypes=NUMBERS),
    "tan": unary(real(np.tan), low=-1.5, high=1.5, result="floating"),
    "atan": unary(real(np.arctan), result="floating"),
    "asin": unary(real(np.arcsin), low=-0.9, high=0.9, result="floating"),
    "acos": unary(real(np.arccos), low=-0.9, high=0.9, result="floating"),
    "sinh": unary(real(np.sinh), result="floating"),
    "cosh": unary(real(np.cosh), result="floating"),
    "trunc": unary(np.trunc, low=-1.93, high=2.1, dtypes=NUMBERS),
    "frac": unary(real(lambda x: x - np.trunc(x)), low=-1.93, high=2.1, result="floating"),
    "erfinv": unary(real(np_erfinv), low=-0.9, high=0.9, result="floating"),
    "isinf": unary(np.isinf, result="bool"),
    "nan_to_num": unary(np_nan_to_num, more=[call(values(3, 4), 1.0, 2.0, 3.0), call(values(4), posinf=9), call(values(4), neginf=-9)]),
    "atan2": binary(lambda x, y: np.arctan2(as_real(x), as_real(y)), result="floating"),
    "fmod": division(np.fmod, dtypes=NUMBERS),
    "remainder": division(np.remainder, dtypes=NUMBERS),
    "floor_divide": division(np.floor_divide, dtypes=NUMBERS),
    "logaddexp": binary(np_logaddexp, result="floating", absolute=True),
    "isclose": Case(np_isclose, CLOSE, empty=[call(values(0), values(0)), call(values(2, 0), 1)],
                    large=call(values(257, 273), values(273), 0.1, 0.1), result="bool"),
    "allclose": Case(lambda *args, **named: np.all(np_isclose(*args, **named)), CLOSE,
                     empty=[call(values(0), values(0))], large=call(values(257, 273), values(273), 5.0), result="bool"),
    "equal": Case(np.array_equal, [call(values(3, 5), values(3, 5)), call(values(3), values(4)), call(np.ones(3), np.ones(3)),
                                   call(np.ones(3), np.ones((1, 3))), call(values(), values())],
                  empty=[call(values(0), values(0)), call(values(0), values(0, 2))], large=call(values(257, 273), values(257, 273)),
                  result="bool"),
    "lerp": LERP,
    "addcmul": ADDCMUL,
    "addcdiv": ADDCDIV,
    "bitwise_and": integers(np.bitwise_and),
    "bitwise_or": integers(np.bitwise_or),
    "bitwise_xor": integers(np.bitwise_xor),
    "bitwise_not": Case(np.invert, [call(np.asarray(indices(9, *s) - 4)) for s in SHAPES], empty=[call(indices(2, 0))],
                        large=call(indices(9, 70_001)), dtypes=("int64",), result="index"),
    "bitwise_left_shift": integers(np_left, y_low=-2, y_high=66),
    "bitwise_right_shift": integers(np_right, y_low=-2, y_high=66),
    "atan2_": Case(np.arctan2, [call(values(3, 5), values(3, 5)), call(values(2, 3, 4), values(3, 1)), call(values(4), 0.5)],
                   empty=[call(values(0), values(0))], large=call(values(257, 273), values(273)), dtypes=FLOATS),
    "fmod_": division_in_place(np.fmod, dtypes=NUMBERS),
    "remainder_": division_in_place(np.remainder, dtypes=NUMBERS),
    "floor_divide_": division_in_place(np.floor_divide, dtypes=NUMBERS),
}
for _name in ("log1p", "expm1", "log2", "log10", "exp2", "square", "tan", "atan", "asin", "acos", "sinh", "cosh", "trunc", "frac",
              "erfinv", "nan_to_num"):
    _case = CASES[_name]
    CASES[_name + "_"] = Case(_case.reference, _case.calls, empty=_case.empty, large=_case.large, ulps=_case.ulps,
                              dtypes=_case.dtypes if _case.result == "same" else FLOATS)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"):
    CASES[_name + "_"] = integers_in_place(CASES[_name])
for _name, _dtypes in (("lerp", FLOATS), ("addcmul", NUMBERS), ("addcdiv", FLOATS)):
    _case = CASES[_name]
    CASES[_name + "_"] = Case(_case.reference, [c for c in _case.calls if c.args[0].shape != (3, 1)],
                              empty=_case.empty, large=_case.large, absolute=True, dtypes=_dtypes)
