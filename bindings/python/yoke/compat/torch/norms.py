"""Layers that normalise each channel of each example."""

from __future__ import annotations

from typing import Any

import yoke
from yoke._yoke import Tensor
from yoke.compat.torch import nets
from yoke.compat.torch.options import refused
from yoke.nn.module import Module, Parameter


class InstanceNorm2d(Module):
    """Normalises each channel of each example to mean 0 and variance 1; affine adds a weight and a bias for each channel."""

    _axes = 4

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
                 device: Any = None, dtype: Any = None) -> None:
        refused(type(self).__name__, track_running_stats=(track_running_stats, False))
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = Parameter(yoke.ones(num_features, device=device, dtype=dtype)) if affine else None
        self.bias = Parameter(yoke.zeros(num_features, device=device, dtype=dtype)) if affine else None

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim == self._axes - 1:  # a single example
            return self.forward(input.unsqueeze(0)).squeeze(0)
        return nets.instance_norm(input, weight=self.weight, bias=self.bias, eps=self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, track_running_stats={self.track_running_stats}"


class InstanceNorm1d(InstanceNorm2d):
    """InstanceNorm of [N, C, L]."""

    _axes = 3


class InstanceNorm3d(InstanceNorm2d):
    """InstanceNorm of [N, C, D, H, W]."""

    _axes = 5
