"""Groups of processes: values, launchers' variables, and errors that name the culprit on every rank."""
import os
import subprocess
import sys
import threading

import numpy
import pytest
from rank_scripts import start

import yoke


@pytest.mark.parametrize("shared", ["1", "0"])
def test_every_rank_gets_what_its_call_says(shared):
    outs, statuses, errors = start("""
t = yoke.arange(6).to(dtype=yoke.float32).reshape(2, 3) * (rank + 1)
group.all_reduce(t, op="avg")
out = yoke.zeros((size, 2), dtype=yoke.bfloat16)
work = group.all_gather(out, yoke.full((2,), rank).to(dtype=yoke.bfloat16), async_op=True)
work.wait()
part = yoke.zeros(2, dtype=yoke.int64)
group.reduce_scatter(part, yoke.arange(2 * size))
swapped = yoke.zeros(size, dtype=yoke.int32)
group.all_to_all(swapped, (yoke.arange(size) + 10 * rank).to(dtype=yoke.int32))
half = group.split(rank % 2)
print(t.tolist(), out.tolist(), part.tolist(), swapped.tolist(), half.size, half.rank)
""", 3, YOKE_COMM_SHM=shared)
    assert statuses == [0, 0, 0], errors
    for rank, out in enumerate(outs):
        mean = (numpy.arange(6).reshape(2, 3) * 2.0).tolist()
        assert out.strip() == f"{mean} {[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]} {[6 * rank, 6 * rank + 3]} " \
                              f"{[rank, rank + 10, rank + 20]} {[2, 1, 2][rank]} {[0, 0, 1][rank]}", out


@pytest.mark.parametrize("victim", [0, 2])
def test_a_monitored_barrier_does_not_wait_beside_a_dead_rank(victim):
    outs, statuses, errors = start(f"""
if rank == {victim}: os.kill(os.getpid(), signal.SIGKILL)
told(lambda: group.monitored_barrier(600.))  # longer than the test takes
""", 3)
    alive = [out for rank, out in enumerate(outs) if rank != victim]
    assert statuses[victim] == -9, errors
    for out in alive:
        assert out.startswith("CollectiveError ") and f"rank {victim} (host" in out and "died" in out, outs


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_is_named_on_all_others(victim):
    outs, statuses, _ = start(f"""
if rank == {victim}: os.kill(os.getpid(), signal.SIGKILL)
told(lambda: group.all_reduce(yoke.ones(5)))
told(lambda: group.barrier())
""", 3)
    alive = [out for rank, out in enumerate(outs) if rank != victim]
    assert statuses[victim] == -9 and alive[0] == alive[1] and len(alive[0].splitlines()) == 2, outs
    for line in alive[0].splitlines():
        assert line.startswith("CollectiveError ") and f"rank {victim} (host" in line and "died" in line


def test_another_call_is_shown_to_all():
    outs, statuses, _ = start("""
told(lambda: group.all_reduce(yoke.ones(2 + (rank == 1))) or group.barrier())
again = yoke.comm.init(timeout=60.)  # another one in the same process
t = yoke.ones(1)
again.all_reduce(t)
print(t.item())
""", 2)
    assert statuses == [0, 0] and outs[0] == outs[1]
    for part in "CollectiveError", "the number of elements", "of 2 float32, sum", "of 3 float32, sum", "rank 1 (host", "\n2.0\n":
        assert part in outs[0], outs[0]


def test_a_script_that_raises_ends_the_group_on_all_ranks():
    outs, statuses, _ = start("""
if rank == 1:
    with group:
        raise KeyError("out of data")
told(lambda: group.barrier())
""", 3)
    assert statuses == [0, 1, 0] and outs[0] == outs[2]
    assert outs[0].startswith("CancelledError ") and "rank 1 (host" in outs[0] and "out of data" in outs[0]


def test_ctrl_c_is_heard_in_a_call_that_waits():
    outs, statuses, _ = start("""
if rank == 0:
    import threading
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        group.barrier()
    except KeyboardInterrupt:
        print("heard")
        group.abort("Ctrl-C")
else:
    while True:
        try:
            group.monitored_barrier(0.05)
        except yoke.TimeoutError:
            continue
        except yoke.Error as error:
            print(type(error).__name__, error)
            break
""", 2)
    assert outs[0] == "heard\n" and statuses == [0, 0]
    assert outs[1].startswith("CancelledError ") and "Ctrl-C" in outs[1]


# ---- Arguments ------------------------------------------------------------------------------------------------------

