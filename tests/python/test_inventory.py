"""The inventory of every machine of the fake edge: the facts about each card, and the reason if a card is not usable.

Each machine is a separate process, over a fake management library and a fake root.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
EDGE = HERE.parent / "fakes" / "edge"
sys.path.insert(0, str(EDGE))
render = pytest.importorskip("render")

BUILD = pathlib.Path(os.environ["YOKE_BUILD_DIR"])
LIBRARY = BUILD / "tests" / "fakes" / "edge" / render.LIBRARY
GIB = 2**30
if not LIBRARY.is_file():
    pytest.skip("there is no fake NVML in this build", allow_module_level=True)


def look(folder, scenario, *arguments, check=True, **variables):
    """Returns a process's view of the machine of a scenario: a name, or its keys."""
    if isinstance(scenario, dict):
        path = folder / "machine.json"
        path.write_text(json.dumps({"about": "a machine of this test", **scenario}))
        scenario = str(path)
    machine = render.render(scenario, folder / "machine", LIBRARY)
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("CUDA_", "NVIDIA_")) and key not in ("YOKE_NVML_TIMEOUT", "YOKE_DEVICE")}
    done = subprocess.run([sys.executable, str(HERE / "inventory_c.py"), *arguments], text=True, timeout=60,
                          capture_output=True, env={**kept, **machine, **variables})
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def column(seen, key):
    return [card[key] for card in seen["cards"]]


def holds(seen, **wanted):
    """Checks the columns. A text for `reason` is a part of the reason, "" for no reason."""
    for key, values in wanted.items():
        if key == "reason":
            for part, text in zip(values, column(seen, "reason"), strict=True):
                assert part in text and bool(part) == bool(text), (part, text)
        else:
            assert column(seen, key) == values, key


