"""Linear, Embedding, Dropout, Identity, Flatten, Unflatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yoke
from yoke import _yoke
from yoke._check import listed, number, tensor, whole
from yoke._named import named
from yoke._yoke import Device, Tensor, dtype as DType
from yoke.nn.module import Module, Parameter


class Linear(Module):
    """y = x Wᵀ + b. weight is [out_features, in_features], bias [out_features] or None.

    Both start uniform in ±1/√in_features (K. He et al., "Delving Deep into Rectifiers", with a = √5), weight first.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Device | str | int | None = None,
                 dtype: DType | None = None) -> None:
        self.in_features = in_features = whole("Linear", "in_features", in_features, 1)
        self.out_features = out_features = whole("Linear", "out_features", out_features, 1)
        bound = in_features**-0.5

        def uniform(shape: tuple[int, ...]) -> Parameter:
            return Parameter(yoke.rand(shape, dtype=dtype, device=device) * (2 * bound) - bound)

        self.weight = uniform((out_features, in_features))
        self.register_parameter("bias", uniform((out_features,)) if bias else None)

    def forward(self, x: Tensor) -> Tensor:
        return yoke.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A row of weight [num_embeddings, embedding_dim] for each index. weight starts normal, mean 0, variance 1.

    Row padding_idx starts as zeros and gets no gradient.
    """

    weight: Parameter
    padding_idx: int | None

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *,
                 device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        num_embeddings = whole("Embedding", "num_embeddings", num_embeddings, 1)
        embedding_dim = whole("Embedding", "embedding_dim", embedding_dim, 1)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx = _row("Embedding", padding_idx, num_embeddings)
        weight = yoke.randn((num_embeddings, embedding_dim), dtype=dtype, device=device)
        if padding_idx is not None:
            weight[padding_idx] = 0.0
        self.weight = Parameter(weight)

    @classmethod
    @named
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """Returns a layer with the rows of a tensor [num_embeddings, embedding_dim] as weight, in the same memory. freeze: the rows
        are not trained.
        """
        if tensor("from_pretrained", "embeddings", embeddings).ndim != 2 or 0 in embeddings.shape:
            raise _yoke.ValueError(f"from_pretrained(): argument 'embeddings' has shape {embeddings.shape}; it must be [num_embeddings, embedding_dim], both of at least 1")
        layer: Embedding = cls.__new__(cls)
        layer.num_embeddings, layer.embedding_dim = embeddings.shape
        layer.padding_idx = _row("from_pretrained", padding_idx, layer.num_embeddings)
        layer.weight = Parameter(embeddings, not freeze)
        return layer

    def forward(self, index: Tensor) -> Tensor:
        return yoke.embedding(index, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


def _row(call: str, padding_idx: int | None, count: int) -> int | None:
    """Returns the row of padding, counted from the first row."""
    if padding_idx is None:
        return None
    padding_idx = whole(call, "padding_idx", padding_idx)
    if not -count <= padding_idx < count:
        raise _yoke.IndexError(f"{call}(): argument 'padding_idx' is {padding_idx}; for {count} rows it must be {-count} to {count - 1}")
    return padding_idx % count


class Dropout(Module):
    """Zeroes elements with probability p while training, and scales the rest by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= number("Dropout", "p", p) <= 1:
            raise _yoke.ValueError(f"Dropout(): argument 'p' is {p}; it must be a probability between 0 and 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return yoke.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Identity(Module):
    """Returns its argument: a place for a layer that is not there. Takes any arguments, and uses none."""

    def __init__(self, *unused: Any, **unused_by_name: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """Joins the axes from start_dim to end_dim: [N, …] becomes [N, rest] by default."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = whole("Flatten", "start_dim", start_dim), whole("Flatten", "end_dim", end_dim)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape or (1,)  # a single number becomes an axis of its own
        first, last = self._axis("start_dim", self.start_dim, shape), self._axis("end_dim", self.end_dim, shape)
        if first > last:
            raise _yoke.ValueError(f"Flatten: argument 'start_dim' is {self.start_dim} and 'end_dim' is {self.end_dim}; for x of shape {x.shape} 'start_dim' must not come after 'end_dim'")
        joined = 1
        for length in shape[first:last + 1]:
            joined *= length
        return yoke.reshape(x, (*shape[:first], joined, *shape[last + 1:]))

    @staticmethod
    def _axis(name: str, axis: int, shape: tuple[int, ...]) -> int:
        if not -len(shape) <= axis < len(shape):
            raise _yoke.IndexError(f"Flatten: argument '{name}' is {axis}; for x of shape {shape} it must be {-len(shape)} to {len(shape) - 1}")
        return axis % len(shape)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Cuts an axis into several: unflattened_size has their lengths, whose product is the length of `dim`; a single -1 is found."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim = whole("Unflatten", "dim", dim)
        self.unflattened_size = tuple(whole("Unflatten", "unflattened_size", each, -1) for each in
                                      listed("Unflatten", "unflattened_size", unflattened_size, "lengths"))

    def forward(self, x: Tensor) -> Tensor:
        return yoke.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
