"""Groups over NCCL on emulated cards: memory of calls without a wait, and the end of a process with such calls."""
import json
import signal
import subprocess
import sys
import time

import pytest

from cards_of_ranks import IS_BUILT, machine, under_torchrun, yoke_run

pytestmark = pytest.mark.skipif(not IS_BUILT, reason="no emulated CUDA module, no fake NVML or no command was built")

BEGIN = """
import json, os, signal, sys, time
import yoke
group = yoke.comm.init(timeout=float(os.environ.get("TIMEOUT", "30")))
rank, size, card = group.rank, group.size, f"cuda:{group.local_rank}"
yoke.set_device(card)
"""


def on_cards(script, folder, ranks=2, **variables):
    """Returns the output of each rank, read as JSON."""
    outs, _ = yoke_run([sys.executable, "-c", BEGIN + script], machine(folder, ranks, **variables), ranks)
    return [json.loads(out) for out in outs]


# ---- Memory ----------------------------------------------------------------------------------------------------------

def test_memory_that_goes_behind_its_call_holds_up_no_other_call(tmp_path):
    outs = on_cards("""
other = group.split(0)
x = yoke.full((4,), rank + 1., device=card)
for each in other, group: each.all_reduce(yoke.zeros(1, device=card))
lent = group.empty((4,), yoke.float32, device=card)
lent.fill_(rank + 1.)
yoke.synchronize()
if rank: time.sleep(0.3)   # rank 0 makes all its calls meanwhile
group.all_reduce(lent)
total = lent.sum()
del lent
if not rank: other.all_reduce(x)
group.barrier()            # of rank 0: while the memory waits for x on the stream
if rank: other.all_reduce(x)
print(json.dumps([x.tolist(), total.item()]))
""", tmp_path, TIMEOUT="20")
    assert outs == [[[3.] * 4, 12.]] * 2


def test_a_failure_that_a_script_knows_comes_from_no_device(tmp_path):
    outs = on_cards("""
y, said = yoke.ones(3, device=card), []
group.all_reduce(y)
for way in "call", "work", "abort", "shrink":
    if rank and way != "abort":
        time.sleep(0.2)
        group.abort("enough")
    elif not rank:
        group.all_reduce(yoke.ones(4, device=card), async_op=True)   # nobody waits for it
        try:
            if way == "call": group.all_reduce(yoke.ones(4, device="cpu"))
            if way == "work": group.all_reduce(yoke.ones(4, device="cpu"), async_op=True).wait(20.)
        except yoke.Error as error:
            said.append("enough" in str(error))
        if way == "abort":
            time.sleep(0.1)
            group.abort()
        if way == "shrink": time.sleep(0.4)
    before = y.sum().item() if way != "shrink" else 6.
    group = group.shrink()
    said += [before, y.sum().item()]
    y = yoke.ones(3, device=card)
    group.all_reduce(y)
print(json.dumps(said))
""", tmp_path)
    assert outs == [[True, 6., 6., True] + [6.] * 6, [6.] * 8]


def test_a_failure_that_nobody_was_told_comes_from_the_device(tmp_path):
    outs = on_cards("""
y = yoke.ones(3, device=card)
group.all_reduce(y)
if rank:
    time.sleep(0.2)
    group.abort("enough")
else:
    group.all_reduce(yoke.ones(4, device=card), async_op=True)
    time.sleep(0.5)
try:
    print(json.dumps(y.sum().item()))
except yoke.Error as error:
    print(json.dumps("enough" in str(error)))
""", tmp_path)
    assert outs == [True, 6.]


