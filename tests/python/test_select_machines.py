"""Choice of devices on the machines of the fake edge: the named check of the doctor, and reasons without a check."""
import fcntl
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from test_inventory import EMULATED, HERE, LIBRARY, render

CHECKS = set(re.findall(r'YOKE_CHECK\(\d+, \w+, "([\w-]+)"',
                        (HERE.parents[1] / "core" / "doctor" / "checks.def").read_text()))
needs_emulated = pytest.mark.skipif(not (EMULATED[0] / "libyoke_cuda.so").is_file(),
                                    reason="there is no emulated CUDA in this build")


def machine_of(folder, scenario):
    """The variables of a machine: a scenario's name, or its keys."""
    if isinstance(scenario, dict):
        path = folder / "machine.json"
        path.write_text(json.dumps({"about": "a machine of this test", **scenario}))
        scenario = str(path)
    return render.render(scenario, folder / "machine", LIBRARY)


def run(machine, script, **variables):
    """Returns the output of a script that has imported yoke, on a machine."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("CUDA_", "NVIDIA_")) and key not in ("YOKE_NVML_TIMEOUT", "YOKE_DEVICE")}
    done = subprocess.run([sys.executable, "-c", "import os, yoke\n" + script], text=True, timeout=120,
                          capture_output=True, env={**kept, **machine, **variables})
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def on_each(code):
    """A card's handle fails so on both cards."""
    return {"extends": "A100+T4", "nvml": {"errors": {"nvmlDeviceGetHandleByPciBusId_v2": code}}}


FAULTS = [
    ("driver-library-mismatch", "driver-library-match"),
    ({"extends": "driver-library-mismatch", "gpu_changes": {"0": {"driver": "vfio-pci"}}}, "driver-library-match"),
    ("no-permission", "device-nodes"),
    ("nouveau", "driver-bound"),
    ("mig-empty", "mig-instances"),
    ({"extends": "exclusive-mode", "gpu_changes": {"2": {"compute_mode": 2}}}, "compute-mode"),
    ("hang-60s", "driver-answers"),
    ("jetson", "compute-capability"),
    ("A100+T4", "cuda-library"),
    ({"extends": "A100+T4", "environment": {"CUDA_VISIBLE_DEVICES": ""}}, "all-hidden"),
    *(({"extends": "A100+T4", "nvml": {"init_error": code}}, check) for code, check in (
        (9, "module-loaded"), (17, "container-devices"), (4, "device-nodes"), (18, "driver-library-match"),
        (15, "card-lost"), (999, "xid"))),
    (on_each(4), "device-nodes"), (on_each(15), "card-lost"), (on_each(16), "xid"),
]


@pytest.mark.parametrize("scenario, check", FAULTS,
                         ids=[f"{number}-{check}" for number, (_, check) in enumerate(FAULTS)])
def test_the_doctors_check_that_is_named_is_the_one_of_the_fault(scenario, check, tmp_path):
    assert check in CHECKS
    said = run(machine_of(tmp_path, scenario), """
try:
    yoke.device("uuid:GPU-00000000-no-such")
except yoke.DeviceUnavailableError as error:
    print(error)
""", YOKE_PLATFORMS="cpu", YOKE_NVML_TIMEOUT="0.5")
    assert re.findall("the doctor's check '([^']*)'", said) == [check], said


def test_a_card_without_a_uuid_cannot_be_made_visible_and_explain_says_so(tmp_path):
    machine = machine_of(tmp_path, {"extends": "A100+T4", "nvml": {"present": False}})
    for file in pathlib.Path(machine["YOKE_SYSROOT"]).glob("proc/driver/nvidia/gpus/*/information"):
        file.write_text(re.sub("GPU UUID.*\n", "", file.read_text()))
    said = run(machine, """
found = yoke.explain("auto")
print(found[0].accepted, repr(found.visible), found.problem)
""")
    assert said.startswith("True ''") and "its UUID for CUDA_VISIBLE_DEVICES is not known" in said, said
    assert "pci:0000:" in said


