"""Tensors as NumPy arrays, and arrays beside tensors. NumPy is imported by the first call, not with Yoke."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from yoke import _yoke
from yoke._dtypes import IN_NUMPY
from yoke._yoke import Tensor

if TYPE_CHECKING:
    import numpy


def array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
    """Returns an array over the tensor's memory; a copy only if `dtype` or `copy` need a copy."""
    if tensor.device.kind != "cpu":
        raise _yoke.UnsupportedError(f"numpy(): the tensor is on {tensor.device}, but NumPy works in host memory; call .cpu() first")
    if tensor.dtype.name not in IN_NUMPY:
        raise _yoke.UnsupportedError(
            f"numpy(): NumPy does not support {tensor.dtype.name}; call .to(dtype=yoke.float32) first")
    if tensor.requires_grad:
        raise _yoke.StateError("numpy(): the tensor requires grad, and changes through NumPy would not be recorded; call .detach() first")
    import numpy

    shared = numpy.asarray(memoryview(tensor))
    if copy is False and dtype is not None and numpy.dtype(dtype) != shared.dtype:
        raise _yoke.ValueError(f"__array__(): {tensor.dtype} cannot become {numpy.dtype(dtype)} without a copy; leave copy=False out")
    if copy:
        return numpy.array(shared, dtype=dtype)
    return shared if dtype is None else numpy.asarray(shared, dtype=dtype)


def masked_data(tensor: Tensor) -> Any:
    """Raises TypeError for numpy.ma, whose operators ask the other side for `_data`, and AttributeError for any other caller."""
    if sys._getframe(1).f_globals.get("__name__", "").startswith("numpy.ma"):
        raise _yoke.TypeError("numpy.ma: a masked array has its own operators; write yoke.tensor(numpy.asarray(x)) for a tensor of the elements")
    raise AttributeError(f"'{type(tensor).__name__}' object has no attribute '_data'")


# ---- Arrays beside tensors -------------------------------------------------------------------------------------------

# Conversions for an array with a dtype unknown to Yoke, by NumPy's letter of its kind.
_INSTEAD = {"f": 'x.astype("float64")', "i": 'x.astype("int64")', "u": 'x.astype("int64")', "c": "x.real", "m": 'x.astype("int64")',
            "M": 'x.astype("int64")', "V": 'x["field"]'}


def plain(name: str, value: Any) -> Any:
    """Returns a NumPy scalar as Python's number, which has no dtype beside a tensor; any other value unchanged. NumPy's comparisons
    make arrays without axes of their scalars.
    """
    numpy = sys.modules["numpy"]
    kinds = (numpy.generic, numpy.ndarray) if name in _COMPARISONS else numpy.generic
    return value.item() if isinstance(value, kinds) and value.ndim == 0 and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8 else value


def operand(call: str, value: Any, other: Tensor) -> Tensor:
    """Returns `value`, a NumPy array, as a tensor for an operator with `other`; TypeError for any other array."""
    numpy = sys.modules.get("numpy")  # if an array exists, the module is there
    place = f"{call}()" if call[0].isalpha() else call
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        remedy = "yoke.from_dlpack(x)" if hasattr(value, "__dlpack__") else "yoke.tensor(numpy.asarray(x))"
        raise _yoke.TypeError(f"{place}: a {kind} is not an operand beside a tensor; write {remedy} for a tensor")
    if isinstance(value, numpy.ndarray) and value.__array_priority__ > 0:
        raise _yoke.TypeError(f"{place}: a {kind} has its own operators; write yoke.tensor(numpy.asarray(x)) for a tensor of the elements")
    if value.dtype.name not in IN_NUMPY or not value.dtype.isnative:
        remedy = f'x.astype("{value.dtype.name}")' if value.dtype.name in IN_NUMPY else _INSTEAD.get(value.dtype.kind, 'x.astype("float32")')
        raise _yoke.TypeError(f"{place}: a NumPy array x of dtype {value.dtype.str!r} ({value.dtype.name}) has a dtype that tensors do not support; write {remedy}")
    if other.device.kind != "cpu":
        raise _yoke.TypeError(f'{place}: the tensor is on {other.device}, but the array x is in host memory; write yoke.tensor(x, device="{other.device}"), or move the tensor by .cpu()')
    return _yoke.tensor(value, device="cpu")


# The methods behind NumPy's operators, where the tensor stands on the left and where it stands on the right.
_OPERATORS = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"), "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"), "true_divide": ("__truediv__", "__rtruediv__"),
    "matmul": ("__matmul__", "__rmatmul__"), "power": ("__pow__", "__rpow__"), "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"), "bitwise_xor": ("__xor__", "__rxor__"),
    "left_shift": ("__lshift__", "__rlshift__"), "right_shift": ("__rshift__", "__rrshift__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"), "remainder": ("__mod__", "__rmod__"), "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"), "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"), "greater_equal": ("__ge__", "__le__"),
}
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def ufunc(function: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
    """Runs a NumPy operator with a tensor on a side, with `out` also in place; TypeError for another function."""
    name = function.__name__
    if name not in _OPERATORS or method != "__call__" or options or not any(isinstance(x, Tensor) for x in inputs):
        ours = f"yoke.{name}, or " if hasattr(_yoke, name) else ""
        raise _yoke.TypeError(f"numpy.{name}(): NumPy's functions do not accept tensors; write {ours}numpy.{name} of x.numpy()")
    x, y = (plain(name, each) for each in inputs)
    forward, reflected = _OPERATORS[name]
    result = getattr(Tensor, forward)(x, y) if isinstance(x, Tensor) else getattr(Tensor, reflected)(y, x)
    if result is NotImplemented:
        raise _yoke.TypeError(f"numpy.{name}(): a {type(x).__name__} and a {type(y).__name__} do not have this operator; write yoke.tensor(x) for the operand that is not a tensor")
    return _write(name, result, out[0]) if out else result


def _write(name: str, result: Tensor, target: Any) -> Any:
    """Writes the result of array += tensor into the array."""
    import numpy

    if not isinstance(target, numpy.ndarray):
        raise _yoke.TypeError(f"numpy.{name}(): 'out' is a {type(target).__name__}; write the operator without 'out', which creates a new tensor")
    if result.requires_grad:
        raise _yoke.TypeError(f"numpy.{name}(): an array cannot take values of a tensor that requires grad; write x.detach() for the tensor x")
    values = result if result.dtype.name in IN_NUMPY else result.to(dtype=_yoke.float32)
    numpy.copyto(target, array(values), casting="same_kind")
    return target