# Facts that set each machine apart.
MACHINES = {
    "8xH100-nvlink": dict(kind=[1] * 8, reason=[""] * 8, visible=list(range(8)), nvlinks_active=[18] * 8,
                          cc_major=[9] * 8, multiprocessors=[132] * 8, numa_node=[0] * 4 + [1] * 4,
                          link_generation=[5] * 8),
    "2xeGPU-TB3": dict(kind=[3, 1, 1], is_egpu=[0, 1, 1], enclosure=["", "Razer Core X",
                       "Sonnet Technologies, Inc eGPU Breakaway Box 550"], enclosure_rate=[None, 40e9, 40e9],
                       reason=["no backend of this build", "", ""], link_generation=[-1, 1, 3], link_width=[-1, 4, 4],
                       visible=[-1, 0, 1], display=[1, 0, 0]),
    "A100+T4": dict(reason=["", ""], cc_major=[8, 7], multiprocessors=[108, 40], numa_node=[0, 1]),
    "mig-7x": dict(kind=[1] + [2] * 7, parent=[-1] + [0] * 7, mig_instances=[7] + [-1] * 7, visible=[-1, 0] + [-1] * 6,
                   reason=["partitioned into 7 MIG instances"] + [""] * 7, multiprocessors=[108] + [14] * 7,
                   memory_total=[40 * GIB] + [4864 * 2**20] * 7),
    "mig-empty": dict(kind=[1], mig=[1], mig_instances=[0], visible=[-1], reason=["-cgi 0 -C"]),
    "vgpu-unlicensed": dict(vgpu=[1], vgpu_licensed=[0], reason=[""]),
    "vgpu-licensed": dict(vgpu=[1], vgpu_licensed=[1], reason=[""]),
    "none": dict(vendor=["1a03"], reason=["no backend of this build"], present=[1]),
    "driver-library-mismatch": dict(reason=["different versions (code 18) (kernel module 575.57.08"] * 2,
                                    name=["NVIDIA A100-PCIE-40GB", "Tesla T4"], memory_total=[-1, -1]),
    "vm-no-topology": dict(reason=[""] * 4, numa_node=[-1] * 4),
    "lost-mid-run": dict(present=[1, 1, 1, 0, 1, 1, 1, 1], visible=[0, 1, 2, -1, 3, 4, 5, 6],
                         reason=["", "", "", "restart the machine", "", "", "", ""]),
    "missing-v2-symbols": dict(reason=["Yoke needs 530"] * 2, memory_reserved=[-1, -1], hidden_memory=[0, 0],
                               hidden_processes=[0, 0]),
    "struct-version-rejection": dict(reason=["", ""], memory_reserved=[-1, -1],
                                     memory_total=[40 * GIB, 15 * GIB]),
    "exclusive-mode": dict(compute_mode=[3, 2, 0], reason=["process 8123 (tritonserver) uses the GPU", "'prohibited'", ""]),
    "throttling": dict(),
    "remap-pending": dict(),
    "amd-card": dict(vendor=["amd", "amd"], kind=[1, 3], reason=["no backend of this build"] * 2,
                     memory_total=[24560 * 2**20, 512 * 2**20]),
    "jetson": dict(kind=[3], name=["NVIDIA Jetson AGX Orin Developer Kit"], reason=["Jetson"], cc_major=[8],
                   cc_minor=[7], memory_total=[64349568 * 1024], pci=[""]),
    "dgx-spark": dict(kind=[3], name=["NVIDIA GB10"], reason=[""], cc_major=[12], cc_minor=[1], visible=[0], is_egpu=[0],
                      memory_total=[125489508 * 1024], memory_free=[118741248 * 1024], hidden_memory=[-1], multiprocessors=[48],
                      link_generation=[-1], link_width=[-1]),
    "jetson-thor": dict(kind=[3], name=["NVIDIA Thor"], reason=[""], cc_major=[11], cc_minor=[0], visible=[0], nvml_index=[0],
                        memory_total=[128790528 * 1024], memory_free=[120210040 * 1024], pci=["0000:01:00.0"]),
    "nouveau": dict(driver=["nouveau"], reason=["blacklist nouveau"], visible=[-1]),
    "no-permission": dict(reason=["no permission (code 4); give this user access to /dev/nvidiactl"] * 2),
    "sleeping-gpu": dict(asleep=[0, 1], reason=["no backend of this build", ""], visible=[-1, 0], nvml_index=[-1, -1],
                         name=["Intel 8086:a7a0", "NVIDIA GeForce RTX 4070 Laptop GPU"], memory_total=[-1, -1]),
    "container-hidden-processes": dict(process_count=[3, 1], hidden_processes=[2, 1],
                                       hidden_memory=[20 * GIB, 32 * GIB]),
    "ambiguous-uuids": dict(visible=[0, 1, 2, 3], reason=[""] * 4),
}


@pytest.mark.parametrize("name", MACHINES)
def test_each_machine_is_told_as_it_is(name, tmp_path):
    if name not in render.names():
        pytest.skip(f"there is no scenario {name}")
    seen = look(tmp_path, name)
    holds(seen, **MACHINES[name])
    pci = column(seen, "pci")
    assert pci == sorted(pci) and column(seen, "index") == list(range(len(pci)))
    assert seen["threads"] == 1, "a thread was left behind"
    assert not [file for file in seen["maps"] if "libcuda" in file or "libcu" in pathlib.Path(file).name]


# Thor's GPU on the PCI bus, to which NVML gives another address.
OTHER_ADDRESS = {"gpu_defaults": {"on_bus": False}, "gpu_changes": {"0": {"pci": "0001:01:00.0", "under": None}},
                 "other_cards": [{"vendor": "10de", "device": "2b00", "class": "030200", "pci": "0000:01:00.0", "driver": "nvidia"}],
                 "driver": {"in_kernel": False}}
SOURCES = {
    "all": {}, "no-nvml": {"nvml": {"present": False}}, "nvgpu-on-the-bus": {"gpu_defaults": {"driver": "nvgpu"}},
    "no-bus": {"gpu_defaults": {"on_bus": False}}, "no-bus-no-proc": {"gpu_defaults": {"on_bus": False}, "driver": {"in_kernel": False}},
    "other-address": OTHER_ADDRESS, "nvgpu-alone": {"gpu_defaults": {"driver": "nvgpu"}, "nvml": {"present": False}},
    "tree-alone": {"gpus": [], "driver": {"loaded": False}, "nvml": {"present": False}},
    "no-device-file": {"files": {"/dev/nvgpu": None, "/dev/nvmap": None}}}


