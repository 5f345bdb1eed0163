"""What PowerSGD goes on with: of matrices that nobody uses for a while, and in the hands of other threads."""
import threading

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


def test_another_thread_gets_the_state_of_a_whole_step_or_none():
    def key(state):
        return state["steps"], tuple((name, each.numpy().tobytes()) for name, each in sorted(state["tensors"].items()))

    def body(group):
        yoke.manual_seed(1)
        net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
        ddp = yoke.DistributedDataParallel(net, group, bucket_mb=0.01, compression="powersgd:rank=1,start=2,rate=1")
        got, ended = [], threading.Event()

        def save():
            while not ended.is_set():
                try:
                    got.append(ddp.comm_state())
                    ddp.load_comm_state(got[-1]) if len(got) % 4 == 0 else None
                except yoke.StateError as error:
                    assert "a backward over the parameters is under way" in str(error)
        for _ in range(3):
            ddp(yoke.full((4, 64), group.rank + 1.)).sum().backward()
        saves = threading.Thread(target=save)
        whole = {key(ddp.comm_state())}
        saves.start()
        try:
            for _ in range(40):
                ddp(yoke.full((4, 64), group.rank + 1.)).sum().backward()
                whole.add(key(state_of(ddp)))
        finally:
            ended.set()
            saves.join()
        return [key(each) in whole for each in got]

    def state_of(ddp):
        return ddp.comm_state()
    for each in done(on_ranks(2, body)):
        assert all(each)


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
