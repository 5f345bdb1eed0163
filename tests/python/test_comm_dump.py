"""Reports of groups: lines of scripts in errors and dumps, and ranks to blame according to the dumps."""
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import yoke
from rank_scripts import BEGIN, free_port, start

# Each rank dumps from a thread while the script's own thread hangs, after all ranks have stopped moving. The last
# rank's dump ends the group. `hung` is the call in which a rank hangs; other ranks stay out.
HANG = """
import threading, time, json
folder = os.environ["FOLDER"]
def dump():
    group.dump(f"{folder}/{rank}.json")
def hang(call):
    def watch():
        dump()
        while True:
            dump()
            calls = json.load(open(f"{folder}/{rank}.json"))["records"]
            if calls and calls[-1]["state"] == "running": break
            time.sleep(0.01)
        open(f"{folder}/{rank}.there", "w").close()
    threading.Thread(target=watch).start()
    told(call)
def stay_out():
    dump()
    open(f"{folder}/{rank}.there", "w").close()
def end_when_all_are_there():
    while sum(os.path.exists(f"{folder}/{one}.there") for one in range(size)) < size: time.sleep(0.01)
    group.abort("seen enough")
"""


def hung(folder, program, size):
    """Returns the findings in the dumps of a program's single group, and the outputs of its ranks."""
    outs, statuses, errors = start(HANG + program, size, FOLDER=str(folder))
    assert statuses == [0] * size, errors
    report = yoke.comm.hang(folder)
    assert report["problems"] == [] and len(report["groups"]) == 1
    return report["groups"][0], outs


def findings(group, kind):
    return [each["text"] for each in group["findings"] if each["kind"] == kind]


def test_the_rank_that_never_comes_is_found_with_the_lines_of_all(tmp_path):
    group, outs = hung(tmp_path, """
def begin(): group.barrier()
def step(): group.all_reduce(yoke.ones(3))
begin()
if rank == 1:
    stay_out()
    end_when_all_are_there()
else:
    hang(step)
""", 3)
    assert group["hangs"] and group["blamed"] == [1] and group["finished"] == 1
    first, second = HANG.count("\n") + BEGIN.count("\n") + 2, HANG.count("\n") + BEGIN.count("\n") + 3
    never, = findings(group, "never_came")
    assert f"rank 1 (host" in never and f"its last call was barrier at <string>:{first} (begin)" in never
    stuck, = findings(group, "in")
    assert f"call 2: ranks 0, 2" in stuck and f"all_reduce of 3 float32, sum at <string>:{second} (step)" in stuck
    assert [rank["state"] for rank in group["ranks"]] == ["in", "behind", "in"]
    assert group["ranks"][0]["call"] == {"op": "all_reduce", "sequence": 2, "count": 3, "dtype": "float32", "reduction": "sum", "peer": None,
                                         "line": f"<string>:{second} (step)"}
    assert all("CancelledError" in outs[rank] for rank in (0, 2))
    json.loads((tmp_path / "0.json").read_text())


def test_a_send_without_a_receive_is_found(tmp_path):
    group, _ = hung(tmp_path, """
t = yoke.ones(2000000)
if rank == 0: hang(lambda: group.send(t, 1))
elif rank == 1:
    stay_out()
    end_when_all_are_there()
else: hang(lambda: group.recv(t, 0))
""", 3)
    assert group["hangs"]
    never = findings(group, "never_came")
    assert any("send 1 from rank 0 to rank 1: rank 1 (host" in text and "has made no call" in text for text in never), never
    assert any("recv of 2000000 float32 from rank 0" in text for text in findings(group, "in"))
    assert any("send 1 from rank 0 to rank 2: rank 0 (host" in text and "it" in text for text in never), never
    assert group["blamed"] == [1]


def test_calls_that_differ_are_told_with_the_line_and_dumped_by_themselves(tmp_path):
    outs, statuses, errors = start("""
def step(): group.all_reduce(yoke.ones(2 + (rank == 1)))
told(step)
""", 2, YOKE_COMM_DUMP=str(tmp_path / "made"))
    assert statuses == [0, 0] and outs[0] == outs[1] and f" at <string>:{BEGIN.count(chr(10)) + 2} (step)" in outs[0], (outs, errors)
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert [name.split("-group-")[0] for name in names] == ["rank-0-of-2", "rank-1-of-2"]
    report = yoke.comm.hang(tmp_path / "made")
    group, = report["groups"]
    mismatch, = findings(group, "mismatch")
    assert "rank 0 called all_reduce of 2 float32, sum at <string>" in mismatch and "rank 1 called all_reduce of 3 float32" in mismatch
    cause, = findings(group, "cause")
    assert "the number of elements" in cause


