"""No code for newer processors leaks into the rest: `check_isa.py SOURCE_DIR BUILD_DIR`.

Files in kernels/cpu/simd, and the arithmetic of kernels/mpi, are compiled once for each instruction set. A weak symbol in such an
object is an inline function, or a template without inlining. The linker may keep this copy for the whole library, and the library
then crashes on an older processor. So every weak function of an object built for v3 or v4 must have the level's namespace in its
mangled name. Weak data has no instructions.
"""
import pathlib
import subprocess
import sys

import tree


def weak_functions(objects):
    """Yields (object, symbol) of each weak definition of a function."""
    command = ["nm", "--defined-only", "-A", *map(str, objects)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        where, kind, symbol = line.rsplit(" ", 2)
        if kind == "W":
            yield where.split(":")[0], symbol


def main(build):
    broken, looked_at = [], 0
    for owner, level in [("cpu", "v3"), ("cpu", "v4"), ("mpi", "v3")]:
        folder = pathlib.Path(build) / "kernels" / owner / "CMakeFiles" / f"yoke_{owner}_{level}.dir"
        objects = sorted(folder.rglob("*.o"))
        looked_at += len(objects)
        for where, symbol in weak_functions(objects) if objects else []:
            if f"2{level}" not in symbol:  # a mangled nested name is its length and the name
                plain = subprocess.run(["c++filt", symbol], capture_output=True, text=True).stdout.strip()
                broken.append(f"{pathlib.Path(where).relative_to(folder)} ({level}) defines {plain}, weak "
                              f"and outside namespace {level}: make it always_inline or move it inside")
    tree.report("instruction sets", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[2])
