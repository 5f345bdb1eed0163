"""The doctor: every check fires on a machine with its defect, and passes on a machine without.

Machines are scenarios (doctor_cases.json); the doctor's reports stand in doctor_goldens.txt. After an intended change,
YOKE_UPDATE_GOLDENS=1 writes the goldens anew; read the difference.
"""
import json
import os
import pathlib
import re

import pytest
import yoke
from yoke import _doctor

import doctor_machines
from doctor_machines import CASES, TABLE, examined, patched, rendered, replayed

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "python" / "doctor_goldens.txt"
NAMES = [f"{number}-{case['check']}" for number, case in enumerate(CASES)]
DECLARED = re.findall(r'YOKE_CHECK\((\d+), (\w+), "([\w-]+)", *"([^"]+)"',
                      re.sub(r"\s+", " ", (ROOT / "core/doctor/checks.def").read_text(encoding="utf-8")))


def golden_text(case, check):
    lines = [f"{check['number']} {check['id']}: {check['status']}", f"  evidence: {check['evidence']}"]
    return "\n".join(lines + [f"  remedy: {line}" for line in check["remedy"].splitlines()])


def goldens():
    """{name of the case: text}"""
    parts = re.split(r"^== (.+)\n", GOLDENS.read_text(encoding="utf-8"), flags=re.M) if GOLDENS.exists() else [""]
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


