"""Optimizers, schedules, clipping and averages: PyTorch's interface over the core's."""

from __future__ import annotations

from collections.abc import Iterable

from yoke import _yoke
from yoke._check import listed
from yoke._named import named
from yoke._yoke import Tensor
from yoke.optim import schedule
from yoke.optim.ema import EMA
from yoke.optim.optimizer import SGD, Adam, AdamW, Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yoke.optim import lr_scheduler

__all__ = ["SGD", "Adam", "AdamW", "EMA", "Optimizer", "clip_grad_norm_", "schedule"]


@named
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Multiplies all gradients by the same factor, so that their norm as a vector is max_norm at most.

    Returns the norm before, a scalar tensor, without a wait. norm_type is 2, 1, float("inf") or any number above 0. With a
    GradScaler, call scaler.unscale_(optimizer) first.
    """
    params = [parameters] if isinstance(parameters, Tensor) else listed("clip_grad_norm_", "parameters", parameters, "tensors")
    return _yoke._clip_grad_norm(params, max_norm, norm_type)


def __getattr__(name: str) -> object:
    if name == "lr_scheduler":  # read at the first use
        __import__("yoke.optim.lr_scheduler")
        return globals()[name]
    import sys

    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
