"""Modules that hold parameters, in order or by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from yoke import _yoke
from yoke._check import listed, noun, whole
from yoke._yoke import Tensor
from yoke.nn.members import NoKey, check_name, pairs
from yoke.nn.module import Module, Parameter


class ParameterList(Module):
    """List of parameters for the forward() of an outer module, named "0", "1" …; a plain tensor becomes a Parameter."""

    def __init__(self, values: Iterable[Tensor] = ()) -> None:
        self.extend(values)

    def append(self, value: Tensor) -> ParameterList:
        """Adds a parameter at the end; returns the list."""
        self._parameters[str(len(self))] = _parameter("ParameterList", value)
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds parameters at the end; returns the list."""
        for value in listed("ParameterList", "values", values, "tensors"):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Tensor]) -> ParameterList:
        return self.extend(values)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())  # type: ignore[arg-type]

    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...

    def __getitem__(self, index: int | slice) -> Parameter | ParameterList:
        """Returns a parameter, or a list with the parameters of a slice, shared by both."""
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return self._parameters[self._name_at(index)]  # type: ignore[return-value]

    def __setitem__(self, index: int, value: Tensor) -> None:
        self._parameters[self._name_at(index)] = _parameter("ParameterList", value)

    def _name_at(self, index: int) -> str:
        index, count = whole("ParameterList", "index", index), len(self)
        if not -count <= index < count:
            raise _yoke.IndexError(f"ParameterList: index {index} is out of range for {count} parameters")
        return str(index % count)

    def extra_repr(self) -> str:
        return ", ".join(str(list(each.shape)) for each in self)


class ParameterDict(Module):
    """Parameters by key: a dict, or pairs of key and tensor; a plain tensor becomes a Parameter. The order is that of insertion."""

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        if parameters is not None:
            self.update(parameters)

    def update(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        """Adds parameters by key, or replaces them."""
        for key, value in pairs("ParameterDict", "parameters", parameters, "tensors"):
            self[key] = value

    def __getitem__(self, key: str) -> Parameter:
        if key not in self._parameters:
            raise NoKey(f"ParameterDict: there is no key {key!r}; there are {list(self._parameters)}")
        return self._parameters[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, value: Tensor) -> None:
        self._parameters[check_name("ParameterDict", key)] = _parameter("ParameterDict", value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: object) -> bool:
        return key in self._parameters

    def keys(self) -> Iterable[str]:
        """Returns the keys."""
        return self._parameters.keys()

    def values(self) -> Iterable[Parameter]:
        """Returns the parameters."""
        return self._parameters.values()  # type: ignore[return-value]

    def items(self) -> Iterable[tuple[str, Parameter]]:
        """Returns the pairs of key and parameter."""
        return self._parameters.items()  # type: ignore[return-value]

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a parameter, or `default` if there is no such key."""
        return self._parameters.get(key, default)

    def pop(self, key: str) -> Parameter:
        """Removes a parameter and returns it."""
        parameter = self[key]
        del self._parameters[key]
        return parameter

    def clear(self) -> None:
        """Removes all parameters."""
        self._parameters.clear()

    def extra_repr(self) -> str:
        return ", ".join(f"{key}: {list(each.shape)}" for key, each in self.items())


def _parameter(call: str, value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value)
    raise _yoke.TypeError(f"{call}(): {noun(value)} is no tensor; a Parameter, or a tensor that becomes one, is needed")
