"""core/base/dtypes.def: a wrong line is refused by file and line, and no file is written."""
import re

import pytest
from test_generator import contents, generate, tree  # noqa: F401: a fixture

COUNT = 11  # dtypes in the table
GOOD = "12 F8_E3M4 | float8_e3m4 e3m4 | float 3 4 | stored f8_e3m4, in float | 8 | 3 | - | Float8_e3m4 | - | - | small"

BAD = {
    "unwritten": ("12 F8", "not written as 'number constant | name short | class"),
    "a column too many": (GOOD + " | more", "not written as"),
    "number": (GOOD.replace("12 F8", "14 F8"), "number 14, where 12 is next"),
    "number of another": (GOOD.replace("12 F8", "3 F8"), "number 3, where 12 is next"),
    "constant in small letters": (GOOD.replace("12 F8_E3M4", "12 f8"), "written as '12 F8_E3M4'"),
    "constant of another": (GOOD.replace("F8_E3M4 |", "F8_E5M2 |", 1), "constant 'F8_E5M2' is that of dtype 11, 'float8_e5m2', too"),
    "name of another": (GOOD.replace("float8_e3m4 e3m4", "float32 e3m4"), "name 'float32' is that of dtype 2"),
    "short of another": (GOOD.replace("float8_e3m4 e3m4", "float8_e3m4 f32"), "short 'f32' is that of dtype 2"),
    "short that is a name": (GOOD.replace("float8_e3m4 e3m4", "float8_e3m4 float32"), "is that of dtype 2"),
    "no class": (GOOD.replace("float 3 4", ""), "class '' is not 'float <bits of the exponent>"),
    "unknown class": (GOOD.replace("float 3 4", "complex 64"), "class 'complex 64' is not 'float <bits of the exponent>"),
    "bits": (GOOD.replace("float 3 4", "float 3 3"), "has 7 bits; an element has 8, 16, 32 or 64"),
    "exponent": (GOOD.replace("float 3 4", "float 9 6"), "wider exponent than float32"),
    "integers that int64 does not hold": (GOOD.replace("float 3 4", "unsigned 64"), "unsigned 64"),
    "bool of two bytes": (GOOD.replace("float 3 4", "bool 16"), "bool has 8 bits"),
    "use": (GOOD.replace("stored f8", "kept f8"), "use 'kept f8_e3m4, in float' is not written as"),
    "type of another": (GOOD.replace("stored f8_e3m4", "stored bf16"), "type 'bf16' is that of dtype 4"),
    "rank": (GOOD.replace("| 8 | 3", "| high | 3"), "rank 'high' is not a number from 1"),
    "a rank without a dtype above": (GOOD.replace("| 8 | 3", "| 64 | 3"), "'float64' and 'float8_e3m4' have one rank"),
    "digits": (GOOD.replace("| 3 | -", "| - | -"), "digits '-' is not a number for a float"),
    "digits of an integer": (GOOD.replace("float 3 4", "signed 8"), "digits '3' is not a number for a float, '-' for all others"),
    "NumPy": (GOOD.replace("| - | Float8_e3m4", "| f4 | Float8_e3m4"), "NumPy 'f4' is neither '-' nor what it calls the class"),
    "DLPack": (GOOD.replace("| Float8_e3m4 |", "| Float9 |"), "DLPack 'Float9' is no type code; known: Int, UInt"),
    "safetensors": (GOOD.replace("| - | - | small", "| F8 E3 | - | small"), "safetensors 'F8 E3' is not a word"),
    "no text": (GOOD.removesuffix(" small"), "the line of text is missing"),
    "word of a language": (GOOD.replace("float8_e3m4 e3m4", "float8_e3m4 float"), "name 'float' is a word of C and C++"),
}


def add(tree, line):
    table = tree / "core" / "base" / "dtypes.def"
    table.write_text(table.read_text() + line + "\n")
    return len(table.read_text().splitlines())


@pytest.mark.parametrize("case", BAD)
def test_a_dtype_that_breaks_the_rules_is_refused_and_nothing_is_written(tree, case):  # noqa: F811
    line, reason = BAD[case]
    number = add(tree, line)
    before = contents(tree)
    done = generate(tree)
    assert done.returncode == 1
    assert f"core/base/dtypes.def:{number}: " in done.stderr and reason in done.stderr
    assert contents(tree) == before


def test_a_new_dtype_reaches_c_python_and_lua(tree):  # noqa: F811
    add(tree, GOOD)
    assert generate(tree).returncode == 0
    for path, text in {"capi/include/yoke/dtypes.h": "#define YOKE_F8_E3M4 12 ", "bindings/lua/yoke/dtypes.lua": "---@field float8_e3m4 ",
                       "bindings/python/yoke/_dtype_names.pyi": "float8_e3m4: dtype", "docs/dtypes.md": "| float8_e3m4 | e3m4 |",
                       "kernels/common/dtypes.inc": "CASE(YOKE_F8_E3M4, f8_e3m4)"}.items():
        assert text in (tree / path).read_text(), path
    assert f"#define YOKE_DTYPE_COUNT {COUNT + 2} " in (tree / "capi/include/yoke/dtypes.h").read_text()


def promotion(tree):  # noqa: F811
    """Returns {(name, name): name} of the table for C."""
    text = (tree / "core/base/dtypes.inc").read_text()
    names = re.findall(r'\{"(\w+)", "\w*", "\w*"', text)  # by number; "none" comes first and has no row
    rows = re.findall(r"\{([\d, ]+)\}", text.split("#define YOKE_DTYPE_PROMOTION")[1])
    return {(a, b): names[int(one)] for a, row in zip(names[1:], rows, strict=True)
            for b, one in zip(names, row.split(","), strict=True)}


def test_an_unsigned_dtype_takes_no_signed_one(tree):  # noqa: F811
    add(tree, "12 U16 | uint16 u16 | unsigned 16 | stored uint16_t, in uint16_t | 16 | - | u2 | UInt | U16 | - | 0 to 65535")
    assert generate(tree).returncode == 0
    found = promotion(tree)
    for other, wanted in {"int8": "int32", "uint8": "uint16", "bool": "uint16", "int32": "int32", "int64": "int64", "float16": "float16"}.items():
        assert found["uint16", other] == found[other, "uint16"] == wanted, other
    assert found["int8", "uint8"] == "int32" and found["int8", "int32"] == "int32"


def test_an_unsigned_dtype_that_nothing_above_takes_with_signed_ones_is_refused(tree):  # noqa: F811
    number = add(tree, "12 U32 | uint32 u32 | unsigned 32 | stored uint32_t, in uint32_t | 65 | - | u4 | UInt | U32 | - | 0 to 2^32 - 1")
    done = generate(tree)
    assert done.returncode == 1
    assert f"core/base/dtypes.def:{number}: " in done.stderr and "become no 'uint32', which has no negative numbers" in done.stderr