def test_a_thousand_calls_that_nobody_waits_for_leave_memory_as_before(tmp_path):
    outs = on_cards("""
import gc
def once(count):
    for i in range(count):
        group.all_reduce(yoke.full((200 + i % 7,), 1., device=card), async_op=True)
        group.all_gather(yoke.zeros(size * 128, device=card), yoke.ones(128, device=card), async_op=True)
    lent = [group.empty((512,), yoke.float32, device=card) for _ in range(10)]
    for each in lent: group.all_reduce(each, async_op=True)
def held():
    yoke.synchronize()
    gc.collect()
    yoke.empty_cache()
    stats = yoke.memory_stats(card)
    return [stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"], len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))]
def settled(before):   # each rank needs its own number of looks, so the barrier stands before them
    group.barrier()
    limit = time.monotonic() + 20
    while (now := held()) != before and time.monotonic() < limit: time.sleep(0.02)
    return now
once(20)
group.barrier()
time.sleep(0.3)
before = held()
once(500)
print(json.dumps([before, settled(before)]))
""", tmp_path)
    for before, after in outs:
        assert before == after and before[0] == 0


# ---- How a process ends ----------------------------------------------------------------------------------------------

ENDS = {"return": ("pass", 0), "exit": ("sys.exit(7)", 7), "error": ("raise ValueError('enough')", 1),
        "TERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM), "finalize": ("yoke.comm.finalize()", 0),
        "part": ("del group, works", 0)}  # a group made by split
CALLS = """
y = yoke.ones(3, device=card)
group.all_reduce(y)
lent = group.empty((4,), yoke.float32, device=card)
group.all_reduce(lent, async_op=True)
if WAY == "part": group = group.split(0)
if WAY == "part": group.all_reduce(y)
if rank and IS_ALONE: time.sleep(60)
works = [group.all_reduce(yoke.ones(1000, device=card), async_op=True) for _ in range(5)]
open(f"{FOLDER}/begun.{rank}", "w").close()  # an exit code other than 0 ends the calls of the other rank
while not IS_ALONE and not os.path.exists(f"{FOLDER}/begun.{1 - rank}"): time.sleep(0.001)
print("begun", flush=True)
"""


def started(way, folder, is_alone):
    """Starts two ranks that end in this way amid calls; `is_alone`: rank 1 hangs and makes no such calls."""
    end, _ = ENDS[way]
    script = f"WAY, IS_ALONE, FOLDER = {way!r}, {is_alone}, {str(folder)!r}\n" + BEGIN + CALLS + end
    return [subprocess.Popen([sys.executable, "-c", script], env=each, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for each in under_torchrun(machine(folder, 2, TIMEOUT="100"), 2)]


def ended(process):
    """Returns the exit code, the seconds from the end of the script to the end of the process, and the output."""
    assert process.stdout.readline() == "begun\n", process.communicate()
    began = time.monotonic()
    out, error = process.communicate(timeout=60)
    return process.returncode, time.monotonic() - began, out + error


def test_a_process_with_calls_under_way_ends_by_its_own_exit_code(tmp_path):
    ranks = {way: started(way, tmp_path / way, False) for way in ENDS}
    for way, both in ranks.items():
        for rank, each in enumerate(both):
            code, seconds, said = ended(each)
            assert code == ENDS[way][1] and seconds < 7, (way, rank, code, seconds, said)


def test_beside_a_rank_that_hangs_it_ends_soon(tmp_path):
    ranks = {way: started(way, tmp_path / way, True) for way in ENDS if way != "finalize"}
    try:
        for way, (first, _) in ranks.items():
            code, seconds, said = ended(first)
            assert code == ENDS[way][1] and seconds < 7, (way, code, seconds, said)
    finally:
        for _, second in ranks.values():
            second.kill()
            second.communicate()


def test_a_forked_child_that_ends_by_return_ends(tmp_path):
    done = subprocess.run([sys.executable, "-c", """
import os, sys, time
import yoke
groups = yoke.comm.init_all(["cuda:0", "cuda:1"])
with yoke.comm.coalesce():
    for i, group in enumerate(groups): group.all_reduce(yoke.ones(2, device=f"cuda:{i}"))
yoke.synchronize("cuda:0")
child = os.fork()   # threads of calls beside NCCL wait for more calls at this time
if not child: sys.exit(3)
for _ in range(200):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended: break
    time.sleep(0.05)
else: os.kill(child, 9)
print(ended == child and os.waitstatus_to_exitcode(status))
"""], env=machine(tmp_path, 2), text=True, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "3\n"), done