@pytest.mark.parametrize("name", SOURCES)
def test_a_thor_is_one_card_whichever_sources_tell_of_it(name, tmp_path):
    seen = look(tmp_path, {"extends": "jetson-thor", **SOURCES[name]})
    holds(seen, kind=[3], present=[1], cc_major=[11], cc_minor=[0], memory_total=[128790528 * 1024],
          memory_free=[120210040 * 1024])
    if name in ("no-bus-no-proc", "tree-alone"):
        holds(seen, reason=["this build has no CUDA module with code for this GPU"], visible=[-1])
    else:
        holds(seen, reason=[""], visible=[0])


def test_a_card_in_a_slot_beside_a_thor_stays_a_card_of_its_own(tmp_path):
    thor = json.loads((EDGE / "scenarios" / "jetson-thor.json").read_text())["gpus"][0]
    slot = {"model": "L4", "uuid": "GPU-0d3c7a51-2c0d-5f0e-9d3a-1f6f6f0a7c21", "pci": "0002:01:00.0"}
    holds(look(tmp_path, {"extends": "jetson-thor", "gpus": [thor, slot]}), kind=[3, 1], cc_major=[11, 8],
          memory_total=[128790528 * 1024, 23034 * 2**20], nvml_index=[0, 1])


def test_a_gpu_of_a_number_that_nobody_knows_has_the_hosts_memory_where_nvml_tells_of_none(tmp_path):
    spark = json.loads((EDGE / "scenarios" / "dgx-spark.json").read_text())["gpus"][0]
    scenario = {"extends": "dgx-spark", "gpus": [{**spark, "name": "NVIDIA GB12", "pci_id": "10de:3e99"}]}
    holds(look(tmp_path, scenario), kind=[3], memory_total=[125489508 * 1024], memory_free=[118741248 * 1024], link_width=[-1])
    (tmp_path / "plain").mkdir()
    plain = {"extends": "dgx-spark", "gpus": [{**spark, "pci_id": "10de:3e99", "unified": False, "processes": []}]}
    holds(look(tmp_path / "plain", plain), kind=[1], memory_total=[128501256192], link_width=[1])


def test_measures_are_in_base_units(tmp_path):
    first = look(tmp_path, "8xH100-nvlink")["cards"][0]
    assert (first["sm_clock"], first["sm_clock_max"], first["memory_clock_max"]) == (345e6, 1980e6, 2619e6)
    assert (first["power"], first["power_limit"], first["temperature"]) == (70, 700, 30)
    assert first["memory_total"] == 81559 * 2**20 and first["pci_id"] == 0x10de2330 - 2**32 * (0x10de2330 >> 31)
    assert first["memory_free"] == first["memory_total"] - first["memory_used"] - first["memory_reserved"]


def test_throttling_health_and_partition_states_are_read(tmp_path):
    gpu = {"pci": "0000:65:00.0", "model": "H100-SXM", "throttle": 0xe8, "ecc": True, "ecc_uncorrected": 3,
           "ecc_corrected": 5, "remap_pending": True, "remap_failed": True, "persistence": False, "utilization": 42,
           "link": {"generation": 3, "generation_max": 5, "width": 8, "width_max": 16, "replays": 9}}
    holds(look(tmp_path, {"gpus": [gpu]}), throttle=[0xe8], ecc=[1], ecc_uncorrected=[3], ecc_corrected=[5],
          remap_pending=[1], remap_failed=[1], persistence=[0], utilization=[0.42], link_generation=[3],
          link_generation_max=[5], link_width=[8], link_width_max=[16], link_replays=[9])


def test_cards_are_joined_by_address_whatever_their_order_in_nvml(tmp_path):
    seen = look(tmp_path, {"extends": "A100+T4", "nvml": {"order": [1, 0]}})
    holds(seen, name=["NVIDIA A100-PCIE-40GB", "Tesla T4"], nvml_index=[1, 0], pci=["0000:3b:00.0", "0000:af:00.0"])


def test_without_a_call_by_address_cards_are_found_by_index_and_still_joined(tmp_path):
    missing = ["nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2"]
    seen = look(tmp_path, {"extends": "A100+T4", "nvml": {"order": [1, 0], "missing_symbols": missing}})
    holds(seen, name=["NVIDIA A100-PCIE-40GB", "Tesla T4"], nvml_index=[1, 0], memory_total=[40 * GIB, 15 * GIB])


