"""State of PowerSGD: for matrices unused for a while, and in other threads."""
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import yoke
from test_parallel import on_ranks
from test_parallel_regroup import done
from yoke import nn

GRADIENT = np.random.default_rng(0).normal(size=(16, 16)).astype("float32")


class Seldom(nn.Module):
    def __init__(self):
        self.matrix, self.vector = nn.Parameter(yoke.zeros((16, 16))), nn.Parameter(yoke.ones((3,)))

    def forward(self, rank, uses):
        y = self.vector.sum()
        return y + (self.matrix * yoke.tensor(GRADIENT * (1 + rank))).sum() if uses else y


@pytest.mark.parametrize("gaps", [0, 1, 3])
def test_what_a_matrix_lacks_waits_until_it_is_used(gaps):
    def body(group):
        net = Seldom()
        ddp = yoke.DistributedDataParallel(net, group, compression="powersgd:rank=1,start=2,rate=1")
        lacking = np.zeros((16, 16), "float32")
        for step in range(6):
            for uses in [True] + [False] * gaps:
                net.zero_grad()
                ddp(group.rank, uses).backward()
                assert (net.matrix.grad is not None) == uses
                if uses:
                    lacking += GRADIENT * 1.5 - net.matrix.grad.numpy()
        return lacking, ddp.comm_state()["tensors"]["error/matrix"].numpy()
    (lacking, first), (_, second) = done(on_ranks(2, body))
    np.testing.assert_allclose((first + second) / 2, lacking, atol=1e-3)
    assert np.abs(lacking).max() > 0.1


class Pair(nn.Module):
    """Two matrices of the same shape, with given gradients."""

    def __init__(self):
        self.first, self.second = (nn.Parameter(yoke.zeros((16, 16))) for _ in range(2))

    def forward(self, first, second):
        return (self.first * yoke.tensor(first)).sum() + (self.second * yoke.tensor(second)).sum()


def test_a_matrix_that_overflows_costs_no_other_one_what_it_lacks():
    def body(group):
        net = Pair()
        ddp = yoke.DistributedDataParallel(net, group, compression="powersgd:rank=1,start=2,rate=1")
        lacking = np.zeros((16, 16), "float32")
        for step in range(6):
            net.zero_grad()
            with np.errstate(over="ignore"):
                ddp(GRADIENT * np.float32(3e38 if step == 4 else 1), GRADIENT * np.float32(1 + group.rank)).backward()
            assert bool(yoke.isfinite(net.first.grad).all().item()) == (step != 4)
            lacking += GRADIENT * np.float32(1.5) - net.second.grad.numpy()
        return lacking, ddp.comm_state()["tensors"]["error/second"].numpy()
    (lacking, first), (_, second) = done(on_ranks(2, body))
    np.testing.assert_allclose((first + second) / 2, lacking, atol=1e-3)
    assert np.abs(lacking).max() > 0.1


def test_another_thread_gets_the_state_of_a_whole_step_or_none():
    def key(state):
        return state["steps"], tuple((name, each.numpy().tobytes()) for name, each in sorted(state["tensors"].items()))

    def body(group):
        yoke.manual_seed(1)
        net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
        ddp = yoke.DistributedDataParallel(net, group, bucket_mb=0.01, compression="powersgd:rank=1,start=2,rate=1")
        got, problems, ended = [], [], threading.Event()

        def save():
            try:
                while not ended.is_set():
                    try:
                        got.append(ddp.comm_state())
                    except yoke.StateError as error:
                        assert "a backward over the parameters is running" in str(error)
            except BaseException as error:
                problems.append(error)
        for _ in range(3):
            ddp(yoke.full((4, 64), group.rank + 1.)).sum().backward()
        saves = threading.Thread(target=save)
        whole = {key(ddp.comm_state())}
        saves.start()
        try:
            for _ in range(40):
                ddp(yoke.full((4, 64), group.rank + 1.)).sum().backward()
                whole.add(key(ddp.comm_state()))
            while not got and saves.is_alive():
                time.sleep(0.001)
        finally:
            ended.set()
            saves.join()
        return problems, len(got), sum(key(each) not in whole for each in got)
    for problems, count, torn in done(on_ranks(2, body)):
        assert not problems and count > 0 and torn == 0, (problems, count, torn)


def test_another_thread_may_load_a_state_between_two_backwards_alone():
    def body(group):
        yoke.manual_seed(1)
        net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)))
        ddp = yoke.DistributedDataParallel(net, group, bucket_mb=0.01, compression="powersgd:rank=1,start=2,rate=1")
        loaded, ended = [], threading.Event()

        def load():
            while not ended.is_set():
                try:
                    ddp.load_comm_state(state)
                    loaded.append(True)
                except yoke.StateError as error:
                    assert "a backward over the parameters is running" in str(error)
        for _ in range(4):
            ddp(yoke.ones((4, 64))).sum().backward()
        state = ddp.comm_state()
        loads = threading.Thread(target=load)
        loads.start()
        try:
            for _ in range(60):
                ddp(yoke.ones((4, 64))).sum().backward()
            while not loaded and loads.is_alive():
                time.sleep(0.001)
        except yoke.CollectiveError:
            pass  # each rank loads at any time, so ranks may differ
        finally:
            ended.set()
            loads.join()
        return bool(loaded)
    assert all(done(on_ranks(2, body)))


FREES = """
import threading, time, weakref, numpy as np, yoke
class Array(np.ndarray): pass
group, = yoke.comm.init_all(["cpu"], size=1)
net = yoke.nn.Linear(64, 64, bias=False)
ddp = yoke.DistributedDataParallel(net, group)
memory, freeing = np.ones((64, 64), "float32").view(Array), threading.Event()
weakref.finalize(memory, lambda: (freeing.set(), time.sleep(0.3), ddp.comm_state()))
net.weight.grad = yoke.from_dlpack(memory)
del memory
def save():
    freeing.wait()
    print(ddp.comm_state()["steps"])
saves = threading.Thread(target=save)
saves.start()
ddp.regroup(group)
saves.join()
"""


def test_gradients_that_call_the_script_as_they_go_hold_nobody_up():
    told = subprocess.run([sys.executable, "-c", FREES], stdout=subprocess.PIPE, timeout=60, check=True, text=True)
    assert told.stdout == "0\n"


@pytest.mark.parametrize("text", ["powersgd:rank=4,", "powersgd:,rank=4", "powersgd:rate=0x10", "powersgd:rate=nan"])
def test_options_that_say_nothing_are_refused(text):
    group, = yoke.comm.init_all(["cpu"], size=1)
    with pytest.raises(yoke.ValueError, match="argument 'compression' has"):
        yoke.DistributedDataParallel(nn.Linear(4, 4), group, compression=text)


def test_states_that_are_none_are_refused():
    group, = yoke.comm.init_all(["cpu"], size=1)
    ddp = yoke.DistributedDataParallel(nn.Linear(16, 16, bias=False), group, compression="powersgd:rank=1,start=2,rate=1")
    with pytest.raises(yoke.ValueError, match="'steps' -1"):
        ddp.load_comm_state({"steps": -1, "tensors": {}})
    with pytest.raises(yoke.ValueError, match=r"'error/weight' of \[16, 16\] int32"):
        ddp.load_comm_state({"steps": 3, "tensors": {"error/weight": yoke.zeros((16, 16), dtype=yoke.int32)}})
