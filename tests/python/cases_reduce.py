"""Samples of reductions, cumsum, sort and topk, and their references in NumPy."""
import numpy as np

from op_samples import Case, as_real, axes_of, call, reduction, values
from op_table import FLOATS


def over(function):
    """Returns a reduction of NumPy with Yoke's argument names: `axis` may be a list, and () reduces no axis."""
    def reference(x, axis=None, keepdim=False, **named):
        return function(x, axis=axes_of(axis), keepdims=keepdim, **named)
    return reference


def np_var(x, axis=None, keepdim=False, correction=1):
    with np.errstate(all="ignore"):
        count = np.sum(np.ones_like(x), axis=axes_of(axis), keepdims=True)
        mean = np.sum(x, axis=axes_of(axis), keepdims=True) / count
        squares = np.sum((x - mean) ** 2, axis=axes_of(axis), keepdims=keepdim)
        return squares / np.maximum(0, count.reshape(squares.shape) - correction)


def np_norm(x, p=2.0, axis=None, keepdim=False):
    size, named = np.abs(x), {"axis": axes_of(axis), "keepdims": keepdim}
    if p == 0:
        return np.sum(size != 0, **named).astype(np.float64)
    if np.isinf(p):
        return np.max(size, **named) if p > 0 else np.min(size, **named)
    return np.sum(size**p, **named) ** (1 / p)


def np_logsumexp(x, axis=None, keepdim=False):
    x = as_real(x)
    top = np.max(x, axis=axes_of(axis), keepdims=True, initial=-np.inf)
    shift = np.where(np.isinf(top), 0, top)
    total = np.log(np.sum(np.exp(x - shift), axis=axes_of(axis), keepdims=True)) + shift
    return total if keepdim else total.reshape(np.sum(x, axis=axes_of(axis)).shape)


def np_cumsum(x, axis):
    return np.cumsum(x, axis=axis) if x.ndim else x


def np_order(x, axis=-1, descending=False):
    """Stable: where it descends, the first of equals is found by sorting the negated ranks."""
    if x.ndim == 0:
        return np.zeros((), np.int64)
    ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-ranks if descending else ranks, axis=axis, kind="stable")


def np_sort(x, axis=-1, descending=False):
    return np.take_along_axis(x, np_order(x, axis, descending), axis) if x.ndim else x


def np_topk(x, k, axis=-1, largest=True, sorted=True):
    return np.take(np_sort(x, axis, largest), np.arange(k), axis) if x.ndim else x


# Products of these values neither vanish nor overflow in any dtype.
NEAR_ONE = np.where(values(273, 257) > 0, 1.0, -1.0)

CASES = {
    "amin": reduction(over(lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims) if axis != () else x),
                      keep_empty=False),
    "argmin": reduction(lambda x, axis=None, keepdim=False: np.argmin(x, axis=axis, keepdims=keepdim), keep_empty=False,
                        takes_lists=False, result="index"),
    "all": reduction(over(np.all), result="bool"),
    "any": reduction(over(np.any), result="bool"),
    "prod": reduction(over(np.prod), result="sum"),
    "var": reduction(np_var, dtypes=FLOATS),
    "std": reduction(lambda *args, **named: np.sqrt(np_var(*args, **named)), dtypes=FLOATS),
    "norm": reduction(np_norm, dtypes=FLOATS, ulps=8),
    "logsumexp": reduction(np_logsumexp, result="floating"),
    "cumsum": Case(np_cumsum, [call(values(3, 5), 0), call(values(3, 5), axis=-1), call(values(2, 3, 4), 1), call(values(7), 0),
                               call(values(), 0), call(values(1, 1), 1)],
                   empty=[call(values(0, 3), 0), call(values(3, 0), 0), call(values(2, 0, 3), 2)],
                   large=call(values(273, 257), 0), result="sum", absolute=True),
    "sort": Case(np_sort, [call(values(3, 5)), call(values(3, 5), 0), call(values(2, 3, 4), axis=1, descending=True),
                           call(values(300)), call(values(300), -1, True), call(values()), call(values(1, 1))],
                 empty=[call(values(0, 3)), call(values(3, 0)), call(values(2, 0, 3), 0)], large=call(values(273, 257), 0)),
    "argsort": Case(np_order, [call(values(3, 5)), call(values(3, 5), 0), call(values(2, 3, 4), axis=1, descending=True),
                               call(values(300)), call(values(300), -1, True), call(values()), call(values(1, 1))],
                    empty=[call(values(0, 3)), call(values(3, 0)), call(values(2, 0, 3), 0)], large=call(values(273, 257), 0),
                    result="index"),
    "topk": Case(np_topk, [call(values(3, 5), 2), call(values(3, 5), 3, 0), call(values(2, 3, 4), 1, axis=1, largest=False),
                           call(values(300), 7), call(values(300), 290, largest=False), call(values(), 1),
                           call(values(3, 4), 4, -1, True, False)],
                 empty=[call(values(0, 3), 2), call(values(3, 4), 0), call(values(2, 0, 3), 2, 2)],
                 large=call(values(273, 257), 5)),
}
def kth(k_of):
    """Values of a rank along an axis: Yoke's first result."""
    def reference(x, *args, axis=-1, keepdim=False, **named):
        if x.ndim == 0:
            return x
        k, axis = k_of(x, axis, *args, **named)
        values_ = np.take(np.sort(x, axis), [k], axis)
        return values_ if keepdim else np.squeeze(values_, axis)
    return reference


