"""Tensors in the result of a module: in tuples, lists, dicts and dataclasses, however deep."""

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
    except Exception:  # missing, or an error of the class
        return None


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """Returns places and values of a container."""
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, (tuple, list)):
        return enumerate(value)
    if dataclasses.is_dataclass(type(value)):
        return [(each.name, _field(value, each.name)) for each in dataclasses.fields(type(value))]
    return ()


def tensors_in(value: Any) -> list[Tensor]:
    """Lists the open tensors in a value, each once."""
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
    """Returns `value` with by[id(each)] in place of each: containers of a replaced value are copied, others stay the same."""
    if id(value) in by:
        return by[id(value)]
    by[id(value)] = value  # for a value that holds itself
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
