"""Reads of the host program behind collectives on emulated cards: no read gives values of calls that the ranks made unlike, and none
waits for a rank that does not come."""
import json
import sys

import pytest

from cards_of_ranks import IS_BUILT, machine, yoke_run

pytestmark = pytest.mark.skipif(not IS_BUILT, reason="no emulated CUDA module, no fake NVML or no command was built")

BEGIN = """
import json, os, sys, threading, time
import yoke
group = yoke.comm.init(timeout=float(os.environ.get("TIMEOUT", "30")))
rank, card, other = group.rank, f"cuda:{group.local_rank}", "cuda:2"
yoke.set_device(card)
"""


def on_cards(script, folder, ranks=2, **variables):
    """Returns the output of each rank, read as JSON. The machine has one card more than ranks."""
    outs, _ = yoke_run([sys.executable, "-c", BEGIN + script], machine(folder, ranks + 1, **variables), ranks)
    return [json.loads(out) for out in outs]


WAYS = """
def dropped(part, x):
    part.all_reduce(x, ("max", "sum")[rank], async_op=True)
    yoke.synchronize(card)
    return x.tolist()

def kept(part, x):
    work = part.all_reduce(x, ("max", "sum")[rank], async_op=True)
    yoke.synchronize(card)
    return x.tolist()

def by_stream(part, x):
    part.all_reduce(x, ("max", "sum")[rank])
    copy = x.to("cpu", non_blocking=True)
    yoke.current_stream(card).synchronize()
    return copy.tolist()

def by_event(part, x):
    part.all_reduce(x, ("max", "sum")[rank])
    copy, event = x.to("cpu", non_blocking=True), yoke.Event()
    event.record()
    event.synchronize()
    return copy.tolist()

def by_query(part, x):
    part.all_reduce(x, ("max", "sum")[rank])
    copy, event = x.to("cpu", non_blocking=True), yoke.Event()
    event.record()
    while not event.query(): pass
    return copy.tolist()

def by_another_card(part, x):
    part.all_reduce(x, ("max", "sum")[rank])
    return x.to(other).tolist()

read = []
for way in (dropped, kept, by_stream, by_event, by_query, by_another_card) * 4:
    part = group.split(0)
    part.all_reduce(yoke.ones(1, device=card))
    group.barrier()
    try:
        read.append([way.__name__, way(part, yoke.ones(4, device=card))])
    except yoke.Error as error:
        assert "max" in str(error) and "sum" in str(error), error
    try:
        yoke.synchronize(card)   # the part's other calls report the same failure
    except yoke.Error:
        pass
    del part
print(json.dumps(read))
"""


def test_no_read_gives_values_of_unlike_calls(tmp_path):
    assert on_cards(WAYS, tmp_path) == [[], []]


def test_a_read_ends_with_the_group_though_nccl_does_not_end_the_call(tmp_path):
    outs = on_cards("""
said = []
for way in "tolist", "synchronize", "stream":
    part = group.split(0)
    x = yoke.ones(4, device=card)
    part.all_reduce(x)
    group.barrier()
    if rank == 0:
        part.abort("enough")
        continue
    try:
        work = part.all_reduce(x, async_op=way == "synchronize")
        if way == "tolist": x.tolist()
        if way == "synchronize": yoke.synchronize(card)
        if way == "stream": yoke.current_stream(card).synchronize()
        said.append("read")
    except yoke.Error as error:
        said.append("enough" in str(error))
print(json.dumps(said))
sys.stdout.flush()
os._exit(0)
""", tmp_path, FAKE_NCCL_FAIL="ncclCommAbort=hang", TIMEOUT="20")
    assert outs == [[], [True] * 3]


def test_an_interrupt_reaches_a_read_whose_call_waits_for_a_rank(tmp_path):
    outs = on_cards("""
import signal
x = yoke.ones(4, device=card)
group.all_reduce(x)
group.barrier()
heard = []
if rank == 0:
    signal.signal(signal.SIGUSR1, lambda *_: heard.append(time.monotonic()))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    group.all_reduce(x)
    x.tolist()
    ended = time.monotonic()
    print(json.dumps(len(heard) == 1 and heard[0] < ended - 0.5))
else:
    time.sleep(2)
    group.all_reduce(x)
    print(json.dumps(x.tolist()))
""", tmp_path)
    assert outs == [True, [4.] * 4]


def test_a_deadline_is_kept_while_the_driver_opens_another_card(tmp_path):
    outs = on_cards("""
group.all_reduce(yoke.ones(4, device=card))
group.barrier()
threading.Thread(target=lambda: yoke.ones(3, device=other), daemon=True).start()   # returns after 8 s
time.sleep(0.3)
began = time.monotonic()
try:
    group.all_reduce(yoke.ones(4, device=card), async_op=True).wait(20.)
    said = "done"
except yoke.TimeoutError:
    said = time.monotonic() - began < 4.
print(json.dumps(said))
sys.stdout.flush()
os._exit(0)
""", tmp_path, FAKE_NCCL_STUCK="1@2", FAKE_CUDA_SLOW="cuDevicePrimaryCtxRetain@2=8", TIMEOUT="2")
    assert outs == [True] * 2
