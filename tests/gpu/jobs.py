"""Jobs of run.py on a GPU: parallel tests, and benchmarks one after another; with requirements, commands and times."""

import dataclasses
import gzip
import importlib.util
import pathlib
import random
import re
import shutil
import struct
from typing import Callable, Optional

import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = pathlib.Path("/usr/share/datasets/fashion-mnist")
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")
LIMIT = "@LIMIT@"  # in a command: seconds until the part's end, less the time for its shutdown

# Files of tests/python, besides test_ops_*.py, with tests of a device's results.
MORE_TESTS = ("autocast", "grad_scaler", "grad_scaler_ends", "index_select", "indexing", "nn", "nn_init", "nn_layers", "optim", "random_state",
              "graph", "streams", "float8", "state_device")
# Few calls of each family, of the small samples: what a sanitizer sees.
SANITIZED = "add,gelu,sum,softmax,layer_norm,cross_entropy,matmul,embedding,cumsum,sort,where,index_select"
# Groups of benchmarks/gpu.py, the most important first: (name, most seconds, fewest seconds for a useful result).
BENCHMARKS = (("memory", 110, 40), ("calls", 40, 15), ("gemm", 90, 30), ("attention", 70, 25), ("main", 70, 30),
              ("steps", 110, 40), ("graphs", 60, 20), ("mixed", 60, 25))
BY_TORCH = ("attention", "main", "steps")  # PyTorch is the only peer here
PREPARED = "main"  # before this group torch.compile has compiled once
GROUPS = ("contract", "nccl", "sanitizer", "jobs", "compare", "ops")  # all groups of tests


@dataclasses.dataclass
class Job:
    name: str
    group: str
    command: list
    seconds: float
    note: Optional[Callable[[str], str]] = None
    variables: dict = dataclasses.field(default_factory=dict)
    lacking: str = ""  # why it cannot run here
    check: Optional[Callable[[str], str]] = None  # finds problems in the output of a successful program
    least: float = 3  # with fewer seconds the job does not begin
    figures: Optional[pathlib.Path] = None  # file for measurements, as they come
    skipped: Optional[Callable[[str], str]] = None  # why a successful program did no work, else ""

    def limited(self, seconds):
        """Returns the command for so many seconds."""
        return [str(part).replace(LIMIT, f"{max(1.0, seconds - 15):.0f}") for part in self.command]


@dataclasses.dataclass
class Setting:
    """Common inputs of jobs."""

    build: pathlib.Path
    logs: pathlib.Path
    python: str
    variables: dict
    packages: Optional[pathlib.Path] = None  # carried packages, unpacked
    card: str = ""
    capability: str = ""
    small: bool = False  # tiny sizes, for a rehearsal


# ---- notes on an output ----------------------------------------------------------------------------------------------


def left_out(output):
    """Returns the missing parts of the build, from CMake's output."""
    return "; ".join(line.removeprefix("-- ") for line in output.splitlines() if line.startswith("-- building without"))


