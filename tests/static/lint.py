"""Lengths of functions, by lizard, and clang-tidy's findings: `lint.py BUILD`, behind `./dev soak lint`.

Only hand-written code is measured: the generated part of the C API has many functions of three lines. A function's lines are
lines of code, without blank lines and comments.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

import tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {".h", ".c", ".cpp", ".cu", ".cuh", ".py", ".lua"}
# People read an example from top to end, so only the longest function counts there. In every other part, nine of ten
# functions have at most 20 lines.
LONGEST, NINE_OF_TEN = 60, {"core": 18, "examples": 60}
MEDIAN = {"core": 6}
TIDIED = ("core/", "capi/src/", "kernels/cpu/", "kernels/cuda/host/")


def functions(path):
    """Returns (lines, name, first line) of each function of a file."""
    import lizard

    # lizard knows CUDA's files by no name of their own, and takes a launch bound for a function's name.
    name = str(path) + (".cpp" if path.suffix in (".cu", ".cuh") else "")
    info = lizard.analyze_file.analyze_source_code(name, path.read_text(encoding="utf-8"))
    return [(one.nloc, one.name, one.start_line) for one in info.function_list]


def lengths():
    """Prints a table of the lengths of functions; returns the problems of each part."""
    parts, broken = {}, []
    for path in tree.files(ROOT, SUFFIXES):
        place = path.relative_to(ROOT)
        if len(place.parts) == 1 or tree.is_generated(path):
            continue
        for lines, name, first in functions(path):
            parts.setdefault(place.parts[0], []).append(lines)
            if lines > LONGEST:
                broken.append(f"{place}:{first} {name} has {lines} lines; {LONGEST} is the limit")
    for part, found in parts.items():
        median, tenth = statistics.median(found), sorted(found)[int(0.9 * len(found))]
        print(f"{part}: {len(found)} functions, median {median:g} lines, nine of ten up to {tenth}, longest {max(found)}")
        if tenth > NINE_OF_TEN.get(part, 20):
            broken.append(f"{part}: nine functions of ten have up to {tenth} lines; {NINE_OF_TEN.get(part, 20)} is the limit")
        if median > MEDIAN.get(part, LONGEST):
            broken.append(f"{part}: the median function has {median:g} lines; {MEDIAN[part]} is the limit")
    return broken


def tidied(build):
    """Returns clang-tidy's findings in the sources that this build compiles, by the list in .clang-tidy."""
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    files = {one["file"] for one in commands if one["file"].endswith(".cpp")}
    files = sorted(file for file in files if file.startswith(tuple(f"{ROOT}/{folder}" for folder in TIDIED)))
    done = subprocess.run(["xargs", "-n", "4", "-P", str(os.cpu_count()), "clang-tidy", "-p", build, "--quiet",
                           "--extra-arg=-Wno-unknown-warning-option"],
                          input="\n".join(files), capture_output=True, text=True)
    print(f"clang-tidy: {len(files)} files")
    findings = {line for line in done.stdout.splitlines() if ": warning: " in line or ": error: " in line}
    # clang does not know every option of gcc's, says so without a place, and reads the file all the same.
    if done.returncode and not findings and "unknown argument: '-f" not in done.stdout:
        findings = {f"clang-tidy: {done.stderr[-500:]}"}
    return sorted(line.removeprefix(f"{ROOT}/") for line in findings)


if __name__ == "__main__":
    wrong = lengths() + tidied(sys.argv[1])
    tree.report("lint", 1, wrong)
