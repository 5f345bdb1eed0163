"""ddp.regroup(group) after Group.shrink: the living ranks go on from the furthest rank. Ranks are threads."""
import threading
import time

import numpy as np
import pytest

import yoke
from parallel_run import BATCH, EXAMPLES, Run
from test_parallel import on_ranks
from yoke import nn

def lost(group, victim, timeout=0.5):
    """Returns None for the victim, else the group of the other ranks."""
    group.monitored_barrier(30.)  # no rank fails before all ranks are here
    if group.rank == victim:
        group.abort("it is lost")
        return None
    return group.shrink(timeout=timeout)


def done(results):
    """Returns the results of the living ranks."""
    for each in results:
        if isinstance(each, BaseException):
            raise each
    return [each for each in results if each is not None]


@pytest.mark.parametrize("ahead", [0, 2])
def test_all_take_the_state_of_the_rank_that_is_furthest(ahead):
    has_stepped = threading.Event()

    def body(group):
        def hook(bucket, group):
            group.all_reduce(bucket.tensor, op="avg")
            if failing and bucket.is_last:
                has_stepped.wait(30)
                raise KeyError("too late")
        failing, furthest = False, None
        run = Run(group, norm=False, compression=hook)
        run.steps(3)
        failing = group.rank == 2 - ahead
        if group.rank == ahead:
            run.steps(1)
            furthest = run.told()
            has_stepped.set()
        try:
            run.backward()  # the fifth of the rank ahead, which is lost; the fourth of the other rank, which it never completes
        except yoke.CancelledError as error:
            assert "too late" in str(error)
        if group.rank == 1:
            return None
        smaller = group.shrink(timeout=0.5)
        failing = False
        run.regroup(smaller)
        assert all(each.grad is None for each in run.net.parameters()) and run.ddp.group is smaller
        after = run.told()
        run.steps(2)
        return furthest, after, run.told(), smaller.size, sorted(run.seen)
    first, second = done(on_ranks(3, body))
    furthest = first[0] or second[0]
    for each in first, second:
        assert each[1][:3] == furthest[:3] and each[2] == first[2] and each[3] == 2
        assert each[1][3] == {"epoch": 0, "consumed": 5 * 3 * BATCH}
        assert each[2][3] == {"epoch": 0, "consumed": 5 * 3 * BATCH + 2 * 2 * BATCH}


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("shown_first", [False, True])
@pytest.mark.parametrize("is_shown_last", [False, True])
def test_half_a_step_of_an_optimizer_is_not_what_all_get(victim, shown_first, is_shown_last):
    has_failed = threading.Event()

    def body(group):
        net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        ddp = yoke.DistributedDataParallel(net, group)
        halves = [yoke.optim.SGD(list(net.parameters())[at:at + 2], lr=0.1) for at in (0, 2)]
        for step in range(3):
            loss = ddp(yoke.full((2, 4), step + group.rank + 1.)).sum()
            loss.backward()
            if shown_first:
                group.all_reduce(loss.detach())
            halves[0].step()
            if step == 2 and group.rank == victim:
                has_failed.set()  # as where memory ends
                break
            halves[1].step()
            for each in halves:
                each.zero_grad()
            if step == 2:
                has_failed.wait(30)
                if is_shown_last:
                    with pytest.raises(yoke.CancelledError):
                        group.all_reduce(loss.detach())
            else:
                group.all_reduce(loss.detach())
        before = [each.tolist() for each in net.parameters()]
        group = group.shrink(timeout=5)
        ddp.regroup(group)
        return before, [each.tolist() for each in net.parameters()]
    results = done(on_ranks(2, body))
    assert results[victim][0] != results[1 - victim][0]
    assert results[0][1] == results[1][1] == results[1 - victim][0]


@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("compression", [None, "powersgd:rank=1,start=2,rate=1"])
def test_those_that_live_have_what_as_many_ranks_have_from_there(victim, compression):
    def body(group):
        run = Run(group, compression=compression)
        run.steps(4)
        smaller = lost(group, victim)
        if smaller is None:
            return None
        with pytest.raises(yoke.CancelledError):
            run.backward()
        run.regroup(smaller)
        there = run.state()
        run.steps(3)
        return there, run.told()
    lived = done(on_ranks(3, body))

    def again(group):
        run = Run(group, compression=compression).go_on_from(lived[group.rank][0])
        run.steps(3)
        return run.told()
    fresh = on_ranks(2, again)
    assert fresh[0] == fresh[1] == lived[0][1] == lived[1][1]


def test_one_that_is_left_alone_trains_as_one_process():
    def body(group):
        run = Run(group)
        run.steps(2)
        smaller = lost(group, 0)
        if smaller is None:
            return None
        run.regroup(smaller)
        there = run.state()
        run.steps(3)
        return there, run.told()
    (there, after), = done(on_ranks(2, body))
    group, = yoke.comm.init_all(["cpu"], size=1)
    fresh = Run(group).go_on_from(there)
    fresh.steps(3)
    assert fresh.told() == after