def test_a_deadline_dumps_those_that_came(tmp_path):
    outs, statuses, errors = start("""
import time
late = yoke.comm.init(timeout=1.)
late.barrier()
if rank == 1:
    time.sleep(3)
else:
    told(lambda: late.barrier())
""", 3, YOKE_COMM_DUMP=str(tmp_path))
    assert statuses == [0, 0, 0] and outs[0].startswith("TimeoutError ") and "rank 1 (host" in outs[0], (outs, errors)
    group, = yoke.comm.hang(tmp_path)["groups"]
    assert group["hangs"] and group["blamed"] == [1]


def test_a_folder_that_is_none_is_refused_when_the_group_is_made():
    outs, statuses, errors = start("", 1, YOKE_COMM_DUMP="here")
    assert statuses == [1] and "YOKE_COMM_DUMP is 'here'" in errors[0]


def test_a_signal_dumps_a_script_that_hangs(tmp_path):
    # Python handles signals while it waits for a collective.
    outs, statuses, errors = start(f"""
import threading, time
signal.signal(signal.SIGUSR1, lambda *_: group.dump({str(tmp_path)!r} + f"/{{rank}}.json"))
if rank == 0:
    group.dump({str(tmp_path)!r} + "/0.json")
    while not os.path.exists({str(tmp_path)!r} + "/1.json"): time.sleep(0.01)
    group.barrier()
else:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    group.barrier()
""", 2)
    assert statuses == [0, 0], errors
    group, = yoke.comm.hang(tmp_path)["groups"]
    assert group["blamed"] == [0] and group["ranks"][1]["state"] == "in"


LUA = """
local yoke = require "yoke"
local group = assert(yoke.comm.init())
local function step() return assert((group:all_reduce(yoke.ones {3}))) end
step()
local run = coroutine.wrap(function() local fine = group:barrier({async_op = true}):wait() return fine end)
run()
assert(group:dump(arg[1]))
local report = assert(yoke.comm.hang(arg[1]))
print(report.hangs, #report.groups, report.groups[1].ranks[group.rank + 1].state)
local none, problem = yoke.comm.hang("/nowhere")
print(none, problem.code)
local _, unwritten = group:dump("/nowhere/at/all")
print(unwritten.code)
local _, failure = group:all_reduce(yoke.ones {3 + group.rank}, "max")
print(failure)
"""


def test_lines_of_lua(tmp_path):
    script = tmp_path / "train.lua"
    script.write_text(LUA)
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [subprocess.Popen(["lua5.4", script, tmp_path / f"{rank}.json"], env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) for rank in range(2)]
    done = [each.communicate(timeout=120) for each in ranks]
    assert [each.returncode for each in ranks] == [0, 0], done
    for out, _ in done:
        lines = out.splitlines()
        assert lines[:3] == ["false\t1\tbehind", "nil\tio", "io"], done
        assert f" at {script}:15 (main chunk)" in lines[3], done
    records = json.loads((tmp_path / "0.json").read_text())["records"]
    assert [(each["op"], each["line"], each["file"]) for each in records] == [("all_reduce", 4, str(script)), ("barrier", 6, str(script))]
    assert records[0]["function"] == "step"


def test_lines_are_those_outside_of_the_package(tmp_path):
    group, = yoke.comm.init_all(["cpu"])

    def record():
        group.dump(tmp_path / "one.json")
        return json.loads((tmp_path / "one.json").read_text())["records"][-1]

    def step():
        group.all_reduce(yoke.ones(2))

    step()
    assert (record()["file"], record()["line"], record()["function"]) == (__file__, step.__code__.co_firstlineno + 1, "step")
    with yoke.comm.coalesce():
        step()
        line = step.__code__.co_firstlineno + 1
    assert record()["line"] == line
    thread = threading.Thread(target=group.barrier)  # no line of this file is under way there
    thread.start()
    thread.join()
    assert record()["file"] == threading.__file__
    exec(compile("group.barrier()", "n\udcffame.py", "exec"), {"group": group})  # a name of invalid UTF-8
    assert record()["op"] == "barrier" and record()["file"] is None


def test_errors_of_dumps_name_what_was_given(tmp_path):
    group, = yoke.comm.init_all(["cpu"])
    with pytest.raises(yoke.IOError, match="nowhere"):
        group.dump("/nowhere/at/all")
    with pytest.raises(TypeError, match="PathLike"):
        group.dump(3)
    with pytest.raises(ValueError, match="'paths'"):
        yoke.comm.hang()
    with pytest.raises(yoke.IOError, match="no dump"):
        yoke.comm.hang(tmp_path)
    with pytest.raises(TypeError, match="PathLike"):
        yoke.comm.hang(3)


def test_a_forked_child_does_not_dump():
    group, = yoke.comm.init_all(["cpu"])
    child = os.fork()
    if child == 0:
        try:
            group.dump("/dev/null")
            os._exit(1)
        except yoke.ForkedError:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
