"""Members of modules by name: the modules, parameters and buffers below a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from yoke import _yoke
from yoke._check import listed, noun, shown, text
from yoke.nn.hooks import Called

if TYPE_CHECKING:
    from yoke._yoke import Tensor
    from yoke.nn.module import Module, Parameter


class NoMember(_yoke.ValueError, AttributeError):
    """Error about a dotted name without a member; PyTorch's scripts expect an AttributeError."""


class NoKey(_yoke.IndexError, KeyError):
    """Error about a key without a value; a mapping of Python raises KeyError."""

    __str__ = Exception.__str__  # KeyError would show quotation marks


class Members(Called):
    """Part of Module that finds what a module holds."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module]
    _transient: set[str]  # names of buffers that state_dict() leaves out

    def named_modules(self, *, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yields this module and all modules below, each once, with dotted names; with remove_duplicate=False under all names."""
        if not remove_duplicate:
            yield from ((joined(prefix, name) if name else prefix, module) for name, module in self._every_module("named_modules"))
            return
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]  # type: ignore[list-item]
        while stack:
            name, module = stack.pop()
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module
                stack += [(joined(name, child), below) for child, below in reversed(module._modules.items())]

    def _every_module(self, call: str) -> Iterator[tuple[str, Module]]:
        """Yields as named_modules(), under every name of a module; ValueError for a module that holds itself."""
        within: set[int] = set()  # the ids of those on the way to where the walk is
        stack: list[tuple[str, Any, int]] = [("", self, id(self))]  # no module: marks the end of the module with this id
        while stack:
            name, module, number = stack.pop()
            if module is None:
                within.discard(number)
                continue
            if number in within:
                raise _yoke.ValueError(f"{call}(): the module '{name}' contains itself, so the names of its tensors have no end; keep the reference to an outer module in a list, not in an attribute")
            within.add(number)
            stack.append((name, None, number))
            yield name, module
            stack += [(joined(name, child), below, id(below)) for child, below in reversed(module._modules.items())]

    def modules(self) -> Iterator[Module]:
        """Yields this module and all modules below, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields the modules directly below, each once, with their names."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the modules directly below, each once."""
        return (module for _, module in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        below: Any = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for place, module in below:
            for name, value in getattr(module, table).items():
                if value is not None and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield joined(place, name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yields all parameters below, each once, with dotted names, in the order of their assignment. recurse=False: this module's
        own; remove_duplicate=False: under all names.
        """
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields all parameters below, each once; recurse=False: this module's own."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yields all buffers below as named_parameters() does parameters."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields all buffers below, each once; recurse=False: this module's own."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # ---- One member --------------------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """Returns the module with a dotted name, as named_modules() has it; "" is this module."""
        return self._module_at("get_submodule", text("get_submodule", "target", target), target.split(".") if target else [])

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter with a dotted name."""
        return self._member_at("get_parameter", target, "parameter", "_parameters")  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer with a dotted name."""
        return self._member_at("get_buffer", target, "buffer", "_buffers")  # type: ignore[no-any-return]

    def _module_at(self, call: str, target: str, path: list[str]) -> Module:
        module: Any = self
        for name in path:
            module = _entry(call, target, "module", name, module, module._modules)
        return module  # type: ignore[no-any-return]

    def _member_at(self, call: str, target: str, kind: str, table: str) -> Any:
        *path, name = text(call, "target", target).split(".")
        owner = self._module_at(call, target, path)
        return _entry(call, target, kind, name, owner, getattr(owner, table))

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name, as an assignment to the attribute does."""
        self._add_named("add_module", name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name: add_module()."""
        self._add_named("register_module", name, module)

    def _add_named(self, call: str, name: str, module: Module | None) -> None:
        if module is not None and not isinstance(module, Members):
            raise _yoke.TypeError(f"{call}(): argument 'module' is {shown(module)}; a Module or None is needed")
        check_name(call, name)
        if hasattr(type(self), name):
            raise _yoke.ValueError(f"{call}(): '{name}' is an attribute of {type(self).__name__}; choose another name")
        self._check_free(call, name, self._modules)
        if name not in self._modules or module is None:
            self._forget(name)
        if module is None:
            object.__setattr__(self, name, None)
        else:
            self._modules[name] = module

    def _check_free(self, call: str, name: str, own: dict[str, Any]) -> None:
        """Raises for the name of a member of another kind, which would leave states and optimizers unsaid."""
        for kind, table in (("parameter", self._parameters), ("buffer", self._buffers), ("module", self._modules)):
            if table is not own and table.get(name) is not None:
                raise _yoke.ValueError(f"{call}(): '{name}' is a {kind} of this {type(self).__name__}; del module.{name} first, or choose another name")

    def _forget(self, name: str) -> bool:
        self._transient.discard(name)
        places: tuple[dict[str, Any], ...] = (self._parameters, self._buffers, self._modules, self.__dict__)
        return any([place.pop(name, self) is not self for place in places])


def joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def check_name(call: str, name: Any) -> str:
    """Returns the name of a member: a string that is no dotted name."""
    if "." in text(call, "name", name) or not name:
        raise _yoke.ValueError(f"{call}(): argument 'name' is {name!r}; a name that is not empty and has no dot is needed, because dots join the names of states")
    return str(name)


def pairs(call: str, name: str, given: Any, of: str) -> list[tuple[str, Any]]:
    """Returns the entries of a mapping, or the pairs of a sequence."""
    if isinstance(given, Mapping) or hasattr(given, "items"):
        return list(given.items())
    found = listed(call, name, given, f"pairs of key and value, or a dict of {of},")
    for each in found:
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise _yoke.TypeError(f"{call}(): argument '{name}' has {noun(each)}; pairs of key and value, or a dict of {of}, are needed")
    return [(key, value) for key, value in found]


def _entry(call: str, target: str, kind: str, name: str, owner: Any, table: dict[str, Any]) -> Any:
    """Returns the member of a module; NoMember says which names there are."""
    if table.get(name) is not None:
        return table[name]
    names = [each for each, value in table.items() if value is not None]
    near = _yoke._nearest_name(name, names)
    meant = f"did you mean '{near}'?" if near else f"there {'are ' + ', '.join(names[:8]) if names else 'is none'}"
    raise NoMember(f"{call}(): argument 'target' is '{target}', but {type(owner).__name__} has no {kind} '{name}'; {meant}")
