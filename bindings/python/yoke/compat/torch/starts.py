"""torch.nn.init, where PyTorch's arguments are others than Yoke's."""

from __future__ import annotations

from typing import Any

import yoke
from yoke._yoke import Tensor
from yoke.nn import init


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills the tensor with a value."""
    return init.constant_(tensor, val)


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity."""
    rows, columns = tensor.shape
    with yoke.no_grad():
        return tensor.copy_(yoke.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills the weight of a convolution so that it passes its input on."""
    rows = tensor.shape[0] // groups
    with yoke.no_grad():
        tensor.zero_()
        for group in range(groups):
            for row in range(min(rows, tensor.shape[1])):
                place: tuple[Any, ...] = (group * rows + row, row, *(length // 2 for length in tensor.shape[2:]))
                tensor[place] = 1
    return tensor
