"""A module alone in its group: backward is the plain backward, and counts if ranks come together later."""
import os
import threading

import numpy as np
import pytest

import yoke
from rank_scripts import start
from test_parallel import on_ranks
from test_parallel_regroup import done
from yoke import nn


class Training:
    def __init__(self, group):
        yoke.manual_seed(1)
        self.net = nn.Linear(3, 2)
        self.optimizer = yoke.optim.AdamW(self.net.parameters(), lr=0.1)
        self.ddp = yoke.DistributedDataParallel(self.net, group)

    def steps(self, count):
        for _ in range(count):
            self.ddp(yoke.full((2, 3), self.ddp.group.rank + 1.)).pow(2).sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def count(self):
        return int(self.optimizer.state_dict()["state"][0]["step"].item())

    def told(self):
        return [each.tolist() for each in self.net.parameters()], self.count()


@pytest.mark.parametrize("furthest", [0, 1])
def test_steps_that_were_made_alone_count(furthest):
    def body(group):
        run = Training(group)
        run.steps(2)
        alone, again = group.split(group.rank), group.split(0)
        run.ddp.regroup(alone, run.optimizer)
        run.steps(7 if group.rank == furthest else 3)
        before = run.told()
        run.ddp.regroup(again, run.optimizer)
        return before, run.told()
    results = done(on_ranks(2, body))
    assert results[furthest][0][1] == 9 and [each[1] for each in results] == [results[furthest][0]] * 2


def test_one_that_looks_at_a_loss_alone_is_not_further_than_one_with_more_steps():
    def body(group):
        run = Training(group.split(group.rank))
        run.steps(5 - group.rank)
        if group.rank == 1:
            with yoke.no_grad():
                run.ddp(yoke.ones((2, 3)))
        run.ddp.regroup(group, run.optimizer)
        return run.count()
    assert done(on_ranks(2, body)) == [5, 5]


def test_a_job_of_one_rank_takes_another_one_in():
    def body(group):
        run = Training(group.split(group.rank))
        run.steps(5 * group.rank + 1)
        before = run.told()
        run.ddp.regroup(group, run.optimizer)
        return before, run.told()
    first, second = done(on_ranks(2, body))
    assert first[1] == second[1] == second[0] and second[0][1] == 6


def test_what_is_added_up_in_no_sync_is_no_step():
    def body(group):
        run = Training(group.split(group.rank))
        if group.rank == 0:
            with run.ddp.no_sync():
                for _ in range(5):
                    run.ddp(yoke.ones((1, 3))).sum().backward()
        run.steps(1 + group.rank)
        run.ddp.regroup(group, run.optimizer)
        return run.count()
    assert done(on_ranks(2, body)) == [2, 2]


def test_an_optimizer_amid_its_step_is_not_furthest_where_it_is_alone():
    def body(group):
        net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        ddp = yoke.DistributedDataParallel(net, group.split(group.rank))
        halves = [yoke.optim.SGD(list(net.parameters())[at:at + 2], lr=0.1) for at in (0, 2)]
        ddp(yoke.full((2, 4), group.rank + 1.)).sum().backward()
        for each in halves[:1 + group.rank]:
            each.step()
        before = [each.tolist() for each in net.parameters()]
        ddp.regroup(group)
        return before, [each.tolist() for each in net.parameters()]
    first, second = done(on_ranks(2, body))
    assert first[1] == second[1] == second[0] != first[0]


def stepped_in_parts(parts, looks=None):
    """Returns the furthest rank. `parts` has, for each rank, the parts of the optimizer stepped after each backward, or None if the
    rank goes on in its group anew. `looks` is the rank that looks at a loss then.
    """
    def body(group):
        yoke.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        ddp = yoke.DistributedDataParallel(net, group.split(group.rank))
        halves = [yoke.optim.SGD(list(net.parameters())[at:at + 2], lr=0.1) for at in (0, 2)]
        for which in parts[group.rank]:
            if which is None:
                ddp.regroup(ddp.group)
                continue
            ddp(yoke.full((2, 4), group.rank + 1.)).sum().backward()
            for each in which:
                halves[each].step()
        before = [each.tolist() for each in net.parameters()]
        if group.rank == looks:
            with yoke.no_grad():
                ddp(yoke.ones((2, 4)))
        ddp.regroup(group)
        return before, [each.tolist() for each in net.parameters()]
    results = done(on_ranks(2, body))
    assert results[0][1] == results[1][1] and results[0][0] != results[1][0]
    return [each[0] for each in results].index(results[0][1])


@pytest.mark.parametrize("furthest", [0, 1])
@pytest.mark.parametrize("fewer, last", [(2 * [(1,)], [(1,)]), (2 * [(0,), (1,)], [(0,)]), ([(0,), (1,), (1,), (0,)], [(1,)]),
                                         ([(1,), ()], [(1,)]), (2 * [(1,)], [None, (1,)])],
                         ids=["some", "alternately", "unevenly", "after_some_without", "regrouped"])
