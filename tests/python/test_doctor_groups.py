"""The doctor on the needs of a group's GPUs: NCCL, the paths between GPUs, shared memory, and networks."""
import pytest

from doctor_machines import CASES, examined, patched, rendered, replayed

ONE = {"gpus": [{"uuid": "GPU-11111111-aaaa-4bbb-8ccc-000000000001", "pci": "0000:1b:00.0", "under": "0000:1a:00.0"}],
       "nvlink": [], "networks": [], "probes": None}
NO_NCCL = {"files": {"/usr/lib/x86_64-linux-gnu/libnccl.so.2": None}}
SWITCH = {"with": ["switch"]}
PORT = [{"name": "mlx5_0", "pci": "0000:1c:00.0"}]


def check_of(case, patch, id, tmp_path):
    return examined(rendered(patched(case, patch), tmp_path / "case"))["checks"][id]


@pytest.mark.parametrize("id, patch", [("nccl", NO_NCCL), ("nccl-floor", {"driver": {"version": "550.90.07", "cuda": "12.4"}}),
                                       ("peer-routes", {"gpu_defaults": {"iommu": {"group": 1, "type": "DMA"}}})])
def test_a_machine_of_one_gpu_is_told_of_groups_where_a_network_is_up(id, patch, tmp_path):
    alone = check_of({}, {**ONE, **patch}, id, tmp_path / "alone")
    assert alone["status"] == "skip" and "one GPU, and no InfiniBand or RoCE port is up" in alone["evidence"], alone
    down = check_of({}, {**ONE, **patch, "networks": [{**PORT[0], "state": "DOWN"}]}, id, tmp_path / "down")
    assert down["status"] == "skip", down
    assert check_of({}, {**ONE, **patch, "networks": PORT}, id, tmp_path / "up")["status"] in ("warn", "fail")


def test_nccl_is_told_with_its_version_and_its_cuda_and_where_it_lies(tmp_path):
    check = check_of({}, {}, "nccl", tmp_path / "base")
    assert check["status"] == "ok" and check["evidence"] == "NCCL 2.27.7 for CUDA 13.0: /usr/lib/x86_64-linux-gnu/libnccl.so.2"
    loaded = {"files": {"/proc/self/maps": "7f00 r-xp 0 08:01 1 /venv/lib/libnccl.so.2\n", "/venv/lib/libnccl.so.2": "NCCL version 2.28.3+cuda12.9\n"}}
    check = check_of({}, loaded, "nccl", tmp_path / "loaded")
    assert check["evidence"] == "NCCL 2.28.3 for CUDA 12.9: /venv/lib/libnccl.so.2"


def test_an_nccl_of_another_major_version_is_none(tmp_path):
    check = check_of({}, {"files": {"/usr/lib/x86_64-linux-gnu/libnccl.so.2": None, "/opt/libnccl.so.1": ""},
                          "environment": {"YOKE_CUDA_LIB_PATH": "/opt"}}, "nccl", tmp_path)
    assert check["status"] == "warn" and "/opt/libnccl.so.1 has version 1, not 2; groups of GPUs copy through" in check["evidence"]


@pytest.mark.parametrize("gpus, size, status", [("two", "524288k", "warn"), ("two", "1048576k", "ok"), ("one", "524288k", "ok"), ("one", "65536k", "warn")])
def test_several_gpus_want_more_shared_memory_than_one(gpus, size, status, tmp_path):
    mounts = {"files": {"/proc/self/mounts": f"shm /dev/shm tmpfs rw,size={size} 0 0\n"}}
    check = check_of({}, {**(ONE if gpus == "one" else {}), **mounts}, "shared-memory", tmp_path)
    assert check["status"] == status and ("NCCL" in check["evidence"]) == (gpus == "two" and status == "warn"), check


@pytest.mark.parametrize("change, status", [
    ({"nvlink": [[0, 1, 12]], "gpu_defaults": {"nvlinks_active": 12}}, "skip"),  # NVLink carries the copies
    ({"gpu_defaults": {"p2p": False}}, "skip"),  # the driver copies through the host
    ({}, "warn")])
def test_copies_that_do_not_go_directly_over_pci_express_are_not_diverted(change, status, tmp_path):
    ports = {"bridges": {"0000:18:00.0": {"acs": 29}, "0000:18:04.0": {"acs": 29}}, **change}
    check = check_of(SWITCH, ports, "peer-routes", tmp_path)
    assert check["status"] == status, check


def test_the_root_alone_joins_cards_whose_groups_differ_and_nothing_is_parted(tmp_path):
    apart = {"nvlink": [], "networks": [], "gpu_changes": {"0": {"iommu": {"group": 1, "type": "identity"}}, "1": {"iommu": {"group": 2, "type": "identity"}}}}
    assert check_of({}, apart, "peer-routes", tmp_path)["status"] == "ok"


