"""Meaning of instructions on floats: KNOWN maps opcodes to functions."""
import math

from operands import COMPARISONS, LONG, apart, combine, is_predicate
from values import (WORD, bits_of, bits_of_bfloat, bits_of_double, bits_of_half, bfloat_of, double_of, float_of, half_of, operand_of,
                    signed)


def real(thread, operand):
    """Returns the value of an operand as a float."""
    value = operand.number if operand.is_float else float(operand.number) if operand.number is not None else float_of(thread.raw(operand))
    value = abs(value) if operand.absolute else value
    return -value if operand.negated and operand.number is None else value


def long_real(thread, operand):
    value = operand.number if operand.is_float else float(operand.number) if operand.number is not None else None
    if value is None:
        value = double_of(thread.raw_pair(operand))
        value = abs(value) if operand.absolute else value
        value = -value if operand.negated else value
    return value


def rounded(value):
    return float_of(bits_of(value))


def product(a, b):
    return a * b if not (math.isinf(a) and b == 0 or math.isinf(b) and a == 0) else math.nan


def total(a, b):
    return math.nan if math.isinf(a) and math.isinf(b) and a != b else a + b


def float_sum(thread, instruction):
    _, to, (a, b), _ = apart(instruction)
    thread.set(to, bits_of(total(real(thread, a), real(thread, b))))


def float_product(thread, instruction):
    _, to, (a, b), _ = apart(instruction)
    thread.set(to, bits_of(product(real(thread, a), real(thread, b))))


def float_fma(thread, instruction):
    _, to, (a, b, c), _ = apart(instruction)
    value = total(product(real(thread, a), real(thread, b)), real(thread, c))
    thread.set(to, bits_of(min(max(value, 0.0), 1.0) if "SAT" in instruction.modifiers else value))


def float_minmax(thread, instruction):
    """Computes the minimum or maximum of two values, or of three (FMNMX3)."""
    _, to, terms, read = apart(instruction)
    numbers = [value for value in (real(thread, one) for one in terms) if not math.isnan(value)]
    thread.set(to, bits_of((min if thread.predicate(read[0]) else max)(numbers, default=math.nan)))


def float_compare(thread, instruction):
    _compare(thread, instruction, real)


def double_compare(thread, instruction):
    _compare(thread, instruction, long_real)


def _compare(thread, instruction, value):
    written = instruction.operands[:2]
    a, b = (value(thread, operand_of(text)) for text in instruction.operands[2:] if not is_predicate(text))
    read = [text for text in instruction.operands[2:] if is_predicate(text)]
    names = instruction.modifiers
    unordered = math.isnan(a) or math.isnan(b)
    name = next(one for one in names if one.rstrip("U") in COMPARISONS or one in ("NAN", "NUM", "MIN", "MAX"))
    if name in ("NAN", "NUM"):
        result = unordered == (name == "NAN")
    elif name in ("MIN", "MAX"):
        result = a < b if name == "MIN" else a > b
    else:
        result = unordered and name.endswith("U") or not unordered and COMPARISONS[name.removesuffix("U")](a, b)
    thread.set_predicate(written[0], combine(thread, names, result, read))
    thread.set_predicate(written[1], combine(thread, names, not result, read))


def float_select(thread, instruction):
    _, to, (a, b), read = apart(instruction)
    chosen = a if thread.predicate(read[0]) else b
    thread.set(to, bits_of(real(thread, chosen)))


FUNCTIONS = {"RCP": lambda x: 1 / x if x else math.inf, "RSQ": lambda x: 1 / math.sqrt(x) if x > 0 else math.inf if x == 0 else math.nan,
             "SQRT": lambda x: math.sqrt(x) if x >= 0 else math.nan, "EX2": lambda x: 2.0 ** min(max(x, -200), 200),
             "LG2": lambda x: math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan, "SIN": math.sin, "COS": math.cos, "TANH": math.tanh}


