"""Tensors in what a module gives: in tuples, lists, dicts and dataclasses, however deep."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any

from yoke._yoke import Tensor

__all__ = ["replaced", "tensors_in"]


# Told apart first, as there may be a million of them.
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None)))


def _field(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:  # none yet, or what the class makes of that
        return None


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """Of a container: places and what is there."""
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, (tuple, list)):
        return enumerate(value)
    if dataclasses.is_dataclass(type(value)):
        return [(each.name, _field(value, each.name)) for each in dataclasses.fields(type(value))]
    return ()


def tensors_in(value: Any) -> list[Tensor]:
    """Each once, without those that are closed."""
    found: list[Tensor] = []
    held, seen = [value], set()
    while held:
        each = held.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if not isinstance(each, Tensor):
            held.extend(reversed([part for _, part in _parts(each) if type(part) not in _PLAIN]))
        elif not each.closed:
            found.append(each)
    return found


def replaced(value: Any, by: dict[int, Any]) -> Any:
    """`value` with by[id(each)] in the place of each: containers that hold one are copied, others are the same."""
    if id(value) in by:
        return by[id(value)]
    by[id(value)] = value  # where it holds itself
    changed = {}
    for place, part in _parts(value):
        other = part if type(part) in _PLAIN else replaced(part, by)
        if other is not part:
            changed[place] = other
    if changed:
        by[id(value)] = _with(value, changed)
    return by[id(value)]


def _with(value: Any, changed: dict[Any, Any]) -> Any:
    if isinstance(value, tuple):
        built = tuple.__new__(type(value), [changed.get(place, part) for place, part in enumerate(value)])
        if hasattr(value, "__dict__"):
            built.__dict__.update(value.__dict__)
        return built
    made = copy.copy(value)
    for place, part in changed.items():
        if isinstance(value, (dict, list)):
            made[place] = part
        else:
            object.__setattr__(made, place, part)  # also of a frozen one
    return made
