"""Adds up what CTest ran: `summary.py REPORT...`, each report a file of `ctest --output-junit`.

One CTest test may be a whole GoogleTest, pytest or busted program; the cases inside are counted from
what the tool printed last. A program that failed without naming a failed case (a crash, a leak, a
missing tool) counts as one failed case. Exit status 1 when anything failed or nothing ran.
"""
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
    """(passed, failed, skipped) of one CTest test."""
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


def main(reports):
    total = [0, 0, 0]
    broken = []
    for report in reports:
        for case in xml.parse(report).getroot().iter("testcase"):
            output = case.findtext("system-out") or ""
            # CTest calls a program that ended with its SKIP_RETURN_CODE "notrun", with a reason.
            if case.find("skipped") is not None and "SKIP" in case.find("skipped").get("message", ""):
                total[2] += 1
                continue
            ok = case.get("status") == "run"
            counts = count_cases(ok, output)
            total = [a + b for a, b in zip(total, counts)]
            if not ok:
                broken.append(f"{report}: {case.get('name')}")
    for line in broken:
        print("FAILED", line)
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
