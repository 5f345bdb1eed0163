"""Writer of PyTorch's files: the pickle of a state, and storages in a zip archive."""

from __future__ import annotations

import struct
import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from yoke import _yoke
from yoke._check import shown
from yoke._grad import no_grad
from yoke._yoke import Tensor
from yoke.compat.torch.files.calls import key_of
from yoke.compat.torch.files.reader import MOST_LEVELS
from yoke.compat.torch.files.tensors import DTYPES, STORAGES
from yoke.compat.torch.files.archive import ALIGNMENT, Writer

_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}
_DTYPE_OF = {dtype: name for name, dtype in DTYPES.items()}


def write(state: Any, file: Any) -> None:
    """Writes the archive of a state to a file from the present place on."""
    pickle = _Pickle()
    data = pickle.run(state)
    archive = Writer(file)
    archive.add("archive/data.pkl", data)
    archive.add("archive/.format_version", b"1")
    archive.add("archive/.storage_alignment", str(ALIGNMENT).encode())
    archive.add("archive/byteorder", b"little")
    for number, region in enumerate(pickle.regions):
        archive.add(f"archive/data/{number}", region.data())
    archive.add("archive/version", b"3\n")
    archive.close()


# ---- Memory ----------------------------------------------------------------------------------------------------------


class _Region:
    """Used part of a storage in a state, from a byte to another; an entry of the archive."""

    def __init__(self, number: int, tensor: Tensor) -> None:
        self.number, self.tensor = number, tensor
        self.begin, self.end = _extent(tensor)
        self.dtypes = {tensor.dtype.name}

    def add(self, tensor: Tensor) -> None:
        begin, end = _extent(tensor)
        self.begin, self.end = min(self.begin, begin), max(self.end, end)
        self.dtypes.add(tensor.dtype.name)

    @property
    def is_untyped(self) -> bool:
        return len(self.dtypes) > 1 or not self.dtypes <= _STORAGE_OF.keys()

    def size(self) -> int:
        """Returns the bytes of the entry, whole elements."""
        return self.end - self.begin

    def location(self) -> str:
        kind, _, index = str(self.tensor.device).partition(":")
        return f"cuda:{index or 0}" if kind in ("cuda", "hip") else "cpu"

    def data(self) -> Any:
        if not self.size():
            return b""
        with no_grad():
            part = _yoke._view_storage(self.tensor, _yoke.uint8, (self.size(),), None, self.begin)
            return memoryview(part.cpu())


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Returns the first byte of a tensor in the storage, at a multiple of 16, and the byte behind the last byte."""
    offset, size = _yoke._storage_offset(tensor), tensor.dtype.itemsize
    if 0 in tensor.shape:
        return offset // 16 * 16, offset // 16 * 16
    last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides))
    return offset // 16 * 16, offset + (last + 1) * size


# ---- The pickle ------------------------------------------------------------------------------------------------------


class _Part:
    """Bytes of a tensor in the pickle, known after the last tensor of the storage."""

    def __init__(self, tensor: Tensor, region: _Region) -> None:
        self._tensor, self._region = tensor, region

    def storage(self, is_untyped: bool) -> bytes:
        """Returns the reference to the storage."""
        tensor, region = self._tensor, self._region
        size = 1 if is_untyped else tensor.dtype.itemsize
        kind = _name("torch.storage", "UntypedStorage") if is_untyped else _name("torch", _STORAGE_OF[tensor.dtype.name])
        return b"(" + _text("storage") + kind + _text(str(region.number)) + _text(region.location()) + _whole(region.size() // size) + b"tQ"

    def bytes(self) -> bytes:
        tensor, region = self._tensor, self._region
        storage = self.storage(region.is_untyped)
        offset = 0 if 0 in tensor.shape else (_yoke._storage_offset(tensor) - region.begin) // tensor.dtype.itemsize
        view = storage + _whole(offset) + _wholes(tensor.shape) + _wholes(tensor.strides) + (b"\x88" if tensor.requires_grad else b"\x89") + _NO_HOOKS
        if region.is_untyped:
            return _name("torch._utils", "_rebuild_tensor_v3") + b"(" + view + _name("torch", _DTYPE_OF[tensor.dtype.name]) + b"tR"
        return _name("torch._utils", "_rebuild_tensor_v2") + b"(" + view + b"tR"


class _StoragePart(_Part):
    """Bytes of a storage in the pickle."""

    def __init__(self, flat: Tensor, region: _Region, is_untyped: bool) -> None:
        super().__init__(flat, region)
        self._is_untyped = is_untyped

    def bytes(self) -> bytes:
        if self._region.is_untyped and not self._is_untyped:
            raise _yoke.ValueError("save(): argument 'obj' has a typed storage and tensors of other dtypes over the same memory; give x.untyped_storage() in place of x.storage()")
        return self.storage(self._is_untyped)


class _Pickle:
    """Pickle of a state in protocol 2, with instructions of PyTorch's reader for weights_only=True."""

    def __init__(self) -> None:
        self.regions: list[_Region] = []
        self._by_storage: dict[Any, _Region] = {}
        self._pieces: list[bytes | _Part] = [b"\x80\2"]
        self._memo: dict[Any, int] = {}  # by id; strings by content
        self._alive: list[Any] = []  # else an id would be used again
        self._path: list[str] = []
        self._within: set[int] = set()  # ids of the containers around the present value

    def run(self, state: Any) -> bytes:
        """Returns the pickle; fills `regions`."""
        self._put(state)
        return b"".join([piece if isinstance(piece, bytes) else piece.bytes() for piece in self._pieces]) + b"."

    def _add(self, *pieces: bytes) -> None:
        self._pieces += pieces

    def _remember(self, key: Any) -> None:
        number = self._memo[key] = len(self._memo)
        self._add(struct.pack("<cB", b"q", number) if number < 256 else struct.pack("<cI", b"r", number))

    def _known(self, key: Any) -> bool:
        """Returns whether the pickle has the value already; if so, adds a reference."""
        number = self._memo.get(key)
        if number is not None:
            self._add(struct.pack("<cB", b"h", number) if number < 256 else struct.pack("<cI", b"j", number))
        return number is not None

    def _put(self, value: Any) -> None:
        put = self._PUT.get(type(value)) or self._of_other_type(value)
        is_container = type(value) in (list, tuple, dict, OrderedDict, defaultdict, Namespace)
        if is_container:
            if id(value) in self._within:
                raise self._too_deep()
            self._within.add(id(value))
        put(self, value)
        if is_container:
            self._within.discard(id(value))

    def _of_other_type(self, value: Any) -> Callable[[Any, Any], None]:
        numpy = sys.modules.get("numpy")
        if isinstance(value, Tensor):
            return _Pickle._put_tensor
        if isinstance(value, int) and type(value).__module__ == "yoke._yoke":  # x.numel
            return lambda self, count: self._add(_whole(int(count)))
        if isinstance(value, tuple) and type(value).__name__ == "Size":
            return _Pickle._put_size
        if type(value).__module__ == "yoke.compat.torch.storages":
            return _Pickle._put_storage
        if isinstance(value, _yoke.dtype):
            return lambda self, dtype: self._add(_name("torch", _DTYPE_OF[dtype.name]))
        if isinstance(value, _yoke.Device) or type(value).__name__ == "device":
            return _Pickle._put_device
        if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biufc":
            return lambda self, number: self._put(number.item())
        if numpy is not None and type(value) is numpy.ndarray and value.dtype.kind in "biufc":
            return _Pickle._put_array
        raise self._wrong(value)

    def _too_deep(self) -> Exception:
        place = ".".join(self._path[:8]) + "…" * (len(self._path) > 8)
        return _yoke.ValueError(f"save(): the value at '{place}' is deeper than {MOST_LEVELS} levels of containers, or contains itself; save a tree")

    def _wrong(self, value: Any) -> Exception:
        place = f"the value at '{'.'.join(self._path)}'" if self._path else "argument 'obj'"
        remedy = "save its state_dict() in place of the object" if hasattr(value, "state_dict") else \
            "save dict(x), list(x) or tuple(x)" if isinstance(value, (dict, list, tuple)) else "save its values: tensors, numbers, strings, lists, tuples, dicts and sets"
        return _yoke.TypeError(f"save(): {place} is {shown(value)}, a {type(value).__module__}.{type(value).__qualname__}, which PyTorch does not load with weights_only=True; {remedy}")

    # ---- Plain values ------------------------------------------------------------------------------------------------

    def _put_whole(self, value: int) -> None:
        if value.bit_length() > 2000:
            raise _yoke.ValueError(f"save(): the value at '{'.'.join(self._path)}' is a number of {value.bit_length()} bits; at most 2000 bits can be saved")
        self._add(_whole(value))

    def _put_text(self, value: str) -> None:
        if not self._known(value):
            self._add(_text(value))
            self._remember(value)

    def _put_encoded(self, value: bytes | bytearray) -> None:
        function = _name("_codecs", "encode") if type(value) is bytes else _name("__builtin__", "bytearray")
        self._add(function, _text(value.decode("latin1")), _text("latin-1" if type(value) is bytearray else "latin1"), b"\x86R")

    def _put_size(self, value: tuple[int, ...]) -> None:
        self._add(_name("torch", "Size"), _wholes(value), b"\x85R")

    def _put_device(self, value: Any) -> None:
        kind, _, index = str(value).partition(":")
        self._add(_name("torch", "device"), _text(kind), _whole(int(index)) + b"\x86R" if index else b"\x85R")

    # ---- Containers --------------------------------------------------------------------------------------------------

    def _inside(self, name: Any, value: Any) -> None:
        """Writes a value in a container."""
        self._path.append(str(name)[:80])
        if len(self._path) > MOST_LEVELS:
            raise self._too_deep()
        self._put(value)
        self._path.pop()

    def _begun(self, value: Any, begin: bytes) -> bool:
        """Returns whether the members of a container must follow: the pickle has no such container yet."""
        if self._known(id(value)):
            return False
        self._alive.append(value)
        self._add(begin)
        self._remember(id(value))
        return True

    def _put_list(self, value: list[Any]) -> None:
        if self._begun(value, b"]") and value:
            self._add(b"(")
            for i, each in enumerate(value):
                self._inside(i, each)
            self._add(b"e")

    def _put_tuple(self, value: tuple[Any, ...]) -> None:
        if not value:
            self._add(b")")
        elif not self._known(id(value)):
            self._alive.append(value)
            self._add(b"(")
            for i, each in enumerate(value):
                self._inside(i, each)
            self._add(b"t")
            self._remember(id(value))

    def _put_dict(self, value: dict[Any, Any]) -> None:
        if self._begun(value, b"}" if type(value) is dict else _name("collections", type(value).__name__) + b")R"):
            self._put_items(value)
            if type(value) is OrderedDict and vars(value):
                self._inside("", vars(value))
                self._add(b"b")

    def _put_defaultdict(self, value: defaultdict[Any, Any]) -> None:
        factory = value.default_factory
        if factory not in (None, list, dict, int, float, str, set):
            raise self._wrong(value)
        made = b"N" if factory is None else _name("__builtin__", factory.__name__)
        if self._begun(value, _name("collections", "defaultdict") + made + b"\x85R"):
            self._put_items(value)

    def _put_namespace(self, value: Namespace) -> None:
        if self._begun(value, _name("argparse", "Namespace") + b")\x81"):
            self._add(b"}")
            self._put_items(vars(value))
            self._add(b"b")

    def _put_items(self, value: dict[Any, Any]) -> None:
        if value:
            self._add(b"(")
            for key, each in value.items():
                self._check_key(key)
                self._inside(key, key)
                self._inside(key, each)
            self._add(b"u")

    def _check_key(self, key: Any) -> None:
        try:
            key_of(key.item() if type(key).__module__ == "numpy" else int(key) if isinstance(key, int) else key)
        except _yoke.ValueError as error:
            place = ".".join([*self._path, str(key)[:80]])
            raise _yoke.ValueError(f"save(): the value at '{place}' cannot be read again: {error}") from None

    def _put_set(self, value: set[Any]) -> None:
        if not self._known(id(value)):
            self._alive.append(value)
            self._add(_name("__builtin__", "set"), b"](")
            for each in value:
                self._check_key(each)
                self._inside("{}", each)
            self._add(b"e\x85R")
            self._remember(id(value))

    # ---- Tensors and arrays ------------------------------------------------------------------------------------------

    def _put_tensor(self, value: Tensor) -> None:
        if self._known(id(value)):
            return
        self._alive.append(value)
        state = {name: each for name, each in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
        if "Parameter" in (kind.__name__ for kind in type(value).__mro__):
            self._add(_name("torch._utils", "_rebuild_parameter_with_state" if state else "_rebuild_parameter"), b"(")
            self._put_data(value.detach())
            self._add(b"\x88" if value.requires_grad else b"\x89", _NO_HOOKS)
            if state:
                self._inside("__dict__", state)
            self._add(b"tR")
        else:
            self._put_data(value)
        self._remember(id(value))

    def _put_storage(self, value: Any) -> None:
        if not self._known(id(value)):
            self._alive.append(value)
            is_untyped = type(value).__name__ == "UntypedStorage"
            flat: Tensor = value._elements._flat if is_untyped else value._flat
            self._pieces.append(_StoragePart(flat, self._region_of(flat), is_untyped))
            self._remember(id(value))

    def _put_data(self, tensor: Tensor) -> None:
        if any(stride < 0 for stride in tensor.strides):  # PyTorch has no such views
            tensor = tensor.contiguous()
        self._pieces.append(_Part(tensor, self._region_of(tensor)))

    def _region_of(self, tensor: Tensor) -> _Region:
        self._alive.append(tensor)
        region = self._by_storage.get(tensor.storage_id()) if tensor.storage_nbytes() else None
        if region is None:
            region = _Region(len(self.regions), tensor)
            self.regions.append(region)
            self._by_storage[tensor.storage_id()] = region
        else:
            region.add(tensor)
        return region

    def _put_array(self, value: Any) -> None:
        dtype, by_columns = value.dtype.newbyteorder("<"), value.flags.fnc
        data = value.astype(dtype).tobytes("F" if by_columns else "C")
        self._add(_name("numpy.core.multiarray", "_reconstruct"), _name("numpy", "ndarray"), b"K\0\x85")
        self._put_encoded(b"b")
        self._add(b"\x87R(K\1", _wholes(value.shape), _name("numpy", "dtype"), _text(f"{dtype.kind}{dtype.itemsize}"), b"\x89\x88\x87R(K\3", _text("<"))
        self._add(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb", b"\x88" if by_columns else b"\x89")
        self._put_encoded(data)
        self._add(b"tb")

    _PUT: dict[type, Callable[[Any, Any], None]] = {
        type(None): lambda self, _: self._add(b"N"), bool: lambda self, value: self._add(b"\x88" if value else b"\x89"), int: _put_whole,
        float: lambda self, value: self._add(struct.pack(">cd", b"G", value)), str: _put_text, bytes: _put_encoded, bytearray: _put_encoded,
        complex: lambda self, value: self._add(_name("__builtin__", "complex"), struct.pack(">cdcd", b"G", value.real, b"G", value.imag), b"\x86R"),
        list: _put_list, tuple: _put_tuple, dict: _put_dict, OrderedDict: _put_dict, set: _put_set, Counter: _put_dict,
        defaultdict: _put_defaultdict, Namespace: _put_namespace}


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


_NO_HOOKS = _name("collections", "OrderedDict") + b")R"


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    if len(data) > 0xFFFFFFFF:
        raise _yoke.ValueError(f"save(): a string has {len(data)} bytes; at most {0xFFFFFFFF} bytes can be saved")
    return struct.pack("<cI", b"X", len(data)) + data


def _whole(value: int) -> bytes:
    if 0 <= value < 256:
        return struct.pack("<cB", b"K", value)
    if -2**31 <= value < 2**31:
        return struct.pack("<ci", b"J", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return struct.pack("<BB", 0x8A, len(data)) + data


def _wholes(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(_whole, values)) + b"t"
