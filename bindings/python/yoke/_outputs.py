"""Tensors in what a module gives: in tuples, lists, dicts and dataclasses, however deep."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from yoke._yoke import Tensor

__all__ = ["replaced", "tensors_in"]


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """Of a container: places and what is there."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (tuple, list)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(each.name, getattr(value, each.name, None)) for each in dataclasses.fields(value)]
    return []


def tensors_in(value: Any) -> list[Tensor]:
    """Each once."""
    found: list[Tensor] = []
    held, seen = [value], set()
    while held:
        each = held.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Tensor):
            found.append(each)
        else:
            held.extend(part for _, part in reversed(_parts(each)))
    return found


def replaced(value: Any, by: dict[int, Any]) -> Any:
    """`value` with by[id(each)] in the place of each: containers that hold one are copied, others are the same."""
    if id(value) in by:
        return by[id(value)]
    by[id(value)] = value  # where it holds itself
    changed = {}
    for place, part in _parts(value):
        other = replaced(part, by)
        if other is not part:
            changed[place] = other
    if changed:
        by[id(value)] = _with(value, changed)
    return by[id(value)]


def _with(value: Any, changed: dict[Any, Any]) -> Any:
    if isinstance(value, tuple):
        items = [changed.get(place, part) for place, part in enumerate(value)]
        return value._make(items) if hasattr(value, "_make") else type(value)(items)
    made = copy.copy(value)
    for place, part in changed.items():
        if isinstance(value, (dict, list)):
            made[place] = part
        else:
            object.__setattr__(made, place, part)  # also of a frozen one
    return made
