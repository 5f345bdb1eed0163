"""PyTorch's words for new tensors and types: as_tensor, from_numpy, Tensor(…), LongTensor(…), x.type()."""

from __future__ import annotations

import sys
from typing import Any

from yoke import _yoke
from yoke._named import named
from yoke._yoke import Device, Tensor, dtype as DType

__all__ = ["BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor",
           "as_tensor", "from_numpy", "is_tensor", "numel"]


@named
def as_tensor(data: Any, dtype: DType | str | None = None, device: Device | str | int | None = None) -> Tensor:
    """Returns a tensor of `data`; without a copy if `data` is a tensor, or a NumPy array in host memory, that fits already.

    In all other cases the call is tensor(data, dtype, device).
    """
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device, dtype)
    if _is_array(data) and _fits(data, dtype, device):
        return _shared(data)
    return _yoke.tensor(data, dtype, device)


@named
def from_numpy(ndarray: Any) -> Tensor:
    """Returns a tensor over the memory of a NumPy array, without a copy: each sees the other's changes.

    TypeError for another object, and for a dtype that tensors do not have; ValueError for an array that cannot be written.
    """
    if not _is_array(ndarray):
        raise _yoke.TypeError(f"from_numpy(): argument 'ndarray' is a {type(ndarray).__name__}; it takes a NumPy array: write yoke.tensor(data)")
    if not ndarray.flags.writeable:
        raise _yoke.ValueError("from_numpy(): argument 'ndarray' cannot be written, but a tensor can; write yoke.tensor(ndarray), which copies")
    if not _has_dtype(ndarray):
        raise _yoke.TypeError(f"from_numpy(): argument 'ndarray' has dtype {ndarray.dtype}, which tensors do not support; write ndarray.astype(\"float32\")")
    return _shared(ndarray)


@named
def is_tensor(obj: Any) -> bool:
    """Returns whether an object is a tensor."""
    return isinstance(obj, Tensor)


@named
def numel(x: Tensor) -> int:
    """Returns the number of elements of a tensor."""
    return x.nelement()


def _is_array(data: Any) -> bool:
    numpy = sys.modules.get("numpy")  # if an array exists, the module is there
    return numpy is not None and isinstance(data, numpy.ndarray)


def _has_dtype(array: Any) -> bool:
    from yoke._dtypes import IN_NUMPY

    return array.dtype.name in IN_NUMPY and array.dtype.isnative


def _fits(array: Any, dtype: DType | str | None, device: Device | str | int | None) -> bool:
    where = _yoke.current_device() if device is None else _yoke.device(device)
    wanted = array.dtype.name if dtype is None else dtype.name if isinstance(dtype, DType) else _yoke.dtype(dtype).name
    return bool(where.kind == "cpu" and array.flags.writeable and _has_dtype(array) and wanted == array.dtype.name
                and all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides))


def _shared(array: Any) -> Tensor:
    if array.dtype.name != "bool":
        return _yoke.from_dlpack(array)
    bits = _yoke.from_dlpack(array.view("uint8"))  # older versions of NumPy do not export truth values
    return _yoke._view_storage(bits, _yoke.bool, bits.shape, bits.strides, _yoke._storage_offset(bits))


# ---- Types -----------------------------------------------------------------------------------------------------------


class _Type(type):
    """Class of FloatTensor and the like: an instance is a tensor of the dtype."""

    dtype: DType

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Device | str | int | None = None, **unknown: Any) -> Tensor:
        for name in unknown:
            raise _yoke.TypeError(f"{cls.__name__}(): {_yoke._unknown_keyword(name, ('device',), True)}: {cls.__name__}(*sizes_or_data, device=None)")
        return _made(cls.__name__, cls.dtype, args, device)

    def __repr__(cls) -> str:
        return f"yoke.{cls.__name__}"


def _type(name: str, dtype: DType) -> Any:
    doc = f"PyTorch's class of {dtype.name} tensors: {name}(2, 3) has the sizes 2 and 3, {name}([2, 3]) the elements 2 and 3."
    return _Type(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "yoke"})


FloatTensor = _type("FloatTensor", _yoke.float32)
DoubleTensor = _type("DoubleTensor", _yoke.float64)
HalfTensor = _type("HalfTensor", _yoke.float16)
BFloat16Tensor = _type("BFloat16Tensor", _yoke.bfloat16)
LongTensor = _type("LongTensor", _yoke.int64)
IntTensor = _type("IntTensor", _yoke.int32)
CharTensor = _type("CharTensor", _yoke.int8)
ByteTensor = _type("ByteTensor", _yoke.uint8)
BoolTensor = _type("BoolTensor", _yoke.bool)
_TYPES = (FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, CharTensor, ByteTensor, BoolTensor)


def make_float(*args: Any, **keywords: Any) -> Tensor:
    """Implements Tensor(…), which makes float32 tensors as FloatTensor does."""
    device = keywords.pop("device", None)
    if keywords:
        raise _yoke.TypeError(f"Tensor(): there is no argument '{next(iter(keywords))}'; write yoke.tensor(data, dtype, device, requires_grad)")
    return _made("Tensor", _yoke.float32, args, device)


def _made(call: str, dtype: DType, args: tuple[Any, ...], device: Device | str | int | None) -> Tensor:
    if len(args) == 1 and (isinstance(args[0], (list, tuple, Tensor)) or hasattr(args[0], "__len__") and not isinstance(args[0], (str, bytes))):
        return _yoke.tensor(args[0], dtype, device)
    for size in args:
        if isinstance(size, (bool, Tensor)) or not hasattr(size, "__index__") or hasattr(size, "__len__"):
            raise _yoke.TypeError(f"{call}(): a size is a {type(size).__name__}; give sizes as ints, or the elements in one list: {call}([…])")
    return _yoke.empty(tuple(args) if args else (0,), dtype=dtype, device=device)


def tensor_type(tensor: Tensor, dtype: Any) -> Any:
    """Implements x.type(dtype): a dtype, its name, or one of PyTorch's types, by name or class."""
    if dtype is None:
        name = next((each.__name__ for each in _TYPES if each.dtype is tensor.dtype), tensor.dtype.name)
        return f"yoke.{'' if tensor.device.kind == 'cpu' else tensor.device.kind + '.'}{name}"
    if isinstance(dtype, _Type):
        return tensor.to(dtype=dtype.dtype)
    if isinstance(dtype, str) and dtype.endswith("Tensor"):
        return _to_named(tensor, dtype)
    return tensor.to(dtype=dtype)


def _to_named(tensor: Tensor, name: str) -> Tensor:
    """Returns the tensor as the type of a name such as "torch.cuda.FloatTensor"."""
    *before, word = name.split(".")
    wanted = next((each for each in _TYPES if each.__name__ == word), None)
    if wanted is None or before not in ([], ["torch"], ["yoke"], ["torch", "cuda"], ["yoke", "cuda"]):
        raise _yoke.ValueError(f"type(): argument 'dtype' is '{name}'; it takes a dtype such as yoke.float32, or one of {', '.join(each.__name__ for each in _TYPES)}")
    moved = tensor.cuda() if before[1:] == ["cuda"] else tensor.cpu() if before else tensor
    return moved.to(dtype=wanted.dtype)
