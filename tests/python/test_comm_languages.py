"""Ranks in Python, Lua and C form a single group."""
import os
import pathlib
import subprocess
import sys

from rank_scripts import BEGIN, free_port

LUA = """
local yoke = require "yoke"
local group = assert(yoke.comm.init())
local t = yoke.full({4}, 10.0)
assert(group:all_reduce(t))
local work = assert(group:broadcast(t, 0, {async_op = true}))
assert(work:wait())
print(string.format("%d %d %d", t:tolist()[1], group.rank, group.size))
assert(group:monitored_barrier(60.0))
local _, problem = group:all_reduce(yoke.ones {3}, "max")
print(problem.message)
"""
PYTHON = BEGIN + """
t = yoke.full((4,), 1.0)
group.all_reduce(t)
group.broadcast(t, 0)
print(int(t.tolist()[0]), rank, size)
group.monitored_barrier(60.)  # behind which nobody is on its way out of the call before
try:
    group.all_reduce(yoke.ones(4), op="max")
except yoke.CollectiveError as error:
    print(error)
"""


def test_ranks_of_three_languages_are_one_group():
    common = {**os.environ, "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    program = pathlib.Path(os.environ["YOKE_BUILD_DIR"]) / "tests" / "test_capi_comm"
    commands = [[sys.executable, "-c", PYTHON], ["lua5.4", "-e", LUA], [program, "rank"]]
    ranks = [subprocess.Popen(command, env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
             for rank, command in enumerate(commands)]
    told = [each.communicate(timeout=120)[0].splitlines() for each in ranks]
    assert [lines[0] for lines in told] == [f"111 {rank} 3" for rank in range(3)], told
    assert told[0][1] == told[1][1] == told[2][1], told
    assert "the number of elements" in told[0][1] and "float32, max" in told[0][1]


REFUSED = """
local yoke = require "yoke"
local group = assert(yoke.comm.init())
print(select(2, pcall(group.monitored_barrier, group, "x")).message)
io.open(os.getenv "YOKE_TEST_MEETING" .. "/refused", "w"):close()
assert(group:barrier())
print(select(2, pcall(group.shrink, group, false)).message)
io.open(os.getenv "YOKE_TEST_MEETING" .. "/refused again", "w"):close()
io.read()
"""
WAITING = """
import os, time, warnings, yoke
def await_file(name):
    while not os.path.exists(os.path.join(os.environ["YOKE_TEST_MEETING"], name)): time.sleep(0.002)
group = yoke.comm.init()
await_file("refused")
try:
    group.monitored_barrier(timeout=0.)
except yoke.TimeoutError as error:
    print(error)
group.barrier()
await_file("refused again")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(group.shrink(timeout=0.5).size, [str(each.message) for each in told])
"""


def test_what_lua_refuses_is_told_to_who_waits(tmp_path):
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "YOKE_TEST_MEETING": str(tmp_path)}
    lua = subprocess.Popen(["lua5.4", "-e", REFUSED], env={**common, "RANK": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    waiting = subprocess.run([sys.executable, "-c", WAITING], env={**common, "RANK": "0"}, stdout=subprocess.PIPE, text=True, timeout=60)
    (barrier, shrink), (late, alone) = lua.communicate("\n", timeout=60)[0].splitlines(), waiting.stdout.splitlines()
    assert f"whose call was refused: {barrier}" in late and "'timeout'" in barrier, (barrier, late)
    assert alone.startswith("1 ") and f"whose call was refused: {shrink}" in alone and "'timeout'" in shrink, (shrink, alone)
