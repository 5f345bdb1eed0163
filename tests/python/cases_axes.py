"""Samples of the ops of core/ops/axes and of repeats, and their references in NumPy."""
import numpy as np

from op_samples import Case, call, values


def np_flatten(x, start_axis=0, end_axis=-1):
    if x.ndim == 0:
        return x.reshape(1)
    first, last = start_axis % x.ndim, end_axis % x.ndim
    return x.reshape(*x.shape[:first], int(np.prod(x.shape[first:last + 1])), *x.shape[last + 1:])


def np_unflatten(x, axis, sizes):
    axis %= x.ndim
    known = int(np.prod([n for n in sizes if n != -1]))
    sizes = [x.shape[axis] // known if n == -1 else n for n in sizes]
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1:])


def np_narrow(x, axis, start, length):
    start = start + x.shape[axis] if start < 0 else start
    return np.take(x, np.arange(start, start + length), axis)


def np_unfold(x, axis, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis) if size else np.zeros(
        (*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1:], 0), x.dtype)
    return np.take(windows, np.arange(0, windows.shape[axis], step), axis)


def np_repeat(x, repeats, axis=None, output_size=None):
    return np.repeat(x, repeats, axis)


CASES = {
    "flatten": Case(np_flatten, [call(values(2, 3, 4)), call(values(2, 3, 4), 1), call(values(2, 3, 4), 0, 1), call(values(2, 3, 4), -2, -1),
                                 call(values()), call(values(5)), call(values(2, 3, 4), start_axis=1, end_axis=1)],
                    empty=[call(values(0, 3)), call(values(2, 0, 3), 1)], large=call(values(41, 43, 41), 1)),
    "unflatten": Case(np_unflatten, [call(values(2, 12), 1, (3, 4)), call(values(12), 0, (2, -1, 3)), call(values(6, 2), -2, (6,)),
                                     call(values(2, 3), axis=1, sizes=(3, 1))],
                      empty=[call(values(0, 6), 1, (2, 3)), call(values(0, 3), 0, (0, 2))], large=call(values(270, 273), 0, (27, 10))),
    "ravel": Case(lambda x: x.reshape(-1), [call(values(2, 3)), call(values()), call(values(5)), call(values(2, 3, 4))],
                  empty=[call(values(0, 3))], large=call(values(257, 273))),
    "movedim": Case(np.moveaxis, [call(values(2, 3, 4), 0, 2), call(values(2, 3, 4), (0, 1), (-1, 0)), call(values(2, 3), -1, 0),
                                  call(values(2, 3, 4, 2), (3, 0), (0, 1)), call(values(2, 3), (), ())],
                    empty=[call(values(2, 0, 3), 0, 1)], large=call(values(41, 43, 41), 0, 2)),
    "swapaxes": Case(np.swapaxes, [call(values(2, 3, 4), 0, 2), call(values(2, 3), -1, -2), call(values(2, 3), 1, 1)],
                     empty=[call(values(2, 0), 0, 1)], large=call(values(257, 273), 0, 1)),
    "narrow": Case(np_narrow, [call(values(5, 3), 0, 1, 3), call(values(5, 3), -1, -2, 2), call(values(5), 0, 5, 0), call(values(4), 0, 0, 4)],
                   empty=[call(values(0, 3), 0, 0, 0), call(values(2, 0), 0, 1, 1)], large=call(values(257, 400), 1, 0, 301)),
    "diagonal": Case(np.diagonal, [call(values(3, 5)), call(values(5, 3), 1), call(values(3, 5), -1), call(values(2, 3, 4), 0, 1, 2),
                                   call(values(2, 3, 4), 1, -1, 0), call(values(3, 3), 2), call(values(3, 3), offset=-2)],
                     empty=[call(values(0, 3)), call(values(3, 3), 3), call(values(2, 3), -9)], large=call(values(257, 273, 2), 5)),
    "diag": Case(lambda x, diagonal=0: np.diag(x, diagonal), [
        call(values(3, 5)), call(values(5, 3), 1), call(values(4)), call(values(3), 2), call(values(3), -1), call(values(1), diagonal=0)],
        empty=[call(values(0)), call(values(0), 2), call(values(0, 3)), call(values(2, 2), 5)], large=call(values(260), 3)),
    "unfold": Case(np_unfold, [call(values(7), 0, 3, 1), call(values(7), 0, 3, 2), call(values(7), 0, 2, 3), call(values(2, 6, 3), 1, 4, 2),
                               call(values(3, 5), 1, 5, 9), call(values(3, 5), axis=0, size=1, step=1)],
                   empty=[call(values(2, 0), 0, 1, 1), call(values(3), 0, 0, 1)], large=call(values(3, 30_011), 1, 3, 1)),
    "repeat_interleave": Case(np_repeat, [
        call(values(3), 2), call(values(2, 3), 2), call(values(2, 3), 3, 1), call(values(2, 3), 2, axis=-2), call(values(3), np.array([2, 0, 3])),
        call(values(2, 3), np.array([1, 2], np.int32), 0), call(values(2, 3), np.array(2), 1), call(values(4), np.array([3]), 0),
        call(values(), 3), call(values(3), 0)],
        empty=[call(values(0), 2), call(values(0, 3), 2, 1), call(values(2, 3), np.array([0, 0]), 0)],
        large=call(values(257, 273), np.arange(273) % 3, 1), result="x"),
}
