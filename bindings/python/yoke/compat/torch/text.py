"""Text of tensors in PyTorch's form: tensor([1., 2.])."""

from __future__ import annotations

import math
from typing import Any

import yoke
from yoke import _yoke
from yoke._yoke import Tensor

OPTIONS: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: int | None = None,
                     profile: str | None = None, sci_mode: bool | None = None) -> None:
    """Sets how tensors are printed."""
    if profile is not None:
        OPTIONS.update(zip(("precision", "threshold", "edgeitems", "linewidth"), _PROFILES[profile]))
    given: dict[str, Any] = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    OPTIONS.update({name: value for name, value in given.items() if value is not None})
    OPTIONS["sci_mode"] = sci_mode


class _Style:
    """Form and width of all elements of a tensor."""

    def __init__(self, values: list[Any], is_float: bool) -> None:
        self.is_float = is_float
        self.precision = OPTIONS["precision"]
        self.exponents = self.whole = False
        if is_float:
            finite = [abs(each) for each in values if math.isfinite(each) and each]
            high, low = max(finite, default=0.0), min(finite, default=0.0)
            self.whole = all(math.ceil(each) == each for each in finite)
            wide = high / low > 1000.0 if low else False
            self.exponents = bool(finite) and (wide and not self.whole or high > 1e8 or not self.whole and low < 1e-4)
            if OPTIONS["sci_mode"] is not None:
                self.exponents = bool(OPTIONS["sci_mode"])
        self.width = max((len(self.bare(each)) for each in values), default=1)

    def bare(self, value: Any) -> str:
        if not self.is_float:
            return str(value)
        if not math.isfinite(value):
            return str(value)
        if self.exponents:
            return f"{value:.{self.precision}e}"
        return f"{value:.0f}." if self.whole else f"{value:.{self.precision}f}"

    def __call__(self, value: Any) -> str:
        return self.bare(value).rjust(self.width)


def _cut(x: Tensor, summarised: bool) -> Any:
    """Returns the elements as nested lists, with None where a long axis is cut."""
    if x.ndim == 0:
        return x.item()
    edge, length = int(OPTIONS["edgeitems"]), len(x)
    if not summarised or length <= 2 * edge:
        return x.tolist() if not summarised or x.ndim == 1 else [_cut(x[i], True) for i in range(length)]
    if x.ndim == 1:
        return [*x[:edge].tolist(), None, *x[-edge:].tolist()]
    return [*(_cut(x[i], True) for i in range(edge)), None, *(_cut(x[i], True) for i in range(length - edge, length))]


def _leaves(nest: Any) -> list[Any]:
    if isinstance(nest, list):
        return [leaf for part in nest for leaf in _leaves(part)]
    return [] if nest is None else [nest]


def _nest(nest: Any, style: _Style, indent: int, axes: int) -> str:
    if axes == 0:
        return style(nest)
    if axes == 1:
        texts = [" ..." if each is None else style(each) for each in nest]
        per_line = max(1, (int(OPTIONS["linewidth"]) - indent) // (style.width + 2))
        lines = [", ".join(texts[i:i + per_line]) for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if each is None else _nest(each, style, indent + 1, axes - 1) for each in nest]
    return "[" + ("," + "\n" * (axes - 1) + " " * (indent + 1)).join(parts) + "]"


def repr_of(x: Tensor, **unused: Any) -> str:
    """repr(x)."""
    if x.closed:
        return "tensor(closed)"
    notes = [] if x.device.kind == "cpu" else [f"device='{x.device}'"]
    default = _yoke._get_default_dtype()
    usual = x.dtype in (default, yoke.int64, yoke.bool)
    is_parameter = isinstance(x, yoke.nn.Parameter)
    name = "Parameter containing:\ntensor(" if is_parameter else "tensor("
    if x.nelement() == 0:
        notes += [] if x.ndim == 1 else [f"size=({', '.join(map(str, x.shape))})"]
        notes += [] if x.dtype is default else [f"dtype={x.dtype}"]
        body = "[]"
    else:
        notes += [] if usual else [f"dtype={x.dtype}"]
        plain = x.detach()
        nest = _cut(plain, x.nelement() > OPTIONS["threshold"])  # type: ignore[operator]
        body = _nest(nest, _Style(_leaves(nest), x.dtype.is_floating_point), len("tensor("), x.ndim)
    if x.requires_grad:
        notes.append("requires_grad=True" if x.is_leaf else f"grad_fn=<{grad_fn(x).name()}>")  # type: ignore[union-attr]
    return _with_notes(name + body, notes, len("tensor(")) + ")"


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    """Returns the text with notes behind it, each in a new line if it does not fit."""
    length, width = len(text) - text.rfind("\n") + 1, int(OPTIONS["linewidth"])
    for note in notes:
        if length + len(note) + 2 > width:
            text += ",\n" + " " * indent + note
            length = indent + len(note)
        else:
            text += ", " + note
            length += len(note) + 2
    return text


class Node:
    """Op that made a tensor, as far as scripts look at x.grad_fn."""

    def __init__(self, op: str) -> None:
        self._op = op

    def name(self) -> str:
        """Returns the name of the op's gradient."""
        return "".join(part.capitalize() for part in self._op.split("_")) + "Backward0"

    def __repr__(self) -> str:
        return f"<{self.name()} object>"


def grad_fn(x: Tensor) -> Node | None:
    """x.grad_fn: None for a leaf."""
    if x.is_leaf:
        return None
    saved = yoke.saved_tensors(x)
    return Node(saved[0].op if saved else "")


def format_of(self: Tensor, spec: str) -> str:
    """Returns a tensor without axes as its number, in an f-string too; other tensors take no format."""
    return format(self.item(), spec) if self.ndim == 0 else _format(self, spec)


_format = Tensor.__format__
