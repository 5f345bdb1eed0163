"""Samples of the ops of core/ops/shape, arrange and index, and their references in NumPy."""
import numpy as np

from op_samples import Case, call, indices, unary, values


def np_roll(x, shifts, axes=None):
    return np.roll(x, shifts if isinstance(shifts, int) else tuple(shifts), axes if axes is None else tuple(axes))


def np_pad(x, padding, mode="constant", value=0):
    pairs = [(0, 0)] * x.ndim
    for i in range(len(padding) // 2):
        pairs[x.ndim - 1 - i] = tuple(padding[2 * i:2 * i + 2])
    for axis, (before, after) in enumerate(pairs):  # a negative number takes away
        items = [slice(None)] * x.ndim
        items[axis] = slice(max(-before, 0), x.shape[axis] + min(after, 0))
        x = x[tuple(items)]
    pairs = [(max(b, 0), max(a, 0)) for b, a in pairs]
    if mode == "constant":
        return np.pad(x, pairs, mode, constant_values=value)
    return np.pad(x, pairs, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def np_gather(x, axis, index):
    if x.ndim == 0:
        return x
    within = tuple(slice(None if i == axis % x.ndim else n) for i, n in enumerate(index.shape))
    return np.take_along_axis(x[within], index.astype(np.int64), axis)


def np_scatter_add(x, axis, index, src):
    out = np.array(x)
    for place in np.ndindex(*index.shape):
        target = list(place)
        if target:
            target[axis] = index[place]
        out[tuple(target)] = out[tuple(target)] | src[place] if out.dtype == bool else out[tuple(target)] + src[place]
    return out


def np_masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def masks(*shape):
    return indices(2, *shape).astype(bool)


def np_masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


FILLS = [call(values(3, 5), masks(3, 5), 2), call(values(2, 3, 4), masks(3, 1), 1), call(values(4), masks(), 0),
         call(values(), np.array(True), 1), call(values(7), np.ones(7, bool), True), call(values(3, 5), masks(5), values())]
NO_FILLS = [call(values(0), masks(0), 1), call(values(2, 0, 3), masks(3), 1)]
# Sums of samples are small integers for integer dtypes; the last of the large calls names every place many times.
SCATTERS = [call(values(5, 3), 0, indices(5, 4, 3), values(4, 3)), call(values(3, 5), -1, indices(5, 2, 9), values(3, 9)),
            call(values(2, 3, 4), 1, indices(3, 2, 6, 3), values(2, 7, 4)), call(values(4), 0, np.zeros(6, np.int32), values(6)),
            call(values(), 0, np.array(0), values())]
NO_SCATTERS = [call(values(5), 0, indices(5, 0), values(0)), call(values(0, 3), 0, indices(1, 0, 3), values(0, 3))]
LARGE_SCATTER = call(values(131), 0, indices(131, 70_001), values(70_001, low=-0.02, high=0.02))

CASES = {
    "stack": Case(lambda tensors, axis=0: np.stack(tensors, axis), [
        call([values(2, 3), values(2, 3)]), call([values(2, 3), values(2, 3), values(2, 3)], 1), call([values(3), values(3)], -1), call([values()], 0)],
        empty=[call([values(0), values(0)]), call([values(2, 0)], 2)], large=call([values(257, 150), values(257, 150)], 1)),
    "gather": Case(np_gather, [
        call(values(5, 3), 0, indices(5, 4, 3)), call(values(3, 5), -1, indices(5, 2, 9)), call(values(2, 3, 4), 1, indices(3, 2, 6, 3)),
        call(values(4), 0, np.array([3, 3, 0], np.int32)), call(values(), 0, np.array(0))],
        empty=[call(values(5, 3), 0, indices(5, 0, 3)), call(values(0, 3), 1, indices(3, 0, 2))],
        large=call(values(257, 273), 0, indices(257, 300, 273))),
    "scatter_add": Case(np_scatter_add, SCATTERS, empty=NO_SCATTERS, large=LARGE_SCATTER, absolute=True, ulps=200),
    "scatter_add_": Case(np_scatter_add, SCATTERS, empty=NO_SCATTERS, large=LARGE_SCATTER, absolute=True, ulps=200),
    "nonzero": Case(lambda x: np.argwhere(x), [
        call(np.array([[0.0, 1.5, 0.0], [-2.0, 0.0, 0.5]])), call(values(2, 3, 4) * indices(2, 2, 3, 4)), call(values(7)), call(values()),
        call(np.zeros(())), call(np.zeros((2, 2)))],
        empty=[call(values(0)), call(values(2, 0, 3))], large=call(values(257, 273) * indices(2, 257, 273)), result="index"),
    "masked_select": Case(np_masked_select, [
        call(values(3, 5), masks(3, 5)), call(values(2, 3, 4), masks(3, 1)), call(values(4), masks(3, 1)), call(values(3), np.array(True)),
        call(values(), np.array(True)), call(values(), np.array(False)), call(values(7), np.zeros(7, bool))],
        empty=[call(values(0), masks(0)), call(values(2, 0, 3), masks(3))], large=call(values(257, 273), masks(257, 273))),
    "masked_fill": Case(np_masked_fill, FILLS, empty=NO_FILLS, large=call(values(257, 273), masks(273), 3), result="x"),
    "masked_fill_": Case(np_masked_fill, FILLS, empty=NO_FILLS, large=call(values(257, 273), masks(273), 3), result="x"),
    "pad": Case(np_pad, [
        call(values(3, 5), (1, 2)), call(values(3, 5), (1, 2, 0, 1), "constant", 3), call(values(2, 3, 4), (0, 1, 2, 1, 1, 0), value=2),
        call(values(3, 5), (-1, 2)), call(values(3, 5), (-1, -1, 1, 1)), call(values(7), ()), call(values(2, 5), (2, 3), "reflect"),
        call(values(4, 5), (4, 1, 3, 0), mode="reflect"), call(values(2, 5), (6, 1), "replicate"), call(values(3, 2), (0, 0, 1, 4), "replicate"),
        call(values(2, 5), (5, 2), "circular"), call(values(3, 4), (1, 0, 0, 3), "circular")],
        empty=[call(values(0, 3), (1, 1)), call(values(0), (2, 0), "constant", 1), call(values(0, 3), (1, 1), "reflect")],
        large=call(values(257, 273), (3, 1, 0, 2), "reflect")),
    "flip": Case(lambda x, axes: np.flip(x, tuple(axes)), [
        call(values(7), [0]), call(values(3, 5), [0, -1]), call(values(2, 3, 4), [1]), call(values(2, 3), []), call(values(1, 3), [0])],
        empty=[call(values(0, 3), [0]), call(values(2, 0), [0, 1])], large=call(values(257, 273), [0, 1])),
    "roll": Case(np_roll, [
        call(values(7), 2), call(values(3, 5), -4), call(values(3, 5), [1], [0]), call(values(2, 3, 4), [1, -2], [2, 0]),
        call(values(3, 4), [7, 1], [1, 1]), call(values(3), [0], [0]), call(values(5), [-11], [-1])],
        empty=[call(values(0), 3), call(values(2, 0), [1, 1], [0, 1])], large=call(values(257, 273), [100, -7], [0, 1])),
    "tile": Case(lambda x, reps: np.tile(x, tuple(reps)), [
        call(values(3), [2]), call(values(2, 3), [3, 2]), call(values(2, 3), [2]), call(values(3), [2, 1, 2]), call(values(), [3, 2]),
        call(values(2, 3), [1, 1]), call(values(2), []), call(values(1), [4])],
        empty=[call(values(0, 3), [2, 1]), call(values(2, 3), [0, 2]), call(values(2), [2, 0])], large=call(values(101, 103), [3, 4])),
    "tril": Case(lambda x, diagonal=0: np.tril(x, diagonal), [call(values(3, 5)), call(values(5, 3), 1), call(values(2, 4, 4), -1), call(values(3, 3), 9),
                           call(values(3, 3), diagonal=-9), call(values(1, 1))],
                 empty=[call(values(0, 3)), call(values(3, 0)), call(values(0, 2, 2))], large=call(values(257, 273), 5)),
    "triu": Case(lambda x, diagonal=0: np.triu(x, diagonal), [call(values(3, 5)), call(values(5, 3), 1), call(values(2, 4, 4), -1), call(values(3, 3), 9),
                           call(values(3, 3), diagonal=-9), call(values(1, 1))],
                 empty=[call(values(0, 3)), call(values(3, 0)), call(values(0, 2, 2))], large=call(values(257, 273), 5)),
}