@pytest.mark.parametrize("machine, status", [({"extends": "dgx-spark"}, "skip"), (patched({}, ONE), "warn")], ids=["in-the-processor", "of-its-own"])
def test_memory_that_is_the_hosts_is_not_copied_by_the_network(machine, status, tmp_path):
    port = [{"name": "mlx5_0", "pci": "0000:7c:00.0", "iommu": {"group": 9, "type": "DMA-FQ"}}]
    check = examined(rendered({**machine, "networks": port}, tmp_path / "case"))["checks"]["peer-routes"]
    assert check["status"] == status, check


def test_of_many_pairs_one_is_shown_and_the_others_are_counted(tmp_path):
    cards = [{"uuid": f"GPU-{i}1111111-aaaa-4bbb-8ccc-000000000001", "pci": f"0000:{i + 5}0:00.0", "under": f"0000:18:0{i}.0",
              "iommu": {"group": 20 + i, "type": "DMA"}} for i in range(4)]
    bridges = {f"0000:18:0{i}.0": {"parent": "0000:17:00.0", "acs": 29 if i < 2 else 0} for i in range(4)}
    check = check_of(SWITCH, {"gpus": cards, "bridges": {**bridges, "0000:18:04.0": None}, "probes": None}, "peer-routes", tmp_path)
    assert check["status"] == "warn"
    assert "hang or deliver wrong bytes: between GPU 0 (NVIDIA A100-PCIE-40GB, 0000:50:00.0) and GPU 1" in check["evidence"]
    assert "0000:60:00.0), and 5 more pairs; ACS of 0000:18:00.0, 0000:18:01.0 sends" in check["evidence"]
    assert check["evidence"].endswith("0000:60:00.0), and 4 more pairs"), "those of the last two cards are not redirected"
    assert check["remedy"].count("setpci") == 2


def test_a_user_who_may_not_read_acs_is_told_so_where_nothing_else_tells(tmp_path):
    ungrouped = [{"pci": "0000:19:00.0", "under": "0000:18:00.0"}, {"pci": "0000:1d:00.0", "under": "0000:18:04.0"}]
    check = check_of(SWITCH, {"gpus": ungrouped, "probes": None}, "peer-routes", tmp_path)
    assert check["status"] == "ok" and "for 1 of them, only an administrator can read whether ACS is on" in check["evidence"], check


@pytest.mark.parametrize("name", ["GeForce RTX 4090", "TITAN RTX"])
def test_cards_that_no_network_reaches_need_no_module_for_it(name, tmp_path):
    check = check_of({}, {"driver": {"flavor": "proprietary"}, "gpu_defaults": {"name": f"NVIDIA {name}"}}, "peer-memory", tmp_path)
    assert check["status"] == "skip" and "no GPUDirect RDMA" in check["evidence"]


@pytest.mark.parametrize("files, status", [({}, "warn"), ({"/sys/module/nvidia_peermem/initstate": "live\n"}, "ok")])
def test_roce_reaches_memory_by_the_module_where_the_driver_gives_no_other_way(files, status, tmp_path):
    port = [{"name": "rocep1s0", "pci": "0000:1c:00.0", "layer": "Ethernet"}]
    check = check_of({}, {"driver": {"flavor": "proprietary"}, "networks": port, "files": files}, "peer-memory", tmp_path)
    assert check["status"] == status and ("rocep1s0 is up" in check["evidence"]) == (status == "warn"), check


def test_a_machine_of_several_gpus_and_no_network_needs_no_module_for_one(tmp_path):
    check = check_of({}, {"driver": {"flavor": "proprietary"}, "networks": []}, "peer-memory", tmp_path)
    assert check["status"] == "skip", check


@pytest.mark.parametrize("case", [c for c in CASES if c["check"] in ("nccl", "peer-routes")], ids=lambda case: case["check"])
@pytest.mark.parametrize("redact", [False, True])
def test_what_groups_need_replays_from_a_recording(case, redact, tmp_path):
    first = examined(rendered(patched(case, case["patch"]), tmp_path / "case"), tmp_path / "record", redact=redact)
    again = examined(replayed(tmp_path / "record"))
    for id in ("nccl", "nccl-floor", "peer-routes", "shared-memory", "peer-memory"):
        assert again["checks"][id] == first["checks"][id]


def test_a_recording_of_a_bridge_holds_its_acs_and_no_serial_number(tmp_path):
    case = {**SWITCH, "patch": {"bridges": {"0000:18:00.0": {"acs": 29}}}}
    variables = rendered(patched(case, case["patch"]), tmp_path / "case")
    examined(variables, tmp_path / "record")
    path = "sys/bus/pci/devices/0000:18:00.0/config"
    given, kept = (tmp_path / "case" / "machine" / "root" / path).read_bytes(), (tmp_path / "record" / "root" / path).read_bytes()
    assert bytes.fromhex("5eced0c0ffee5eed") in given and len(given) == 4096
    assert kept == bytes(256) + bytes.fromhex("0d000100" "00001d00")