def test_nobody_s_example_is_lost_but_those_of_one_step():
    def body(group):
        run = Run(group)
        run.steps(4)
        done = run.seen[:]
        group.monitored_barrier(30.)
        with pytest.raises(yoke.CancelledError):
            if group.rank == 1:
                group.abort("it is lost")
            run.backward()
        if group.rank == 1:
            return done, []
        run.regroup(group.shrink(timeout=0.5))
        before = len(run.seen)
        while True:
            which = [index for _, index in zip(range(BATCH), run.pass_)]
            if not which:
                return done, run.seen[before:]
            run.seen += which
    results = on_ranks(3, body)
    seen = sorted(index for each in done(results) for part in each for index in part)
    assert len(set(seen)) == len(seen) and EXAMPLES - 3 * BATCH <= len(seen)


def test_a_failed_step_leaves_the_state_of_a_compression():
    begun = threading.Barrier(3)

    def body(group):
        run = Run(group, compression="powersgd:rank=1,start=2,rate=1")
        run.steps(5)
        before = run.ddp.comm_state()
        loss = run.ddp(yoke.ones((2, 6))).pow(2).sum()
        begun.wait(30)
        if group.rank == 2:
            time.sleep(0.1)  # the other ranks wait for this rank amid backward by then
            group.abort("it is lost")
            return None
        with pytest.raises(yoke.CancelledError):
            loss.backward()
        failing = run.ddp.comm_state()
        run.regroup(group.shrink(timeout=0.5))
        return before, failing, run.ddp.comm_state()
    for before, *others in done(on_ranks(3, body)):
        for other in others:
            assert other["steps"] == before["steps"] == 5 and other["tensors"].keys() == before["tensors"].keys() and before["tensors"]
            for name, tensor in before["tensors"].items():
                difference = np.abs(np.array(other["tensors"][name].tolist()) - np.array(tensor.tolist())).max()
                assert difference <= 1e-4 * name.startswith("error/"), name  # the gradient was added and taken away again


@pytest.mark.parametrize("begun", ["unscale_", "step"])
def test_a_scaler_that_was_amid_a_step_begins_it_anew_on_all_ranks(begun):
    def body(group):
        net = nn.Linear(4, 2)
        ddp, scaler = yoke.DistributedDataParallel(net, group), yoke.GradScaler(init_scale=8.)
        optimizer = yoke.optim.AdamW(net.parameters(), lr=0.1)

        def step():
            scaler.scale(ddp(yoke.full((2, 4), group.rank + 1.)).sum()).backward()
            scaler.unscale_(optimizer)
            grad = net.weight.grad.tolist()
            scaler.step(optimizer)
            scaler.update()
            return grad
        step()
        optimizer.zero_grad()
        scaler.scale(ddp(yoke.ones((2, 4))).sum()).backward()
        getattr(scaler, begun)(optimizer)
        smaller = lost(group, 2)
        if smaller is None:
            return None
        ddp.regroup(smaller, optimizer, scaler)
        return step(), net.weight.tolist(), scaler.get_scale()
    first, second = done(on_ranks(3, body))
    assert first == second and first[0] == [[3.] * 4] * 2 and first[2] == 8.


def test_weights_go_on_and_so_does_no_sync():
    def body(group):
        layer = nn.Linear(1, 1, bias=False)
        ddp = yoke.DistributedDataParallel(layer, group)
        ddp.set_weight(group.rank + 1)
        smaller = lost(group, 1)
        if smaller is None:
            return None
        with ddp.no_sync():
            ddp.regroup(smaller)
            ddp(yoke.full((1, 1), 10.)).sum().backward()
            alone = layer.weight.grad.item()
        layer.zero_grad()
        ddp(yoke.full((1, 1), float(smaller.rank))).sum().backward()
        return alone, layer.weight.grad.item()
    assert done(on_ranks(3, body)) == [(10., .75)] * 2


def test_a_regroup_that_fails_leaves_the_module_and_may_come_again():
    def body(group):
        run = Run(group)
        run.steps(2)
        before = run.told()
        smaller = lost(group, 3)
        if smaller is None:
            return None
        objects = () if smaller.rank == 1 else (run.optimizer,)
        try:
            smaller.monitored_barrier(30.)
            if smaller.rank == 2:
                smaller.abort("it is lost, too")
                return None
            run.ddp.regroup(smaller, *objects)
        except yoke.CancelledError:
            pass
        else:
            raise AssertionError("it should have failed")
        assert run.told() == before
        run.net(yoke.ones((2, 6))).sum().backward()  # alone
        assert all(each.grad is not None for each in run.net.parameters())
        run.regroup(smaller.shrink(timeout=0.5))
        run.steps(2)
        return run.told()
    first, second = done(on_ranks(4, body))
    assert first == second


