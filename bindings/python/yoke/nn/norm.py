"""Normalisation layers. Weights start as ones, biases as zeros."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import yoke
from yoke import _yoke
from yoke._check import whole
from yoke._yoke import Device, Tensor, dtype as DType
from yoke.nn.module import Module, Parameter


def _lengths(shape: int | Sequence[int], call: str) -> tuple[int, ...]:
    listed = shape if isinstance(shape, Iterable) and not isinstance(shape, str) else [shape]
    lengths = tuple([whole(call, "normalized_shape", length, 1) for length in listed])
    if not lengths:
        raise _yoke.ValueError(f"{call}(): argument 'normalized_shape' is empty; it must have one axis or more")
    return lengths


def _is_half(x: Tensor) -> bool:
    return x.dtype in (yoke.float16, yoke.bfloat16)


class _Affine(Module):
    """Scale and shift of the same shape, or neither."""

    weight: Parameter | None
    bias: Parameter | None

    def _register(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Device | str | int | None,
                  dtype: DType | None) -> None:
        for name, fill, wanted in (("weight", yoke.ones, weight), ("bias", yoke.zeros, bias)):
            self.register_parameter(name, Parameter(fill(shape, dtype=dtype, device=device)) if wanted else None)


class LayerNorm(_Affine):
    """Normalises the last axes, of shape normalized_shape, to mean 0 and variance 1; then weight and bias.

    (J. Ba et al., "Layer Normalization".)
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        self.normalized_shape, self.eps = _lengths(normalized_shape, "LayerNorm"), eps
        self._register(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    @overload
    def forward(self, x: Tensor) -> Tensor: ...
    @overload
    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]: ...

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """Returns the norm of x. With a residual: x + residual, and the norm of the sum, in one pass over memory (yoke.add_layer_norm);
        under autocast the norm has the 16-bit float of products.
        """
        if residual is None:
            return yoke.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        dtype, is_cast = None, yoke.is_autocast_enabled()
        if is_cast and _is_half(x) and x.dtype == residual.dtype:  # the sum is a half, whose norm is taken in float32
            total = x + residual
            return total, self.forward(total)
        if is_cast and yoke.float64 not in (x.dtype, residual.dtype):
            dtype = yoke.get_autocast_dtype(x.device)
        return yoke.add_layer_norm(x, residual, self.normalized_shape, self.weight, self.bias, self.eps, dtype)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(_Affine):
    """Divides the last axes, of shape normalized_shape, by their root mean square; then weight.

    eps None is the dtype's own epsilon. (B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization".)
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
                 device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        self.normalized_shape, self.eps = _lengths(normalized_shape, "RMSNorm"), eps
        self._register(self.normalized_shape, elementwise_affine, False, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return yoke.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(_Affine):
    """Normalises x [N, C, …] in num_groups groups of channels; then weight and bias, a number for each channel.

    (Y. Wu, K. He, "Group Normalization".)
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        num_groups = whole("GroupNorm", "num_groups", num_groups, 1)
        num_channels = whole("GroupNorm", "num_channels", num_channels, 1)
        if num_channels % num_groups:
            raise _yoke.ValueError(f"GroupNorm(): argument 'num_channels' is {num_channels} and 'num_groups' is {num_groups}; 'num_groups' must divide 'num_channels' evenly")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self._register((num_channels,), affine, affine, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return yoke.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class _BatchNorm(_Affine):
    """Normalises each channel over the batch while training, by running statistics otherwise.

    (S. Ioffe, C. Szegedy, "Batch Normalization".) running = (1 - momentum) * running + momentum * batch; momentum None takes the
    plain average over all batches so far. With relu=True the result is the ReLU of the norm, or of the norm plus a residual of
    x's shape, in one pass over memory: yoke.batch_norm_add_relu.
    """

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _ndims: tuple[int, ...]
    _layout: str

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Device | str | int | None = None,
                 dtype: DType | None = None, relu: bool = False) -> None:
        num_features = whole(type(self).__name__, "num_features", num_features, 1)
        self.num_features, self.eps, self.momentum, self.relu = num_features, eps, momentum, relu
        self._register((num_features,), affine, affine, device, dtype)
        statistics = {"running_mean": yoke.zeros(num_features, dtype=dtype, device=device),
                      "running_var": yoke.ones(num_features, dtype=dtype, device=device),
                      "num_batches_tracked": yoke.zeros((), dtype=yoke.int64, device=device)}
        for name, value in statistics.items():
            self.register_buffer(name, value if track_running_stats else None)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        if residual is not None and not self.relu:
            raise _yoke.ValueError(f"{type(self).__name__}: argument 'residual' is given, but the layer has relu={self.relu}; create the layer with relu=True, or add the residual to its result")
        if x.ndim not in self._ndims:
            raise _yoke.ValueError(f"{type(self).__name__}: argument 'x' has shape {x.shape}; it must be {self._layout}")
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            if momentum is None:
                momentum = 1.0 / self.num_batches_tracked.item()
        over_batch = self.training or self.running_mean is None
        rest = (self.running_mean, self.running_var, self.weight, self.bias, over_batch,
                0.0 if momentum is None else momentum, self.eps)
        return yoke.batch_norm_add_relu(x, residual, *rest) if self.relu else yoke.batch_norm(x, *rest)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}{', relu=True' if self.relu else ''}"


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L]; running statistics serve where it does not train."""

    _ndims, _layout = (2, 3), "[N, C] or [N, C, L]"


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W]; running statistics serve where it does not train."""

    _ndims, _layout = (4,), "[N, C, H, W]"