def last_line(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def pytest_note(output):
    """Returns pytest's last count, or the progress so far, and the first failed tests."""
    counts = re.findall(r"^=* ?((?:\d+ \w+,? ?)+ in [\d.]+s)", output, re.MULTILINE)
    marks = "".join(re.findall(r"^([.FEsxX]+)(?: *\[.*)?$", output, re.MULTILINE))
    failed = [line.split(" - ")[0].removeprefix("FAILED ").split("::", 1)[-1] for line in output.splitlines()
              if line.startswith(("FAILED ", "ERROR "))]
    so_far = f"until then {marks.count('.')} passed, {marks.count('F') + marks.count('E')} failed" if marks else last_line(output)
    text = counts[-1] if counts else so_far
    return text + (f"; failed: {', '.join(name[:70] for name in failed[:4])}{' …' if len(failed) > 4 else ''}" if failed else "")


def all_skipped(output):
    """Returns why pytest skipped all tests, or ""."""
    reasons = re.findall(r"^SKIPPED \[\d+\] [^:]+:\d+: (.*)$", output, re.MULTILINE)
    return reasons[0] if reasons and re.fullmatch(r"=* ?\d+ skipped in .*", last_line(output)) else ""


def gtest_note(output):
    lines = re.findall(r"\[ *(?:PASSED|FAILED|SKIPPED) *\] .*", output)
    return "; ".join(dict.fromkeys(" ".join(line.split()) for line in lines[-6:]))


def training_note(output):
    return "; ".join(line for line in output.splitlines()
                     if line.startswith(("images/s", "tokens/s", "loss:", "test accuracy", "peak memory")))


def learned(output):
    """Tells whether a training's loss fell."""
    losses = re.search(r"^loss: ([\d.]+|nan|inf) to ([\d.]+|nan|inf)", output, re.MULTILINE)
    return "" if losses and float(losses[2]) < 0.9 * float(losses[1]) else "the loss did not fall"


def sanitizer_note(output):
    """Returns the tool's verdict, and the samples that ran under the tool."""
    found = re.findall(r"========= (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", output)
    ran = re.findall(r"^recorded: .*", output, re.MULTILINE)
    return "; ".join([*found[-1:], *ran[-1:]]) or last_line(output)


# ---- the jobs --------------------------------------------------------------------------------------------------------


def make_pictures(folder, train=12800, test=1000):
    """Makes a learnable set like Fashion-MNIST: ten patterns under noise. The files are not compressed."""
    draw = random.Random(1)
    patterns = [bytes(draw.choice((40, 215)) for _ in range(784)) for _ in range(10)]
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        kinds = [draw.randrange(10) for _ in range(count)]
        noise = [bytes(draw.randrange(0, 40) for _ in range(784)) for _ in range(16)]
        pictures = b"".join((int.from_bytes(patterns[kind], "big") + int.from_bytes(noise[i % 16], "big")).to_bytes(784, "big")
                            for i, kind in enumerate(kinds))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + pictures)
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(struct.pack(">2I", 0x801, count) + bytes(kinds))
    return folder


def pictures_folder(build, logs, small):
    """Returns the folder of the real set if there is one, decompressed if this build cannot decompress."""
    real = PICTURES / "train-images-idx3-ubyte.gz"
    cache = build / "CMakeCache.txt"
    without = cache.exists() and re.search(r"ZLIB_INCLUDE_DIR:\w+=.*NOTFOUND", cache.read_text())
    if small:
        return make_pictures(logs / "pictures-small", 512, 128)
    if not real.exists():
        return make_pictures(logs / "pictures")
    if not without:
        return PICTURES
    folder = logs / "inflated"
    folder.mkdir(parents=True, exist_ok=True)
    for file in PICTURES.glob("*.gz"):
        (folder / file.name).write_bytes(gzip.decompress(file.read_bytes()))
    return folder


def contract_job(setting):
    suite, module = setting.build / "tests" / "test_backend_all", setting.build / "lib" / "libyoke_cuda.so"
    return Job("contract suite", "contract", [setting.build / "env", suite, "--gtest_filter=*/cuda", "--gtest_brief=1"], 120,
               gtest_note, {"YOKE_TEST_CUDA_MODULE": str(module)},
               "" if suite.exists() else "it was not built: there is no GoogleTest")


def nccl_job(setting):
    """Tests a single rank through the real NCCL: the most that a single card can prove about groups."""
    files = [ROOT / "tests" / "python" / "test_nccl_one_rank.py"]
    if (setting.build / "bin" / "yoke").exists():
        files.append(ROOT / "tests" / "cli" / "test_bench_nccl.py")
    return Job("NCCL, one rank a card", "nccl", [setting.build / "env", setting.python, "-m", "pytest", "-q", "-rfEs", "--tb=short",
                                                 "-p", "no:cacheprovider", *files], 180, pytest_note,
               {"YOKE_TEST_DEVICE": "cuda", "YOKE_BUILD_DIR": str(setting.build)},
               "" if importlib.util.find_spec("pytest") else f"{setting.python} has no pytest", skipped=all_skipped)


def sanitizer_jobs(setting, check):
    tool = shutil.which("compute-sanitizer", path=setting.variables["PATH"]) or "/usr/local/cuda/bin/compute-sanitizer"
    lacking = "" if pathlib.Path(tool).exists() else "there is no compute-sanitizer"
    for part in range(2):
        command = [setting.build / "env", tool, "--tool", check, "--error-exitcode", "9", "--target-processes", "all",
                   setting.python, "tests/gpu/compare.py", "--folder", setting.logs / f"{check}-{part}.npz", "--record", "cuda",
                   "--small", "--ops", ",".join(SANITIZED.split(",")[part::2]), "--seconds", LIMIT]
        yield Job(f"{check}, part {part + 1}", "sanitizer", command, 150, sanitizer_note, {"YOKE_NO_CACHING": "1"}, lacking)