MIG = "MIG-5d4e7c10-6d1b-5a88-a0f2-e1c9b3f7a864"


def test_any_instance_can_be_chosen_and_what_hides_it_is_told(tmp_path):
    machine = machine_of(tmp_path, "mig-7x")
    said = run(machine, f"""
found = yoke.explain("uuid:{MIG[:12]}")
print(found[0].accepted, found.visible, repr(found.problem))
print(yoke.explain("auto"))
""")
    assert f"True {MIG} ''" in said, said
    assert f"only one MIG instance, here another instance; CUDA_VISIBLE_DEVICES={MIG} chooses this one" in said
    assert "CUDA_VISIBLE_DEVICES hides it" not in said, said
    said = run(machine, f'print(yoke.explain("uuid:{MIG}").problem)', CUDA_VISIBLE_DEVICES="0")
    assert "CUDA_VISIBLE_DEVICES hides it" in said, said


@pytest.mark.parametrize("named", ["cuda,cpu", "cpu,cuda"])
@pytest.mark.parametrize("scenario", ["none", "nouveau"])
def test_a_platform_that_is_named_and_fails_is_an_error_in_explain_too(scenario, named, tmp_path):
    said = run(machine_of(tmp_path, scenario), """
for spec in ("auto", "auto:min_free=1MiB", "cpu"):
    found = yoke.explain(spec)
    assert not [each for each in found if each.accepted] and not found.visible, (spec, found)
    assert "YOKE_PLATFORMS names 'cuda', which cannot be used" in found.problem, (spec, found.problem)
    try:
        raise SystemExit(f"{spec} gave {yoke.device(spec)}")
    except yoke.DeviceUnavailableError as error:
        assert "YOKE_PLATFORMS names 'cuda', which cannot be used" in str(error), error
print("both fail")
""", YOKE_PLATFORMS=named)
    assert "both fail" in said


def test_the_holder_of_a_lease_is_found_by_every_name_of_the_card(tmp_path):
    machine = machine_of(tmp_path, "A100+T4")
    card = json.loads(run(machine, "import json; c = yoke.inventory().cards[1]; print(json.dumps([c.uuid, c.pci, c.visible]))"))
    leases = tmp_path / "leases"
    leases.mkdir()
    with open(leases / f"{card[0][4:].lower()}.lease", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        said = run(machine, f"""
uuid, pci, number = {card!r}
for name in (uuid, uuid.upper(), uuid[4:], uuid[:12], uuid[4:12], "uuid:" + uuid, pci, pci[5:], "pci:" + pci, f"cuda:{{number}}"):
    assert yoke.lease_holder(name) == {os.getpid()}, name
assert yoke.lease_holder(f"cuda:{{1 - number}}") == 0
for name in ("bogus", "", "cpu", "auto", "cuda", "cuda:7", "GPU-00000000-0000", "0000:ff:00.0", yoke.device("cpu")):
    try:
        raise SystemExit(f"{{name!r}} has the holder {{yoke.lease_holder(name)}}")
    except yoke.ValueError:
        pass
""", YOKE_LEASE_DIR=str(leases))
    assert said == "", said


@needs_emulated
def test_the_holder_of_a_devices_lease_is_found_by_the_device(tmp_path):
    run(machine_of(tmp_path, "A100+T4"), """
(device,) = yoke.select(kind="cuda", lease=True)
assert yoke.lease_holder(device) == os.getpid() == yoke.lease_holder(str(device.uuid))
""", YOKE_CUDA_LIB_PATH=str(EMULATED[1]), LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)),
        YOKE_LEASE_DIR=str(tmp_path / "leases"))


@needs_emulated
def test_a_wish_that_nothing_meets_blames_no_check_of_a_machine_that_serves(tmp_path):
    said = run(machine_of(tmp_path, "A100+T4"), """
assert yoke.device("cuda:0").kind == "cuda"
try:
    yoke.device("auto:name=H100")
except yoke.DeviceUnavailableError as error:
    print(error)
""", YOKE_CUDA_LIB_PATH=str(EMULATED[1]), LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)), YOKE_LOG="warn")
    assert said.count("'H100'") == 1 and "doctor" not in said, said


