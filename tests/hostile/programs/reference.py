"""The plain reference of random programs: tensors as NumPy arrays, each dtype rounded by hand.

An array holds float64, int64 or bool, whatever the dtype. NumPy's own views stand for views, so a write through a view changes
the other views. A result has a value and the size of the summed terms, which bounds the rounding.
"""
import math

import numpy as np

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTS = ("int64", "int32", "int8", "uint8")
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
LARGEST = {"float64": 1e308, "float32": 3.4e38, "float16": 65504.0, "bfloat16": 3.39e38}
SMALLEST = {"float64": 1e-307, "float32": 1e-37, "float16": 6.2e-5, "bfloat16": 1e-37}
_WIDTH = {"int64": np.int64, "int32": np.int32, "int8": np.int8, "uint8": np.uint8}


def storage(dtype):
    """Returns NumPy's dtype of the array that stands for a tensor."""
    return np.float64 if dtype in FLOATS else np.bool_ if dtype == "bool" else np.int64


def rounded(array, dtype):
    """Returns the values of an array as a tensor of this dtype would hold them."""
    array = np.asarray(array)
    if dtype == "bool":
        return array != 0
    if dtype in _WIDTH:
        return array.astype(np.int64).astype(_WIDTH[dtype]).astype(np.int64)
    array = array.astype(np.float64)
    if dtype == "float64":
        return array
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(array.astype(np.float32)).view(np.uint32)
        kept = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
        return np.where(np.isnan(array), np.nan, kept).astype(np.float64).reshape(array.shape)
    return array.astype(np.float32 if dtype == "float32" else np.float16).astype(np.float64)


def promoted(a, b):
    """Returns the dtype of two tensors together (docs/design.md)."""
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    floats = [d for d in (a, b) if d in FLOATS]
    if len(floats) == 1:
        return floats[0]
    if floats:
        return "float32" if {a, b} == {"float16", "bfloat16"} else min(floats, key=FLOATS.index)
    return "int32" if {a, b} == {"int8", "uint8"} else min((a, b), key=INTS.index)


def with_scalar(dtype, scalar):
    """Returns the dtype of a tensor together with a number of a script, which is weak."""
    if isinstance(scalar, bool) or dtype in FLOATS:
        return dtype
    if isinstance(scalar, int):
        return "int64" if dtype == "bool" else dtype
    return "float32"


def floating(dtype):
    return dtype if dtype in FLOATS else "float32"


class Ref:
    """A tensor of the reference."""
    __slots__ = ("array", "dtype", "frozen", "grad")

    def __init__(self, array, dtype, grad=False):
        self.array, self.dtype, self.grad = np.asarray(array), dtype, grad

    @property
    def shape(self):
        return self.array.shape


def both(x, y):
    """Returns two operands in the dtype of the computation, and this dtype. An operand may be a number."""
    if isinstance(x, Ref) and isinstance(y, Ref):
        dtype = promoted(x.dtype, y.dtype)
        return rounded(x.array, dtype), rounded(y.array, dtype), dtype
    tensor, number = (x, y) if isinstance(x, Ref) else (y, x)
    dtype = with_scalar(tensor.dtype, number)
    a, b = rounded(tensor.array, dtype), rounded(np.asarray(number), dtype) if dtype not in FLOATS else np.float64(number)
    return (a, b, dtype) if tensor is x else (b, a, dtype)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softmax(x, axis):
    if x.size == 0:
        return x
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def close(got, want, scale, dtype, ulps):
    """Tells whether values agree within the rounding; exactly if the dtype is no float."""
    if dtype not in FLOATS or ulps == 0:
        return np.array_equal(got, want, equal_nan=dtype in FLOATS)
    with np.errstate(all="ignore"):
        limit = ulps * EPSILON[dtype] * (np.abs(want) + scale) + ulps * EPSILON[dtype] * SMALLEST[dtype]
        good = (np.abs(got - want) <= limit) | (got == want) | (np.isnan(got) & np.isnan(want))
        # Where the largest number ends, infinity begins a rounding earlier or later.
        edge = (np.abs(want) + scale > 0.97 * LARGEST[dtype]) & ~np.isnan(got)
        return bool(np.all(good | edge | (~np.isfinite(np.asarray(scale + 0.0 * want)))))
