"""The mutants of kernels/cuda: possible changes of a line, and the text of a file with all mutants at once."""
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels/cuda/ops"
SHIFTED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "==": "!=", "!=": "=="}
NAMES = {"<": "kLess", ">": "kGreater", "<=": "kLessEqual", ">=": "kGreaterEqual", "==": "kEqual", "!=": "kNotEqual"}


class Mutant:
    """A change of a line. `edit` is the form for mutants.h, (begin, end, text), or None: compiled alone."""

    def __init__(self, path, line_number, line, what, changed, edit):
        self.path, self.line_number, self.line, self.what = path, line_number, line, what
        self.changed, self.edit, self.number = changed, edit, 0

    def __str__(self):
        return f"{self.path.relative_to(ROOT)}:{self.line_number}: {self.what}: {self.line.strip()}"

    def key(self):
        return self.path.name, self.what, self.line.strip()

    def text(self):
        lines = self.path.read_text().splitlines(keepends=True)
        lines[self.line_number - 1] = self.changed
        return "".join(lines)


def comparison(found, number):
    side = "==" if found[1] in ("==", "!=") else "<"
    other = "==" if side == "==" else ">"
    text = f"{side} ::yoke::mutants::compare<::yoke::mutants::Op::{NAMES[found[1]]}>({number}) {other}"
    return found.start(1), found.end(1), text


def changes_of(line):
    """Yields (name, changed line, edit) for every change that this line allows; edit(number) returns (begin, end, text)."""
    code = line.split("//")[0]
    for found in re.finditer(r"__sync(threads|warp)\(([^;]*)\);", code):
        yield (f"no {found[0][:-1]}", line[:found.start()] + ";" + line[found.end():],
               lambda n, f=found: (f.start(), f.end(), f"(void)(::yoke::mutants::stays({n}) && ({f[0][:-1]}, true));"))
    for found in re.finditer(r" (<=|>=|==|!=|<|>) ", code):
        yield (f"{found[1]} as {SHIFTED[found[1]]}", line[:found.start(1)] + SHIFTED[found[1]] + line[found.end(1):],
               lambda n, f=found: comparison(f, n))
    for found in re.finditer(r" [+-] 1\b(?![.\d])", code):
        yield (f"no{found[0]}", line[:found.start()] + line[found.end():],
               lambda n, f=found: (f.end() - 1, f.end(), f"::yoke::mutants::one({n})"))
    yield from exchange_of(line, code)


def uses_of(name, code):
    """Returns how a name is used in a line: as a member or not, as an array or not."""
    return frozenset((bool(m[1]), bool(m[2])) for m in re.finditer(rf"(\.?)\b{name}\b(\[?)", code))


def exchange_of(line, code):
    steps = list(dict.fromkeys(re.findall(r"\b\w*(?:stride|step)s?\w*\b(?!\()", code)))
    if len(steps) != 2 or not ("(" in code or "=" in code):
        return
    exchanged = re.sub(rf"\b({steps[0]}|{steps[1]})\b", lambda m: steps[1 - steps.index(m[0])], code)
    edit = None
    value = re.match(r"(\s*(?:return|.* =) )([^;]*);\s*$", code)
    other = re.match(r"(\s*(?:return|.* =) )([^;]*);\s*$", exchanged)
    # Only names with equal uses are exchanged, because other exchanges seldom compile. If the exchange changes the
    # target of an assignment, there is no choice at run time.
    alike = len({uses_of(step, code) for step in steps}) == 1
    if alike and value and other and value[1] == other[1]:
        def edit(n):
            return value.start(2), value.end(2), (f"(::yoke::mutants::stays({n}) ? ", f" : {other[2]})")
    yield f"{steps[0]} and {steps[1]} exchanged", exchanged + line[len(code):], edit


def mutants_of(path):
    seen, goes_on = collections.Counter(), False
    for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        is_condition = goes_on or line.lstrip().startswith(("#if", "#elif"))  # a preprocessor condition, perhaps of several lines
        goes_on = is_condition and line.endswith("\\\n")
        if is_condition or line.lstrip().startswith(("#", "//", "template", "static_assert")):
            continue
        for what, changed, edit in changes_of(line):
            same = what, line.strip()
            seen[same] += 1  # numbers equal places, in this line or in another line of the same text
            name = what if seen[same] == 1 else f"{what} ({seen[same]})"
            yield Mutant(path, number, line, name, changed, None if "constexpr" in line else edit)


def kernel_files():
    return sorted([*KERNELS.glob("*.cu"), *KERNELS.glob("*.cuh")])


def with_all(path, mutants):
    """Returns the text of `path` with all mutants that have an edit; each can be chosen by number."""
    lines = path.read_text().splitlines(keepends=True)
    by_line = collections.defaultdict(list)
    for mutant in mutants:
        if mutant.path == path and mutant.edit:
            by_line[mutant.line_number].append(mutant.edit(mutant.number))
    for line_number, edits in by_line.items():
        line = lines[line_number - 1]
        places = [(begin, end, text) for begin, end, text in edits if isinstance(text, str)]
        for begin, end, (before, after) in (e for e in edits if not isinstance(e[2], str)):
            places += [(begin, begin, before), (end, end, after)]
        for begin, end, text in sorted(places, reverse=True):
            line = line[:begin] + text + line[end:]
        lines[line_number - 1] = line
    return "".join(lines)


def equivalents():
    """Returns {(file, change, line without blanks around it)}: "file | change | line | reason"."""
    known = set()
    for line in (ROOT / "tests/emu/equivalent_mutants.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, what, *code, reason = (part.strip() for part in line.split(" | "))
            assert reason and code, line
            known.add((file, what, " | ".join(code)))
    return known
