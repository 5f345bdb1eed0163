"""Choosing among the cards of scenarios: the emulated CUDA module over the fake driver, beside the fake NVML."""
import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", "/nowhere"))
DRIVER = BUILD / "tests" / "fakes" / "cuda" / "driver"
MODULE = BUILD / "tests" / "emu" / "lib"
NVML = BUILD / "tests" / "fakes" / "edge" / "libnvidia-ml.so.1"
BEGIN = """
import ctypes, yoke
def contexts(): return ctypes.CDLL("libcuda.so.1").fake_held(0)
def error_of(call, *args, **constraints):
    try:
        call(*args, **constraints)
    except yoke.Error as error:
        return type(error).__name__, str(error)
    raise SystemExit("nothing was raised")
"""

pytestmark = pytest.mark.skipif(not ((MODULE / "libyoke_cuda.so").is_file() and NVML.is_file()),
                                reason="no emulated CUDA module or no fake NVML was built")


@pytest.fixture
def machine(tmp_path):
    """machine(scenario) gives the environment of a process on it; with nvml=False there is no NVML."""
    def machine(scenario, nvml=True, **variables):
        subprocess.run([sys.executable, "-B", ROOT / "tests" / "fakes" / "edge" / "render.py", scenario, tmp_path,
                        "--nvml", NVML if nvml else "none"], check=True, capture_output=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "YOKE_"))}
        lines = (tmp_path / "environment").read_text(encoding="utf-8").splitlines()
        return {**clean, **dict(line.split("=", 1) for line in lines), "YOKE_CUDA_LIB_PATH": str(DRIVER),
                "YOKE_LEASE_DIR": str(tmp_path / "leases"),
                "LD_LIBRARY_PATH": f"{MODULE}:{DRIVER}:{os.environ.get('LD_LIBRARY_PATH', '')}", **variables}
    return machine


def run(environment, script):
    """Returns the output of a script in this environment, line by line, and its log."""
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, check=False,
                          env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_a_card_whose_mode_lets_nobody_in_is_not_chosen_though_it_can_be_opened(machine):
    (verdicts, error), _ = run(machine("exclusive-mode"), """
print([(v.device, v.accepted) for v in yoke.explain("auto:kind=cuda")])
assert [str(d) for d in yoke.select(kind="cuda")] == ["cuda:2"]
print(*error_of(yoke.select, 2, kind="cuda"))
""")
    assert all(verdict in verdicts for verdict in ("('cuda:2', True)", "('cuda:0', False)", "('cuda:1', False)"))
    assert error.startswith("DeviceUnavailableError ") and "only 1 of the 2" in error
    assert "process 8123 (tritonserver) uses the GPU" in error and "'prohibited'" in error


def test_choosing_makes_a_context_on_no_card_but_the_chosen_one(machine):
    run(machine("8xH100-nvlink", nvml=False), """
yoke.devices()
assert [d.total_memory >> 20 for d in yoke.devices("cuda")] == [81559] * 8 and contexts() == 0
yoke.explain("auto:min_free=8GiB")
assert contexts() == 0
yoke.select(kind="cuda", name="H100")
assert contexts() == 1, contexts()
assert yoke.device("cuda:0").free_memory > 0
before = contexts()
yoke.explain("cuda")
assert contexts() == before
yoke.select(kind="cuda", min_free="8GiB")  # only the driver reports how much is free
assert contexts() == 8, contexts()
""")


def test_a_card_that_does_not_tell_its_free_memory_says_why(machine):
    (said,), _ = run(machine("8xH100-nvlink", nvml=False, FAKE_CUDA_FAIL="cuDevicePrimaryCtxRetain=46"), """
print(*error_of(yoke.select, kind="cuda", min_free="8GiB"))
""")
    assert said.startswith("DeviceUnavailableError ")
    assert "the free memory cannot be read" in said and "cuDevicePrimaryCtxRetain" in said


def test_a_lease_file_that_somebody_locked_otherwise_is_no_endless_loop(machine, tmp_path):
    environment = machine("A100+T4")
    (uuids,), _ = run(environment, """
first, second = yoke.select(2, kind="cuda", lease=True)
print(first.uuid[4:].lower(), second.uuid[4:].lower())
""")
    files = [open(tmp_path / "leases" / f"{uuid}.lease", encoding="utf-8") for uuid in uuids.split()]
    for locked, file in enumerate(files, 1):
        fcntl.flock(file, fcntl.LOCK_SH)
        (said,), _ = run(environment, f"""
import time
begin = time.monotonic()
if {locked} == 1:
    assert [d.uuid[4:].lower() for d in yoke.select(kind="cuda", lease=True)] == ["{uuids.split()[1]}"]
    print("the other one")
else:
    kind, text = error_of(yoke.select, kind="cuda", lease=True, wait=0.3)
    assert time.monotonic() - begin < 20
    print(kind, text)
""")
    assert said.startswith("TimeoutError ") and "another process holds its lease" in said


def test_the_order_of_platforms_holds_for_every_spec(machine):
    run(machine("A100+T4", YOKE_PLATFORMS="cpu,cuda"), """
for spec in ("auto", "auto:min_free=1MiB"):
    assert str(yoke.device(spec)) == "cpu", spec
    assert yoke.explain(spec)[0].device == "cpu", spec
assert str(yoke.select(min_free="1MiB", wait=5)[0]) == "cpu"
assert yoke.select(lease=True)[0].kind == "cuda"
""")


def test_a_kind_alone_is_its_first_device_however_it_is_asked_for(machine):
    run(machine("A100+T4", CUDA_VISIBLE_DEVICES="1,0"), """
assert str(yoke.device("cuda")) == "cuda:0" == yoke.explain("cuda")[0].device
assert yoke.select(kind="cuda")[0].name == "NVIDIA A100-PCIE-40GB"
""")


@pytest.mark.parametrize("cards", ["1,0", "0"])
def test_auto_takes_the_cpu_with_one_warning_where_no_card_can_be_used(machine, cards):
    environment = machine("exclusive-mode", CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=cards)
    _, log = run(environment, """
for _ in range(2):
    assert str(yoke.device("auto")) == "cpu" and str(yoke.select()[0]) == "cpu"
assert yoke.ones(3).sum().item() == 3
""")
    assert log.count("device 'auto' does not use cuda: ") == 1, log
    assert log.count("yoke doctor") == 1, log
    (said,), _ = run({**environment, "YOKE_PLATFORMS": "cuda,cpu"}, """
print(*error_of(yoke.device, "auto"))
""")
    assert said.startswith("DeviceUnavailableError ")
