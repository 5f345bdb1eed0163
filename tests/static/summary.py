"""Sums up CTest's runs: `summary.py [--budget PAGE] [--parts FILE] REPORT...`, reports of `ctest --output-junit`.

A CTest test may be a whole GoogleTest, pytest or busted program; its cases are counted from the tool's last output. If a program
fails without a failed case (a crash, a leak, a missing tool), the program counts as a failed case. Exit status 1 if any case
failed or none ran.

The slowest programs follow, by processor time (tests/measured.sh), and then the parts timed by ./dev. A program with more than
twice the processor time granted in PAGE is a finding. A finding is printed and fails no test, because machines differ.
"""
import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

PATTERNS = {
    "passed": [r"\[  PASSED  \] (\d+) test", r"\b(\d+) passed\b", r"\b(\d+) success(?:es)?\b"],
    "failed": [r"\b(\d+) failed\b", r"\b(\d+) failures? /", r"\b(\d+) errors?\b"],
    "skipped": [r"\[  SKIPPED \] (\d+) test", r"\b(\d+) skipped\b", r"\b(\d+) pending\b"],
}
GTEST_RAN = r"\[==========\] (\d+) tests? .* ran"


def count_cases(ok, output):
    """Returns (passed, failed, skipped) of one CTest test."""
    found = {kind: 0 for kind in PATTERNS}
    tail = "\n".join(output.splitlines()[-40:])
    for kind, patterns in PATTERNS.items():
        for pattern in patterns:
            hits = re.findall(pattern, tail)
            found[kind] += int(hits[-1]) if hits else 0
    ran = re.findall(GTEST_RAN, output)
    if ran:
        found["failed"] = int(ran[-1]) - found["passed"] - found["skipped"]
    if ok:
        return max(found["passed"], 0 if found["skipped"] else 1), 0, found["skipped"]
    return found["passed"], max(found["failed"], 1), found["skipped"]


MEASURED = r"processor time of this shell, and of the test:\n.*\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s"
SLOWEST = 20
OTHERS = "every other program"


def processor_seconds(output):
    """Returns the processor seconds from tests/measured.sh; None if the script did not run."""
    told = re.findall(MEASURED, output)
    return sum(60 * float(m) + float(s) for m, s in (told[-1][:2], told[-1][2:])) if told else None


def budgets(page):
    """Returns the rows of a page's tables that grant seconds: | `release python/test_doctor` | 20 |."""
    rows = re.findall(r"^\| `?([^|`]+?)`? \| (\d+) \|", page.read_text(encoding="utf-8"), re.M) if page else []
    return {name: float(seconds) for name, seconds in rows}


def parts_of(path):
    """Yields (name, seconds, processor seconds) of each part that ./dev has timed."""
    for line in path.read_text().splitlines() if path and path.exists() else []:
        name, _, numbers = line.rpartition(": ")
        real, user, system = map(float, numbers.split())
        yield name, real, user + system


def over(name, seconds, granted):
    """Returns the finding about a program with too long a time, if there is one."""
    if granted is not None and seconds > 2 * granted:
        return [f"{name} took {seconds:.0f} CPU-seconds, more than twice the {granted:.0f} of docs/testing.md"]
    return []


def tell_times(parts, programs, granted):
    """Prints minutes by part and the slowest programs; gives the findings."""
    findings = []
    for name, real, seconds in parts:
        print(f"{real / 60:7.1f} min {seconds:8.0f} CPU-seconds  {name}")
        findings += over(name, seconds, granted.get(name))
    slowest = sorted(programs, key=lambda program: -program[1])
    if slowest:
        print(f"the {min(SLOWEST, len(slowest))} slowest programs, in CPU-seconds:")
    for name, seconds in slowest[:SLOWEST]:
        print(f"{seconds:8.1f}  {name}")
    for name, seconds in slowest:
        known = name.split()[0] in {row.split()[0] for row in granted}  # a preset of the page, not one of a soak
        findings += over(name, seconds, granted.get(name, granted.get(OTHERS) if known else None))
    return findings


def main(reports, granted={}, parts=()):
    total = [0, 0, 0]
    broken, programs = [], []
    for report in reports:
        for case in xml.parse(report).getroot().iter("testcase"):
            output = case.findtext("system-out") or ""
            seconds = processor_seconds(output)
            if seconds is not None:
                programs.append((f"{pathlib.Path(report).parent.name} {case.get('name')}", seconds))
            # If a program ends with its SKIP_RETURN_CODE, CTest reports "notrun" and a reason.
            if case.find("skipped") is not None and "SKIP" in case.find("skipped").get("message", ""):
                total[2] += 1
                continue
            ok = case.get("status") == "run"
            counts = count_cases(ok, output)
            total = [a + b for a, b in zip(total, counts)]
            if not ok:
                broken.append(f"{report}: {case.get('name')}")
    for finding in tell_times(parts, programs, granted):
        print("SLOW", finding)
    for line in broken:
        print("FAILED", line)
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=pathlib.Path)
    parser.add_argument("--parts", type=pathlib.Path)
    parser.add_argument("reports", nargs="+")
    options = parser.parse_args()
    sys.exit(main(options.reports, budgets(options.budget), list(parts_of(options.parts))))
