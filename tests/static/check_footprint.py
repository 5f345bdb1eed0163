"""Mapped memory of a process stays small: `check_footprint.py SOURCE_DIR BUILD_DIR`, the limits of docs/footprint.md.

libyoke counts stripped, as shipped. A build of every instruction set also shows the size for a single machine: base and one wide
set. So the smaller wide set is subtracted.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import tree

MB = 1_000_000
LIMITS = {
    "libyoke.so, three instruction sets": 14 * MB,
    "libyoke.so, base and one more": 10.3 * MB,
    "the CUDA module, one architecture": 6 * MB,
    "the MPI module": 1 * MB,
    "all that the main job maps": 60 * MB,
}


def stripped_size(library):
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run(["strip", "-o", copy.name, str(library)], check=True)
        return pathlib.Path(copy.name).stat().st_size


def loaded_size(objects):
    """Returns the bytes of code and data that objects bring into a library."""
    lines = subprocess.run(["size", *map(str, objects)], check=True, capture_output=True, text=True).stdout.splitlines()
    return sum(int(line.split()[3]) for line in lines[1:])


def kernel_sizes(build):
    """Returns {instruction set: bytes of its kernels}."""
    folders = sorted((build / "kernels" / "cpu" / "CMakeFiles").glob("yoke_cpu_*.dir"))
    objects = {folder.stem.split("_")[-1]: sorted(folder.glob("simd/*.o")) for folder in folders}
    return {name: loaded_size(files) for name, files in objects.items() if files}


def needed(library):
    """Returns the files of the libraries that a library pulls in."""
    text = subprocess.run(["ldd", str(library)], check=True, capture_output=True, text=True).stdout
    return {pathlib.Path(path).resolve() for path in re.findall(r"(/\S+) \(0x", text)}


def architectures(build):
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    return len(re.search(r"^YOKE_CUDA_ARCHS:\w+=(.*)$", cache, re.M).group(1).split(";"))


def measure(build):
    """Yields (name, bytes) of each built part with a limit."""
    library = build / "lib" / "libyoke.so.0"
    size, kernels = stripped_size(library), kernel_sizes(build)
    wide = sorted(bytes for name, bytes in kernels.items() if name != "base")
    if len(wide) > 1:
        yield "libyoke.so, three instruction sets", size
    yield "libyoke.so, base and one more", size - sum(wide[:-1])
    yield "all that the main job maps", size + sum(path.stat().st_size for path in needed(library))
    module = build / "lib" / "libyoke_cuda.so"
    if module.exists():
        yield "the CUDA module, one architecture", stripped_size(module) // architectures(build)
    module = build / "lib" / "libyoke_mpi.so"
    if module.exists():
        yield "the MPI module", stripped_size(module)


def main(build):
    broken, looked_at = [], 0
    for what, size in measure(pathlib.Path(build)):
        looked_at += 1
        print(f"{what}: {size:,} bytes of {LIMITS[what]:,.0f}")
        if size > LIMITS[what]:
            broken.append(f"{what}: {size:,} bytes are more than {LIMITS[what]:,.0f}; `size` of the objects tells which file grew")
    tree.report("footprint", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[2])
