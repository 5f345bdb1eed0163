"""Errors when collectives on tensors of a device fail, leftovers of such calls, and ranks as processes."""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import yoke
from conftest import DEVICE
from rank_scripts import free_port
from test_comm_device import emulated, on_device, together

# ---- Failures -------------------------------------------------------------------------------------------------------

def barrier():
    return threading.Barrier(2, timeout=60)


def failing(group, issued):
    """Returns works that have failed and ended, because rank 1 makes a different call."""
    def call(op):
        return group.all_reduce(yoke.ones(4, device=DEVICE), op, async_op=True)

    # Rank 1 calls last, and once: a call of a group that has failed raises at once.
    if group.rank == 0:
        works = [call("sum") for _ in range(3)]
        issued.wait()
    else:
        issued.wait()
        works = [call("max")]
    while not all(work.done() for work in works):
        time.sleep(0.001)
    return works


@on_device
def test_a_failure_that_nobody_was_told_of_is_told_by_the_next_wait_for_the_device():
    def body(group):
        works = failing(group, issued)
        ended.wait()
        if group.rank == 0:
            told = []
            for _ in range(2):
                try:
                    yoke.synchronize(DEVICE)
                except yoke.CollectiveError as error:
                    told.append(str(error))
            with pytest.raises(yoke.CollectiveError):
                works[0].wait()
            ended.wait()
            return told
        ended.wait()
        with pytest.raises(yoke.CollectiveError):
            works[0].wait()

    issued, ended = barrier(), barrier()
    told = together(body)[0]
    assert len(told) == 1 and "the reduction" in told[0] and "rank 1" in told[0]
    yoke.synchronize(DEVICE)


@on_device
def test_a_failure_that_was_told_is_not_told_again():
    def body(group):
        works = failing(group, issued)
        with pytest.raises(yoke.CollectiveError):
            works[-1].wait()

    issued = barrier()
    together(body)
    yoke.synchronize(DEVICE)
    assert yoke.ones(2, device=DEVICE).tolist() == [1., 1.]


@on_device
def test_what_a_call_has_raised_is_not_told_again_either():
    def body(group):
        t = yoke.ones(4, device=DEVICE)
        if group.rank == 0:
            group.all_reduce(yoke.ones(4, device=DEVICE), "max")
        else:
            group.all_reduce(t)

    found = together(body)
    assert found[0] == found[1] and "CollectiveError" in found[0]
    yoke.synchronize(DEVICE)


def test_an_abort_ends_a_call_on_all_ranks():
    def body(group):
        if group.rank == 1:
            called.wait()
            group.abort("enough")
        else:
            work = group.all_reduce(yoke.ones(4, device=DEVICE), async_op=True)
            called.set()
            work.wait()

    called = threading.Event()
    found = together(body)
    assert "CancelledError" in found[0] and "enough" in found[0]
    yoke.synchronize()


@emulated
def test_no_pinned_memory_is_told_to_its_caller_alone_and_the_group_goes_on(monkeypatch):
    group, = yoke.comm.init_all(["cpu"])
    t = yoke.ones(3 << 20, device=DEVICE)
    yoke.empty_cache()
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cudaHostAlloc=2")
    with pytest.raises(yoke.OutOfMemoryError, match="pinned"):
        group.all_reduce(t)
    monkeypatch.delenv("FAKE_CUDA_FAIL")
    group.all_reduce(t)
    assert t.sum().item() == 3 << 20


def held_pinned():
    yoke.empty_cache()
    return ctypes.CDLL("libcuda.so.1").fake_held(3)  # FAKE_PINNED of tests/fakes/cuda/fake.h


@emulated
def test_nothing_is_left_behind():
    def body(group, fails):
        works = [group.all_reduce(yoke.ones((300, 40), device=DEVICE).transpose(0, 1), async_op=True) for _ in range(4)]
        if fails and group.rank == 1:
            group.abort()
        for work in works:
            try:
                work.wait()
            except yoke.CancelledError:
                assert fails

    together(lambda group: body(group, False))
    gc.collect()
    yoke.synchronize(DEVICE)
    before = yoke.memory_allocated(DEVICE), held_pinned()
    for fails in False, True, True:
        together(lambda group: body(group, fails))
    gc.collect()
    yoke.synchronize(DEVICE)
    assert (yoke.memory_allocated(DEVICE), held_pinned()) == before


