"""Rates of multiprocessors and cards, for predictions.

After the CUDA C++ Programming Guide, "Arithmetic Instructions" (results per clock and multiprocessor, the lower figure in doubt;
not yet compared line by line) and "Technical Specifications per Compute Capability"; cards as in core/machine/catalog.def. The
clock follows from the card's float32 rate. Undocumented values are assumed, and stand only here: LATENCY, COPY, ISSUED.
"""
import dataclasses
import pathlib
import re

CATALOG = pathlib.Path(__file__).resolve().parents[2] / "core/machine/catalog.def"

LATENCY = 700e-9  # seconds that a load waits while the memory is busy
COPY = 0.92  # copy's share of the nominal bandwidth
ISSUED = 0.85  # share of cycles in which a scheduler finds a ready warp


@dataclasses.dataclass(frozen=True)
class Multiprocessor:
    threads: int  # resident at most
    blocks: int
    shared: int  # bytes for all blocks; each takes 1 KiB more than it asks for, from 8.0 on
    # Results of an instruction a clock, of all threads.
    fma: int
    imad: int
    alu: int
    xu: int  # MUFU and conversions
    convert: int  # float to half and bfloat16
    fp64: int
    half: int  # instructions of two halves
    registers: int = 65536
    issue: int = 128  # four warps
    lsu: int = 32


MULTIPROCESSORS = {
    75: Multiprocessor(1024, 16, 64 << 10, 64, 64, 64, 16, 16, 2, 64, lsu=16),
    80: Multiprocessor(2048, 32, 164 << 10, 64, 64, 64, 16, 16, 32, 128),
    86: Multiprocessor(1536, 16, 100 << 10, 128, 64, 64, 16, 16, 2, 64),
    89: Multiprocessor(1536, 24, 100 << 10, 128, 64, 64, 16, 16, 2, 64),
    90: Multiprocessor(2048, 32, 228 << 10, 128, 64, 64, 16, 64, 64, 128),
    100: Multiprocessor(2048, 32, 228 << 10, 128, 64, 64, 16, 64, 64, 128),
    120: Multiprocessor(1536, 24, 100 << 10, 128, 128, 128, 16, 64, 2, 64),
}


@dataclasses.dataclass(frozen=True)
class Card:
    name: str
    multiprocessors: int
    arch: int
    bandwidth: float  # bytes a second
    clock: float
    tensor: float  # FLOP/s of bfloat16

    @property
    def each(self):
        return MULTIPROCESSORS[self.arch]

    def rate(self, pipe):
        """Results of a multiprocessor a clock; a warp's HMMA.16816 multiplies 16 x 16 by 16 x 8 elements."""
        if pipe != "tensor":
            return getattr(self.each, pipe)
        return self.tensor / (2 * 16 * 16 * 8 / 32) / self.multiprocessors / self.clock


def catalog():
    """Returns {name: Card} of the cards whose multiprocessors are known here."""
    text = re.sub(r"//.*", "", CATALOG.read_text())
    cards = {}
    for entry in re.findall(r"YOKE_MODEL\((.*?)\)\s*(?=YOKE_MODEL|$)", text, re.S):
        names, numbers = re.findall(r'"([^"]*)"', entry), re.findall(r"(?<=, )\s*([0-9.]+)(?=,|\s)", re.sub(r'"[^"]*"', '""', entry))
        processors, arch, _, bandwidth, _, f32, _, _, tensor = (float(number) for number in numbers[:9])
        if int(arch) in MULTIPROCESSORS and f32:
            each = MULTIPROCESSORS[int(arch)]
            cards[names[0]] = Card(names[0], int(processors), int(arch), bandwidth * 1e9, f32 * 1e12 / (processors * each.fma * 2),
                                   tensor * 1e12)
    return cards


def resident(each, kernel, threads, dynamic):
    """Returns the number of blocks of a kernel that a multiprocessor holds at once, and the exhausted resource."""
    warps = -(-threads // 32)
    of_warp = -(-kernel.registers * 32 // 256) * 256  # registers are given in pieces of 256 a warp
    reserved = 1024 if each.shared > 64 << 10 else 0
    limits = {"blocks": each.blocks, "threads": each.threads // (warps * 32),
              "registers": each.registers // of_warp // warps if of_warp else each.blocks,
              "shared memory": each.shared // max(1, kernel.shared + dynamic + reserved)}
    least = min(limits, key=limits.get)
    return limits[least], least
