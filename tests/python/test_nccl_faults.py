"""Faults of ranks that call NCCL: every living rank raises the right error in time, and ends."""
import concurrent.futures

import pytest

from conftest import EMULATED
from nccl_ranks import IS_BUILT, start

pytestmark = pytest.mark.skipif(not (EMULATED and IS_BUILT), reason="no emulated CUDA module, no fake NCCL or no command was built")

LATE = 1.  # seconds, for deadlines that run out
PATIENT = 20.  # seconds, for deadlines that hold
SOON = 5.  # for errors reported at once, also on a busy machine
MADE = """group = yoke.comm.init(timeout={timeout}, init_timeout=20., device=card)
t = ones()
group.all_reduce(t)
t.tolist()
meet("made")
def reduce():
    group.all_reduce(t)
    return t.tolist()
"""
STOP = "come('stopped'); os.kill(os.getpid(), signal.SIGSTOP)"


def made(program, size=3, timeout=PATIENT, **options):
    return start(MADE.format(timeout=timeout) + program, size, **options)


def all_told(said, kind, *words, seconds=SOON, but=(), seconds_at_least=0.):
    """All ranks except some got the same error, with these words, in time, and ended without a failure."""
    lines = {rank: each.lines for rank, each in enumerate(said) if rank not in but}
    assert all(said[rank].status == 0 and lines[rank] for rank in lines), said
    errors = {rank: each[0].split(" ", 2) for rank, each in lines.items()}
    for rank, (name, after, text) in errors.items():
        assert name == kind and seconds_at_least <= float(after) < seconds, (rank, said)
        for word in words:
            assert word in text, (rank, word, said)
    assert len({text for _, _, text in errors.values()}) == 1, said
    return next(iter(errors.values()))[2]


# ---- Different calls ------------------------------------------------------------------------------------------------

DIFFERENT = {
    "op": ("all_reduce(t)", "broadcast(t, 0)", "called broadcast of 4 float32 on a device, root 0"),
    "count": ("all_reduce(t)", "all_reduce(t := ones(5))", "the number of elements"),
    "dtype": ("all_reduce(t)", "all_reduce(t := ones().to(dtype=yoke.int32))", "int32"),
    "reduction": ("all_reduce(t)", "all_reduce(t, 'max')", "the reduction"),
    "root": ("broadcast(t, 0)", "broadcast(t, 1)", "root 1"),
    "device": ("all_reduce(t)", "all_reduce(t := yoke.ones(4, device='cpu'))", "the place of the tensor, host memory or a device"),
    "reduce_dtype": ("all_reduce(t := t.to(dtype=yoke.bfloat16))",
                     "all_reduce(t := t.to(dtype=yoke.bfloat16), reduce_dtype=yoke.float32)", "reduce_dtype"),
    "barrier": ("all_reduce(t)", "barrier()", "barrier"),
    "message": ("send(t, 1); group.barrier()", "recv(t := ones(5), 0)", "5 float32"),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_calls_that_differ_are_named_on_all_ranks_before_a_wrong_value_is_read(kind):
    usual, other, word = DIFFERENT[kind]
    third = "barrier()" if kind == "message" else usual
    said = made(f"""
def call():
    t = ones()
    if rank == 0: group.{usual}
    elif rank == 1: group.{other}
    else: group.{third}
    return t.tolist()
told(call)
told(reduce)
""")
    first = all_told(said, "CollectiveError", word, "rank 1 (host", "all ranks must make the same calls in the same order")
    assert "do not agree" in first and first.count(" called ") == 2, said
    for each in said:  # each later call fails likewise
        assert len(each.lines) == 2 and each.lines[1].startswith("CollectiveError") and word in each.lines[1], said


def test_no_wrong_value_is_read_however_the_comparison_goes():
    said = start("""
import collections
from nccl_cards import alone, in_threads, init, ones
def body(group):
    t = ones(group, 4 + group.rank)
    alone(lambda: group.all_reduce(t))
    return t.tolist()
seen = collections.Counter()
for _ in range(100):
    for each in in_threads(init(2), body): seen["number of elements" in str(each)] += 1
print(dict(seen))
""", 1, PYTHONWARNINGS="ignore")
    assert said[0].out == "{True: 200}\n", said


def test_calls_that_differ_in_one_scope_are_named():
    said = made("""
def call():
    with yoke.comm.coalesce():
        group.all_reduce(t)
        group.all_reduce(u := ones(), "max" if rank == 2 else "min")
    return t.tolist() + u.tolist()
told(call)
""")
    all_told(said, "CollectiveError", "the reduction", "rank 2 (host", "min", "max")


def test_a_work_tells_that_calls_differ_to_whoever_waits():
    said = made("""
def call():
    works.append(group.all_reduce(t, "min" if rank else "max", async_op=True))
    works[0].wait(10.)
works = []
told(call)
for work in works:  # none on a rank that already had the error
    told(work.wait)
    print(work.done())
""", 2)
    all_told(said, "CollectiveError", "the reduction", "rank 1 (host")
    for each in said:
        assert len(each.lines) == 1 or ("the reduction" in each.lines[1] and each.lines[2] == "True"), said
    assert any(len(each.lines) == 3 for each in said), said


# ---- Failing ranks --------------------------------------------------------------------------------------------------

LEAVES = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", -9, "died: the connection ended"),
    "exits": ("sys.exit(3)", 3, "the process ended with exit code 3"),
    "raises": ("raise RuntimeError('sums are off')", 1, "its script raised RuntimeError: sums are off"),
    "leaves": ("del group; yoke.comm.finalize(); sys.exit(0)", 0, "has left the group"),
}


