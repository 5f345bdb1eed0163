"""Types of an op's arguments, for ops.def, the core, the C API, both bindings, stubs and docs.

A new type is an entry here, and the functions in the entry: `convert` in capi/src/args.h, `getter` and `pack` in core/ops/args.h,
and for a new kind a converter in each binding. C and C++ read the table as generated .inc files.
"""

from dataclasses import dataclass

# Pattern of a default, and its name in errors.
NONE = ("none", "none")
INT = (r"-?\d+", "a whole number")
DECIMAL = (r"-?\d+\.\d+", "a number with a point")
NUMBER = (r"-?\d+(\.\d+)?(e-?\d+)?", "a number")


def or_none(default):
    return f"none|{default[0]}", f"none or {default[1]}"


@dataclass(frozen=True)
class ArgType:
    name: str  # spelling in ops.def; "?" allows absence
    kind: str  # kind of the script's value; types of the same kind share a converter
    takes: str  # kinds of yoke_arg for the type; a default has the first, or is a FLOAT if written as a float
    wanted: str  # in an error of the C API: "it takes ..."
    lua_wanted: str  # text in an error of Lua
    param: str  # parameter of C functions
    convert: str  # how capi/src/args.h turns that into a yoke_arg
    value: str  # in the core
    getter: str  # member of Args
    caller: str  # the parameter of a caller in C++
    pack: str  # how core/ops/args.h turns that into a yoke_arg
    python: str
    lua: str
    default: tuple | None = None
    absent: str = "std::nullopt"  # the caller's parameter where the default is none
    setter: tuple | None = None  # member of Args, and its parameter
    takes_number: bool = True  # true if a script may give a number
    written: bool = False

    @property
    def kinds(self):
        return self.takes.split()

    @property
    def optional(self):
        """Returns whether the argument may be absent, without a default too."""
        return self.name.endswith("?")

    @property
    def takes_none(self):
        """Returns whether None is a value of the type."""
        return "NONE" in self.kinds

    @property
    def tensor(self):
        """Returns whether the type is one or several tensors."""
        return bool({"TENSOR", "TENSORS"} & set(self.kinds))

    @property
    def is_list(self):
        """Returns whether the type is, in C, a pointer and a length with the pointer's name."""
        return "{0}_count" in self.param

    @property
    def enumerator(self):
        stem = {"str": "string"}.get(self.name, self.name.rstrip("?"))
        return "k" + ("Optional" if self.optional else "") + stem.capitalize()


