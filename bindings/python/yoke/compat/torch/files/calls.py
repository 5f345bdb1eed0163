"""Functions and classes for the calls of PyTorch's files, by name. Any other name is an error."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from yoke import _yoke
from yoke.compat.torch.files import tensors
from yoke.compat.torch.files.arrays import NumPyArray, NumPyType, numpy_scalar, numpy_type
from yoke.compat.torch.files.tensors import Kind, Refused, Storage

ALLOWED = "tensors, Parameters, storages, dtypes, torch.Size, torch.device, OrderedDict, Counter, dict, list, tuple, set, str, bytes, bytearray, numbers, bool, None, and NumPy's numbers and arrays"
TRUSTED = ("argparse.Namespace", "collections.defaultdict")  # with weights_only=False alone, as in PyTorch
PLAIN = (str, int, float, bool, type(None), bytes)  # types of keys and of members of sets


class Call(NamedTuple):
    """Allowed call of a file. `make` takes a function to count copied members, and the arguments."""

    path: str
    make: Callable[[Callable[[int], None], tuple[Any, ...]], Any]


def key_of(key: Any) -> Any:
    """Returns a key of a dict or a member of a set, which is a plain value or a tuple of plain values."""
    flat = key if type(key) is tuple and len(key) <= 64 else (key,)
    if not all(type(each) in PLAIN or isinstance(each, (_yoke.dtype, _yoke.Device)) for each in flat):
        raise _yoke.ValueError(f"a dict or set has a key of type {type(key).__name__}; keys are strings, numbers and tuples of these")
    # Many longer whole numbers, and complex numbers, may have the same hash: a dict of these keys would take hours.
    if any(type(each) is int and not -2**63 <= each < 2**64 for each in flat):
        raise _yoke.ValueError("a dict or set has a key of more than 64 bits; keys are strings, numbers of 64 bits and tuples of these")
    return key


def set_attributes(target: Any, state: Any) -> None:
    """Sets attributes; refuses a name of the type's own attributes."""
    if type(state) is not dict:
        raise _yoke.ValueError(f"the attributes of a {type(target).__name__} are no dict")
    for name, value in state.items():
        if type(name) is not str or not name.isidentifier() or name.startswith("__") or hasattr(type(target), name):
            raise _yoke.ValueError(f"the attribute {str(name)[:40]!r} of a {type(target).__name__} is not allowed")
        vars(target)[name] = value


def refused_global(path: str) -> str:
    """Returns the text for a name off the list."""
    told = f"the file names the global '{path}', which is not allowed; nothing of it was executed. Allowed are {ALLOWED}"
    if path in TRUSTED:
        return told + ". With weights_only=False the file can be read"
    if path.startswith(("torch.nn.", "__main__.", "torch.optim.")):
        return told + ". This is a whole module, or another object: in PyTorch save its state_dict() in place of the object"
    return told + ". In PyTorch, if you trust the file, load it with weights_only=False, and save its tensors and containers anew"


def _fit(path: str, given: tuple[Any, ...], *types: Any, more: int = 0) -> tuple[Any, ...]:
    """Returns the arguments, of exactly these types, and after these at most `more` of any type."""
    count = len(types)
    right = count <= len(given) <= count + more and all(type(each) is kind or kind is object for each, kind in zip(given, types))
    if not right:
        raise _yoke.ValueError(f"the call of {path} has the arguments ({', '.join(type(each).__name__ for each in given[:9])}); it takes ({', '.join(kind.__name__ for kind in types)})")
    return given


# ---- Containers and numbers ------------------------------------------------------------------------------------------