@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_ends_is_named_on_all_others(how, victim):
    action, status, word = LEAVES[how]
    said = made(f"if rank == {victim}: {action}\ntold(reduce)\n")
    assert said[victim].status == status, said
    if victim:  # rank 0 keeps the store for the other ranks' agreement
        # A process that ends by an error may end the group amid its last call, before the other ranks make the next
        # call.
        call = "all_reduce" if how in ("exits", "raises") else "all_reduce of 4 float32 on a device"
        all_told(said, "CollectiveError", word, f"rank {victim} (host", call, but=[victim])
    for rank, each in enumerate(said):
        assert rank == victim or (each.status == 0 and each.out.startswith("CollectiveError") and "rank 0 (host" in each.out
                                  or victim), said


def test_a_rank_that_dies_amid_messages_or_asynchronous_calls_is_named():
    said = made("""
work = group.recv(t, 1, async_op=True) if rank == 0 else group.all_reduce(t, async_op=True) if rank == 2 else None
meet("called")
if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
told(lambda: work.wait(15.))
print(work.done())
""")
    for rank in 0, 2:
        assert said[rank].status == 0 and said[rank].lines[0].startswith("CollectiveError") and said[rank].lines[1] == "True", said
        assert "rank 1 (host" in said[rank].out and "died" in said[rank].out, said


@pytest.mark.parametrize("how, wait", [
    ("late", "group.all_reduce(t); t.tolist()"), ("stopped", "group.all_reduce(t); t.tolist()"),
    ("stopped", "group.all_reduce(t, async_op=True).wait(15.)"), ("stopped", "group.all_reduce(t); yoke.synchronize(card)")])
def test_a_rank_that_does_not_come_is_named_at_the_deadline(how, wait):
    absent = "await_rank('told', 0); await_rank('told', 2)" if how == "late" else STOP
    said = made(f"""
if rank == 1: {absent}
def call(): {wait}
told(call)
come("told")
if rank != 1: os._exit(0)  # rank 0 would wait for the stopped one
""", timeout=LATE, stopped=(1,) if how == "stopped" else ())
    all_told(said, "TimeoutError", "rank 1 (host", "did not arrive at all_reduce of 4 float32 on a device",
             seconds=LATE + 1, seconds_at_least=LATE / 2, but=(1,))
    if how == "late":  # so the group still reports to a late rank
        assert said[1].status == 0 and said[1].out.startswith("TimeoutError") and "rank 1 (host" in said[1].out, said


