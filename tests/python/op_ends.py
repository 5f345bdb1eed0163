"""Calls of op_cases.py with numbers at the ends of a dtype's range, and their expected results and gradients.

References run in long double, whose range holds all results of a float64 with such numbers. Gradients of narrower dtypes are
compared with float64's gradients, and float64's gradients with differences in long double.
"""
import itertools

import numpy as np

from op_harness import inputs_of, is_array, is_value, map_arrays
from op_samples import Call
from op_table import EPSILON, OPS, as_dtype

LIMITS = {"float64": (np.finfo(np.float64).tiny, np.finfo(np.float64).max),
          "float32": (np.finfo(np.float32).tiny, np.finfo(np.float32).max),
          "bfloat16": (np.finfo(np.float32).tiny, 255 * 2.0**120), "float16": (2.0**-14, 65504.0)}
SUMMED = 64  # number of elements of the largest size whose sum does not overflow


def ends_of(dtype):
    """Returns the least magnitudes of values; up to 1.5 times each magnitude, values are normal numbers too."""
    least, most = LIMITS[dtype]
    middle = {"float64": (1e-200, 1e-30, 1.0, 1e30, 1e200), "float16": (1e-3, 1.0, 1e3)}
    return (least, *middle.get(dtype, (1e-30, 1.0, 1e30)), most / 2)


def _sized(array, magnitude, positive=False):
    """Returns the sample's signs, in sizes from `magnitude` to 1.5 times `magnitude`. Different values stay different, also in size
    from values with another sign.
    """
    part = 1 + (1 + array / max(float(np.abs(array).max(initial=0)), 1.0)) / 4
    return np.where((array < 0) & (not positive), -1.0, 1.0) * part * magnitude


def changed(call, change, is_changed=is_value):
    """The call with its k-th array made of change(k, array)."""
    count = iter(range(100))
    args, named = map_arrays(lambda a: np.asarray(change(next(count), a)) if is_changed(a) else a, call)
    return Call(tuple(args), named)


def is_elementwise(name, call):
    """Returns whether each element of the result depends on a single element of each argument, and gradients are no sums either."""
    shapes = []
    map_arrays(lambda a: shapes.append(a.shape), call)
    inner = OPS.get(name[:-1]) if OPS[name].family == "inplace" else OPS[name]
    return inner is not None and inner.family == "pointwise" and len(set(shapes)) == 1


def calls_of(name, case, most):
    """Returns some small calls for each set of other arguments than arrays, elementwise calls first."""
    small = [c for c in case.calls if 0 < sum(a.size for a in inputs_of(c)) <= 40]
    alone = {str([a for a in c.args if not is_array(a)]) + str(c.named): c for c in reversed(small) if is_elementwise(name, c)}
    rest = sorted((c for c in small if not is_elementwise(name, c)), key=lambda c: not any(a.ndim for a in inputs_of(c)))
    return [*alone.values(), *rest[:most]]


def _every_combination(call, ends):
    """Each element of each array in each of the sizes, beside each size of the others."""
    combinations = list(itertools.product(ends, repeat=len(inputs_of(call))))
    values = iter(range(100))

    def grown(_, a):
        if not is_value(a):
            return np.concatenate([a.reshape(-1)] * len(combinations))
        k = next(values)
        return np.concatenate([_sized(a, sizes[k]).reshape(-1) for sizes in combinations])
    return changed(call, grown, is_array)


def variants(name, call, dtype):
    """Yields (text, call). Elementwise calls get all sizes at once. Other calls get all inputs of the same size, and each input in
    turn beside inputs near 1.

    For sums the largest size comes with a single sign, and also smaller, so that no partial sum overflows.
    """
    ends = ends_of(dtype)
    if is_elementwise(name, call):
        yield "all sizes", _every_combination(call, ends)
        return
    sizes = [(f"{end:.3g}", end, False) for end in (*ends[:-1], ends[-1] / SUMMED)] + [("near max, of one sign", ends[-1] / 2, True)]
    count = len(inputs_of(call))
    for what, end, positive in sizes:
        yield what, changed(call, lambda _, a: _sized(a, end, positive))
        for k in range(count if count > 1 and end in (ends[0], ends[-1] / SUMMED, ends[-1] / 2) else 0):
            yield f"{what} in input {k}", changed(call, lambda i, a: _sized(a, end if i == k else 1.0, positive))


def rounded(call, dtype):
    """Returns the call with its values rounded by the dtype, in float64."""
    return changed(call, lambda _, a: np.asarray(as_dtype(a, dtype)).astype(np.float64))


def wide_value(case, call):
    """The reference's result in long double."""
    args, named = map_arrays(lambda a: a.astype(np.longdouble) if is_value(a) else a, call)
    with np.errstate(all="ignore"):
        return np.asarray(case.reference(*args, **named))


def upstream(shape):
    """Returns a gradient of the result: near 1, with different elements, because equal elements would cancel."""
    return np.asarray(0.5 + np.arange(1, 1 + np.prod(shape, dtype=int)) * 0.618 % 1).reshape(shape)


def _rise(case, call, k, where, step):
    """Returns the rise of the result, for 1, in a step of the k-th input."""
    ends = [wide_value(case, changed(call, lambda i, a: np.where(where, a.astype(np.longdouble) + sign * step, a) if i == k else a))
            for sign in (1, -1)]
    with np.errstate(all="ignore"):
        return (ends[0] - ends[1]) * upstream(ends[0].shape)


def wide_gradients(case, call, elementwise):
    """Returns gradients of the result, weighed by upstream(), by central differences in long double; NaN where two steps do not
    agree.
    """
    found = []
    for k, x in enumerate(inputs_of(call)):
        steps = [np.abs(x).astype(np.longdouble) * np.longdouble(2)**-n for n in (14, 15)]
        slopes = []
        for step in steps:
            if elementwise:
                slopes.append(_rise(case, call, k, True, step) / (2 * step))
                continue
            slope = np.zeros(x.shape, np.longdouble)
            for at in np.ndindex(*x.shape):
                where = np.zeros(x.shape, bool)
                where[at] = True
                slope[at] = np.sum(_rise(case, call, k, where, step)) / (2 * step[at])
            slopes.append(slope)
        with np.errstate(all="ignore"):
            found.append(np.where(np.abs(slopes[0] - slopes[1]) <= 2.0**-26 * np.abs(slopes[1]), slopes[1], np.nan))
    return found


def faults(got, want, dtype, error, absolute):
    """Returns [(got, want)] where `want` is a normal number of the dtype and `got` is not near `want`. `error` is relative."""
    least, most = LIMITS[dtype]
    got, want = np.asarray(got, np.longdouble), np.asarray(want, np.longdouble)
    with np.errstate(all="ignore"):
        size = np.abs(want)
        judged = (size >= least * (1 + EPSILON[dtype])) & (size <= most * (1 - EPSILON[dtype]))
        scale = np.maximum(size, np.max(size[judged], initial=0)) if absolute else size
        wrong = judged & ~(np.abs(got - want) <= error * scale)
    return list(zip(got[wrong].astype(float), want[wrong].astype(float)))
