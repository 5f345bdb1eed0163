"""Reads core/base/dtypes.def, with the grammar in its first lines, and writes the code and pages about dtypes: C, C++, Python, Lua,
docs.
"""

import re
from dataclasses import dataclass

from gen import words
from gen.errors import TableError

COLUMNS = "number constant | name short | class | use type, in type | rank | digits | NumPy | DLPack | safetensors | oneDNN | text"
CLASSES = {"float": "kFloat", "signed": "kInteger", "unsigned": "kInteger", "bool": "kBool"}
HEIGHT = {"bool": 0, "unsigned": 1, "signed": 1, "float": 2}  # in promotion, above ranks
# The type codes of DLPack 1.1 that core/tensor/dlpack.h names.
DLPACK = ("Int", "UInt", "Float", "Bfloat", "Bool", "Float8_e3m4", "Float8_e4m3", "Float8_e4m3b11fnuz", "Float8_e4m3fn",
          "Float8_e4m3fnuz", "Float8_e5m2", "Float8_e5m2fnuz", "Float8_e8m0fnu")
NUMPY = {"float": "f", "signed": "i", "unsigned": "u", "bool": "b"}
LETTERS = {"f8": "d", "f4": "f", "f2": "e", "i8": "l", "i4": "i", "i2": "h", "i1": "b", "u4": "I", "u2": "H", "u1": "B", "b1": "?"}


@dataclass
class Dtype:
    number: int
    constant: str
    name: str
    short: str
    kind: str  # float, signed, unsigned, bool
    bits: int
    exponent: int  # number of bits, as for the fraction; 0 unless a float
    fraction: int
    finite: bool  # has no infinity
    stored: bool  # kept, moved and cast alone
    type: str  # element type in kernels
    computed_in: str
    rank: int
    digits: int
    numpy: str  # "" where there is none, as below
    dlpack: str
    safetensors: str
    onednn: str
    text: str

    @property
    def macro(self):
        return "YOKE_" + self.constant

    @property
    def integral(self):
        return self.kind in ("signed", "unsigned")

    @property
    def made(self):
        """Returns whether the C++ type is generated from the class."""
        return self.kind == "float" and self.bits <= 8

    @property
    def order(self):
        return HEIGHT[self.kind], self.rank


def need(text, pattern, column, allowed):
    match = re.fullmatch(pattern, text)
    if not match:
        raise TableError(f"{column} '{text}' is not {allowed}")
    return match


def parse_class(text):
    """Parses 'float 4 3 finite' -> (kind, bits, exponent, fraction, finite)."""
    match = need(text, r"(float) ([1-9]\d*) ([1-9]\d*)( finite)?|(signed|unsigned|bool) ([1-9]\d*)", "class",
                 "'float <bits of the exponent> <of the fraction> [finite]', 'signed <bits>', 'unsigned <bits>' or 'bool <bits>'")
    if match[1]:
        exponent, fraction = int(match[2]), int(match[3])
        kind, bits, finite = "float", 1 + exponent + fraction, bool(match[4])
        if exponent > 8 and (exponent, fraction) != (11, 52):
            raise TableError(f"class '{text}' has a wider exponent than float32, through which floats are cast")
    else:
        kind, bits, exponent, fraction, finite = match[5], int(match[6]), 0, 0, False
    if bits not in (8, 16, 32, 64):
        raise TableError(f"class '{text}' has {bits} bits; an element has 8, 16, 32 or 64")
    if (kind, bits) == ("unsigned", 64):
        raise TableError("class 'unsigned 64' holds numbers that int64 does not, through which integers are read")
    if kind == "bool" and bits != 8:
        raise TableError(f"class '{text}': bool has 8 bits")
    return kind, bits, exponent, fraction, finite


def parse_word(text, column):
    return "" if text == "-" else need(text, r"[A-Za-z][A-Za-z0-9_]*", column, "a word, or '-' for none")[0]


def parse_numpy(text, kind, bits):
    if text == "-":
        return ""
    if text != f"{NUMPY[kind]}{bits // 8}" or text not in LETTERS:
        raise TableError(f"NumPy '{text}' is neither '-' nor what it calls the class: '{NUMPY[kind]}{bits // 8}'")
    return text