# ---- Processes ------------------------------------------------------------------------------------------------------

BEGIN = """
import gc, os, yoke
group = yoke.comm.init(timeout=60., backend='cpu')
rank, size = group.rank, group.size
"""


def start(program, size):
    common = {**os.environ, "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
              "YOKE_DEVICE": DEVICE}
    ranks = [subprocess.Popen([sys.executable, "-c", BEGIN + program], env={**common, "RANK": str(rank)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(size)]
    done = [each.communicate(timeout=120) for each in ranks]
    return [out for out, _ in done], [each.returncode for each in ranks], [error for _, error in done]


def test_ranks_may_be_processes():
    outs, statuses, errors = start("""
t = yoke.arange(6, dtype="float32") * (rank + 1)
group.all_reduce(t, op="avg")
work = group.broadcast(t, 1, async_op=True)
work.wait()
print(str(t.device).split(":")[0], t.tolist())
""", 2)
    assert statuses == [0, 0], errors
    assert outs == [f"{DEVICE} [0.0, 1.5, 3.0, 4.5, 6.0, 7.5]\n"] * 2


def test_ranks_in_lua_have_tensors_of_a_device_too():
    lua = """
local yoke = require "yoke"
local group = assert(yoke.comm.init {timeout = 60.0, backend = "cpu"})
local t = yoke.full({4}, 10.0)
assert(group:all_reduce(t))
local work = assert(group:all_reduce(t, "max", {async_op = true}))
assert(work:wait())
assert(work:wait(30.0))
print((t + 1):tolist()[1], tostring(t.device):match("^%a+"))
"""
    python = """
t = yoke.full((4,), 1.)
group.all_reduce(t)
group.all_reduce(t, "max")
"""
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "YOKE_DEVICE": DEVICE}
    ranks = [subprocess.Popen(command, env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for rank, command in enumerate([[sys.executable, "-c", BEGIN + python], ["lua5.4", "-e", lua]])]
    (_, first), (out, second) = [each.communicate(timeout=120) for each in ranks]
    assert [each.returncode for each in ranks] == [0, 0], first + second
    assert out == f"12.0\t{DEVICE}\n"



@emulated
def test_a_rank_that_loses_its_device_is_named_on_all():
    outs, statuses, errors = start("""
t = yoke.ones(1000)
group.all_reduce(t)
yoke.synchronize()
if rank == 1:
    os.environ["FAKE_CUDA_WORK_FAIL"] = "700"  # of the copy that the call begins with
try:
    group.all_reduce(t)
except yoke.Error as error:
    print(type(error).__name__, error)
""", 2)
    assert statuses == [0, 0], errors
    assert outs[0] == outs[1] and "DeviceLostError" in outs[0] and "rank 1 (host" in outs[0] and "700" in outs[0], outs


@on_device
@pytest.mark.parametrize("backend, what", [("cpu", "stream of"), pytest.param("nccl", "communicator on", marks=emulated)])
def test_what_keeps_a_kind_from_being_disabled_is_named_and_what_is_the_cores_own_is_not(backend, what):
    outs, statuses, errors = start(f"""
del group
yoke.comm.finalize()
group = yoke.comm.init("{backend}")
t = yoke.ones(1000)
group.all_reduce(t)
x = yoke.randn((8, 8)).requires_grad_()
with yoke.checkpoint_scope(offload=True):
    y = yoke.tanh(x * 2.).sum()
y.backward()
del t, x, y
gc.collect()
yoke.synchronize()
yoke.empty_cache()
try:
    yoke.disable("{DEVICE}")
except yoke.StateError as error:
    print(error)
del group
yoke.comm.finalize()
gc.collect()
yoke.disable("{DEVICE}")
""", 1)
    assert statuses == [0], errors
    assert f"{DEVICE} is in use: a group of collectives with a {what} {DEVICE}:0 (rank 0 of 1)" in outs[0] and "more" not in outs[0]
    assert "and" not in outs[0].split(";")[0], outs
