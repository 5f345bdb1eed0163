"""Methods of torch.nn.Module that Yoke's Module does not have, or has with other arguments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import yoke
from yoke import _yoke
from yoke.compat.torch.options import need_memory_format
from yoke.compat.torch.states import with_counts
from yoke.nn.module import Module

_load, _to, _named_modules = Module.load_state_dict, Module.to, Module.named_modules


def named_modules(self: Module, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
    """Yields this module and all modules below, with dotted names; modules in `memo` are left out."""
    for name, module in _named_modules(self, prefix=prefix, remove_duplicate=remove_duplicate):
        if memo is None or module not in memo:
            if memo is not None:
                memo.add(module)
            yield name, module


def set_submodule(self: Module, target: str, module: Module, strict: bool = False) -> None:
    """Puts a module in the place of a dotted name."""
    path, _, name = target.rpartition(".")
    parent = self.get_submodule(path)
    if strict and name not in parent._modules:
        raise AttributeError(f"set_submodule(): argument 'target' is '{target}', and there is no such module; leave strict out to add one")
    parent._modules[name] = module


def to(self: Module, *args: Any, **keywords: Any) -> Module:
    """Moves and casts the module, in each of PyTorch's orders of arguments; an index is a card."""
    need_memory_format("to", keywords.pop("memory_format", None))
    if args and isinstance(args[0], int) and not isinstance(args[0], bool):
        args = (f"cuda:{args[0]}", *args[1:])
    if isinstance(keywords.get("device"), int):
        keywords["device"] = f"cuda:{keywords['device']}"
    if args and isinstance(args[0], yoke.dtype):
        keywords.update(zip(("dtype", "non_blocking"), args))
        args = ()
    return _to(self, *args, **keywords)


def cuda(self: Module, device: Any = None) -> Module:
    """Moves the module to a card, the current card by default."""
    from yoke.compat.torch import devices

    return _to(self, devices.opened("cuda" if device is None else device))


def type_(self: Module, dst_type: Any) -> Module:
    """Casts parameters and buffers."""
    return _to(self, dtype=yoke.zeros(0, device="cpu").type(dst_type).dtype)


def share_memory(self: Module) -> Module:
    """Refuses: processes do not share tensors."""
    raise _yoke.UnsupportedError("share_memory(): processes do not share tensors in Yoke; use torch.distributed")


# ---- State -----------------------------------------------------------------------------------------------------------


class IncompatibleKeys(NamedTuple):
    """Names without values, and values without names, of load_state_dict(strict=False)."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def state_dict(self: Module, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
    """Returns parameters and persistent buffers by dotted name, in an OrderedDict."""
    if args:
        destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args):])  # type: ignore[misc]
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    for name, value in self._state("state_dict").items():
        destination[prefix + name] = value if keep_vars else value.detach()
    if hasattr(destination, "_metadata"):
        for name, module in named_modules(self):
            counts = "num_batches_tracked" in module._buffers
            destination._metadata[(prefix + name).rstrip(".")] = {"version": getattr(module, "_version", 2 if counts else 1)}
    return destination


def load_state_dict(self: Module, state_dict: Any, strict: bool = True, assign: bool = False) -> IncompatibleKeys:
    """Copies values into parameters and buffers; RuntimeError if names or shapes differ, and nothing is changed then."""
    if assign:
        raise _yoke.UnsupportedError("load_state_dict(): argument 'assign' is True; leave it out: values are copied into the module's tensors")
    try:
        found = _load(self, with_counts(self, state_dict), strict)
    except _yoke.ValueError as error:
        raise RuntimeError(f"Error(s) in loading state_dict for {self.__class__.__name__}:\n\t{error}") from None
    return IncompatibleKeys(list(found.missing), list(found.unexpected))
