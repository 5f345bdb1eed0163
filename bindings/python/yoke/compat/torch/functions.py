"""Functions of PyTorch that Yoke writes otherwise, as compositions; most are methods of tensors too."""

from __future__ import annotations

import math
from typing import Any

import yoke
from yoke._yoke import Tensor
from yoke.compat.torch.sizes import Size


def _axis(dim: int, count: int) -> int:
    return dim % count if count else 0


def _as_list(tensors: Any) -> list[Tensor]:
    return list(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else list(tensors)


# ---- Joining and splitting -------------------------------------------------------------------------------------------


def atleast_1d(*tensors: Any) -> Any:
    """Returns tensors with an axis at least."""
    made = tuple([each.reshape(1) if each.ndim == 0 else each for each in _as_list(tensors)])
    return made[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else made


def atleast_2d(*tensors: Any) -> Any:
    """Returns tensors with two axes at least."""
    made = tuple([each.reshape(1, -1) if each.ndim < 2 else each for each in _as_list(tensors)])
    return made[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else made


def vstack(tensors: Any) -> Tensor:
    """Joins tensors as rows."""
    return yoke.cat([atleast_2d(each) for each in tensors], 0)


def hstack(tensors: Any) -> Tensor:
    """Joins tensors along their second axis, vectors along their only axis."""
    parts = [atleast_1d(each) for each in tensors]
    return yoke.cat(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tensors: Any) -> Tensor:
    """Joins tensors along their third axis."""
    parts = [atleast_2d(each) for each in tensors]
    return yoke.cat([each.unsqueeze(2) if each.ndim == 2 else each for each in parts], 2)


def column_stack(tensors: Any) -> Tensor:
    """Joins vectors as columns, and matrices side by side."""
    return yoke.cat([each.reshape(each.nelement(), 1) if each.ndim < 2 else each for each in tensors], 1)


def hsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Splits along the second axis, a vector along its only axis."""
    return yoke.tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Splits along the first axis."""
    return yoke.tensor_split(input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Splits along the third axis."""
    return yoke.tensor_split(input, indices_or_sections, 2)


def block_diag(*tensors: Tensor) -> Tensor:
    """Puts matrices on the diagonal of zeros."""
    parts = [atleast_2d(each) for each in tensors]
    width, place, rows = sum(each.shape[1] for each in parts), 0, []
    for each in parts:
        rows.append(yoke.pad(each, [place, width - place - each.shape[1]]))
        place += each.shape[1]
    return yoke.cat(rows, 0)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Returns all combinations of elements, a row each."""
    if len(tensors) == 1:
        return tensors[0]
    return yoke.stack([each.reshape(-1) for each in yoke.meshgrid(tensors, indexing="ij")], 1)


# ---- Axes ------------------------------------------------------------------------------------------------------------


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Expands to a shape."""
    return input.expand(size)


def broadcast_shapes(*shapes: Any) -> Size:
    """Returns the shape to which shapes broadcast."""
    shapes = tuple([(each,) if isinstance(each, int) else tuple(each) for each in shapes])
    result = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for place, length in enumerate(reversed(shape), 1):
            if length != 1 and result[-place] not in (1, length):
                raise RuntimeError(f"broadcast_shapes(): the shapes {shapes} do not broadcast: {length} and {result[-place]} differ")
            result[-place] = length if length != 1 else result[-place]
    return Size(result)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Expands tensors to a common shape."""
    parts = _as_list(tensors)
    shape = broadcast_shapes(*(each.shape for each in parts))
    return tuple([each.expand(shape) for each in parts])


def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Moves axes to other places."""
    return yoke.movedim(input, source, destination)


def fliplr(input: Tensor) -> Tensor:
    """Reverses the second axis."""
    return yoke.flip(input, (1,))


def flipud(input: Tensor) -> Tensor:
    """Reverses the first axis."""
    return yoke.flip(input, (0,))


def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turns a plane by 90 degrees, k times."""
    first, second = dims
    if k % 4 == 0:
        return input.clone()
    if k % 4 == 2:
        return yoke.flip(input, (first, second))
    return yoke.flip(input.transpose(first, second), (first if k % 4 == 1 else second,))


def adjoint(input: Tensor) -> Tensor:
    """Exchanges the last two axes."""
    return input.transpose(-2, -1)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Puts the last axis on diagonals of new planes."""
    size = input.shape[-1] + abs(offset)
    rows = yoke.arange(input.shape[-1], device=input.device) + max(0, -offset)
    plane = yoke.zeros((*input.shape, size), dtype=input.dtype, device=input.device)
    filled = yoke.scatter(plane, -1, (rows + offset).reshape(-1, 1).expand(*input.shape, 1), input.unsqueeze(-1))
    if offset:
        before, behind = max(0, -offset), max(0, offset)
        filled = yoke.pad(filled, [0, 0, before, behind])
    return yoke.movedim(filled, (-2, -1), (dim1, dim2))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Returns a matrix with the elements on a diagonal."""
    return yoke.diag(input.reshape(-1), offset)


def argwhere(input: Tensor) -> Tensor:
    """Returns the places of elements other than 0, a row each."""
    return yoke.nonzero(input)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Returns the place on each axis for places in the flat tensor."""
    found: list[Tensor] = []
    for length in reversed((shape,) if isinstance(shape, int) else tuple(shape)):
        found.insert(0, indices % length)
        indices = indices // length
    return tuple(found)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Returns elements by their place in the flat tensor."""
    return input.reshape(-1)[index]


# ---- Elements --------------------------------------------------------------------------------------------------------


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Holds elements at `min` at least."""
    return yoke.clamp(input, min=min)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Holds elements at `max` at most."""
    return yoke.clamp(input, max=max)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Returns log(x / (1 - x)), with x held in [eps, 1 - eps]."""
    x = input if eps is None else yoke.clamp(input, eps, 1 - eps)
    return yoke.log(x / (1 - x))


def sinc(input: Tensor) -> Tensor:
    """Returns sin(πx) / (πx), and 1 at 0."""
    x = input * math.pi
    return yoke.where(x == 0, yoke.ones_like(x), yoke.sin(x) / yoke.where(x == 0, yoke.ones_like(x), x))


def sign(input: Tensor) -> Tensor:
    """Returns -1, 0 or 1; 0 for NaN."""
    found = yoke.sign(input)
    return yoke.nan_to_num(found, 0.0) if input.dtype.is_floating_point else found


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounds to a number of decimals; halves go to the even neighbour."""
    if not decimals:
        return yoke.round(input)
    factor = 10.0**decimals
    return yoke.round(input * factor) / factor


def signbit(input: Tensor) -> Tensor:
    """Returns whether elements are below 0, or the negative zero."""
    return yoke.lt(input, 0) | (yoke.lt(1 / input, 0) & (input == 0) if input.dtype.is_floating_point else yoke.zeros_like(input, dtype=yoke.bool))


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Returns 0 below 0, 1 above 0, and `values` at 0."""
    return yoke.where(input == 0, values.to(dtype=input.dtype), (input > 0).to(dtype=input.dtype))


def hypot(input: Tensor, other: Tensor) -> Tensor:
    """Returns the length of the vector of two elements."""
    return yoke.sqrt(input * input + other * other)


def xlogy(input: Any, other: Any) -> Tensor:
    """Returns x · log(y), and 0 where x is 0."""
    x = input if isinstance(input, Tensor) else yoke.full_like(other, input)
    y = other if isinstance(other, Tensor) else yoke.full_like(x, other)
    return yoke.where(x == 0, yoke.zeros_like(x), x * yoke.log(yoke.where(x == 0, yoke.ones_like(y), y)))


def rsub(input: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """Returns other - alpha · input."""
    return other - (input if alpha == 1 else input * alpha)


def float_power(input: Any, exponent: Any) -> Tensor:
    """Returns powers in float64."""
    return yoke.pow(input.double() if isinstance(input, Tensor) else input, exponent.double() if isinstance(exponent, Tensor) else float(exponent))


def deg2rad(input: Tensor) -> Tensor:
    """Returns angles in radians."""
    return input * (math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Returns angles in degrees."""
    return input * (180 / math.pi)


def asinh(input: Tensor) -> Tensor:
    """Returns the inverse of sinh."""
    return yoke.sign(input) * yoke.log(yoke.abs(input) + yoke.sqrt(input * input + 1))


def acosh(input: Tensor) -> Tensor:
    """Returns the inverse of cosh."""
    return yoke.log(input + yoke.sqrt(input * input - 1))


def atanh(input: Tensor) -> Tensor:
    """Returns the inverse of tanh."""
    return (yoke.log1p(input) - yoke.log1p(-input)) * 0.5


def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Returns which elements are among test_elements."""
    found = yoke.any(elements.unsqueeze(-1) == test_elements.reshape(-1), -1)
    return ~found if invert else found


def isposinf(input: Tensor) -> Tensor:
    """Returns which elements are infinity."""
    return yoke.isinf(input) & (input > 0)


def isneginf(input: Tensor) -> Tensor:
    """Returns which elements are minus infinity."""
    return yoke.isinf(input) & (input < 0)


def isreal(input: Tensor) -> Tensor:
    """Returns True for each element: there are no complex numbers."""
    return yoke.ones_like(input, dtype=yoke.bool)


def is_complex(input: Tensor) -> bool:
    """Returns False: there are no complex numbers."""
    return False


def is_nonzero(input: Tensor) -> bool:
    """Returns whether the only element is not 0."""
    return bool(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Returns whether two shapes are equal."""
    return input.shape == other.shape


def is_signed(input: Tensor) -> bool:
    """Returns whether the dtype has numbers below 0."""
    return input.dtype not in (yoke.uint8, yoke.bool)


def positive(input: Tensor) -> Tensor:
    """Returns the tensor."""
    return input


def fill(input: Tensor, value: Any) -> Tensor:
    """Returns a tensor of the shape with one value."""
    return value.to(dtype=input.dtype).expand(input.shape).clone() if isinstance(value, Tensor) else yoke.full_like(input, value)


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Returns a tensor without axes, of the default dtype."""
    return yoke.tensor(float(s) if dtype is None else s, dtype=dtype, device=device, requires_grad=requires_grad)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Returns the powers of a vector, as columns."""
    count = len(x) if N is None else N
    powers = yoke.arange(count) if increasing else yoke.arange(count - 1, -1, -1)
    return yoke.pow(x.unsqueeze(-1), powers.to(device=x.device, dtype=x.dtype))


def conj(input: Tensor) -> Tensor:
    """Returns the tensor: there are no complex numbers."""
    return input


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Holds the p-norm of each part along an axis at maxnorm at most."""
    others = [axis for axis in range(input.ndim) if axis != _axis(dim, input.ndim)]
    norms = yoke.norm(input, p, others, keepdim=True)
    return input * yoke.where(norms > maxnorm, maxnorm / (norms + 1e-7), yoke.ones_like(norms))



def fmax(input: Tensor, other: Tensor) -> Tensor:
    """Returns the larger element; a number, if the other is NaN."""
    found = yoke.maximum(input, other)
    return yoke.where(yoke.isnan(input), other, yoke.where(yoke.isnan(other), input, found))


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """Returns the smaller element; a number, if the other is NaN."""
    found = yoke.minimum(input, other)
    return yoke.where(yoke.isnan(input), other, yoke.where(yoke.isnan(other), input, found))


def copysign(input: Tensor, other: Any) -> Tensor:
    """Returns |input| with the sign of other."""
    input = input if input.dtype.is_floating_point else input.to(dtype=yoke._yoke._get_default_dtype())
    y = other if isinstance(other, Tensor) else yoke.full_like(input, other)
    return yoke.where(signbit(y), -yoke.abs(input), yoke.abs(input))


def msort(input: Tensor) -> Tensor:
    """Sorts along the first axis."""
    return yoke.sort(input, 0)[0]


def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """Returns log2(2**x + 2**y)."""
    return yoke.logaddexp(input * math.log(2), other * math.log(2)) / math.log(2)


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Returns the logarithm of the running sum of exponentials, by sums over 2, 4, 8 elements and so on."""
    reach, length = 1, input.shape[dim] if input.ndim else 0
    while reach < length:
        summed = yoke.logaddexp(input.narrow(dim, reach, length - reach), input.narrow(dim, 0, length - reach))
        input, reach = yoke.cat([input.narrow(dim, 0, reach), summed], dim), reach * 2
    return input.clone() if reach == 1 else input
