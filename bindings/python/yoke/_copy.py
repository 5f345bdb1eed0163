"""Tensors in copy and pickle, and so modules and optimizers: best = copy.deepcopy(net), pickle.dumps(net)."""

from __future__ import annotations

import copy
import weakref
from typing import Any

from yoke import _yoke
from yoke._grad import no_grad
from yoke._yoke import Tensor


def deepcopy(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """Returns a leaf of the same class with its own memory, gradient and attributes. For each memo a storage is copied once."""
    if not tensor.is_leaf:
        raise _yoke.StateError("deepcopy(): the tape recorded how this tensor was computed, and a copy would lose its gradients; copy tensor.detach()")
    result = _view_of(_copied_storage(tensor, memo), type(tensor), *_layout_of(tensor))
    memo[id(tensor)] = result  # before what may lead back here
    for name, value in getattr(tensor, "__dict__", {}).items():
        setattr(result, name, copy.deepcopy(value, memo))
    if tensor.requires_grad:
        result.requires_grad_(True)
        result.grad = copy.deepcopy(tensor.grad, memo)
    return result


def _copied_storage(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """Returns the copy, as bytes, of the memory behind `tensor`. The memo keeps copied tensors alive, so storages keep their
    numbers.
    """
    key = ("yoke storage", tensor.storage_id())
    if key not in memo:
        with no_grad():
            memo[key] = _bytes_of(tensor).clone()
    return memo[key]  # type: ignore[no-any-return]


def _bytes_of(tensor: Tensor) -> Tensor:
    return _yoke._view_storage(tensor, _yoke.uint8, (tensor.storage_nbytes(),), None, 0)


def _layout_of(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.dtype, _yoke._storage_offset(tensor), tensor.shape, tensor.strides


def _view_of(memory: Tensor, kind: type[Tensor], dtype: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    result = _yoke._view_storage(memory, dtype, shape, strides, offset)
    return result if kind is Tensor else Tensor.__new__(kind, result)


# ---- Pickle ----------------------------------------------------------------------------------------------------------


class _Storage:
    """Memory behind tensors, as a single object while a pickler runs, because pickle writes an object once."""

    def __init__(self, tensor: Tensor) -> None:
        self.bytes = _bytes_of(tensor)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_storage, (str(self.bytes.device), memoryview(self.bytes.cpu()).tobytes())  # type: ignore[arg-type]


# Storages by number; a number is unique while its storage lives. A pickler keeps written objects until its end.
_storages: weakref.WeakValueDictionary[int, _Storage] = weakref.WeakValueDictionary()


def _storage_of(tensor: Tensor) -> _Storage:
    found = _storages.get(tensor.storage_id())
    if found is None:
        found = _storages[tensor.storage_id()] = _Storage(tensor)
    return found


def reduce(tensor: Tensor) -> tuple[Any, ...]:
    """Returns the parts from which pickle and copy.copy rebuild a tensor. As in PyTorch the gradient and the tape stay behind."""
    parts = (_rebuild, (type(tensor), _storage_of(tensor), *_layout_of(tensor), tensor.requires_grad))
    state = getattr(tensor, "__dict__", None)
    return (*parts, state) if state else parts


def _read_storage(spec: str, data: bytes) -> Tensor:
    try:
        return _yoke.tensor(data, dtype=_yoke.uint8, device=spec)
    except _yoke.DeviceUnavailableError as error:
        told = _yoke.DeviceUnavailableError(f"the tensor was pickled on {spec} and can only be loaded on {spec}: {error}; pickle x.cpu(), or a state_dict() with every tensor on the CPU")
        told.call = error.call
        raise told from None


def _rebuild(kind: type[Tensor], storage: Any, dtype: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...],
             requires_grad: bool) -> Tensor:
    memory = storage.bytes if isinstance(storage, _Storage) else storage  # from copy.copy, which shares the memory
    result = _view_of(memory, kind, dtype, offset, shape, strides)
    return result.requires_grad_(True) if requires_grad else result
