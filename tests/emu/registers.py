"""The compiler's figures for the kernels, for the fake runtime: `registers.py EMULATED MODULE ARCH FILE COMMAND...` writes FILE from
cuobjdump's output on MODULE (libyoke_cuda.so). Places are the kernels' places in EMULATED (the module with emulated kernels).
Then COMMAND runs with FAKE_CUDA_REGISTERS naming FILE. A launch that no multiprocessor could hold is then refused.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/roofline"))
import cubin  # noqa: E402
import launches  # noqa: E402

SKIPPED = 77  # exit status: a tool is missing


def key(name):
    """Returns the common part of the names that g++ and nvcc give a kernel: without the file of an unnamed namespace, and up to a
    template's arguments, because the compilers spell parameters in different ways. If kernels differ only in the rest, the
    largest needs count.
    """
    unnamed = re.search(r"(\d+)(_GLOBAL__N_)", name)
    if unnamed:
        name = name[:unnamed.start()] + "unnamed " + name[unnamed.start(2) + int(unnamed[1]):]
    return name.partition("EEv")[0]


def table(emulated, module, arch):
    """Returns lines of the file: of every kernel that both modules have."""
    needs = collections.defaultdict(list)
    for name, kernel in cubin.resources_of(module, arch).items():
        needs[key(name)].append(kernel)
    places = {place: needs.get(key(launches.as_compiled(name)), []) for place, name in launches.symbols(emulated).items()}
    return [f"{place} {max(one.registers for one in found)} {min(one.most_threads for one in found)}"
            for place, found in sorted(places.items()) if found]


def main(emulated, module, arch, file, *command):
    try:
        lines = table(emulated, module, int(arch))
    except cubin.Missing as missing:
        print(missing)
        return SKIPPED
    if not lines:
        print(f"{module} and {emulated} have no kernel in common", file=sys.stderr)
        return 1
    pathlib.Path(file).write_text("\n".join(lines) + "\n")
    return subprocess.run(command, env=os.environ | {"FAKE_CUDA_REGISTERS": file}).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
