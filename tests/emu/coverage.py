#!/usr/bin/env python3
"""Shows the lines of the CUDA kernels that the tests over the emulation have run: coverage.py BUILD [--lines].

The emulated module of BUILD counts the lines of kernels/cuda/ops/*.cu and *.cuh that it runs. Each program adds its counts at its
end to the counts in BUILD/tests/emu. The table has the files with the smallest share last, then the whole. --lines names the
lines that did not run. Exit status 1 if the share is too small.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PERCENT_OF_ALL, PERCENT_OF_FILE = 95, 90
MAY_REST = 2  # lines that any file may leave out: in a short file two ends that no caller reaches are many percent


def counts_in(notes, counts):
    """Returns gcov's data on an object with the compiler's notes. Without counts, no part of the object has run."""
    with tempfile.TemporaryDirectory() as beside:
        shutil.copy(notes, beside)
        if counts:
            shutil.copy(counts, f"{beside}/{notes.stem}.gcda")
        command = ["gcov", "--json-format", "--stdout", notes.name]
        told = subprocess.run(command, capture_output=True, text=True, cwd=beside)
    if told.returncode or not told.stdout:
        raise SystemExit(f"gcov cannot read {notes}: {told.stderr.strip() or 'it says nothing'}")
    return json.loads(told.stdout)


def is_kernel(path):
    return path.parent == ROOT / "kernels/cuda/ops" and path.suffix in (".cu", ".cuh")


def kernel_of(file, build):
    """Returns the path of a CUDA kernel's source that notes name, or None for other files.

    Notes name a source as seen from the checkout (the compiler's prefix map does) or from the build (ccache does).
    """
    return next(filter(is_kernel, ((folder / file).resolve() for folder in (ROOT, build))), None)


def counts_of(build):
    """Returns how often each line of kernels/cuda ran, by file: instances of one template add up."""
    notes = sorted((build / "tests/emu/CMakeFiles/emu_cuda_module.dir").rglob("*.cu.gcno"))
    # Named for the object's whole path, with "#" for "/", in whichever clone it was compiled.
    ran = {path.name.rsplit("#", 1)[-1]: path for path in (build / "tests/emu/counts").glob("*.gcda")}
    counts = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for told in pool.map(counts_in, notes, [ran.get(f"{path.stem}.gcda") for path in notes]):
            for file in told["files"]:
                path = kernel_of(file["file"], build)
                if path:
                    for line in file["lines"]:
                        counts[path.name][line["line_number"]] += line["count"]
    return counts


def spans(lines):
    """Returns numbers as ranges: [1, 2, 3, 7] gives "1-3, 7"."""
    found = []
    for line in sorted(lines):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def percent_of(lines):
    return 100 * sum(count > 0 for count in lines.values()) / len(lines)


def table(counts, with_lines):
    for name in sorted(counts, key=lambda name: (-percent_of(counts[name]), name)):
        lines = counts[name]
        print(f"{percent_of(lines):6.1f} %  {len(lines):5d} lines  kernels/cuda/ops/{name}")
        missing = [line for line, count in lines.items() if count == 0]
        if with_lines and missing:
            print(f"            not run: {spans(missing)}")
    every = {(name, line): count for name, lines in counts.items() for line, count in lines.items()}
    print(f"{percent_of(every):6.1f} %  {len(every):5d} lines  of the CUDA kernels ran in their tests")
    return percent_of(every)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--lines", action="store_true")
    options = parser.parse_args()
    counts = counts_of(options.build.resolve())
    if not counts:
        raise SystemExit(f"{options.build} has no emulated module that counts: build emu_cuda_module with gcc")
    percent = table(counts, options.lines)
    low = sorted(name for name, lines in counts.items()
                 if percent_of(lines) < PERCENT_OF_FILE and sum(count == 0 for count in lines.values()) > MAY_REST)
    if percent < PERCENT_OF_ALL or low:
        raise SystemExit(f"too few lines ran: {PERCENT_OF_ALL} % of all and {PERCENT_OF_FILE} % of each file have to"
                         f"{''.join(f', {name}' for name in low)}; ./dev coverage --lines names the others")


if __name__ == "__main__":
    main()
