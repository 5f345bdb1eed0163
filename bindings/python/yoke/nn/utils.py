"""Helpers for parameters, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterable

import yoke
from yoke import _yoke
from yoke._check import listed, number
from yoke._grad import no_grad
from yoke._named import named
from yoke._unknown import teller
from yoke._yoke import Tensor
from yoke.optim import clip_grad_norm_

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]
__getattr__ = teller(__name__)


@named
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Holds each element of all gradients between -clip_value and clip_value."""
    bound = number("clip_grad_value_", "clip_value", clip_value)
    if not bound >= 0:
        raise _yoke.ValueError(f"clip_grad_value_(): argument 'clip_value' is {bound}; it must be 0 or more")
    with no_grad():
        for each in _tensors("clip_grad_value_", parameters):
            if each.grad is not None:
                each.grad.clamp_(-bound, bound)


@named
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns all elements of the parameters as one axis, recorded for gradients."""
    tensors = _tensors("parameters_to_vector", parameters)
    if not tensors:
        raise _yoke.ValueError("parameters_to_vector(): argument 'parameters' is empty; give at least one tensor")
    return yoke.cat([each.reshape(-1) for each in tensors])


@named
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of `vec` into the parameters, in the order of parameters_to_vector()."""
    tensors = _tensors("vector_to_parameters", parameters)
    if not isinstance(vec, Tensor):
        raise _yoke.TypeError(f"vector_to_parameters(): argument 'vec' is a {type(vec).__name__}; it takes a tensor")
    count = sum(each.nelement() for each in tensors)
    if vec.shape != (count,):
        raise _yoke.ValueError(f"vector_to_parameters(): argument 'vec' has shape {vec.shape}, but the parameters have {count} elements; give a tensor of shape ({count},)")
    place = 0
    for each in tensors:
        each.data.copy_(vec.detach()[place:place + each.nelement()].reshape(each.shape))
        place += each.nelement()


def _tensors(call: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(listed(call, "parameters", parameters, "tensors"))
