"""Samples of every op and its reference in NumPy, for the table-driven op tests. More samples stand in cases_<family>.py."""
import math

import numpy as np

import cases_axes
import cases_conv
import cases_functions
import cases_index
import cases_loss
import cases_matmul
import cases_norm
import cases_pointwise
import cases_pool
import cases_reduce
import cases_resize
import cases_search
import cases_shape
from cases_loss import np_log_softmax
from op_samples import (SHAPES, Case, along_axis, are_bools, as_real, axes_of, binary, call, indices, real, reduction, unary, values)
from op_table import FLOATS, NUMBERS

# ---- references ------------------------------------------------------------------------------------------------------


def np_div(x, y):
    return as_real(x) / y


def np_gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)), otypes=[float])(x)


def np_amax(x, axis=None, keepdim=False):
    return np.max(x, axis=axes_of(axis), keepdims=keepdim) if axis != () else x


def np_sum(x, axis=None, keepdim=False, dtype=None):
    return np.sum(x, axis=axes_of(axis), keepdims=keepdim)


def np_mean(x, axis=None, keepdim=False):
    count = np.sum(np.ones_like(x), axis=axes_of(axis), keepdims=keepdim)
    with np.errstate(all="ignore"):
        return np.sum(x, axis=axes_of(axis), keepdims=keepdim) / count


def np_slice(x, axis, start=None, stop=None, step=1):
    items = [slice(None)] * x.ndim
    items[axis] = slice(start, stop, step)
    return x[tuple(items)]


def np_expand(x, shape):
    extra = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - extra] if n == -1 else n for i, n in enumerate(shape)])


def np_one_hot(x, num_classes=-1):
    return np.eye(int(x.max()) + 1 if num_classes == -1 else num_classes, dtype=np.int64)[x]


def np_dropout(x, p=0.5, training=True):
    """Keeps all elements, or no element; Philox decides other cases (test_ops_random.py)."""
    return np.zeros_like(x) if training and p == 1 else x


# ---- the cases -------------------------------------------------------------------------------------------------------


