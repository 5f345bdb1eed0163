"""Living ranks go on as a smaller group after another rank has died, stopped, or comes too late."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from rank_scripts import start

SHRINK = """
def shrunk(group, timeout=10.):
    told(lambda: group.all_reduce(yoke.ones(3)))
    smaller = group.shrink(timeout=timeout)
    t = yoke.full((1,), float(rank))
    smaller.all_reduce(t)
    print(smaller.rank, smaller.size, t.item())
    return smaller
"""


@pytest.mark.parametrize("victims", [{0}, {1}, {3}, {0, 1}, {0, 2}, {0, 1, 2}])
def test_the_living_go_on_whoever_was_killed(victims):
    outs, statuses, errors = start(SHRINK + f"""
if rank in {victims}: os.kill(os.getpid(), signal.SIGKILL)
shrunk(group)
""", 4)
    living = [rank for rank in range(4) if rank not in victims]
    for i, rank in enumerate(living):
        lines = outs[rank].splitlines()
        assert statuses[rank] == 0 and lines[0].startswith("CollectiveError ") and "died" in lines[0], (outs, errors)
        assert lines[1] == f"{i} {len(living)} {float(sum(living))}"


def test_a_group_shrinks_again_and_again():
    outs, statuses, errors = start(SHRINK + """
for victim in range(size - 1):
    if rank == victim: os.kill(os.getpid(), signal.SIGKILL)
    group = shrunk(group)
""", 4)
    assert statuses == [-9, -9, -9, 0], errors
    assert [line for line in outs[3].splitlines() if not line.startswith("Coll")] == ["2 3 6.0", "1 2 5.0", "0 1 3.0"]


# Each costs the time of the shrink: ./dev soak groups tries the others.
@pytest.mark.parametrize("victim", [0, 1, 2] if "YOKE_SOAK" in os.environ else [0])
def test_one_that_is_stopped_is_left_out_and_told(victim):
    outs, statuses, errors = start(f"""
if rank == {victim}:
    if os.fork() == 0:  # wakes it when the others have gone on
        import time; time.sleep(4); os.kill(os.getppid(), signal.SIGCONT); os._exit(0)
    os.kill(os.getpid(), signal.SIGSTOP)
    told(lambda: group.shrink(timeout=2.))
else:
    smaller = group.shrink(timeout=2.)
    t = yoke.full((1,), float(rank))
    smaller.all_reduce(t)
    print(smaller.rank, smaller.size, t.item())
    import time; time.sleep(5)
""", 3)
    assert statuses == [0, 0, 0], errors
    others = [rank for rank in range(3) if rank != victim]
    assert [outs[rank].strip() for rank in others] == [f"{i} 2 {float(sum(others))}" for i in range(2)], outs
    assert outs[victim].startswith("CollectiveError ") and "called shrink too late" in outs[victim], outs


# Rank 0 is stopped and keeps the former group's store, so the store does not answer. The other ranks ask no longer
# than the timeout allows.
def test_a_rank_0_that_is_stopped_leaves_the_others_time_for_their_group():
    outs, statuses, errors = start("""
pids = yoke.zeros(3, dtype=yoke.int64)
group.all_gather(pids, yoke.tensor([os.getpid()]))
pids = pids.tolist()
if rank == 0: os.kill(os.getpid(), signal.SIGSTOP)
smaller = group.shrink(timeout=1.5)
print(smaller.size)
smaller.barrier()
if rank == 1: os.kill(pids[0], signal.SIGKILL)
""", 3)
    assert statuses == [-9, 0, 0] and outs == ["", "2\n", "2\n"], (outs, errors)


# At every progress of the stopped rank, the other ranks go on without it, or fail together and go on at the next try.
@pytest.mark.parametrize("victim", [0, 1, 2] if "YOKE_SOAK" in os.environ else [2])
def test_one_that_stops_within_it_holds_nobody_longer(victim):
    def shrunk(delay):
        return start(f"""
import threading
pids = yoke.zeros(3, dtype=yoke.int64)
group.all_gather(pids, yoke.tensor([os.getpid()]))
pids = pids.tolist()
def stop():
    time.sleep({delay})
    os.kill(os.getpid(), signal.SIGSTOP)
group.barrier()
if rank == {victim}: threading.Thread(target=stop, daemon=True).start()
while group.size == 3:
    began = time.monotonic()
    try: smaller = group.shrink(timeout=2.)
    except yoke.Error as error: print("failed", error, file=sys.stderr)
    else: group = smaller
    if rank != {victim}: print(f"{{time.monotonic() - began:.2f}}")
    if group.size == 3: told(lambda: group.monitored_barrier(timeout=1.))
group.barrier()
print("of", group.size)
if group.rank == 0: os.kill(pids[{victim}], signal.SIGKILL)
""", 3)
    with ThreadPoolExecutor() as several:
        for outs, statuses, errors in several.map(shrunk, (0.0005, 0.001, 0.002, 0.004, 0.008)):
            living = [rank for rank in range(3) if rank != victim]
            assert [statuses[rank] for rank in living] == [0, 0], (outs, errors)
            for rank in living:
                *tries, end = outs[rank].splitlines()
                seconds = [float(each) for each in tries if each[0].isdigit()]
                long = [each for each in seconds if each > 0.1]  # calls before the stop take no time
                assert end == "of 2" and len(long) <= 3 and max(seconds) < 5, (outs, errors)


def test_a_whole_group_shrinks_to_itself_and_ends_who_waits():
    outs, statuses, errors = start("""
if rank == 0:
    smaller = group.shrink()
else:
    told(lambda: group.barrier())  # in which rank 0 does not come
    smaller = group.shrink()
smaller.barrier()
print(smaller.rank, smaller.size)
told(lambda: group.shrink())
smaller.split(0).barrier()
""", 3)
    assert statuses == [0, 0, 0], errors
    for rank in 1, 2:
        first, second, third = outs[rank].splitlines()
        assert first.startswith("CancelledError ") and "shrink() on rank 0" in first
        assert second == f"{rank} 3" and third.startswith("StateError ") and "already shrunk" in third


# Rank 0 keeps the former group's store, which is no longer read.
def test_rank_0_goes_on_while_others_hold_the_group_that_was_shrunk():
    outs, statuses, errors = start("""
if rank == 2: os.kill(os.getpid(), signal.SIGKILL)
told(lambda: group.barrier())
smaller = group.shrink()
if rank == 0: del group
told(lambda: smaller.monitored_barrier(timeout=3.))
""", 3)
    assert statuses == [0, 0, -9], errors
    assert [out.splitlines()[1:] for out in outs[:2]] == [["fine"], ["fine"]], outs


@pytest.mark.parametrize("way", ["a group that is made there", "a barrier there"])
def test_rank_0_stays_where_ranks_have_met_again(way):
    outs, statuses, errors = start(f"""
again = yoke.comm.init() if {way == "a barrier there"} else None
smaller = group.shrink()
if again: again.monitored_barrier(timeout=60.)
else: again = yoke.comm.init()
again.barrier()
if rank == 0:
    del group, again
else:
    time.sleep(0.5)  # rank 0 would have gone long before
    told(lambda: again.monitored_barrier(timeout=0.1))
    del group, again
smaller.barrier()
""", 2)
    assert statuses == [0, 0], errors
    assert outs[1].startswith("TimeoutError ") and "ranks that did not arrive: rank 0" in outs[1], outs
