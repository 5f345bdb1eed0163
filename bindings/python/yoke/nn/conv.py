"""Convolution layers. Weight and bias start uniform in ±1/√fan_in, weight first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import yoke
from yoke import _yoke
from yoke._check import whole
from yoke._yoke import Device, Tensor, dtype as DType
from yoke.nn.module import Module, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Size = int | Sequence[int]

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def sizes(call: str, name: str, value: Any, least: int, axes: int = 2) -> tuple[int, ...]:
    """Returns a whole number for each axis; a single number stands for all."""
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value] * axes
    if len(listed) != axes:
        raise _yoke.ValueError(f"{call}(): argument '{name}' has {len(listed)} numbers; give one, or {axes}")
    return tuple([whole(call, name, each, least) for each in listed])


class _Conv(Module):
    """Sets the numbers, the weight and the bias common to all convolutions."""

    weight: Parameter
    bias: Parameter | None
    _axes = 2

    def _take(self, in_channels: int, out_channels: int, kernel_size: Size, stride: Size, dilation: Size, groups: int) -> None:
        call = type(self).__name__
        self.in_channels = whole(call, "in_channels", in_channels, 1)
        self.out_channels = whole(call, "out_channels", out_channels, 1)
        self.groups = whole(call, "groups", groups, 1)
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise _yoke.ValueError(f"{call}(): argument '{name}' is {channels} and 'groups' is {groups}; 'groups' must divide the channels evenly")
        self.kernel_size = sizes(call, "kernel_size", kernel_size, 1, self._axes)
        self.stride = sizes(call, "stride", stride, 1, self._axes)
        self.dilation = sizes(call, "dilation", dilation, 1, self._axes)

    def _draw(self, channels: tuple[int, int], bias: bool, device: Device | str | int | None, dtype: DType | None) -> None:
        """Draws weight [*channels, *kernel_size]; fan_in is the product of all lengths but the first."""
        fan_in = channels[1]
        for length in self.kernel_size:
            fan_in *= length
        bound = fan_in**-0.5

        def uniform(shape: tuple[int, ...]) -> Parameter:
            return Parameter(yoke.rand(shape, dtype=dtype, device=device) * (2 * bound) - bound)

        self.weight = uniform((*channels, *self.kernel_size))
        self.register_parameter("bias", uniform((self.out_channels,)) if bias else None)

    def extra_repr(self) -> str:
        none = (0,) * self._axes
        usual = {"padding": none, "dilation": (1,) * self._axes, "output_padding": none, "groups": 1, "padding_mode": "zeros"}
        more = "".join(f", {name}={getattr(self, name)!r}" for name, value in usual.items() if getattr(self, name, value) != value)
        if self.bias is None:
            more += ", bias=False"
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}{more}"


class _Forward(_Conv):
    """Convolution whose padding may be "same" or "valid", and may have values other than zeros."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Size, stride: Size = 1, padding: Size | str = 0,
                 dilation: Size = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        call = type(self).__name__
        self._take(in_channels, out_channels, kernel_size, stride, dilation, groups)
        if padding_mode not in _MODES:
            raise _yoke.ValueError(f"{call}(): argument 'padding_mode' is {padding_mode!r}; it must be one of {', '.join(map(repr, _MODES))}")
        self.padding_mode, self.padding = padding_mode, padding
        self._ends = self._ends_of(call, padding)
        if not isinstance(padding, str):
            self.padding = tuple([before for before, _ in self._ends])
        self._draw((out_channels, in_channels // groups), bias, device, dtype)

    def _ends_of(self, call: str, padding: Size | str) -> list[tuple[int, int]]:
        """Returns the padding before and behind each axis."""
        if not isinstance(padding, str):
            return [(each, each) for each in sizes(call, "padding", padding, 0, self._axes)]
        if padding not in ("same", "valid"):
            raise _yoke.ValueError(f"{call}(): argument 'padding' is {padding!r}; it must be a number, a pair, 'same' or 'valid'")
        if padding == "same" and any(each != 1 for each in self.stride):
            raise _yoke.ValueError(f"{call}(): argument 'padding' is 'same' and 'stride' is {self.stride}; 'stride' must be 1, because 'same' keeps sizes")
        spans = [d * (k - 1) if padding == "same" else 0 for k, d in zip(self.kernel_size, self.dilation)]
        return [(span // 2, span - span // 2) for span in spans]

    def _padded(self, x: Tensor) -> tuple[Tensor, list[int]]:
        """Returns x, and the padding that is left to the convolution."""
        if self.padding_mode == "zeros" and all(before == behind for before, behind in self._ends):
            return x, [before for before, _ in self._ends]
        ends = [each for pair in reversed(self._ends) for each in pair]
        return (yoke.pad(x, ends, _MODES[self.padding_mode]) if any(ends) else x), [0] * self._axes


class Conv1d(_Forward):
    """Convolution of x [N, in_channels, L], or without N; weight is [out_channels, in_channels / groups, kernel_size].

    padding is a number, "same" (sizes stay, with stride 1) or "valid" (none); padding_mode "zeros", "reflect",
    "replicate" or "circular". weight and bias start uniform in ±1/√(in_channels / groups · kernel_size).
    """

    _axes = 1

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._padded(x)
        return yoke.conv1d(x, self.weight, self.bias, self.stride[0], padding[0], self.dilation[0], self.groups)


class Conv2d(_Forward):
    """Convolution of x [N, in_channels, H, W], or without N; weight is [out_channels, in_channels / groups, height, width].

    One number stands for height and width. padding is also "same" (sizes stay, with stride 1) or "valid" (none);
    padding_mode "zeros", "reflect", "replicate" or "circular". weight and bias start uniform in
    ±1/√(in_channels / groups · height · width). Results lie in memory as [N, H, W, C].
    """

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self._padded(x)
        return yoke.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class ConvTranspose2d(_Conv):
    """Gradient of Conv2d by its input, as a layer: x [N, in_channels, H, W], or without N, grows by stride.

    weight is [in_channels, out_channels / groups, height, width]; weight and bias start uniform in ±1/√(out_channels / groups ·
    height · width). output_padding, below stride or dilation, is added to the result's size, which is (H - 1) · stride - 2 ·
    padding + dilation · (height - 1) + 1 without it.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Size, stride: Size = 1, padding: Size = 0,
                 output_padding: Size = 0, groups: int = 1, bias: bool = True, dilation: Size = 1,
                 *, device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        self._take(in_channels, out_channels, kernel_size, stride, dilation, groups)
        self.padding = sizes("ConvTranspose2d", "padding", padding, 0)
        self.output_padding = sizes("ConvTranspose2d", "output_padding", output_padding, 0)
        self._draw((in_channels, out_channels // groups), bias, device, dtype)

    def forward(self, x: Tensor, output_size: Size | None = None) -> Tensor:
        """Computes the result. output_size, a height and width, replaces output_padding."""
        more = self.output_padding if output_size is None else self._more(x, output_size)
        return yoke.conv_transpose2d(x, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    def _more(self, x: Tensor, output_size: Size) -> tuple[int, ...]:
        wanted = sizes("ConvTranspose2d", "output_size", output_size, 1)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in
                 zip(x.shape[-2:], self.stride, self.padding, self.dilation, self.kernel_size)]
        more = tuple([size - low for size, low in zip(wanted, least)])
        if any(not 0 <= each < step for each, step in zip(more, self.stride)):
            most = [low + step - 1 for low, step in zip(least, self.stride)]
            raise _yoke.ValueError(f"ConvTranspose2d: argument 'output_size' is {wanted}; for x of shape {x.shape} it must be between {tuple(least)} and {tuple(most)}")
        return more
