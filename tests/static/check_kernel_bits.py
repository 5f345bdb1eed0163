"""kernels/common gives the same bits everywhere: `check_kernel_bits.py SOURCE_DIR [BUILD_DIR]`.

Builds kernel_bits.cpp with every compiler here, for each x86-64 level this machine runs, without and
with optimisation, and compares the hash each prints with the one on record. The record changes only
with a deliberate change: of sums, whose results then differ in the last bits, or of random numbers and conversions, which is a break
for every saved seed.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

RECORD = "5441e3dfb27fe184"
FLAGS = ["-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
# Features that show a processor's level: a late feature of each level.
LEVELS = {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}


def features():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def build_and_run(source, compiler, options, program):
    command = [compiler, *options, f"-I{source}", str(source / "tests/static/kernel_bits.cpp"),
               "-o", str(program)]
    subprocess.run(command, check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def variants():
    known = features()
    levels = [f"-march={level}" for level, feature in LEVELS.items() if feature in known] or [None]
    for compiler in filter(shutil.which, ["g++", "clang++"]):
        for level in levels:
            for optimisation in ["-O0", "-O3"]:
                yield compiler, [option for option in [level, optimisation] if option]


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    broken = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler, options in variants():
            found = build_and_run(source, compiler, FLAGS + options, pathlib.Path(folder) / "bits")
            count += 1
            if found != RECORD:
                broken += 1
                print(f"{compiler} {' '.join(options)}: {found}, on record {RECORD}")
    if count == 0:
        sys.exit("no compiler: neither g++ nor clang++ is on the path")
    print(f"{count} builds of the kernel functors, {broken} broken")
    return broken > 0


if __name__ == "__main__":
    sys.exit(main())