def function(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    name = instruction.modifiers[0]
    if name.endswith("64H"):
        x = double_of(thread.word(a) << 32)
        return thread.set(to, bits_of_double(FUNCTIONS[name[:3]](x)) >> 32)
    x = real(thread, a)
    thread.set(to, bits_of(math.nan if math.isnan(x) else FUNCTIONS[name](x)))


def round_value(value, names):
    if math.isnan(value) or math.isinf(value):
        return value
    for name, how in (("FLOOR", math.floor), ("CEIL", math.ceil), ("TRUNC", math.trunc)):
        if name in names:
            return float(how(value))
    return float(round(value))


def float_round(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    if "F64" in instruction.modifiers:
        return thread.set(to, bits_of_double(round_value(long_real(thread, a), instruction.modifiers)), 2)
    thread.set(to, bits_of(round_value(real(thread, a), instruction.modifiers)))


def integer_to_float(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    names = instruction.modifiers
    wide = "S64" in names or "U64" in names
    value = thread.pair(a) if wide else thread.word(a)
    if not any(name in names for name in ("U32", "U64", "U16", "U8")):
        value = signed(value, 64 if wide else 32)
    if "F64" in names:
        return thread.set(to, bits_of_double(float(value)), 2)
    thread.set(to, bits_of(float(value)))


def float_to_integer(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    names = instruction.modifiers
    value = long_real(thread, a) if "F64" in names else real(thread, a)
    value = 0.0 if math.isnan(value) else min(max(value, -2.0 ** 63), 2.0 ** 64)
    whole = int(round_value(value, names))
    wide = "S64" in names or "U64" in names
    thread.set(to, whole & LONG if wide else whole & WORD, 2 if wide else 1)


def float_to_float(thread, instruction):
    _, to, terms, _ = apart(instruction)
    names = instruction.modifiers
    if names[:2] == ["F32", "F64"]:
        return thread.set(to, bits_of(long_real(thread, terms[-1])))
    if names[:2] == ["F64", "F32"]:
        return thread.set(to, bits_of_double(real(thread, terms[-1])), 2)
    if names and names[0] == "F16":
        return thread.set(to, bits_of_half(real(thread, terms[-1])))
    thread.set(to, bits_of(real(thread, terms[-1])))


def pack_halves(thread, instruction):
    _, to, terms, _ = apart(instruction)
    narrow = bits_of_bfloat if "BF16" in instruction.modifiers else bits_of_half
    high, low = (narrow(real(thread, one)) for one in terms[:2])
    thread.set(to, (high << 16 | low) & WORD)


def halves(thread, operand, narrow=half_of):
    """Returns the two values of an operand of a packed instruction."""
    if operand.number is not None:
        return [float(operand.number)] * 2
    word = thread.raw(operand)
    low, high = narrow(word), narrow(word >> 16)
    for part, chosen in (("H0_H0", (low, low)), ("H1_H1", (high, high)), ("H0", (low, low)), ("H1", (high, high)),
                         ("F32", (float_of(word),) * 2)):
        if part in operand.parts:
            low, high = chosen
    return [-(abs(x) if operand.absolute else x) if operand.negated else abs(x) if operand.absolute else x for x in (low, high)]


def packed(thread, instruction):
    """Computes HADD2, HMUL2 and HFMA2, of halves or of bfloat16."""
    _, to, terms, _ = apart(instruction)
    bfloat = "BF16" in instruction.modifiers or "BF16_V2" in instruction.modifiers
    narrow, widen = (bits_of_bfloat, bfloat_of) if bfloat else (bits_of_half, half_of)
    if instruction.opcode == "HFMA2" and len(terms) == 4:  # an immediate of two halves takes two operands
        low, high = [float(terms[3].number or 0)], [float(terms[2].number or 0)]
        return thread.set(to, narrow(high[0]) << 16 | narrow(low[0]))
    values = [halves(thread, one, widen) for one in terms]
    if instruction.opcode == "HADD2":
        result = [total(values[0][k], values[1][k]) for k in (0, 1)]
    elif instruction.opcode == "HMUL2":
        result = [product(values[0][k], values[1][k]) for k in (0, 1)]
    else:
        result = [total(product(values[0][k], values[1][k]), values[2][k]) for k in (0, 1)]
    if "F32" in instruction.modifiers:
        return thread.set(to, bits_of(result[0]))
    thread.set(to, narrow(result[1]) << 16 | narrow(result[0]))


def double_sum(thread, instruction):
    _, to, (a, b), _ = apart(instruction)
    thread.set(to, bits_of_double(total(long_real(thread, a), long_real(thread, b))), 2)


def double_product(thread, instruction):
    _, to, (a, b), _ = apart(instruction)
    thread.set(to, bits_of_double(product(long_real(thread, a), long_real(thread, b))), 2)


def double_fma(thread, instruction):
    _, to, (a, b, c), _ = apart(instruction)
    thread.set(to, bits_of_double(total(product(long_real(thread, a), long_real(thread, b)), long_real(thread, c))), 2)


def matrix_product(thread, instruction):
    """Leaves the sums unchanged, because no branch depends on products."""
    to, sums = operand_of(instruction.operands[0]), operand_of(instruction.operands[3])
    for k in range(4):
        thread.registers[to.register + k] = 0 if sums.register < 0 else thread.registers[sums.register + k]


def division_check(thread, instruction):
    thread.set_predicate(instruction.operands[0], False)  # operands are never so small or large that the slow path is needed


KNOWN = {
    "FADD": float_sum, "FMUL": float_product, "FFMA": float_fma, "FMNMX": float_minmax, "FMNMX3": float_minmax, "FSETP": float_compare,
    "DSETP": double_compare, "FSEL": float_select, "MUFU": function, "FRND": float_round, "I2F": integer_to_float,
    "I2FP": integer_to_float, "UI2F": integer_to_float, "UI2FP": integer_to_float, "F2I": float_to_integer,
    "UF2I": float_to_integer, "F2F": float_to_float, "F2FP": pack_halves, "HADD2": packed, "HMUL2": packed, "HFMA2": packed,
    "DADD": double_sum, "DMUL": double_product, "DFMA": double_fma, "HMMA": matrix_product, "FCHK": division_check,
    "UFADD": float_sum, "UFMUL": float_product, "UFFMA": float_fma, "UFMNMX": float_minmax, "UFSETP": float_compare, "UFSEL": float_select,
    "UFRND": float_round,
}
