"""torch.Size: the shape of a tensor, a tuple that prints and counts as PyTorch's."""

from __future__ import annotations

from typing import Any

from yoke._yoke import Tensor

_shape = Tensor.__dict__["shape"].__get__


class Size(tuple):  # type: ignore[type-arg]
    """Shape: a tuple of ints with numel()."""

    __slots__ = ()

    def numel(self) -> int:
        """Returns the product of the sizes."""
        product = 1
        for each in self:
            product *= each
        return product

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


def shape(x: Tensor) -> Size:
    """x.shape."""
    return Size(_shape(x))


def size(x: Tensor, dim: int | None = None) -> Any:
    """x.size() or x.size(dim)."""
    return Size(_shape(x)) if dim is None else _shape(x)[dim]
