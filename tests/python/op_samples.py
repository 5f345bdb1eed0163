"""Building blocks for samples of ops: calls, cases, and shapes for each kind of op.

A case is a list of calls. Floating arrays in a call stand for tensors of the dtype under test, integer arrays for indices. The
reference gets the same arguments, as the dtype rounds them, in float64 or int64.
"""
import dataclasses
import math
from typing import Any, Callable

import numpy as np

from op_table import ALL, FLOATS, NUMBERS

_rng = np.random.default_rng(20)


def values(*shape, low=-2.0, high=2.0):
    """Values between the bounds, none nearer to 0 than 0.05, and no two alike: kinks and ties are for other tests."""
    count = math.prod(shape)
    spread = np.linspace(low, high, count + 2)[1:-1] if count else np.zeros(0)
    spread = np.where(np.abs(spread) < 0.05, spread + 0.1, spread)
    return _rng.permutation(spread).reshape(shape)


def indices(count, *shape):
    return _rng.integers(0, count, shape)


@dataclasses.dataclass
class Call:
    """Arguments of a call; arrays stand for tensors."""
    args: tuple
    named: dict

    def __str__(self):
        def show(value):
            if isinstance(value, np.ndarray):
                return "x".join(map(str, value.shape)) or "scalar"
            return "[" + ";".join(map(show, value)) + "]" if isinstance(value, list) else repr(value)
        return ",".join([*map(show, self.args), *(f"{k}={show(v)}" for k, v in self.named.items())])


def call(*args, **named):
    return Call(args, named)


@dataclasses.dataclass
class Case:
    reference: Callable[..., Any]
    calls: list
    empty: list = dataclasses.field(default_factory=list)  # zero-size calls
    large: Any = None  # beyond 64 Ki elements, of an odd size: what threads share
    dtypes: tuple = ALL  # accepted dtypes; all others are a type error
    # The result's dtype: same, x (x's, whatever numbers stand beside it), floating (integers give float32), sum, index,
    # bool, or a function of the call that says so.
    result: Any = "same"
    ulps: float = 4  # allowed error, in units in the last place of the result's dtype
    absolute: bool = False  # the error is measured against the largest result: sums cancel

    def all_calls(self):
        return self.calls + self.empty


SHAPES = ((), (1,), (7,), (3, 5), (2, 3, 4))


def unary(reference, low=-2.0, high=2.0, large=(70_001,), more=(), **options):
    samples = [call(values(*s, low=low, high=high)) for s in SHAPES]
    return Case(reference, samples + list(more), empty=[call(values(0)), call(values(2, 0, 3))],
                large=call(values(*large, low=low, high=high)), **options)


def binary(reference, y_low=-2.0, y_high=2.0, scalar=2.5, **options):
    pairs = [((), ()), ((7,), (7,)), ((3, 5), (5,)), ((2, 1, 4), (3, 1)), ((3,), ()), ((5, 1), (1, 6)), ((1,), (2, 3))]
    samples = [call(values(*a), values(*b, low=y_low, high=y_high)) for a, b in pairs]
    samples += [call(values(3, 4), scalar), call(scalar, values(3, 4, low=y_low, high=y_high)), call(values(5), 3),
                call(2, values(2, 2, low=y_low, high=y_high))]
    return Case(reference, samples,
                empty=[call(values(0), values(0)), call(values(0, 3), values(3, low=y_low, high=y_high)),
                       call(values(2, 0), values(1, 1, low=y_low, high=y_high)), call(values(0), 2)],
                large=call(values(257, 273), values(273, low=y_low, high=y_high)), **options)


def reduction(reference, keep_empty=True, **options):
    axes = [call(values(3, 5)), call(values(3, 5), axis=0), call(values(3, 5), axis=-1, keepdim=True),
            call(values(2, 3, 4), axis=1), call(values(2, 3, 4), keepdim=True), call(values()), call(values(1)),
            call(values(3, 1, 2), axis=1)]
    lists = [call(values(2, 3, 4), axis=(0, 2)), call(values(2, 3, 4), axis=[-1, 0], keepdim=True),
             call(values(2, 3), axis=())]
    nothing = [call(values(0)), call(values(0, 3), axis=0), call(values(2, 0, 3), axis=(0, 1), keepdim=True)]
    some = [call(values(0, 3), axis=1), call(values(2, 0, 3), axis=2)]
    takes_lists = options.pop("takes_lists", True)
    options.setdefault("ulps", 16)  # for the largest result: partial sums of cancelling terms are larger than their sum
    return Case(reference, axes + (lists if takes_lists else []), empty=(nothing if keep_empty else []) + some,
                large=call(values(273, 257), axis=0), absolute=True, **options)


def along_axis(reference, **options):
    return Case(reference, [call(values(3, 5)), call(values(7)), call(values(2, 3, 4), 1), call(values(2, 3, 4), axis=0),
                            call(values(1, 1)), call(values()), call(values(4, 6) * 30)],
                empty=[call(values(0, 3)), call(values(3, 0)), call(values(2, 0, 3), 2)],
                large=call(values(273, 257)), result="floating", absolute=True, ulps=8, **options)


def axes_of(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def as_real(x):
    """Returns the array in float64, or in its own wider dtype."""
    x = np.asarray(x)
    return x.astype(np.result_type(x, np.float64))


def real(function):
    """Returns a function of floats that also takes integers and bools, as their values."""
    return lambda x, *more, **named: function(as_real(x), *more, **named)


def are_bools(x, y):
    return all(isinstance(v, (bool, np.bool_)) or getattr(v, "dtype", None) == bool for v in (x, y))
