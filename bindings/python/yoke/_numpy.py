"""Tensors as NumPy arrays. NumPy is imported by the first call, not with Yoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yoke import _yoke
from yoke._dtypes import IN_NUMPY
from yoke._yoke import Tensor

if TYPE_CHECKING:
    import numpy


def array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
    """An array over the tensor's memory; a copy only where `dtype` or `copy` ask for one."""
    if tensor.device.kind != "cpu":
        raise _yoke.UnsupportedError(f"numpy(): the tensor is on {tensor.device}, NumPy works in host memory; call .cpu() first")
    if tensor.dtype.name not in IN_NUMPY:
        raise _yoke.UnsupportedError(
            f"numpy(): NumPy has no {tensor.dtype.name}; call .to(dtype=yoke.float32) first")
    if tensor.requires_grad:
        raise _yoke.StateError("numpy(): the tensor requires grad, and changes through NumPy would not be seen; call .detach() first")
    import numpy

    shared = numpy.asarray(memoryview(tensor))
    if copy is False and dtype is not None and numpy.dtype(dtype) != shared.dtype:
        raise _yoke.ValueError(f"__array__(): {tensor.dtype} cannot become {numpy.dtype(dtype)} without a copy; leave copy=False out")
    if copy:
        return numpy.array(shared, dtype=dtype)
    return shared if dtype is None else numpy.asarray(shared, dtype=dtype)
