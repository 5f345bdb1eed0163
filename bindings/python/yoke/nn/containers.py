"""Modules that hold other modules in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

from yoke import _yoke
from yoke._check import listed, whole
from yoke.nn.module import Module

C = TypeVar("C", bound="_Ordered")


class _Ordered(Module):
    """Modules named "0", "1" … in their order."""

    def _add(self, module: Any) -> None:
        if not isinstance(module, Module):
            raise _yoke.TypeError(f"{type(self).__name__}(): argument {len(self)} must be a Module, not {type(module).__name__}")
        self._modules[str(len(self))] = module

    def append(self: C, module: Module) -> C:
        """Adds a module at the end; returns the container."""
        self._add(module)
        return self

    def extend(self: C, modules: Iterable[Module]) -> C:
        """Adds modules at the end; returns the container."""
        for module in listed(type(self).__name__, "modules", modules, "modules"):
            self._add(module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self: C, index: slice) -> C: ...

    def __getitem__(self: C, index: int | slice) -> Module | C:
        """Returns a module, or a container of this kind with the modules of a slice, shared by both."""
        modules = list(self._modules.values())
        if isinstance(index, slice):
            part: C = type(self).__new__(type(self))
            part.training = self.training
            return part.extend(modules[index])
        index = whole(type(self).__name__, "index", index)
        if not -len(modules) <= index < len(modules):
            raise _yoke.IndexError(f"{type(self).__name__}: index {index} is out of range for {len(modules)} modules")
        return modules[index]


class Sequential(_Ordered):
    """Modules in sequence: the result of each is the argument of the next."""

    def __init__(self, *modules: Module) -> None:
        self.extend(modules)

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x


class ModuleList(_Ordered):
    """List of modules for the forward() of an outer module."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)