def _ordered_dict(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    pairs, = _fit("OrderedDict", given, list) if given else ([],)
    count(len(pairs))
    if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
        raise _yoke.ValueError("an OrderedDict is made of something else than pairs")
    return OrderedDict((key_of(key), value) for key, value in pairs)


def _counter(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    counts, = _fit("Counter", given, dict) if given else ({},)
    count(len(counts))
    found: Counter[Any] = Counter()
    dict.update(found, counts)
    return found


_FACTORIES: dict[str, Any] = {f"builtins.{kind.__name__}": kind for kind in (list, dict, int, float, str)}


def _defaultdict(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    factory = given[0] if given else None
    path = factory.path if isinstance(factory, Call) else ""
    if len(given) > 1 or factory is not None and path not in _FACTORIES and path != "builtins.set":
        raise _yoke.ValueError(f"a defaultdict is made by something else than {', '.join(_FACTORIES)} or builtins.set")
    return defaultdict(None if factory is None else _FACTORIES.get(path, set))


def _namespace(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    _fit("argparse.Namespace", given)
    return Namespace()


def _set(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    members, = _fit("set", given, list) if given else ([],)
    count(len(members))
    return set(map(key_of, members))


def _encoded(count: Callable[[int], None], given: tuple[Any, ...]) -> bytes:
    text, name = _fit("encode", given, str, str)
    count(len(text))
    if name not in ("latin1", "latin-1"):
        raise _yoke.ValueError(f"the call of encode has the encoding {name[:40]!r}; it takes 'latin1'")
    return bytes(text.encode("latin1"))


def _bytes(count: Callable[[int], None], given: tuple[Any, ...]) -> bytes:
    _fit("bytes", given)
    return b""


def _bytearray(count: Callable[[int], None], given: tuple[Any, ...]) -> bytearray:
    if len(given) == 2:
        return bytearray(_encoded(count, given))
    data, = _fit("bytearray", given, bytes) if given else (b"",)
    count(len(data))
    return bytearray(data)


def _complex(count: Callable[[int], None], given: tuple[Any, ...]) -> complex:
    return complex(*_fit("complex", given, float, float))


def _size(count: Callable[[int], None], given: tuple[Any, ...]) -> tuple[int, ...]:
    sizes, = _fit("torch.Size", given, tuple)
    if len(sizes) > 64 or any(type(size) is not int for size in sizes):
        raise _yoke.ValueError("a torch.Size has something else than at most 64 whole numbers")
    torch = tensors.installed()
    return torch.Size(sizes) if torch else sizes  # type: ignore[no-any-return]


def _device(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    kind, *index = _fit("torch.device", given, str, *[int] * (len(given) == 2))
    return tensors.device_of(":".join(map(str, [kind[:40], *index])))


# ---- Tensors ---------------------------------------------------------------------------------------------------------


def _check_hooks(hooks: Any, metadata: Any = None) -> None:
    if hooks or metadata and (type(metadata) is not dict or any(metadata.values())):
        raise _yoke.ValueError("a tensor has hooks, or is a conjugate or negative view; save x.detach().resolve_conj().resolve_neg()")


def _tensor(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    storage, offset, shape, strides = _fit("_rebuild_tensor", given, Storage, int, tuple, tuple)
    return tensors.rebuilt(storage, storage.kind, offset, shape, strides, False)


def _tensor_v2(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    storage, offset, shape, strides, requires_grad, *hooks = _fit("_rebuild_tensor_v2", given, Storage, int, tuple, tuple, bool, object, more=1)
    _check_hooks(*hooks)
    return tensors.rebuilt(storage, storage.kind, offset, shape, strides, requires_grad)


def _tensor_v3(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    storage, offset, shape, strides, requires_grad, hooks, dtype, *metadata = _fit("_rebuild_tensor_v3", given, Storage, int, tuple, tuple, bool, object, object, more=1)
    _check_hooks(hooks, *metadata)
    if isinstance(dtype, Refused):
        return Refused(dtype.reason.replace("is the dtype ", "is a tensor of ") + f"; {tensors.REMEDY}")
    if not isinstance(dtype, _yoke.dtype):
        raise _yoke.ValueError("a tensor has something else than a dtype as its dtype")
    return tensors.rebuilt(storage, Kind(dtype.name, dtype, dtype.itemsize), offset, shape, strides, requires_grad)


def _parameter(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    data, requires_grad, *hooks = _fit("_rebuild_parameter", given, object, bool, more=1)
    _check_hooks(*hooks) if hooks else None
    return _as_parameter(data, requires_grad)


def _as_parameter(data: Any, requires_grad: bool) -> Any:
    from yoke.nn import Parameter

    if isinstance(data, Refused):
        return data
    if not isinstance(data, _yoke.Tensor) or requires_grad and not data.dtype.is_floating_point:
        raise _yoke.ValueError("a Parameter is made of something else than a floating tensor")
    return Parameter(data, requires_grad)


def _parameter_with_state(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    data, requires_grad, hooks, state = _fit("_rebuild_parameter_with_state", given, object, bool, object, dict)
    _check_hooks(hooks)
    return _with_state(count, _as_parameter(data, requires_grad), state)


def _with_state(count: Callable[[int], None], tensor: Any, state: Any) -> Any:
    if isinstance(tensor, Refused) or not state:
        return tensor
    if not hasattr(tensor, "__dict__"):
        return Refused(f"is a tensor with the attributes {', '.join(map(str, state))[:200]}, but only a Parameter can have attributes; save the attributes beside the tensor")
    count(len(state))
    set_attributes(tensor, state)
    return tensor


def _from_type(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    function, kind, arguments, state = _fit("_rebuild_from_type_v2", given, Call, Call, tuple, object)
    if function.make not in (_tensor, _tensor_v2, _tensor_v3, _parameter) or kind.make not in (_no_call, _parameter):
        raise _yoke.ValueError("a tensor is made by something else than PyTorch's own functions")
    tensor = function.make(count, arguments)
    return _with_state(count, tensor, state if type(state) is dict else None)


def _no_call(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    raise _yoke.ValueError("the file calls a class that only names a type")


def _array(count: Callable[[int], None], given: tuple[Any, ...]) -> NumPyArray:
    _fit("numpy._reconstruct", given, Call, tuple, bytes)
    return NumPyArray()


def _numpy_scalar(count: Callable[[int], None], given: tuple[Any, ...]) -> Any:
    return numpy_scalar(*_fit("numpy.scalar", given, NumPyType, bytes))


def _numpy_dtype(count: Callable[[int], None], given: tuple[Any, ...]) -> NumPyType:
    return numpy_type(_fit("numpy.dtype", given, str, more=2)[0])


_CALLS = {
    "collections.OrderedDict": _ordered_dict, "collections.Counter": _counter, "builtins.set": _set, "builtins.bytes": _bytes, "builtins.bytearray": _bytearray,
    "collections.defaultdict": _defaultdict, "argparse.Namespace": _namespace, "builtins.complex": _complex, "_codecs.encode": _encoded, "torch.Size": _size, "torch.device": _device, "torch.Tensor": _no_call,
    "torch._utils._rebuild_tensor": _tensor, "torch._utils._rebuild_tensor_v2": _tensor_v2, "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter, "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
    "torch.nn.parameter.Parameter": _parameter, "torch._tensor._rebuild_from_type_v2": _from_type,
    "numpy.ndarray": _no_call, "numpy.dtype": _numpy_dtype, "numpy.core.multiarray._reconstruct": _array, "numpy._core.multiarray._reconstruct": _array,
    "numpy.core.multiarray.scalar": _numpy_scalar, "numpy._core.multiarray.scalar": _numpy_scalar,
}


@lru_cache(maxsize=1)
def allowed() -> dict[str, Any]:
    """Returns the allowed names of a file: calls, classes of storages, dtypes."""
    found: dict[str, Any] = {path: Call(path, make) for path, make in {**dict.fromkeys(_FACTORIES, _no_call), **_CALLS}.items()}
    found.update(tensors.kinds())
    found.update({f"torch.{name}": tensors.dtype_of(name) for name in (*tensors.DTYPES, *tensors.OTHER_DTYPES)})
    return found
