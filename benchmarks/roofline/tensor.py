"""Attention's products beside the peak of a card's tensor cores, by what a thread issues.

The peak is the catalog's, which on a Hopper is that of another instruction (wgmma); what of it mma.sync can reach there is
not documented. The floating-point operations are those that the case needs: what is computed for pairs that a mask forbids
counts as time alone.
"""
import cards
import launches
import predict
from bench import gpu_cases

TARGET = 0.35
LENGTH = 4096
CASES = [f"attention {LENGTH} {width}{how}" for width in (64, 128) for how in ("", " plain")]
FIRST = 80  # the first architecture for which there is such a kernel
WARPS = 4  # of a block


def flops(case):
    """Of both products; under the causal mask a query meets itself and those before it."""
    _, length, width, *plain = case.split()
    sizes, length = gpu_cases.sizes(False), int(length)
    pairs = length * length if plain else length * (length + 1) / 2
    return 4 * pairs * int(width) * sizes.heads * (sizes.tokens // length)


def followed(case, blocks):
    """(block, thread): under the mask work grows evenly from the first warp of a head to its last, which come last and first."""
    if case.endswith("plain"):
        return [(0, 0)]
    sizes = gpu_cases.sizes(False)
    return [(0, 32 * (WARPS - 1)), (blocks // (sizes.heads * sizes.tokens // LENGTH) - 1, 0)]


def predicted(build, case, card, kernels, wrong):
    """(the share of the peak, what its kernel does), or None where the card's code has no such kernel."""
    if card.arch < FIRST:
        return None
    for launch in launches.recorded(build, case, card.multiprocessors):
        kernel = kernels.get(launch.kernel)
        if kernel is None or "attend_by_mma" not in kernel.name:
            wrong.append(f"{case}, {card.name}: {launch.kernel} is not the kernel for tensor cores, or not in the module")
            return None
        found = predict.predict(card, kernel, launch, followed(case, launch.blocks[0]))
        share = flops(case) / card.tensor / found.busy
        judge(f"{case}, {card.name}", share, found, wrong)
        return share, found
    wrong.append(f"{case}, {card.name}: nothing was launched")
    return None


def judge(where, share, found, wrong):
    if found.kernel.stack:
        wrong.append(f"{where}: the kernel has a stack frame of {found.kernel.stack} bytes")
    if found.resident == 0:
        wrong.append(f"{where}: no block fits a multiprocessor, for its {found.limit}")
    if found.unknown:
        wrong.append(f"{where}: there are instructions that nobody described: {', '.join(found.unknown)}")
    if share < TARGET:
        wrong.append(f"{where}: {share:.2f} of the tensor cores' peak is predicted, of {TARGET:.2f}")


def text(shown, table):
    """The table, of {(case, card): predicted}."""
    shown = [card for card in shown if card.arch >= FIRST]
    lines = ["Predicted shares of the tensor cores' peak, bf16, and for each card the unit that decides and the blocks that a multiprocessor holds.", "",
             "| Case | " + " | ".join(card.name for card in shown) + " | Target | Registers | Shared | Busiest | Blocks held |",
             "|---" * (len(shown) + 6) + "|"]
    for case in CASES:
        found = [table[case, card.name] for card in shown]
        shares = " | ".join(f"{one[0]:.2f}" if one else "—" for one in found)
        known = [one[1] for one in found if one]
        if known:
            lines.append(f"| {case} | {shares} | {TARGET:.2f} | {known[0].kernel.registers} | {known[0].kernel.shared} | "
                         f"{' '.join(one.pipe for one in known)} | {' '.join(str(one.resident) for one in known)} |")
    return "\n".join(lines)
