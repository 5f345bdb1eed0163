"""Compiler's result for the benchmark's kernels, and their predicted share of a copy's speed: `report.py BUILD MODULE`.

BUILD has the emulated device, MODULE is libyoke_cuda.so for the cards' architectures. --write FILE puts the tables into this
page. --check fails if any kernel of the module has a stack frame or cannot be started and excuses.py does not allow it
(frames.py); if no block of a case fits a multiprocessor; if a prediction is below the target of ./dev gpu and excuses.py has no
reason; or if the page has a different share. --float64 makes the table of float64 work instead (doubles.py). --cards NAME,...
takes other cards of the catalog. Without nvdisasm no speed is known: the rest is printed and checked, and no page is written.
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks")]
import cards  # noqa: E402
import cubin  # noqa: E402
import doubles  # noqa: E402
import frames  # noqa: E402
import launches  # noqa: E402
import predict  # noqa: E402
import tensor  # noqa: E402
from bench import gpu_cases  # noqa: E402
from excuses import KNOWN  # noqa: E402
from thread import Lost  # noqa: E402

CARDS = ("H200 SXM", "H100 SXM", "A100 SXM 80GB", "RTX 4090", "T4")
BEGIN, OF_FLOAT64 = "<!-- tables: ./dev cuda-report -->", "<!-- table: ./dev cuda-report --float64 -->"
END = "<!-- end of the tables -->"
PAGE = ROOT / "benchmarks/RESULTS-predictions.md"
SKIPPED = 77  # exit status: a tool is missing
SMALL = 0.02  # share of a case's time: shorter launches are left out of the table


def element_bytes(case):
    return 2 if "bf16" in case and "cast" not in case else 4


class Report:
    def __init__(self, build, module, names):
        cubin.tool("cuobjdump")
        self.build, self.wrong, self.table = build, [], {}
        self.missing = cubin.missing("nvdisasm")
        catalog = cards.catalog()
        self.cards = [catalog[name] for name in names]
        cases = [(case, card) for card in self.cards for case in (*(tensor.CASES if card.arch >= tensor.FIRST else ()), *(case for case, *_ in gpu_cases.MEMORY))]
        launched = {launch.kernel for case, card in cases for launch in launches.recorded(build, case, card.multiprocessors)}
        self.kernels = {card.arch: cubin.kernels_of(module, card.arch, launched) for card in self.cards}
        for card in self.cards:
            if not self.kernels[card.arch]:
                self.wrong.append(f"{card.name}: the module has no machine code for sm_{card.arch}")
        self.tensor = {(case, card.name): tensor.predicted(self.build, case, card, self.kernels[card.arch], self.wrong)
                       for case in tensor.CASES for card in self.cards}
        self.used = set()  # used entries of KNOWN
        for case, blocks, target in gpu_cases.MEMORY:
            for card in self.cards:
                self.table[case, card.name] = self._row(case, card, blocks * gpu_cases.sizes(False).block, target)
        self.wrong += [f"{case}, {name}: remove its line from excuses.py: no prediction needs the line" for case, name in KNOWN
                       if name in names and (case, name) not in self.used and not self.missing]
        self.wrong += frames.judge(frames.kernels_of(module))

    def _row(self, case, card, moved, target):
        found = []
        for launch in launches.recorded(self.build, case, card.multiprocessors):
            kernel = self.kernels[card.arch].get(launch.kernel)
            if kernel is None:
                self.wrong.append(f"{case}, {card.name}: the module has no kernel {launch.kernel}")
                continue
            try:
                found.append((predict.without_code if self.missing else predict.predict)(card, kernel, launch))
            except Lost as lost:
                self.wrong.append(f"{case}, {card.name}: {launch.kernel} cannot be followed: {lost}")
        if not found or self.missing:
            self._judge(case, card, None, found, None)
            return None, found
        share = predict.share(card, found, moved)
        whole = sum(one.seconds(card) for one in found)
        found = [one for one in found if one.seconds(card) > SMALL * whole]
        self._judge(case, card, share, found, target)
        return share, found

    def _judge(self, case, card, share, found, target):
        where = f"{case}, {card.name}"
        self.used |= {(case, card.name)} if target and share < target else set()
        for one in found:
            allowed = frames.allowed(one.kernel)
            if one.kernel.stack > allowed:
                self.wrong.append(f"{where}: {one.launch.op} has a stack frame of {one.kernel.stack} bytes; {allowed} are allowed")
            if one.resident == 0:
                self.wrong.append(f"{where}: no block of {one.launch.op} fits a multiprocessor, because of its {one.limit}")
            if one.unknown:
                self.wrong.append(f"{where}: {one.launch.op} has unknown instructions: {', '.join(one.unknown)}")
        if target and share < target and (case, card.name) not in KNOWN:
            self.wrong.append(f"{where}: {share:.2f} of a copy is predicted; the target is {target:.2f}")

    def text(self):
        head = "| Case | " + " | ".join(card.name for card in self.cards) + " | Target |"
        lines = ["Predicted shares of a copy's speed; **bold**: below the target.", "", head, "|---" * (len(self.cards) + 2) + "|"]
        for case, _, target in gpu_cases.MEMORY:
            shares = []
            for card in self.cards:
                share = self.table[case, card.name][0]
                text = "—" if share is None else f"{min(share, 1.0):.2f}"
                shares.append(f"**{text}**" if target and share is not None and share < target else text)
            lines.append(f"| {case} | " + " | ".join(shares) + f" | {target:.2f} |" if target else f"| {case} | " + " | ".join(shares) + " | told |")
        lines += ["", tensor.text(self.cards, self.tensor)]
        first = self.cards[0]
        lines += ["", f"The kernels, for {first.name} (sm_{first.arch}); blocks that a multiprocessor holds on each of the cards above.", "",
                  "| Case | Op | Registers | Stack | Shared | Threads | Blocks held | Kept from more by | Instructions an element | Busiest "
                  "| KiB in flight |", "|---" * 11 + "|"]
        for case, _, _ in gpu_cases.MEMORY:
            for i, one in enumerate(self.table[case, first.name][1]):
                held = [str(self.table[case, card.name][1][i].resident) if i < len(self.table[case, card.name][1]) else "—" for card in self.cards]
                elements = gpu_cases.sizes(False).block / element_bytes(case)
                each = one.steps * one.launch.threads * one.launch.blocks[0] * one.launch.blocks[1] / elements
                each, in_flight = ("—", "—") if self.missing else (f"{each:.1f}", f"{one.in_flight / 1024:.0f}")
                lines.append(f"| {case} | {one.launch.op.lstrip('_')} | {one.kernel.registers} | {one.kernel.stack} | "
                             f"{one.kernel.shared + one.launch.shared} | {one.launch.threads} | {' '.join(held)} | {one.limit} | {each} | "
                             f"{one.pipe} | {in_flight} |")
        return "\n".join(lines)


def write(path, text, begin=BEGIN):
    before, rest = path.read_text(encoding="utf-8").split(begin)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def shares(text):
    """Returns {(case, card): share} of the first table of the page."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    names, found = rows[0][1:-1], {}
    for row in rows[2:]:
        if len(row) != len(names) + 2:
            break
        found.update({(row[0], name): cell for name, cell in zip(names, row[1:])})
    return found


