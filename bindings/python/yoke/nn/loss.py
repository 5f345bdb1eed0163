"""Losses as modules: loss(x, target). reduction is "mean", "sum" or "none"."""

from __future__ import annotations

import yoke
from yoke._yoke import Tensor
from yoke.nn.module import Module


class CrossEntropyLoss(Module):
    """Softmax cross entropy of logits [N, C, …] and class indices or probabilities; weight [C], a buffer, scales each class.

    See yoke.cross_entropy.
    """

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean", ignore_index: int = -100,
                 label_smoothing: float = 0.0) -> None:
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing
        self.register_buffer("weight", weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.cross_entropy(x, target, self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
                                  label_smoothing=self.label_smoothing)


class NLLLoss(Module):
    """Negative log likelihood of log-probabilities [N, C, …] and class indices; weight [C], a buffer, scales each class.

    See yoke.nll_loss.
    """

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean", ignore_index: int = -100) -> None:
        self.reduction, self.ignore_index = reduction, ignore_index
        self.register_buffer("weight", weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.nll_loss(x, target, self.weight, reduction=self.reduction, ignore_index=self.ignore_index)


class MSELoss(Module):
    """(x - target)²; see yoke.mse_loss."""

    def __init__(self, *, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.mse_loss(x, target, reduction=self.reduction)


class L1Loss(Module):
    """|x - target|; see yoke.l1_loss."""

    def __init__(self, *, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.l1_loss(x, target, reduction=self.reduction)


class SmoothL1Loss(Module):
    """Squared error below beta, absolute error above; see yoke.smooth_l1_loss."""

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        self.reduction, self.beta = reduction, beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.smooth_l1_loss(x, target, reduction=self.reduction, beta=self.beta)


class BCEWithLogitsLoss(Module):
    """Cross entropy of sigmoid(x) and target; weight and pos_weight are buffers.

    See yoke.binary_cross_entropy_with_logits.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        self.reduction = reduction
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.binary_cross_entropy_with_logits(x, target, self.weight, reduction=self.reduction,
                                                     pos_weight=self.pos_weight)


class KLDivLoss(Module):
    """Divergence of log-probabilities x from target; reduction may also be "batchmean". See yoke.kl_div."""

    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        self.reduction, self.log_target = reduction, log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.kl_div(x, target, reduction=self.reduction, log_target=self.log_target)
