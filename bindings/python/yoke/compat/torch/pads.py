"""Layers that add elements at the ends of the last axes."""

from __future__ import annotations

from typing import Any

from yoke._yoke import Tensor
from yoke.compat.torch import nets
from yoke.nn.module import Module


class _Pad(Module):
    _axes, _mode = 2, "constant"

    def __init__(self, padding: Any, value: float = 0.0) -> None:
        self.padding = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return nets.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        return str(self.padding)


def _kind(name: str, axes: int, mode: str) -> Any:
    class Pad(_Pad):
        _axes, _mode = axes, mode

        def __init__(self, padding: Any) -> None:
            super().__init__(padding)

    Pad.__name__ = Pad.__qualname__ = name
    Pad.__doc__ = f"Adds elements at the ends of the last {axes} axes, in the mode {mode}."
    return Pad


ReflectionPad1d, ReflectionPad2d = _kind("ReflectionPad1d", 1, "reflect"), _kind("ReflectionPad2d", 2, "reflect")
ReplicationPad1d, ReplicationPad2d = _kind("ReplicationPad1d", 1, "replicate"), _kind("ReplicationPad2d", 2, "replicate")
CircularPad1d, CircularPad2d = _kind("CircularPad1d", 1, "circular"), _kind("CircularPad2d", 2, "circular")
ZeroPad1d, ZeroPad2d = _kind("ZeroPad1d", 1, "constant"), _kind("ZeroPad2d", 2, "constant")


class ConstantPad1d(_Pad):
    """Adds elements of one value at the ends of the last axis."""

    _axes = 1

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding, value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """Adds elements of one value at the ends of the last two axes."""

    _axes = 2
