"""Thread of a kernel, run instruction by instruction, and its issued instructions.

The thread takes the path of a launch: parameters come from a launch on the emulated device, so loops, dtypes and sizes are those
of the case. `memory` gives the content of the device's memory; a shuffle gives the thread's own value, a vote the thread's vote.
Values need not be right if no branch depends on them; `unknown` has the names of unknown instructions.
"""
import collections
import re
import struct

import floats
import integers
import operands
from values import WORD, operand_of

SPECIAL = {"SR_LANEID": 0, "SRZ": 0, "SR_CTAID.X": 0, "SR_CTAID.Y": 0, "SR_CTAID.Z": 0, "SR_TID.Y": 0, "SR_TID.Z": 0}
NOTHING = {"NOP", "BSSY", "BSYNC", "BREAK", "BMOV", "WARPSYNC", "BAR", "YIELD", "MEMBAR", "ERRBAR", "CCTL", "CGAERRBAR",
           "NANOSLEEP", "LEPC", "PREEXIT", "ACQBULK", "LDGDEPBAR", "BPT", "UCGABAR_ARV", "UCGABAR_WAIT", "FENCE", "CCTLL",
           "B2R"}  # result of a barrier's vote: only a vote's branch depends on it
LOADS, STORES = {"LDG": "global", "LDS": "shared", "LDL": "local", "LD": "global", "LDSM": "shared"}, {"STG": "global", "STS": "shared", "STL": "local", "ST": "global"}
KNOWN = integers.KNOWN | floats.KNOWN
MOST = 2_000_000  # instructions, after which a path is no path


class Lost(Exception):
    """The path cannot be followed."""


def width_of(modifiers):
    for name in modifiers:
        if name in ("64", "128"):
            return int(name) // 8
        if name in ("U8", "S8", "U16", "S16"):
            return int(name[1:]) // 8
    return 4


