"""Ends of a script, as reported to the other ranks: an uncaught error, an exit code, a signal, or the end of the script."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from rank_scripts import free_port, start

WAIT = "\ntold(lambda: group.all_reduce(yoke.ones(3)))"


def told(end, victim, size=3, **environment):
    """Returns the other ranks' error when rank `victim` runs `end` after init, and the victim's own errors and status."""
    program = "group.barrier()\nif rank == %d:\n%s\nelse:%s" % (
        victim, "".join(f"    {line}\n" for line in end.splitlines()), "".join(f"\n    {line}" for line in WAIT.splitlines()))
    outs, statuses, errors = start(program, size, **environment)
    others = {out.strip() for rank, out in enumerate(outs) if rank != victim}
    assert len(others) == 1 and all(status == 0 for rank, status in enumerate(statuses) if rank != victim), (outs, errors)
    line, = others
    assert line.startswith(f"CollectiveError all_reduce: rank {victim} (host ") and "of 3 float32, sum at" in line, line
    return line, statuses[victim], errors[victim]


@pytest.mark.parametrize("victim", [0, 1])
def test_an_error_that_nobody_caught_is_told_with_its_type_and_text(victim):
    line, status, error = told("raise ValueError('the loss is gone')", victim)
    assert "its script raised ValueError: the loss is gone, while other ranks waited" in line and "died" not in line, line
    assert status == 1 and "ValueError: the loss is gone" in error


@pytest.mark.parametrize("end, words", [
    ("class Own(Exception): pass\nraise Own", "raised Own, while"), ("raise KeyError('\\0é')", "raised KeyError: '\\x00é', while"),
    ("class Mute(Exception):\n    def __str__(self): 1 / 0\nraise Mute", "raised Mute: an error without a text, while"),
    ("sys.excepthook = lambda *_: None\nraise ValueError('x' * 20_000_000)", "xxxx ... (cut: it has 20000012 bytes), while")])
def test_whatever_its_text(end, words):
    assert words in told(end, 1, 2)[0]


@pytest.mark.parametrize("victim", [0, 1])
def test_an_error_of_any_length_that_leaves_a_with_is_told_cut(victim, tmp_path):
    outs, statuses, _ = start(f"""
os.environ["TORCHELASTIC_ERROR_FILE"] = "{tmp_path}/cause" + str(rank)
group.barrier()
if rank == {victim}:
    sys.excepthook = lambda *_: None  # nobody reads so much of this rank yet
    with group: raise ValueError("x" * 20_000_000)
told(lambda: group.barrier())
sys.exit(3)
""", 2)
    line, = filter(None, outs)
    assert line.startswith(f"CancelledError the group was ended by abort() on rank {victim} (host ") and statuses == ([1, 3] if victim == 0 else [3, 1]), line[:200]
    assert "ValueError: xxxx" in line and "xxxx ... (cut: it has 20000" in line and len(line) < 4096, (line[:200], line[-200:])
    for rank in range(2):
        message = json.loads((tmp_path / f"cause{rank}").read_text())["message"]["message"]
        assert "ValueError: xxxx" in message and "(cut: it has 20000" in message, message[:200]


@pytest.mark.parametrize("end, status, words", [
    ("sys.exit(3)", 3, "the process ended with exit code 3"), ("sys.exit('enough')", 1, "the process ended with exit code 1"),
    ("raise SystemExit(70)", 70, "the process ended with exit code 70"), ("sys.exit()", 0, "its script ended"),
    ("pass", 0, "its script ended"), ("group = None\nyoke.comm.finalize()\nimport time; time.sleep(1)\nsys.exit(5)", 5, "the rank released the group"),
    ("os._exit(3)", 3, "died"), ("try:\n    raise ValueError\nexcept ValueError:\n    pass", 0, "its script ended"),
    ("sys.excepthook(ValueError, ValueError('shown'), None)", 0, "its script ended")])
@pytest.mark.parametrize("victim", [0, 1])
def test_other_ends_are_told_apart(end, status, words, victim):
    line, ended, _ = told(end, victim, 2)
    assert words in line and ended == status, (line, ended)


@pytest.mark.parametrize("victim", [0, 1])
def test_an_interrupt_that_nobody_caught_is_told(victim):
    # Python handles the signal even if the parent of the tests ignores it.
    line, status, _ = told("signal.signal(signal.SIGINT, signal.default_int_handler)\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(30)", victim, 2)
    assert "its script raised KeyboardInterrupt, while" in line and status == -2, (line, status)


def test_a_hook_of_the_scripts_own_is_called():
    line, status, error = told("""