def test_a_call_that_is_not_supported_leaves_its_field_unknown(tmp_path):
    errors = {call: 3 for call in ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetEccMode",
                                   "nvmlDeviceGetPowerUsage", "nvmlDeviceGetComputeRunningProcesses_v3",
                                   "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses")}
    holds(look(tmp_path, {"extends": "A100+T4", "nvml": {"errors": errors}}), temperature=[None, None], ecc=[-1, -1],
          power=[None, None], process_count=[-1, -1], hidden_memory=[-1, -1], reason=["", ""])


@pytest.mark.parametrize("code, part", [(9, "modprobe nvidia"), (17, "in a container, create"),
                                        (4, "/dev/nvidiactl"), (18, "restart the machine"), (15, "Xid 79"),
                                        (999, "nvrm")])
def test_a_library_that_does_not_start_is_the_reason_of_each_card(code, part, tmp_path):
    seen = look(tmp_path, {"extends": "A100+T4", "nvml": {"init_error": code}})
    holds(seen, reason=[part] * 2)
    assert part in seen["facts"]["nvml_problem"] and f"(code {code})" in seen["facts"]["nvml_problem"]


@pytest.mark.parametrize("code, part", [(4, "may not open the card"), (6, "--gpus all"), (16, "needs a reset"),
                                        (15, "a reset does not help")])
def test_a_card_that_is_refused_has_its_reason(code, part, tmp_path):
    call = {"nvmlDeviceGetHandleByPciBusId_v2": code}
    seen = look(tmp_path, {"extends": "A100+T4", "nvml": {"errors": call, "missing_symbols": []}})
    reasons = [reason for reason in column(seen, "reason") if part in reason]
    assert len(reasons) == 2 or code == 6, column(seen, "reason")  # by index, an address that is not found is found


def test_a_reset_that_is_asked_for_is_a_reason(tmp_path):
    holds(look(tmp_path, {"extends": "A100+T4", "nvml": {"errors": {"nvmlDeviceGetMemoryInfo_v2": 16}}}),
          reason=["nvidia-smi --gpu-reset -i GPU-8932f937"] + ["nvidia-smi --gpu-reset -i GPU-5d5ba0d6"])


def test_without_the_library_cards_stay_usable_and_the_fact_says_why(tmp_path):
    seen = look(tmp_path, {"extends": "A100+T4", "nvml": {"present": False}})
    holds(seen, reason=["", ""], name=["NVIDIA A100-PCIE-40GB", "Tesla T4"], minor=[0, 1])
    assert "libnvidia-ml.so.1" in seen["facts"]["nvml_problem"] and seen["facts"]["driver"] == "580.82.07"


def test_a_sleeping_card_is_asked_nothing(tmp_path):
    calls = tmp_path / "calls"
    look(tmp_path, "sleeping-gpu", FAKE_NVML_CALLS=str(calls))
    assert "nvmlInitWithFlags" in calls.read_text() and "Device" not in calls.read_text().replace("DeviceGetCount", "")


# ---- A hanging library ----------------------------------------------------------------------------------------------


def test_a_call_that_hangs_is_left_behind_and_named(tmp_path):
    seen = look(tmp_path, "hang-60s", YOKE_NVML_TIMEOUT="0.3")
    problem = "nvmlDeviceGetUtilizationRates for 0000:c3:00.0 did not answer within 0.3 s"
    assert problem in seen["facts"]["nvml_problem"] and 0.3 <= seen["seconds"] < 5
    assert seen["threads"] == 2, "the thread that hangs is the only one that is left"
    holds(seen, cc_major=[9] * 6 + [-1] * 2, utilization=[0] * 5 + [None] * 3,
          reason=[""] * 5 + ["hangs on this card"] + [""] * 2)


def test_a_library_that_hangs_at_its_start_is_the_reason_of_each_card(tmp_path):
    seen = look(tmp_path, {"extends": "A100+T4", "nvml": {"hang": {"call": "nvmlInitWithFlags", "seconds": 60}}},
                YOKE_NVML_TIMEOUT="0.3")
    holds(seen, reason=["the driver does not answer: nvmlInitWithFlags did not answer within 0.3 s"] * 2)