class Thread:
    def __init__(self, kernel, launch, memory, block=0, thread=0):
        self.kernel, self.memory = kernel, memory
        self.registers, self.uniform = collections.defaultdict(int), collections.defaultdict(int)
        self.predicates = collections.defaultdict(bool)
        self.places = {"shared": {}, "local": {}}
        across, down = launch.blocks
        self.special = SPECIAL | {"SR_TID.X": thread, "SR_LANEID": thread % 32, "SR_CTAID.X": block % across,
                                  "SR_CTAID.Y": block // across % down}
        self.bank = self._constants(launch)
        self.issued, self.bytes = collections.Counter(), collections.Counter()
        self.unknown = collections.Counter()
        self.in_flight, self.most_in_flight = {}, 0
        self.steps = 0

    def _constants(self, launch):
        banks = {number: bytearray(content) for number, content in self.kernel.constants.items()}
        zero = banks.setdefault(0, bytearray())
        end = self.kernel.parameters_at + len(launch.parameters)
        zero.extend(bytes(max(0, end - len(zero))))
        zero[self.kernel.parameters_at:end] = launch.parameters
        # Places of the sizes of block and grid, for Blackwell and for earlier cards.
        places = (0x360, 0x370) if self.kernel.parameters_at >= 0x380 else (0, 12)
        for at, sizes in zip(places, ((launch.threads, 1, 1), (*launch.blocks, 1)), strict=True):
            zero[at:at + 12] = struct.pack("<3I", *sizes)
        return banks

    # ---- values -------------------------------------------------------------------------------------------------

    def constant(self, bank, at, size=4):
        content = self.bank.get(bank, b"")
        return int.from_bytes(bytes(content[at:at + size]).ljust(size, b"\0"), "little")

    def offset(self, text):
        """Returns the value of "R5", "UR4+0x10", "R1.64+0x8" or "0x528"; with .64 or .U32 of the register's pair or word."""
        total = 0
        for sign, part in re.findall(r"([+-]?)\s*([^+-]+)", text):
            part = part.strip()
            if re.match(r"-?0x|\d", part):
                value = int(part, 0)
            else:
                operand = operand_of(part)
                wide = "64" in operand.parts
                value = self.pair(operand) if wide else self.word(operand)
            total += -value if sign == "-" else value
        return total

    def raw(self, operand):
        if operand.register is not None:
            file = self.uniform if operand.uniform else self.registers
            return 0 if operand.register < 0 else file[operand.register]
        if operand.bank is not None:
            return self.constant(operand.bank, self.offset(operand.at.replace("RZ", "0x0")))
        if operand.number is not None:
            return operand.number & WORD if isinstance(operand.number, int) else operands.immediate(operand.number)
        return 0

    def word(self, operand):
        value = self.raw(operand)
        for part in operand.parts:
            if part in ("H0", "H1", "U16"):
                value = value >> (16 if part == "H1" else 0) & 0xFFFF
            elif re.fullmatch(r"[BU][0-3]", part):
                value = value >> 8 * int(part[1]) & 0xFF
        if operand.inverted:
            value ^= WORD
        return (-value if operand.negated else value) & WORD

    def raw_pair(self, operand):
        if operand.register is not None:
            file = self.uniform if operand.uniform else self.registers
            return 0 if operand.register < 0 else file[operand.register] | file[operand.register + 1] << 32
        if operand.bank is not None:
            return self.constant(operand.bank, self.offset(operand.at.replace("RZ", "0x0")), 8)
        if operand.is_float:
            return operands.immediate_double(operand.number)
        return (operand.number or 0) & (1 << 64) - 1

    def pair(self, operand):
        value = self.raw_pair(operand)
        if operand.inverted:
            value ^= (1 << 64) - 1
        return (-value if operand.negated else value) & (1 << 64) - 1

    def predicate(self, text):
        value = text.lstrip("!") in ("PT", "UPT") or self.predicates[text.lstrip("!")]
        return value != text.startswith("!")

    def set_predicate(self, name, value):
        if name not in ("PT", "UPT"):
            self.predicates[name] = bool(value)

    def set(self, operand, value, words=1):
        if operand.register is None or operand.register < 0:
            return
        file = self.uniform if operand.uniform else self.registers
        for k in range(words):
            file[operand.register + k] = value >> 32 * k & WORD

    # ---- memory -------------------------------------------------------------------------------------------------

    def address(self, text, kind):
        if kind == "global" and not re.search(r"\[U?R\w+\.(64|U32)", text):
            text = re.sub(r"\[(R\d+)", r"[\1.64", text)
        inner = re.search(r"\[([^\]]*)\]\s*$", text.replace("desc[", "desc("))
        if not inner:
            raise Lost(f"an address like {text}")
        return self.offset(inner[1].replace("RZ", "0x0").replace("UR0x0", "0x0"))

    def load(self, instruction):
        kind, size = LOADS[instruction.opcode], width_of(instruction.modifiers)
        place = [text for text in instruction.operands if text.endswith("]")][-1]
        at, to = self.address(place, kind), operand_of(instruction.operands[0])
        if kind == "global":
            value = self.memory.read(at, size)
            self.bytes[self.memory.place(at)] += size
            self.in_flight |= {to.register + k: size / max(1, size // 4) for k in range(max(1, size // 4))}
            self.most_in_flight = max(self.most_in_flight, sum(self.in_flight.values()))
        else:
            known = self.places[kind]
            value = sum(known.get(at + k, 0) << 8 * k for k in range(size))
        if "S8" in instruction.modifiers and value >> 7:
            value |= 0xFFFFFF00
        self.set(to, value, max(1, size // 4))

    def store(self, instruction):
        kind, size = STORES[instruction.opcode], width_of(instruction.modifiers)
        at, source = self.address(instruction.operands[0], kind), operand_of(instruction.operands[1])
        if kind == "global":
            self.bytes[self.memory.place(at)] += size
            return
        value = sum(self.registers[source.register + k] << 32 * k for k in range(max(1, size // 4))) if source.register >= 0 else 0
        for k in range(size):
            self.places[kind][at + k] = value >> 8 * k & 0xFF

    def copy(self, instruction):
        """Copies from global to shared memory, if the predicate is true; the bytes are in flight until the thread waits."""
        size = width_of(instruction.modifiers)
        if not all(self.predicate(text) for text in instruction.operands[2:]):
            return
        self.bytes[self.memory.place(self.address(instruction.operands[1], "global"))] += size
        self.in_flight["copy", self.steps] = size
        self.most_in_flight = max(self.most_in_flight, sum(self.in_flight.values()))

    # ---- the path -----------------------------------------------------------------------------------------------

    def run(self):
        """Follows the path to its end."""
        addresses = {instruction.address: index for index, instruction in enumerate(self.kernel.code)}
        at = 0
        while at is not None and at < len(self.kernel.code):
            self.steps += 1
            if self.steps > MOST:
                raise Lost(f"more than {MOST} instructions")
            instruction = self.kernel.code[at]
            self.issued[instruction.name] += 1
            self._arrive(instruction)
            taken = not instruction.guard or self.predicate(instruction.guard)
            at = self._step(instruction, at, addresses) if taken else at + 1
        return self

    def _arrive(self, instruction):
        """Makes a reader of a register wait for the load of this register: loads issued together are then no longer in flight."""
        if self.in_flight and instruction.opcode not in ("LDG", "LDC", "ULDC"):
            for text in instruction.operands[1:]:
                operand = operand_of(text)
                if operand.register in self.in_flight and not operand.uniform:
                    self.in_flight.pop(operand.register)

    def _step(self, instruction, at, addresses):
        opcode = instruction.opcode
        if opcode == "EXIT":
            return None
        if opcode in ("BRA", "CALL"):
            return self._branch(instruction, at)
        if opcode == "RET":
            return addresses[self.word(operand_of(instruction.operands[0]))]
        if opcode in ("BRX", "JMX", "BRXU"):
            return self._indirect(instruction, addresses)
        if opcode == "LDGSTS":
            self.copy(instruction)
        elif opcode == "DEPBAR":
            self.in_flight = {place: size for place, size in self.in_flight.items() if not isinstance(place, tuple)}
        elif opcode in LOADS:
            self.load(instruction)
        elif opcode in STORES:
            self.store(instruction)
        elif opcode in KNOWN:
            KNOWN[opcode](self, instruction)
        elif opcode not in NOTHING:
            self.unknown[instruction.name] += 1
        return at + 1

    def _branch(self, instruction, at):
        if "DIV" in instruction.modifiers or "CONV" in instruction.modifiers:
            return at + 1
        conditions = [text for text in instruction.operands if re.fullmatch(r"!?U?P[0-9T]", text)]
        if not all(self.predicate(text) for text in conditions):
            return at + 1
        target = instruction.operands[-1]
        if target not in self.kernel.labels:
            raise Lost(f"no label {target}")
        return self.kernel.labels[target]

    def _indirect(self, instruction, addresses):
        found = re.match(r"(U?R\d+)\s+(-?0x[0-9a-f]+)", instruction.operands[0])
        if not found:
            raise Lost(f"a jump like {instruction.name} {instruction.operands}")
        step = instruction.address + 16 + int(found[2], 16) + self.word(operand_of(found[1]))
        target = step & WORD
        if target not in addresses:
            raise Lost(f"a jump to {target:#x}")
        return addresses[target]
