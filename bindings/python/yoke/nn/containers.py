"""Modules that hold other modules, in order or by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from yoke import _yoke
from yoke._check import listed, shown, whole
from yoke.nn.members import NoKey, check_name, pairs
from yoke.nn.module import Module

C = TypeVar("C", bound="_Ordered")


class _Ordered(Module):
    """Modules in order, under the names "0", "1" … unless they have others."""

    def _need_module(self, number: int, module: Any) -> Module:
        if not isinstance(module, Module):
            raise _yoke.TypeError(f"{type(self).__name__}(): argument {number} must be a Module, not {type(module).__name__}")
        return module

    def _add(self, module: Any) -> None:
        number = len(self)
        self._need_module(number, module)
        while str(number) in self._modules:  # slices and named modules
            number += 1
        self._modules[str(number)] = module

    def _put(self, modules: Iterable[Module]) -> None:
        """Makes these modules the only ones, named by their places."""
        kept = list(modules)
        self._modules.clear()
        self._modules.update({str(number): module for number, module in enumerate(kept)})

    def append(self: C, module: Module) -> C:
        """Adds a module at the end; returns the container."""
        self._add(module)
        return self

    def extend(self: C, modules: Iterable[Module]) -> C:
        """Adds modules at the end; returns the container."""
        for module in listed(type(self).__name__, "modules", modules, "modules"):
            self._add(module)
        return self

    def insert(self: C, index: int, module: Module) -> C:
        """Adds a module before the module with this index; returns the container. All names become the modules' places."""
        modules = list(self._modules.values())
        modules.insert(whole("insert", "index", index), self._need_module(index, module))
        self._put(modules)
        return self

    def pop(self, index: int = -1) -> Module:
        """Removes a module and returns it. All names become the modules' places."""
        module = self[index]
        del self[index]
        return module

    def __iadd__(self: C, modules: Iterable[Module]) -> C:
        return self.extend(modules)

    def __add__(self: C, modules: Iterable[Module]) -> C:
        return self[:0].extend(self).extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self: C, index: slice) -> C: ...

    def __getitem__(self: C, index: int | slice) -> Module | C:
        """Returns a module, or a container of this kind with the modules of a slice, shared by both."""
        if not isinstance(index, slice):
            return self._modules[self._name_at(index)]
        part: C = type(self).__new__(type(self))
        part.training = self.training
        part._take_slice(list(self._modules.items())[index])
        return part

    def _take_slice(self, entries: list[tuple[str, Module]]) -> None:
        self._put(module for _, module in entries)

    def __setitem__(self, index: int, module: Module) -> None:
        """Puts a module in the place of another, under the same name."""
        self._modules[self._name_at(index)] = self._need_module(index, module)

    def __delitem__(self, index: int | slice) -> None:
        """Removes modules. All names become the modules' places."""
        modules = list(self._modules.values())
        if not isinstance(index, slice):
            self._name_at(index)
        del modules[index]
        self._put(modules)

    def _name_at(self, index: int) -> str:
        names = list(self._modules)
        index = whole(type(self).__name__, "index", index)
        if not -len(names) <= index < len(names):
            raise _yoke.IndexError(f"{type(self).__name__}: index {index} is out of range for {len(names)} modules")
        return names[index]


class Sequential(_Ordered):
    """Modules in sequence: the result of each is the argument of the next. A single dict gives names: Sequential({"up": …})."""

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._add_named("Sequential", name, self._need_module(len(self), module))
        else:
            self.extend(modules)  # type: ignore[arg-type]

    def _take_slice(self, entries: list[tuple[str, Module]]) -> None:
        self._modules.update(entries)  # names stay, as in PyTorch

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x


class ModuleList(_Ordered):
    """List of modules for the forward() of an outer module."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)


class ModuleDict(Module):
    """Modules by key, for the forward() of an outer module: a dict, or pairs of key and module. The order is that of insertion."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        if modules is not None:
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules by key, or replaces them."""
        for key, module in pairs("ModuleDict", "modules", modules, "modules"):
            self[key] = module

    def __getitem__(self, key: str) -> Module:
        if key not in self._modules:
            raise NoKey(f"ModuleDict: there is no key {key!r}; there are {list(self._modules)}")
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise _yoke.TypeError(f"ModuleDict(): the value of {key!r} is {shown(module)}; a Module is needed")
        self._modules[check_name("ModuleDict", key)] = module

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """Returns the keys."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """Returns the modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Returns the pairs of key and module."""
        return self._modules.items()

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self._modules[key]
        return module

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()
