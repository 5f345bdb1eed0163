"""Samples of the ops of core/ops/pointwise, activation and compare, and their references in NumPy."""
import math

import numpy as np

from op_samples import SHAPES, Case, are_bools, binary, call, real, unary, values
from op_table import FLOATS, NUMBERS


def np_erf(x):
    return np.vectorize(math.erf, otypes=[float])(x)


def np_sigmoid(x):
    return 1 / (1 + np.exp(-x))


def np_softplus(x, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, x, np.log1p(np.exp(np.minimum(beta * x, 700.0))) / beta)


def np_gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)), otypes=[float])(x)


def np_clamp(x, min=None, max=None):
    return np.clip(x, min, max)


def truth(function):
    """A logical function: of whether elements are 0."""
    return lambda *arrays: function(*(np.not_equal(a, 0) for a in arrays))


def power(**options):
    pairs = [((), ()), ((7,), (7,)), ((3, 5), (5,)), ((2, 1, 4), (3, 1)), ((3,), ()), ((1,), (2, 3))]

    def base(*shape):
        return values(*shape, low=0.3, high=2.0)

    def exponent(*shape):
        return values(*shape, low=0.2, high=2.2)
    return Case(np.power, [call(base(*a), exponent(*b)) for a, b in pairs] +
                [call(base(3, 4), 2.5), call(base(5), 2), call(base(5), 3), call(base(4), 0), call(2, exponent(2, 2))],
                empty=[call(base(0), exponent(0)), call(base(0, 3), exponent(3)), call(base(0), 2)],
                large=call(base(257, 273), exponent(273)), dtypes=NUMBERS, **options)


def choice():
    def condition(*shape):
        return np.asarray(values(*shape) > 0)
    triples = [((), (), ()), ((7,), (7,), (7,)), ((3, 5), (5,), (3, 1)), ((3, 1), (1, 4), (4,)), ((2, 3), (), (3,)), ((3,), (2, 3), ())]
    return Case(np.where, [call(condition(*c), values(*x), values(*y)) for c, x, y in triples] +
                [call(condition(3, 4), values(3, 4), 2.5), call(condition(4), 2, values(3, 4)), call(condition(5), values(1), 1)],
                empty=[call(condition(0), values(0), values(1)), call(condition(2, 0), 2, values(1, 1))],
                large=call(condition(257, 273), values(273), values(257, 1)))


def in_place(case):
    """The in-place form of a unary case."""
    return Case(case.reference, case.calls, empty=case.empty, large=case.large, ulps=case.ulps,
                dtypes=case.dtypes if case.result == "same" else FLOATS)


def binary_in_place(reference, low=-2.0, high=2.0, x_low=-2.0, scalar=2, **options):
    pairs = [((3, 5), (3, 5)), ((2, 3, 4), (3, 1)), ((4,), ()), ((), ())]
    return Case(reference, [call(values(*a, low=x_low), values(*b, low=low, high=high)) for a, b in pairs] +
                [call(values(4, low=x_low), scalar), call(values(2, 3, low=x_low), values(1, low=low, high=high))],
                empty=[call(values(0), values(0)), call(values(2, 0), values(1, 1, low=low, high=high))],
                large=call(values(257, 273, low=x_low), values(273, low=low, high=high)), **options)


CASES = {
    "abs": unary(np.abs, dtypes=NUMBERS),
    "sqrt": unary(real(np.sqrt), low=0.3, high=4.0, result="floating"),
    "rsqrt": unary(real(lambda x: 1 / np.sqrt(x)), low=0.3, high=4.0, result="floating"),
    "reciprocal": unary(real(lambda x: 1 / x), low=0.3, high=4.0, result="floating"),
    "sin": unary(real(np.sin), result="floating"),
    "cos": unary(real(np.cos), result="floating"),
    "erf": unary(real(np_erf), result="floating"),
    "sigmoid": unary(real(np_sigmoid), low=-9.0, high=9.0, result="floating"),
    "silu": unary(real(lambda x: x * np_sigmoid(x)), low=-9.0, high=9.0, result="floating"),
    "softplus": unary(real(np_softplus), low=-9.0, high=9.0, result="floating",
                      more=[call(values(3, 5), 2.0), call(values(7), 0.5, 0.7), call(values(7), beta=3.0, threshold=1.0)]),
    "leaky_relu": unary(real(lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope)), result="floating",
                        more=[call(values(3, 5), 0.3), call(values(7), negative_slope=-1.5)]),
    "elu": unary(real(lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))), result="floating",
                 more=[call(values(3, 5), 0.3), call(values(7), alpha=-1.5)]),
    "sign": unary(np.sign, dtypes=NUMBERS),
    "floor": unary(np.floor, low=-1.9, high=2.1, dtypes=NUMBERS),
    "ceil": unary(np.ceil, low=-1.9, high=2.1, dtypes=NUMBERS),
    "round": unary(np.rint, low=-1.93, high=2.1, dtypes=NUMBERS),
    "clamp": Case(np_clamp, [call(values(3, 5, low=-1.9), -1, 1), call(values(7, low=-1.9), 0), call(values(7, low=-1.9), None, 1),
                             call(values(2, 3, 4, low=-1.9), max=1), call(values(low=-1.9), min=-1)],
                  empty=[call(values(0, 3), 0, 1)], large=call(values(70_001), -1, 1), dtypes=NUMBERS),
    "isnan": unary(np.isnan, result="bool"),
    "isfinite": unary(np.isfinite, result="bool"),
    "pow": power(),
    "maximum": binary(np.maximum, y_low=-1.9),
    "minimum": binary(np.minimum, y_low=-1.9),
    "where": choice(),
    "logical_not": unary(truth(np.logical_not), result="bool"),
    **{name: binary(function, result="bool") for name, function in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater),
        ("ge", np.greater_equal))},
    **{name: binary(truth(function), result="bool") for name, function in (
        ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor))},
    "sub_": binary_in_place(np.subtract, dtypes=NUMBERS),
    "mul_": binary_in_place(lambda x, y: np.logical_and(x, y) if are_bools(x, y) else np.multiply(x, y), scalar=True),
    "div_": binary_in_place(np.divide, low=0.6, dtypes=FLOATS),
    "pow_": binary_in_place(np.power, low=0.2, x_low=0.3, dtypes=NUMBERS),
    "neg_": unary(np.negative, dtypes=NUMBERS),
    "exp_": unary(np.exp, dtypes=FLOATS),
    "log_": unary(np.log, low=0.3, high=4.0, dtypes=FLOATS),
    "tanh_": unary(np.tanh, dtypes=FLOATS),
    "relu_": unary(lambda x: np.maximum(x, 0), dtypes=NUMBERS),
    "gelu_": unary(np_gelu, low=-5.0, high=5.0, dtypes=FLOATS, ulps=24, more=[call(values(3, 5), "tanh")]),
}
for _name in ("abs", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "erf", "sigmoid", "silu", "leaky_relu", "elu", "sign", "floor",
              "ceil", "round", "clamp"):
    CASES[_name + "_"] = in_place(CASES[_name])
