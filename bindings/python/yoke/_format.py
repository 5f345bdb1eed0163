"""Text of a tensor: NumPy's layout with dtype and device, long tensors by their edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from yoke import _yoke
from yoke._yoke import Tensor

THRESHOLD = 1000  # more elements than this are summarised …
EDGE = 3  # … to so many at each end of an axis
PRECISION = 4  # digits after the point
WIDTH = 100


def _cut(tensor: Tensor) -> list[Any]:
    """Returns the elements as nested lists, with None where a long axis is cut."""
    length = tensor.shape[0]
    long = length > 2 * EDGE
    if tensor.ndim == 1:
        return [*tensor[:EDGE].tolist(), None, *tensor[-EDGE:].tolist()] if long else tensor.tolist()
    if not long:
        return [_cut(tensor[i]) for i in range(length)]
    return [*(_cut(tensor[i]) for i in range(EDGE)), None, *(_cut(tensor[i]) for i in range(-EDGE, 0))]


def _leaves(nest: Any) -> list[Any]:
    if isinstance(nest, list):
        return [leaf for part in nest for leaf in _leaves(part)]
    return [] if nest is None else [nest]


class _Float:
    """Style for all floats of a tensor: short decimals, or exponents if they differ widely."""

    def __init__(self, values: list[float]) -> None:
        finite = [abs(v) for v in values if math.isfinite(v)]
        nonzero = [v for v in finite if v]
        high, low = max(nonzero, default=1.0), min(nonzero, default=1.0)
        self.exponents = high >= 1e8 or low < 1e-4 or high / low > 1e4 and low < 1e-3
        whole = all(v == int(v) for v in finite)
        self.digits = 0 if whole and not self.exponents else self._digits(finite)

    def _digits(self, values: list[float]) -> int:
        texts = [f"{v:.{PRECISION}e}" if self.exponents else f"{v:.{PRECISION}f}" for v in values]
        return max((len(t.split("e")[0].split(".")[1].rstrip("0")) for t in texts), default=0)

    def __call__(self, value: float) -> str:
        if not math.isfinite(value):
            return str(value)
        if self.exponents:
            return f"{value:.{self.digits}e}"
        return f"{value:.{self.digits}f}" + ("" if self.digits else ".")


def _depth(nest: Any) -> int:
    return 1 + max((_depth(part) for part in nest), default=0) if isinstance(nest, list) else 0


def _row(texts: list[str], indent: int) -> str:
    """Returns the numbers of the last axis as text, broken where a line is full."""
    lines = [""]
    for i, text in enumerate(texts):
        text += "," if i + 1 < len(texts) else ""
        if lines[-1] and indent + len(lines[-1]) + len(text) + 2 > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + text
    return "[" + ("\n" + " " * (indent + 1)).join(lines) + "]"


def _nest(nest: Any, write: Callable[[Any], str], width: int, indent: int) -> str:
    depth = _depth(nest)
    if depth == 0:
        return "..." if nest is None else write(nest).rjust(width)
    if depth == 1:
        return _row([_nest(part, write, width, indent) for part in nest], indent)
    between = "," + "\n" * (depth - 1) + " " * (indent + 1)
    return "[" + between.join(_nest(part, write, width, indent + 1) for part in nest) + "]"


def tensor_repr(tensor: Tensor) -> str:
    """repr(tensor)."""
    if tensor.closed:
        return "Tensor(closed)"
    notes = f"dtype={tensor.dtype.name}, device='{tensor.device}'"
    if tensor.requires_grad:
        notes += ", requires_grad=True"
    name = type(tensor).__name__
    if 0 in tensor.shape:
        return f"{name}([], shape={tensor.shape}, {notes})"
    nest: Any
    if tensor.numel > THRESHOLD:
        nest = _cut(tensor.detach())
        notes = f"shape={tensor.shape}, {notes}"
    else:
        nest = tensor.tolist()
    leaves = _leaves(nest)
    write: Callable[[Any], str] = _Float(leaves) if tensor.dtype.is_floating_point else str
    width = max((len(write(leaf)) for leaf in leaves), default=0)
    return f"{name}({_nest(nest, write, width, len(name) + 1)}, {notes})"


def formatted(tensor: Tensor, spec: str) -> str:
    """Returns format(tensor, spec), as in f"{loss:.3f}"."""
    if not spec:
        return str(tensor)
    if tensor.ndim:
        raise _yoke.TypeError(f"format(): the format {spec!r} is for numbers, but the tensor has shape {tensor.shape}; write x.item() for a tensor of one element, x.tolist() for more elements")
    return format(tensor.item(), spec)
