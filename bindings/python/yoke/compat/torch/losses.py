"""Losses with PyTorch's arguments, as layers over torch.nn.functional."""

from __future__ import annotations

from typing import Any

from yoke import nn
from yoke._yoke import Tensor
from yoke.compat.torch import nets
from yoke.compat.torch.options import reduction_of
from yoke.nn.module import Module


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """Cross entropy of logits; weight is a buffer."""

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(reduction=reduction_of(size_average, reduce, reduction), ignore_index=ignore_index, label_smoothing=label_smoothing)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction, label_smoothing=self.label_smoothing)


class NLLLoss(nn.NLLLoss):
    """Negative log likelihood; weight is a buffer."""

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction_of(size_average, reduce, reduction), ignore_index=ignore_index)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class MSELoss(nn.MSELoss):
    """(input - target)²."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction_of(size_average, reduce, reduction))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.mse_loss(input, target, reduction=self.reduction)


class L1Loss(nn.L1Loss):
    """|input - target|."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction_of(size_average, reduce, reduction))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(nn.SmoothL1Loss):
    """Squared error below beta, absolute error above."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction_of(size_average, reduce, reduction), beta=beta)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Module):
    """Squared error below delta, delta times the absolute error above."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self.reduction, self.delta = reduction, delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(nn.KLDivLoss):
    """Divergence of log-probabilities from target."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction_of(size_average, reduce, reduction), log_target=log_target)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(Module):
    """Cross entropy of probabilities and target; weight is a buffer."""

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        self.reduction = reduction_of(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(nn.BCEWithLogitsLoss):
    """Cross entropy of sigmoid(input) and target; weight and pos_weight are buffers."""

    def __init__(self, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(weight, reduction=reduction_of(size_average, reduce, reduction), pos_weight=pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return nets.binary_cross_entropy_with_logits(input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight)
