"""Modules torch, torch.nn and so on, whose names are found at their first use, and the finder of `import`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from yoke import _yoke
from yoke.compat.torch import __version__
from yoke.compat.torch._facts import FACTS
from yoke.compat.torch._table import MODULES, RUN, TABLE, YOKE_PLACES

_MISSING = object()


class Names(ModuleType):
    """Module of PyTorch's names. Each name is Yoke's object, or the object that the table names."""

    def __getattr__(self, name: str) -> Any:
        place = place_of(self.__name__)
        if name == "__all__":  # for `from torch import *`, which gives no modules
            return [each for each in public(place) if f"{self.__name__}.{each}" not in MODULES]
        if f"{self.__name__}.{name}" in MODULES:
            return importlib.import_module(f"{self.__name__}.{name}")
        value = found(place, name)
        if value is _MISSING:
            raise _unknown(self, place, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *public(place_of(self.__name__))})


def place_of(module: str) -> str:
    """Returns the table's name of a module: "nn" for torch.nn, "torch" for torch itself."""
    return module.partition(".")[2] or "torch"


def found(place: str, name: str) -> Any:
    """Returns the object behind PyTorch's name, or _MISSING."""
    entry = TABLE.get(place, {}).get(name)
    if entry is not None:
        return implementation(entry)
    if name in FACTS.get(place, ()):
        return _of_yoke(place, name)
    if place.startswith("nn.modules"):
        return found("nn", name)
    return _MISSING


def implementation(entry: str) -> Any:
    """Returns the object that an entry of the table names: "=a.b" in yoke, "module.name" in this package."""
    where = entry.partition(";")[0].strip()
    if where[0] == "=":
        value: Any = sys.modules["yoke"]
        path = where[1:].split(".")
    else:
        first, *path = where.split(".")
        value = importlib.import_module(f"yoke.compat.torch.{first}")
    for part in path:
        value = getattr(value, part)
    return value


def _of_yoke(place: str, name: str) -> Any:
    """Returns the object that Yoke has under the same name, or _MISSING."""
    where = YOKE_PLACES.get(place)
    if where is None:
        return _MISSING
    try:
        module = importlib.import_module(where)
    except ModuleNotFoundError:
        return _MISSING
    return getattr(module, name, _MISSING)


def public(place: str) -> list[str]:
    """Lists PyTorch's names of a module that can be used."""
    listed = {*TABLE.get(place, {}), *FACTS.get(place, ())}
    prefix = "torch." if place == "torch" else f"torch.{place}."
    below = {name[len(prefix):] for name in MODULES if name.startswith(prefix) and "." not in name[len(prefix):]}
    return sorted(below | {name for name in listed if name[0] != "_" and found(place, name) is not _MISSING})


def advice(place: str, name: str) -> str:
    """Returns what to write in place of a name of PyTorch that is not there, or ""."""
    own = _yoke._foreign_name(place if place != "torch" else "yoke", name)
    parent, _, last = place.rpartition(".")
    return own or (_yoke._foreign_name(parent or "yoke", last) if place != "torch" and not own else None) or ""


def _unknown(module: ModuleType, place: str, name: str) -> AttributeError:
    error = AttributeError(_text(f"module '{module.__name__}' has no attribute '{name}'", place, name))
    error.name, error.obj = name, module  # type: ignore[attr-defined, unused-ignore]  # from Python 3.10 on
    return error


def _text(problem: str, place: str, name: str) -> str:
    if name[:1] == "_":
        return problem
    if name not in FACTS.get(place, ()) and f"{'' if place == 'torch' else place + '.'}{name}" not in FACTS:
        return f"{problem}, and PyTorch {__version__.partition('+')[0]} does not either"
    told = advice(place, name)
    return f"{problem}: Yoke does not have this part of PyTorch" + (f"; {told}" if told else "; see docs/from-pytorch.md")


# ---- Import ----------------------------------------------------------------------------------------------------------


def make(name: str) -> Any:
    """Returns a new module for one of the names in MODULES."""
    kind: Any = implementation(MODULES[name]) if MODULES[name] else Names
    module = kind(name, f"PyTorch's module {name}, over Yoke.")
    module.__path__ = []  # so that `import torch.nn` looks below
    module.__file__ = __file__
    module.__loader__ = Loader()
    module.__spec__ = _spec(name)
    if name == "torch":
        module.__version__ = __version__
    return module


def _spec(name: str) -> ModuleSpec:
    loader: Any = Loader()  # Python asks for its methods alone
    return ModuleSpec(name, loader, origin=__file__, is_package=name not in RUN)


class Finder:
    """Finder of torch and the modules below. A module of PyTorch that is not there is an error with what to do."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in MODULES:
            return _spec(name)
        if not name.startswith("torch."):
            return None
        parent, _, last = name.rpartition(".")
        place = place_of(parent)
        if place_of(name) in FACTS:
            # Under this name, because `from torch import fft` would drop an error of the name torch.fft.
            raise ModuleNotFoundError(_text(f"No module named '{name}'", place, last), name=parent)
        if last in FACTS.get(place, ()) and not hasattr(sys.modules.get(parent), last):
            raise ImportError(_text(f"cannot import name '{last}' from '{parent}'", place, last), name=parent)
        return None


class Loader:
    """Loader of the modules in MODULES."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return make(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Does nothing: names are found at their first use."""

    @staticmethod
    def get_code(name: str) -> CodeType:
        """Returns what `python -m NAME` runs."""
        return compile(f"from yoke.compat.torch import {RUN[name]}\nraise SystemExit({RUN[name]}.main())\n" if name in RUN else "", f"<{name}>", "exec")
