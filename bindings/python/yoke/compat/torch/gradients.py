"""torch.autograd, with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke._yoke import Tensor

_tensor_backward = Tensor.backward


def _need_first_order(call: str, create_graph: bool) -> None:
    if create_graph:
        raise _yoke.UnsupportedError(f"{call}(): argument 'create_graph' is True, but there are no second-order gradients; write the formula of the first gradient with ops")


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None,
             grad_variables: Any = None) -> None:
    """Adds gradients to the leaves below tensors."""
    _need_first_order("backward", create_graph)
    several = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    weights = [grad_tensors] * len(several) if grad_tensors is None or isinstance(grad_tensors, Tensor) else list(grad_tensors)
    if inputs is not None:
        leaves = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        for leaf, found in zip(leaves, grad(several, leaves, weights, bool(retain_graph), allow_unused=True)):
            if found is not None:
                leaf.grad = found if leaf.grad is None else leaf.grad + found
        return
    for each, weight in zip(several, weights):
        _tensor_backward(each, weight, retain_graph=bool(retain_graph) or each is not several[-1])


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True,
         allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor | None, ...]:
    """Returns the gradients of outputs with respect to inputs, a tuple."""
    _need_first_order("grad", create_graph)
    if is_grads_batched:
        raise _yoke.UnsupportedError("grad(): argument 'is_grads_batched' is True; call grad() for each of the gradients")
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not (allow_unused or materialize_grads):
        return tuple(yoke.grad(outputs, wanted, grad_outputs, bool(retain_graph)))
    found: list[Tensor | None] = []
    for place, each in enumerate(wanted):
        try:
            found += yoke.grad(outputs, [each], grad_outputs, bool(retain_graph) or place + 1 < len(wanted))
        except _yoke.ValueError:  # no output depends on this input
            found.append(yoke.zeros_like(each) if materialize_grads else None)
    return tuple(found)


class set_grad_enabled(yoke.set_grad_enabled):
    """Mode that turns recording on or off, at once or for a block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


def Variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """Returns the tensor, as PyTorch's old class Variable does."""
    return data.requires_grad_() if requires_grad else data
