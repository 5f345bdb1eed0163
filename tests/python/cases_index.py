"""Samples of the ops of core/ops/index and index_parts that write by an index or a mask, and their references in NumPy."""
import numpy as np

from op_samples import Case, call, indices, values


def masks(*shape):
    return indices(2, *shape).astype(bool)


def np_scatter(x, axis, index, src, reduce="none"):
    out = np.array(x)
    for place in np.ndindex(*index.shape):
        target = list(place)
        if target:
            target[axis] = index[place]
        target = tuple(target)
        value = np.asarray(src if np.ndim(src) == 0 else src[place]).astype(out.dtype)
        if reduce == "multiply":
            out[target] = out[target] * value
        elif reduce == "add":
            out[target] = out[target] | value if out.dtype == bool else out[target] + value
        else:
            out[target] = value
    return out


def np_index_put(x, indices, values, accumulate=False, axis=0, wraps=True):
    out = np.array(x)
    key = (slice(None),) * axis + tuple(indices)
    if accumulate:
        np.add.at(out, key, values)
    else:
        out[key] = values
    return out


def key_of(axis, index):
    return (slice(None),) * axis + (np.atleast_1d(index),)


def np_index_add(x, axis, index, source, alpha=1):
    out = np.array(x)
    np.add.at(out, key_of(axis % x.ndim, index), (source * alpha).astype(out.dtype))
    return out


def np_index_copy(x, axis, index, source):
    out = np.array(x)
    out[key_of(axis % x.ndim, index)] = source
    return out


def np_index_fill(x, axis, index, value):
    out = np.array(x)
    out[key_of(axis % x.ndim, index)] = np.asarray(value).astype(out.dtype)
    return out


def np_masked_scatter(x, mask, source):
    out = np.array(x)
    mask = np.broadcast_to(mask, x.shape)
    out[mask] = source.reshape(-1)[:np.count_nonzero(mask)]
    return out


def np_take_along(x, indices, axis=None):
    indices = indices.astype(np.int64)
    if x.ndim == 0:
        return x.reshape(-1) if axis is None else x
    return np.take_along_axis(x, indices.reshape(-1), None) if axis is None else np.take_along_axis(x, indices, axis)


SCATTERS = [call(values(5, 3), 0, indices(5, 4, 3), values(4, 3)), call(values(3, 5), -1, indices(5, 2, 3), values(3, 9)),
            call(values(2, 3, 4), 1, indices(3, 2, 6, 3), values(2, 7, 4)), call(values(4), 0, np.zeros(3, np.int32), values(3)),
            call(values(), 0, np.array(0), values()), call(values(3, 5), 1, indices(5, 3, 1), 2), call(values(4), 0, indices(4, 3), 1),
            call(values(3, 5), 1, indices(5, 3, 2), values()),
            call(values(3, 4), 1, np.array([[0, 1], [2, 1], [3, 3]]), values(3, 2), reduce="multiply"),
            call(values(4), 0, np.array([1, 2, 1]), 2, reduce="multiply"), call(values(4), 0, np.array([1, 2, 1]), 1, reduce="add"),
            call(values(3, 5), 0, indices(3, 2, 4), values(2, 4), reduce="add")]
NO_SCATTERS = [call(values(5), 0, indices(5, 0), values(0)), call(values(0, 3), 0, indices(1, 0, 3), values(0, 3)),
               call(values(5), 0, indices(5, 0), values(0), reduce="multiply")]
LARGE_SCATTER = call(values(301, 270), 1, indices(270, 301, 250), values(301, 250))
PUTS = [call(values(5, 3), [indices(5, 4)], values(4, 3)), call(values(5, 3), [np.array([0, -1, 0]), np.array([2, 1, -3])], values(3)),
        call(values(5, 3), [np.array([4, 1])], values()), call(values(4, 3), [np.array([[0], [2]]), np.array([1, 2])], values(2, 2)),
        call(values(6), [np.array([1, 1, 3], np.int32)], values(3), True), call(values(3, 4), [indices(3, 5)], values(4), accumulate=True),
        call(values(3, 4), [np.array([True, False, True])], values(2, 4)),
        call(values(2, 3), [np.array([[True, False, True], [False, True, False]])], values(3), True),
        call(values(2, 3, 4), [indices(3, 2), indices(4, 2)], values(2, 2), axis=1), call(values(3), [np.array(1)], values())]
