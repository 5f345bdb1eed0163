"""Reductions and products of PyTorch that Yoke writes otherwise, or whose arguments by position differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import yoke
from yoke import _yoke
from yoke._yoke import Tensor
from yoke.compat.torch.options import refused

_UNSET: Any = object()


def _spread(call: str, function: Any) -> Any:
    """Returns var, std and their like with PyTorch's two forms: (x, unbiased), (x, dim, unbiased, keepdim), and names."""

    def run(input: Tensor, dim: Any = None, unbiased: Any = _UNSET, keepdim: bool = False, *, correction: Any = _UNSET, axis: Any = _UNSET) -> Any:
        if axis is not _UNSET:
            dim = axis
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not _UNSET and correction is not _UNSET:
            raise _yoke.TypeError(f"{call}(): arguments 'unbiased' and 'correction' are the same argument; give one of the two")
        less = int(unbiased) if unbiased is not _UNSET else 1 if correction is _UNSET or correction is None else correction
        if isinstance(dim, (list, tuple)) and not dim:
            dim = None
        return function(input, dim, keepdim=keepdim, correction=less)

    run.__name__ = call
    run.__doc__ = f"Returns yoke.{call} with PyTorch's order of arguments."
    return run


var, std = _spread("var", yoke.var), _spread("std", yoke.std)
var_mean, std_mean = _spread("var_mean", yoke.var_mean), _spread("std_mean", yoke.std_mean)


