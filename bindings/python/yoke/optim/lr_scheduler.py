"""PyTorch's schedules of the learning rate, with its names and arguments, over those of yoke.optim.schedule."""

from __future__ import annotations

import sys
from typing import Any

from yoke import _yoke
from yoke._check import number
from yoke.optim import schedule
from yoke.optim.optimizer import need_optimizer
from yoke.optim.schedule import Schedule as LRScheduler

__all__ = ["ConstantLR", "CosineAnnealingLR", "LRScheduler", "LinearLR", "OneCycleLR", "StepLR"]


def _need_start(call: str, last_epoch: int) -> None:
    if last_epoch != -1:
        raise _yoke.ValueError(f"{call}(): argument 'last_epoch' is {last_epoch}; leave it out, and continue a schedule by load_state_dict()")


class StepLR(schedule.step):
    """Multiplies the rate by gamma after every step_size steps."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        _need_start("StepLR", last_epoch)
        super().__init__(optimizer, step_size, gamma)


class ConstantLR(schedule.constant):
    """factor times the rate before total_iters, then the rate."""

    def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        _need_start("ConstantLR", last_epoch)
        super().__init__(optimizer, factor, total_iters)


class LinearLR(schedule.linear):
    """Takes the rate in equal parts from start_factor to end_factor times the rate, in total_iters steps.

    All groups must have the same rate.
    """

    def __init__(self, optimizer: Any, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        _need_start("LinearLR", last_epoch)
        rates = {group["lr"] for group in need_optimizer("LinearLR", optimizer).param_groups}
        if len(rates) > 1:
            raise _yoke.ValueError(f"LinearLR(): the groups of argument 'optimizer' have the rates {sorted(rates)}; they must have the same rate")
        rate = rates.pop()
        super().__init__(optimizer, rate * number("LinearLR", "start_factor", start_factor), rate * number("LinearLR", "end_factor", end_factor), total_iters)


class CosineAnnealingLR(schedule.cosine):
    """Half a cosine from the rate down to eta_min in T_max steps, and stays there."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        _need_start("CosineAnnealingLR", last_epoch)
        super().__init__(optimizer, T_max, eta_min)


class OneCycleLR(schedule.one_cycle):
    """Rises to max_lr over pct_start of the steps, and falls, along half a cosine each; the momentum stays."""

    def __init__(self, optimizer: Any, max_lr: float, total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
                 pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = False, *, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, last_epoch: int = -1) -> None:
        _need_start("OneCycleLR", last_epoch)
        for name, value, only in (("anneal_strategy", anneal_strategy, "cos"), ("cycle_momentum", cycle_momentum, False)):
            if value != only:
                raise _yoke.ValueError(f"OneCycleLR(): argument '{name}' is {value!r}; it must be {only!r}")
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise _yoke.TypeError("OneCycleLR(): argument 'total_steps' is missing; give total_steps, or epochs and steps_per_epoch")
        steps = total_steps if total_steps is not None else int(epochs or 0) * int(steps_per_epoch or 0)
        super().__init__(optimizer, max_lr, steps, pct_start=pct_start, div_factor=div_factor, final_div_factor=final_div_factor)


def __getattr__(name: str) -> Any:
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