def training_jobs(setting, lua):
    """Yields the main job and the GPT, in Python or in Lua. Tiny trainings are too short to learn."""
    text = TEXT if TEXT.exists() else ROOT / "docs" / "design.md"
    pictures = ["--epochs", "1", "--data", pictures_folder(setting.build, setting.logs, setting.small)]
    steps = ["--steps", "100", "--text", text]
    if setting.small:
        steps += "--layers 1 --width 32 --heads 2 --context 16 --batch 2 --sample 4 --steps 3".split()
    check = None if setting.small else learned
    env = setting.build / "env"
    if not lua:
        for amp in ("off", "bf16", "f16"):
            for name, script, options in (("main job", "fashion_mnist", pictures), ("GPT", "gpt", steps)):
                yield Job(f"{name}, {amp}", "jobs", [env, setting.python, f"examples/{script}.py", "--device", "cuda", "--amp", amp,
                                                     *options], 90, training_note, check=check)
        return
    interpreter, variables = machine.find_lua(setting.variables, setting.packages)
    built = (setting.build / "lua" / "yoke" / "core.so").exists()
    lacking = "there is no Lua 5.4" if not interpreter else "" if built else "the Lua binding was not built"
    for name, options in (("fashion_mnist", pictures), ("gpt", steps)):
        yield Job(f"{name}.lua, bf16", "jobs", [env, interpreter, f"examples/{name}.lua", "--device", "cuda", "--amp", "bf16",
                                                *options], 90, training_note, variables, lacking, check)


def op_test_jobs(setting):
    """Yields a job for each file of tests, the longest first; with pytest-xdist four processes share a file."""
    folder = ROOT / "tests" / "python"
    longest = [folder / f"test_ops_{name}.py" for name in ("grad", "table", "autograd")]
    files = longest + [file for file in sorted(folder.glob("test_ops_*.py")) if file not in longest]
    files += [folder / f"test_{name}.py" for name in MORE_TESTS if (folder / f"test_{name}.py").exists()]
    shared = ["-n", "4"] if importlib.util.find_spec("xdist") else []
    lacking = "" if importlib.util.find_spec("pytest") else f"{setting.python} has no pytest"
    for file in files:
        yield Job(file.stem, "ops", [setting.build / "env", setting.python, "-m", "pytest", "-q", "-rfE", "--tb=short",
                                     "-p", "no:cacheprovider", *shared, file], 400, pytest_note,
                  {"YOKE_TEST_DEVICE": "cuda", "YOKE_NUM_THREADS": "2"}, lacking)


def compare_job(setting):
    emulated = (setting.build / "tests" / "emu" / "lib" / "libyoke_cuda.so").exists()
    return Job("device against CPU and emulation", "compare",
               [setting.build / "env", setting.python, "tests/gpu/compare.py", "--folder", setting.logs / "compare",
                "--seconds", LIMIT, "--others", "cpu,emulated" if emulated else "cpu"], 400, last_line)


def tests(setting):
    """Returns all tests. First come the tests that show most about a new device: the suite, memcheck, the trainings."""
    return [contract_job(setting), nccl_job(setting), *sanitizer_jobs(setting, "memcheck"), *training_jobs(setting, lua=False), compare_job(setting),
            *op_test_jobs(setting), *training_jobs(setting, lua=True), *sanitizer_jobs(setting, "racecheck")]


def without_torch(setting):
    return "" if importlib.util.find_spec("torch") else f"{setting.python} has no PyTorch"


def prepare_job(setting):
    return Job("torch.compile, once", "bench", [setting.build / "env", setting.python, "benchmarks/workers/gpu_torch.py", "cuda",
                                                "--prepare", *["--small"] * setting.small], 150, last_line,
               {"PYTHONPATH": str(ROOT / "benchmarks")}, without_torch(setting), least=20)


def benchmarks(setting):
    """Yields a process for each group, so a hang or crash in a group does not affect the other groups."""
    for name, seconds, least in BENCHMARKS:
        file = setting.logs / f"bench-{name}.json"
        yield Job(f"bench {name}", "bench", [setting.build / "env", setting.python, "benchmarks/gpu.py", "--only", name,
                                             "--json", file, "--capability", setting.capability, "--card", setting.card,
                                             "--seconds", LIMIT, *["--small"] * setting.small],
                  seconds, last_line, lacking=without_torch(setting) if name in BY_TORCH else "", least=least, figures=file)