def update(name, text):
    known = {**goldens(), name: text}
    GOLDENS.write_text("".join(f"== {each}\n{known[each]}\n" for each in NAMES if each in known), encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_machine_with_the_trouble_fires_the_check(case, tmp_path, request):
    report = examined(rendered(patched(case, case["patch"]), tmp_path / "case"))
    check = report["checks"][case["check"]]
    assert check["status"] == case["status"], check
    assert check["remedy"] and check["url"].startswith("https://")
    assert report["exit_code"] == (1 if any(c["status"] == "fail" for c in report["checks"].values()) else 0)
    name = NAMES[CASES.index(case)]
    text = golden_text(case, check)
    if os.environ.get("YOKE_UPDATE_GOLDENS"):
        update(name, text)
    assert text == goldens().get(name), "YOKE_UPDATE_GOLDENS=1 writes it, if it is meant"


@pytest.fixture(scope="module")
def base_report(tmp_path_factory):
    return examined(rendered(TABLE["base"], tmp_path_factory.mktemp("base") / "case"))


@pytest.mark.parametrize("case", [c for c in CASES if "quiet" in c], ids=lambda case: case["check"])
def test_a_machine_of_the_kind_without_the_trouble_does_not_fire_the_check(case, tmp_path):
    check = examined(rendered(patched(case, case["quiet"]), tmp_path / "case"))["checks"][case["check"]]
    assert check["status"] == "ok" and check["remedy"] == "", check


def test_a_healthy_machine_fires_no_check(base_report):
    assert base_report["exit_code"] == 0
    assert [c for c in base_report["checks"].values() if c["status"] in ("warn", "fail")] == []


def test_every_check_has_a_machine_that_fires_it_and_one_that_it_is_content_with(base_report):
    fired = {case["check"] for case in CASES}
    quiet = {case["check"] for case in CASES if "quiet" in case}
    quiet |= {id for id, check in base_report["checks"].items() if check["status"] == "ok"}
    ids = {id for _, _, id, _ in DECLARED}
    assert ids - fired == set() and ids - quiet == set()


def test_the_report_holds_every_declared_check_once_and_in_order():
    report = yoke.doctor()
    assert [(str(c.number), c.id, c.title) for c in report.checks] == [(n, id, t) for n, _, id, t in DECLARED]
    assert len(report.checks) >= 45
    assert report["gpu-present"] is report.checks[0] and report[1] is report.checks[0]
    with pytest.raises(yoke.ValueError, match="there is no check 'flux'"):
        report["flux"]
    assert report.checks[0].title in str(report) and "skip" in repr(report)


def test_a_printed_report_says_what_is_expected_and_what_was_found():
    def printed(status):
        return str(_doctor.Report([_doctor.Check("fan", status, "it stands", "turn it", "page", 7, "The fan turns", -1)], 0)).splitlines()
    assert printed("ok") == ["ok    7 The fan turns: it stands"]
    assert printed("skip") == ["skip  7 The fan turns; not checked: it stands"]
    assert printed("warn") == ["warn  7 expected: The fan turns; found: it stands", "        turn it", "        page"]
    assert printed("fail")[0] == "fail  7 expected: The fan turns; found: it stands"


def test_a_plain_machine_is_told_as_it_is_and_nothing_fails(tmp_path):
    report = examined({"YOKE_SYSROOT": str(tmp_path), "YOKE_NVML_PATH": str(tmp_path / "none.so")})
    assert report["exit_code"] == 0
    assert report["checks"]["gpu-present"]["status"] == "warn"
    for id in ("driver-bound", "free-memory", "link-width", "xid", "smoke"):
        assert report["checks"][id]["status"] == "skip"
        assert "no NVIDIA GPU" in report["checks"][id]["evidence"]
    named = examined({"YOKE_SYSROOT": str(tmp_path), "YOKE_NVML_PATH": str(tmp_path / "none.so"),
                      "YOKE_DEVICE": "cuda:0"})
    assert named["exit_code"] == 1 and "'cuda:0'" in named["checks"]["gpu-present"]["evidence"]


def without_recording(report):
    """Returns the common part of two reports of a machine: everything except the folder of the recording."""
    return {id: {key: re.sub(r"/\S+/yoke/probes", "PROBES", str(value)) for key, value in check.items()}
            for id, check in report["checks"].items()}


@pytest.mark.parametrize("name", ["base", "free-memory", "external-gpu", "mig-instances", "driver-library-match",
                                  "peer-copies", "vgpu-licence", "gpu-present", "device-nodes", "card-lost",
                                  "thunderbolt-security", "container-devices", "host-memory", "variables", "cudnn"])
def test_a_recording_replays_to_the_same_report(name, tmp_path):
    case = next((c for c in CASES if c["check"] == name), {"patch": {}})
    first = examined(rendered(patched(case, case["patch"]), tmp_path / "case"), tmp_path / "record")
    again = examined(replayed(tmp_path / "record"))
    assert without_recording(again) == without_recording(first)
    written = json.loads((tmp_path / "record" / "report.json").read_text())
    assert written["exit_code"] == first["exit_code"] and len(written["checks"]) == len(DECLARED)


def everything_in(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def test_a_redacted_recording_names_nobody_and_replays_all_the_same(tmp_path):
    case = next(c for c in CASES if c["check"] == "free-memory")
    scenario = patched(case, case["patch"])
    scenario["files"]["/proc/sys/kernel/hostname"] = "secret-host\n"
    scenario["environment"]["LD_LIBRARY_PATH"] = "/home/alice/lib"
    scenario["gpus"][0]["serial"] = "1652923033000"
    scenario["gpu_changes"]["0"]["processes"][0]["container"] = "4f5e" * 16
    first = examined(rendered(scenario, tmp_path / "case"), tmp_path / "record", redact=True)
    text = everything_in(tmp_path / "record")
    for secret in ("secret-host", "alice", "11111111-aaaa", "1652923033000", "4f5e4f5e"):
        assert secret not in text and secret not in str(first), secret
    evidence = first["checks"]["free-memory"]["evidence"]
    assert "process 4242 (process-0, user-0) has 61440 MiB" in evidence
    again = examined(replayed(tmp_path / "record"))
    assert again["checks"]["free-memory"]["evidence"] == evidence
    assert {i: c["status"] for i, c in again["checks"].items()} == {i: c["status"] for i, c in first["checks"].items()}


SECRETIVE = {
    "/proc/1/environ": "container=lxc\0AWS_SECRET_ACCESS_KEY=s3cret-variable\0",
    "/proc/cmdline": "root=/dev/sda2 nvidia-drm.modeset=1 cryptdevice=s3cret-disk\n",
    "/proc/self/mounts": "//server/s3cret-share /mnt cifs rw 0 0\ntmpfs /dev/shm tmpfs rw,size=67108864k 0 0\n",
    "/proc/self/mountinfo": "21 1 8:1 / / rw - ext4 /dev/s3cret-root rw\n22 1 8:2 /s3cret-part /run/lock rw - ext4 x rw\n"
                            "23 1 8:3 / /home/s3cret-user rw - ext4 x rw\n",
    "/sys/bus/pci/devices/0000:1b:00.0/unique_id": "s3cret-serial\n",
    "/dev/kmsg": "NVRM: Xid (PCI:0000:43:00): 13, pid=812, name=s3cret-job 7, Ch 00000008\n"
                 "Nov 22 01:02:03 host sudo: alice : COMMAND=/usr/bin/nvidia-smi --key s3cret-sudo\n"
                 "Nov 22 01:02:03 host kernel: nvidia 0000:43:00.0: enabling device\n"
                 "audit: type=1400 comm=nvidia-smi name=s3cret-audit\nKernel command line: nvidia s3cret-boot\n"}


@pytest.mark.parametrize("redact", [False, True])
def test_a_recording_holds_no_secret(redact, tmp_path):
    case = next(c for c in CASES if c["check"] == "free-memory")
    scenario = patched(case, case["patch"])
    scenario["gpu_changes"]["0"]["processes"][0]["command"] = "python --token=s3cret-argument"
    variables = rendered(scenario, tmp_path / "case")
    root = pathlib.Path(variables["YOKE_SYSROOT"])
    for path, text in SECRETIVE.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text(text, encoding="utf-8")
    passwd = root / "etc/passwd"
    passwd.write_text(passwd.read_text().replace("alice:x:1000:1000::/home/alice:/bin/bash",
                                                 "alice:s3cret-hash:1000:1000:Alice s3cret-name:/home/alice:/bin/bash"))
    first = examined(variables, tmp_path / "record", redact=redact)
    text = everything_in(tmp_path / "record")
    assert re.findall(r"s3cret-\w+", text) == []
    assert "container=lxc" in text and "Xid (PCI:0000:43:00): 13, pid=812, name=PROGRAM, Ch 00000008" in text
    assert "kernel: nvidia 0000:43:00.0" in text and ":x:1000:1000:::" in text
    again = examined(replayed(tmp_path / "record"))
    assert {i: c["status"] for i, c in again["checks"].items()} == {i: c["status"] for i, c in first["checks"].items()}


def test_a_redacted_recording_redacts_the_names_of_files_and_finds_them_again(tmp_path):
    scenario = patched({}, {"files": {"/home/alice/lib/libcudnn.so.8": "", "/var/scratch/carol/lib/libnccl.so.1": ""},
                            "environment": {"LD_LIBRARY_PATH": "/home/alice/lib:/var/scratch/carol/lib", "USER": "carol"}})
    first = examined(rendered(scenario, tmp_path / "case"), tmp_path / "record", redact=True)
    text = everything_in(tmp_path / "record") + "".join(str(p.relative_to(tmp_path)) for p in tmp_path.glob("record/**/*"))
    assert "alice" not in text and "carol" not in text and "alice" not in str(first)
    assert "libcudnn.so.8 has version 8, not 9" in first["checks"]["cuda-libraries"]["evidence"]
    again = examined(replayed(tmp_path / "record", keep=["LD_LIBRARY_PATH"]))
    assert again["checks"]["cuda-libraries"]["evidence"] == first["checks"]["cuda-libraries"]["evidence"]


def test_cudnn_that_is_switched_off_is_no_trouble(tmp_path):
    check = examined(rendered(patched({}, {"environment": {"YOKE_CUDNN_ENABLED": "0"}}), tmp_path / "case"))["checks"]["cudnn"]
    assert check["status"] == "skip" and "YOKE_CUDNN_ENABLED=0 switches" in check["evidence"]


def test_users_with_the_names_of_things_change_no_check(tmp_path):
    users = ["ubuntu", "nvidia", "cuda", "open"]
    scenario = patched({}, {"users": {name: 1100 + at for at, name in enumerate(users)}})
    scenario["gpus"][0]["processes"] = [{"pid": 4242 + at, "name": "python", "user": name, "memory": "1GiB"}
                                        for at, name in enumerate(users)]
    scenario["files"]["/etc/os-release"] = "ID=ubuntu\nVERSION_ID=\"24.04\"\n"
    del scenario["files"]["/proc/self/maps"]
    first = examined(rendered(scenario, tmp_path / "case"), tmp_path / "record", redact=True)
    assert "ID=ubuntu" in (tmp_path / "record/root/etc/os-release").read_text()
    again = examined(replayed(tmp_path / "record"))
    assert {i: c["status"] for i, c in again["checks"].items()} == {i: c["status"] for i, c in first["checks"].items()}
    assert again["checks"]["cuda-library"] == first["checks"]["cuda-library"]


def test_figures_of_instances_of_a_partitioned_card_replay(tmp_path):
    scenario = patched({}, {"nvlink": [], "environment": {"CUDA_VISIBLE_DEVICES": None}, "probes": {
        "1": {"smoke": "ok"}, "2": {"smoke": "wrong: a product's sum is 0"}}})
    scenario["gpus"] = [{**scenario["gpus"][0], "mig": True, "mig_instances": [
        {"profile": "1g.10gb", "memory": "9856MiB"}, {"profile": "1g.10gb", "memory": "9856MiB"}]}]
    first = examined(rendered(scenario, tmp_path / "case"), tmp_path / "record")
    assert first["checks"]["smoke"]["status"] == "fail" and first["checks"]["smoke"]["card"] == 2
    again = examined(replayed(tmp_path / "record"))
    assert again["checks"]["smoke"] == first["checks"]["smoke"]


@pytest.mark.parametrize("module", ["/sys/module/nvgpu/initstate", None])
def test_a_jetson_is_never_told_to_install_the_desktops_driver_and_replays(module, tmp_path):
    files = {"/dev/nvhost-ctrl-gpu": "", **({module: "live\n"} if module else {})}
    scenario = {"extends": "jetson", "files": files}
    first = examined(rendered(scenario, tmp_path / "case"), tmp_path / "record")
    for id in ("module-loaded", "unified-memory"):
        assert first["checks"][id]["status"] in ("ok", "skip") and first["checks"][id]["remedy"] == "", first["checks"][id]
    text = " ".join(check["remedy"] for check in first["checks"].values())
    assert "nvidia-driver" not in text and "modprobe" not in text
    again = examined(replayed(tmp_path / "record"))
    assert without_recording(again) == without_recording(first)
    assert "Jetson" in again["checks"]["gpu-present"]["evidence"]
    unserved = first["checks"]["compute-capability"]
    assert unserved["status"] == "fail" and first["exit_code"] == 1
    assert '-DYOKE_CUDA=ON -DYOKE_CUDA_ARCHS="87"' in unserved["remedy"]


@pytest.mark.parametrize("driver", [{}, {"loaded": False}], ids=["driver", "no-driver"])
@pytest.mark.parametrize("machine, archs", [("jetson-thor", "110"), ("dgx-spark", "120-real"), ("dgx-spark", "121")])
def test_a_gpu_within_the_processor_that_stands_on_the_bus_is_examined_and_replays(machine, archs, driver, tmp_path):
    scenario = {"extends": machine, "driver": driver, "files": {"/yoke/libyoke_cuda.so": f"yoke-cuda-module: cuda 13000 archs {archs}\n"}}
    first = examined(rendered(scenario, tmp_path / "case"), tmp_path / "record")
    checks = first["checks"]
    text = " ".join(check["remedy"] for check in checks.values())
    if machine == "jetson-thor":
        assert "nvidia-driver" not in text and "libcuda1" not in text, text
    if driver:
        assert checks["module-loaded"]["status"] == "fail" and checks["module-loaded"]["remedy"], checks["module-loaded"]
    else:
        for id in ("module-loaded", "unified-memory", "driver-bound", "compute-capability", "cuda-library", "free-memory"):
            assert checks[id]["status"] == "ok", checks[id]
        for id in ("link-width", "external-gpu"):
            assert checks[id]["status"] in ("ok", "skip"), checks[id]
    assert without_recording(examined(replayed(tmp_path / "record"))) == without_recording(first)


@pytest.mark.parametrize("archs, status", [("75-real,80-real", "fail"), ("80-real,87-real", "ok"), ("86", "ok")])
def test_a_jetson_is_served_by_a_build_that_has_code_for_it(archs, status, tmp_path):
    scenario = {"extends": "jetson", "files": {"/dev/nvhost-ctrl-gpu": "", "/sys/module/nvgpu/initstate": "live\n",
                                               "/usr/lib/aarch64-linux-gnu/libcuda.so.1": "",
                                               "/yoke/libyoke_cuda.so": f"yoke-cuda-module: cuda 12060 archs {archs}\n"}}
    check = examined(rendered(scenario, tmp_path / "case"))["checks"]["compute-capability"]
    assert check["status"] == status, check
    assert status == "ok" or f'-DYOKE_CUDA_ARCHS="{archs.replace(",", ";")};87"' in check["remedy"]


@pytest.mark.parametrize("value, dropped, better", [("0-1", "-1", "0,1"), ("0 1", "1", "0,1"), ("0;1", ";1", "0,1"),
                                                     ("1gpu2", "gpu2", "1"), ("0, 1", None, None), ("1,0", None, None)])
def test_an_entry_of_which_cuda_drops_the_end_is_warned_of(value, dropped, better, tmp_path):
    scenario = patched({}, {"environment": {"CUDA_VISIBLE_DEVICES": value}, "files": {"/proc/self/environ": None}})
    report = examined(rendered(scenario, tmp_path / "case"))
    check = report["checks"]["visible-devices"]
    assert check["status"] == ("warn" if dropped else "ok"), check
    if dropped:
        assert f"drops '{dropped}'" in check["evidence"] and check["remedy"] == f"export CUDA_VISIBLE_DEVICES={better}"


@pytest.mark.parametrize("mig, status", [(True, "skip"), (False, "fail")])
def test_a_link_that_is_down_is_no_fault_of_a_partitioned_card(mig, status, tmp_path):
    parts = {"mig": True, "mig_instances": [{"profile": "7g.80gb", "memory": "79GiB"}]} if mig else {}
    scenario = patched({}, {"nvlink": [], "gpu_defaults": {"nvlinks_active": 0, **parts},
                            "environment": {"CUDA_VISIBLE_DEVICES": None}, "files": {"/proc/self/environ": None}})
    check = examined(rendered(scenario, tmp_path / "case"))["checks"]["nvlink"]
    assert check["status"] == status, check
    assert not mig or "MIG" in check["evidence"]


def test_a_version_of_a_dock_that_cannot_be_read_yet_is_no_safe_mode(tmp_path):
    case = next(c for c in CASES if c["check"] == "thunderbolt-firmware")
    variables = rendered(patched(case, case["quiet"]), tmp_path / "case")
    version = pathlib.Path(variables["YOKE_SYSROOT"]) / "sys/bus/thunderbolt/devices/0-1/nvm_version"
    version.write_text("")
    damaged = examined(variables, tmp_path / "damaged")["checks"]["thunderbolt-firmware"]
    assert damaged["status"] == "fail" and "safe mode" in damaged["evidence"]
    version.unlink()
    os.mkfifo(version)  # reading it fails with EAGAIN, as the kernel's file does then
    writer = os.open(version, os.O_RDWR)
    try:
        early = examined(variables, tmp_path / "early")["checks"]["thunderbolt-firmware"]
    finally:
        os.close(writer)
    assert early["status"] == "ok" and "of an unknown version" in early["evidence"]
    for name, first in (("damaged", damaged), ("early", early)):
        assert examined(replayed(tmp_path / name))["checks"]["thunderbolt-firmware"] == first


def test_a_driver_that_hangs_hangs_in_the_recording_too(tmp_path):
    case = next(c for c in CASES if c["check"] == "driver-answers")
    examined(rendered(patched(case, case["patch"]), tmp_path / "case"), tmp_path / "record")
    hang = json.loads((tmp_path / "record/scenario.json").read_text())["nvml"]["hang"]
    assert hang == {"call": "nvmlDeviceGetUtilizationRates", "seconds": 60}
    again = examined(replayed(tmp_path / "record"))["checks"]["driver-answers"]
    assert again["status"] == "fail" and "nvmlDeviceGetUtilizationRates" in again["evidence"]


def test_a_heading_fits_a_line():
    # The command prints "ok   12 Title [id]".
    assert [id for _, _, id, title in DECLARED if len(title) + len(id) + 11 > 80] == []


def test_a_recording_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(yoke.IOError, match="doctor_record: .*file"):
        yoke.doctor_record(tmp_path / "file" / "below")
    with pytest.raises(yoke.ValueError, match="'folder' is empty"):
        yoke.doctor_record("")


def test_a_recording_writes_nothing_outside_its_folder(tmp_path):
    # This path leads from the folder of a recording's files, tmp_path/record/root, to tmp_path/lib.
    victim = tmp_path / "lib" / "libcudnn.so.9"
    victim.parent.mkdir()
    victim.write_text("whole")
    variables = rendered(patched({}, {"environment": {"LD_LIBRARY_PATH": "/../../lib"}}), tmp_path / "case")
    (tmp_path / "case" / "lib").mkdir()
    (tmp_path / "case" / "lib" / "libcudnn.so.9").write_text("of the machine")
    examined(variables, tmp_path / "record")
    assert victim.read_text() == "whole"


def test_a_recording_goes_into_a_folder_that_is_empty(tmp_path):
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "report.json").write_text("older")
    with pytest.raises(yoke.IOError, match="older is not empty; name a new"):
        yoke.doctor_record(tmp_path / "older")
    assert (tmp_path / "older" / "report.json").read_text() == "older"


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(yoke.ValueError, match="'deadline' is -1"):
        yoke.doctor(deadline=-1)
    with pytest.raises(yoke.TypeError, match="probe"):
        yoke.doctor(probe="yes")


def test_a_card_is_found_in_the_catalog_by_its_drivers_name():
    h200 = yoke.catalog_find("NVIDIA H200", 143771 << 20)
    assert (h200.name, h200.multiprocessors, h200.memory) == ("H200 SXM", 132, 143771 << 20)
    assert yoke.catalog_find("NVIDIA H200").name == "H200 SXM"
    assert yoke.catalog_find("NVIDIA H200", 1 << 30) is None and yoke.catalog_find("Abacus 1") is None
    assert h200 in yoke.catalog() and len(yoke.catalog()) >= 24
    with pytest.raises(yoke.TypeError, match="'name'"):
        yoke.catalog_find(200)


def test_the_table_in_the_documentation_is_the_declared_one():
    text = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `([\w-]+)` \| ([^|]+?) \|", text, flags=re.M)
    assert rows == [(number, id, title) for number, _, id, title in DECLARED]


def test_every_remedy_of_a_golden_is_a_command_or_a_deed():
    remedies = re.findall(r"^  remedy: (.+)$", GOLDENS.read_text(encoding="utf-8"), flags=re.M)
    assert len(remedies) >= len(CASES)
    assert not [line for line in remedies if re.search(r"\bnan\b|GPU -1|%[dfz]", line)]
    assert doctor_machines.TABLE["base"]["gpus"]