def stale(page, text):
    """Returns differences between the page and this run, for the run's cases."""
    told = shares(page.read_text(encoding="utf-8").split(BEGIN)[1])
    return [f"{page.name} says {told[at]} for {at[0]} on {at[1]}, and it is {share}: ./dev cuda-report --write {page}"
            for at, share in shares(text).items() if told.get(at, share) != share]


def float64(build, module, page):
    """Prints the table of float64 work; returns the exit status."""
    cubin.tool("nvdisasm")
    kernels = cubin.kernels_of(module, doubles.ARCH)
    if not kernels:
        print(f"{module} has no machine code for sm_{doubles.ARCH}", file=sys.stderr)
        return 1
    text = doubles.text(build.resolve(), cards.catalog(), kernels)
    print(text)
    if page:
        write(page, text, OF_FLOAT64)
    return 0


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("module", type=pathlib.Path)
    parser.add_argument("--cards", default=",".join(CARDS))
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--float64", action="store_true", help="print the table of float64 work instead")
    arguments = parser.parse_args()
    arguments.cards = arguments.cards.split(",")
    unknown = [name for name in arguments.cards if name not in cards.catalog()]
    if unknown:
        parser.error(f"--cards has unknown names {', '.join(unknown)}; the cards are {', '.join(sorted(cards.catalog()))}")
    return arguments


def main():
    arguments = read_arguments()
    try:
        if arguments.float64:
            return float64(arguments.build, arguments.module, arguments.write)
        report = Report(arguments.build.resolve(), arguments.module, arguments.cards)
    except cubin.Missing as missing:
        print(missing)
        return SKIPPED
    print(report.text())
    if report.missing:
        print(f"{report.missing}: nothing is predicted" + (f", and {arguments.write} is not changed" if arguments.write else ""))
    elif arguments.write and set(arguments.cards) != set(CARDS):
        print(f"{arguments.write} is not changed, because the page is for {', '.join(CARDS)}")
    elif arguments.write:
        write(arguments.write, report.text())
    if arguments.check and not report.missing and not arguments.write:
        report.wrong += stale(PAGE, report.text())
    for line in report.wrong:
        print(line, file=sys.stderr)
    if arguments.check and report.wrong:
        return 1
    return SKIPPED if arguments.check and report.missing else 0


if __name__ == "__main__":
    sys.exit(main())
