"""Choosing devices on the machines that the fake edge can be: which check of the doctor is named, what has no name."""
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
    """What a script that has imported yoke prints on a machine."""
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
    assert said.startswith("True ''") and "CUDA_VISIBLE_DEVICES cannot name it" in said, said
    assert "pci:0000:" in said


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
    assert "CUDA_VISIBLE_DEVICES hides it" in said and "though nothing hides it" not in said, said
    assert "CUDA_VISIBLE_DEVICES is not set now" in said and "still counts as '0'" in said, said


@needs_emulated
def test_a_lease_that_is_taken_by_hand_in_a_container_is_warned_of_where_nobody_else_sees_it(tmp_path):
    if any(os.path.ismount(folder) for folder in [tmp_path, *tmp_path.parents][:-1]):
        pytest.skip("the folder of the test is a mount, which others may see")
    said = run(machine_of(tmp_path, "container-hidden-processes"), "yoke.device('cuda:0').take_lease()",
               YOKE_CUDA_LIB_PATH=str(EMULATED[1]), LD_LIBRARY_PATH=os.pathsep.join(map(str, EMULATED)),
               YOKE_LEASE_DIR=str(tmp_path / "leases"), YOKE_LOG="warn")
    assert "which is this container's own" in said, said
