"""Storages and tensors in PyTorch's files: names there, and tensors of Yoke."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from yoke import _yoke
from yoke._yoke import Tensor
from yoke.compat.torch.files.archive import Archive

# PyTorch's names of storages and dtypes, and Yoke's name of the dtype.
STORAGES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "LongStorage": "int64",
            "IntStorage": "int32", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool"}
DTYPES = {"float64": "float64", "float32": "float32", "float16": "float16", "bfloat16": "bfloat16", "int64": "int64", "int32": "int32", "int8": "int8",
          "uint8": "uint8", "bool": "bool", "float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2"}
# Storages and dtypes without a dtype in Yoke, with the bytes of an element.
OTHER_STORAGES = {"ShortStorage": ("int16", 2), "ComplexFloatStorage": ("complex64", 8), "ComplexDoubleStorage": ("complex128", 16),
                  "QInt8Storage": ("qint8", 1), "QUInt8Storage": ("quint8", 1), "QInt32Storage": ("qint32", 4), "QUInt4x2Storage": ("quint4x2", 1),
                  "QUInt2x4Storage": ("quint2x4", 1)}
OTHER_DTYPES = ("int16", "uint16", "uint32", "uint64", "complex32", "complex64", "complex128", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
                "float4_e2m1fn_x2", "qint8", "quint8", "qint32", "quint4x2", "quint2x4")
REMEDY = "cast the tensor in PyTorch, such as x.to(torch.int32) or x.to(torch.float32), and save the state again"


class Kind(NamedTuple):
    """Class of storages in a file: the dtype's name in PyTorch, Yoke's dtype or None, and the bytes of an element."""

    name: str
    dtype: _yoke.dtype | None
    itemsize: int


class Storage(NamedTuple):
    """Common memory of tensors of a file, as bytes on a device."""

    kind: Kind
    memory: Tensor
    size: int

    def flat(self) -> Any:
        """Returns the tensor of all elements, for a storage in a state; in scripts for PyTorch a storage."""
        if self.kind.dtype is None:
            return Refused(f"is a storage of {self.kind.name}, a dtype that Yoke does not have; {REMEDY}")
        flat = _yoke._view_storage(self.memory, self.kind.dtype, (self.size // self.kind.itemsize,), None, 0)
        if not installed():
            return flat
        from yoke.compat.torch.storages import TypedStorage, UntypedStorage

        return (UntypedStorage if self.kind.name == "untyped" else TypedStorage)(flat)


class Refused(NamedTuple):
    """Value without a form in Yoke, with the reason. The error comes later, from the value's place in the state, because the place has a name."""

    reason: str


def kinds() -> dict[str, Kind]:
    """Returns the classes of storages by name in a pickle."""
    found = {name: Kind(dtype, _yoke.dtype(dtype), _yoke.dtype(dtype).itemsize) for name, dtype in STORAGES.items()}
    found.update({name: Kind(dtype, None, size) for name, (dtype, size) in OTHER_STORAGES.items()})
    named = {f"{module}.{name}": kind for module in ("torch", "torch.cuda") for name, kind in found.items()}
    return {**named, "torch.storage.UntypedStorage": Kind("untyped", _yoke.uint8, 1)}


class Storages:
    """Storages of a file by key, each read once, on the device of map_location."""

    def __init__(self, archive: Archive, prefix: str, map_location: Any, mapped: Any, damaged: Callable[[str], Exception]) -> None:
        self._archive, self._prefix, self._damaged = archive, prefix, damaged
        self._map_location, self._mapped = map_location, mapped
        self._found: dict[str, Tensor] = {}

    def load(self, parts: Any) -> Storage:
        """Returns the storage of a persistent id: ("storage", class, key, location, number of elements)."""
        fits = type(parts) is tuple and len(parts) in (5, 6) and [type(each) for each in parts[:5]] == [str, Kind, str, str, int]
        if not fits or parts[0] != "storage" or parts[5:] not in ((), (None,)):
            raise self._damaged("a reference leads to something else than a storage of the file")
        _, kind, key, location, count = parts
        entry = self._archive.entries.get(f"{self._prefix}data/{key}")
        if entry is None:
            raise self._damaged(f"there is no storage {key[:40]!r} in the file")
        if count * kind.itemsize != entry.size:
            raise self._damaged(f"storage '{key}' is said to have {count} elements of {kind.itemsize} bytes, but it has {entry.size} bytes")
        if key not in self._found:
            self._found[key] = self._placed(self._read(entry), location[:80])
        return Storage(kind, self._found[key], entry.size)

    def _read(self, entry: Any) -> Tensor:
        if self._mapped is not None and entry.size:
            start = self._archive.start(entry)
            if start % 16 == 0:
                return _over(self._mapped, start, entry.size)
        memory = _yoke.empty((entry.size,), dtype=_yoke.uint8, device="cpu")
        if entry.size:
            self._archive.read_into(entry, memoryview(memory))
        return memory

    def _placed(self, memory: Tensor, location: str) -> Tensor:
        """Returns the memory on the wanted device, by PyTorch's rules for map_location."""
        wanted = self._map_location
        if callable(wanted):
            wanted = wanted(memory, location)
            if isinstance(wanted, Tensor):
                return wanted
        elif isinstance(wanted, dict):
            wanted = wanted.get(location)
        if wanted is not None:
            return memory.to(device_like(wanted))
        try:
            return memory.to(_yoke.device(location))
        except _yoke.Error as error:
            raise type(error)(f"load(): argument 'f' has a tensor from the device {location!r}, which is not there: {error}; write map_location='cpu'") from None


