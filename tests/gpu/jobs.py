"""The tests that run.py runs side by side on a GPU: what each needs, its command and its time."""

import dataclasses
import gzip
import importlib.util
import pathlib
import random
import re
import shutil
import struct
from typing import Callable, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = pathlib.Path("/usr/share/datasets/fashion-mnist")
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")

# Beside test_ops_*.py, the files of tests/python whose tests are about what a device computes.
MORE_TESTS = ("autocast", "grad_scaler", "index_select", "indexing", "nn", "nn_init", "nn_layers", "optim", "random_state",
              "graph", "streams", "float8")
# Few calls of each family, of the small samples: what a sanitizer sees.
SANITIZED = "add,gelu,sum,softmax,layer_norm,cross_entropy,matmul,embedding,cumsum,sort,where,index_select"
SANITIZER_SECONDS = 150


@dataclasses.dataclass
class Job:
    name: str
    group: str
    command: list
    seconds: float
    note: Optional[Callable[[str], str]] = None
    variables: dict = dataclasses.field(default_factory=dict)
    lacking: str = ""  # why it cannot run here
    check: Optional[Callable[[str], str]] = None  # what is wrong with an output, though the program ended well


# ---- what is recorded of an output -----------------------------------------------------------------------------------


def left_out(output):
    """What the build goes without, as CMake said it."""
    return "; ".join(line.removeprefix("-- ") for line in output.splitlines() if line.startswith("-- building without"))


def last_line(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def pytest_note(output):
    """pytest's last count, or how far it came, and the first tests that failed."""
    counts = re.findall(r"^=* ?((?:\d+ \w+,? ?)+ in [\d.]+s)", output, re.MULTILINE)
    marks = "".join(re.findall(r"^([.FEsxX]+)(?: *\[.*)?$", output, re.MULTILINE))
    failed = [line.split(" - ")[0].removeprefix("FAILED ").split("::", 1)[-1] for line in output.splitlines()
              if line.startswith(("FAILED ", "ERROR "))]
    so_far = f"until then {marks.count('.')} passed, {marks.count('F') + marks.count('E')} failed" if marks else last_line(output)
    text = counts[-1] if counts else so_far
    return text + (f"; failed: {', '.join(name[:70] for name in failed[:4])}{' …' if len(failed) > 4 else ''}" if failed else "")


def gtest_note(output):
    lines = re.findall(r"\[ *(?:PASSED|FAILED|SKIPPED) *\] .*", output)
    return "; ".join(dict.fromkeys(" ".join(line.split()) for line in lines[-6:]))


def training_note(output):
    return "; ".join(line for line in output.splitlines()
                     if line.startswith(("images/s", "tokens/s", "loss:", "test accuracy", "peak memory")))


def learned(output):
    """Whether a training's loss fell."""
    losses = re.search(r"^loss: ([\d.]+|nan|inf) to ([\d.]+|nan|inf)", output, re.MULTILINE)
    return "" if losses and float(losses[2]) < 0.9 * float(losses[1]) else "the loss did not fall"


def sanitizer_note(output):
    """The tool's verdict, and what ran under it."""
    found = re.findall(r"========= (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", output)
    ran = re.findall(r"^recorded: .*", output, re.MULTILINE)
    return "; ".join([*found[-1:], *ran[-1:]]) or last_line(output)


# ---- the jobs --------------------------------------------------------------------------------------------------------


def make_pictures(folder):
    """A set like Fashion-MNIST that can be learned: ten patterns under noise. Its files are not compressed."""
    draw = random.Random(1)
    patterns = [bytes(draw.choice((40, 215)) for _ in range(784)) for _ in range(10)]
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 12800), ("t10k", 1000)):
        kinds = [draw.randrange(10) for _ in range(count)]
        noise = [bytes(draw.randrange(0, 40) for _ in range(784)) for _ in range(16)]
        pictures = b"".join((int.from_bytes(patterns[kind], "big") + int.from_bytes(noise[i % 16], "big")).to_bytes(784, "big")
                            for i, kind in enumerate(kinds))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + pictures)
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(struct.pack(">2I", 0x801, count) + bytes(kinds))
    return folder


def pictures_folder(build, logs):
    """The real set where it is and this build inflates it."""
    real = PICTURES / "train-images-idx3-ubyte.gz"
    cache = build / "CMakeCache.txt"
    without = cache.exists() and re.search(r"ZLIB_INCLUDE_DIR:\w+=.*NOTFOUND", cache.read_text())
    if not real.exists():
        return make_pictures(logs / "pictures")
    if not without:
        return PICTURES
    folder = logs / "inflated"
    folder.mkdir(parents=True, exist_ok=True)
    for file in PICTURES.glob("*.gz"):
        (folder / file.name).write_bytes(gzip.decompress(file.read_bytes()))
    return folder


