"""Errors about names that are not there: they say what to write in place of PyTorch's names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

from yoke import _yoke
from yoke._later import has


def unknown_name(module: ModuleType, name: str) -> Exception:
    """Returns the error of a module that has no such name, for its __getattr__ to raise.

    A line `from module import name` needs an ImportError, because Python replaces the text of an AttributeError.
    """
    advice = _advice(module, name)
    if advice and _imports_from():
        return ImportError(f"cannot import name '{name}' from '{module.__name__}'{advice}", name=module.__name__)
    error = AttributeError(f"module '{module.__name__}' has no attribute '{name}'{advice}")
    error.name, error.obj = name, module  # type: ignore[attr-defined, unused-ignore]  # from Python 3.10 on
    return error


def teller(module: str) -> Callable[[str], object]:
    """Returns __getattr__ for a module whose names are all read already."""

    def __getattr__(name: str) -> object:
        raise unknown_name(sys.modules[module], name)

    return __getattr__


def _imports_from() -> bool:
    """Returns whether the caller of a module's __getattr__ is a line `from module import name`."""
    from opcode import opmap

    frame = sys._getframe(3)
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


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
