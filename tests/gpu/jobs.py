"""Tests of a run on a GPU, as jobs that run side by side: what each needs, its command and its time. figures.py has the measurements."""

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
from notes import all_skipped, gtest_note, last_line, learned, pytest_note, sanitizer_note, training_note

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = pathlib.Path("/usr/share/datasets/fashion-mnist")
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")
LIMIT = "@LIMIT@"  # in a command: seconds until the part's end, less the time for its shutdown
GROUPS = ("contract", "compare", "sizes", "memcheck", "nccl", "racecheck", "jobs", "suite")
KEPT = "emulated.npz"  # the emulated half of compare, which travels
# The longest files of the suite, which begin first.
LONGEST = ("ops_grad", "ops_table", "ops_autograd", "ops_edges", "ops_matmul", "ops_conv", "ops_reduce")
REHEARSED = ("grad_scaler", "graph", "nn", "ops_fused", "ops_loss", "streams")  # files of a rehearsal with tiny sizes


@dataclasses.dataclass
class Job:
    name: str
    group: str  # the part of --only to which the job belongs
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
    results: Optional[pathlib.Path] = None  # where the report is written
    carried: Optional[pathlib.Path] = None  # file with the emulated half of compare
    sources: str = ""

    def run(self, *command):
        """Returns a command of the build's Python."""
        return [self.build / "env", self.python, *command]


def lacks(python, *modules):
    """Returns the modules that this Python does not have, and how to install them; or ""."""
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    return f"{python} has no {' and no '.join(missing)}: {python} -m pip install {' '.join(missing)}" if missing else ""


def pytest_command(setting, *options):
    """Returns a pytest that loads no plug-in of the machine, except xdist if asked for."""
    return setting.run("-m", "pytest", "-q", "-rfEs", "--tb=short", "-p", "no:cacheprovider", *options)


PLAIN_PYTEST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


# ---- trainings -------------------------------------------------------------------------------------------------------


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


# ---- what shows most about a new device ------------------------------------------------------------------------------


def contract_job(setting):
    suite, module = setting.build / "tests" / "test_backend_all", setting.build / "lib" / "libyoke_cuda.so"
    return Job("contract suite", "contract", [setting.build / "env", suite, "--gtest_filter=*/cuda", "--gtest_brief=1"], 120,
               gtest_note, {"YOKE_TEST_CUDA_MODULE": str(module)},
               "" if suite.exists() else "it was not built: there is no GoogleTest")


def compare_jobs(setting):
    """Yields the op table on the device beside the CPU and the emulated device, by own kernels, and beside the CPU by cuDNN."""
    emulated = (setting.build / "tests" / "emu" / "lib" / "libyoke_cuda.so").exists()
    others = "cpu,emulated" if emulated or setting.carried else "cpu"
    command = setting.run("tests/gpu/compare.py", "--seconds", LIMIT, *["--small"] * setting.small, "--sources", setting.sources)
    carried = ["--carried", setting.carried] if setting.carried else []
    lacking = lacks(setting.python, "numpy")
    yield Job("device against CPU and emulation", "compare", [*command, "--folder", setting.logs / "compare", "--others", others, *carried], 400,
              last_line, lacking=lacking)
    yield Job("device by cuDNN against CPU", "compare", [*command, "--folder", setting.logs / "compare-cudnn", "--others", "cpu", "--cudnn", "--ops",
                                                         "conv1d,conv2d,conv_transpose2d,scaled_dot_product_attention"], 200, last_line, lacking=lacking)


def sizes_jobs(setting):
    """Yields layers of real nets, by own kernels and by cuDNN, beside the CPU."""
    for family in ("convolutions", "attention", "rows", "products"):
        yield Job(f"real sizes: {family}", "sizes", setting.run("tests/gpu/sizes.py", family, "--seconds", LIMIT, *["--small"] * setting.small), 240,
                  last_line, lacking=lacks(setting.python, "numpy"))