ALL = (
    ArgType("tensor", "tensor", "TENSOR", "a tensor", "a tensor", takes_number=False, python="Tensor", lua="yoke.Tensor",
            param="yoke_tensor *{}", convert="to_tensor({})", value="const yoke_tensor &", getter="tensor", setter=("set_tensor", "const yoke_tensor &"),
            caller="const yoke_tensor &", pack="arg_tensor({})"),
    ArgType("tensor?", "tensor", "TENSOR NONE", "a tensor or nothing", "a tensor or nil", default=NONE, absent="nullptr",
            takes_number=False, python="Tensor | None", lua="yoke.Tensor|nil",
            param="yoke_tensor *{}", convert="to_optional_tensor({})", value="const yoke_tensor *", getter="tensor_or_null",
            caller="const yoke_tensor *", pack="arg_optional_tensor({})"),
    # A tensor or a script scalar; all operands of a call are promoted together.
    ArgType("operand", "operand", "TENSOR INT FLOAT BOOL", "a tensor or a number", "a tensor or a number",
            python="Tensor | _Scalar", lua="yoke.Tensor|number",
            param="yoke_tensor *{}", convert="to_tensor({})", value="const yoke_arg &", getter="value",
            caller="const Operand &", pack="{}.arg()", default=DECIMAL),
    ArgType("mut", "tensor", "TENSOR", "a tensor", "a tensor", takes_number=False, written=True, python="Tensor",
            lua="yoke.Tensor", param="yoke_tensor *{}", convert="to_tensor({})", value="yoke_tensor &", getter="mut",
            caller="yoke_tensor &", pack="arg_tensor({})"),
    ArgType("tensors", "tensors", "TENSORS", "a list of tensors", "a list of tensors, {x, y}", takes_number=False,
            python="Sequence[Tensor]", lua="yoke.Tensor[]",
            param="yoke_tensor *const *{0}, int64_t {0}_count", convert="to_tensors({0}, {0}_count)", value="TensorList ",
            getter="tensors", caller="TensorList ", pack="arg_tensors({})"),
    ArgType("muts", "tensors", "TENSORS", "a list of tensors", "a list of tensors, {x, y}", takes_number=False, written=True,
            python="Sequence[Tensor]", lua="yoke.Tensor[]",
            param="yoke_tensor *const *{0}, int64_t {0}_count", convert="to_tensors({0}, {0}_count)", value="TensorList ",
            getter="tensors", caller="TensorList ", pack="arg_tensors({})"),
    ArgType("int", "int", "INT BOOL", "an int", "an integer", default=INT, python="int", lua="integer",
            param="int64_t {}", convert="to_int({})", value="int64_t ", getter="integer", setter=("set_integer", "int64_t "),
            caller="int64_t ", pack="arg_int({})"),
    ArgType("int?", "int", "INT NONE", "an int or nothing", "an integer or nil", default=or_none(INT), python="int | None",
            lua="integer|nil", param="const int64_t *{}", convert="to_optional_int({})", value="std::optional<int64_t> ",
            getter="optional_integer", setter=("set_integer", "int64_t "), caller="std::optional<int64_t> ",
            pack="{0} ? arg_int(*{0}) : arg_none()"),
    ArgType("ints", "ints", "INTS", "a list of ints", "an integer or a list of integers", python="int | Sequence[int]",
            lua="integer|integer[]", param="const int64_t *{0}, int64_t {0}_count", convert="to_ints({0}, {0}_count)",
            value="IntList ", getter="ints", setter=("set_ints", "IntList "), caller="IntList ", pack="arg_ints({})"),
    ArgType("ints?", "ints", "INTS NONE", "a list of ints or nothing", "an integer, a list of integers or nil", default=NONE,
            python="int | Sequence[int] | None", lua="integer|integer[]|nil",
            param="const int64_t *{0}, int64_t {0}_count", convert="to_optional_ints({0}, {0}_count)",
            value="std::optional<IntList> ", getter="optional_ints", setter=("set_ints", "IntList "), caller="std::optional<IntList> ",
            pack="{0} ? arg_ints(*{0}) : arg_none()"),
    # An op has a single list of this type at most, and only composed ops do: neither launches nor the tape copy the
    # list.
    ArgType("floats?", "floats", "FLOATS NONE", "a list of floats or nothing", "a number, a list of numbers or nil", default=NONE,
            python="float | Sequence[float] | None", lua="number|number[]|nil",
            param="const double *{0}, int64_t {0}_count", convert="to_optional_floats({0}, {0}_count)",
            value="std::optional<FloatList> ", getter="optional_floats", caller="std::optional<FloatList> ",
            pack="{0} ? arg_floats(*{0}) : arg_none()"),
    ArgType("float", "float", "FLOAT INT BOOL", "a number", "a number", default=NUMBER, python="float", lua="number",
            param="double {}", convert="to_float({})", value="double ", getter="real", caller="double ", pack="arg_float({})"),
    ArgType("bool", "bool", "BOOL INT", "a bool", "a boolean", default=("true|false", "true or false"), python="bool",
            lua="boolean", param="int32_t {}", convert="to_bool({})", value="bool ", getter="boolean", caller="bool ",
            pack="arg_bool({})"),
    ArgType("dtype", "dtype", "INT NONE", "a dtype", "the name of a dtype, such as yoke.float32", default=NONE,
            absent="YOKE_NONE", takes_number=False, python="DType | str | None", lua="yoke.dtype|nil",
            param="yoke_dtype {}", convert="to_int({})", value="yoke_dtype ", getter="dtype_of", setter=("set_dtype_of", "yoke_dtype "),
            caller="yoke_dtype ", pack="arg_int({})"),
    ArgType("scalar", "scalar", "INT FLOAT BOOL", "a number", "a number or a boolean", default=NUMBER, python="_Scalar",
            lua="number|boolean", param="const yoke_scalar *{}", convert="to_scalar({})", value="const yoke_arg &",
            getter="value", caller="const Operand &", pack="{}.arg()"),
    ArgType("scalar?", "scalar", "INT FLOAT BOOL NONE", "a number or nothing", "a number, a boolean or nil",
            default=or_none(NUMBER), python="_Scalar | None", lua="number|boolean|nil",
            param="const yoke_scalar *{}", convert="to_optional_scalar({})", value="const yoke_arg *", getter="value_or_null",
            caller="std::optional<Operand> ", pack="{0} ? {0}->arg() : arg_none()"),
    ArgType("str", "string", "STRING", "a string", "a string", default=(r'"[^"\\]*"', 'text in quotes without \\'),
            takes_number=False, python="str", lua="string", param="const char *{}", convert="to_string({})",
            value="std::string_view ", getter="string", caller="const char *", pack="arg_string({})"),
    ArgType("device", "device", "DEVICE NONE", "a device", 'a device, a spec such as "cpu", or an index', default=NONE,
            absent="nullptr", python="Device | str | int | None", lua="yoke.Device|string|integer|nil",
            param="yoke_device *{}", convert="to_device({})", value="Device *", getter="device_or_null", caller="Device *",
            pack="arg_device({})"),
    ArgType("generator?", "generator", "GENERATOR NONE", "a generator or nothing", "a yoke.Generator or nil", default=NONE,
            absent="nullptr", takes_number=False, python="Generator | None", lua="yoke.Generator|nil",
            param="yoke_generator *{}", convert="to_generator({})", value="yoke_generator *", getter="generator_or_null",
            caller="yoke_generator *", pack="arg_generator({})"),
)
TYPES = {one.name: one for one in ALL}