def test_kernels_that_do_not_end_are_told_at_the_deadline():
    said = made("told(reduce)\ntold(reduce)\n", timeout=LATE, FAKE_NCCL_STUCK="1@2")
    all_told(said, "TimeoutError", "all ranks arrived at all_reduce of 4 float32 on a device", "did not finish",
             seconds=LATE + 1, seconds_at_least=LATE / 2)


def test_groups_that_are_used_in_unlike_orders_are_told_with_both_calls():
    said = made("""
other, u = group.split(0), ones(7)
other.all_reduce(u)
u.tolist()
meet("both")
def call():
    order = [(group, t), (other, u)]
    works = [each.all_reduce(x, async_op=True) for each, x in (order if rank == 0 else reversed(order))]
    for work in works: work.wait(15.)
told(call)
""", 2, timeout=LATE)
    # The abort of a rank may let the other rank's calls end, with the values that both ranks gave.
    assert all(each.status == 0 and each.out.startswith(("TimeoutError", "fine")) for each in said), said
    late = [each for each in said if each.out.startswith("TimeoutError")]
    assert late, said
    for each in late:
        assert float(each.out.split()[1]) < LATE + 1, said
        assert "use the groups in the same order on all ranks" in each.out and "of another group" in each.out, said
        assert "all_reduce of 4 float32" in each.out and "all_reduce of 7 float32" in each.out, said


def test_ranks_that_end_beside_a_stopped_one_end_soon_with_their_own_code():
    said = made(f"""
if rank == 1: {STOP}
await_rank("stopped", 1)
work = group.all_reduce(t, async_op=True)
begin = time.monotonic()
sys.exit(10 + rank)
""", stopped=(1,))
    assert [each.status for each in said] == [10, -9, 12] and max(said[0].seconds, said[2].seconds) < 7, said


def test_nothing_is_left_behind_a_failure():
    said = made("""
from nccl_ranks import held_by_nccl, settles, thread_count
yoke.comm.finalize()
del group
gc.collect()
settles(lambda: held_by_nccl() == 0)
time.sleep(0.05)
before = thread_count(), yoke.memory_allocated(card)
def fail(turn):
    group = yoke.comm.init(timeout=10., device=card)
    t, own = ones(300).reshape(20, 15).transpose(0, 1), group.empty(64, device=card)
    try:
        works = [group.all_reduce(x, "max" if rank and turn else "sum", async_op=True) for x in (t, own, ones())]
        if rank and not turn: group.abort("enough")
        for work in works: work.wait(10.)
    except (yoke.CancelledError, yoke.CollectiveError) as error: return type(error).__name__
for turn in range(2): print(fail(turn))
yoke.comm.finalize()
gc.collect()
print(settles(lambda: held_by_nccl() == 0), settles(lambda: thread_count() <= before[0]), settles(lambda: yoke.memory_allocated(card) <= before[1]))
print(before, thread_count(), yoke.memory_allocated(card), file=sys.stderr)
""", 2)
    for each in said:  # the calls may be done before the abort comes
        assert each.lines[0] in ("CancelledError", "None") and each.lines[1:] == ["CollectiveError", "True True True"], said


# ---- Failing calls of NCCL ------------------------------------------------------------------------------------------

