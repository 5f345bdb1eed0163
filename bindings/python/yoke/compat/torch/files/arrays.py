"""NumPy's numbers and arrays in PyTorch's files: plain numbers alone, made here and not by NumPy's own functions."""

from __future__ import annotations

from typing import Any

from yoke import _yoke

_KINDS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")


class NumPyType:
    """dtype, made by a pickle in two steps: a letter and a size, then the order of bytes."""

    def __init__(self, kind: str) -> None:
        self.kind, self.order = kind, "<"

    def build(self, state: Any) -> None:
        if type(state) is not tuple or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
            raise _yoke.ValueError("a dtype of NumPy has no order of bytes")
        self.order = "<" if state[1] == "=" else state[1]

    def value(self) -> Any:
        return _numpy().dtype(self.order + self.kind)


class NumPyArray:
    """Array, made by a pickle in two steps: an empty array, then shape, dtype and bytes."""

    array: Any = None

    def build(self, state: Any) -> None:
        kinds = [type(each) for each in state] if type(state) is tuple else []
        if kinds != [int, tuple, NumPyType, bool, bytes] or len(state[1]) > 32 or any(type(size) is not int or size < 0 for size in state[1]):
            raise _yoke.ValueError("an array of NumPy has no shape, dtype and bytes; only arrays of numbers are read")
        _, shape, kind, by_columns, data = state
        elements, dtype = 1, kind.value()
        for size in shape:
            elements *= size
        if elements * dtype.itemsize != len(data):
            raise _yoke.ValueError(f"an array of NumPy has {len(data)} bytes; its shape needs {elements * dtype.itemsize}")
        self.array = _numpy().frombuffer(data, dtype=dtype).reshape(shape, order="F" if by_columns else "C").copy(order="K")

    def value(self) -> Any:
        if self.array is None:
            raise _yoke.ValueError("an array of NumPy has no elements")
        return self.array


def numpy_type(kind: Any) -> NumPyType:
    """Returns the dtype of NumPy's short name."""
    text = kind[1:] if type(kind) is str and kind[:1] in ("<", "|", "=") else kind
    if text not in _KINDS:
        raise _yoke.ValueError(f"a dtype of NumPy is {str(kind)[:40]!r}; the dtypes of numbers are {', '.join(_KINDS)}")
    return NumPyType(text)


def numpy_scalar(kind: NumPyType, data: bytes) -> Any:
    """Returns a number of NumPy from bytes."""
    dtype = kind.value()
    if len(data) != dtype.itemsize:
        raise _yoke.ValueError(f"a number of NumPy has {len(data)} bytes; {dtype} has {dtype.itemsize}")
    return _numpy().frombuffer(data, dtype=dtype)[0]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise _yoke.UnsupportedError("load(): argument 'f' has numbers or arrays of NumPy, but NumPy is not installed; the file needs NumPy") from None
    return numpy