def parse_dtype(line):
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 11:
        raise TableError(f"not written as '{COLUMNS}'")
    number, constant = need(parts[0], r"([1-9]\d*) ([A-Z][A-Z0-9_]*)", "number and constant", "written as '12 F8_E3M4'").groups()
    name, short = need(parts[1], r"([a-z][a-z0-9_]*) ([a-z][a-z0-9_]*)", "name and short", "written as 'float32 f32'").groups()
    for word in {name, short} - {"bool"}:
        words.check(word, "name")
    kind, bits, exponent, fraction, finite = parse_class(parts[2])
    use, held, computed = need(parts[3], r"(computed|stored) (\w+), in (\w+)", "use", "written as 'computed f16, in float' or 'stored ...'").groups()
    rank = int(need(parts[4], r"[1-9]\d*", "rank", "a number from 1")[0])
    digits = need(parts[5], r"[1-9]\d*" if kind == "float" else "-", "digits", "a number for a float, '-' for all others")[0]
    dlpack = parse_word(parts[7], "DLPack")
    if dlpack and dlpack not in DLPACK:
        raise TableError(f"DLPack '{dlpack}' is no type code; known: {', '.join(DLPACK)}")
    if not parts[10]:
        raise TableError("the line of text is missing")
    return Dtype(int(number), constant, name, short, kind, bits, exponent, fraction, finite, use == "stored", held, computed, rank,
                 int(digits) if kind == "float" else 0, parse_numpy(parts[6], kind, bits), dlpack, parse_word(parts[8], "safetensors"),
                 parse_word(parts[9], "oneDNN"), parts[10])


def check_new(dtype, before):
    """Raises unless numbers count up, and no two dtypes share a name."""
    if dtype.number != len(before) + 1:
        raise TableError(f"number {dtype.number}, where {len(before) + 1} is next: numbers are fixed, and new ones come last")
    for other in before:
        for column in ("constant", "name", "short", "type"):
            if getattr(dtype, column) == getattr(other, column):
                raise TableError(f"{column} '{getattr(dtype, column)}' is that of dtype {other.number}, '{other.name}', too")
        if {dtype.name, dtype.short} & {other.name, other.short}:
            raise TableError(f"a name of '{dtype.name}' is that of dtype {other.number}, '{other.name}', too")


def promote(a, b, dtypes):
    """Returns the dtype of the result of two dtypes."""
    lower, higher = sorted((a, b), key=lambda d: d.order)
    loses_sign = (lower.kind, higher.kind) == ("signed", "unsigned")  # no unsigned dtype has place for negative numbers
    if a is b or a.order != b.order and not loses_sign:
        return higher
    above = sorted({d.order for d in dtypes if HEIGHT[d.kind] == HEIGHT[a.kind] and d.rank > higher.rank})
    for order in above:
        alone = [d for d in dtypes if d.order == order and not d.stored]
        if len(alone) == 1:
            return alone[0]
    why = "have one rank" if a.order == b.order else f"become no '{higher.name}', which has no negative numbers"
    raise TableError(f"'{a.name}' and '{b.name}' {why}, and no rank above has one computed dtype alone that both could become")


def parse(text, path):
    dtypes, lines = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            dtype = parse_dtype(line)
            check_new(dtype, dtypes)
            dtypes.append(dtype)
            lines[dtype.name] = number
        except TableError as error:
            raise TableError(f"{path}:{number}: {error}") from None
    for a in dtypes:
        for b in dtypes:
            try:
                promote(a, b, dtypes)
            except TableError as error:
                raise TableError(f"{path}:{max(lines[a.name], lines[b.name])}: {error}") from None
    return dtypes


# ---- output ------------------------------------------------------------------------------------------------------


def macro(name, lines, comment=""):
    """Returns a macro of several lines."""
    head = ([f"/* {comment} */"] if comment else []) + [f"#define {name}"]
    return " \\\n    ".join(["\n".join(head), *lines]) + "\n"


