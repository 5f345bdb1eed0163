"""x.storage() and x.untyped_storage(): the memory of a tensor and of its views, as a flat list of elements or bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yoke import _yoke
from yoke._yoke import Tensor


class TypedStorage:
    """Elements of the memory behind a tensor, in order of their addresses; views of the memory share the storage."""

    def __init__(self, tensor: Tensor) -> None:
        count = tensor.storage_nbytes() // tensor.dtype.itemsize
        self._flat = _yoke._view_storage(tensor.detach(), tensor.dtype, (count,), (1,), 0)

    def __len__(self) -> int:
        return self._flat.shape[0]

    def __getitem__(self, index: Any) -> Any:
        part = self._flat[index]
        if not part.ndim:
            return part.item()
        found = TypedStorage.__new__(TypedStorage)
        found._flat = part
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        lines = "".join(f" {each}\n" for each in self.tolist())
        return f"{lines}[{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    @property
    def dtype(self) -> Any:
        """Returns the dtype of the elements."""
        return self._flat.dtype

    @property
    def device(self) -> Any:
        """Returns the device of the memory."""
        return self._flat.device

    def size(self) -> int:
        """Returns the count of elements."""
        return len(self)

    def tolist(self) -> list[Any]:
        """Returns the elements as numbers."""
        return self._flat.tolist()

    def element_size(self) -> int:
        """Returns the bytes of an element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Returns the bytes of the memory."""
        return self._flat.nbytes

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return self._flat.data_ptr()

    def untyped(self) -> UntypedStorage:
        """Returns the same memory as bytes."""
        return UntypedStorage(self._flat)


class UntypedStorage:
    """Bytes of the memory behind a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._elements = TypedStorage(tensor)

    def __len__(self) -> int:
        return self._elements.nbytes()

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    @property
    def device(self) -> Any:
        """Returns the device of the memory."""
        return self._elements.device

    def size(self) -> int:
        """Returns the count of bytes."""
        return len(self)

    def nbytes(self) -> int:
        """Returns the count of bytes."""
        return len(self)

    def element_size(self) -> int:
        """Returns 1."""
        return 1

    def data_ptr(self) -> int:
        """Returns the address of the first byte."""
        return self._elements.data_ptr()


def storage(self: Tensor) -> TypedStorage:
    """x.storage(): all elements of the memory behind x."""
    return TypedStorage(self)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """x.untyped_storage(): all bytes of the memory behind x."""
    return UntypedStorage(self)


def is_storage(obj: Any) -> bool:
    """Returns whether an object is the result of storage() or untyped_storage()."""
    return isinstance(obj, (TypedStorage, UntypedStorage))
