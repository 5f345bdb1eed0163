"""The op table from the C API, and tensors from and to NumPy in every dtype and layout.

The op tests read all facts about an op here. A new line in core/ops/ops.def is a new op in every test, and op_cases.py must have
samples for it.
"""
import ctypes
import dataclasses
import re

import numpy as np

import yoke


class _Arg(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("count", ctypes.c_int32), ("value", ctypes.c_int64)]


class _OpArg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("has_default", ctypes.c_int32),
                ("by_name", ctypes.c_int32), ("default_value", _Arg)]


class _Op(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("id", ctypes.c_int32), ("name", ctypes.c_char_p),
                ("signature", ctypes.c_char_p), ("doc", ctypes.c_char_p), ("family", ctypes.c_char_p),
                ("args", ctypes.POINTER(_OpArg)), ("arg_count", ctypes.c_int32), ("result_count", ctypes.c_int32),
                ("mut_arg", ctypes.c_int32), ("reserved", ctypes.c_int32)]


@dataclasses.dataclass(frozen=True)
class Op:
    name: str
    family: str
    arg_names: tuple
    arg_types: tuple
    results: str  # text behind the arrow
    mut_arg: int
    places: int  # how many arguments a script may give by place

    @property
    def differentiable(self):
        """Returns whether a gradient flows through the op to its floating tensors."""
        return re.match(r"tensor\b(?! or)", self.results) is not None or self.mut_arg >= 0

    @property
    def function(self):
        return getattr(yoke, self.name)

    def tensor_places(self):
        return [i for i, t in enumerate(self.arg_types) if t.rstrip("?") in ("tensor", "mut", "operand", "tensors")]


def _read_ops():
    library = ctypes.CDLL("libyoke.so.0")
    library.yoke_op_info.restype = ctypes.POINTER(_Op)
    ops = {}
    for i in range(library.yoke_op_count()):
        op = library.yoke_op_info(i).contents
        args = [op.args[k] for k in range(op.arg_count)]
        name = op.name.decode()
        ops[name] = Op(name, op.family.decode(), tuple(a.name.decode() for a in args),
                       tuple(a.type.decode() for a in args), re.split(r"\) -> ", op.signature.decode())[1], op.mut_arg,
                       sum(not a.by_name for a in args))
    return ops


OPS = _read_ops()

# ---- dtypes ----------------------------------------------------------------------------------------------------------

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTS = ("int64", "int32", "int8", "uint8")
ALL = FLOATS + INTS + ("bool",)
NUMBERS = FLOATS + INTS
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# NumPy's dtype for each dtype; bfloat16 travels as the float32 with the same value.
NUMPY = {name: np.dtype("float32" if name == "bfloat16" else name) for name in ALL}


def dtype_of(name):
    return getattr(yoke, name)


def name_of(dtype):
    """The name of a dtype of Yoke."""
    return next(name for name in ALL if dtype_of(name) == dtype)


def round_bfloat16(array):
    """float32 values rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    single = np.ascontiguousarray(array, dtype=np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(single), single, rounded).reshape(np.shape(array))


def as_dtype(array, name):
    """Returns sample values as the dtype holds them. Integers get twice the values, rounded; bool gets the signs."""
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return array  # indices stay unchanged
    if name == "bool":
        return array > 0
    if name in INTS:
        whole = np.rint(array * 2)
        return (np.abs(whole) if name == "uint8" else whole).astype(name)
    return round_bfloat16(array) if name == "bfloat16" else array.astype(name)


def widened(array):
    """Without loss in float64, or int64 for integers: what references compute in."""
    return array.astype(np.float64 if array.dtype.kind == "f" else np.bool_ if array.dtype == bool else np.int64)


def to_yoke(array, name=None, requires_grad=False):
    """A tensor of a NumPy array; `name` is bfloat16, or the array's own dtype."""
    x = yoke.tensor(np.array(array), dtype=dtype_of(name) if name else None)
    return x.requires_grad_(True) if requires_grad else x


def to_numpy(x):
    """A copy of any tensor; bfloat16 as float32."""
    x = x.detach()
    return np.array((x.to(dtype=yoke.float32) if x.dtype == yoke.bfloat16 else x).numpy())


# ---- layouts ---------------------------------------------------------------------------------------------------------


def contiguous(x):
    return x


def transposed(x):
    return x if x.ndim < 2 else yoke.transpose(yoke.clone(yoke.transpose(x, 0, -1)), 0, -1)


def strided(x):
    """Every second element of a wider tensor whose other elements are not x's."""
    if x.ndim == 0:
        return yoke.reshape(yoke.slice(yoke.cat([yoke.reshape(x, (1,))] * 3), 0, 1, 2), ())
    wide = yoke.reshape(yoke.cat([yoke.unsqueeze(x, -1), yoke.zeros_like(yoke.unsqueeze(x, -1))], -1),
                        (*x.shape[:-1], 2 * x.shape[-1]))
    return yoke.slice(wide, -1, None, None, 2)


def backwards(x):
    """Negative strides along every axis."""
    for axis in range(x.ndim):
        x = yoke.slice(x, axis, None, None, -1)
    y = yoke.clone(x)
    for axis in range(x.ndim):
        y = yoke.slice(y, axis, None, None, -1)
    return y


def offset(x):
    """Places a tensor in the middle of a larger tensor, rows apart."""
    for axis in range(x.ndim):
        edge = yoke.ones_like(yoke.slice(x, axis, 0, 1))
        x = yoke.slice(yoke.cat([edge, x, edge], axis), axis, edge.shape[axis], edge.shape[axis] + x.shape[axis])
    return x


LAYOUTS = {f.__name__: f for f in (contiguous, transposed, strided, backwards, offset)}