NO_PUTS = [call(values(5, 3), [indices(5, 0)], values(0, 3)), call(values(3, 0), [indices(3, 2)], values(2, 0))]
LARGE_PUT = call(values(131, 70), [indices(131, 1001)], values(1001, 70, low=-0.1, high=0.1), True)
ADDS = [call(values(5, 3), 0, np.array([0, 4, 0]), values(3, 3)), call(values(3, 5), -1, np.array([2, 1], np.int32), values(3, 2)),
        call(values(4), 0, np.array([1, 1, 1]), values(3)), call(values(2, 3, 4), 1, np.array([2]), values(2, 1, 4)),
        call(values(4), 0, np.array(2), values(1)), call(values(5, 3), 0, np.array([1, 3]), values(2, 3), alpha=2)]
NO_ADDS = [call(values(5, 3), 0, indices(5, 0), values(0, 3)), call(values(3, 0), 0, np.array([1, 1]), values(2, 0))]
LARGE_ADD = call(values(131, 70), 0, indices(131, 1001), values(1001, 70, low=-0.1, high=0.1))
COPIES = [c for c in ADDS if not c.named]
FILLS = [call(values(5, 3), 0, np.array([0, 4, 0]), 2), call(values(3, 5), -1, np.array([2, 1], np.int32), values()),
         call(values(4), 0, np.array(2), 1), call(values(2, 3, 4), 1, np.array([2]), True)]
NO_FILLS = [call(values(5, 3), 0, indices(5, 0), 1), call(values(3, 0), 0, np.array([1, 1]), 1)]
SOME = np.array([True, False, True, True, False])
MASKED = [call(values(3, 5), np.array([[True, False, True, True, False]] * 3), values(9)), call(values(2, 5), SOME, values(3, 4)),
          call(values(5), SOME, values(3)), call(values(), np.array(True), values(2))]
NO_MASKED = [call(values(0), masks(0), values(0)), call(values(2, 0, 3), masks(3), values(3))]
LARGE_MASKED = call(values(257, 273), masks(257, 273), values(257, 273))

CASES = {
    "take_along_dim": Case(np_take_along, [
        call(values(5, 3), indices(5, 4, 3), 0), call(values(3, 5), indices(5, 3, 9), axis=-1), call(values(3, 5), indices(15, 2, 2)),
        call(values(3, 1), indices(1, 3, 4), 1), call(values(3, 5), indices(3, 2, 1), 0), call(values(1, 5), np.array([[3], [0]], np.int32), 1),
        call(values(), np.array(0)), call(values(), np.array(0), 0)],
        empty=[call(values(5, 3), indices(5, 0, 3), 0), call(values(0, 3), indices(3, 0, 2), 1)],
        large=call(values(257, 273), indices(257, 300, 273), 0)),
}
for name, reference, calls, empty, large, options in (
        ("scatter", np_scatter, SCATTERS, NO_SCATTERS, LARGE_SCATTER, {"result": "x", "ulps": 16}),
        ("index_put", np_index_put, PUTS, NO_PUTS, LARGE_PUT, {"absolute": True, "ulps": 64}),
        ("index_add", np_index_add, ADDS, NO_ADDS, LARGE_ADD, {"absolute": True, "ulps": 64}),
        ("index_copy", np_index_copy, COPIES, NO_ADDS, LARGE_ADD, {}), ("index_fill", np_index_fill, FILLS, NO_FILLS, call(
            values(131, 601), 0, indices(131, 100), 1), {"result": "x"}),
        ("masked_scatter", np_masked_scatter, MASKED, NO_MASKED, LARGE_MASKED, {})):
    for form in (name, name + "_"):
        CASES[form] = Case(reference, calls, empty=empty, large=large, **options)