def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sums all elements but NaN."""
    return yoke.sum(yoke.where(yoke.isnan(input), yoke.zeros_like(input), input), dim, keepdim, dtype=dtype)


def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Averages all elements but NaN."""
    counted = yoke.sum((~yoke.isnan(input)).to(dtype=input.dtype), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / counted


class _Extremes(NamedTuple):
    values: Tensor
    indices: Tensor


def _cumulated(input: Tensor, dim: int, compare: Any) -> _Extremes:
    if input.ndim == 0:
        return _Extremes(input.clone(), yoke.zeros_like(input, dtype=yoke.int64))
    parts = list(yoke.unbind(input, dim))
    best, place = parts[0], yoke.zeros_like(parts[0], dtype=yoke.int64)
    values, places = [best], [place]
    for index, each in enumerate(parts[1:], 1):
        better = compare(each, best)
        best = yoke.where(better, each, best)
        place = yoke.where(better, yoke.full_like(place, index), place)
        values.append(best)
        places.append(place)
    return _Extremes(yoke.stack(values, dim), yoke.stack(places, dim))


def cummax(input: Tensor, dim: int) -> _Extremes:
    """Returns the largest elements so far, and their places."""
    return _cumulated(input, dim, yoke.ge)


def cummin(input: Tensor, dim: int) -> _Extremes:
    """Returns the smallest elements so far, and their places."""
    return _cumulated(input, dim, yoke.le)


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Returns differences of neighbours, n times."""
    parts = [each for each in (prepend, input, append) if each is not None]
    x = yoke.cat(parts, dim) if n and len(parts) > 1 else input
    for _ in range(n):
        length = x.shape[dim]
        after, before = x.narrow(dim, 1, length - 1), x.narrow(dim, 0, length - 1)
        x = after ^ before if x.dtype is yoke.bool else after - before
    return x


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Returns the p-norm of the difference."""
    return yoke.norm(input - other, p)


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Integrates by the rule of trapezoids."""
    length = y.shape[dim]
    middle = (y.narrow(dim, 1, length - 1) + y.narrow(dim, 0, length - 1)) * 0.5
    if x is None:
        return yoke.sum(middle * dx, dim)
    behind = -1 - dim if dim < 0 else y.ndim - 1 - dim  # axes behind the axis
    steps = diff(x).reshape(-1, *[1] * behind) if x.ndim == 1 else diff(x, dim=-1 - behind)
    return yoke.sum(middle * steps, dim)


def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """Reduces values into places: "sum", "mean", "amax" and "amin"."""
    if reduce in ("amax", "amin"):
        from yoke.compat.torch.extras import extreme_by_place

        return extreme_by_place(input, dim, index, src, reduce == "amax", include_self)
    start = input if include_self else input.scatter(dim, index, yoke.zeros_like(src))
    if reduce == "sum":
        return start.scatter_add(dim, index, src)
    if reduce == "mean":
        ones = yoke.ones_like(input) if include_self else yoke.ones_like(input).scatter(dim, index, yoke.zeros_like(src))
        counts = ones.scatter_add(dim, index, yoke.ones_like(src))
        return yoke.div(start.scatter_add(dim, index, src), counts, rounding_mode=None if input.dtype.is_floating_point else "floor")
    raise _yoke.UnsupportedError(f"scatter_reduce(): argument 'reduce' is {reduce!r}; it must be 'sum', 'mean', 'amax' or 'amin'")


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Drops elements equal to the element before."""
    if dim is not None:
        raise _yoke.UnsupportedError("unique_consecutive(): argument 'dim' is not there; leave it out")
    x = input.reshape(-1)
    starts = yoke.cat([yoke.ones(min(1, len(x)), dtype=yoke.bool, device=x.device), x[1:] != x[:-1]])
    group = yoke.cumsum(starts.long(), 0) - 1
    found: list[Tensor] = [x[starts]]
    if return_inverse:
        found.append(group.reshape(input.shape))
    if return_counts:
        found.append(yoke.bincount(group))
    return found[0] if len(found) == 1 else tuple(found)


# ---- Products --------------------------------------------------------------------------------------------------------


def _summed(x: Tensor, of_x: list[int], y: Tensor, of_y: list[int]) -> Tensor:
    """Sums x over axes whose partner in y has length 1, and broadcasts."""
    axes = [i for i, j in zip(of_x, of_y) if x.shape[i] != 1 and y.shape[j] == 1]
    return x.sum(axes, keepdim=True) if axes else x


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """Sums products over the last axes of a and the first of b, or over lists of axes."""
    refused("tensordot", out=(out, None))
    of_a, of_b = (list(range(a.ndim - dims, a.ndim)), list(range(dims))) if isinstance(dims, int) else ([*map(int, each)] for each in dims)
    of_a, of_b = [axis % a.ndim for axis in of_a], [axis % b.ndim for axis in of_b]
    a, b = _summed(a, of_a, b, of_b), _summed(b, of_b, a, of_a)
    kept_a, kept_b = [axis for axis in range(a.ndim) if axis not in of_a], [axis for axis in range(b.ndim) if axis not in of_b]
    shape = [a.shape[axis] for axis in kept_a] + [b.shape[axis] for axis in kept_b]
    length = 1
    for axis in of_a:
        length *= a.shape[axis]
    return yoke.matmul(a.permute(*kept_a, *of_a).reshape(-1, length), b.permute(*of_b, *kept_b).reshape(length, -1)).reshape(shape)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums products over the last axes."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return tensordot(input, other, ([-1], [-1]))


def _plus(call: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Returns beta · input + alpha · product; with beta = 0 even where input is NaN."""
    for name, value in (("beta", beta), ("alpha", alpha)):
        if not product.dtype.is_floating_point and value != int(value):
            raise _yoke.TypeError(f"{call}: argument '{name}' is {value}, but the tensors are {product.dtype}; give a whole number")
    if product.dtype is yoke.bool:
        return (product & bool(alpha)) | (input & bool(beta))
    if not product.dtype.is_floating_point:
        beta, alpha = int(beta), int(alpha)
    return alpha * product + beta * input if beta else alpha * product


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Returns beta · input + alpha · mat vec."""
    return _plus("addmv", input, yoke.matmul(mat, vec), beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Returns beta · input + alpha · vec1 ⊗ vec2."""
    return _plus("addr", input, yoke.outer(vec1, vec2), beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Returns beta · input + alpha · the sum of all products."""
    return _plus("addbmm", input, yoke.sum(yoke.bmm(batch1, batch2), 0), beta, alpha)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Returns Kronecker's product."""
    axes = max(input.ndim, other.ndim)
    a, b = ([1] * (axes - each.ndim) + list(each.shape) for each in (input, other))
    pairs = [length for pair in zip(a, b) for length in pair]
    wide = [length for pair in zip(a, [1] * axes) for length in pair], [length for pair in zip([1] * axes, b) for length in pair]
    return (input.reshape(wide[0]) * other.reshape(wide[1])).expand(pairs).reshape([x * y for x, y in zip(a, b)])


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Returns the vector product along an axis of length 3."""
    if dim is None:
        dim = next(axis for axis, length in enumerate(input.shape) if length == 3)
    return yoke.roll(input, -1, dim) * yoke.roll(other, -2, dim) - yoke.roll(input, -2, dim) * yoke.roll(other, -1, dim)


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Returns the n-th power of matrices, n ≥ 0."""
    if n < 0:
        raise _yoke.UnsupportedError(f"matrix_power(): argument 'n' is {n}; there is no inverse, so it must be 0 or more")
    result = yoke.eye(input.shape[-1], dtype=input.dtype, device=input.device).expand(input.shape)
    for _ in range(n):
        result = yoke.matmul(result, input)
    return result


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Returns the product of matrices."""
    result = matrices[0]
    for each in matrices[1:]:
        result = yoke.matmul(result, each)
    return result


def multi_dot(tensors: Any, *, out: Any = None) -> Tensor:
    """Returns the product of a list of matrices; the first and the last may be vectors."""
    refused("multi_dot", out=(out, None))
    return chain_matmul(*tensors)


def norm_of(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Tensor:
    """Returns the p-norm; "fro" is 2."""
    if out is not None:
        raise _yoke.UnsupportedError("norm(): argument 'out' is not there; write out.copy_(x.norm())")
    if p == "nuc":
        raise _yoke.UnsupportedError("norm(): argument 'p' is 'nuc'; it must be a number or 'fro', because there are no singular values")
    return yoke.norm(input if dtype is None else input.to(dtype=dtype), 2 if p in ("fro", None) else p, dim, keepdim=keepdim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """torch.linalg.diagonal: the diagonals of the last two axes."""
    return yoke.diagonal(A, offset, dim1, dim2)


def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Returns the norm of vectors."""
    return yoke.norm(x if dtype is None else x.to(dtype=dtype), ord, dim, keepdim=keepdim)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Returns Frobenius' norm of matrices."""
    if ord != "fro":
        raise _yoke.UnsupportedError(f"matrix_norm(): argument 'ord' is {ord!r}; it must be 'fro'")
    return vector_norm(A, 2, tuple(dim), keepdim, dtype=dtype)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Returns torch.linalg.norm: the norm of vectors, or Frobenius' norm of matrices."""
    if ord == "fro" or ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if A.ndim > 1 and (dim is None or isinstance(dim, (tuple, list)) and len(dim) > 1):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)
