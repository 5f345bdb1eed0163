"""Operands of instructions: words of 32 bits as integers, floats by their bits."""
import functools
import math
import re
import struct

WORD = 0xFFFFFFFF


def float_of(bits):
    return struct.unpack("<f", struct.pack("<I", bits & WORD))[0]


def narrowed(value, form):
    """Returns the bytes of a float of struct's form "f" or "e"; a value out of range is infinite."""
    try:
        return struct.pack("<" + form, value)
    except OverflowError:
        return struct.pack("<" + form, math.copysign(math.inf, value))


def bits_of(value):
    return int.from_bytes(narrowed(value, "f"), "little")


def double_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0]


def bits_of_double(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def half_of(bits):
    return struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]


def bits_of_half(value):
    return int.from_bytes(narrowed(value, "e"), "little")


def bfloat_of(bits):
    return float_of((bits & 0xFFFF) << 16)


def bits_of_bfloat(value):
    bits = bits_of(value)
    return bits >> 16 if math.isnan(value) else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def signed(word, bits=32):
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> (bits - 1) else word


NUMBERS = {"+INF": math.inf, "-INF": -math.inf, "INF": math.inf, "+QNAN": math.nan, "-QNAN": math.nan, "QNAN": math.nan}
REGISTER = re.compile(r"^([-~!]*)\|?(U?R(\d+)|U?RZ)\b((?:\.\w+)*)\|?")
CONSTANT = re.compile(r"^([-~!]*)\|?c\[(0x[0-9a-f]+|\w+)\]\[([^\]]*)\]((?:\.\w+)*)\|?")
INTEGER = re.compile(r"^-?(0x[0-9a-f]+|\d+)$")


class Operand:
    """Operand of an instruction's text, parsed once."""

    def __init__(self, text):
        self.text = text = text.replace("desc[UR4]", "desc")
        self.negated = self.inverted = self.absolute = False
        self.register = self.bank = self.number = None
        self.uniform, self.parts = False, []
        register, constant = REGISTER.match(text), CONSTANT.match(text)
        if register:
            self._signs(register[1], text)
            self.uniform = "U" in register[2]
            self.register = int(register[3]) if register[3] else -1
            self.parts = [part for part in register[4].split(".") if part]
        elif constant:
            self._signs(constant[1], text)
            self.bank, self.at = int(constant[2], 16), constant[3]
            self.parts = [part for part in constant[4].split(".") if part]
        elif INTEGER.match(text):
            self.number = int(text, 0)
        else:
            word = text.strip().upper()
            try:
                self.number = NUMBERS[word] if word in NUMBERS else float(word)
            except ValueError:
                pass

    def _signs(self, signs, text):
        self.negated, self.inverted = "-" in signs, "~" in signs or "!" in signs
        self.absolute = "|" in text

    @property
    def is_float(self):
        return isinstance(self.number, float)


operand_of = functools.cache(Operand)  # a loop meets the same texts again and again
