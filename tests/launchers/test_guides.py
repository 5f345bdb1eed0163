"""Patterns of PyTorch's guides (guides/) under torchrun: PyTorch on the CPU, and its port on emulated cards with the fake NCCL.

Both programs of a pair begin with the same values and come to the same. YOKE_BUILD_DIR names the build, YOKE_TORCH_PYTHON a Python with PyTorch.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from cards_of_ranks import IS_BUILT, machine  # noqa: E402

GUIDES = pathlib.Path(__file__).parent / "guides"
TORCH = os.environ.get("YOKE_TORCH_PYTHON", "")
RANKS = 2
NEAR = {"bf16": 2e-2}  # each library adds 16-bit floats in its own order; of all else float32 rounds less than 1e-5
pytestmark = pytest.mark.skipif(not TORCH or not IS_BUILT, reason="YOKE_TORCH_PYTHON names no Python with PyTorch, or no card is emulated")


def torchrun(folder, *program, restarts=0):
    """Returns the results of each rank. torchrun itself runs without the environment of the emulated machine."""
    folder.mkdir()
    command = [TORCH, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS, "--max-restarts", restarts, "--no-python", *program, folder]
    done = subprocess.run([str(word) for word in command], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(RANKS)]


def on_cpu(folder, name):
    return torchrun(folder, TORCH, GUIDES / f"{name}_torch.py")


def on_cards(folder, name, restarts=0):
    """Runs the port on an emulated machine with a card for each rank."""
    own = machine(folder.with_name("machine"), RANKS)
    words = [f"{key}={value}" for key, value in own.items() if os.environ.get(key) != value and key != "OMP_NUM_THREADS"]
    told = torchrun(folder, "env", *words, sys.executable, GUIDES / f"{name}_yoke.py", restarts=restarts)
    assert all("nccl" in each.pop("group") for each in told)
    return told


def is_near(found, expected, allowed):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(is_near(a, b, allowed) for a, b in zip(found, expected))
    return abs(found - expected) <= allowed


def pair(name, tmp_path, own=()):
    """Returns the results of rank 0 of the port. `own` are results in which ranks may differ; all other results have the same bits."""
    guide, port = on_cpu(tmp_path / "guide", name), on_cards(tmp_path / "port", name)
    for ours, theirs in zip(port, guide):
        assert ours.keys() == theirs.keys()
        for what, expected in theirs.items():
            assert is_near(ours[what], expected, NEAR.get(what, 1e-5)), (what, ours[what], expected)
    first, second = ({what: each for what, each in told.items() if what not in own} for told in port)
    assert first == second
    return port[0]


def test_each_rank_reads_the_checkpoint_that_rank_0_wrote(tmp_path):
    told = pair("checkpoint", tmp_path)
    assert told["loaded"] == told["saved"] != told["parameters"]


def test_epochs_have_the_rates_losses_and_best_state_of_pytorch(tmp_path):
    told = pair("epochs", tmp_path)
    assert told["again"] == told["judged"][told["best"]] == min(told["judged"])
    assert told["parameters"] != told["last"], "the last epoch is the best one, so the file shows nothing"


def test_hooks_accumulation_and_joins_have_the_values_of_pytorch(tmp_path):
    told = pair("hooks", tmp_path, own=("alone",))
    assert told["lossy"] == [True, True], "nothing was compressed"
    assert is_near(told["exact"], told["plain"], 1e-5)  # two ranks' rows make a gradient of rank 2


def test_a_job_that_torchrun_starts_again_goes_on_from_its_snapshot(tmp_path):
    guide = on_cpu(tmp_path / "guide", "snapshot")  # PyTorch's job is not broken
    first, second = on_cards(tmp_path / "port", "snapshot", restarts=1)
    assert [each["first"] for each in guide] == [0] * RANKS and first["first"] == second["first"] == 2
    assert first["parameters"] == second["parameters"] and is_near(first["parameters"], guide[0]["parameters"], 1e-5)
    before, after = (one + other for one, other in zip(first["taken"], second["taken"]))
    assert sorted(before) == sorted(after) == list(range(12)), "ranks share a row"
    assert before != after, "set_epoch changed nothing"
