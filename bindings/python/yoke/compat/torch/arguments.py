"""Yoke's ops with further arguments of PyTorch: lists of axes, places in a tensor, `stable`, memory formats."""

from __future__ import annotations

from typing import Any

import yoke
from yoke._yoke import Tensor
from yoke.compat.torch.options import need_memory_format


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """Returns the sorted elements, and their places; equal elements keep their order with and without `stable`."""
    return yoke.sort(input, dim, descending)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Tensor:
    """Returns the places of the sorted elements."""
    return yoke.argsort(input, dim, descending)


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Drops axes of length 1: all, one, or those of a list."""
    if not isinstance(dim, (tuple, list)):
        return yoke.squeeze(input) if dim is None else yoke.squeeze(input, dim)
    for axis in sorted((each % max(input.ndim, 1) for each in dim), reverse=True):
        input = yoke.squeeze(input, axis)
    return input


def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None) -> Any:
    """Splits into parts, or at places, which a tensor may hold."""
    given = next(each for each in (indices_or_sections, indices, sections) if each is not None)
    return yoke.tensor_split(input, given.tolist() if isinstance(given, Tensor) else given, dim)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """x.where(condition, other): x where the condition holds."""
    return yoke.where(condition, self, other)


def _is_whole(dtype: Any) -> bool:
    return dtype is not None and not dtype.is_floating_point


def _number(value: Any, dtype: Any) -> Any:
    """Returns an end of a range. In an integer dtype, PyTorch cuts it to a whole number first."""
    number = value.item() if isinstance(value, Tensor) else value
    return int(number) if _is_whole(dtype) else number


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Returns evenly spaced numbers; the ends may be tensors without axes."""
    return yoke.linspace(_number(start, dtype), _number(end, dtype), steps, dtype=dtype, device=device, requires_grad=requires_grad)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """Returns powers of a base, whose exponents are evenly spaced."""
    exponents = yoke.linspace(_number(start, dtype), _number(end, dtype), steps, dtype=yoke.float64 if _is_whole(dtype) else dtype, device=device)
    found = yoke.pow(base, exponents)
    return (found.to(dtype=dtype) if _is_whole(dtype) else found).requires_grad_(requires_grad)


def _cast(name: str) -> Any:
    plain = getattr(Tensor, name)

    def run(self: Tensor, memory_format: Any = None) -> Tensor:
        need_memory_format(name, memory_format)
        result: Tensor = plain(self)
        return result

    run.__name__, run.__doc__ = name, f"x.{name}(): the tensor in another dtype."
    return run


CASTS = "bool byte char double float half int long bfloat16".split()
for _each in CASTS:
    globals()[f"to_{_each}"] = _cast(_each)
