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
MODULE = "tests/emu/lib/libyoke_cuda.so"
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
def symbols(module, *how):
    """Returns {offset: mangled name} of a library's functions; with "--demangle" names are demangled."""
    said = subprocess.run(["nm", "--defined-only", *how, module], capture_output=True, text=True, check=True).stdout
    found = (line.split(maxsplit=2) for line in said.splitlines())
    return {int(parts[0], 16): parts[2] for parts in found if len(parts) == 3 and parts[1] in "tTwW"}


def as_compiled(name):
    """Returns the name that nvcc gives the kernel, in another inline namespace."""
    return name.replace("8emulated", "4base").replace("_ZL", "_Z")


def lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def read(path, names):
    launches = []
    for one in lines(path):
        if "call" in one:  # a library's kernel, a copy or a fill
            continue
        launches.append(Launch(one["op"], as_compiled(names.get(one["kernel"], "")), one["blocks"], one["threads"], one["shared"],
                               bytes.fromhex(one["parameters"]), one["operands"]))
    return launches


def run(build, record, script, *arguments, **settings):
    """Runs a script on the emulated device, whose launches are written to a file."""
    driver = build / "tests/fakes/cuda/driver"
    environment = os.environ | settings | {
        "YOKE_EMU_RECORD": record, "LD_LIBRARY_PATH": f"{(build / MODULE).parent}:{driver}", "YOKE_CUDA_LIB_PATH": str(driver), "FAKE_CUDA_MEMORY": "16384",
        "PYTHONPATH": f"{build / 'python'}:{ROOT / 'examples'}:{ROOT / 'benchmarks'}"}
    done = subprocess.run([sys.executable, script, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-600:]}")


@functools.cache
def recorded(build, case, multiprocessors):
    """Returns the launches of a repetition of a case on a card of so many multiprocessors."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        # Own kernels are what is predicted.
        run(build, file.name, __file__, case, FAKE_CUDA_MULTIPROCESSORS=str(multiprocessors), YOKE_CUDNN_ENABLED="0")
        names = symbols(build / MODULE)
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