def test_who_goes_on_after_a_regroup_that_failed_is_told():
    def body(group):
        run = Run(group)
        run.steps(1)
        part = group.split(0)
        if group.rank == 1:
            part.abort("not this one")
        with pytest.raises(yoke.CancelledError, match="not this one"):
            run.ddp.regroup(part)
        with pytest.raises(yoke.StateError, match="call regroup again"):
            run.backward()
        run.regroup(group)  # the group is unchanged
        run.steps(1)
        return run.told()
    first, second = done(on_ranks(2, body))
    assert first == second


def test_shares_stay_as_large_beside_each_other():
    def body(group):
        sampler = yoke.data.DistributedSampler(100, rank=group.rank, world_size=3, shares=[0.5, 0.3, 0.2])
        taken = [index for _, index in zip(range([10, 6, 4][group.rank]), sampler)]
        smaller = lost(group, 0)
        if smaller is None:
            return taken
        sampler.regroup(smaller)
        return taken, len(sampler), sorted([*taken, *sampler])
    first, second, third = on_ranks(3, body)
    assert (second[1], third[1]) == (48, 32)
    assert sorted([*first, *second[2], *third[2]]) == list(range(100))

    def unlike(group):
        sampler = yoke.data.DistributedSampler(10, rank=group.rank, world_size=2, shares=[0.5, 0.5] if group.rank else None)
        with pytest.raises(yoke.ValueError, match="1 of 2 ranks have no shares"):
            sampler.regroup(group)
        return True
    assert on_ranks(2, unlike) == [True, True]


def test_what_it_does_not_take():
    def body(group):
        run = Run(group)
        for wrong, words in ((5, "'group' is 5"), (None, "'group' is None")):
            with pytest.raises(yoke.TypeError, match=words):
                run.ddp.regroup(wrong)
        with pytest.raises(yoke.TypeError, match="object 1 is 'a text'"):
            run.ddp.regroup(group, run.optimizer, "a text")
        told = []
        for more in (run.optimizer, yoke.data.DistributedSampler(10, rank=group.rank, world_size=2)):  # a sampler has its own call
            unlike = group.split(0)
            try:
                run.ddp.regroup(unlike, run.optimizer, *[more] * group.rank)
                unlike.barrier()
            except yoke.Error as error:
                told.append(str(error))
        run.ddp.regroup(group.split(0), run.optimizer)
        run.steps(1)
        return told, run.told()
    for told, after in done(on_ranks(2, body)):
        assert len(told) == 2 and all("this rank gives 2 objects, but the rank whose states are taken gives 1" in each for each in told)


def test_the_state_of_a_compression_goes_through_a_group_of_one():
    compression = "powersgd:rank=1,start=2,rate=1"

    def body(group):
        run = Run(group, compression=compression)
        run.steps(5)
        before = run.ddp.comm_state()
        alone, again = group.split(group.rank), group.split(0)
        run.regroup(alone)
        kept = run.ddp.comm_state()
        fresh = Run(group.split(group.rank), compression=compression)
        with pytest.raises(yoke.ValueError, match="which this module does not have"):
            fresh.ddp.load_comm_state({"steps": 1, "tensors": {"q/0.weight": yoke.ones((7, 1))}})
        fresh.ddp.load_comm_state(before)
        run.steps(1)  # alone
        run.regroup(again)
        states = [before, kept, fresh.ddp.comm_state(), run.ddp.comm_state()]
        run.steps(1)
        return [(each["steps"], {name: one.tolist() for name, one in each["tensors"].items()}) for each in states]
    for before, *others in done(on_ranks(2, body)):
        assert before[0] == 5 and before[1] and all(each == before for each in others)


def test_that_steps_since_the_end_of_a_join_are_lost_is_told():
    def body(group):
        run = Run(group)
        smaller = None
        try:
            with group.join(run.optimizer):
                run.steps(2)
                if group.rank == 0:
                    run.steps(3)
                    group.abort("it is lost")
        except yoke.CancelledError:
            smaller = group.shrink(timeout=0.5) if group.rank else None
        if smaller is not None:
            run.regroup(smaller)
        return smaller is not None
    with pytest.warns(RuntimeWarning, match="was out of data in a join"):
        assert on_ranks(2, body) == [False, True]


def test_what_is_wrapped_anew_after_a_failure_leaves_the_old_one():
    def body(group):
        net = nn.Linear(2, 2, bias=False)
        old = yoke.DistributedDataParallel(net, group)
        group = group.shrink(timeout=5)
        new = yoke.DistributedDataParallel(net, group)
        del old
        new(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        return net.weight.grad.tolist()
    assert on_ranks(2, body) == [[[1.5, 1.5]] * 2] * 2
