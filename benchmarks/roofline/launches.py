"""Launches of the benchmark's cases on the emulated device: `launches.py CASE` in its environment writes them to the file
YOKE_EMU_RECORD; `recorded` runs this script for a card and reads the file.
"""
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MARK = "erf"
ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Launch:
    op: str
    kernel: str  # the mangled name in a module for a card
    blocks: list
    threads: int
    shared: int
    parameters: bytes
    operands: list  # (address, bytes, dtype)


@functools.cache
def symbols(module):
    """Returns {offset: mangled name} of a library's functions."""
    said = subprocess.run(["nm", "--defined-only", module], capture_output=True, text=True, check=True).stdout
    found = (line.split() for line in said.splitlines())
    return {int(parts[0], 16): parts[2] for parts in found if len(parts) == 3 and parts[1] in "tTwW"}


def as_compiled(name):
    """Returns the name that nvcc gives the kernel, in another inline namespace."""
    return name.replace("8emulated", "4base").replace("_ZL", "_Z")


def read(path, names):
    launches = []
    for line in pathlib.Path(path).read_text().splitlines():
        one = json.loads(line)
        launches.append(Launch(one["op"], as_compiled(names.get(one["kernel"], "")), one["blocks"], one["threads"], one["shared"],
                               bytes.fromhex(one["parameters"]), one["operands"]))
    return launches


@functools.cache
def recorded(build, case, multiprocessors):
    """Returns the launches of a repetition of a case on a card of so many multiprocessors."""
    folder, driver = build / "tests/emu/lib", build / "tests/fakes/cuda/driver"
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        environment = os.environ | {"YOKE_EMU_RECORD": file.name, "LD_LIBRARY_PATH": f"{folder}:{driver}",
                                    "YOKE_CUDA_LIB_PATH": str(driver), "FAKE_CUDA_MULTIPROCESSORS": str(multiprocessors), "FAKE_CUDA_MEMORY": "16384",
                                    "YOKE_CUDNN_ENABLED": "0",  # own kernels are what is predicted
                                    "PYTHONPATH": f"{build / 'python'}:{ROOT / 'examples'}:{ROOT / 'benchmarks'}"}
        done = subprocess.run([sys.executable, __file__, case], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{case}: {done.stderr[-600:]}")
        names = symbols(folder / "libyoke_cuda.so")
        launches = read(file.name, names)
    ends = [i for i, one in enumerate(launches) if one.op == MARK]  # between what comes before and the case
    if not ends:
        raise RuntimeError(f"{case}: no launch of {MARK} among {sorted({one.op for one in launches})}")
    return tuple(launches[ends[-1] + 1:])


def of_one(function):
    """Returns a case of float32 rows that no benchmark has."""
    def case(_, gpu_yoke):
        x = gpu_yoke.normal((gpu_yoke.rows("f32"), gpu_yoke.S.width), "f32")
        return lambda i: function(x[i % 2])
    return case


def moments(yoke, gpu_yoke):
    x = gpu_yoke.normal((32, 64, 2048), "f32")
    return lambda i: yoke.batch_norm(x[i % 2], training=True)


OTHERS = {"pow": of_one(lambda x: x ** 2.5), "cumsum": of_one(lambda x: x.cumsum(-1)), "moments": moments}


def main(case):
    sys.argv = [sys.argv[0], "cuda:0"]
    sys.path.insert(0, str(ROOT / "benchmarks/workers"))
    import gpu_yoke
    import yoke
    name, *arguments = case.split()
    with yoke.no_grad():
        once = OTHERS[name](yoke, gpu_yoke) if name in OTHERS else gpu_yoke.kernel(name, tuple(arguments))
        kept = [once(0)]
        yoke.erf(yoke.zeros(2))
        kept.append(once(1))


if __name__ == "__main__":
    main(sys.argv[1])
