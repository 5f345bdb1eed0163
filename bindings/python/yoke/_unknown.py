"""Errors about names that are not there: they say what to write in place of PyTorch's names."""

from __future__ import annotations

import sys
from types import ModuleType

from yoke import _yoke
from yoke._later import has


def unknown_name(module: ModuleType, name: str) -> AttributeError:
    """Returns the error of a module that has no such name."""
    error = AttributeError(f"module '{module.__name__}' has no attribute '{name}'{_advice(module, name)}")
    error.name, error.obj = name, module  # type: ignore[attr-defined, unused-ignore]  # from Python 3.10 on
    return error


def _advice(module: ModuleType, name: str) -> str:
    place = module.__name__.removeprefix("yoke.")
    if not name or name[0] == "_":
        return ""
    if advice := _yoke._foreign_name(place, name):
        return f"; {advice}"
    if other := _elsewhere(place, name):
        return f"; write yoke.{other}"
    near = _yoke._nearest_name(name, [each for each in dir(module) if each[0] != "_"])
    return f"; did you mean '{near}'?" if near else ""


def _elsewhere(place: str, name: str) -> str | None:
    """Returns the name with the module that has it, such as "nn.Linear"."""
    if place != "yoke" and has(name):
        return name
    if name[0].isupper():  # layers and optimizers
        for other in ("nn", "optim"):
            __import__(f"yoke.{other}")
            if other != place and name in sys.modules[f"yoke.{other}"].__all__:
                return f"{other}.{name}"
    return None
