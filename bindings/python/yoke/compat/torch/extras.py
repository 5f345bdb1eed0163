"""Smaller names of PyTorch that are several ops: activations with their layers, columns back to images, covariances, extremes by place."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import yoke
from yoke import _yoke
from yoke._yoke import Tensor
from yoke.compat.torch.nets import kept, prelu, unfold, written
from yoke.nn import Parameter
from yoke.nn.module import Module

# The two constants of SELU: with them layers keep mean 0 and variance 1.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

# ---- Activations -----------------------------------------------------------------------------------------------------


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns x above 0, else alpha · (exp(x / alpha) - 1)."""
    x = kept(input, inplace)
    return written(inplace, input, yoke.relu(x) + alpha * yoke.expm1(yoke.clamp(x, max=0) / alpha))


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns ELU with SELU's two constants."""
    return written(inplace, input, SELU_SCALE * yoke.elu(kept(input, inplace), SELU_ALPHA))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Returns x above the threshold, else the value."""
    return written(inplace, input, yoke.where(input > threshold, input, value))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Returns x where |x| is above lambd, else 0."""
    return yoke.where(yoke.abs(input) > lambd, input, 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Takes lambd from |x|, down to 0."""
    return input - yoke.clamp(input, -lambd, lambd)


class PReLU(Module):
    """x above 0, else weight · x, with a trained weight for all or for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(yoke.full((num_parameters,), init, device=device, dtype=dtype or yoke.float32))

    def forward(self, input: Tensor) -> Tensor:
        return prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class CELU(Module):
    """torch.nn.functional.celu as a layer."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class SELU(Module):
    """torch.nn.functional.selu as a layer."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return selu(input, self.inplace)


class Threshold(Module):
    """torch.nn.functional.threshold as a layer."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"


class Hardshrink(Module):
    """torch.nn.functional.hardshrink as a layer."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Hardshrink):
    """torch.nn.functional.softshrink as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        return softshrink(input, self.lambd)


# ---- Windows as columns ----------------------------------------------------------------------------------------------


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[-1]))


def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Adds the columns of unfold() back into images."""
    (height, width), (high, wide), (far_y, far_x) = _pair(output_size), _pair(kernel_size), _pair(dilation)
    (pad_y, pad_x), (step_y, step_x) = _pair(padding), _pair(stride)
    rows = (height + 2 * pad_y - far_y * (high - 1) - 1) // step_y + 1
    columns = (width + 2 * pad_x - far_x * (wide - 1) - 1) // step_x + 1
    if input.ndim != 3 or input.shape[1] % (high * wide) or input.shape[2] != rows * columns:
        raise _yoke.ValueError(f"fold(): argument 'input' has shape {input.shape}; it must be [N, C · {high * wide}, {rows * columns}] for these windows")
    parts = input.reshape(input.shape[0], -1, high, wide, rows, columns)
    whole = yoke.zeros((*parts.shape[:2], height + 2 * pad_y, width + 2 * pad_x), dtype=input.dtype, device=input.device)
    for y, x in itertools.product(range(high), range(wide)):
        top, left = y * far_y, x * far_x
        whole[:, :, top:top + step_y * rows:step_y, left:left + step_x * columns:step_x] += parts[:, :, y, x]
    return whole[:, :, pad_y:pad_y + height, pad_x:pad_x + width]


class Fold(Module):
    """torch.nn.functional.fold as a layer."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        self.output_size, self.kernel_size, self.dilation, self.padding, self.stride = output_size, kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(Module):
    """torch.nn.functional.unfold as a layer."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


# ---- Statistics and places -------------------------------------------------------------------------------------------


def cov(input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Returns the covariances of the rows; a number for a vector."""
    x = input if input.dtype.is_floating_point else input.to(dtype=_yoke._get_default_dtype())
    x = x[0] if x.ndim == 2 and x.shape[0] == 1 else x
    weights = [each.to(dtype=x.dtype) for each in (fweights, aweights) if each is not None]
    weight = weights[0] * weights[-1] if len(weights) == 2 else weights[0] if weights else yoke.ones(x.shape[-1], dtype=x.dtype, device=x.device)
    total = yoke.sum(weight)
    apart = x - yoke.sum(x * weight, -1, keepdim=True) / total
    counted = total - correction * (1 if aweights is None else yoke.sum(weight * weights[-1]) / total)
    return yoke.matmul(apart * weight, apart.transpose(0, 1) if x.ndim == 2 else apart) / yoke.clamp(counted, min=0)


def corrcoef(input: Tensor) -> Tensor:
    """Returns the correlations of the rows; 1 for a vector."""
    found = cov(input)
    if found.ndim == 0:
        return found / found
    spread = yoke.sqrt(yoke.diagonal(found))
    return yoke.clamp(found / yoke.outer(spread, spread), -1, 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Returns all choices of r elements of a vector, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = [*choose(range(len(input)), r)]
    return input[yoke.tensor(places, dtype=yoke.int64, device=input.device)] if places else input[:0].reshape(0, r)


def extreme_by_place(input: Tensor, dim: int, index: Tensor, src: Tensor, largest: bool, include_self: bool) -> Tensor:
    """Implements scatter_reduce's "amax" and "amin". Equal extremes of a place share the gradient."""
    for axis, length in enumerate(index.shape):
        src = src.narrow(axis, 0, length)
    order = yoke.argsort(src.detach(), dim, descending=not largest)
    found = input.detach().scatter(dim, yoke.gather(index, dim, order), yoke.gather(src.detach(), dim, order))  # the last write counts
    chosen = src == yoke.gather(found, dim, index)
    nothing = yoke.zeros_like(input)
    counts = nothing.scatter_add(dim, index, chosen.to(dtype=input.dtype))
    rounding = None if input.dtype.is_floating_point else "floor"
    among = yoke.div(nothing.scatter_add(dim, index, yoke.where(chosen, src, yoke.zeros_like(src))), yoke.clamp(counts, min=1), rounding_mode=rounding)
    if include_self:
        among = yoke.maximum(input, among) if largest else yoke.minimum(input, among)
    return yoke.where(counts > 0, among, input)


# ---- Random numbers --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "", _devices_kw: str = "", device_type: str = "cuda") -> Iterator[None]:
    """Gives the state of random numbers back after a block. All devices draw from the same state."""
    state = yoke.get_rng_state()
    try:
        yield
    finally:
        if enabled:
            yoke.set_rng_state(state)