def quoted(text):
    return '"' + text.replace('"', '\\"') + '"'


def macro(name, rows):
    """Returns "#define NAME(X) X(row) X(row)…"."""
    return f"#define {name}(X) \\\n    " + " \\\n    ".join(f"X({', '.join(row)})" for row in rows)


def kind_enumerator(kind):
    return f"k{kind.capitalize()}"


def core_inc():
    """Returns the text of the file for core/ops/op_def.h."""
    bits = lambda one: " | ".join(f"1u << YOKE_ARG_{kind}" for kind in one.kinds)
    rows = [(one.enumerator, quoted(one.name), bits(one), str(one.written).lower(), quoted(one.wanted)) for one in ALL]
    head = "/* enumerator, name, the kinds of yoke_arg that hold it, whether it is written, what an error says it takes */"
    return f"{head}\n{macro('YOKE_FOR_EACH_ARG_TYPE', rows)}\n"


def lua_inc():
    """Returns the text of the file for bindings/lua/src/values."""
    flag = lambda value: str(int(value))
    rows = [(one.enumerator, quoted(one.name), f"to_{one.kind}", flag("TENSOR" in one.kinds), flag(one.optional),
             flag(one.takes_number), quoted(one.lua_wanted)) for one in ALL if not one.written]
    read = {(one.kind, one.optional): one.enumerator for one in ALL if not one.written}
    written = [(quoted(one.name), read[one.kind, one.optional]) for one in ALL if one.written]
    head = "/* enumerator, name, what converts to it, whether a tensor serves, nil, a number, what an error asks for */"
    alike = "/* What an op writes is, to a script, a tensor like any other: name, enumerator */"
    return f"{head}\n{macro('YL_FOR_EACH_ARG_TYPE', rows)}\n\n{alike}\n{macro('YL_FOR_EACH_WRITTEN_TYPE', written)}\n"


def python_inc():
    """Returns the text of the file for bindings/python/src/values."""
    first = {}
    for one in ALL:
        first.setdefault(one.kind, one)
    numbers = [(kind_enumerator(kind), str(one.takes_number).lower()) for kind, one in first.items()]
    rows = [(quoted(one.name), kind_enumerator(one.kind), str(one.takes_none).lower()) for one in ALL]
    return (f"/* enumerator, whether a number serves */\n{macro('YOKE_PY_FOR_EACH_ARG_KIND', numbers)}\n\n"
            f"/* name, its kind, whether None is a value */\n{macro('YOKE_PY_FOR_EACH_ARG_TYPE', rows)}\n")