EVERY_CALL = """
import threading
from nccl_ranks import held_by_nccl, settles
groups = []
def calls():
    groups.append(group := yoke.comm.init(timeout={timeout}, init_timeout={timeout}, device=card))
    t, out, other, at_root = ones(), ones(8), ones(8), rank == 0 or None
    own = group.empty(4, device=card)
    own.fill_(1.)
    for x in t, own: group.all_reduce(x)
    group.reduce(t, 1)
    group.broadcast(t, 1)
    group.all_gather(out, t)
    group.reduce_scatter(t, out)
    group.all_to_all(other, out)
    group.gather(at_root and out, t, 0)
    group.scatter(t, at_root and out, 0)
    for source in 0, 1: group.send(t, 1 - rank) if rank == source else group.recv(t, source)
    with yoke.comm.coalesce():
        group.all_reduce(t)
        group.all_reduce(out)
    found = t.tolist()
    group.barrier()
    return found
"""
FAILS = EVERY_CALL.format(timeout=PATIENT) + """
told(calls)
yoke.comm.finalize()
groups.clear()
gc.collect()
print(settles(lambda: held_by_nccl() == 0))
"""
CALLS = ["ncclGroupStart", "ncclGroupEnd", "ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter", "ncclSend",
         "ncclRecv", "ncclAlltoAll", "ncclGather", "ncclScatter"]
IN_MAKING = ["ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError"]
OF_MEMORY = ["ncclMemAlloc", "ncclCommWindowRegister", "ncclCommRegister"]
AT_END = ["ncclMemFree", "ncclCommWindowDeregister", "ncclCommDeregister", "ncclCommFinalize", "ncclCommDestroy"]


def at_once(cases, run):
    """Returns the results of run(case), by case. Several cases run at a time, because most cases wait."""
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        return dict(zip(cases, pool.map(run, cases), strict=True))


def with_fault(program, function, what, **options):
    """Starts ranks and lets a rank meet a fault in its first call of a function: rank 1, or rank 0 if only rank 0 makes the call."""
    windows = {"FAKE_NCCL_NO_WINDOWS": "1"} if function.endswith(("CommRegister", "CommDeregister")) else {}
    fault = {0 if function == "ncclGetUniqueId" else 1: {"FAKE_NCCL_FAIL": f"{function}@1={what}"}}
    return start(program, 2, environments=fault, **windows, **options)


def test_each_call_of_nccl_that_fails_is_told_on_all_ranks_and_nothing_is_left():
    def check(function):
        said = with_fault(FAILS, function, 3)
        kind = "CollectiveError" if function == "ncclGetUniqueId" else "InternalError"
        text = all_told(said, kind, "a failure that the test asked for", f"rank {int(function != 'ncclGetUniqueId')} (host", "nccl: ")
        assert function in text and "(3)" in text, said
        assert [each.lines[1] for each in said] == ["True"] * 2, said  # no resource is held

    at_once([*IN_MAKING, *OF_MEMORY, *CALLS], check)


def test_calls_of_nccl_that_fail_at_the_end_are_warned_of_and_the_ranks_end_well():
    def check(function):
        said = with_fault(FAILS.replace("== 0)", "== 0, 0.5)"), function, 3)  # some memory may be left
        assert [each.lines[0] for each in said] == ["fine [16.0, 16.0, 16.0, 16.0]"] * 2 and [each.status for each in said] == [0, 0], said
        assert "a failure that the test asked for" in said[1].error and "cuda:1" in said[1].error, said

    at_once(AT_END, check)


@pytest.mark.parametrize("result, name, kind", [(3, "ncclInternalError", "InternalError"), (6, "ncclRemoteError", "CollectiveError")])
def test_an_asynchronous_error_is_told_with_its_rank_before_the_deadline(result, name, kind):
    # Rank 1's communicator fails amid its second call, and the call does not end.
    said = made("told(reduce)\n", 2, FAKE_NCCL_ASYNC=f"2@1={result}", FAKE_NCCL_STUCK="1@2")
    all_told(said, kind, "rank 1 (host", name, f"({result})", "all_reduce of 4 float32 on a device")
    # The call was done, and the next one is refused.
    said = made("reduce()\nmeet('done')\ntold(reduce)\n", 2, FAKE_NCCL_ASYNC=f"2@1={result}")
    all_told(said, kind, "rank 1 (host", name, f"({result})", "all_reduce of 4 float32 on a device")
