"""Meaning of instructions on integers, predicates and constants: KNOWN maps opcodes to functions."""
import re

from operands import COMPARISONS, LONG, apart, combine, is_predicate
from values import WORD, operand_of, signed


def imad(thread, instruction):
    written, to, (a, b, c), read = apart(instruction)
    names = instruction.modifiers
    unsigned = "U32" in names
    x, y = thread.word(a), thread.word(b)
    if not unsigned and ("WIDE" in names or "HI" in names):
        x, y = signed(x), signed(y)
    if "WIDE" in names:
        total = (x * y & LONG) + thread.pair(c)
        thread.set(to, total & LONG, 2)
        carry = total >> 64
    elif "HI" in names:
        total = (x * y >> 32 & WORD) + thread.word(c)
        thread.set(to, total & WORD)
        carry = total >> 32
    else:
        carry_in = thread.predicate(read[0]) if "X" in names and read else 0
        total = x * y + thread.word(c) + carry_in
        thread.set(to, total & WORD)
        carry = total >> 32 & 1
    for name in written:
        thread.set_predicate(name, carry)


def term(thread, operand, extended):
    """Returns a word of a sum; a negated word brings the carry of its complement."""
    if operand.negated and not extended:
        plain = thread.word(operand) if operand.register is None and operand.bank is None else -thread.word(operand) & WORD
        return (plain ^ WORD) + 1
    return thread.word(operand)


def iadd3(thread, instruction):
    written, to, terms, read = apart(instruction)
    extended = "X" in instruction.modifiers
    if "64" in instruction.modifiers:
        total = sum(thread.pair(one) for one in terms)
        thread.set(to, total & LONG, 2)
        for k, name in enumerate(written):
            thread.set_predicate(name, total >> 64 > k)
        return
    total = sum(term(thread, one, extended) for one in terms)
    if extended:
        total += sum(thread.predicate(name) for name in read)
    thread.set(to, total & WORD)
    for k, name in enumerate(written):
        thread.set_predicate(name, total >> 32 > k)


def lea(thread, instruction):
    written, to, terms, read = apart(instruction)
    names = instruction.modifiers
    if "HI" in names:
        a, b = terms[0], terms[1]
        high = 0 if len(terms) < 4 else thread.word(terms[2])
        if "SX32" in names:
            high = WORD if thread.word(a) >> 31 else 0
        shift = terms[-1].number or 0
        value = ((high << 32 | thread.word(a)) << shift >> 32) & WORD
    else:
        a, b, shift = terms[0], terms[1], terms[2].number or 0
        value = thread.word(a) << shift & WORD
    carry_in = sum(thread.predicate(name) for name in read) if "X" in names else 0
    total = value + thread.word(b) + carry_in
    thread.set(to, total & WORD)
    for name in written:
        thread.set_predicate(name, total >> 32)


def shf(thread, instruction):
    _, to, (a, shift, c), _ = apart(instruction)
    names = instruction.modifiers
    wide = signed(thread.word(c)) << 32 | thread.word(a)
    by = thread.word(shift)
    by = by & (63 if "U64" in names or "S64" in names else 31) if "W" in names else min(by, 64)
    if "L" in names:
        value = (wide & LONG) << by
        value = value >> 32 if "HI" in names else (thread.word(a) << by)
    elif "HI" in names:
        source = signed(thread.word(c)) if "S32" in names or "S64" in names else thread.word(c)
        value = source >> by if thread.word(a) == 0 or by >= 32 else (wide if "S32" in names else wide & LONG) >> by
        if thread.word(a) and by < 32:
            value >>= 32
    else:
        value = (wide if "S64" in names or "S32" in names else wide & LONG) >> by
    thread.set(to, value & WORD)


def lop3(thread, instruction):
    written, to, terms, read = apart(instruction)
    table = terms[-1].number if terms[-1].number is not None else 0
    a, b, c = (thread.word(one) for one in terms[-4:-1])
    value = 0
    for k in range(8):
        if table >> k & 1:
            value |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    value &= WORD
    thread.set(to, value)
    for name in written:
        thread.set_predicate(name, value != 0 or any(thread.predicate(text) for text in read))


def plop3(thread, instruction):
    operands = instruction.operands
    inputs, table = operands[2:5], int(operands[5], 16)
    a, b, c = (int(thread.predicate(name)) for name in inputs)
    thread.set_predicate(operands[0], table >> (a << 2 | b << 1 | c) & 1)
    thread.set_predicate(operands[1], int(operands[6], 16) >> (a << 2 | b << 1 | c) & 1 if len(operands) > 6 else False)


def prmt(thread, instruction):
    _, to, (a, selector, c), _ = apart(instruction)
    source = thread.word(c) << 32 | thread.word(a)
    by, value = thread.word(selector), 0
    for k in range(4):
        nibble = by >> 4 * k & 15
        byte = source >> 8 * (nibble & 7) & 0xFF
        value |= (0xFF if byte >> 7 else 0 if nibble & 8 else byte) << 8 * k if nibble & 8 else byte << 8 * k
    thread.set(to, value)


def select(thread, instruction):
    _, to, (a, b), read = apart(instruction)
    if "64" in instruction.modifiers:
        return thread.set(to, thread.pair(a if thread.predicate(read[0]) else b), 2)
    thread.set(to, thread.word(a if thread.predicate(read[0]) else b))