@needs_emulated
def test_a_variable_that_changes_after_cuda_has_read_it_is_told_as_it_counts(tmp_path):
    said = run(machine_of(tmp_path, "A100+T4"), """
assert yoke.device("cuda:0").kind == "cuda"
del os.environ["CUDA_VISIBLE_DEVICES"]
try:
    yoke.select(2, kind="cuda")
except yoke.DeviceUnavailableError as error:
    print(error)
""", CUDA_VISIBLE_DEVICES="0", YOKE_CUDA_LIB_PATH=str(EMULATED[1]),
               LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)), YOKE_LOG="warn")
    assert "CUDA_VISIBLE_DEVICES hides it" in said and "although no variable hides it" not in said, said
    assert "CUDA_VISIBLE_DEVICES is not set now" in said and "is still '0'" in said, said


@needs_emulated
def test_a_lease_that_is_taken_by_hand_in_a_container_is_warned_of_where_nobody_else_sees_it(tmp_path):
    if any(os.path.ismount(folder) for folder in [tmp_path, *tmp_path.parents][:-1]):
        pytest.skip("the folder of the test is a mount, which others may see")
    said = run(machine_of(tmp_path, "container-hidden-processes"), "yoke.device('cuda:0').take_lease()",
               YOKE_CUDA_LIB_PATH=str(EMULATED[1]), LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)),
               YOKE_LEASE_DIR=str(tmp_path / "leases"), YOKE_LOG="warn")
    assert "a folder of this container" in said, said


EMULATED_CARDS = dict(YOKE_CUDA_LIB_PATH=str(EMULATED[1]), LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)), YOKE_LOG="warn")


PAIRS = {"same-link": ["RTX3090", "RTX3080"], "larger-last": ["RTX3080", "RTX3090"], "other-kind": ["T4", "A100-PCIE-40"]}


@needs_emulated
@pytest.mark.parametrize("nvml", [True, False], ids=["nvml", "no-nvml"])
@pytest.mark.parametrize("order", ["PCI_BUS_ID", "FASTEST_FIRST"])
@pytest.mark.parametrize("models", PAIRS.values(), ids=PAIRS)
def test_auto_takes_the_larger_card_and_explain_names_the_same_one_before_and_behind(models, order, nvml, tmp_path):
    cards = [{"model": model, "pci": f"0000:0{2 * place + 1}:00.0"} for place, model in enumerate(models)]
    machine = machine_of(tmp_path, {"gpus": cards, "nvml": {"present": nvml}})
    said = run(machine, """
def looked():
    found = yoke.explain("auto")
    return found[0].device, found.visible
before = looked()
small = min(yoke.devices("cuda"), key=lambda device: device.total_memory)
yoke.ones(3, device=small)  # shows how much is free there
chosen = yoke.device("auto")
largest = max(yoke.devices("cuda"), key=lambda device: device.total_memory)
assert chosen is largest and chosen is not small, chosen
assert before == looked() == (str(chosen), chosen.uuid), (before, looked(), str(chosen), chosen.uuid)
""", CUDA_DEVICE_ORDER=order, **EMULATED_CARDS)
    assert said == "", said


@needs_emulated
@pytest.mark.parametrize("block", [
    "with yoke.device('cpu'): yoke.ones(3)", "with yoke.device('cpu'), yoke.device('cuda:1'), yoke.device('cpu'): pass",
    "with yoke.device('cpu'):\n    with yoke.device('cuda:1'): yoke.ones(3)",
    "with yoke.device('cpu'): yoke.set_device('cuda:1')", "with yoke.stream(yoke.Stream('cuda:1')): pass"],
    ids=["plain", "nested", "nested-with-work", "set-within", "stream"])
