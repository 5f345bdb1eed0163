"""Ranks that may call ddp.regroup together: ranks of a common module; no rank may wrap the module instead. Ranks are threads."""
import pytest

import yoke
from test_parallel import on_ranks
from test_parallel_regroup import done, lost
from yoke import nn


def values(net):
    return [each.tolist() for each in net.parameters()]


def two_towers(group):
    """Returns two modules of the same shape with different values."""
    yoke.manual_seed(1)
    return [yoke.DistributedDataParallel(nn.Linear(2, 2), group) for _ in range(2)]


@pytest.mark.parametrize("orders", [((0, 1), (1, 0)), ((0,), (1,))])
def test_modules_of_one_shape_do_not_take_each_other_s_values(orders):
    def body(group):
        towers = two_towers(group)
        before = [values(each.module) for each in towers]
        smaller = lost(group, 2)
        if smaller is None:
            return None
        with pytest.raises(yoke.StateError) as told:
            for each in orders[smaller.rank]:
                towers[each].regroup(smaller)
        assert [values(each.module) for each in towers] == before
        for each in towers:  # the group is well
            each.regroup(smaller)
        sum(each(yoke.full((1, 2), smaller.rank + 1.)).sum() for each in towers).backward()
        return str(told.value), [each.module.weight.grad.tolist() for each in towers]
    first, second = done(on_ranks(3, body))
    assert first == second and first[1] == [[[1.5, 1.5]] * 2] * 2
    for words in "on rank 0 (", "module 1, whose first parameter is 'weight', and on rank 1 (", "module 2", "in the same order":
        assert words in first[0]


def test_modules_of_unlike_shapes_are_told_by_their_order_too():
    def body(group):
        nets = [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 3))]
        ddps = [yoke.DistributedDataParallel(each, group) for each in nets]
        part = group.split(0)
        with pytest.raises(yoke.StateError, match="module 1, whose first parameter is 'weight', and on rank 1 .* module 2, whose first parameter is '0.weight'"):
            ddps[group.rank].regroup(part)
    done(on_ranks(2, body))


def test_modules_keep_their_order_where_they_are_regrouped_in_their_own_group():
    def body(group):
        one, two = two_towers(group)
        one.regroup(group)
        two.regroup(group)
        part = group.split(0)
        one.regroup(part)
        two.regroup(part)
        return values(one.module), values(two.module)
    first, second = done(on_ranks(2, body))
    assert first == second and first[0] != first[1]


def test_one_module_that_was_regrouped_in_its_own_group_is_not_told_of_others(recwarn):
    def body(group):
        ddp = two_towers(group)[0]
        ddp.regroup(group)
        ddp.regroup(group.split(0))
    done(on_ranks(2, body))
    assert not [each for each in recwarn if "other modules" in str(each.message)]


def test_modules_that_go_on_in_unlike_groups_are_told_of_each_other(recwarn):
    def body(group):
        for ddp in two_towers(group):
            ddp.regroup(group.split(0))
    done(on_ranks(2, body))
    assert [each for each in recwarn if "other modules" in str(each.message)]


def test_ranks_of_unlike_groups_may_have_wrapped_it_at_unlike_places():
    def body(group):
        part = group.split(group.rank // 2)
        towers = two_towers(part)
        one = towers[1] if group.rank < 2 else towers[0]
        one.regroup(group)
        return values(one.module)
    results = done(on_ranks(4, body))
    assert results == results[:1] * 4


def test_who_wraps_is_told_that_others_regroup_and_what_to_do():
    def body(group):
        yoke.manual_seed(group.rank)
        net = nn.Linear(3, 2)
        part = group.split(group.rank // 2)
        with pytest.raises(yoke.StateError) as told:
            if group.rank == 2:
                yoke.DistributedDataParallel(net, group)
            else:
                ddp = yoke.DistributedDataParallel(net, part)
                ddp.regroup(group)
        if group.rank == 2:
            ddp = yoke.DistributedDataParallel(net, yoke.comm.init_all(["cpu"], size=1)[0])
        ddp.regroup(group)  # as the error says
        ddp(yoke.full((1, 3), group.rank + 1.)).sum().backward()
        return str(told.value), values(net), net.weight.grad.tolist()
    results = done(on_ranks(3, body))
    assert results == results[:1] * 3 and results[0][2] == [[2.] * 3] * 2
    for words in "rank 0 (", "regroups a module, but rank 2 (", "wraps one", "wrap its module in a group of size 1", "then regroup as":
        assert words in results[0][0]


@pytest.mark.parametrize("with_live", [(0, 1, 2), (0, 2)])
def test_leaves_of_another_wrapper_that_lives_stay_its_own(with_live):
    def body(group):
        yoke.manual_seed(1)
        net = nn.Linear(1, 1, bias=False)
        one = yoke.DistributedDataParallel(net, group.split(group.rank))
        other = yoke.DistributedDataParallel(net, group.split(0 if group.rank in with_live else 1))
        part = group.split(0 if group.rank < 2 else 1)

        def mean():
            other(yoke.full((1, 1), 10. ** group.rank)).sum().backward()
            grad = net.weight.grad.item()
            net.zero_grad()
            return grad
        before, told = mean(), None
        try:
            one.regroup(part)
        except yoke.StateError as error:
            told = str(error)
        kept = mean()
        del other
        one.regroup(part)  # the group is well
        one(yoke.full((1, 1), 10. ** group.rank)).sum().backward()
        return before, kept, told, net.weight.grad.item()
    results = done(on_ranks(3, body))
    for rank, (before, kept, told, after) in enumerate(results):
        assert before == kept == (sum(10. ** each for each in with_live) / len(with_live) if rank in with_live else 10.)
        assert after == (5.5 if rank < 2 else 100.)
        if rank < 2:
            assert "regroup: the parameter 'weight' is already wrapped" in told and (rank in with_live or "the call of rank 0 (" in told), told
        else:
            assert told is None
