"""Samples of the ops of core/ops/search, and their references in NumPy."""
import numpy as np

from op_samples import Case, call, indices, values
from op_table import FLOATS


def np_searchsorted(sorted_sequence, x, out_int32=False, right=False):
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, x, side)
    out = np.zeros(x.shape, np.int64)
    for row in np.ndindex(*x.shape[:-1]):
        out[row] = np.searchsorted(sorted_sequence[row], x[row], side)
    return out


def np_histc(x, bins=100, min=0, max=0):
    low, high = (min, max) if min != max else (x.min(), x.max()) if x.size else (0, 0)
    low, high = (low, high) if low != high else (low - 1, high + 1)
    return np.histogram(x, bins, (low, high))[0]


def ordered(*shape):
    """Sorted values above 0, since uint8 gets the values without their sign."""
    return np.sort(values(*shape, low=0.1, high=4.0), -1)


def repeated(*shape):
    return np.rint(values(*shape) * 1.5) / 1.5


CASES = {
    "searchsorted": Case(np_searchsorted, [
        call(ordered(7), values(3, 5)), call(ordered(7), values()), call(ordered(2, 6), values(2, 4)), call(ordered(2, 3, 5), values(2, 3, 2)),
        call(np.repeat(ordered(3), 3), np.repeat(ordered(3), 1), right=True), call(np.repeat(ordered(3), 3), ordered(3)), call(ordered(5), 1),
        call(ordered(1), values(4))],
        empty=[call(ordered(0), values(3)), call(ordered(5), values(0)), call(ordered(0, 4), values(0, 2)), call(ordered(2, 0), values(2, 3))],
        large=call(ordered(301), values(257, 273)), result="index"),
    "bucketize": Case(lambda x, boundaries, out_int32=False, right=False: np_searchsorted(boundaries, x, right=right), [
        call(values(3, 5), ordered(7)), call(values(), ordered(4)), call(ordered(3), np.repeat(ordered(3), 2), right=True), call(1, ordered(5))],
        empty=[call(values(0), ordered(5)), call(values(3), ordered(0))], large=call(values(257, 273), ordered(301)), result="index"),
    "unique": Case(lambda x, axis=None: np.unique(x, axis=axis), [
        call(repeated(9)), call(repeated(3, 5)), call(values()), call(repeated(6, 2), axis=0), call(repeated(2, 7), axis=-1),
        call(repeated(4, 2, 2), axis=0), call(np.zeros(4))],
        empty=[call(values(0)), call(values(2, 0))], large=call(repeated(257, 273))),
    "bincount": Case(lambda x, minlength=0: np.bincount(x, minlength=minlength), [
        call(indices(5, 9)), call(indices(3, 4).astype(np.int32), minlength=7), call(np.array([4])), call(indices(4, 6).astype(np.uint8))],
        empty=[call(indices(1, 0)), call(indices(1, 0), minlength=3)], large=call(indices(300, 70_001)), result="index"),
    "histc": Case(np_histc, [
        call(values(9), 4, -2, 2), call(values(3, 5), 8, -1, 1), call(values(7), bins=5), call(values(4)), call(values(), 3), call(values(9), 4, 5, 7)],
        empty=[call(values(0), 4, 0, 1), call(values(0), 3)], large=call(values(257, 273), 64, -2, 2), dtypes=FLOATS),
}
