"""Groups over MPI: results of calls under mpirun, failures, and processes that may form a group."""
import os
import shutil
import subprocess
import sys

import pytest
from mpi_ranks import BEGIN, MODULE, OPEN_MPI, job, needs_mpi
from rank_scripts import free_port

import yoke

@needs_mpi
def test_every_call_gives_what_it_says():
    said, done = job("""
t = yoke.arange(6).to(dtype=yoke.float32).reshape(2, 3) * (rank + 1)
group.all_reduce(t, op="avg")
out = yoke.zeros((size, 2), dtype=yoke.bfloat16)
work = group.all_gather(out, yoke.full((2,), rank).to(dtype=yoke.bfloat16), async_op=True)
work.wait()
part = yoke.zeros(2, dtype=yoke.int64)
group.reduce_scatter(part, yoke.arange(2 * size))
swapped = yoke.zeros(size, dtype=yoke.int32)
group.all_to_all(swapped, (yoke.arange(size) + 10 * rank).to(dtype=yoke.int32))
group.barrier()
say(t.tolist(), out.tolist(), part.tolist(), swapped.tolist())
""")
    assert done.returncode == 0, done.stderr
    for rank, lines in enumerate(said):
        assert lines == [f"[[0.0, 1.5, 3.0], [4.5, 6.0, 7.5]] [[0.0, 0.0], [1.0, 1.0]] {[4 * rank, 4 * rank + 2]} "
                         f"{[rank, rank + 10]}"], (lines, done.stderr)


@needs_mpi
def test_ranks_that_ask_for_different_backends_are_told_so():
    text = BEGIN + """
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
told(lambda: yoke.comm.init(backend="mpi" if rank else "cpu", init_timeout=60))
"""
    done = subprocess.run(["mpirun", "-n", "2", sys.executable, "-c", text], text=True, capture_output=True, timeout=300,
                          env={**os.environ, **OPEN_MPI}, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("@ ")]
    assert len(lines) == 2 and all("do not agree on the backend: rank 0" in line and "has 'cpu', and rank 1" in line and "'mpi'" in line
                                   for line in lines), done


@needs_mpi
def test_parts_memory_and_messages_that_cross():
    said, done = job("""
other = 1 - rank
got = yoke.zeros(100000)
with yoke.comm.coalesce():
    group.send(yoke.full((100000,), float(rank)), other)
    group.recv(got, other)
turned = group.split(0, key=-rank)          # the ranks the other way round
alone = group.split(rank)
t = turned.empty((3,), yoke.float32)
t.copy_(yoke.full((3,), float(turned.rank)))
turned.broadcast(t, 0)
alone.all_reduce(t)
say(got.sum().item(), turned.rank, alone.size, t.tolist(), group)
""")
    assert done.returncode == 0, done.stderr
    for rank, (line,) in enumerate(said):
        assert line.startswith(f"{100000.0 * (1 - rank)} {1 - rank} 1 [0.0, 0.0, 0.0] "), line


@needs_mpi
def test_calls_that_differ_are_shown_and_the_ranks_go_on_as_a_new_group():
    said, done = job("""
told(lambda: group.all_reduce(yoke.ones(2 + rank)))
told(lambda: group.barrier())
group = group.shrink(timeout=20.)
t = yoke.ones(3)
group.all_reduce(t)
say(t.tolist())
""")
    assert done.returncode == 0, done.stderr
    assert said[0] == said[1] and len(said[0]) == 3, (said, done.stderr)
    for line in said[0][:2]:
        assert line.startswith("CollectiveError ") and "2 float32" in line and "3 float32" in line, line
    assert said[0][2] == "[2.0, 2.0, 2.0]"


