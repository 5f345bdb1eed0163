#!/usr/bin/env python3
"""Which lines of the CUDA kernels the tests over the emulation have run: coverage.py BUILD [--lines].

BUILD was configured with YOKE_EMU_COVERAGE=ON, and its tests of label emu have run. --lines names what was not run.
"""
import argparse
import collections
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def counts_of(build):
    """How often each line of kernels/cuda ran, by file: instances of one template add up."""
    objects = build / "tests/emu/CMakeFiles/emu_cuda_module.dir"
    counts = collections.defaultdict(collections.Counter)
    for data in sorted(objects.rglob("*.cu.gcda")):
        told = subprocess.run(["gcov", "--json-format", "--stdout", data], capture_output=True, check=True, cwd=build)
        for file in json.loads(told.stdout)["files"]:
            path = (build / file["file"]).resolve()
            if path.parent == ROOT / "kernels/cuda" and path.suffix in (".cu", ".cuh"):
                for line in file["lines"]:
                    counts[path.name][line["line_number"]] += line["count"]
    return counts


def spans(lines):
    """[1, 2, 3, 7] as "1-3, 7"."""
    found = []
    for line in sorted(lines):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--lines", action="store_true")
    options = parser.parse_args()
    counts = counts_of(options.build.resolve())
    if not counts:
        raise SystemExit(f"{options.build} holds no counts: configure with YOKE_EMU_COVERAGE=ON and run ctest -L emu")
    ran, all_lines = 0, 0
    for name in sorted(counts):
        missing = [line for line, count in counts[name].items() if count == 0]
        lines = len(counts[name])
        ran, all_lines = ran + lines - len(missing), all_lines + lines
        print(f"{100 * (lines - len(missing)) / lines:6.1f} %  {lines:5d} lines  kernels/cuda/{name}")
        if options.lines and missing:
            print(f"            not run: {spans(missing)}")
    print(f"{100 * ran / all_lines:6.1f} %  {all_lines:5d} lines  in all")


if __name__ == "__main__":
    main()
