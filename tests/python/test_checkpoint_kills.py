"""kill -9 at random points of saving, in Python and Lua: the newest state loads whole, is at least as new as the last save that
returned or was waited for, and no files pile up. YOKE_SOAK kills ten times as often. tests/capi/checkpoints.c does the same in C.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import yoke

KILLS = 200 if os.environ.get("YOKE_SOAK") else 20
LUA = shutil.which("lua5.4") or shutil.which("lua")

# Each goes on from the newest state; a line "N" says that version N was saved and waited for.
PYTHON = """
import sys, yoke
folder, keep, blocking, most = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4])
manager = yoke.CheckpointManager(folder, keep)
version = manager.load()["version"] if manager.latest() is not None else 0
for _ in range(most):
    version += 1
    state = {"version": version, "net": [yoke.full((30000,), version % 1000), yoke.full((7,), version % 1000)]}
    work = manager.save(version % 7, state, blocking=blocking)
    if not blocking and version % 3:
        continue
    work.wait()
    print(version, flush=True)
"""
LUA_PROGRAM = """
local yoke = require "yoke"
local folder, keep, blocking, most = arg[1], math.tointeger(arg[2]), arg[3] == "1", math.tointeger(arg[4])
local manager = yoke.CheckpointManager(folder, {keep = keep})
local version = manager:latest() and assert(manager:load()).version or 0
for _ = 1, most do
    version = version + 1
    local net = {yoke.full({30000}, version % 1000), yoke.full({7}, version % 1000)}
    local work = assert(manager:save(version % 7, {version = version, net = net}, {blocking = blocking}))
    if blocking or version % 3 == 0 then
        assert(work:wait())
        io.write(version, "\\n")
        io.flush()
    end
end
"""


def command(language, tmp_path):
    if language == "Python":
        return [sys.executable, "-c", PYTHON]
    if not LUA:
        pytest.skip("there is no Lua here")
    (tmp_path / "run.lua").write_text(LUA_PROGRAM)
    return [LUA, str(tmp_path / "run.lua")]


def run_and_kill(program, rng):
    """Returns the last version reported as saved; 0 without a report."""
    run = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    said = [run.stdout.readline() for _ in range(rng.randrange(1, 6))]
    time.sleep(rng.random() * 0.02)
    run.send_signal(signal.SIGKILL)
    said += run.stdout.readlines()
    run.stdout.close()
    assert run.wait(60) == -signal.SIGKILL
    return int(([0] + [line for line in said if line.endswith("\n")])[-1])


def check_whole(folder, keep, least, most):
    """Checks every step; returns the version of the newest step."""
    manager = yoke.CheckpointManager(folder, keep)
    steps = manager.steps()
    assert len([name for name in os.listdir(folder) if name.startswith("step-")]) == len(steps) <= keep + 1
    versions = []
    for step in steps:
        state = manager.load(step=step)
        versions.append(state["version"])
        assert state["version"] % 7 == step
        for tensor in state["net"]:
            assert set(tensor.tolist()) == {state["version"] % 1000}
    assert versions == sorted(versions) and least <= versions[-1] <= most
    assert manager.load()["version"] == versions[-1]
    return versions[-1]


@pytest.mark.parametrize("language", ["Python", "Lua"])
def test_a_killed_run_leaves_a_whole_state(tmp_path, language):
    program, rng = command(language, tmp_path), random.Random(19)
    for keep, blocking in ((1, 0), (1, 1), (3, 0), (3, 1)):
        folder, newest = tmp_path / f"{keep}-{blocking}", 0
        for _ in range(KILLS // 4):
            options = [str(folder), str(keep), str(blocking)]
            said = run_and_kill([*program, *options, "1000000"], rng)
            assert said > newest
            # A kill may come after further saves: 1 save if saves block, else 3.
            newest = check_whole(folder, keep, said, said + 1 if blocking else said + 3)
        subprocess.run([*program, *options, "3"], check=True, stdout=subprocess.DEVNULL, timeout=120)
        newest = check_whole(folder, keep, newest + 3, newest + 3)
        names = sorted(os.listdir(folder))
        assert names[0] == ".lock" and len(names) == 1 + keep and all(name.startswith("step-") for name in names[1:])
