"""Several modules of a group, each wrapped, in a single backward. Ranks are threads."""
import contextlib
import threading

import numpy as np
import pytest

import yoke
from yoke import nn
from test_parallel import batch, on_ranks, values


def pair(group=None, **options):
    yoke.manual_seed(3)
    first, second = (nn.Linear(6, 3, dtype=yoke.float64) for _ in range(2))
    if group is None:
        return first, second
    return tuple(yoke.DistributedDataParallel(each, group, **options) for each in (first, second))


def loss_of(first, second, rank, step, in_turn):
    x, y = batch(10 * rank + step, 4)
    made = {}
    for name, module in (("first", first), ("second", second))[::-1 if in_turn else 1]:
        made[name] = ((module(x) - y) ** 2).sum()
    return made["first"] + 3 * made["second"] if in_turn else 3 * made["second"] + made["first"]


def test_gradients_are_those_of_one_process_whatever_the_order_of_each_rank():
    size = 3

    def body(group):
        first, second = pair(group, bucket_mb=0.0001)
        found = []
        for step in range(4):
            loss_of(first, second, group.rank, step, (group.rank + step) % 2).backward()
            found.append([values(each) for each in (first.module, second.module)])
            first.zero_grad(), second.zero_grad()
        return found

    told = on_ranks(size, body)
    for step in range(4):
        whole = pair()
        sum((loss_of(*whole, rank, step, 0) / size for rank in range(size)), yoke.zeros((), dtype=yoke.float64)).backward()
        for rank in range(size):
            for expected, found in zip(whole, told[rank][step]):
                for name, want in values(expected).items():
                    assert np.abs(found[name] - want).max() < 1e-12, (step, rank, name)


def test_a_layer_that_one_rank_leaves_out_moves_nothing():
    class Decoder(nn.Module):
        def __init__(self):
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x, skips):
            x = self.a(x)
            return x if skips else self.b(x)

    def body(group):
        yoke.manual_seed(0)
        encoder = yoke.DistributedDataParallel(nn.Linear(4, 4), group)
        decoder = yoke.DistributedDataParallel(Decoder(), group, bucket_mb=1e-5)
        decoder(encoder(yoke.ones((3, 4))), group.rank == 1).sum().backward()
        return [{name: each.tolist() for name, each in values(part.module).items()} for part in (encoder, decoder)]

    first, second = on_ranks(2, body)
    assert first == second and first[1]["b.bias"] == [1.5] * 4


def test_a_module_that_one_rank_leaves_out_is_told_on_all():
    def body(group):
        first, second = pair(group)
        x, _ = batch(0, 4)
        second(x).sum().backward() if group.rank == 1 else (first(x) + second(x)).sum().backward()

    for told in on_ranks(2, body):
        assert isinstance(told, yoke.Error) and "rank 0 (host" in str(told) and "module 2 of this group and next through module 1" in str(told), told
        assert "rank 1 (host" in str(told) and "module 2 and through no other" in str(told), told


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("steps", [False, True])
def test_all_modules_and_their_optimizer_go_on_from_one_rank(order, steps):
    aside = yoke.comm.init_all(["cpu"], size=2)
    has_stepped = threading.Event()

    def body(group):
        def hook(bucket, group):
            group.all_reduce(bucket.tensor, op="avg")
            return pending if group.rank == 1 else None  # fails at the end of the first module's part, after the second's part
        pending = None
        first, second = pair()
        wrapped = [yoke.DistributedDataParallel(first, group, compression=hook), yoke.DistributedDataParallel(second, group)]
        optimizer = yoke.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1, momentum=0.9)
        told = []

        def step():
            loss_of(*wrapped, group.rank, 0, 0).backward()
            optimizer.step(), optimizer.zero_grad()

        def state():
            return [each.tolist() for module in (first, second) for each in module.parameters()], [
                each["momentum_buffer"].tolist() for each in optimizer.state_dict()["state"].values()]
        step()
        told.append(state())
        if group.rank == 1:
            pending = aside[1].all_reduce(yoke.ones((4,)), async_op=True)
            with pytest.raises(yoke.CancelledError, match="aside is over"):
                step()
        else:
            step()
            if steps:
                wrapped[0](batch(0, 4)[0])  # this rank is beyond its optimizer's step
            told.append(state())
            has_stepped.set()
            aside[0].abort("aside is over")
        group = group.shrink(timeout=5)
        for which in order:
            wrapped[which].regroup(group, *[optimizer] if which == order[0] else [])
        return told, state()
    found = on_ranks(2, body)
    (before, after), first = found[0]
    assert before != after and found[1][0] == [before]
    assert first == found[1][1] == (after if steps else before)


@pytest.mark.parametrize("both", [False, True])
def test_unlike_modules_are_told_on_all_whatever_they_hold(both):
    def body(group):
        small, large = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        first, second = (yoke.DistributedDataParallel(each, group) for each in (small, large))
        x = yoke.ones((2, 4))
        loss = first(x).sum() if group.rank == 0 or both else 0
        (loss if group.rank == 0 else loss + second(x).sum()).backward()

    for told in on_ranks(2, body):
        assert isinstance(told, yoke.Error) and "rank 0 (host" in str(told) and "through module 1" in str(told), told
        assert "rank 1 (host" in str(told) and "through module 2" in str(told), told


@pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")
@pytest.mark.parametrize("apart", [None, 0, 1])
def test_a_step_that_was_begun_is_seen_also_where_one_module_does_not_reduce(apart):
    def body(group):
        plain = [nn.Linear(2, 1, bias=False) for _ in range(2)]
        for module in plain:
            with yoke.no_grad():
                module.weight.fill_(0)
        wrapped = [yoke.DistributedDataParallel(module, group) for module in plain]
        optimizer = yoke.optim.SGD([module.weight for module in plain], lr=1.0)
        for step in range(2):
            optimizer.zero_grad()
            loss = sum(module(yoke.ones((1, 2))).sum() for module in wrapped)
            with wrapped[apart].no_sync() if step and apart is not None else contextlib.nullcontext():
                loss.backward()
            if step == 0:
                optimizer.step()
        if group.rank == 1:  # amid the optimizer's second step
            with yoke.no_grad():
                plain[1].weight.sub_(plain[1].weight.grad)
        group.monitored_barrier(5.)
        if group.rank == 0:
            group.abort("fails")
        other = group.shrink(timeout=3.)
        wrapped[0].regroup(other, optimizer), wrapped[1].regroup(other)
        return [module.weight.tolist() for module in plain]
    assert on_ranks(2, body) == [[[[-1., -1.]]] * 2] * 2
