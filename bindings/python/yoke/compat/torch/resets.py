"""reset_parameters() of layers: draws the initial values again. A subclass's own method runs when a layer is made, as in PyTorch."""

from __future__ import annotations

import functools
import math
from typing import Any

import yoke
from yoke import nn
from yoke.nn.norm import _BatchNorm


def _reset_product(self: Any) -> None:
    """Draws weight and bias uniform in ±1/√fan_in."""
    bound = 1 / math.sqrt(max(self.weight[0].numel, 1))
    with yoke.no_grad():
        for each in (self.weight, self.bias):
            if each is not None:
                each.uniform_(-bound, bound)


def _reset_embedding(self: Any) -> None:
    """Draws weight normal; row padding_idx becomes 0."""
    with yoke.no_grad():
        self.weight.normal_()
        if self.padding_idx is not None:
            self.weight[self.padding_idx] = 0


def _reset_norm(self: Any) -> None:
    """Sets weight to 1 and bias to 0."""
    with yoke.no_grad():
        if self.weight is not None:
            self.weight.fill_(1)
        if getattr(self, "bias", None) is not None:
            self.bias.fill_(0)


def _reset_running_stats(self: Any) -> None:
    """Sets the running mean to 0, the running variance to 1 and the count to 0."""
    for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
        if getattr(self, name, None) is not None:
            getattr(self, name).fill_(value)


def _reset_batch_norm(self: Any) -> None:
    """Sets the running statistics, weight and bias to their initial values."""
    _reset_running_stats(self)
    _reset_norm(self)


# Methods by class.
METHODS: list[tuple[type, str, Any]] = [
    *((kind, "reset_parameters", _reset_product) for kind in (nn.Linear, nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d)),
    (nn.Embedding, "reset_parameters", _reset_embedding),
    *((kind, "reset_parameters", _reset_norm) for kind in (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)),
    (_BatchNorm, "reset_parameters", _reset_batch_norm), (_BatchNorm, "reset_running_stats", _reset_running_stats)]


def _calls_own(kind: Any, stock: Any) -> Any:
    """Returns the class's __init__, which calls reset_parameters() afterwards if a subclass has its own."""
    own = kind.__init__

    @functools.wraps(own)
    def start(self: Any, *args: Any, **keywords: Any) -> None:
        own(self, *args, **keywords)
        if type(self).reset_parameters is not stock:
            self.reset_parameters()

    start.__wrapped__ = getattr(own, "__wrapped__", own)  # type: ignore[attr-defined]  # by which errors find the name of the class
    return start


STARTS: list[tuple[type, str, Any]] = [(kind, "__init__", _calls_own(kind, method)) for kind, name, method in METHODS if name == "reset_parameters"]
