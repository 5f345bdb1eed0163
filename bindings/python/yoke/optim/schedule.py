"""Schedules of the learning rate: make a schedule over an optimizer and call step() after each of its steps."""

from __future__ import annotations

from typing import Any, ClassVar

from yoke import _yoke
from yoke._check import number, whole
from yoke._named import Named
from yoke.optim.optimizer import need_optimizer

__all__ = ["constant", "cosine", "linear", "one_cycle", "step"]


class Schedule(Named):
    """Base of all schedules. The rate of step 0 is in force once the schedule is made."""

    _CALL_PREFIX = "schedule."

    # Attributes that, with base_lrs, describe the schedule: numbers (None), or whole numbers with this minimum.
    _OPTIONS: ClassVar[dict[str, int | None]]

    def __init__(self, optimizer: Any, **options: Any) -> None:
        call = f"schedule.{self._kind()}"
        self._set(self._checked(call, options))
        self.optimizer = need_optimizer(call, optimizer)
        optimizer._check_groups()
        self.base_lrs: list[float] = [group["lr"] for group in optimizer.param_groups]
        self.last_step = 0
        self._apply()

    @classmethod
    def _kind(cls) -> str:
        """Returns the name of this module's class, also for PyTorch's form of the class (lr_scheduler.py)."""
        return next(each.__name__ for each in cls.__mro__ if each.__module__ == __name__)

    def _checked(self, call: str, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options in their stored form; raises an error with the name of an invalid option."""
        return {name: number(call, name, options[name]) if least is None else whole(call, name, options[name], least)
                for name, least in self._OPTIONS.items()}

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def lr_at(self, step: int, base_lr: float) -> float:
        """Returns the rate at a step, counted from 0, of a group with the initial rate `base_lr`."""
        raise NotImplementedError

    def _apply(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = self.lr_at(self.last_step, base)

    def step(self) -> None:
        """Advances a step. Before the optimizer's first step it warns."""
        self.optimizer._core.note_schedule()
        self.last_step += 1
        self._apply()

    @property
    def last_lr(self) -> list[float]:
        """Present learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """Returns last_lr."""
        return self.last_lr

    def state_dict(self) -> dict[str, Any]:
        """Returns the kind, its options, the initial rates and the last step, for load_state_dict()."""
        own = {name: getattr(self, name) for name in (*self._OPTIONS, "last_step")}
        return {"kind": self._kind(), **own, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from the place of state_dict(). If the state does not fit, raises ValueError or TypeError and changes nothing."""
        _yoke._check_schedule(state_dict, len(self.base_lrs))
        kind, own = state_dict["kind"], self._kind()
        if kind != own:
            raise _yoke.ValueError(f"load_state_dict: the state belongs to the schedule {kind}, but this schedule is {own}; load the state into a schedule of its kind")
        self._set({name: state_dict[name] for name in (*self._OPTIONS, "last_step")})
        self.base_lrs = list(state_dict["base_lrs"])
        self._apply()


class constant(Schedule):
    """factor * base before total_steps, then base: PyTorch's ConstantLR. Without arguments the rate never changes."""

    _OPTIONS = {"factor": None, "total_steps": 0}
    factor: float
    total_steps: int

    def __init__(self, optimizer: Any, factor: float = 1.0, total_steps: int = 0) -> None:
        super().__init__(optimizer, factor=factor, total_steps=total_steps)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_constant(base_lr, self.factor, self.total_steps, step)


class linear(Schedule):
    """Learning rate of all groups from `start` to `end` in `total_steps` equal parts, and stays there.

        lr = start + (end - start) * step / total_steps
    """

    _OPTIONS = {"start": None, "end": None, "total_steps": 1}
    start: float
    end: float
    total_steps: int

    def __init__(self, optimizer: Any, start: float, end: float, total_steps: int) -> None:
        super().__init__(optimizer, start=start, end=end, total_steps=total_steps)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_linear(self.start, self.end, self.total_steps, step)


class cosine(Schedule):
    """Half a cosine from each group's rate down to min_lr at total_steps, where it stays: PyTorch's CosineAnnealingLR.

    Before it the rate goes up in warmup_steps equal parts: base * (step + 1) / (warmup_steps + 1).
    """

    _OPTIONS = {"total_steps": 1, "min_lr": None, "warmup_steps": 0}
    total_steps: int
    min_lr: float
    warmup_steps: int

    def __init__(self, optimizer: Any, total_steps: int, min_lr: float = 0.0, *, warmup_steps: int = 0) -> None:
        super().__init__(optimizer, total_steps=total_steps, min_lr=min_lr, warmup_steps=warmup_steps)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_cosine(base_lr, self.min_lr, self.total_steps, self.warmup_steps, step)


class step(Schedule):
    """Rate that is multiplied by gamma after every step_size steps: PyTorch's StepLR."""

    _OPTIONS = {"step_size": 1, "gamma": None}
    step_size: int
    gamma: float

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(optimizer, step_size=step_size, gamma=gamma)

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_step(base_lr, self.step_size, self.gamma, step)


class one_cycle(Schedule):
    """Rate of all groups that rises from max_lr / div_factor to max_lr over pct_start of the steps, and falls to
    max_lr / div_factor / final_div_factor, along half a cosine each: PyTorch's OneCycleLR. Momentum stays as it is.
    """

    _OPTIONS = {"max_lr": None, "total_steps": 1, "pct_start": None, "div_factor": None, "final_div_factor": None}
    max_lr: float
    total_steps: int
    pct_start: float
    div_factor: float
    final_div_factor: float

    def __init__(self, optimizer: Any, max_lr: float, total_steps: int, *, pct_start: float = 0.3,
                 div_factor: float = 25.0, final_div_factor: float = 1e4) -> None:
        super().__init__(optimizer, max_lr=max_lr, total_steps=total_steps, pct_start=pct_start, div_factor=div_factor,
                         final_div_factor=final_div_factor)

    def _checked(self, call: str, options: dict[str, Any]) -> dict[str, Any]:
        checked = super()._checked(call, options)
        share, div_factor, final_div_factor = (checked[name] for name in ("pct_start", "div_factor", "final_div_factor"))
        if not 0 <= share <= 1:
            raise _yoke.ValueError(f"{call}(): argument 'pct_start' is {share}; it must be a share from 0 to 1")
        if not (div_factor > 0 and final_div_factor > 0):
            raise _yoke.ValueError(f"{call}(): arguments 'div_factor' and 'final_div_factor' are {div_factor} and {final_div_factor}; both must be above 0")
        return checked

    def lr_at(self, step: int, base_lr: float) -> float:
        return _yoke._schedule_one_cycle(self.max_lr, self.total_steps, self.pct_start, self.div_factor,
                                         self.final_div_factor, step)