def test_a_card_that_does_not_tell_its_number_is_counted_by_its_place(tmp_path):
    seen = look(tmp_path, {"extends": "8xH100-nvlink", "nvml": {"errors": {"nvmlDeviceGetIndex": 999}}})
    assert column(seen, "nvml_index") == list(range(8)) and column(seen, "visible") == list(range(8))


def test_an_instance_is_found_by_its_card_and_numbers_too(tmp_path):
    whole = column(look(tmp_path / "first", "mig-7x"), "uuid")[0]
    seen = look(tmp_path / "then", "mig-7x", CUDA_VISIBLE_DEVICES=f"MIG-{whole}/9/0")
    assert column(seen, "visible") == [-1] * 3 + [0] + [-1] * 4


def test_the_deadline_is_the_same_where_the_host_writes_a_comma_for_the_point(comma_locale, tmp_path):
    seen = look(tmp_path, "hang-60s", "1", "locale", LOCPATH=str(tmp_path), LC_NUMERIC="de_DE.utf8",
                YOKE_NVML_TIMEOUT="0.9")
    assert "did not answer within 0.9 s" in seen["facts"]["nvml_problem"] and seen["seconds"] >= 0.9


def test_a_later_inventory_says_at_once_that_the_library_hangs(tmp_path):
    seen = look(tmp_path, "hang-60s", "3", YOKE_NVML_TIMEOUT="0.3")
    assert "does not call NVML again" in seen["facts"]["nvml_problem"] and seen["seconds"] < 0.3
    assert seen["threads"] == 2 and "hangs on this card" in seen["cards"][5]["reason"]


@pytest.mark.parametrize("value", ["0", "-1", "soon", "3601"])
def test_a_deadline_that_cannot_be_read_is_refused(value, tmp_path):
    done = look(tmp_path, "none", check=False, YOKE_NVML_TIMEOUT=value)
    assert done.returncode and f"YOKE_NVML_TIMEOUT is '{value}'" in done.stderr
    assert "seconds, more than 0" in done.stderr


# ---- Forks, other calls ---------------------------------------------------------------------------------------------


def test_a_forked_child_takes_an_inventory_of_its_own(tmp_path):
    seen = look(tmp_path, "8xH100-nvlink", "1", "fork")
    holds(seen, reason=[""] * 8, multiprocessors=[132] * 8)
    assert seen["facts"]["nvml_problem"] == "" and seen["threads"] == 1


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""),
                    reason="AddressSanitizer's allocator does not support a fork beside other threads")
def test_threads_and_children_that_fork_meanwhile_all_get_theirs(tmp_path):
    assert look(tmp_path, "8xH100-nvlink", "1", "threads") == [8, 8, 8]


def test_every_snapshot_ends_what_it_started(tmp_path):
    calls = tmp_path / "calls"
    look(tmp_path, "A100+T4", "3", FAKE_NVML_CALLS=str(calls))
    lines = calls.read_text().split("\n")
    assert lines.count("nvmlInitWithFlags") == lines.count("nvmlShutdown") == 3


def test_visible_devices_are_numbered_as_cuda_numbers_them(tmp_path):
    seen = look(tmp_path, "8xH100-nvlink", CUDA_VISIBLE_DEVICES="6,2")
    assert column(seen, "visible") == [-1, -1, 1, -1, -1, -1, 0, -1]
    seen = look(tmp_path, "8xH100-nvlink", CUDA_VISIBLE_DEVICES="0,9,1")
    assert column(seen, "visible") == [0] + [-1] * 7 and "entry '9'" in seen["facts"]["visible_devices"]
    seen = look(tmp_path, "mixed-order") if "mixed-order" in render.names() else None
    assert seen is None or sorted(column(seen, "visible")) == list(range(len(seen["cards"])))
    order = dict(CUDA_DEVICE_ORDER="PCI_BUS_ID")
    swapped = {"gpus": [{"model": "T4", "pci": "0000:3b:00.0"}, {"model": "A100-PCIE-40", "pci": "0000:af:00.0"}]}
    assert column(look(tmp_path, swapped), "visible") == [1, 0]
    assert column(look(tmp_path, swapped, **order), "visible") == [0, 1]


