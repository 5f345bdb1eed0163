"""Pooling layers."""

from __future__ import annotations

import yoke
from yoke._check import whole
from yoke._yoke import Tensor
from yoke.nn.conv import sizes
from yoke.nn.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yoke.nn.conv import Size


class _Pool(Module):
    """Windows that slide over height and width."""

    def _take(self, kernel_size: Size, stride: Size | None, padding: Size) -> None:
        call = type(self).__name__
        self.kernel_size = sizes(call, "kernel_size", kernel_size, 1)
        self.stride = self.kernel_size if stride is None else sizes(call, "stride", stride, 1)
        self.padding = sizes(call, "padding", padding, 0)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(_Pool):
    """Maximum of each window of x [N, C, H, W], or without N; see yoke.max_pool2d. stride None is kernel_size."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1, *,
                 ceil_mode: bool = False) -> None:
        self._take(kernel_size, stride, padding)
        self.dilation, self.ceil_mode = sizes("MaxPool2d", "dilation", dilation, 1), ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return yoke.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class AvgPool2d(_Pool):
    """Mean of each window of x [N, C, H, W], or without N; see yoke.avg_pool2d. stride None is kernel_size."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        self._take(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = None if divisor_override is None else whole("AvgPool2d", "divisor_override", divisor_override, 1)

    def forward(self, x: Tensor) -> Tensor:
        return yoke.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                               self.divisor_override)

    def extra_repr(self) -> str:
        usual = {"ceil_mode": False, "count_include_pad": True, "divisor_override": None}
        more = "".join(f", {name}={getattr(self, name)!r}" for name, value in usual.items() if getattr(self, name) != value)
        return super().extra_repr() + more


class AdaptiveAvgPool2d(Module):
    """Means of windows that divide x [N, C, H, W], or without N, evenly; output_size has the number of windows on each axis."""

    def __init__(self, output_size: Size) -> None:
        self.output_size = sizes("AdaptiveAvgPool2d", "output_size", output_size, 1)

    def forward(self, x: Tensor) -> Tensor:
        return yoke.adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
