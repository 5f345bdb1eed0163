"""torch.autograd, where PyTorch's arguments or results are others than Yoke's."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke._yoke import Tensor


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


def Variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """Returns the tensor, as PyTorch's old class Variable does."""
    return data.requires_grad_() if requires_grad else data


def once_differentiable(fn: Any) -> Any:
    """Returns the function: there are no second-order gradients, so each backward is differentiable once."""
    return fn


def is_inference_mode_enabled() -> bool:
    """Returns whether recording is off: inference_mode is no_grad."""
    return not yoke.is_grad_enabled()


def set_multithreading_enabled(mode: bool) -> None:
    """Does nothing: a backward runs in the thread of its call."""
