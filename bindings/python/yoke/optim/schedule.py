"""Schedules of the learning rate: make one over an optimizer and call step() after each of its steps."""

from __future__ import annotations

from typing import Any

from yoke import _yoke

__all__ = ["linear"]


class linear:
    """The learning rate goes from `start` to `end` in `total_steps` equal parts, and stays there.

        lr = start + (end - start) * step / total_steps

    It is `start` from the moment the schedule is made.
    """

    def __init__(self, optimizer: Any, start: float, end: float, total_steps: int) -> None:
        if total_steps < 1:
            raise _yoke.ValueError(f"schedule.linear(): argument 'total_steps' is {total_steps}; at least 1 is needed")
        self.optimizer = optimizer
        self.start, self.end, self.total_steps = start, end, total_steps
        self.last_step = 0
        self._apply()

    def _apply(self) -> None:
        lr = _yoke._schedule_linear(self.start, self.end, self.total_steps, self.last_step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def step(self) -> None:
        """One step further."""
        self.last_step += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The numbers that load_state_dict() takes."""
        return {name: getattr(self, name) for name in ("start", "end", "total_steps", "last_step")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from where state_dict() was taken."""
        for name in ("start", "end", "total_steps", "last_step"):
            setattr(self, name, state_dict[name])
        self._apply()
