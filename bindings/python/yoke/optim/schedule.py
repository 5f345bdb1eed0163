"""Schedules of the learning rate: make one over an optimizer and call step() after each of its steps."""

from __future__ import annotations

from typing import Any, ClassVar

from yoke import _yoke

__all__ = ["constant", "cosine", "linear", "one_cycle", "step"]


class Schedule:
    """What all schedules share. The rate of step 0 is in force from the moment the schedule is made."""

    _OPTIONS: ClassVar[tuple[str, ...]]  # the attributes that, with base_lrs, say what it does

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        optimizer._check_groups()
        self.base_lrs: list[float] = [group["lr"] for group in optimizer.param_groups]
        self.last_step = 0
        self._apply()

    def lr_at(self, step: int, base_lr: float) -> float:
        """The rate at a step, which counts from 0, of a group with that rate at the beginning."""
        raise NotImplementedError

    def _apply(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = self.lr_at(self.last_step, base)

    def step(self) -> None:
        """One step further."""
        self.last_step += 1
        self._apply()

    @property
    def last_lr(self) -> list[float]:
        """The learning rate of each group now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The same as last_lr."""
        return self.last_lr

    def state_dict(self) -> dict[str, Any]:
        """The numbers that load_state_dict() takes."""
        return {name: getattr(self, name) for name in (*self._OPTIONS, "base_lrs", "last_step")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from where state_dict() was taken."""
        values = {name: state_dict[name] for name in (*self._OPTIONS, "base_lrs", "last_step")}
        if len(values["base_lrs"]) != len(self.base_lrs):
            raise _yoke.ValueError(f"load_state_dict(): rates of {len(values['base_lrs'])} groups for an optimizer with "
                                   f"{len(self.base_lrs)}")
        for name, value in values.items():
            setattr(self, name, value)
        self._apply()


def _at_least(kind: str, name: str, value: int, least: int) -> int:
    if not isinstance(value, int) or value < least:
        raise _yoke.ValueError(f"schedule.{kind}(): argument '{name}' is {value!r}; an int of at least {least} is needed")
    return value


class constant(Schedule):
    """factor * base before total_steps, then base: PyTorch's ConstantLR. Without arguments the rate never changes."""

    _OPTIONS = ("factor", "total_steps")

    def __init__(self, optimizer: Any, factor: float = 1.0, total_steps: int = 0) -> None:
        self.factor, self.total_steps = factor, _at_least("constant", "total_steps", total_steps, 0)
        super().__init__(optimizer)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_constant(base_lr, self.factor, self.total_steps, step)


class linear(Schedule):
    """The learning rate of all groups goes from `start` to `end` in `total_steps` equal parts, and stays there.

        lr = start + (end - start) * step / total_steps
    """

    _OPTIONS = ("start", "end", "total_steps")

    def __init__(self, optimizer: Any, start: float, end: float, total_steps: int) -> None:
        self.start, self.end = start, end
        self.total_steps = _at_least("linear", "total_steps", total_steps, 1)
        super().__init__(optimizer)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_linear(self.start, self.end, self.total_steps, step)


class cosine(Schedule):
    """Half a cosine from each group's rate down to min_lr at total_steps, where it stays: PyTorch's CosineAnnealingLR.

    Before it the rate goes up in warmup_steps equal parts: base * (step + 1) / (warmup_steps + 1).
    """

    _OPTIONS = ("total_steps", "min_lr", "warmup_steps")

    def __init__(self, optimizer: Any, total_steps: int, min_lr: float = 0.0, warmup_steps: int = 0) -> None:
        self.total_steps = _at_least("cosine", "total_steps", total_steps, 1)
        self.min_lr, self.warmup_steps = min_lr, _at_least("cosine", "warmup_steps", warmup_steps, 0)
        super().__init__(optimizer)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_cosine(base_lr, self.min_lr, self.total_steps, self.warmup_steps, step)


class step(Schedule):
    """The rate is multiplied by gamma after every step_size steps: PyTorch's StepLR."""

    _OPTIONS = ("step_size", "gamma")

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = _at_least("step", "step_size", step_size, 1), gamma
        super().__init__(optimizer)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_step(base_lr, self.step_size, self.gamma, step)


class one_cycle(Schedule):
    """The rate of all groups rises from max_lr / div_factor to max_lr over pct_start of the steps, and falls to
    max_lr / div_factor / final_div_factor, along half a cosine each: PyTorch's OneCycleLR. Momentum stays as it is.
    """

    _OPTIONS = ("max_lr", "total_steps", "pct_start", "div_factor", "final_div_factor")

    def __init__(self, optimizer: Any, max_lr: float, total_steps: int, pct_start: float = 0.3,
                 div_factor: float = 25.0, final_div_factor: float = 1e4) -> None:
        if not 0 <= pct_start <= 1:
            raise _yoke.ValueError(f"schedule.one_cycle(): argument 'pct_start' is {pct_start}; it is a share, 0 to 1")
        if not (div_factor > 0 and final_div_factor > 0):
            raise _yoke.ValueError(f"schedule.one_cycle(): arguments 'div_factor' and 'final_div_factor' are {div_factor} "
                                   f"and {final_div_factor}; both must be above 0")
        self.max_lr, self.total_steps = max_lr, _at_least("one_cycle", "total_steps", total_steps, 1)
        self.pct_start, self.div_factor, self.final_div_factor = pct_start, div_factor, final_div_factor
        super().__init__(optimizer)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_one_cycle(self.max_lr, self.total_steps, self.pct_start, self.div_factor,
                                         self.final_div_factor, step)
