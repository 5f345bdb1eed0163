"""Whole trainings of several ranks: a single process's result on the whole batch, with equal bits on every rank and in every run.
Ranks are threads.
"""
import numpy as np
import pytest

import yoke
from yoke import nn
from rank_scripts import start
from test_parallel import on_ranks, values


class Deep(nn.Module):
    """Module with a layer used twice, a frozen layer, and nested scopes that recompute activations."""

    def __init__(self):
        self.first, self.shared, self.frozen, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        for each in self.frozen.parameters():
            each.requires_grad_(False)
        self.to(yoke.float64)

    def forward(self, x):
        def inner(x):
            return yoke.tanh(self.frozen(yoke.tanh(self.shared(x))))

        def outer(x):
            return yoke.tanh(self.shared(yoke.checkpoint(inner, yoke.tanh(self.first(x)))))
        return self.last(yoke.checkpoint(outer, x))


def deep():
    yoke.manual_seed(2)
    return Deep()


def rows(rank, part, size=None):
    numbers = np.random.default_rng(100 * rank + part)
    return yoke.tensor(numbers.normal(size=(size or 2 + rank, 6)))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_gradients_of_checkpoints_and_of_parts_are_those_of_one_process(size, parts):
    whole, count = deep(), sum(2 + rank for rank in range(size)) * parts
    for rank in range(size):
        for part in range(parts):
            (whole(rows(rank, part)).pow(2).sum() / count).backward()
    expected = values(whole)

    def train(group):
        model = deep()
        ddp = yoke.DistributedDataParallel(model, group, bucket_mb=0.0005)
        own = (2 + group.rank) * parts
        found = []
        for _ in range(3):
            ddp.set_weight(own)
            with ddp.no_sync():
                for part in range(parts - 1):
                    (ddp(rows(group.rank, part)).pow(2).sum() / own).backward()
            (ddp(rows(group.rank, parts - 1)).pow(2).sum() / own).backward()
            found.append(values(model))
            model.zero_grad()
        return found
    for found in on_ranks(size, train):
        for step in found:
            for name, want in expected.items():
                assert (step[name] is None) == (want is None) == ("frozen" in name), name
                if want is not None:
                    assert np.abs(step[name] - want).max() <= 1e-12 * max(1, np.abs(want).max()), name


class Mixed:
    """float16 products with a GradScaler, clipped gradients and an average of the parameters."""

    def __init__(self, module=None):
        yoke.manual_seed(4)
        self.net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
        self.optimizer = yoke.optim.AdamW(self.net.parameters(), lr=0.01)
        self.scaler = yoke.GradScaler(init_scale=2.**14, growth_interval=4)
        self.average = yoke.optim.EMA(self.net.parameters(), decay=0.9)
        self.norms = []

    def step(self, call, xs):
        with yoke.autocast(dtype=yoke.float16):
            loss = call(xs).float().pow(2).mean()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        self.norms.append(float(yoke.optim.clip_grad_norm_(self.net.parameters(), 0.5)))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        self.average.update()

    def told(self):
        return [each.tolist() for each in (*self.net.parameters(), *self.average.averages)], self.norms, self.scaler.state_dict()


def mixed_rows(rank, step, size):
    """Returns the rows of a rank, or of all ranks. The rows of the fifth step make rank 1's gradients infinite."""
    ranks = range(size) if rank is None else [rank]
    return yoke.cat([rows(each, step, 4) * (1e6 if (each, step) == (1, 5) else 1) for each in ranks]).to(dtype=yoke.float32)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_mixed_precision_with_scaler_clipping_and_average(size):
    alone = Mixed()
    for step in range(12):
        alone.step(alone.net, mixed_rows(None, step, size))

    def train(group):
        own = Mixed()
        ddp = yoke.DistributedDataParallel(own.net, group)
        for step in range(12):
            own.step(ddp, mixed_rows(group.rank, step, size))
        return own.told()
    first, *others = on_ranks(size, train)
    assert not isinstance(first, BaseException), first
    assert all(repr(each) == repr(first) for each in others)
    found, expected = first, alone.told()
    assert found[2] == expected[2] and (size == 1 or np.isinf(found[1][5]) or np.isnan(found[1][5]))
    for a, b in zip(found[0], expected[0]):
        assert np.abs(np.array(a) - np.array(b)).max() < 5e-3


class Long:
    """A hundred steps, from the first or from a state."""

    def __init__(self, group, compression):
        yoke.manual_seed(6)
        self.group = group
        self.net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 24), nn.BatchNorm1d(24), nn.Linear(24, 3))
        self.ddp = yoke.DistributedDataParallel(self.net, group, bucket_mb=0.001, compression=compression)
        self.optimizer = yoke.optim.AdamW(self.net.parameters(), lr=0.01)

    def steps(self, begin, end):
        losses = []
        for step in range(begin, end):
            loss = self.ddp(rows(self.group.rank, step, 3).to(dtype=yoke.float32)).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    def told(self):
        return [each.tolist() for each in (*self.net.parameters(), *self.net.buffers())]


@pytest.mark.parametrize("compression", [None, "bf16", "powersgd:rank=2,start=5,rate=1"])
def test_a_hundred_steps_have_the_same_bits_on_every_rank_in_every_run_and_after_a_resume(compression, tmp_path):
    def path(rank):
        return str(tmp_path / f"{rank}.safetensors")

    def run(group):
        long = Long(group, compression)
        losses = long.steps(0, 50)
        yoke.save(path(group.rank), {"net": long.net, "optimizer": long.optimizer, "comm": long.ddp.comm_state()})
        return losses + long.steps(50, 100), long.told()

    def resumed(group):
        long = Long(group, compression)
        state = yoke.load(path(group.rank))
        long.net.load_state_dict(state["net"])
        long.optimizer.load_state_dict(state["optimizer"])
        long.ddp.load_comm_state(state["comm"])
        return long.steps(50, 100), long.told()
    once, twice = on_ranks(3, run), on_ranks(3, run)
    assert all(each[1] == once[0][1] for each in once) and once == twice
    for rank, (losses, told) in enumerate(on_ranks(3, resumed)):
        assert losses == once[rank][0][50:] and told == once[0][1]


TRAINING = """
from yoke import nn
yoke.manual_seed(7)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
ddp = yoke.DistributedDataParallel(net, bucket_mb=0.0005)
optimizer = yoke.optim.AdamW(net.parameters(), lr=0.01)
yoke.manual_seed(rank)
for step in range(10):
    ddp(yoke.randn((3, 6))).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print([each.tolist() for each in net.parameters()])
"""


def test_without_a_cache_of_memory_the_bits_are_the_same():
    (first, second), statuses, errors = start(TRAINING, 2)
    assert statuses == [0, 0] and first == second, errors
    assert start(TRAINING, 2, YOKE_NO_CACHING="1")[0] == [first, first]
