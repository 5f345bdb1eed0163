"""Module, the base of every layer and network, and Parameter, its trained tensors."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import recursive_repr
from typing import Any, NamedTuple, TypeVar

import yoke
from yoke import _yoke
from yoke._check import entries, noun, shown, tensor as need_tensor, text
from yoke._named import named
from yoke._yoke import Device, Tensor, dtype as DType
from yoke.nn.members import Members, joined as _joined

M = TypeVar("M", bound="Module")


class Parameter(Tensor):
    """Tensor that a Module lists among its parameters. It shares the memory of `data` and is a leaf."""

    @named
    def __new__(cls, data: Tensor, requires_grad: bool = True) -> Parameter:
        """Makes a parameter of `data`, a tensor; its dtype must be floating if requires_grad is True."""
        return super().__new__(cls, need_tensor("Parameter", "data", data).detach()).requires_grad_(requires_grad)


class LoadResult(NamedTuple):
    """Names skipped by load_state_dict(strict=False): names without values, and values without names."""

    missing: list[str]
    unexpected: list[str]


class Module(Members):
    """Base class: assign Parameters and Modules to attributes in __init__ and write forward()."""

    training: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls, *args, **kwargs)
        # Here, not in __init__: a subclass that forgets super().__init__() works all the same.
        for name, value in (("training", True), ("_parameters", {}), ("_buffers", {}), ("_transient", set()),
                            ("_modules", {})):
            object.__setattr__(self, name, value)
        return self

    # ---- Attributes ------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        table = self._table_for(name, value)
        if table is None:
            self._forget(name)
            object.__setattr__(self, name, value)
        elif name in table:
            table[name] = value  # keeps its place in the order
        else:
            self._forget(name)
            table[name] = value

    def _table_for(self, name: str, value: Any) -> dict[str, Any] | None:
        """Returns the table for a value under a name, or None; TypeError if checkpoints and optimizers would lose the value."""
        if isinstance(value, Parameter):
            return self._parameters
        if value is not None and name in self._parameters:
            raise _yoke.TypeError(f"{type(self).__name__}: cannot assign {noun(value)} as parameter '{name}' (Parameter or None expected); write nn.Parameter(tensor) for another parameter, or `with yoke.no_grad(): module.{name}.copy_(tensor)` for other values")
        if isinstance(value, Module):
            return self._modules
        if value is not None and name in self._modules:
            raise _yoke.TypeError(f"{type(self).__name__}: cannot assign {noun(value)} as child module '{name}' (Module or None expected); del module.{name} first")
        if name not in self._buffers:
            return self._parameters if name in self._parameters else None
        if value is not None and not isinstance(value, Tensor):
            raise _yoke.TypeError(f"{type(self).__name__}: cannot assign {noun(value)} as buffer '{name}' (tensor or None expected); del module.{name} first")
        return self._buffers

    def __getattr__(self, name: str) -> Any:
        # Reached where ordinary look-up fails.
        own = vars(self)  # no tables yet if pickle makes a bare object
        for table in (own.get("_parameters", {}), own.get("_buffers", {}), own.get("_modules", {})):
            if name in table:
                return table[name]
        advice = _yoke._foreign_name("nn.Module", name)
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'{'; ' + advice if advice else ''}")

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Adds a parameter, or None for a missing parameter, such as a bias."""
        if parameter is not None and not isinstance(parameter, Parameter):
            raise _yoke.TypeError(f"register_parameter(): argument 'parameter' is {shown(parameter)}; a Parameter or None is needed")
        self._check_free("register_parameter", text("register_parameter", "name", name), self._parameters)
        self._forget(name)
        self._parameters[name] = parameter

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that moves with the module but is not trained, such as a running mean.

        A persistent buffer is part of state_dict().
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _yoke.TypeError(f"register_buffer(): argument 'tensor' must be a tensor or None, not {type(tensor).__name__}")
        self._check_free("register_buffer", text("register_buffer", "name", name), self._buffers)
        self._forget(name)
        self._buffers[name] = tensor
        if not persistent:
            self._transient.add(name)

    # ---- Changing all of it ----------------------------------------------------------------------------------

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Calls fn(module) for all modules below and then for this module; returns the module. A module that holds itself is not
        entered again from within.
        """
        within: set[int] = set()

        def walk(module: Module) -> None:
            within.add(id(module))
            for child in module.children():
                if id(child) not in within:
                    walk(child)
            within.discard(id(module))
            fn(module)

        walk(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Sets the training mode, in which Dropout works, for this module and all below; returns the module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Sets the evaluation mode: train(False); returns the module."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Turns the gradients of all parameters below on or off; returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters below, or fills them with zeros."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if set_to_none:
                parameter.grad = None
            elif gradient is not None:
                gradient.fill_(0)

    @named
    def to(self: M, device: Device | str | int | DType | Tensor | None = None, dtype: DType | None = None, non_blocking: bool = False) -> M:
        """Moves all parameters and buffers below and casts floating tensors; returns the module. A tensor gives device and dtype.

        Parameters stay the same objects, with their gradients, so an existing optimizer continues; a changed buffer
        becomes a new tensor. Backward through earlier records is an error afterwards. non_blocking is for buffers: the move of a
        parameter waits.
        """
        if dtype is None and (isinstance(device, DType) or isinstance(getattr(_yoke, str(device), None), DType)):
            device, dtype = None, device  # type: ignore[assignment]
        if isinstance(device, Tensor):
            dtype = device.dtype if dtype is None else dtype
            device = device.device
        for parameter in self.parameters():
            parameter.to_(device, dtype if parameter.dtype.is_floating_point else None)
        moved: dict[int, Tensor] = {}
        for module in self.modules():
            for name, value in module._buffers.items():
                if value is not None:
                    if id(value) not in moved:
                        moved[id(value)] = _moved(value, device, dtype, non_blocking)
                    module._buffers[name] = moved[id(value)]
        return self

    def cuda(self: M, device: Device | str | int | None = None) -> M:
        """Calls to() with a CUDA device: the current, the first, or the device of an index."""
        return self.to(_yoke.zeros((0,), device="cpu").cuda(device).device)

    def cpu(self: M) -> M:
        return self.to("cpu")

    def half(self: M) -> M:
        return self.to(_yoke.float16)

    def bfloat16(self: M) -> M:
        return self.to(_yoke.bfloat16)

    def float(self: M) -> M:
        return self.to(_yoke.float32)

    def double(self: M) -> M:
        return self.to(_yoke.float64)

    # ---- State -----------------------------------------------------------------------------------------------

    def _state(self, call: str) -> dict[str, Tensor]:
        """Returns parameters and persistent buffers under all their names, as PyTorch lists them."""
        own: dict[str, Tensor] = {}
        for prefix, module in self._every_module(call):
            kept = {name: value for name, value in module._buffers.items() if name not in module._transient}
            for name, value in [*module._parameters.items(), *kept.items()]:
                if value is not None:
                    own[_joined(prefix, name)] = value
        return own

    def state_dict(self) -> dict[str, Tensor]:
        """Returns parameters and persistent buffers by dotted name, as detached tensors over the same memory: clone() tensors whose
        values must stay. A tensor with two names is under both names."""
        return {name: value.detach() for name, value in self._state("state_dict").items()}

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True) -> LoadResult:
        """Copies values into parameters and buffers. If any value does not fit, nothing is changed.

        ValueError for missing or extra names (if strict is False they are returned instead) and for different shapes; TypeError
        for a value that is not a tensor, or an argument that is not a dict.
        """
        entries("load_state_dict", "state_dict", state_dict, ())
        own = self._state("load_state_dict")
        missing, unexpected = [n for n in own if n not in state_dict], [n for n in state_dict if n not in own]
        wrong = []
        if strict and (missing or unexpected):
            wrong.append(f"missing {missing or 'nothing'}, unexpected {unexpected or 'nothing'}{_meant(unexpected, missing)}; strict=False loads the names that fit")
        shared = [name for name in own if name in state_dict]
        for name in shared:
            if not isinstance(state_dict[name], Tensor):
                raise _yoke.TypeError(f"load_state_dict(): '{name}' must be a tensor, not {type(state_dict[name]).__name__}")
            if state_dict[name].shape != own[name].shape:
                wrong.append(f"'{name}' in the state has shape {state_dict[name].shape}; it must be {own[name].shape}. Load a state of the same network")
        if wrong:
            raise _yoke.ValueError("load_state_dict(): " + "\n  ".join(wrong))
        with yoke.no_grad():
            for name in shared:
                own[name].copy_(state_dict[name])
        return LoadResult(missing, unexpected)

    # ---- Text ------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Returns the text between the parentheses of repr()."""
        return ""

    @recursive_repr("(holds itself)")
    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.extra_repr()}"
        if not self._modules:
            return head + ")"
        rows = [f"  ({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        return "\n".join([head, *rows, ")"])


def _meant(unexpected: list[str], missing: list[str]) -> str:
    """Returns "; did you mean 'fc.bias' for 'fc.bais'?", or "" if no name without a value is near. Looks at a few names only."""
    pairs = []
    for name in map(str, unexpected[:8]):
        inner = (each for each in missing if name.endswith("." + each))  # as in 'module.fc.bias'
        near = next(inner, None) or _yoke._meant_word(name.encode(errors="replace"), missing)
        pairs += [f"'{near}' for '{name}'"] if near else []
    return f"; did you mean {', '.join(pairs)}?" if pairs else ""


def _moved(buffer: Tensor, device: Any, dtype: Any, non_blocking: bool) -> Tensor:
    """Returns a buffer on another device, with another dtype if floating; the same buffer if nothing changes."""
    there = buffer.detach().to(device, dtype if buffer.dtype.is_floating_point else None, non_blocking)
    return buffer if there.dtype is buffer.dtype and yoke.shares_memory(there, buffer) else there
