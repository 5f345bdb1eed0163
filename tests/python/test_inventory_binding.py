"""yoke.inventory, yoke.topology and yoke.catalog: what the machine has, as objects."""
import os
import pathlib
import subprocess
import sys

import pytest

import yoke

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "tests" / "fakes" / "edge"))


def on(scenario, folder, code, **more):
    """Returns the output of a script on the machine of a scenario."""
    if not (BUILD / "tests/fakes/edge/libnvidia-ml.so.1").exists():
        pytest.skip("built without the fake edge")
    import render
    render.render(scenario, folder)
    lines = (folder / "environment").read_text().splitlines()
    variables = dict(os.environ, **dict(line.split("=", 1) for line in lines if line), **more)
    done = subprocess.run([sys.executable, "-c", "import yoke\n" + code], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_inventory_of_this_machine_can_be_taken():
    taken = yoke.inventory()
    assert len(taken.topology.links) == len(taken.cards)
    assert set(taken.facts) >= {"driver", "nvml", "nvml_problem", "cuda_driver"}
    for place, card in enumerate(taken.cards):
        assert card.index == place and card.kind in ("gpu", "mig", "integrated")
        assert card.usable == (card.reason == "")


def test_eight_cards_are_seen_with_their_links(tmp_path):
    told = on("8xH100-nvlink", tmp_path, """
machine = yoke.inventory()
print(len(machine.cards), {card.name for card in machine.cards}, machine.cards[0].compute_capability)
print({machine.topology.links[0][other].label for other in range(1, 8)}, "NV18" in str(yoke.topology()))
""")
    assert told.splitlines() == ["8 {'NVIDIA H100 80GB HBM3'} (9, 0)", "{'NV18'} True"]


def test_what_is_not_known_is_none(tmp_path):
    told = on("none", tmp_path, "card, = yoke.inventory().cards; print(card.memory_total, card.usable, card.vendor)")
    assert told == "None False 1a03\n"


def test_the_catalog_has_figures_with_sources():
    entries = yoke.catalog()
    assert len(entries) >= 24 and len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        assert (entry.memory == 0 or entry.memory > 1 << 30) and entry.memory_bandwidth > 1e10, entry
        assert entry.source and entry.match and entry.compute_capability >= (3, 0), entry
        assert entry.f16_rate == 0 or entry.f16_rate >= entry.f64_rate, entry


def test_texts_of_the_host_that_are_no_utf8_are_shown_with_a_mark(tmp_path):
    told = on("A100+T4", tmp_path, """
print(ascii(yoke.inventory().facts["visible_devices"]))
print(len(yoke.topology().links), ascii(yoke.explain("auto").problem))
print(yoke.config_get("YOKE_CUDA_LIB_PATH").encode("ascii", "backslashreplace").decode())
""", CUDA_VISIBLE_DEVICES="0,b\udcff", YOKE_CUDA_LIB_PATH="/l\udcff")
    assert "entry 'b\\ufffd'" in told and "/l\\ufffd" in told