def test_an_optimizer_that_steps_some_parameters_is_not_amid_its_step(fewer, last, furthest):
    more = fewer + last
    assert stepped_in_parts([more, fewer] if furthest == 0 else [fewer, more], looks=1 - furthest) == furthest


@pytest.mark.parametrize("halved", [0, 1])
def test_an_optimizer_amid_its_step_is_seen_by_what_it_wrote_before(halved):
    whole = 3 * [(0, 1)]
    assert stepped_in_parts([whole + [(0,)], whole] if halved == 0 else [whole, whole + [(0,)]]) == 1 - halved


def gradients(net, wrapped):
    for _ in range(2):
        wrapped(yoke.tensor(np.linspace(-1, 1, 12).astype("float32")).reshape(2, 6)).pow(2).mean().backward()
    return [each.grad.tolist() for each in net.parameters()]


def test_gradients_are_those_of_a_plain_backward():
    def net():
        yoke.manual_seed(3)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    plain, alone = net(), net()
    group, = yoke.comm.init_all(["cpu"], size=1)
    expected = gradients(plain, plain)
    assert gradients(alone, yoke.DistributedDataParallel(alone, group)) == expected


def test_threads_go_back_through_it_at_once():
    group, = yoke.comm.init_all(["cpu"], size=1)
    net = nn.Linear(3, 2)
    ddp = yoke.DistributedDataParallel(net, group)

    def work():
        for _ in range(50):
            ddp(yoke.ones((1, 3))).sum().backward()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert net.weight.grad.tolist() == [[150.] * 3] * 2


def test_another_group_takes_what_is_wrapped_alone_and_not_the_other_way_round():
    def body(group):
        net = nn.Linear(2, 1, bias=False)
        alone = yoke.DistributedDataParallel(net, group.split(group.rank))
        ddp = yoke.DistributedDataParallel(net, group)
        beside = yoke.DistributedDataParallel(net, group.split(group.rank))
        ddp(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        mean = net.weight.grad.tolist()
        net.zero_grad()
        del alone, beside
        ddp(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        return mean, net.weight.grad.tolist()
    assert done(on_ranks(2, body)) == [([[1.5, 1.5]],) * 2] * 2


def test_what_was_recorded_before_it_was_let_go_is_a_plain_backward():
    group, = yoke.comm.init_all(["cpu"], size=1)
    net = nn.Linear(2, 1)
    ddp = yoke.DistributedDataParallel(net, group)
    loss = ddp(yoke.ones((1, 2))).sum()
    del ddp
    loss.backward()
    assert net.weight.grad.tolist() == [[1., 1.]]


FORKED = """
from yoke import nn
net = nn.Linear(2, 1)
ddp = yoke.DistributedDataParallel(net, group)
child = os.fork()
if child == 0:
    for _ in range(2):
        net(yoke.ones((1, 2))).sum().backward()
    print("in the child", net.weight.grad.tolist(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
ddp(yoke.ones((1, 2))).sum().backward()
print(net.weight.grad.tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_a_plain_backward():
    outs, statuses, errors = start(FORKED, 1)
    assert outs == ["in the child [[2.0, 2.0]]\n[[1.0, 1.0]]\n"] and statuses == [0], (outs, errors)


def test_what_was_recorded_before_a_reducer_was_let_go_is_refused_where_another_is_alone():
    def body(group):
        net = nn.Linear(2, 1, bias=False)
        ddp = yoke.DistributedDataParallel(net, group)
        loss = ddp(yoke.ones((1, 2))).sum()
        del ddp
        alone = yoke.DistributedDataParallel(net, group.split(group.rank))
        beside = yoke.DistributedDataParallel(net, group.split(group.rank))
        for _ in range(3):
            with pytest.raises(yoke.StateError, match="was released after the forward"):
                loss.backward()
            assert net.weight.grad is None
            beside, alone = alone, None
        net(yoke.ones((1, 2))).sum().backward()
        return net.weight.grad.tolist()
    assert done(on_ranks(2, body)) == [[[1., 1.]]] * 2


@pytest.mark.parametrize("first", [0, 1])
def test_steps_count_again_when_others_over_the_same_module_have_gone(first):
    def body(group):
        run = Training(group.split(group.rank))
        beside = [yoke.DistributedDataParallel(run.net, group.split(group.rank)) for _ in range(2)]
        del beside[first]
        beside.clear()
        run.steps(5 * group.rank + 1)
        run.ddp.regroup(group, run.optimizer)
        return run.count()
    assert done(on_ranks(2, body)) == [6, 6]