def training_jobs(build, logs, python):
    text = TEXT if TEXT.exists() else ROOT / "docs" / "design.md"
    pictures, env = pictures_folder(build, logs), build / "env"
    for amp in ("off", "bf16", "f16"):
        yield Job(f"main job, {amp}", "jobs", [env, python, "examples/fashion_mnist.py", "--device", "cuda", "--epochs", "1",
                                               "--amp", amp, "--data", pictures], 90, training_note, check=learned)
        yield Job(f"GPT, {amp}", "jobs", [env, python, "examples/gpt.py", "--device", "cuda", "--steps", "100", "--amp", amp,
                                          "--text", text], 90, training_note, check=learned)
    lua = next(filter(None, map(shutil.which, ("lua5.4", "lua-5.4", "lua54", "lua"))), None)
    built = (build / "lua" / "yoke" / "core.so").exists()
    lacking = "there is no Lua" if not lua else "" if built else "the Lua binding was not built"
    for name, options in (("fashion_mnist", ["--epochs", "1", "--data", pictures]), ("gpt", ["--steps", "100", "--text", text])):
        yield Job(f"{name}.lua, bf16", "jobs", [env, lua, f"examples/{name}.lua", "--device", "cuda", "--amp", "bf16", *options],
                  90, training_note, lacking=lacking, check=learned)


def op_test_jobs(build, python):
    """One file of tests a job; with pytest-xdist four processes share it."""
    folder = ROOT / "tests" / "python"
    longest = [folder / f"test_ops_{name}.py" for name in ("grad", "table", "autograd")]
    files = longest + [file for file in sorted(folder.glob("test_ops_*.py")) if file not in longest]
    files += [folder / f"test_{name}.py" for name in MORE_TESTS if (folder / f"test_{name}.py").exists()]
    shared = ["-n", "4"] if importlib.util.find_spec("xdist") else []
    lacking = "" if importlib.util.find_spec("pytest") else f"{python} has no pytest"
    for file in files:
        yield Job(file.stem, "ops", [build / "env", python, "-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider",
                                     *shared, file], 400, pytest_note,
                  {"YOKE_TEST_DEVICE": "cuda", "YOKE_NUM_THREADS": "2"}, lacking)


def sanitizer_jobs(build, logs, python):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    lacking = "" if pathlib.Path(tool).exists() else "there is no compute-sanitizer"
    for check in ("memcheck", "racecheck"):
        for part in range(2):
            command = [build / "env", tool, "--tool", check, "--error-exitcode", "9", "--target-processes", "all", python,
                       "tests/gpu/compare.py", "--folder", logs / f"{check}-{part}.npz", "--record", "cuda", "--small",
                       "--ops", ",".join(SANITIZED.split(",")[part::2]), "--seconds", SANITIZER_SECONDS - 15]  # the end takes some
            yield Job(f"{check}, part {part + 1}", "sanitizer", command, SANITIZER_SECONDS, sanitizer_note, {"YOKE_NO_CACHING": "1"}, lacking)


def all_jobs(build, logs, python, seconds):
    """Those that take longest first."""
    suite, module = build / "tests" / "test_backend_all", build / "lib" / "libyoke_cuda.so"
    emulated = (build / "tests" / "emu" / "lib" / "libyoke_cuda.so").exists()
    torch = "" if importlib.util.find_spec("torch") else f"{python} has no PyTorch"
    return [
        Job("contract suite", "contract", [build / "env", suite, "--gtest_filter=*/cuda", "--gtest_brief=1"], 120, gtest_note,
            {"YOKE_TEST_CUDA_MODULE": str(module)}, "" if suite.exists() else "it was not built: there is no GoogleTest"),
        Job("device against CPU and emulation", "compare",
            [build / "env", python, "tests/gpu/compare.py", "--folder", logs / "compare", "--seconds", f"{seconds - 15:.0f}",
             "--others", "cpu,emulated" if emulated else "cpu"], 400, last_line),
        Job("torch.compile, once", "jobs", [build / "env", python, "benchmarks/workers/gpu_torch.py", "cuda", "--prepare"], 150,
            last_line, {"PYTHONPATH": str(ROOT / "benchmarks")}, torch),
        *sanitizer_jobs(build, logs, python),
        *training_jobs(build, logs, python),
        *op_test_jobs(build, python),
    ]
