"""Attention's products beside the peak of a card's tensor cores, by a thread's issued instructions.

The peak is the catalog's; on a Hopper it belongs to another instruction (wgmma), and the reachable share of mma.sync is not
documented. The floating-point operations are those that the case needs: work for masked pairs counts only as time.
"""
import cards
import cubin
import frames
import launches
import predict
from bench import gpu_cases

TARGET = 0.35
LENGTH = 4096
CASES = [f"attention {LENGTH} {width}{how}" for width in (64, 128)
         for how in ("", " plain", " backward", " masked", " masked backward")]
FIRST = 80  # the first architecture for which there is such a kernel


def whole(how):
    """Returns whether every query meets every key: not under the causal mask. A mask of the caller's own hides none here."""
    return "plain" in how or "masked" in how


def flops(case):
    """Returns the operations of the two products, or of the five products for gradients; under the causal mask a query meets itself
    and earlier places.
    """
    _, length, width, *how = case.split()
    sizes, length = gpu_cases.sizes(False), int(length)
    pairs = length * length if whole(how) else length * (length + 1) / 2
    return (10 if "backward" in how else 4) * pairs * int(width) * sizes.heads * (sizes.tokens // length)


def followed(case, launch):
    """Returns (block, thread): under the mask, work grows evenly from one end of a head to the other; the longest block begins
    first.
    """
    if "by_mma" not in launch.kernel:
        return None
    if whole(case.split()):
        return [(0, 0)]
    sizes, last_warp = gpu_cases.sizes(False), 32 * (launch.threads // 32 - 1)
    last = launch.blocks[0] // (sizes.heads * sizes.tokens // LENGTH) - 1
    of_keys = "Lb1ELb" in launch.kernel  # its first warp has the most work
    return [(0, 0), (last, last_warp)] if of_keys else [(0, last_warp), (last, 0)]


def predicted(build, case, card, kernels, wrong):
    """Returns (share of the peak, prediction of each kernel), or None if the card's code does not have such kernels. Without
    nvdisasm the share is None."""
    if card.arch < FIRST:
        return None
    found, missing = [], cubin.missing("nvdisasm")
    for launch in launches.recorded(build, case, card.multiprocessors):
        if launch.kernel not in kernels:
            wrong.append(f"{case}, {card.name}: the module has no kernel {launch.kernel}")
            return None
        kernel = kernels[launch.kernel]
        found.append(predict.without_code(card, kernel, launch) if missing else predict.predict(card, kernel, launch, followed(case, launch)))
    products = [one for one in found if "by_mma" in one.kernel.name]
    if not products:
        wrong.append(f"{case}, {card.name}: none of its kernels is for tensor cores")
        return None
    share = None
    if not missing:
        share = flops(case) / card.tensor / sum(one.busy if one in products else one.seconds(card) for one in found)
    judge(f"{case}, {card.name}", share, products, target(case), wrong)
    return share, products


def target(case):
    return TARGET if set(case.split()).isdisjoint(("backward", "masked", "dropped")) else None


def judge(where, share, found, least, wrong):
    for one in found:
        if one.kernel.stack > frames.allowed(one.kernel):
            wrong.append(f"{where}: the kernel has a stack frame of {one.kernel.stack} bytes; {frames.allowed(one.kernel)} are allowed")
        if one.resident == 0:
            wrong.append(f"{where}: no block fits a multiprocessor, because of its {one.limit}")
        if one.unknown:
            wrong.append(f"{where}: the kernel has unknown instructions: {', '.join(one.unknown)}")
    if least and share is not None and share < least:
        wrong.append(f"{where}: {share:.2f} of the tensor cores' peak is predicted; the target is {least:.2f}")


def text(shown, table):
    """Returns the table of {(case, card): predicted}."""
    shown = [card for card in shown if card.arch >= FIRST]
    lines = ["Predicted shares of the tensor cores' peak, bf16, and for each card the unit that decides and the blocks that a multiprocessor holds.", "",
             "| Case | " + " | ".join(card.name for card in shown) + " | Target | Registers | Shared | Busiest | Blocks held |",
             "|---" * (len(shown) + 6) + "|"]
    for case in CASES:
        rows = [table[case, card.name] for card in shown]
        known, least = [row for row in rows if row], target(case)
        for k in range(len(known[0][1]) if known else 0):
            shares = ["" if k else "—" if row is None or row[0] is None else f"{row[0]:.2f}" for row in rows]
            found = [row[1][k] for row in known]
            lines.append(f"| {case} | " + " | ".join(shares) + f" | {f'{least:.2f}' if least else 'told'} | {found[0].kernel.registers} | "
                         f"{found[0].kernel.shared} | {' '.join(one.pipe for one in found)} | {' '.join(str(one.resident) for one in found)} |")
    return "\n".join(lines)