def sanitizer_jobs(setting, check, parts=4):
    """Yields one pass over the op table under a tool of compute-sanitizer."""
    tool = shutil.which("compute-sanitizer", path=setting.variables["PATH"]) or "/usr/local/cuda/bin/compute-sanitizer"
    lacking = lacks(setting.python, "numpy") if pathlib.Path(tool).exists() else "there is no compute-sanitizer"
    for part in range(parts):
        command = [setting.build / "env", tool, "--tool", check, "--error-exitcode", "9", "--target-processes", "all",
                   setting.python, "tests/gpu/samples.py", "cuda", setting.logs / f"{check}-{part}.npz", "--small", "--once",
                   "--part", f"{part}/{parts}", "--seconds", LIMIT]
        yield Job(f"{check}, part {part + 1}", check, command, 400, sanitizer_note,
                  {"YOKE_NO_CACHING": "1", "YOKE_CUDNN_ENABLED": "0"}, lacking)


# ---- the rest --------------------------------------------------------------------------------------------------------


def nccl_job(setting):
    """Tests a single rank through the real NCCL: the most that a single card can prove about groups."""
    files = [ROOT / "tests" / "python" / "test_nccl_one_rank.py"]
    if (setting.build / "bin" / "yoke").exists():
        files.append(ROOT / "tests" / "cli" / "test_bench_nccl.py")
    return Job("NCCL, one rank a card", "nccl", pytest_command(setting, *files), 180, pytest_note,
               {**PLAIN_PYTEST, "YOKE_TEST_DEVICE": "cuda", "YOKE_BUILD_DIR": str(setting.build)}, lacks(setting.python, "pytest", "numpy"),
               skipped=all_skipped)


def on_device(small):
    """Returns the files of Python's tests that concern a device, the longest first; for a rehearsal a few of them."""
    folder = ROOT / "tests" / "python"
    names = re.findall(r"^(\w+) \|", (folder / "device_files.txt").read_text(encoding="utf-8"), re.MULTILINE)
    files = sorted({*(folder / f"test_{name}.py" for name in names), *folder.glob("test_ops_*.py")})
    chosen = [file for file in files if not small or file.stem.removeprefix("test_") in REHEARSED]
    return sorted(chosen, key=lambda file: file.stem.removeprefix("test_") not in LONGEST)


def suite_jobs(setting):
    """Yields a job for each file of Python's tests; with pytest-xdist four processes share a file."""
    shared = ["-p", "xdist.plugin", "-n", "4"] if importlib.util.find_spec("xdist") else []
    for file in on_device(setting.small):
        yield Job(file.stem, "suite", pytest_command(setting, *shared, file), 400, pytest_note,
                  {**PLAIN_PYTEST, "YOKE_TEST_DEVICE": "cuda", "YOKE_NUM_THREADS": "2"}, lacks(setting.python, "pytest", "numpy"),
                  skipped=all_skipped)


def tests(setting):
    """Returns all tests. First come the tests that show most about a new device."""
    return [contract_job(setting), *compare_jobs(setting), *sizes_jobs(setting), *sanitizer_jobs(setting, "memcheck"), nccl_job(setting),
            *training_jobs(setting, lua=False), *suite_jobs(setting), *training_jobs(setting, lua=True), *sanitizer_jobs(setting, "racecheck", 2)]


def emulated_half_job(setting):
    """Returns the job that records the emulated half of compare, for a machine that need not have the emulated device."""
    module = setting.build / "tests" / "emu" / "lib" / "libyoke_cuda.so"
    return Job("emulated half of compare", "build", setting.run("tests/gpu/compare.py", "--folder", setting.logs / "compare", "--keep", setting.results / KEPT,
                                                                "--seconds", LIMIT, "--sources", setting.sources, *["--small"] * setting.small), 1800, last_line,
               lacking=lacks(setting.python, "numpy") if module.exists() else "the emulated kernels were not built")
