"""Words of PyTorch that choose nothing here: memory formats, layouts, threads, printing; and those of the library as a whole."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import yoke
from yoke import _yoke
from yoke._yoke import Tensor


class memory_format:
    """Order of axes in memory. Yoke chooses it: results of convolutions lie as channels_last, all others as contiguous_format."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(memory_format):
    """Kind of storage: torch.strided."""


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
strided = layout("strided")


def need_memory_format(call: str, value: Any) -> None:
    """Raises unless an argument is a memory format, or None. The order in memory changes no value."""
    if value is not None and not isinstance(value, memory_format):
        raise _yoke.TypeError(f"{call}(): argument 'memory_format' is {value!r}; it takes torch.contiguous_format, torch.preserve_format or torch.channels_last")


# ---- Numbers ---------------------------------------------------------------------------------------------------------

_FLOATS = {"float64": (64, 52, -1022, 1.7976931348623157e308), "float32": (32, 23, -126, 3.4028234663852886e38),
           "float16": (16, 10, -14, 65504.0), "bfloat16": (16, 7, -126, 3.3895313892515355e38),
           "float8_e4m3": (8, 3, -6, 448.0), "float8_e5m2": (8, 2, -14, 57344.0)}
_INTS = {"uint8": (8, 0), "int8": (8, 1), "int32": (32, 1), "int64": (64, 1)}


class finfo:
    """Limits of a floating dtype."""

    def __init__(self, type: Any = None) -> None:
        dtype = yoke.float32 if type is None else type
        if dtype.name not in _FLOATS:
            raise _yoke.TypeError(f"finfo(): argument 'type' is {dtype}; it takes a floating dtype, and iinfo() an integer dtype")
        self.bits, mantissa, low, self.max = _FLOATS[dtype.name]
        self.min, self.eps = -self.max, 2.0**-mantissa
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = 10.0 ** -int(mantissa * 0.30103)
        self.dtype = dtype.name

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type: Any) -> None:
        if type.name not in _INTS:
            raise _yoke.TypeError(f"iinfo(): argument 'type' is {type}; it takes an integer dtype, and finfo() a floating dtype")
        self.bits, sign = _INTS[type.name]
        self.max, self.min = 2 ** (self.bits - sign) - 1, -(2 ** (self.bits - 1)) * sign
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def is_floating_point(input: Tensor) -> bool:
    """Returns whether the dtype is floating."""
    return input.dtype.is_floating_point


def result_type(tensor1: Any, tensor2: Any) -> yoke.dtype:
    """Returns the dtype of tensor1 + tensor2."""
    x, y = (each[:0] if isinstance(each, Tensor) and each.ndim else each for each in (tensor1, tensor2))
    return yoke.add(x, y).dtype if isinstance(x, Tensor) or isinstance(y, Tensor) else yoke.tensor(x + y).dtype


def promote_types(type1: yoke.dtype, type2: yoke.dtype) -> yoke.dtype:
    """Returns the dtype of the sum of two tensors."""
    return yoke.add(yoke.zeros(0, dtype=type1), yoke.zeros(0, dtype=type2)).dtype


def can_cast(from_: yoke.dtype, to: yoke.dtype) -> bool:
    """Returns whether a value of a dtype may be written into another."""
    kinds = [0 if each is yoke.bool else 2 if each.is_floating_point else 1 for each in (from_, to)]
    return kinds[0] <= kinds[1]


# ---- The whole library -----------------------------------------------------------------------------------------------


def manual_seed(seed: int) -> Any:
    """Starts the random numbers at a seed."""
    seed = int(seed)
    _seeds[0] = seed
    yoke.manual_seed(seed % 2**64)
    return sys.modules["torch"].default_generator if "default_generator" in vars(sys.modules["torch"]) else default_generator


def seed() -> int:
    """Starts the random numbers at a number of the system, which it returns."""
    from secrets import randbits

    number = randbits(63)
    manual_seed(number)
    return number


def initial_seed() -> int:
    """Returns the last seed."""
    return _seeds[0]


_seeds = [0]


class _Default:
    """The random numbers of a thread, as torch.default_generator."""

    device = "cpu"

    manual_seed = staticmethod(manual_seed)
    seed = staticmethod(seed)
    initial_seed = staticmethod(initial_seed)

    @staticmethod
    def get_state() -> Tensor:
        """Returns torch.get_rng_state()."""
        return yoke.get_rng_state()

    @staticmethod
    def set_state(state: Tensor) -> None:
        """Calls torch.set_rng_state(state)."""
        yoke.set_rng_state(state)


default_generator = _Default()
_warned: list[str] = []


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: Any = None, backend: Any = "inductor", mode: Any = None, options: Any = None,
            disable: bool = False) -> Any:
    """Returns the module or function unchanged, and warns once: Yoke runs each op at once."""
    if not _warned:
        _warned.append("compile")
        warnings.warn("torch.compile: Yoke has no compiler, so the model runs as it is", UserWarning, stacklevel=2)
    return (lambda function: function) if model is None else model


def set_num_interop_threads(n: int) -> None:
    """Does nothing: ops run one after the other."""


def get_num_interop_threads() -> int:
    """Returns 1: ops run one after the other."""
    return 1


def set_flush_denormal(mode: bool) -> bool:
    """Returns False: the processor's mode stays as it is."""
    return False


def set_warn_always(b: bool) -> None:
    """Does nothing: Python's filters choose warnings."""


def set_default_dtype(d: Any) -> None:
    """Sets the dtype of new floating tensors."""
    _yoke._set_default_dtype(d)


def get_default_dtype() -> yoke.dtype:
    """Returns the dtype of new floating tensors."""
    return _yoke._get_default_dtype()


_TENSORS = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16"}


def set_default_tensor_type(t: Any) -> None:
    """Sets dtype and device of new tensors."""
    name = t if isinstance(t, str) else repr(t)
    kind = name.rpartition(".")[2]
    if kind not in _TENSORS:
        raise _yoke.ValueError(f"set_default_tensor_type(): argument 't' is {name}; it must be one of torch.{', torch.'.join(_TENSORS)}, or such a class of torch.cuda")
    from yoke.compat.torch import devices

    set_default_dtype(_TENSORS[kind])
    devices.set_default_device("cuda" if ".cuda." in name else None)


def typename(obj: Any) -> str:
    """Returns the type's name of a tensor or an object."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def dtype_repr(self: yoke.dtype) -> str:
    """repr() of a dtype: torch.float32."""
    return f"torch.{_DTYPES.get(self.name, self.name)}"


_DTYPES = {"float8_e4m3": "float8_e4m3fn"}


def reduction_of(size_average: Any, reduce: Any, reduction: str) -> str:
    """Returns the reduction of a loss. The arguments of PyTorch before 0.4 win, as in PyTorch: size_average=False sums, reduce=False keeps all."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def refused(call: str, **given: Any) -> None:
    """Raises for arguments of PyTorch that Yoke does not have, unless they have PyTorch's default: name=(value, default)."""
    for name, (value, default) in given.items():
        if value is not default and value != default:
            raise _yoke.UnsupportedError(f"torch: {call}(): argument '{name}' is {value!r}; Yoke does not have it: leave it out ({default!r})")
