"""Layers of neural networks in plain Python: a Module holds Parameters and Modules as attributes.

Initial values are PyTorch's, drawn with yoke.rand in an order that the Lua and C programs follow too, so that
one seed gives the same network everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import yoke
from yoke import _yoke
from yoke._yoke import Device, Tensor, dtype as DType

__all__ = ["CrossEntropyLoss", "Dropout", "Flatten", "GELU", "Linear", "LogSoftmax", "Module", "Parameter", "ReLU",
           "Sequential", "Softmax", "Tanh"]

M = TypeVar("M", bound="Module")


class Parameter(Tensor):
    """A tensor that a Module lists among its parameters. It shares the memory of `data` and is a leaf."""

    def __new__(cls, data: Tensor, requires_grad: bool = True) -> Parameter:
        """`data` is a tensor; a floating one where requires_grad is True."""
        return super().__new__(cls, data.detach()).requires_grad_(requires_grad)


class Module:
    """Base class: assign Parameters and Modules to attributes in __init__ and write forward()."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _modules: dict[str, Module]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        # Here, not in __init__: a subclass that forgets super().__init__() works all the same.
        for name, value in (("training", True), ("_parameters", {}), ("_modules", {})):
            object.__setattr__(self, name, value)
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call computes; every subclass has its own."""
        raise _yoke.UnsupportedError(f"{type(self).__name__} has no forward(); a Module must define one")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        self._forget(name)
        if isinstance(value, Parameter):
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._modules[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Reached where ordinary look-up fails.
        for table in (self._parameters, self._modules):
            if name in table:
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def _forget(self, name: str) -> bool:
        places: tuple[dict[str, Any], ...] = (self._parameters, self._modules, self.__dict__)
        return any([place.pop(name, self) is not self for place in places])

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Adds a parameter, or None for one that this module goes without, such as a bias."""
        self._forget(name)
        self._parameters[name] = parameter

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once, with dotted names."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            stack += [(f"{name}.{child}" if name else child, below) for child, below in reversed(module._modules.items())]

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        return iter(self._modules.values())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters below, each once, with dotted names, in the order of their assignment."""
        seen: set[int] = set()
        for prefix, module in self.named_modules():
            for name, parameter in module._parameters.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{prefix}.{name}" if prefix else name), parameter

    def parameters(self) -> Iterator[Parameter]:
        """All parameters below, each once."""
        return (parameter for _, parameter in self.named_parameters())

    def train(self: M, mode: bool = True) -> M:
        """Training mode, in which Dropout works, for this module and all below; returns it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """The opposite of train()."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Asks for gradients of all parameters below, or no longer; returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters below, or fills them with zeros."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if set_to_none:
                parameter.grad = None
            elif gradient is not None:
                gradient.fill_(0)

    def to(self: M, device: Device | str | int | DType | None = None, dtype: DType | None = None) -> M:
        """Moves and casts all parameters below; returns the module.

        A parameter that changes becomes a new tensor: make the optimizer afterwards.
        """
        moved: dict[int, Parameter] = {}
        for module in self.modules():
            for name, parameter in module._parameters.items():
                if parameter is None:
                    continue
                if id(parameter) not in moved:
                    there = parameter.detach().to(device, dtype)
                    same = there.dtype is parameter.dtype and yoke.shares_memory(there, parameter)
                    moved[id(parameter)] = parameter if same else Parameter(there, parameter.requires_grad)
                module._parameters[name] = moved[id(parameter)]
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters by dotted name, as detached tensors over the same memory: clone() what must stay."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True) -> None:
        """Copies values into the parameters. Nothing is changed unless all of it fits.

        ValueError for names that are missing or left over (unless strict is False) and for shapes that differ.
        """
        own = dict(self.named_parameters())
        missing, unexpected = [n for n in own if n not in state_dict], [n for n in state_dict if n not in own]
        if strict and (missing or unexpected):
            raise _yoke.ValueError(f"load_state_dict(): missing {missing or 'nothing'}, unexpected {unexpected or 'nothing'}; "
                                   "strict=False takes what fits")
        shared = [name for name in own if name in state_dict]
        for name in shared:
            if state_dict[name].shape != own[name].shape:
                raise _yoke.ValueError(f"load_state_dict(): '{name}' has shape {state_dict[name].shape}, the module's has "
                                       f"{own[name].shape}")
        with yoke.no_grad():
            for name in shared:
                own[name].copy_(state_dict[name])

    def extra_repr(self) -> str:
        """What stands between the parentheses of repr()."""
        return ""

    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.extra_repr()}"
        if not self._modules:
            return head + ")"
        rows = [f"  ({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        return "\n".join([head, *rows, ")"])


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Module) -> None:
        for i, module in enumerate(modules):
            if not isinstance(module, Module):
                raise _yoke.TypeError(f"Sequential(): argument {i} must be a Module, not {type(module).__name__}")
            self._modules[str(i)] = module

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int) -> Module:
        modules = list(self._modules.values())
        if not -len(modules) <= index < len(modules):
            raise _yoke.IndexError(f"Sequential: index {index} is out of range for {len(modules)} modules")
        return modules[index]


class Linear(Module):
    """y = x Wᵀ + b. weight is [out_features, in_features], bias [out_features] or None.

    Both start uniform in ±1/√in_features (K. He et al., "Delving Deep into Rectifiers", with a = √5), weight first.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Device | str | int | None = None,
                 dtype: DType | None = None) -> None:
        if in_features < 1 or out_features < 1:
            raise _yoke.ValueError(f"Linear(): in_features is {in_features} and out_features {out_features}; both must be "
                                   "at least 1")
        self.in_features, self.out_features = in_features, out_features
        bound = in_features**-0.5

        def uniform(shape: tuple[int, ...]) -> Parameter:
            return Parameter(yoke.rand(shape, dtype=dtype, device=device) * (2 * bound) - bound)

        self.weight = uniform((out_features, in_features))
        self.register_parameter("bias", uniform((out_features,)) if bias else None)

    def forward(self, x: Tensor) -> Tensor:
        return yoke.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class ReLU(Module):
    """x where x > 0, else 0."""

    def forward(self, x: Tensor) -> Tensor:
        return yoke.relu(x)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return yoke.tanh(x)


class GELU(Module):
    """Gaussian error linear unit; approximate is "none" (erf) or "tanh"."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return yoke.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate='{self.approximate}'"


class Softmax(Module):
    """Softmax along one axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return yoke.softmax(x, self.axis)


class LogSoftmax(Module):
    """Logarithm of softmax along one axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return yoke.log_softmax(x, self.axis)


class Dropout(Module):
    """Zeroes elements with probability p while training, and scales the rest by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise _yoke.ValueError(f"Dropout(): p is {p}; a probability lies between 0 and 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return yoke.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Flatten(Module):
    """Joins all axes but the first: [N, …] becomes [N, rest]."""

    def forward(self, x: Tensor) -> Tensor:
        rest = 1
        for length in x.shape[1:]:
            rest *= length
        return yoke.reshape(x, (x.shape[0], rest))


class CrossEntropyLoss(Module):
    """Softmax cross entropy of logits [N, C] and class indices [N]; see yoke.cross_entropy."""

    def __init__(self, reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0) -> None:
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return yoke.cross_entropy(x, target, self.reduction, self.ignore_index, self.label_smoothing)
