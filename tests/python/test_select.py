"""Choosing devices, leases and switching off, from a script; runs on any machine, and on the emulated CUDA device."""
import os
import signal
import subprocess
import sys
import time

import pytest
import yoke


def run(script, **variables):
    """Returns the output of a script in a separate process."""
    found = subprocess.run([sys.executable, "-c", "import yoke\n" + script], env={**os.environ, **variables},
                           capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("constraints, parts", [
    ({"min_fre": "8GiB"}, ["min_fre", "8GiB", "min_free"]),
    ({"min_free": "8"}, ["8 has no unit"]),
    ({"max_util": -1}, ["max_util", "-1"]),
    ({"exclude": ["egpu", "disply"]}, ["disply", "display"]),
    ({"wait": "soon"}, ["wait", "soon"]),
    ({"wait": 5, "min_fre": 1}, ["min_free"]),
    ({"name": "a,b"}, ["name", "comma"]),
])
def test_a_constraint_that_is_not_understood_is_named_with_its_value(constraints, parts):
    with pytest.raises(yoke.ValueError) as refused:
        yoke.select(**constraints)
    assert all(part in str(refused.value) for part in parts), refused.value


def test_select_refuses_a_count_that_is_none():
    for n in (0, -1, 10**12):
        with pytest.raises(yoke.ValueError, match="'n'"):
            yoke.select(n)
    with pytest.raises(yoke.TypeError, match=r"'n' is 'auto:kind=cpu'.*yoke\.device\('auto:kind=cpu'\)"):
        yoke.select("auto:kind=cpu")
    with pytest.raises(yoke.ValueError, match=r"select\(n=2\)"):
        yoke.device("auto:n=2")


def test_what_no_device_meets_names_each_with_its_reason():
    with pytest.raises(yoke.DeviceUnavailableError, match="no CPU can meet min_cc"):
        yoke.select(min_cc=(99, 0))
    with pytest.raises(yoke.DeviceUnavailableError, match="another device|no GPU|no device fits"):
        yoke.device("uuid:GPU-ffffffff-no-such")


# More than is free, and no more than there is: what waiting may change.
NEARLY_ALL = "{}MiB".format((yoke.mem_get_info("cpu")[1] >> 20) - 1)


@pytest.mark.parametrize("wait, least", [(0.3, 0.25), ("300ms", 0.25), (0.01, 0.005)])
def test_waiting_ends_after_its_time_and_raises_timeout(wait, least):
    begin = time.monotonic()
    with pytest.raises(yoke.TimeoutError, match=r"within 0\.\d+ s.* of free memory") as late:
        yoke.select(kind="cpu", min_free=NEARLY_ALL, wait=wait)
    assert least < time.monotonic() - begin < 20
    assert late.value.call == "select"


def test_opening_a_device_waits_as_selecting_one_does():
    begin = time.monotonic()
    with pytest.raises(yoke.TimeoutError, match=r"within 0\.3 s"):
        yoke.device(f"auto:kind=cpu, min_free={NEARLY_ALL}, wait=300ms")
    assert 0.25 < time.monotonic() - begin < 20
    assert yoke.device("auto:kind=cpu,wait=1h") is yoke.device("cpu")


def test_what_no_waiting_changes_is_not_waited_for():
    begin = time.monotonic()
    for ask in (lambda: yoke.select(min_cc=99, wait="24h"), lambda: yoke.device("auto:min_cc=99,wait=24h"),
                lambda: yoke.select(kind="cpu", min_free="900TiB", wait="24h")):
        with pytest.raises(yoke.DeviceUnavailableError, match="min_cc|of free memory"):
            ask()
    assert time.monotonic() - begin < 60


def test_a_time_to_wait_that_is_none_is_refused():
    for wait in (-5, float("inf"), float("nan"), "-5s", True):
        with pytest.raises(yoke.ValueError, match="wait"):
            yoke.select(kind="cpu", wait=wait)
    with pytest.raises(yoke.ValueError, match="wait"):
        yoke.device("auto:wait=soon")


@pytest.mark.parametrize("ask", [
    "yoke.select(kind='cpu', min_free='{}', wait='1h')", "yoke.device('auto:kind=cpu,min_free={},wait=1h')"])
def test_an_interrupt_ends_waiting(ask):
    script = "import yoke; print('waits', flush=True); " + ask.format(NEARLY_ALL)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as waiting:
        assert waiting.stdout.readline() == "waits\n"
        time.sleep(0.5)
        assert waiting.poll() is None, waiting.stderr.read()
        begin = time.monotonic()
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == -signal.SIGINT and "KeyboardInterrupt" in waiting.stderr.read()
        assert time.monotonic() - begin < 30


def test_the_cpu_is_chosen_where_it_is_asked_for():
    assert [str(d) for d in yoke.select(kind="cpu")] == ["cpu"]
    assert yoke.select(kind="cpu", min_free=1024)[0] is yoke.device("cpu")


def test_explain_gives_every_device_a_verdict_and_opens_none():
    explanation = yoke.explain("auto:min_cc=99")
    assert explanation.problem and explanation.visible == ""
    assert ("cpu", False, "no CPU can meet min_cc") in explanation
    assert not any(accepted for _, accepted, _ in explanation)
    chosen = yoke.explain("cpu")
    assert chosen.problem == "" and chosen[0].device == "cpu" and chosen[0].accepted


def test_a_device_tells_what_it_is():
    cpu = yoke.device("cpu")
    assert (cpu.uuid, cpu.pci, cpu.compute_capability, cpu.lease) == ("", "", None, None)
    assert cpu.is_egpu is False
    sample = cpu.sample()
    assert sample.memory_total > 0 and 0 <= sample.memory_free <= sample.memory_total
    with pytest.raises(yoke.UnsupportedError, match="cpu"):
        cpu.take_lease()


def test_what_is_disabled_is_never_loaded():
    libraries = run("""
yoke.disable("cuda")
assert "disabled by yoke.disable('cuda')" in yoke.why_unavailable("cuda")
try:
    yoke.device("cuda")
    raise SystemExit("it was opened")
except yoke.DeviceUnavailableError as error:
    assert "yoke.enable('cuda')" in str(error)
assert str((yoke.ones(3) + 1).device) == "cpu"
assert [str(d) for d in yoke.devices()] == ["cpu"]
print(open("/proc/self/maps").read())
""", YOKE_DEVICE="auto", YOKE_PLATFORMS="")
    for name in ("libyoke_cuda", "libcuda", "cublas", "cudnn", "nccl", "nvidia-ml"):
        assert name not in libraries, name


def test_disabling_counts_and_the_cpu_cannot_be_switched_off():
    before = yoke.why_unavailable("cuda")
    with yoke.disabled("cuda"), yoke.disabled("cuda"):
        assert not yoke.is_available("cuda")
        assert "disabled" in yoke.why_unavailable("cuda")
    assert yoke.why_unavailable("cuda") == before
    with pytest.raises(yoke.ValueError, match="cpu cannot be disabled"):
        yoke.disable("cpu")
    with pytest.raises(yoke.ValueError, match="cudda"):
        yoke.disable("cudda")


needs_cuda = pytest.mark.skipif(not yoke.is_available("cuda"), reason="there is no CUDA device")


@needs_cuda
def test_a_first_use_without_a_kind_decides_nothing_for_the_time_after():
    run("""
with yoke.disabled("cuda"):
    assert str(yoke.ones(3).device) == "cpu"
assert yoke.current_device() is yoke.device("auto") is not yoke.device("cpu")
""", YOKE_DEVICE="auto", YOKE_PLATFORMS="")


@needs_cuda
def test_live_tensors_keep_their_kind_from_being_disabled_by_name():
    run("""
x = yoke.ones((2, 3), device="cuda")
try:
    yoke.disable("cuda")
    raise SystemExit("it was disabled")
except yoke.StateError as error:
    assert "[2, 3] float32 on cuda:0" in str(error), error
y = x * x
del x, y
with yoke.disabled("cuda"):
    try:
        yoke.ones(3, device="cuda")
        raise SystemExit("it was used")
    except yoke.DeviceUnavailableError as error:
        assert "disabled" in str(error)
assert yoke.ones(3, device="cuda").sum().item() == 3
""")


@needs_cuda
def test_a_lease_is_held_by_one_process_and_gone_with_it(tmp_path):
    holder = """
import sys
yoke.select(kind="cuda", lease=True)
print("held", flush=True)
sys.stdin.read()
"""
    variables = {**os.environ, "YOKE_LEASE_DIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", "import yoke\n" + holder], env=variables, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == "held\n"
        asked = f"""
try:
    for _ in range(yoke.device_count("cuda")): yoke.select(kind="cuda", lease=True)
    yoke.device("cuda:0").take_lease()
    raise SystemExit("leased twice")
except yoke.DeviceUnavailableError as error:
    assert "process {other.pid}" in str(error), error
"""
        if yoke.device_count("cuda") == 1:
            run(asked, YOKE_LEASE_DIR=str(tmp_path))
        other.kill()
    run("""
(device,) = yoke.select(kind="cuda", lease=True)
with device.lease: assert yoke.lease_holder(device.uuid) == __import__("os").getpid()
assert device.lease is None and yoke.lease_holder(device.uuid) == 0
""", YOKE_LEASE_DIR=str(tmp_path))