@needs_mpi
def test_a_rank_that_does_not_come_is_named_and_what_was_begun_stays(tmp_path):
    said, done = job("""
group.barrier()
if rank == 1:
    while not os.path.exists(os.environ["TOLD"]): time.sleep(0.01)
told(lambda: group.recv(yoke.zeros(1000), 1) if rank == 0 else group.barrier())
if rank == 0: open(os.environ["TOLD"], "w").close()
""", timeout=0.5, TOLD=str(tmp_path / "told"))
    assert said[0] == said[1] and len(said[0]) == 1, (said, done.stderr)
    assert said[0][0].startswith("TimeoutError ") and "rank 1 (host" in said[0][0], said
    assert "4000 bytes of a failed call stay allocated" in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr  # both could still leave the job in order


@needs_mpi
def test_abort_ends_a_call_under_way():
    said, done = job("""
group.barrier()
if rank == 0:
    work = group.all_reduce(yoke.ones(5), async_op=True)
    group.abort("enough")
    told(lambda: work.wait(10))
else:
    told(lambda: group.recv(yoke.zeros(1), 0))
""")
    assert done.returncode == 0, done.stderr
    for line in (line for lines in said for line in lines):
        assert line.startswith("CancelledError ") and "enough" in line, said


@needs_mpi
def test_processes_that_no_launcher_has_made_one_job_are_no_group():
    port = free_port()
    text = BEGIN + f"""
rank = int(sys.argv[1])
told(lambda: yoke.comm.init(backend="mpi", init_method="tcp://127.0.0.1:{port}", rank=rank, world_size=2, timeout=60.))
"""
    ranks = [subprocess.Popen([sys.executable, "-c", text, str(rank)], env={**os.environ, **OPEN_MPI}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
    outs = [each.communicate(timeout=120) for each in ranks]
    for out, error in outs:
        assert "CollectiveError" in out and "process 0 of 1" in out and "mpirun or srun" in out, (outs, [each.returncode for each in ranks])


@needs_mpi
def test_a_process_of_the_job_that_does_not_begin_mpi_is_waited_for_no_longer_than_init_has_time(tmp_path):
    text = BEGIN + f"""
rank, ended = int(os.environ["OMPI_COMM_WORLD_RANK"]), {str(tmp_path / "ended")!r}
if rank == 0:
    told(lambda: yoke.comm.init(backend="mpi", init_method="tcp://127.0.0.1:{free_port()}", rank=0, world_size=1, init_timeout=1.))
    open(ended, "w").close()
while not os.path.exists(ended): time.sleep(0.01)
"""
    done = subprocess.run(["mpirun", "-n", "2", sys.executable, "-c", text], text=True, capture_output=True, timeout=120,
                          env={**os.environ, **OPEN_MPI}, check=False)
    assert "@ 0 TimeoutError" in done.stdout and "MPI_Init_thread" in done.stdout, (done.stdout, done.stderr)


@needs_mpi
def test_one_process_is_a_group_without_a_launcher():
    text = BEGIN + f"""
rank = 0
group = yoke.comm.init(backend="mpi", init_method="tcp://127.0.0.1:{free_port()}", rank=0, world_size=1, timeout=60.)
t = yoke.ones(3)
group.all_reduce(t)
say(t.tolist(), group)
"""
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **OPEN_MPI}, text=True, capture_output=True,
                          timeout=120, check=False)
    assert done.returncode == 0 and "[1.0, 1.0, 1.0]" in done.stdout, (done.stdout, done.stderr)


@needs_mpi
def test_a_forked_child_is_told_so():
    said, done = job("""
group.barrier()
child = os.fork()
if child == 0:
    told(lambda: group.barrier())
    os._exit(0)
os.waitpid(child, 0)
group.barrier()
say("done")
""")
    assert done.returncode == 0, done.stderr
    for lines in said:
        assert lines[0].startswith("ForkedError ") and lines[1] == "done", said


@needs_mpi
@pytest.mark.skipif(not os.environ.get("YOKE_SOAK"), reason="4 GiB a rank: ./dev soak mpi")
def test_more_bytes_than_an_int_counts():
    said, done = job("""
n = 2**31 + 9
t = yoke.zeros(n, dtype=yoke.uint8)
t.fill_(rank + 1)
group.broadcast(t, 1)
first = (t[0].item(), t[n - 1].item())
t.fill_(rank + 3)
group.send(t, 1) if rank == 0 else group.recv(t, 0)
second = (t[0].item(), t[n - 1].item())
group.all_reduce(t)
say(first, second, (t[0].item(), t[n // 2].item(), t[n - 1].item()))
""", timeout=600)
    assert done.returncode == 0, done.stderr
    assert said == [["(2, 2) (3, 3) (6, 6, 6)"]] * 2, said