def public_header(dtypes):
    out = ["#ifndef YOKE_DTYPES_H", "#define YOKE_DTYPES_H", "", "#include <stdint.h>", "",
           "/* Element types: fixed numbers, never reused. */", "typedef int32_t yoke_dtype;", "", '#define YOKE_NONE 0 /* "no dtype given" */']
    out += [f"#define {d.macro} {d.number} /* {d.text} */" for d in dtypes]
    out += [f"#define YOKE_DTYPE_COUNT {len(dtypes) + 1} /* one more than the largest number above; grows with them */", "", "#endif"]
    return "\n".join(out) + "\n"


def core_tables(dtypes):
    flag = lambda value: "true" if value else "false"
    text_or_null = lambda text: f'"{text}"' if text else "nullptr"
    infos = ['{"none", "none", "YOKE_NONE", DtypeClass::kNone, 0, 0, 0, false, false, nullptr},']
    infos += [f'{{"{d.name}", "{d.short}", "{d.macro}", DtypeClass::{CLASSES[d.kind]}, {d.bits // 8}, {d.exponent}, {d.fraction}, {flag(d.finite)}, {flag(d.kind == "signed")}, {text_or_null(d.safetensors)}}},' for d in dtypes]
    rows = ["{},"]
    for a in dtypes:
        row = ", ".join(str(promote(a, b, dtypes).number) for b in dtypes)
        rows.append(f"{{0, {row}}}, /* {a.name} */")
    dlpack = [f"ROW({d.macro}, {d.dlpack}, {d.bits})" for d in dtypes if d.dlpack]
    return "\n".join([macro("YOKE_DTYPE_INFOS", infos, "The fields of DtypeInfo, in the order of the numbers."),
                      macro("YOKE_DTYPE_PROMOTION", rows, "Row and column in the order of the numbers."),
                      macro("YOKE_DTYPES_OF_DLPACK(ROW)", dlpack, "Number, type code, bits.")])


def kernel_tables(dtypes):
    cases = lambda chosen: [f"CASE({d.macro}, {d.type})" for d in dtypes if chosen(d)]
    floats = lambda d: d.kind == "float"
    names = ['"none",'] + [f'"{d.name}",' for d in dtypes]
    made = [f"MAKE({d.type}, {d.exponent}, {d.fraction}, {'true' if d.finite else 'false'})" for d in dtypes if d.made]
    wider = [f"ROW({d.type}, {d.computed_in})" for d in dtypes if d.type != d.computed_in and not d.made]
    onednn = [f"CASE({d.macro}, dnnl_{d.onednn})" for d in dtypes if d.onednn]
    return "\n".join([
        macro("YOKE_FLOAT_TYPES(CASE)", cases(lambda d: floats(d) and not d.stored), "Types in which kernels compute: numbers and types."),
        macro("YOKE_INTEGER_TYPES(CASE)", cases(lambda d: d.integral and not d.stored)),
        macro("YOKE_BOOL_TYPES(CASE)", cases(lambda d: d.kind == "bool" and not d.stored)),
        macro("YOKE_STORED_FLOAT_TYPES(CASE)", cases(lambda d: floats(d) and d.stored), "Types that are only stored and cast."),
        macro("YOKE_STORED_INTEGER_TYPES(CASE)", cases(lambda d: d.integral and d.stored)),
        macro("YOKE_NARROW_TYPES(CASE)", cases(lambda d: floats(d) and d.bits < 32), "Floats narrower than the float in which they are computed."),
        macro("YOKE_MADE_TYPES(MAKE)", made, "Floats of 8 bits: type, bits of the exponent, of the fraction, whether it is finite."),
        macro("YOKE_COMPUTE_TYPES(ROW)", wider, "Types that are computed in another."),
        macro("YOKE_ONEDNN_TYPES(CASE)", onednn, "Types that oneDNN multiplies."),
        macro("YOKE_DTYPE_NAMES", names)])


