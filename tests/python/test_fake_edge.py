"""render.py makes machines out of scenarios, and names the defect of a wrong scenario."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys

import pytest

EDGE = pathlib.Path(__file__).resolve().parents[1] / "fakes" / "edge"
sys.path.insert(0, str(EDGE))

import render  # noqa: E402
import schema  # noqa: E402

GPU = {"name": "NVIDIA Test", "pci": "0000:01:00.0", "pci_id": "10de:2330", "cc": "9.0", "memory": "80GiB"}


@pytest.fixture
def make(tmp_path):
    """Renders a scenario that is given as keys; gives the folder."""
    def make(name="machine", **keys):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(keys))
        render.render(path, tmp_path / "out", "none")
        return tmp_path / "out"
    return make


def refuse(make, **keys):
    with pytest.raises(schema.Mistake) as caught:
        make(**keys)
    return str(caught.value)


@pytest.mark.parametrize("name", render.names())
def test_every_scenario_renders(name, tmp_path):
    variables = render.render(name, tmp_path, "none")
    flat = json.loads((tmp_path / "scenario.json").read_text())
    assert flat["about"] and "extends" not in flat
    assert variables["YOKE_SYSROOT"] == str(tmp_path / "root")
    for gpu in flat["gpus"]:
        place = tmp_path / "root/sys/bus/pci/devices" / gpu["pci"]
        if not gpu.get("on_bus", True):
            assert not place.exists()
            continue
        assert (place / "vendor").read_text() == "0x10de\n"
        assert f"0x{gpu['pci_id'][5:]}\n" == (place / "device").read_text()
        assert (place / "driver").resolve().name == gpu["driver"]
        information = tmp_path / "root/proc/driver/nvidia/gpus" / gpu["pci"] / "information"
        assert information.exists() == (gpu["driver"] == "nvidia" and flat["driver"]["loaded"])


def test_the_scenarios_that_the_checks_rest_on_are_there():
    assert {"8xH100-nvlink", "2xeGPU-TB3", "A100+T4", "mig-7x", "vgpu-unlicensed", "none", "driver-library-mismatch",
            "vm-no-topology", "lost-mid-run", "hang-60s", "ambiguous-uuids", "missing-v2-symbols",
            "struct-version-rejection", "exclusive-mode", "throttling", "remap-pending", "amd-card", "jetson",
            "mixed-order", "nouveau", "no-permission", "container-hidden-processes", "sleeping-gpu",
            "2xH100-homogeneous-pair+L4", "mig-half", "mig-half-mixed-uuids", "container-2-of-8",
            "container-2-of-8-unknown-error", "wsl2", "power-limited", "retirement-pending", "unauthorized-dock", "dgx-spark", "jetson-thor"} <= set(render.names())


def test_a_key_that_is_not_known_is_named_with_the_nearest(make):
    text = refuse(make, gpus=[{**GPU, "memroy": "80GiB"}])
    assert 'gpus[0] has a key "memroy"' in text and 'did you mean "memory"?' in text and "machine.json" in text
    assert 'did you mean "thunderbolt"?' in refuse(make, thunderbold=[])
    assert 'did you mean "missing_symbols"?' in refuse(make, nvml={"missing_symbol": []})


@pytest.mark.parametrize("key, value, allowed", [
    ("memory", "81559", "a size"), ("memory", True, "a size"), ("memory", -1, "a size"),
    ("memory", "80 GB iB", "a size"), ("cc", 9.0, "a compute capability"), ("pci", "65:00.0", "a PCI address"),
    ("pci", "0000:AF:00.0", "a PCI address"),
    ("multiprocessors", "132", "a whole number"), ("multiprocessors", True, "a whole number"),
    ("multiprocessors", -4, "0 or more"), ("mig", 1, "true or false"), ("name", None, 'lacks the key "name"'),
    ("uuid", "8932f937", 'begins with "GPU-"'), ("link", [5, 16], "an object"),
    ("compute_mode", 4, "one of 0, 1, 2, 3"),
    ("compute_mode", True, "one of"), ("runtime_status", "asleep", '"suspended"'), ("processes", {}, "a list"),
    ("processes", [{"name": "python"}], 'lacks the key "pid"'), ("model", "H100-SXN", 'did you mean "H100-SXM"?')])
def test_a_value_of_another_type_is_named_with_what_is_allowed(make, key, value, allowed):
    text = refuse(make, gpus=[{**GPU, key: value}])
    assert "gpus[0]" in text and key in text and allowed in text


def test_the_whole_scenario_must_be_an_object(tmp_path):
    for content, told in (("[]", "a scenario is an object"), ("{", "Expecting"),
                          ('{"about": "", "about": ""}', "twice")):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(schema.Mistake, match=told):
            render.load(tmp_path / "x.json")


@pytest.mark.parametrize("depth", [900, 50000])
def test_a_scenario_that_is_nested_too_deep_is_told_so(depth, tmp_path):
    (tmp_path / "deep.json").write_text('{"gpus": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(schema.Mistake, match="deep.json: .* nested deeper"):
        render.load(tmp_path / "deep.json")


def test_a_scenario_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(schema.Mistake, match='did you mean "8xH100-nvlink"'):
        render.load("8xH100-nvlnk")
    with pytest.raises(schema.Mistake, match="no scenario file"):
        render.load("/nowhere/x.json")


def test_extending_in_a_circle_is_refused_by_name(tmp_path):
    for name, below in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.json").write_text(json.dumps({"extends": below}))
    with pytest.raises(schema.Mistake, match="circle: b -> c -> b"):
        render.load(tmp_path / "a.json")
    (tmp_path / "own.json").write_text('{"extends": "own"}')
    with pytest.raises(schema.Mistake, match="circle: own -> own"):
        render.load(tmp_path / "own.json")
    (tmp_path / "lost.json").write_text('{"extends": "nowhere"}')
    with pytest.raises(schema.Mistake, match='lost.json: extends: there is no scenario "nowhere"'):
        render.load(tmp_path / "lost.json")


def test_a_scenario_is_merged_over_what_it_extends(tmp_path):
    (tmp_path / "over.json").write_text(json.dumps({
        "extends": "A100+T4", "driver": {"flavor": "proprietary"}, "nodes": {"1": None},
        "gpu_changes": {"1": {"temperature": 88, "serial": None}}}))
    flat = render.load(tmp_path / "over.json")
    assert flat["driver"]["flavor"] == "proprietary" and flat["driver"]["version"] == "580.82.07"
    assert list(flat["nodes"]) == ["0"]
    assert flat["gpus"][1]["temperature"] == 88 and "serial" not in flat["gpus"][1]
    assert flat["gpus"][0]["serial"] == "1563221018475" and flat["gpus"][0]["name"] == "NVIDIA A100-PCIE-40GB"


@pytest.mark.parametrize("keys, told", [
    ({"gpus": [GPU, GPU]}, "two cards stand at 0000:01:00.0"),
    ({"gpus": [GPU], "bridges": {GPU["pci"]: {}}}, f"a card stands at {GPU['pci']}, which is the address of a bridge"),
    ({"gpus": [{**GPU, "under": "0000:00:01.0"}]}, "gpus[0] stands under 0000:00:01.0, which is no bridge"),
    ({"gpus": [GPU], "nvml": {"lost": {"gpu": 1}}}, "nvml.lost.gpu names card 1, but there are 1"),
    ({"gpus": [GPU], "nvml": {"order": [1]}}, "nvml.order: [1] is not an order of the 1 cards"),
    ({"gpus": [GPU], "nvlink": [[0, 3, 4]]}, "nvlink[0] names card 3"),
    ({"gpus": [GPU], "gpu_changes": {"1": {}}}, "gpu_changes has a card 1"),
    ({"bridges": {"0000:00:01.0": {"parent": "0000:00:01.0"}}}, "stands above itself"),
    ({"modes": {"/dev/nvidia9": "0600"}}, "there is no /dev/nvidia9"),
    ({"files": {"/../etc/passwd": ""}}, 'an absolute path without ".."'),
    ({"gpus": [{**GPU, "processes": [{"pid": 7, "user": "eve"}]}]}, "of the user eve")])
def test_what_does_not_fit_together_is_refused(make, keys, told):
    assert told in refuse(make, **keys)


def test_devices_stand_below_their_bridges_as_in_the_kernels_tree(tmp_path):
    render.render("2xeGPU-TB3", tmp_path, "none")
    devices = tmp_path / "root/sys/bus/pci/devices"
    card = (devices / "0000:07:00.0").resolve()
    assert card.relative_to(tmp_path / "root").as_posix() == (
        "sys/devices/pci0000:00/0000:00:07.0/0000:05:00.0/0000:06:01.0/0000:07:00.0")
    assert (card / "removable").read_text() == "removable\n"
    assert not (devices / "0000:00:07.0/removable").exists()
    assert (card / "current_link_speed").read_text() == "2.5 GT/s PCIe\n"
    dock = tmp_path / "root/sys/bus/thunderbolt/devices/0-1"
    assert (dock / "device_name").read_text() == "Core X\n" and (dock / "authorized").read_text() == "1\n"
    assert (tmp_path / "root/sys/bus/thunderbolt/devices/domain0/security").read_text() == "user\n"
    assert not [path for path in (tmp_path / "root").rglob("*") if path.is_symlink() and not path.exists()]


def test_the_kernel_modules_banner_tells_its_flavor(make):
    for flavor, words in (("open", "UNIX Open Kernel Module for x86_64  580.82.07"),
                          ("proprietary", "UNIX x86_64 Kernel Module  580.82.07")):
        folder = make(gpus=[GPU], driver={"flavor": flavor})
        assert f"NVRM version: NVIDIA {words}" in (folder / "root/proc/driver/nvidia/version").read_text()


def test_processes_that_are_seen_have_a_folder_and_hidden_ones_none(tmp_path):
    render.render("container-hidden-processes", tmp_path, "none")
    seen = tmp_path / "root/proc/214"
    assert (seen / "comm").read_text() == "python\n" and "docker-f2c4a7b9" in (seen / "cgroup").read_text()
    assert "Uid:\t0\t0\t0\t0\n" in (seen / "status").read_text()
    assert not (tmp_path / "root/proc/901233").exists()


def test_what_probes_would_measure_is_one_line_each(tmp_path):
    render.render("2xH100-homogeneous-pair+L4", tmp_path, "none")
    lines = (tmp_path / "root/yoke/probes").read_text().splitlines()
    assert "0.h2d 55000000000.0" in lines and "1.peer.0 370000000000.0" in lines and "2.smoke ok" in lines


def test_what_an_earlier_scenario_left_in_the_folder_goes(tmp_path):
    render.render("A100+T4", tmp_path, "none")
    render.render("none", tmp_path, "none")
    assert not (tmp_path / "root/proc/driver").exists() and not (tmp_path / "root/dev/nvidia0").exists()


def test_a_missing_symbol_is_found_in_no_copy_of_the_library(tmp_path):
    library = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", "/nowhere")) / "tests/fakes/edge/libnvidia-ml.so.1"
    if not library.is_file():
        pytest.skip("the fake NVML library is not built")
    render.render("missing-v2-symbols", tmp_path)
    older = ctypes.CDLL(str(tmp_path / "lib/libnvidia-ml.so.1"))
    assert not hasattr(older, "nvmlDeviceGetMemoryInfo_v2") and hasattr(older, "nvmlDeviceGetMemoryInfo")
    assert not hasattr(older, "nvmlDeviceGetComputeRunningProcesses_v3")
    assert hasattr(older, "nvmlDeviceGetComputeRunningProcesses_v2")
    (tmp_path / "x.json").write_text(json.dumps({"nvml": {"missing_symbols": ["nvmlDeviceGetTemperatur"]}}))
    with pytest.raises(schema.Mistake, match='did you mean "nvmlDeviceGetTemperature"'):
        render.render(tmp_path / "x.json", tmp_path / "out")


@pytest.mark.parametrize("damaged, told", [
    ("[]", "the scenario: [] is not an object"), ('{"gpus": [5]}', "gpus[0]: 5 is not an object"),
    ('{"gpus": [{}, {"name": 5}]}', "gpus[1].name: 5 is not text"), ('{"gpus": 5}', "gpus: 5 is not a list"),
    ('{"nvml": []}', "nvml: [] is not an object"),
    ('{"gpus": [{}], "nvml": {"order": [3]}}', "nvml.order: 3 is not the number of a card"),
    ('{"bridges": {"0000:00:01.0": {"parent": 5}}}', 'bridges.0000:00:01.0: {"parent":5} is not'),
    ('{"driver": {"version": 5}}', "driver.version: 5 is not text"),
    ('{"nvml": {"version": 5}}', "nvmlSystemGetNVMLVersion: ")])
def test_the_fake_library_names_what_is_damaged_in_its_scenario(damaged, told, tmp_path):
    library = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", "/nowhere")) / "tests/fakes/edge/libnvidia-ml.so.1"
    if not library.is_file():
        pytest.skip("the fake NVML library is not built")
    path = tmp_path / "scenario.json"
    path.write_text(damaged)
    ask = f"import ctypes; l = ctypes.CDLL({str(library)!r}); l.nvmlInit_v2(); " \
          "l.nvmlSystemGetNVMLVersion(ctypes.create_string_buffer(80), 80)"
    done = subprocess.run([sys.executable, "-c", ask], env=os.environ | {"YOKE_FAKE_SCENARIO": str(path)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and f"fake NVML: {path}: {told}" in done.stderr, done.stderr


def test_a_library_that_is_not_there_is_an_error_that_says_how_to_build_it(tmp_path):
    with pytest.raises(schema.Mistake, match="build the target fake_nvml"):
        render.render("A100+T4", tmp_path, str(tmp_path / "nothing.so"))
