"""`yoke bench collectives --backend nccl`, of YOKE_BUILD_DIR: on as many ranks as there are cards, emulated or not."""
import json
import subprocess
import sys

import pytest

from test_command import COMMAND, ROOT, pytestmark  # noqa: F401

sys.path.insert(0, str(ROOT / "tests" / "python"))
from test_nccl_one_rank import DEVICE, lacking  # noqa: E402

import yoke  # noqa: E402

PARTS = ["all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"]


def bench(*arguments):
    return subprocess.run([COMMAND, "bench", "collectives", *map(str, arguments)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def ranks():
    if lacking():
        pytest.skip(lacking())
    return min(yoke.device_count(DEVICE), 3)


def rounds(ranks, *arguments):
    done = bench(*arguments, "--backend", "nccl", "--ranks", ranks, "-n", 2, "-w", 1, "--check", "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_every_op_is_right_on_the_cards_of_the_ranks(ranks):
    told = rounds(ranks, *PARTS, *["sendrecv"] * (ranks > 1), "-b", 8, "-e", "300K", "-f", 37)
    assert sorted(each["device"] for each in told["ranks"]) == [f"{DEVICE}:{i}" for i in range(ranks)]
    assert told["wrong"] == 0 and {each["op"] for each in told["rounds"]} >= set(PARTS)
    factors = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1, "sendrecv": 1}
    for each in told["rounds"]:
        side = each["out_of_place"]
        factor = factors.get(each["op"], (ranks - 1) / ranks)
        assert side["bus_bandwidth"] == pytest.approx(each["bytes"] / side["time"] * factor), each


@pytest.mark.parametrize("options", ["-o avg -d bfloat16", "-o avg -d float64", "-o prod -d half", "-o min -d int8", "-o max -d float --group-empty"])
def test_reductions_dtypes_and_memory_of_the_group_are_right(ranks, options):
    assert rounds(ranks, "all_reduce", "reduce_scatter", "-b", 64, "-e", "70K", "-f", 1000, *options.split())["wrong"] == 0


def test_tensors_of_the_host_are_refused():
    done = bench("--backend", "nccl", "--device", "cpu", "--ranks", 2)
    assert done.returncode == 2 and done.stderr.count("--backend is nccl and --device cpu") == 1, done


@pytest.mark.skipif(yoke.is_available("cuda"), reason="a card is here, and NCCL may be")
def test_without_a_card_the_command_fails_and_says_why():
    done = bench("--backend", "nccl", "-e", 8, "--ranks", 2)
    assert done.returncode == 2 and done.stdout == "" and "cuda" in done.stderr, done