def device_like(wanted: Any) -> Any:
    """Returns a device of Yoke's for a device, a number, or the text of any other object."""
    return wanted if isinstance(wanted, (_yoke.Device, int)) else _yoke.device(str(wanted))


def _over(mapped: Any, start: int, size: int) -> Tensor:
    """Returns a tensor over a part of a mapped file."""
    import numpy

    return _yoke.from_dlpack(numpy.frombuffer(mapped, dtype=numpy.uint8, count=size, offset=start))


# ---- Tensors ---------------------------------------------------------------------------------------------------------

_MOST_AXES = 16


def rebuilt(storage: Storage, kind: Kind, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], requires_grad: bool) -> Any:
    """Returns the tensor of a view of a storage. ValueError if the view is outside; Refused for a dtype without a form in Yoke."""
    _check_view(storage, kind, offset, shape, strides)
    if kind.dtype is None:
        return Refused(f"is a tensor of {kind.name}, a dtype that Yoke does not have; {REMEDY}")
    if len(shape) > _MOST_AXES:
        return Refused(f"is a tensor of {len(shape)} axes; Yoke's tensors have at most {_MOST_AXES}")
    if requires_grad and not kind.dtype.is_floating_point:
        raise _yoke.ValueError(f"a tensor of {kind.name} requires a gradient")
    tensor = _yoke._view_storage(storage.memory, kind.dtype, shape, strides, 0 if 0 in shape else offset * kind.itemsize)
    return tensor.requires_grad_(True) if requires_grad else tensor


def _check_view(storage: Storage, kind: Kind, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    numbers = (offset, *shape, *strides)
    if len(shape) != len(strides) or any(type(each) is not int or not 0 <= each < 2**62 for each in numbers):
        raise _yoke.ValueError(f"a tensor has the shape {_short(shape)} and the strides {_short(strides)} from element {_short(offset)} on")
    elements = 1
    for size in shape:
        elements *= size
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1 if elements else 0  # an empty view may begin anywhere
    if elements >= 2**62 or last * kind.itemsize > storage.size:
        raise _yoke.ValueError(f"a tensor of shape {_short(shape)} and strides {_short(strides)} from element {_short(offset)} on passes the {storage.size} bytes of its storage")


def _short(value: Any) -> str:
    text = str(value) if not isinstance(value, tuple) or len(value) <= 64 else f"of {len(value)} numbers"
    return text if len(text) <= 200 else text[:200] + "…"


def dtype_of(name: str) -> Any:
    """Returns Yoke's dtype for PyTorch's name; Refused for another dtype of PyTorch."""
    if name in DTYPES:
        return _yoke.dtype(DTYPES[name])
    return Refused(f"is the dtype torch.{name}, which Yoke does not have")


def device_of(text: str) -> Any:
    """Returns the device of a state; a string if the machine does not have the device."""
    torch = installed()
    try:
        return torch.device(text) if torch else _yoke.device(text)
    except (_yoke.Error, RuntimeError):
        return text


def installed() -> Any:
    """Returns the module torch of scripts, if the module is Yoke's; else None."""
    torch = sys.modules.get("torch")
    return torch if str(getattr(torch, "__version__", "")).endswith("+yoke") else None
