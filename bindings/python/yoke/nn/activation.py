"""Activations as modules."""

from __future__ import annotations

import yoke
from yoke._yoke import Tensor
from yoke.nn.module import Module


class ReLU(Module):
    """x where x > 0, else 0."""

    def forward(self, x: Tensor) -> Tensor:
        return yoke.relu(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        return yoke.sigmoid(x)


class SiLU(Module):
    """x * sigmoid(x), also called swish."""

    def forward(self, x: Tensor) -> Tensor:
        return yoke.silu(x)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return yoke.tanh(x)


class GELU(Module):
    """Gaussian error linear unit; approximate is "none" (erf) or "tanh"."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return yoke.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate='{self.approximate}'"


class Softmax(Module):
    """Softmax along one axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return yoke.softmax(x, self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(Module):
    """Logarithm of softmax along one axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return yoke.log_softmax(x, self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"