@needs_mpi
@pytest.mark.skipif(not os.environ.get("YOKE_SOAK"), reason="twenty processes: ./dev soak mpi")
def test_more_ranks_than_greet_one_another_directly():
    said, done = job("""
t = yoke.ones(3)
group.all_reduce(t)
parts = yoke.zeros((size, 2))
group.all_gather(parts, yoke.full((2,), float(rank)))
group.barrier()
say(t.tolist(), parts.sum().item())
told(lambda: group.all_reduce(yoke.ones(3 if rank == 18 else 2)))
""", ranks=20, timeout=200)
    assert done.returncode == 0, done.stderr
    for lines in said:
        assert lines[0] == "[20.0, 20.0, 20.0] 380.0" and lines[1] == said[0][1], (lines, done.stderr)
    assert "rank 18 (host" in said[0][1] or "3 float32" in said[0][1], said[0]


# Begins MPI once the file OPEN is there, as if other processes of the job were late.
LATE_MPI = r"""
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given)
{
    while (access(getenv("OPEN"), F_OK) != 0) usleep(1000);
    return PMPI_Init_thread(argc, argv, wanted, given);
}
"""
BEGINS_TWICE = """
import os, pathlib, signal, threading, yoke
def init(seconds):
    return yoke.comm.init(backend="mpi", init_method="tcp://127.0.0.1:1", rank=0, world_size=1, init_timeout=seconds)
def late(*_):
    try:
        init(0.3)
    except yoke.TimeoutError:
        print("late", first.is_alive())
waited = []
first = threading.Thread(target=lambda: waited.append(init(60)))
first.start()
late()
def rang(*_):
    late()
    pathlib.Path(os.environ["OPEN"]).touch()
signal.signal(signal.SIGALRM, rang)
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(init(60).size)  # in which the handler runs
first.join()
print(waited[0].size)
"""


@needs_mpi
@pytest.mark.skipif(not shutil.which("mpicc"), reason="no mpicc to build a late MPI with")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the late MPI is preloaded, as the sanitizer is, and does not end beside it")
def test_who_waits_for_mpi_keeps_neither_threads_nor_handlers_from_it(tmp_path):
    source, library = tmp_path / "late.c", tmp_path / "late.so"
    source.write_text(LATE_MPI)
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, source], check=True)
    environment = {**os.environ, **OPEN_MPI, "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {library}".strip(), "OPEN": str(tmp_path / "open")}
    done = subprocess.run([sys.executable, "-c", BEGINS_TWICE], text=True, capture_output=True, timeout=50, env=environment, check=False)
    assert done.stdout == "late True\nlate True\n1\n1\n", done.stderr


@needs_mpi
def test_mpi_is_loaded_for_groups_of_it_alone():
    text = """
import yoke
group = yoke.comm.init(init_method="tcp://127.0.0.1:%d", rank=0, world_size=1)
group.barrier()
print("libmpi" in open("/proc/self/maps").read())
""" % free_port()
    done = subprocess.run([sys.executable, "-c", text], text=True, capture_output=True, timeout=120, check=True)
    assert done.stdout == "False\n"


def test_an_engine_that_there_is_not_is_answered_with_those_that_there_are():
    with pytest.raises(ValueError, match="'nicl'.*cpu.*nccl.*mpi"):
        yoke.comm.init(backend="nicl", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)


@pytest.mark.skipif(MODULE.is_file(), reason="this build has the MPI module")
def test_a_build_without_the_module_says_so():
    with pytest.raises(yoke.Error, match="libyoke_mpi.so is not there.*docs/building.md"):
        yoke.comm.init(backend="mpi", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