def test_a_block_of_a_device_leaves_the_thread_with_the_default_which_disable_moves(block, tmp_path):
    said = run(machine_of(tmp_path, "A100+T4"), block + """
def here(): return str(yoke.ones(3).device)
from threading import Thread
first = here()
assert first.startswith("cuda"), first
for _ in range(2):
    yoke.disable("cuda")
    assert here() == "cpu"
    found = []
    thread = Thread(target=lambda: found.append(here()))
    thread.start(); thread.join()
    assert found == ["cpu"], found
    yoke.enable("cuda")
    assert here() == first
with yoke.device("cpu"):
    yoke.disable("cuda")  # within the block: its end brings nothing back that is switched off
assert here() == "cpu"
yoke.enable("cuda")
assert here() == first
""", **EMULATED_CARDS)
    assert said == "", said


@needs_emulated
def test_a_device_that_a_thread_has_set_itself_is_refused_behind_a_block_while_it_is_disabled(tmp_path):
    said = run(machine_of(tmp_path, "A100+T4"), """
yoke.set_device("cuda:1")
with yoke.device("cpu"):
    yoke.disable("cuda")
try:
    yoke.ones(3)
except yoke.DeviceUnavailableError as error:
    print(error)
yoke.enable("cuda")
print(yoke.ones(3).device)
""", **EMULATED_CARDS)
    assert "disabled by yoke.disable('cuda')" in said and said.splitlines()[-1] == "cuda:1", said


@needs_emulated
def test_a_block_of_the_cpu_opens_no_other_device(tmp_path):
    said = run(machine_of(tmp_path, "A100+T4"), """
with yoke.device("cpu"):
    yoke.ones(3)
print("libyoke_cuda" in open("/proc/self/maps").read())
""", **EMULATED_CARDS)
    assert said == "False\n", said


MARK = "/yoke/libyoke_cuda.so"
LIBCUDA = {"/usr/lib/x86_64-linux-gnu/libcuda.so.1": ""}


def built_for(mark, **files):
    """Returns the files of a machine with a Yoke of this mark, and with its driver's library."""
    return {MARK: f"yoke-cuda-module: {mark}\n", **LIBCUDA, **files}


# A machine, and the beginning of the reason against its cards ("": the cards serve).
UNSERVED = [
    ({"extends": "A100+T4", "files": built_for("cuda 13000 archs 75,80")}, ["", ""]),
    ({"extends": "A100+T4", "files": built_for("cuda 13000 archs 80")},
     ["", "the compute capability is 7.5, but this build has code for 80"]),
    ({"extends": "A100+T4", "files": built_for("cuda 13020 archs 75")},
     ["the compute capability is 8.0, but this build has code for 75 alone, and this driver is too old", ""]),
    ({"extends": "A100+T4", "driver": {"version": "570.10", "cuda": "12.8"}, "files": built_for("cuda 13000 archs 75,80")},
     ["the driver is 570.10, but this build's CUDA 13 needs 580"] * 2),
    ({"extends": "A100+T4", "driver": {"version": "470.256.02", "cuda": "11.4"}},
     ["the driver is 470.256.02, but Yoke needs 530 or newer"] * 2),
    ({"extends": "A100+T4", "files": {MARK: built_for("cuda 13000 archs 75,80")[MARK]}}, ["there is no libcuda.so.1"] * 2),
]


@pytest.mark.parametrize("scenario, reasons", UNSERVED)
def test_a_card_is_offered_only_if_a_tensor_can_be_made_there(scenario, reasons, tmp_path):
    seen = json.loads(run(machine_of(tmp_path, scenario), """
import json
cards = yoke.inventory().cards
print(json.dumps([[c.reason for c in cards], [yoke.explain(f"pci:{c.pci}")[0].accepted for c in cards]]))
"""))
    assert [bool(reason) for reason in seen[0]] == [bool(reason) for reason in reasons], seen
    for told, wanted in zip(seen[0], reasons):
        assert told.startswith(wanted), told
    assert seen[1] == [not reason for reason in reasons]


def test_a_card_that_is_passed_over_leaves_its_number_to_the_next(tmp_path):
    machine = machine_of(tmp_path, {"extends": "A100+T4", "files": built_for("cuda 13000 archs 75-real")})
    assert run(machine, "print([c.visible for c in yoke.inventory().cards])").strip() == "[None, 0]"
