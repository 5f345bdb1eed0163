"""Tensors in copy.deepcopy, and so modules: best = copy.deepcopy(net)."""

from __future__ import annotations

import copy
from typing import Any

from yoke import _yoke
from yoke._grad import no_grad
from yoke._yoke import Tensor


def deepcopy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with memory, gradient and attributes of its own, of the same class."""
    if not tensor.is_leaf:
        raise _yoke.StateError("deepcopy(): the tensor was computed while the tape records, and a copy would be cut off "
                               "from what it came from; copy tensor.detach()")
    with no_grad():
        result = Tensor.__new__(type(tensor), tensor.detach().clone())
    memo[id(tensor)] = result  # before what may lead back here
    for name, value in getattr(tensor, "__dict__", {}).items():
        setattr(result, name, copy.deepcopy(value, memo))
    if tensor.requires_grad:
        result.requires_grad_(True)
        result.grad = copy.deepcopy(tensor.grad, memo)
    return result