def hook(kind, value, trace): print("hooked", kind.__name__, file=sys.stderr)
sys.excepthook = hook
raise OSError("no disk")""", 1, 2)
    assert "raised OSError: no disk" in line and status == 1 and error == "hooked OSError\n", (line, error)


def test_what_a_script_does_at_exit_may_use_the_group():
    outs, statuses, errors = start("""
import atexit
atexit.register(lambda: (group.barrier(), print("both")))
if rank == 1: raise ValueError("bad")
""", 2)
    assert outs == ["both\n"] * 2 and statuses == [0, 1] and "ValueError: bad" in errors[1], (outs, errors)


def test_parts_of_a_group_are_told_too():
    outs, statuses, errors = start("""
part = group.split(0 if rank else 1)
group.barrier()
if rank == 1: raise ValueError("bad")
told(lambda: (part if rank else group).barrier())
""", 3)
    assert all("its script raised ValueError: bad" in outs[rank] for rank in (0, 2)) and statuses == [0, 1, 0], (outs, errors)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("end, status, why", [("raise ValueError('bad')", 1, "its script raised ValueError: bad"), ("sys.exit(3)", 3, "the process ended with exit code 3")])
def test_an_end_amid_what_was_begun_is_told_at_once(end, status, why, victim):
    other = (victim + 1) % 3
    outs, statuses, errors = start(f"""
group.barrier()
if rank == {victim}:
    given = yoke.ones(4)
    works = [group.recv(given, src={other}, async_op=True), group.barrier(async_op=True)]
    time.sleep(0.3)  # otherwise a slow rank would get the error before its recv
    {end}
told(lambda: group.recv(yoke.ones(4), src={other} if rank != {other} else {(victim + 2) % 3}))
""", 3)
    told = {out for rank, out in enumerate(outs) if rank != victim}
    assert len(told) == 1 and statuses[victim] == status and statuses.count(0) == 2, (outs, statuses, errors)
    line, = told
    assert line.startswith(f"CollectiveError recv: rank {victim} (host ") and f"has left the group: {why}" in line, line
    assert f"is in recv of 4 float32 from rank {other} at <string>:" in line, line


OF_A_PART = """
group.barrier()
def run():
    part = group.split(0)
    part.barrier()
    if rank == %d:
        given = yoke.ones(4)
        works = [part.recv(given, src=%d, async_op=True), part.barrier(async_op=True)]
        time.sleep(0.3)  # a rank that is slow may stand in the first barrier still, which would fail in place of its recv
        %s
    told(lambda: part.recv(yoke.ones(4), src=%d if rank != %d else %d))
run()
"""


# Python releases the subgroup before the exit code of the process is known.
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("end, status, why", [("sys.exit(3)", 3, "the process ended with exit code 3"), ("globals().update(keep=part)\n        sys.exit('no')", 1, "the process ended with exit code 1"),
                                              ("raise ValueError('bad')", 1, "its script raised ValueError: bad"), ("del part, given, works; sys.exit(4)", 4, "the process ended with exit code 4")])
def test_so_is_one_amid_what_was_begun_in_a_part(end, status, why, victim):
    other = (victim + 1) % 3
    outs, statuses, errors = start(OF_A_PART % (victim, other, end, other, other, (victim + 2) % 3), 3)
    told = {out for rank, out in enumerate(outs) if rank != victim}
    assert len(told) == 1 and statuses[victim] == status and statuses.count(0) == 2, (outs, statuses, errors)
    line, = told
    assert line.startswith(f"CollectiveError recv: rank {victim} (host ") and f"has left the group: {why}" in line, line


def test_what_was_begun_in_a_part_that_is_let_go_is_done():
    outs, statuses, errors = start("""
def begin():
    part = group.split(0)
    kept = yoke.full((3_000_000,), rank + 1.)
    part.all_reduce(kept, async_op=True)
    if rank == 1: part.send(kept, 0, async_op=True)
    return part if rank == 0 else None
part = begin()
group.barrier()
if rank == 1: sys.exit(0)
got = yoke.zeros(3_000_000)
part.recv(got, 1)
print(got.sum().item())
""", 2)
    assert outs == ["9000000.0\n", ""] and statuses == [0, 0], (outs, errors)


@pytest.mark.parametrize("shared", [1, 0])
def test_closed_standard_streams_stay_closed(shared, tmp_path):
    """Otherwise printed text would go to a peer."""
    program = """
import os, yoke
group = yoke.comm.init(timeout=60.)
given = yoke.ones(100000)
for work in [group.all_reduce(given, async_op=True) for _ in range(3)]: work.wait()
group.empty((5000,), yoke.float32)
half = group.split(0)
half.barrier()
taken = {}
for number in range(3):
    try: os.fstat(number); taken[number] = os.readlink(f"/proc/self/fd/{number}")
    except OSError: pass
