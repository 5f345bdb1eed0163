"""torch.autograd, where PyTorch's arguments or results are others than Yoke's."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke._yoke import Tensor
from yoke.compat.torch.options import refused


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True,
         allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor | None, ...]:
    """Returns the gradients of outputs with respect to inputs, a tuple."""
    if is_grads_batched:
        raise _yoke.UnsupportedError("grad(): argument 'is_grads_batched' is True; call grad() for each of the gradients")
    return tuple(yoke.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused, materialize_grads=materialize_grads))


class set_grad_enabled(yoke.set_grad_enabled):
    """Mode that turns recording on or off, at once or for a block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


class _Variables(type):
    """Class of Variable: a tensor is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Variables):
    """PyTorch's old class of tensors with gradients: Variable(x) is a leaf over the memory of x."""


def is_inference_mode_enabled() -> bool:
    """Returns whether recording is off: inference_mode is no_grad."""
    return not yoke.is_grad_enabled()


def set_multithreading_enabled(mode: bool) -> None:
    """Does nothing: a backward runs in the thread of its call."""


# ---- torch.autograd.functional ---------------------------------------------------------------------------------------


def _leaves(inputs: Any) -> tuple[Tensor, ...]:
    return tuple([each.detach().requires_grad_() for each in (inputs if isinstance(inputs, tuple) else (inputs,))])


def _need_first_order(call: str, create_graph: bool) -> None:
    if create_graph:
        raise _yoke.UnsupportedError(f"{call}(): argument 'create_graph' is True, but there are no second-order gradients; leave it out")


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Returns func(*inputs), and the product of the vector v with its Jacobian."""
    _need_first_order("vjp", create_graph)
    refused("vjp", strict=(strict, False))
    leaves = _leaves(inputs)
    with yoke.enable_grad():
        outputs = func(*leaves)
    several = outputs if isinstance(outputs, tuple) else (outputs,)
    weights = [None] * len(several) if v is None else list(v) if isinstance(v, tuple) else [v]
    found = grad(several, leaves, weights, allow_unused=True, materialize_grads=True)
    plain = tuple([each.detach() for each in several])
    return plain if isinstance(outputs, tuple) else plain[0], found if isinstance(inputs, tuple) else found[0]


def jacobian(func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Returns the derivatives of each output by each input, of the shape of the output, then of the input."""
    _need_first_order("jacobian", create_graph)
    refused("jacobian", strict=(strict, False))
    leaves = _leaves(inputs)
    with yoke.enable_grad():
        outputs = func(*leaves)
    rows = [_jacobian_of(each, leaves) for each in (outputs if isinstance(outputs, tuple) else (outputs,))]
    made = tuple([row if isinstance(inputs, tuple) else row[0] for row in rows])
    return made if isinstance(outputs, tuple) else made[0]


def _jacobian_of(output: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    parts: list[tuple[Any, ...]] = []
    for place in range(output.nelement()):
        unit = yoke.zeros(output.nelement(), dtype=output.dtype, device=output.device)
        unit[place] = 1
        parts.append(grad(output, leaves, unit.reshape(output.shape), True, allow_unused=True, materialize_grads=True))
    return tuple([yoke.stack([part[i] for part in parts]).reshape(*output.shape, *leaf.shape) for i, leaf in enumerate(leaves)])