def refused(call, kind, *words):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_arguments_are_told_by_name(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("RANK", "WORLD_SIZE", "MASTER_", "PMIX", "OMPI", "SLURM", "PET_"))]:
        monkeypatch.delenv(name)
    refused(lambda: yoke.comm.init(), ValueError, "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    refused(lambda: yoke.comm.init(rank=0), ValueError, "'rank' is 0", "'world_size' is None")
    refused(lambda: yoke.comm.init(backend="nicl"), ValueError, "'nicl'", "cpu", "nccl")
    refused(lambda: yoke.comm.init(timeout=-1.0), ValueError, "'timeout' is -1")
    group, = yoke.comm.init_all(["cpu"])
    refused(lambda: group.all_reduce(yoke.ones(2), op="mean"), ValueError, "'op' is 'mean'", "'avg'")
    refused(lambda: group.all_reduce([1.0]), TypeError, "all_reduce", "'t'")
    refused(lambda: group.broadcast(yoke.ones(2), 1), ValueError, "'root' is 1")
    assert (group.rank, group.size, group.local_rank) == (0, 1, 0) and "rank 0 of 1" in repr(group)


def test_ranks_may_be_threads():
    groups = yoke.comm.init_all(["cpu"], size=4)
    results = [None] * 4

    def run(group):
        t = yoke.full((1000,), float(group.rank)).to(dtype=yoke.float16)
        group.all_reduce(t)
        results[group.rank] = t.tolist()

    threads = [threading.Thread(target=run, args=(group,)) for group in groups]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [[6.0] * 1000] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_no_part_in_a_group():
    group, = yoke.comm.init_all(["cpu"])
    child = os.fork()
    if child == 0:
        try:
            group.barrier()
        except yoke.ForkedError:
            os._exit(0)
        except BaseException:  # noqa: BLE001
            os._exit(2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    group.barrier()


def test_memory_of_another_library_is_let_go_of_while_groups_end():
    """NumPy takes its lock to release an array. Here the group's thread releases the array, and finalize waits for the thread's end."""
    outs, statuses, errors = start("""
import time, numpy
if rank == 1:
    time.sleep(0.3)
work = group.all_reduce(yoke.from_dlpack(numpy.ones(4, dtype=numpy.float32)), async_op=True)
del group, work
yoke.comm.finalize()
print("done")
""", 2)
    assert statuses == [0, 0] and outs == ["done\n"] * 2, errors


def test_what_failed_in_a_coalesce_is_not_waited_for_in_the_next_one():
    group, = yoke.comm.init_all(["cpu"])
    other, = yoke.comm.init_all(["cpu"])
    with pytest.raises(yoke.CancelledError), yoke.comm.coalesce():
        group.all_reduce(yoke.ones(2))
        group.abort("enough")
    with yoke.comm.coalesce():
        other.all_reduce(yoke.ones(2))


def test_what_is_wanted_at_once_is_refused_in_a_coalesce():
    group, = yoke.comm.init_all(["cpu"])
    calls = {"split": lambda: group.split(0), "empty": lambda: group.empty(2), "shrink": group.shrink,
             "monitored_barrier": lambda: group.monitored_barrier(1.), "measure_shares": lambda: yoke.comm.measure_shares(lambda: None, group),
             "join": lambda: group.join().__enter__()}
    net = yoke.nn.Linear(2, 2)
    ddp = yoke.DistributedDataParallel(net, group=group)
    with yoke.comm.coalesce():
        for name, call in calls.items():
            with pytest.raises(yoke.StateError, match=name + ".* coalesce"):
                call()
        group.barrier()
    assert yoke.comm.measure_shares(lambda: None, group) == [1.]
    del ddp


def test_a_dead_rank_is_dead_though_a_forked_child_of_it_lives():
    outs, statuses, errors = start("""
child = yoke.zeros(1, dtype=yoke.int64)
if rank == 1:
    process = os.fork()
    if process == 0:
        os.closerange(0, 3)
        signal.pause()
    child = yoke.tensor([process])
group.broadcast(child, 1)
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
told(group.barrier)
os.kill(child.item(), signal.SIGKILL)  # it lived
""", 2)
    assert statuses == [0, -9] and "rank 1" in outs[0] and "died" in outs[0], (outs, errors)


def test_what_leaves_a_group_is_told_whatever_its_text():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    for error, told in [(ValueError("bad \0 byte"), "ValueError: bad"), (Odd(), "Odd: an error"), (ValueError("\ud800"), "ValueError")]:
        group, = yoke.comm.init_all(["cpu"])
        with pytest.raises(type(error)), group:
            raise error
        with pytest.raises(yoke.CancelledError, match=told):
            group.barrier()


FORKED = """
import os, sys, yoke
group = yoke.comm.init(rank=0, world_size=1)
group.all_reduce(yoke.ones(3))  # the group has a thread of its own, which waits for calls
child = os.fork()
if child == 0:
    {leave}
print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("leave", ["sys.exit(7)", "del group; yoke.comm.finalize(); os._exit(7)",
                                   "yoke.comm.init(rank=0, world_size=1).barrier(); sys.exit(7)"])
def test_a_forked_child_ends_beside_the_thread_of_a_group(leave):
    done = subprocess.run([sys.executable, "-c", FORKED.format(leave=leave)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_told_that_it_cannot_end_a_group():
    leave = """
    try:
        group.abort("enough")
    except yoke.ForkedError as error:
        os._exit(7 if "forked child" in str(error) else 8)
    os._exit(9)"""
    done = subprocess.run([sys.executable, "-c", FORKED.format(leave=leave)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forks_and_groups_that_are_made_wait_for_each_other_a_moment():
    program = """
import os, threading, yoke
def make():
    for _ in range(150):
        yoke.comm.init(rank=0, world_size=1)
        yoke.comm.finalize()
making = threading.Thread(target=make)
making.start()
while making.is_alive():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


# ---- Several at once ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shared", ["1", "0"])
def test_two_ranks_may_send_to_each_other(shared):
    outs, statuses, errors = start("""
other = 1 - rank
mine, theirs, total = yoke.full((4_000_000,), float(rank)), yoke.zeros(4_000_000), yoke.ones(3)
with yoke.comm.coalesce():
    group.send(mine, other)
    work = group.recv(theirs, other, async_op=True)
    with yoke.comm.coalesce():
        group.all_reduce(total)
    told(work.wait)
    print(total.tolist())
work.wait()
print(total.tolist(), theirs.sum().item())
""", 2, YOKE_COMM_SHM=shared)
    assert statuses == [0, 0], errors
    for rank, out in enumerate(outs):
        first, second, third = out.splitlines()
        assert first.startswith("StateError ") and "coalesce" in first and second == "[1.0, 1.0, 1.0]"
        assert third == f"[2.0, 2.0, 2.0] {4e6 * (1 - rank)}"


def test_several_groups_and_what_fails_among_them():
    outs, statuses, errors = start("""
pair = group.split(0)
a, b = yoke.ones(2), yoke.ones(2)
with yoke.comm.coalesce():
    group.all_reduce(a)
    pair.all_reduce(b)
print(a.tolist(), b.tolist())
def differ():
    with yoke.comm.coalesce():
        pair.all_reduce(yoke.ones(2))
        pair.all_reduce(yoke.ones(2 + rank))
told(differ)
told(lambda: pair.barrier())
group.all_reduce(a)
print(a.tolist())
""", 2)
    assert statuses == [0, 0] and outs[0] == outs[1], errors
    first, second, third, fourth = outs[0].splitlines()
    assert first == "[2.0, 2.0] [2.0, 2.0]" and second == third and "of 2 float32" in second and "of 3 float32" in second
    assert fourth == "[4.0, 4.0]"


def test_an_error_amid_a_coalesce_drops_it():
    group, = yoke.comm.init_all(["cpu"])
    t = yoke.ones(2)
    with pytest.raises(KeyError):
        with yoke.comm.coalesce():
            work = group.all_reduce(t, async_op=True)
            raise KeyError
    refused(work.wait, yoke.CancelledError, "dropped")
    works = []
    with pytest.raises(yoke.StateError, match="an error left an inner scope"):
        with yoke.comm.coalesce():
            with pytest.raises(KeyError):
                with yoke.comm.coalesce():
                    group.all_reduce(t)
                    raise KeyError
            works.append(group.all_reduce(t, async_op=True))  # kept, not done at once
            refused(works[0].wait, yoke.StateError, "end of its coalesce")
    refused(works[0].wait, yoke.CancelledError, "dropped")
    with pytest.raises(KeyError):  # must not be hidden by errors at the end of a scope
        with yoke.comm.coalesce():
            with yoke.comm.coalesce():
                raise KeyError
    with yoke.comm.coalesce():
        group.all_reduce(t)
    assert t.tolist() == [1.0, 1.0]


# Each costs its deadline: ./dev soak groups tries all pairs.
@pytest.mark.parametrize("victim, shared", [(victim, shared) for victim in (0, 1, 2) for shared in "10"] if "YOKE_SOAK" in os.environ
                         else [(0, "1"), (2, "0")])
def test_a_rank_that_is_stopped_amid_its_calls_is_the_one_that_is_named(victim, shared):
    outs, _, errors = start(f"""
import subprocess
group, t = yoke.comm.init(timeout=1.), yoke.ones(1_000_000)
if rank == {victim}:
    subprocess.Popen(["sh", "-c", "sleep 0.3; kill -STOP $PPID; sleep 2.5; kill -CONT $PPID"])
try:
    while True:
        group.all_reduce(t, op="avg")
except yoke.Error as error:
    print(type(error).__name__, error)
""", 3, YOKE_COMM_SHM=shared)
    alive = [out for rank, out in enumerate(outs) if rank != victim]
    assert alive[0] == alive[1] and alive[0].startswith("TimeoutError "), (outs, errors)
    assert f"all_reduce: timed out; rank {victim} (host" in alive[0] and "did not arrive at" in alive[0], outs


def test_memory_that_peers_reach_is_counted_as_allocated():
    group, = yoke.comm.init_all(["cpu"])
    before = yoke.memory_allocated()
    made = group.empty((1 << 20,), yoke.float32)
    held = yoke.memory_allocated()
    del made
    assert held == before + (4 << 20) and yoke.memory_allocated() == before
