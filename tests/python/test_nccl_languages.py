"""Data parallel over NCCL on emulated cards from Lua and C: hooks, no_sync, join and a regroup after a loss, alike on all ranks to the bit."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import pytest

from cards_of_ranks import BUILD, IS_BUILT, machine, under_torchrun

TESTS = pathlib.Path(__file__).resolve().parents[1]
LUA, C = shutil.which("lua5.4") or shutil.which("lua"), BUILD / "tests" / "test_capi_parallel_run"
PROGRAMS = {"Python": [sys.executable, TESTS / "python" / "parallel_ways.py"], "Lua": [LUA, TESTS / "lua" / "parallel_run.lua"], "C": [C]}
WAYS = ["plain", "bf16", "powersgd", "no_sync", "join"]
ROUNDS = {"bf16": 1e-2}  # NCCL rounds each sum of two ranks, the host the whole sum
SOAKS = "YOKE_SOAK" in os.environ
pytestmark = pytest.mark.skipif(not IS_BUILT or not LUA or not C.is_file(), reason="no emulated CUDA module, no fake NVML, no command, no Lua or no program in C")


def run(language, device, ways, environment, size, living=None):
    """Returns {first word of a line: rest of the line, for each living rank}; the other ranks are killed."""
    command = [str(word) for word in (*PROGRAMS[language], device, *ways)]
    ranks = [subprocess.Popen(command, env=each, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for each in under_torchrun(environment, size)]
    done = [each.communicate(timeout=200) for each in ranks]
    living = size if living is None else living
    assert [each.returncode for each in ranks] == [0] * living + [-9] * (size - living), done
    lines = [[line.split(" ", 1) for line in out.splitlines()] for out, _ in done[:living]]
    return {word: [dict(each)[word] for each in lines] for word, _ in lines[0]}


def numbers(text):
    return [list(struct.unpack(f"<{len(each) // 8}f", bytes.fromhex(each))) for each in text.split(",")]


def check(found, host, way):
    """Compares the bits of all ranks and languages with each other, and their values with the host's."""
    bits = {text for ranks in found.values() for text in ranks[way]}
    assert len(bits) == 1, way  # the bits are equal on all ranks, in all languages
    for got, right in zip(numbers(bits.pop()), numbers(host[way][0]), strict=True):
        assert got == pytest.approx(right, rel=0, abs=ROUNDS.get(way, 1e-5)), way


@pytest.mark.parametrize("size, seed", [(2, 3), *[(4, 7)] * SOAKS])
def test_hooks_no_sync_and_joins_of_lua_and_c_are_those_of_the_host(tmp_path, size, seed):
    environment = machine(tmp_path, size, FAKE_CUDA_SEED=str(seed), FAKE_NCCL_LATE="1")
    host = run("Python", "cpu", WAYS, environment, size)
    found = {"Lua": run("Lua", "cuda", WAYS, environment, size), "C": run("C", "cuda", [*WAYS, "hook"], environment, size)}
    assert all("nccl" in each for ranks in found.values() for each in ranks["group"])
    for way in WAYS:
        check(found, host, way)
    assert found["C"]["hook"] == found["C"]["plain"]
    assert len({found["C"][way][0] for way in WAYS}) == len(WAYS)  # the ways differ in their bits


@pytest.mark.parametrize("size, seed", [(3, 5), *[(4, 9)] * SOAKS])
def test_those_that_live_go_on_from_lua_and_c_over_nccl(tmp_path, size, seed):
    environment = machine(tmp_path, size, FAKE_CUDA_SEED=str(seed), FAKE_NCCL_LATE="1")
    host = run("Python", "cpu", ["lost"], environment, size, size - 1)
    found = {language: run(language, "cuda", ["lost"], environment, size, size - 1) for language in ("Lua", "C")}
    for ranks in found.values():
        assert all(f"rank {size - 1} (" in text and "died" in text for text in ranks["told"]), ranks["told"]
        assert all("nccl" in each for each in ranks["group"])
    check(found, host, "lost")
