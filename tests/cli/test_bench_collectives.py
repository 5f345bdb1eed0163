"""The command `yoke bench collectives`, of YOKE_BUILD_DIR: columns, figures, and findings of the check."""
import json
import os
import re
import subprocess
import sys

import pytest

from test_command import COMMAND, pytestmark  # noqa: F401

OPS = ["all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "sendrecv"]
PATIENCE = 120


def bench(*arguments, **variables):
    return subprocess.run([COMMAND, "bench", "collectives", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, **variables})


def rounds(done):
    assert done.returncode == 0 and done.stderr == "", done
    return json.loads(done.stdout)


@pytest.mark.parametrize("shared", ["1", "0"])
def test_every_op_is_right_in_every_way(shared):
    told = rounds(bench("all", "--ranks", 3, "-b", 8, "-e", "300K", "-f", 37, "-n", 2, "-w", 1, "--check", "--json", YOKE_COMM_SHM=shared))
    assert [rank["device"] for rank in told["ranks"]] == ["cpu"] * 3 and len({rank["process"] for rank in told["ranks"]}) == 3
    assert {each["op"] for each in told["rounds"]} == set(OPS) and told["wrong"] == 0
    for each in told["rounds"]:
        assert each["out_of_place"]["wrong"] == 0 and each["out_of_place"]["time"] > 0, each
        assert (each["in_place"] is None) == (each["op"] == "sendrecv"), each


@pytest.mark.parametrize("dtype, reduction", [("bfloat16", "avg"), ("float16", "prod"), ("int8", "min"), ("uint8", "sum"), ("float64", "avg"),
                                              ("int64", "max"), ("bool", "max")])
def test_every_reduction_and_dtype_is_right(dtype, reduction):
    told = rounds(bench("all_reduce", "reduce", "reduce_scatter", "--ranks", 2, "-b", 64, "-e", "70K", "-f", 1000, "-n", 1, "-w", 0, "-d", dtype,
                        "-o", reduction, "-r", 1, "--check", "--json"))
    assert told["wrong"] == 0 and len(told["rounds"]) == 6


def test_memory_that_peers_reach_is_right():
    told = rounds(bench("all_reduce", "all_gather", "gather", "--ranks", 2, "-b", 64, "-e", "1M", "-f", 128, "-n", 1, "--group-empty", "--check",
                        "--json"))
    assert told["wrong"] == 0


def test_sizes_and_rates_are_those_of_nccl_tests():
    told = rounds(bench("all_reduce", "all_gather", "broadcast", "--ranks", 4, "-b", 4, "-e", 4000, "-i", 1998, "-n", 1, "-w", 0, "--json"))
    sizes = {op: [(each["bytes"], each["count"]) for each in told["rounds"] if each["op"] == op] for op in ("all_reduce", "all_gather")}
    assert sizes["all_reduce"] == [(4, 1), (2000, 500), (4000, 1000)]
    assert sizes["all_gather"] == [(16, 1), (2000, 125), (4000, 250)]  # a part is never empty
    factors = {"all_reduce": 2 * 3 / 4, "all_gather": 3 / 4, "broadcast": 1}
    for each in told["rounds"]:
        side = each["in_place"]
        assert side["algorithm_bandwidth"] == pytest.approx(each["bytes"] / side["time"])
        assert side["bus_bandwidth"] == pytest.approx(side["algorithm_bandwidth"] * factors[each["op"]])
        assert side["wrong"] is None
    sides = [each[side]["bus_bandwidth"] for each in told["rounds"] for side in ("out_of_place", "in_place")]
    assert told["mean_bus_bandwidth"] == pytest.approx(sum(sides) / len(sides))


def test_the_table_has_the_columns_of_nccl_tests():
    done = bench("all_reduce", "sendrecv", "--ranks", 2, "-b", 8, "-e", 16, "-n", 2, "-w", 0, "-c")
    assert done.returncode == 0 and done.stderr == "", done
    lines = done.stdout.splitlines()
    assert sum(re.fullmatch(r"#  Rank  \d Pid +\d+ on +\S+ device cpu", line) is not None for line in lines) == 2
    heading = next(line for line in lines if " size " in line)
    assert heading.split() == ["#", "size", "count", "type", "redop", "root", *["time", "algbw", "busbw", "#wrong"] * 2]
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    assert [row[:5] for row in rows] == [[size, str(int(size) // 4), "float32", "sum" if i < 2 else "none", "-1"]
                                         for i, size in enumerate(["8", "16", "8", "16"])]
    assert [(row[8], row[12]) for row in rows] == [("0", "0")] * 2 + [("0", "N/A")] * 2
    assert "# Out of bounds values : 0 OK" in lines and any(line.startswith("# Avg bus bandwidth    : ") for line in lines)


def test_under_a_launcher_rank_zero_alone_prints():
    done = subprocess.run([COMMAND, "run", "-n", "2", "--", COMMAND, "bench", "collectives", "-b", "8", "-e", "8", "-n", "1"], capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stderr == "", done
    assert all(line.startswith("[0] ") for line in done.stdout.splitlines()) and "all_reduce" in done.stdout


def test_a_rank_that_is_wrong_is_found(tmp_path):
    """A rank runs another program and gives a wrong result, which differs from the check's expectation."""
    strange = """
import sys, yoke
group = yoke.comm.init()
record = 64 + 32 + 8 + 8
mine = yoke.tensor(list(b'host'.ljust(64, b'\\0') + b'cpu'.ljust(32, b'\\0') + (1).to_bytes(8, 'little') + (1 << 40).to_bytes(8, 'little')), dtype=yoke.uint8)
group.all_gather(yoke.zeros(2 * record, dtype=yoke.uint8), mine)
zero = yoke.zeros(1, dtype=yoke.float64)
def round_of(values):
    group.all_reduce(yoke.tensor(values, dtype=yoke.float32))
    group.all_reduce(zero.clone(), op="avg")   # what was wrong here
    group.barrier()
    group.all_reduce(yoke.zeros(4))
    group.all_reduce(zero.clone(), op="avg")   # the time
round_of([0., 1., 3., 0.])   # of rank 1 there should be 0, 1, 2, 0
round_of([0., 1., 2., 0.])
group.barrier()              # every rank has reported
"""
    program = tmp_path / "strange.py"
    program.write_text(strange)
    command = f"if [ $RANK = 0 ]; then exec {COMMAND} bench collectives -b 16 -e 16 -n 1 -w 0 -c; else exec {sys.executable} {program}; fi"
    done = subprocess.run([COMMAND, "run", "-n", "2", "--", "sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    assert "# Out of bounds values : 1 FAILED" in done.stdout, done
    assert done.returncode == 1


@pytest.mark.parametrize("arguments, told", [
    (["--ranks", 2, "-b", "1P"], "--minbytes"), (["--ranks", 2, "-b", "2M", "-e", "1M"], "--minbytes is 2097152"),
    (["--ranks", 2, "-e", "1T"], "give a smaller --maxbytes"), (["piano", "--ranks", 2], "piano"),
    (["--ranks", 2, "-f", 2, "-i", 8], "-"), (["--ranks", 2, "-d", "float31"], "float31"), (["sendrecv", "--ranks", 1], "two ranks"),
    (["reduce", "--ranks", 2, "-r", 7, "-e", 8], "'root' is 7"), (["--ranks", 2, "-d", "int32", "-o", "avg", "-e", 8], "avg"),
    (["--ranks", 2, "-n", 0], "--iters")])
def test_what_cannot_be_is_told(arguments, told):
    done = bench(*arguments)
    assert done.returncode == 2 and told in done.stderr, done
    assert not [line for line in done.stdout.splitlines() if line and not line.startswith("#")], done


def test_without_a_launcher_it_says_what_is_missing():
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD_SIZE", "PMI", "OMPI", "SLURM", "PET_"))}
    done = subprocess.run([COMMAND, "bench", "collectives"], capture_output=True, text=True, timeout=PATIENCE, env=clean)
    assert done.returncode == 2 and "RANK" in done.stderr, done


SMALL = ["--ranks", 2, "-b", 64, "-e", 64, "-n", 1, "-w", 0, "--json"]


@pytest.mark.parametrize("dtype, size", [("float", 4), ("half", 2), ("double", 8), ("f8e4m3", 1)])
def test_options_of_nccl_tests_are_taken(dtype, size):
    told = rounds(bench("all_reduce", *SMALL, "-c", 1, "-g", 1, "-t", 1, "-o", "max", "-d", dtype))
    assert told["wrong"] == 0 and [each["bytes"] // each["count"] for each in told["rounds"]] == [size]


@pytest.mark.parametrize("options, op, checks", [(["-c", 0], "all_reduce", False), (["-c"], "all_reduce", True), (["-c", "all_gather"], "all_gather", True)])
def test_a_check_is_a_count_or_stands_alone(options, op, checks):
    told = rounds(bench(*SMALL, *options))
    assert [(each["op"], each["in_place"]["wrong"]) for each in told["rounds"]] == [(op, 0 if checks else None)]


@pytest.mark.parametrize("options, words", [(["-g", 4], "-g,--ngpus is 4, but each rank has one GPU and one thread here; give --ranks 4"),
                                            (["-c", "twice"], "--check is 'twice'; give a number")])
def test_options_that_cannot_be_met_are_told(options, words):
    done = bench(*SMALL, *options)
    assert done.returncode == 2 and words in done.stderr, done
