"""Ends of a rank of a group over MPI, as reported to the other ranks. MPI itself reports no end; the errors have the CPU engine's
words.
"""
import os
import shutil
import subprocess

import pytest
from mpi_ranks import OPEN_MPI, job, needs_mpi

# mpirun lets the other ranks live; otherwise mpirun kills all ranks after a bad end of a process.
LIVE = {"OMPI_MCA_orte_enable_recovery": "1"}
# Before a rank ends, all other ranks have left the last call of that rank.
MEET = """
met = os.environ["MET"]
def await_files(name, count):
    while sum(each.startswith(name) for each in os.listdir(met)) < count: time.sleep(0.005)
def note(name): open(os.path.join(met, f"{name}{rank}"), "w").close()
group.barrier()
note("met")
await_files("met", size)
"""
LETS_GO = "group = None\nyoke.comm.finalize()\nawait_files('told', size - 1)"
KILLED = "import signal\nos.kill(os.getpid(), signal.SIGKILL)"


def told(end, victim, met, call="group.all_reduce(yoke.ones(3))", ranks=3, **environment):
    """Returns the other ranks' common error when rank `victim` runs `end` in place of their call."""
    program = MEET + "if rank == %d:\n%s\nelse:\n    told(lambda: %s)\n    note('told')\n" % (
        victim, "\n".join(f"    {line}" for line in end.splitlines()), call)
    said, done = job(program, ranks, timeout=20, MET=str(met), **LIVE, **environment)
    others = {tuple(lines) for rank, lines in enumerate(said) if rank != victim}
    assert len(others) == 1 and len(next(iter(others))) == 1, (said, done.stderr)
    (line,), = others
    assert line.startswith("CollectiveError ") and f": rank {victim} (host " in line, (line, done.stderr)
    return line


RAISED = "has left the group: its script raised ValueError: the loss is gone, while other ranks waited for it in all_reduce of 3 float32, sum at <string>:"
CODE = "has left the group: the process ended with exit code 3, while other ranks waited"
PLAIN = "has left the group: the rank released the group, or its script ended, while other ranks waited"
DIED = "died: the connection ended"


@needs_mpi
@pytest.mark.parametrize("victim, end, words", [
    (1, "raise ValueError('the loss is gone')", RAISED), (0, "raise ValueError('the loss is gone')", RAISED), (1, "sys.exit(3)", CODE), (1, "pass", PLAIN),
    (1, LETS_GO, PLAIN), (0, LETS_GO, PLAIN), (1, "os._exit(3)", DIED), (1, KILLED, DIED), (0, KILLED, DIED)])
def test_the_others_are_told_at_once_how_a_rank_has_ended(victim, end, words, tmp_path):
    line = told(end, victim, tmp_path, ranks=2 if end in (LETS_GO, "pass") else 3)
    assert words in line, line


@needs_mpi
@pytest.mark.parametrize("ranks, call, words", [
    (3, "(group.recv(yoke.ones(4), src=1) if rank == 0 else group.barrier())", ("recv of 4 float32 from rank 1 at", "barrier at")),
    (2, "group.send(yoke.ones(1_000_000), dst=1)", ("send of 1000000 float32 to rank 1 at",)),
    (2, "group.all_reduce(yoke.ones(3), async_op=True).wait()", ("all_reduce of 3 float32, sum at",))])
def test_in_whichever_call_they_wait(ranks, call, words, tmp_path):
    line = told("raise ValueError('bad')", 1, tmp_path, call, ranks)
    assert "its script raised ValueError: bad" in line and any(word in line for word in words), line


# MPI that fails like a network which notices the death of a peer.
BROKEN_MPI = r"""
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const char *broken = getenv("BROKEN");
    return broken && access(broken, F_OK) == 0 ? MPI_ERR_OTHER : PMPI_Test(request, flag, status);
}
"""


@needs_mpi
@pytest.mark.skipif(not shutil.which("mpicc"), reason="no mpicc to build a broken MPI with")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the broken MPI is preloaded, as the sanitizer is")
def test_though_mpi_fails_first(tmp_path):
    source, library, broken = tmp_path / "broken.c", tmp_path / "broken.so", tmp_path / "broken"
    source.write_text(BROKEN_MPI)
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "met").mkdir()
    end = f"open({str(broken)!r}, 'w').close()\n{KILLED}"
    line = told(end, 1, tmp_path / "met", ranks=2, LD_PRELOAD=str(library), BROKEN=str(broken))
    assert DIED in line, line


@needs_mpi
def test_who_has_left_is_missed_by_those_alone_who_wait_for_it(tmp_path):
    """Rank 2 goes on with rank 0 as long as a look at who has gone takes, several times over, though rank 1 has left."""
    said, done = job(MEET + """
if rank == 1:
    group.send(yoke.full((4,), 7.), 0)
    group = None
    yoke.comm.finalize()
    note("left")
    await_files("done", 2)
else:
    await_files("left", 1)
    t = yoke.zeros(4)
    if rank == 2: time.sleep(1.5)
    if rank == 0: told(lambda: group.recv(t, 2))
    else: told(lambda: group.send(yoke.ones(4), 0))
    if rank == 0: told(lambda: group.recv(t, 1))
    say(t.tolist())
    note("done")
""", 3, timeout=20, MET=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert said == [["fine", "fine", "[7.0, 7.0, 7.0, 7.0]"], [], ["fine", "[0.0, 0.0, 0.0, 0.0]"]], (said, done.stderr)


@needs_mpi
@pytest.mark.skipif(not shutil.which("lua5.4"), reason="there is no lua5.4 here")
@pytest.mark.parametrize("end, words", [("os.exit(5)", "the process ended with exit code 5"), ("os.exit(0)", "the rank released the group, or its script ended")])
def test_a_group_that_lives_on_as_its_process_exits_is_left_before_mpi_ends(end, words):
    """The end of MPI waits for the other ranks. The MPI group is not the default group: the first group of the job runs without MPI."""
    program = f"""
local yoke = require "yoke"
local first = assert(yoke.comm.init {{ timeout = 20.0 }})
local group = assert(yoke.comm.init {{ backend = "mpi", timeout = 20.0 }})
assert(group:barrier())
assert(first:barrier())
if group.rank == 1 then {end} end
io.write("@ ", select(2, group:barrier()).message, "\\n")
"""
    done = subprocess.run(["mpirun", "-n", "2", "lua5.4", "-e", program], env={**os.environ, **OPEN_MPI, **LIVE}, text=True, capture_output=True, timeout=60, check=False)
    line = next((each for each in done.stdout.splitlines() if each.startswith("@ ")), "")
    assert line.startswith("@ barrier: rank 1 (host ") and words in line, (done.stdout, done.stderr)
