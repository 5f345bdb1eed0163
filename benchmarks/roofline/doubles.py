"""Kernels of float32 that count in float64: `report.py BUILD MODULE --float64` makes their table, from the code for 9.0.

Rates are the card's own; small differences of its machine code are ignored.
"""
import dataclasses

import launches
import predict
from bench import gpu_cases

ARCH = 90
CARDS = ("T4", "RTX 4090", "H200 SXM")
BLOCK = gpu_cases.sizes(False).block // 4  # elements


@dataclasses.dataclass
class Counted:
    case: str
    kernel: str  # part of the kernels' names
    elements: int
    moved: float  # bytes an element; 0: the cases' table has the share
    told: str
    why: str
    one: bool = False  # thread of a block counts for all of its elements


CASES = [
    Counted("pow", "map_elements", BLOCK, 8, "`pow` (`kernels/common/power.h`)", "the logarithm and the power of 2, so that the CPU's bits come out"),
    Counted("moments", "sum_items", 32 * 64 * 2048, 4, "moments of `batch_norm` in training (`norm_channels.cu`), 64 channels of 32 × 2048",
            "the joining of items"),
    Counted("cumsum", "", BLOCK, 8, "`cumsum` along rows (`scan.cu`)", "sums that do not lose small terms"),
    Counted("grad_norm f32", "Norm", BLOCK, 0, "gradient norm (`gradients.cu`)", "the same"),
    Counted("adamw f32", "Adam", BLOCK, 0, "Adam (`optim.h`, `optim.cu`)",
            "two powers for the bias terms; the number of the step stands on the device", one=True),
]


def operations(issued):
    """Returns (float64 operations, conversions and reciprocals, all instructions) of {instruction: how often}."""
    slow = sum(count for name, count in issued.items()
               if name.split(".")[0] in predict.PIPES["xu"] and ("F64" in name or "64H" in name))
    return sum(count for name, count in issued.items() if name.split(".")[0] in predict.PIPES["fp64"]), slow, sum(issued.values())


def of_an_element(counted, found):
    """Returns the three numbers of operations() for an element, over all launches."""
    total = [0.0] * 3
    for one in found:
        every = one.launch.threads * one.launch.blocks[0] * one.launch.blocks[1]
        total = [sum_ + count * every / counted.elements for sum_, count in zip(total, operations(one.issued), strict=True)]
    return total


def kernel_of(kernels, name):
    """Returns the kernel of a name. g++ and nvcc spell some types of parameters differently, so names are compared up to the parameters."""
    return kernels.get(name) or next(one for other, one in kernels.items() if other.partition("EEv")[0] == name.partition("EEv")[0])


def row(build, counted, cards, kernels):
    shares, each = [], None
    for card in cards:
        found = [predict.predict(card, kernel_of(kernels, launch.kernel), launch)
                 for launch in launches.recorded(build, counted.case, card.multiprocessors) if counted.kernel in launch.kernel]
        each = of_an_element(counted, found)
        shares.append(f"{min(1, predict.share(card, found, counted.moved * counted.elements)):.2f}" if counted.moved else "in the table")
    fp64, slow, steps = each
    if counted.one:
        by_thread = operations(found[0].issued)[0]
        return f"| {counted.told} | {by_thread:.0f} by the first thread of a block | — | — | {' | '.join(shares)} | {counted.why} |"
    return f"| {counted.told} | {fp64:.1f} | {slow:.1f} | {steps:.0f} | {' | '.join(shares)} | {counted.why} |"


def text(build, catalog, kernels):
    cards = [catalog[name] for name in CARDS]
    head = "| Kernel, float32 | Float64 operations an element | Conversions and reciprocals | Instructions an element | Share of a copy, "
    return "\n".join([head + " | ".join(CARDS) + " | Why |", "|---" * (5 + len(CARDS)) + "|",
                      *(row(build, counted, cards, kernels) for counted in CASES)])
