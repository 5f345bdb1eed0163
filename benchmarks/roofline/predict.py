"""Predicted speed of a launch on a card relative to a copy: by issued instructions, and by bytes in flight."""
import collections
import dataclasses
import math

import cards
from thread import Thread

PIPES = {
    "fma": {"FADD", "FMUL", "FFMA", "FSWZADD"},
    "imad": {"IMAD"},
    "alu": {"IADD3", "IADD", "VIADD", "LOP3", "SHF", "LEA", "ISETP", "SEL", "FSEL", "FSETP", "FMNMX", "FMNMX3", "PRMT", "MOV", "VIMNMX", "IMNMX",
            "VIADDMNMX", "IABS", "PLOP3", "P2R", "R2P", "CS2R", "FCHK", "I2FP"},
    "xu": {"MUFU", "F2I", "I2F", "F2F", "FRND", "FLO", "POPC", "BREV"},
    "convert": {"F2FP"},
    "fp64": {"DADD", "DMUL", "DFMA", "DSETP"},
    "half": {"HADD2", "HMUL2", "HFMA2"},
    "lsu": {"LDG", "STG", "LDS", "STS", "LDL", "STL", "SHFL", "ATOMS", "LDSM", "LDGSTS"},
    "tensor": {"HMMA"},
}
# Memory content for each dtype: (bits, bytes) of 1.75, of 0.5 in the narrower floats, of 1 in integers.
PATTERNS = {1: (0x3FFC000000000000, 8), 2: (0x3F000000, 4), 3: (0x3800, 2), 4: (0x3F00, 2), 5: (1, 8), 6: (1, 4)}


LARGE = 8 << 20  # bytes of an operand that no cache keeps between two uses
TRACED = 5  # blocks whose first thread is followed, from the first to the last


class Memory:
    """The memory of a launch's operands, with a number of its dtype everywhere."""

    def __init__(self, launch):
        self.operands = launch.operands

    def place(self, at):
        """Returns the number of the operand that contains the address, or None."""
        return next((i for i, (begin, extent, _) in enumerate(self.operands) if begin <= at < begin + extent), None)

    def read(self, at, size):
        place = self.place(at)
        value, width = PATTERNS.get(self.operands[place][2], (1, 1)) if place is not None else PATTERNS[2]
        return int.from_bytes((value.to_bytes(width, "little") * 32)[at % width:at % width + size], "little")


@dataclasses.dataclass
class Prediction:
    kernel: object
    launch: object
    steps: float  # instructions of a thread, on average
    resident: int  # blocks of a multiprocessor
    limit: str  # resource that excludes more
    pipe: str  # the busiest
    busy: float  # seconds of it
    moved: float  # bytes to and from the device's memory
    in_flight: float  # bytes of a multiprocessor
    unknown: dict
    issued: dict = dataclasses.field(default_factory=dict)  # {instruction: how often a thread does}, on average

    def seconds(self, card):
        needed = card.bandwidth * cards.COPY * cards.LATENCY / card.multiprocessors
        copy = self.moved / (card.bandwidth * cards.COPY)
        return max(self.busy, copy / min(1.0, self.in_flight / needed) if copy else 0.0)


def turns(opcode, name):
    """Returns how many times an instruction uses the banks of shared memory: four for 512 bytes of a warp."""
    return 4 if opcode == "LDSM" and name.endswith(".4") or opcode == "LDGSTS" and ".128" in name else 1


def pipes(issued, card):
    """Returns {pipe: clocks of a multiprocessor} for instructions of one thread."""
    counts = collections.Counter()
    for name, count in issued.items():
        opcode = name.split(".")[0]
        counts["issue"] += count
        for pipe, opcodes in PIPES.items():
            if opcode in opcodes:
                counts[pipe] += count * turns(opcode, name)
        if opcode in PIPES["imad"]:
            counts["fma"] += count
    return {pipe: count / card.rate(pipe) / (cards.ISSUED if pipe == "issue" else 1) for pipe, count in counts.items()}


def predict(card, kernel, launch, followed=None):
    """Returns the prediction for a launch. `followed` has (block, thread) of the representative threads."""
    blocks = launch.blocks[0] * launch.blocks[1]
    followed = followed or sorted({((blocks - 1) * k // (TRACED - 1), 0) for k in range(TRACED)})
    threads = [Thread(kernel, launch, Memory(launch), *one).run() for one in followed]
    every = blocks * launch.threads
    issued, moved, unknown = collections.Counter(), 0.0, {}
    for thread in threads:
        issued.update(thread.issued)
        moved += sum(size for place, size in thread.bytes.items() if place is None or launch.operands[place][1] >= LARGE)
        unknown |= thread.unknown
    clocks = {pipe: clock / len(threads) for pipe, clock in pipes(issued, card).items()}
    pipe = max(clocks, key=clocks.get)
    held, limit = cards.resident(card.each, kernel, launch.threads, launch.shared)
    at_once = min(held, -(-blocks // card.multiprocessors)) * launch.threads
    return Prediction(kernel, launch, issued.total() / len(threads), held, limit, pipe,
                      clocks[pipe] * every / card.multiprocessors / card.clock, moved / len(threads) * every,
                      at_once * max(thread.most_in_flight for thread in threads), unknown,
                      {name: count / len(threads) for name, count in issued.items()})


def without_code(card, kernel, launch):
    """Returns the prediction for a kernel with unknown instructions: without a speed."""
    held, limit = cards.resident(card.each, kernel, launch.threads, launch.shared)
    return Prediction(kernel, launch, math.nan, held, limit, "—", math.nan, math.nan, math.nan, {})


def share(card, predictions, moved):
    """Returns the part of a copy's speed at which launches together move `moved` bytes."""
    return moved / (card.bandwidth * cards.COPY) / sum(one.seconds(card) for one in predictions)