open(os.environ["TOLD"] + str(group.rank), "w").write(f"{taken} {given[0].item()}")
group = group.shrink()
"""
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "YOKE_COMM_SHM": str(shared), "TOLD": f"{tmp_path}/told"}
    ranks = [subprocess.Popen(["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", sys.executable, "-c", program], env={**common, "RANK": str(rank)}) for rank in range(2)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    assert [(tmp_path / f"told{rank}").read_text() for rank in range(2)] == ["{} 8.0"] * 2


def test_an_error_that_ends_a_lua_script_is_told_by_its_exit_code():
    program = """
local yoke = require "yoke"
local group = assert(yoke.comm.init { timeout = 60.0 })
assert(group:barrier())
if group.rank == 1 then error "no table" end
print(select(2, group:barrier()).message)
"""
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [subprocess.Popen(["lua5.4", "-e", program], env={**common, "RANK": str(rank)}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for rank in range(2)]
    done = [rank.communicate(timeout=120) for rank in ranks]
    assert ranks[1].returncode == 1 and "no table" in done[1][1], done
    assert "barrier: rank 1 (host " in done[0][0] and "the process ended with exit code 1" in done[0][0], done


HELD = """
import threading
holding, never = threading.Event(), threading.Event()
def hold(group):
    holding.set()
    never.wait()
threading.Thread(target=hold, args=(group,), daemon=True).start()
holding.wait()
"""


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("end, words, status", [("raise ValueError('gone')", "its script raised ValueError: gone", 1), ("sys.exit(4)", "ended with exit code 4", 4)])
def test_a_group_that_a_thread_still_holds_says_how_the_process_ends(end, words, status, victim):
    line, ended, _ = told(f"{HELD}{end}", victim, 2)
    assert words in line and "died" not in line and ended == status, line


@pytest.mark.parametrize("end, words", [("os.exit(5)", "ended with exit code 5"), ("os.exit(0)", "has left the group"), ("os.exit(5, true)", "ended with exit code 5")])
def test_so_does_one_of_a_lua_script_that_calls_exit(end, words):
    script = f"""
local yoke = require "yoke"
local group = assert(yoke.comm.init {{ timeout = 20 }})
local work, err = group:barrier()
if group.rank == 0 then {end} end
if work then work, err = group:all_reduce(yoke.ones {{ 3 }}) end -- else it has ended before this rank had left the barrier
print(tostring(err))
os.exit(err and 0 or 1)
"""
    port, lua = str(free_port()), shutil.which("lua5.4")
    ranks = [subprocess.Popen([lua, "-e", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for rank in (0, 1)]
    outs = [rank.communicate(timeout=60) for rank in ranks]
    assert words in outs[1][0] and "died" not in outs[1][0], outs


@pytest.mark.parametrize("end", ["os.exit(5)", "os.exit(5, true)", "part, work = nil, nil; collectgarbage(); os.exit(5, true)"])
def test_so_does_a_part_of_one_amid_what_it_has_begun(end):
    script = f"""
local yoke = require "yoke"
local group = assert(yoke.comm.init {{ timeout = 60 }})
local part = assert(group:split(0))
local work, err = part:barrier()
if group.rank == 0 then
    work = assert(part:recv(yoke.ones {{ 3 }}, 1, {{ async_op = true }}))
    {end}
end
if work then work, err = part:recv(yoke.ones {{ 3 }}, 0) end -- as above
print(tostring(err))
"""
    port, lua = str(free_port()), shutil.which("lua5.4")
    ranks = [subprocess.Popen([lua, "-e", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for rank in (0, 1)]
    outs = [rank.communicate(timeout=120) for rank in ranks]
    assert "has left the group: the process ended with exit code 5" in outs[1][0] and ranks[0].returncode == 5, outs


@pytest.mark.parametrize("victim", [0, 1])
def test_one_that_was_stopped_is_told_so_as_it_goes_on(victim):
    # The rank continues after the other ranks have given it up, and is then within a collective.
    outs, statuses, errors = start(f"""
import os, signal
if rank == {victim}:
    if os.fork() == 0:
        parent = os.getppid()
        os.kill(parent, signal.SIGSTOP)
        import time; time.sleep(2.5); os.kill(parent, signal.SIGCONT); os._exit(0)
def loop():
    while True: group.all_reduce(yoke.ones(3))
told(loop)
if rank != {victim}: import time; time.sleep(3)
""", 2, YOKE_COMM_SILENCE="1")
    assert statuses == [0, 0], errors
    for out in outs:
        assert f"rank {victim} (host " in out and "sent no heartbeat for" in out, outs
