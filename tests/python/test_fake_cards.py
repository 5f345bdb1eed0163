"""The cards of a scenario can be opened and computed on, through the emulated CUDA module over the fake driver."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", "/nowhere"))
DRIVER = BUILD / "tests" / "fakes" / "cuda" / "driver"
MODULE = BUILD / "tests" / "emu" / "lib"
LOOK = """
import json, yoke
found = []
for index in range(yoke.device_count("cuda")):
    device = yoke.device(f"cuda:{index}")
    free = device.free_memory + (1 << 20) - 1  # what opening takes is less than a MiB
    on = yoke.ones([3], device=device) + 1
    found.append([device.name, device.total_memory >> 20, free >> 20, on.cpu().tolist()])
print(json.dumps(found))
"""

pytestmark = pytest.mark.skipif(not (MODULE / "libyoke_cuda.so").is_file(), reason="no emulated CUDA module was built")


@pytest.fixture
def look(tmp_path):
    """Returns a function that gives a process's view of a machine: [name, MiB in all, free MiB, 1 + 1 computed there] of each
    device.
    """
    def look(scenario, **variables):
        subprocess.run([sys.executable, "-B", ROOT / "tests" / "fakes" / "edge" / "render.py", scenario, tmp_path,
                        "--nvml", "none"], check=True, capture_output=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "YOKE_"))}
        done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False, env={
            **clean, "YOKE_FAKE_SCENARIO": str(tmp_path / "scenario.json"), "YOKE_CUDA_LIB_PATH": str(DRIVER),
            "LD_LIBRARY_PATH": f"{MODULE}:{DRIVER}:{os.environ.get('LD_LIBRARY_PATH', '')}", **variables})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return look


def test_all_cards_of_a_server_are_devices_that_compute(look):
    assert look("8xH100-nvlink") == [["NVIDIA H100 80GB HBM3", 81559, 81008, [2.0, 2.0, 2.0]]] * 8


def test_cards_that_do_not_match_keep_their_names_and_memory(look):
    assert look("A100+T4") == [["NVIDIA A100-PCIE-40GB", 40960, 40367, [2.0] * 3],
                               ["Tesla T4", 15360, 14911, [2.0] * 3]]
    assert [card[0] for card in look("A100+T4", CUDA_VISIBLE_DEVICES="1,0")] == ["Tesla T4", "NVIDIA A100-PCIE-40GB"]
    assert look("A100+T4", CUDA_VISIBLE_DEVICES="") == []


def test_memory_that_others_use_is_not_free(look):
    name, total, free, _ = look("container-hidden-processes")[0]
    assert (name, total, free) == ("NVIDIA A100-SXM4-40GB", 40960, 40960 - 593 - 29 * 1024)


def test_a_machine_without_cards_has_no_devices(look):
    assert look("none") == [] and look("nouveau") == []