def np_median(x, axis, keepdim=False):
    return kth(lambda x, axis: ((x.shape[axis] - 1) // 2, axis))(x, axis=axis, keepdim=keepdim)


def np_kthvalue(x, k, axis=-1, keepdim=False):
    return kth(lambda x, axis: (k - 1, axis))(x, axis=axis, keepdim=keepdim)


def np_mode(x, axis=-1, keepdim=False):
    def of_row(row):
        found, counts = np.unique(row, return_counts=True)
        return found[np.argmax(counts)]
    if x.ndim == 0:
        return x
    modes = np.apply_along_axis(of_row, axis, x).astype(x.dtype) if x.size else np.zeros(np.delete(x.shape, axis), x.dtype)
    return np.expand_dims(modes, axis) if keepdim else modes


def extreme(function):
    def reference(x, axis=None, keepdim=False):
        return x if x.ndim == 0 else function(x, axis=axis, keepdims=keepdim)
    return reference


def np_aminmax(x, axis=None, keepdim=False):
    """Returns what a case judges: of floats the second result, of others the first."""
    return extreme(np.max if x.dtype.kind == "f" else np.min)(x, axis, keepdim)


def np_quantile(x, q, axis=None, keepdim=False, interpolation="linear"):
    with np.errstate(all="ignore"):
        return np.quantile(x, q, axis=axis, keepdims=keepdim, method=interpolation)


def np_count_nonzero(x, axis=None):
    return np.count_nonzero(x, axis=axes_of(axis)) if axis != () else (x != 0).astype(np.int64)


def np_cumprod(x, axis):
    return np.cumprod(x, axis=axis) if x.ndim else x


def along(extra=(), **options):
    """Calls along an axis, by name, with keepdim; `extra` stands before the axis."""
    return dict(calls=[call(values(3, 5), *extra, axis=0), call(values(3, 5), *extra, axis=-1, keepdim=True),
                       call(values(2, 3, 4), *extra, axis=1), call(values(7), *extra, axis=0), call(values(), *extra, axis=0),
                       call(values(300), *extra, axis=0), call(values(3, 1, 2), *extra, axis=1)],
                empty=[call(values(0, 3), *extra, axis=1), call(values(2, 0, 3), *extra, axis=2)],
                large=call(values(273, 257), *extra, axis=0), **options)


CASES |= {
    "cumprod": Case(np_cumprod, [call(values(3, 5), 0), call(values(3, 5), axis=-1), call(values(2, 3, 4), 1), call(values(7), 0),
                                 call(values(), 0), call(values(1, 1), 1)],
                    empty=[call(values(0, 3), 0), call(values(3, 0), 0), call(values(2, 0, 3), 2)],
                    large=call(NEAR_ONE, 0), result="sum", ulps=8),
    "max": Case(extreme(np.max), **along()),
    "min": Case(extreme(np.min), **along()),
    "median": Case(np_median, **along()),
    "kthvalue": Case(np_kthvalue, **along((1,))),
    "mode": Case(np_mode, **along()),
    "aminmax": Case(np_aminmax, [call(values(3, 5)), call(values(2, 3, 4), axis=1), call(values(7), axis=0, keepdim=True),
                                 call(values(3, 4), keepdim=True), call(values())],
                    empty=[call(values(0, 3), axis=1)], large=call(values(273, 257), axis=0)),
    "var_mean": reduction(over(np.mean), keep_empty=False, dtypes=FLOATS),
    "std_mean": reduction(over(np.mean), keep_empty=False, dtypes=FLOATS),
    "count_nonzero": Case(np_count_nonzero, [call(values(3, 5)), call(values(3, 5), 0), call(values(2, 3, 4), axis=(0, 2)), call(values()),
                                             call(values(2, 3), axis=-1)],
                          empty=[call(values(0)), call(values(0, 3), 0), call(values(0, 3), 1)],
                          large=call(values(273, 257), 0), result="index"),
    "quantile": Case(np_quantile, [
        call(values(7), 0.3), call(values(3, 5), 0.5, 0), call(values(2, 3, 4), 0.9, axis=1, keepdim=True), call(values(), 0.5),
        call(values(3, 5), 0.0), call(values(3, 5), 1, 1), call(values(3, 4), 0.7, keepdim=True),
        *(call(values(3, 6), 0.33, 1, interpolation=name) for name in ("lower", "higher", "midpoint", "nearest"))],
        empty=[call(values(0, 3), 0.5, 1)], large=call(values(273, 257), 0.4, 0), dtypes=FLOATS, absolute=True),
}
CASES["kthvalue"].calls += [call(values(3, 5), 4), call(values(2, 3, 4), 2, 1, True), call(values(300), 150)]
for name in ("var_mean", "std_mean"):
    CASES[name].calls = [c for c in CASES[name].calls if c.args[0].size > 1 and c.named.get("axis") != ()]
    CASES[name].calls = [c for c in CASES[name].calls if c.args[0].shape != (3, 1, 2)]
for name in ("var", "std"):
    # Slices of a single element are for test_ops_reduce.py, because no divisor is left. Here every slice has at least
    # two.
    CASES[name].calls = [c for c in CASES[name].calls if c.args[0].size > 1 and c.named.get("axis") != ()]
    CASES[name].calls = [c for c in CASES[name].calls if c.args[0].shape != (3, 1, 2)]
    CASES[name].calls += [call(values(3, 5), correction=0), call(values(4, 6), 0, True, 2), call(values(), correction=0)]
CASES["std"].calls = CASES["std"].calls[:-1]  # the root has no slope at 0
for p in (0.0, 1, 3.5, 0.5, -1.0, float("inf"), -float("inf")):
    # No two of one magnitude: ties are for test_ops_reduce.py.
    CASES["norm"].calls += [call(values(3, 5, low=-1.7), p), call(values(2, 3, 4, low=-1.7), p, (0, 2), True)]
CASES["norm"].empty += [call(values(3, 0), 1.0, axis=0), call(values(3, 0), 0.0)]
CASES["prod"].large = call(NEAR_ONE, axis=0)
