"""Objects whose states ranks send each other: optimizers, scalers, schedules, averages, samplers."""

from __future__ import annotations

from typing import Any

from yoke import _yoke
from yoke._check import shown


def check(objects: tuple[Any, ...], call: str) -> None:
    for i, each in enumerate(objects):
        if not all(callable(getattr(each, name, None)) for name in ("state_dict", "load_state_dict")):
            raise _yoke.TypeError(f"{call}(): object {i} is {shown(each)}; it must have state_dict() and load_state_dict(), such as an optimizer")


def states(objects: tuple[Any, ...]) -> list[Any] | None:
    return [each.state_dict() for each in objects] or None


def compare(objects: tuple[Any, ...], told: list[Any] | None, call: str) -> None:
    count = len(told or [])
    if count != len(objects):
        raise _yoke.ValueError(f"{call}(): this rank gives {len(objects)} objects, but the rank whose states are taken gives {count}; give the same objects on all ranks")


def load(objects: tuple[Any, ...], told: list[Any] | None, call: str) -> None:
    compare(objects, told, call)
    for each, state in zip(objects, told or []):
        each.load_state_dict(state)
