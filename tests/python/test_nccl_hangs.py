"""Calls of NCCL that never return: all ranks name the hanging rank, in time, and each process ends with its own exit code."""
import pytest

from conftest import EMULATED
from nccl_ranks import IS_BUILT
from test_nccl_faults import AT_END, CALLS, EVERY_CALL, FAILS, LATE, OF_MEMORY, all_told, at_once, made, with_fault

pytestmark = pytest.mark.skipif(not (EMULATED and IS_BUILT), reason="no emulated CUDA module, no fake NCCL or no command was built")

ENDED = 7.  # seconds until a process with a hanging call ends: 6, and 1 for a busy machine
HANGS = EVERY_CALL.format(timeout=LATE) + """
thread = threading.Thread(target=lambda: told(calls), daemon=True)
thread.start()
if rank == 0:
    thread.join(15.)
    come("told")
await_rank("told", 0)
if rank == 1:
    settles(lambda: not thread.is_alive(), {patience})
    if groups: told(lambda: groups[0].all_reduce(yoke.ones(1, device="cpu")))
sys.stdout.flush()
os._exit(7)
"""


def test_each_call_of_nccl_that_hangs_is_told_at_the_deadline_with_its_rank():
    def check(function):
        # The thread of a collective stays in NCCL; that of other calls comes back.
        said = with_fault(HANGS.replace("{patience}", "0.2" if function in CALLS else "10."), function, "hang", limit=30)
        assert [each.status for each in said] == [7, 7], said
        name, after, text = said[0].lines[0].split(" ", 2)
        culprit, other = (0, 1) if function == "ncclGetUniqueId" else (1, 0)
        assert name == "TimeoutError" and f"rank {culprit} (host" in text and f"rank {other} (host" not in text, said
        assert any(each in text for each in ("in time", "timed out", function)), said
        assert all(each.split(" ", 2)[2] == text for each in said[1].lines), said  # another thread of this rank gets the same error
        assert float(after) < LATE + 2, said  # earlier calls take time

    at_once(["ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError", *OF_MEMORY, *CALLS], check)


def test_a_library_that_does_not_tell_its_version_is_named_on_all_ranks():
    init = f'told(lambda: yoke.comm.init("nccl", init_timeout={2 * LATE}, device=card))\nsys.exit(7)\n'
    said = with_fault(init, "ncclGetVersion", "hang", limit=30)
    all_told([each._replace(status=each.status - 7) for each in said], "DeviceUnavailableError", "rank 1 (host",
             "ncclGetVersion has not returned within", seconds=2 * LATE)


def end_of(said):
    """Returns the seconds from the first rank's report that its script ended to the end of the last process."""
    return max(each.ended for each in said) - min(float(each.lines[-1]) for each in said)


def test_calls_of_nccl_that_hang_at_the_end_hold_nobody_up():
    def check(function):
        program = FAILS.replace("print(settles(lambda: held_by_nccl() == 0))", "print(time.monotonic())\nsys.exit(7)")
        said = with_fault(program, function, "hang", limit=30)
        assert [each.status for each in said] == [7, 7], said
        assert all(each.lines[0] == "fine [16.0, 16.0, 16.0, 16.0]" for each in said) and end_of(said) < ENDED, said

    at_once([*AT_END, "ncclCommAbort"], check)


def test_a_process_ends_soon_beside_a_thread_that_hangs_in_nccl():
    said = made("""
import threading
work = group.all_reduce(ones(), async_op=True) if rank == 0 else None
if rank == 1: threading.Thread(target=reduce, daemon=True).start()
time.sleep(0.1)
print(time.monotonic(), flush=True)
sys.exit(7)
""", 2, FAKE_NCCL_FAIL="ncclAllReduce#1@2=hang")
    assert [each.status for each in said] == [7, 7] and end_of(said) < ENDED, said


def test_a_thread_is_told_which_call_of_another_group_has_the_card():
    said = made("""
import threading
other = group.split(0)
u = ones(7)
other.all_reduce(u)
u.tolist()
meet("both")
if rank == 1:
    threading.Thread(target=reduce, daemon=True).start()
    time.sleep(0.1)
meet("hung")
told(lambda: other.all_reduce(u))
come("told")
await_rank("told", 1 - rank)
sys.stdout.flush()
os._exit(0)
""", 2, timeout=LATE, FAKE_NCCL_FAIL="ncclAllReduce#1@2=hang")
    name, after, text = said[1].lines[0].split(" ", 2)
    assert name == "TimeoutError" and float(after) < LATE + 1 and "rank 1 (host" in text and "rank 0 (host" not in text, said
    assert "all_reduce of 7 float32" in text and "all_reduce of 4 float32" in text and "of another group" in text, said
