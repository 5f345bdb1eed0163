"""Operands and results of instructions."""
import functools
import re

from values import bits_of, bits_of_double, operand_of

LONG = (1 << 64) - 1


def immediate(number):
    return bits_of(number)


def immediate_double(number):
    return bits_of_double(number)


def is_predicate(text):
    return bool(re.fullmatch(r"!?U?P[0-9T]", text))


def apart(instruction):
    """Returns (set predicates, set register, operands, read predicates)."""
    return apart_texts(tuple(instruction.operands))


@functools.cache
def apart_texts(texts):
    operands, written = list(texts), []
    first = next(k for k, text in enumerate(operands) if not is_predicate(text))  # a predicate may stand before it
    to = operand_of(operands.pop(first))
    while operands and is_predicate(operands[0]) and not operands[0].startswith("!"):
        written.append(operands.pop(0))
    read = []
    while operands and is_predicate(operands[-1]):
        read.insert(0, operands.pop())
    return tuple(written), to, tuple(operand_of(text) for text in operands if not is_predicate(text)), tuple(read)


COMPARISONS = {"LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
               "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b}


def combine(thread, names, result, read):
    """Returns the result combined with the preceding predicate: AND, OR or XOR."""
    other = thread.predicate(read[0]) if read else True
    return result and other if "AND" in names else result or other if "OR" in names else result != other