def isetp(thread, instruction):
    written = instruction.operands[:2]
    a, b = (operand_of(text) for text in instruction.operands[2:] if not is_predicate(text))
    read = [text for text in instruction.operands[2:] if is_predicate(text)]
    names = instruction.modifiers
    compare = next(name for name in names if name in COMPARISONS)
    wide = "64" in names
    x, y = (thread.pair(a), thread.pair(b)) if wide else (thread.word(a), thread.word(b))
    if "U32" not in names and "U64" not in names:
        x, y = signed(x, 64 if wide else 32), signed(y, 64 if wide else 32)
    result = COMPARISONS[compare](x, y)
    if "EX" in names:
        below = thread.predicate(read[1])
        result = below if x == y else result if compare not in ("EQ", "NE") else compare == "NE"
    thread.set_predicate(written[0], combine(thread, names, result, read))
    thread.set_predicate(written[1], combine(thread, names, not result, read))


def minmax(thread, instruction):
    to, a, b = (operand_of(text) for text in instruction.operands if not is_predicate(text))
    read = [text for text in instruction.operands[3:] if is_predicate(text)]
    least = min if thread.predicate(read[0]) else max
    if "S64" in instruction.modifiers or "U64" in instruction.modifiers:
        x, y = thread.pair(a), thread.pair(b)
        chosen = least(x, y, key=lambda value: signed(value, 64) if "S64" in instruction.modifiers else value)
        return thread.set(to, chosen, 2)
    x, y = thread.word(a), thread.word(b)
    if "U32" not in instruction.modifiers:
        x, y = signed(x), signed(y)
    thread.set(to, least(x, y) & WORD)


def add_minmax(thread, instruction):
    _, to, (a, b, c), read = apart(instruction)
    x, y = thread.word(a) + thread.word(b) & WORD, thread.word(c)
    if "U32" not in instruction.modifiers:
        x, y = signed(x), signed(y)
    thread.set(to, (min if thread.predicate(read[0]) else max)(x, y) & WORD)


def move(thread, instruction):
    _, to, terms, _ = apart(instruction)
    thread.set(to, thread.pair(terms[0]) if "64" in instruction.modifiers else thread.word(terms[0]),
               2 if "64" in instruction.modifiers else 1)


def load_constant(thread, instruction):
    _, to, (source,), _ = apart(instruction)
    size = {"64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
    size = next((size[name] for name in instruction.modifiers if name in size), 4)
    value = thread.constant(source.bank, thread.offset(source.at.replace("RZ", "0x0")), size)
    if "S8" in instruction.modifiers and value >> 7:
        value |= 0xFFFFFF00
    thread.set(to, value, max(1, size // 4))


def special(thread, instruction):
    to = operand_of(instruction.operands[0])
    value = thread.special.get(instruction.operands[1], 0)
    thread.set(to, value, 2 if instruction.opcode == "CS2R" and "32" not in instruction.modifiers else 1)


def vote(thread, instruction):
    to = next((operand_of(text) for text in instruction.operands if re.match(r"U?R", text)), None)
    names = [text for text in instruction.operands if is_predicate(text)]
    value = thread.predicate(names[-1])
    if to is not None:
        thread.set(to, WORD if value else 0)
    if len(names) > 1:
        thread.set_predicate(names[0], value)


def first_bit(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    value = thread.word(a)
    if "U32" not in instruction.modifiers and value >> 31:
        value ^= WORD
    at = value.bit_length() - 1
    thread.set(to, (31 - at if "SH" in instruction.modifiers else at) & WORD)


def count_bits(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    thread.set(to, thread.word(a).bit_count())


def absolute(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    thread.set(to, abs(signed(thread.word(a))) & WORD)


def reverse(thread, instruction):
    _, to, (a,), _ = apart(instruction)
    thread.set(to, int(f"{thread.word(a):032b}"[::-1], 2))


def pack_predicates(thread, instruction):
    _, to, terms, _ = apart(instruction)
    value = sum(thread.predicates[f"P{k}"] << k for k in range(7))
    thread.set(to, value & thread.word(terms[-1]))


def unpack_predicates(thread, instruction):
    source, mask = operand_of(instruction.operands[1]), operand_of(instruction.operands[2])
    for k in range(7):
        if thread.word(mask) >> k & 1:
            thread.predicates[f"P{k}"] = bool(thread.word(source) >> k & 1)


def shuffle(thread, instruction):
    operands = instruction.operands
    thread.set_predicate(operands[0], True)
    thread.set(operand_of(operands[1]), thread.word(operand_of(operands[2])))


KNOWN = {
    "IMAD": imad, "UIMAD": imad, "IADD3": iadd3, "UIADD3": iadd3, "IADD": iadd3, "UIADD": iadd3, "VIADD": iadd3, "LEA": lea,
    "ULEA": lea, "SHF": shf, "USHF": shf, "LOP3": lop3, "ULOP3": lop3, "PLOP3": plop3, "UPLOP3": plop3, "PRMT": prmt,
    "UPRMT": prmt, "SEL": select, "USEL": select, "ISETP": isetp, "UISETP": isetp, "IMNMX": minmax, "VIMNMX": minmax, "UIMNMX": minmax,
    "UVIMNMX": minmax, "VIADDMNMX": add_minmax, "MOV": move, "UMOV": move, "LDC": load_constant, "ULDC": load_constant,
    "LDCU": load_constant, "S2R": special, "S2UR": special, "CS2R": special, "R2UR": move, "VOTE": vote, "VOTEU": vote,
    "FLO": first_bit, "UFLO": first_bit, "POPC": count_bits, "UPOPC": count_bits, "IABS": absolute, "BREV": reverse,
    "UBREV": reverse, "P2R": pack_predicates, "R2P": unpack_predicates, "SHFL": shuffle,
}