CASES = {
    "add": binary(lambda x, y: np.logical_or(x, y) if are_bools(x, y) else np.add(x, y)),
    "sub": binary(np.subtract, dtypes=NUMBERS),
    "mul": binary(lambda x, y: np.logical_and(x, y) if are_bools(x, y) else np.multiply(x, y)),
    "div": binary(np_div, y_low=0.6, y_high=2.0, result="floating"),
    "neg": unary(np.negative, dtypes=NUMBERS),
    "exp": unary(real(np.exp), result="floating"),
    "log": unary(real(np.log), low=0.3, high=4.0, result="floating"),
    "relu": unary(lambda x: np.maximum(x, 0), dtypes=NUMBERS),
    "tanh": unary(real(np.tanh), result="floating"),
    "gelu": unary(real(np_gelu), low=-5.0, high=5.0, result="floating", ulps=24,
                  more=[call(values(3, 5), "tanh"), call(values(4), approximate="tanh"), call(values(4), "none")]),
    "clone": unary(np.array),
    "contiguous": unary(np.array),
    "copy_": Case(lambda x, src: np.broadcast_to(src, x.shape),
                  [call(values(3, 5), values(3, 5)), call(values(2, 3, 4), values(3, 1)), call(values(4), values()),
                   call(values(), values())],
                  empty=[call(values(0), values(0)), call(values(0, 3), values(3))],
                  large=call(values(257, 273), values(273))),
    "fill_": Case(np.full_like, [call(values(3, 5), 2), call(values(2, 3, 4), True), call(values(), 0)],
                  empty=[call(values(0, 3), 1)], large=call(values(257, 273), 3)),
    "add_": Case(lambda x, y: np.logical_or(x, y) if are_bools(x, y) else np.add(x, y),
                 [call(values(3, 5), values(3, 5)), call(values(2, 3, 4), values(3, 1)), call(values(4), True),
                  call(values(), values())],
                 empty=[call(values(0), values(0)), call(values(2, 0), values(1, 1))],
                 large=call(values(257, 273), values(273))),
    "sum": reduction(np_sum, result="sum"),
    "mean": reduction(np_mean, dtypes=FLOATS),
    "amax": reduction(np_amax, keep_empty=False),
    "argmax": reduction(lambda x, axis=None, keepdim=False: np.argmax(x, axis=axis, keepdims=keepdim), keep_empty=False,
                        takes_lists=False, result="index"),
    "softmax": along_axis(lambda x, axis=-1: np.exp(np_log_softmax(x, axis))),
    "log_softmax": along_axis(np_log_softmax),
    "matmul": Case(np.matmul, [
        call(values(3, 4), values(4, 5)), call(values(4), values(4)), call(values(3, 4), values(4)),
        call(values(4), values(4, 2)), call(values(2, 3, 4), values(4, 5)), call(values(2, 3, 4), values(2, 4, 3)),
        call(values(2, 1, 3, 2), values(3, 2, 4)), call(values(4), values(2, 4, 3)), call(values(2, 3, 4), values(4)),
        call(values(1, 1), values(1, 1)), call(values(20, 17), values(17, 19)), call(values(3, 4), values(2, 4, 3))],
        empty=[call(values(0, 4), values(4, 5)), call(values(3, 0), values(0, 5)), call(values(3, 4), values(4, 0)),
               call(values(0), values(0)), call(values(2, 3, 0), values(0, 4)), call(values(0, 3, 4), values(4, 2)),
               call(values(2, 0, 4), values(2, 4, 3))],
        large=call(values(129, 301), values(301, 257)), dtypes=NUMBERS, ulps=16, absolute=True),
    "reshape": Case(np.reshape, [call(values(3, 4), (2, 6)), call(values(3, 4), (-1,)), call(values(2, 3, 4), (4, -1, 3)),
                                 call(values(), (1, 1)), call(values(1), ())],
                    empty=[call(values(0, 3), (3, 0)), call(values(0, 3), (-1, 3))], large=call(values(257, 273), (-1,))),
    "view": Case(np.reshape, [call(values(3, 4), (3, 2, 2)), call(values(2, 3), (2, 1, -1))], empty=[call(values(0), (5, 0))],
                 large=call(values(257, 273), (257, 39, 7))),
    "transpose": Case(np.swapaxes, [call(values(3, 4), 0, 1), call(values(2, 3, 4), -1, 0), call(values(2, 3), 1, 1)],
                      empty=[call(values(2, 0), 0, 1)], large=call(values(257, 273), 0, 1)),
    "permute": Case(np.transpose, [call(values(2, 3, 4), (2, 0, 1)), call(values(2, 3, 4), (0, -1, 1)), call(values(), ())],
                    empty=[call(values(2, 0, 3), (2, 1, 0))], large=call(values(41, 43, 41), (2, 0, 1))),
    "expand": Case(np_expand, [call(values(3, 1), (3, 4)), call(values(3), (2, 3)), call(values(2, 1, 3), (2, 4, -1)),
                               call(values(), (2, 2)), call(values(1), (5,))],
                   empty=[call(values(1, 3), (0, 3)), call(values(0), (2, 0))], large=call(values(257), (273, 257))),
    "squeeze": Case(lambda x, axis=None: np.squeeze(x, axis) if axis is None or x.shape[axis] == 1 else x,
                    [call(values(1, 3, 1)), call(values(1, 3, 1), 0), call(values(1, 3, 1), axis=-1), call(values(2, 3), 1)],
                    empty=[call(values(1, 0))], large=call(values(1, 70_001))),
    "unsqueeze": Case(np.expand_dims, [call(values(3), 0), call(values(2, 3), -1), call(values(2, 3), 1), call(values(), 0)],
                      empty=[call(values(0), 0)], large=call(values(70_001), 1)),
    "slice": Case(np_slice, [
        call(values(7), 0, 1, 5), call(values(7), 0, None, None, -1), call(values(3, 7), 1, 5, 1, -2), call(values(3, 7), -1, 2),
        call(values(7), 0, -3, None), call(values(7), 0, -100, 100, 3), call(values(3, 7), axis=0, stop=2),
        call(values(7), 0, 6, None, -7), call(values(5), 0, 2, 3, 2**62)],
        empty=[call(values(7), 0, 3, 3), call(values(7), 0, 5, 2), call(values(0, 3), 0), call(values(2, 3), 1, 9)],
        large=call(values(257, 600), 1, None, None, 2)),
    "index_select": Case(lambda x, axis, index: np.take(x, index, axis), [
        call(values(5, 3), 0, np.array([0, 4, 2, 0])), call(values(2, 3, 4), -1, np.array([3, 0])), call(values(7), 0, np.array([6])),
        call(values(3, 5), axis=1, index=np.array([2, 2, 2], np.int32))],
        empty=[call(values(5, 3), 0, indices(5, 0)), call(values(0, 3), 1, np.array([1, 2]))],
        large=call(values(257, 273), 1, indices(273, 300))),
    "cat": Case(lambda tensors, axis=0: np.concatenate(tensors, axis), [
        call([values(2, 3), values(1, 3)]), call([values(2, 3), values(2, 2), values(2, 4)], 1), call([values(3)], -1),
        call([values(2, 1, 2), values(2, 1, 2)], axis=1), call([values(0, 3), values(2, 3)])],
        empty=[call([values(0), values(0)]), call([values(2, 0), values(2, 0)], 1)],
        large=call([values(257, 100), values(257, 173)], 1)),
    "one_hot": Case(np_one_hot, [call(indices(5, 4), 5), call(indices(3, 2, 3), 4), call(np.array([2, 0, 1])),
                                 call(np.array(1), num_classes=3), call(indices(4, 6).astype(np.int32), 4)],
                    empty=[call(indices(3, 0), 3), call(indices(3, 2, 0), 3)], large=call(indices(300, 241), 300),
                    result="index"),
    "dropout": unary(np_dropout, dtypes=FLOATS,
                     more=[call(values(3, 5), 0.0), call(values(3, 5), 0.5, False), call(values(3, 5), p=1.0)]),
    "cast": Case(lambda x, dtype: x, [call(values(3, 5), "float64"), call(values(7), "float32")],
                 empty=[call(values(0, 3), "float32")], large=call(values(257, 273), "float64"), result="argument"),
}
for family in (cases_axes, cases_conv, cases_functions, cases_index, cases_loss, cases_matmul, cases_norm, cases_pointwise, cases_pool, cases_reduce, cases_resize, cases_search, cases_shape):
    CASES.update(family.CASES)
# Plain samples of dropout draw a mask; a reference can only check the calls without a mask.
CASES["dropout"].calls = CASES["dropout"].calls[len(SHAPES):]
CASES["dropout"].large = call(values(70_001), 0.0)

# New tensors, from sizes and numbers alone: tests/python/test_ops_create.py and test_ops_random.py hold these.
CREATION = {"empty", "zeros", "ones", "full", "arange", "linspace", "eye", "tril_indices", "triu_indices", "empty_like", "zeros_like", "ones_like",
            "full_like"}
# Lists of results: tests/python/test_ops_split.py and test_ops_parts.py hold these.
LISTS = {"split", "chunk", "unbind", "tensor_split", "meshgrid", "nonzero_tuple"}
RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial", "normal",
          "normal_", "uniform_", "bernoulli_", "random_", "exponential_"}