def python_table(dtypes):
    letter = lambda d: f'"{LETTERS[d.numpy]}"' if d.numpy else "nullptr"
    typestr = lambda d: f'"{"<" if d.bits > 8 else "|"}{d.numpy}"' if d.numpy else "nullptr"
    rows = [f"ROW({d.macro}, '{NUMPY[d.kind]}', {d.bits}, {d.exponent}, {d.fraction}, {'true' if d.finite else 'false'}, {letter(d)}, {typestr(d)})"
            for d in dtypes]
    native = [f"CASE({d.macro}, {d.type})" for d in dtypes if d.integral or (d.kind == "float" and d.bits >= 32)]
    return "\n".join([macro("YOKE_PY_DTYPES(ROW)", rows, "Number; 'f' float, 'i' signed, 'u' unsigned, 'b' truth; bits; of a float's exponent, of its fraction, whether it is finite; the buffer protocol's letter, the array interface's type."),
                      macro("YOKE_PY_NATIVE_DTYPES(CASE)", native, "Types that C has.")])


def python_stub(dtypes):
    return "\n".join(["from yoke._yoke import dtype", "", *(f"{d.name}: dtype" for d in dtypes)]) + "\n"


def python_facts(dtypes):
    return "\n".join(['"""Facts about dtypes, by their names, for Python code."""', "", "IN_NUMPY = {",
                      *(f'    "{d.name}",' for d in dtypes if d.numpy), "}"]) + "\n"


def lua_table(dtypes):
    rows = [f"ROW({d.macro}, {d.bits}, {int(d.kind == 'signed')})" for d in dtypes if d.integral]
    return macro("YL_INTEGER_DTYPES(ROW)", rows, "Number, bits, whether it is signed.")


def lua_facts(dtypes):
    out = ["---The name of a dtype: yoke.float32 is \"float32\".", "---@alias yoke.dtype " + "|".join(f'"{d.name}"' for d in dtypes) + "|string", "",
           "---@class yoke", *(f"---@field {d.name} yoke.dtype" for d in dtypes), "",
           "-- Significant digits that tell the values of a dtype apart.", "return {", "    digits = {",
           *(f"        {d.name} = {d.digits}," for d in dtypes if d.digits), "    },", "}"]
    return "\n".join(out) + "\n"


def reference(dtypes):
    dash = lambda text: text or "-"
    out = ["# Dtypes", "", "For those who choose a dtype: the sizes, and which ops take the dtype. An op takes every dtype marked `computed` whose class the op",
           "supports. The dtypes marked `stored` can only be kept, moved, cast and read, and multiplied by `scaled_mm`.",
           "The rows come from `core/base/dtypes.def`; docs/adding-a-dtype.md says how to add a dtype.", "",
           "| name | short | C | bytes | class | use | NumPy | DLPack | safetensors | what it is |", "|---|---|---|---|---|---|---|---|---|---|"]
    for d in dtypes:
        kind = f"float, {d.exponent} bits of exponent, {d.fraction} of fraction" if d.kind == "float" else d.kind
        out.append(f"| {d.name} | {d.short} | {d.macro} ({d.number}) | {d.bits // 8} | {kind} | {'stored' if d.stored else 'computed'} | {dash(d.numpy)} | {dash(d.dlpack)} | {dash(d.safetensors)} | {d.text} |")
    out += ["", "## Promotion", "", "The table has the dtype of the result for two tensors. A number of a script is weak: the result has the tensor's dtype, unless the number is of a higher kind.", "",
            "| | " + " | ".join(d.short for d in dtypes) + " |", "|---" * (len(dtypes) + 1) + "|"]
    out += [f"| **{a.short}** | " + " | ".join(promote(a, b, dtypes).short for b in dtypes) + " |" for a in dtypes]
    return "\n".join(out) + "\n"


def files(dtypes):
    """Returns {path: text} of all files generated from the table."""
    return {
        "capi/include/yoke/dtypes.h": public_header(dtypes),
        "core/base/dtypes.inc": core_tables(dtypes),
        "kernels/common/dtypes.inc": kernel_tables(dtypes),
        "bindings/python/src/values/dtypes.inc": python_table(dtypes),
        "bindings/python/yoke/_dtype_names.pyi": python_stub(dtypes),
        "bindings/python/yoke/_dtypes.py": python_facts(dtypes),
        "bindings/lua/src/dtypes.inc": lua_table(dtypes),
        "bindings/lua/yoke/dtypes.lua": lua_facts(dtypes),
        "docs/dtypes.md": reference(dtypes),
    }