def test_an_ambiguous_prefix_ends_the_list(tmp_path):
    seen = look(tmp_path, "ambiguous-uuids", CUDA_VISIBLE_DEVICES="GPU-c0,GPU-a1b2c3d4")
    assert column(seen, "visible") == [-1, -1, 0, -1] and "more than one UUID" in seen["facts"]["visible_devices"]


def test_links_say_nvlink_paths_and_peers(tmp_path):
    seen = look(tmp_path, "8xH100-nvlink")
    assert seen["links"][0][0]["label"] == "X" and seen["links"][0][0]["path"] == -1
    assert seen["links"][0][7]["label"] == "NV18" and seen["links"][0][7]["nvlinks"] == 18
    assert seen["links"][0][7]["peer"] == 1 and seen["links"][0][7] == seen["links"][7][0]
    assert [network["paths"][0] for network in seen["networks"]] == [10, 40, 40, 40, 50, 50, 50, 50]
    assert seen["topology"].split("\n")[1].split()[:3] == ["GPU0", "X", "NV18"]


def test_direct_nvlinks_join_only_the_pairs_they_lead_to(tmp_path):
    gpus = [{"model": "A100-PCIE-40", "pci": f"0000:{bus}:00.0", "nvlinks": 12, "nvlinks_active": active}
            for bus, active in (("3b", 12), ("5e", 12), ("af", 0))]
    links = look(tmp_path, {"gpus": gpus, "nvlink": [[0, 1, 12]]})["links"]
    assert [links[0][1]["label"], links[0][2]["nvlinks"], links[1][2]["nvlinks"]] == ["NV12", 0, 0]


EMULATED = [BUILD / "tests" / "emu" / "lib", BUILD / "tests" / "fakes" / "cuda" / "driver"]


@pytest.mark.skipif(not (EMULATED[0] / "libyoke_cuda.so").is_file(), reason="there is no emulated CUDA in this build")
def test_a_sample_of_a_cuda_device_is_joined_to_its_card_and_one_that_is_lost_is_told(tmp_path):
    paths = os.pathsep.join(map(str, EMULATED))
    driver = dict(YOKE_CUDA_LIB_PATH=str(EMULATED[1]), LD_LIBRARY_PATH=paths)
    found = look(tmp_path, {"extends": "A100+T4", "nvml": {"order": [1, 0]}}, "0", "sample", **driver)
    assert [card["pci"] for card in found] == ["0000:3b:00.0", "0000:af:00.0"]
    assert [card["power"] for card in found] == [36, 9]
    assert [card["told"] for card in found] == [card["uuid"] for card in found]
    found = look(tmp_path, "mig-7x", "0", "sample", **driver)
    assert len(found) == 1 and found[0]["kind"] == 2, "a sample of an instance is not that of its whole card"
    assert found[0]["memory_total"] == 4864 * 2**20 and found[0]["told"] == found[0]["uuid"]
    found = look(tmp_path, "lost-mid-run", "0", "sample", **driver)
    lost = [one for one in found if isinstance(one, str)]
    assert len(found) == 8 and len(lost) == 1 and "cuda:3" in lost[0] and "is gone" in lost[0]


def test_a_plain_machine_has_an_inventory_too(tmp_path):
    kept = {key: value for key, value in os.environ.items() if key not in render.environment_of(
        {"nvml": {"present": True}}, tmp_path)}
    done = subprocess.run([sys.executable, str(HERE / "inventory_c.py")], text=True, timeout=60, capture_output=True,
                          env=kept)
    seen = json.loads(done.stdout)
    bus = pathlib.Path("/sys/bus/pci/devices")
    classes = [(each / "class").read_text() for each in bus.iterdir()] if bus.is_dir() else []
    on_bus = sum(text.startswith(("0x03", "0x12")) for text in classes)
    assert len([card for card in seen["cards"] if card["kind"] != 2]) >= on_bus
    for card in seen["cards"]:
        assert card["reason"] or card["vendor"] == "nvidia"
    assert seen["threads"] == 1
