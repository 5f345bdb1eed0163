"""DistributedSampler: which examples each rank takes, padded, dropped, dealt by shares, and resumed by other ranks."""
import pytest

import yoke
from test_parallel import on_ranks
from test_parallel_regroup import done
from yoke.data import DistributedSampler


def dealt(n, size, epoch=0, **options):
    samplers = [DistributedSampler(n, rank=rank, world_size=size, **options) for rank in range(size)]
    for each in samplers:
        each.set_epoch(epoch)
    passes = [list(each) for each in samplers]
    assert [len(each) for each in samplers] == [len(each) for each in passes]
    return passes


@pytest.mark.parametrize("n, size", [(10, 4), (11, 2), (3, 8), (1, 1), (0, 3)])
def test_orders_that_are_not_shuffled_are_pytorchs(n, size):
    padded = -(-n // size) * size
    order = [i % n for i in range(padded)] if n else []
    assert dealt(n, size, shuffle=False) == [order[rank::size] for rank in range(size)]
    whole = n // size * size
    assert dealt(n, size, shuffle=False, drop_last=True) == [list(range(whole))[rank::size] for rank in range(size)]
    assert dealt(n, size, shuffle=False, pad=False) == [list(range(n))[rank::size] for rank in range(size)]


def test_epochs_and_seeds_have_orders_of_their_own_alike_on_all_ranks():
    def order(**options):
        passes = dealt(60, 3, **options)
        return [index for step in zip(*passes) for index in step]
    orders = [order(epoch=0), order(epoch=1), order(epoch=0, seed=1)]
    assert all(sorted(each) == list(range(60)) for each in orders) and len({tuple(each) for each in orders}) == 3
    assert order(epoch=1) == orders[1] and orders[0] != list(range(60))


@pytest.mark.parametrize("before, after", [(2, 3), (4, 1), (3, 3)])
def test_a_state_goes_on_with_other_ranks_without_loss_or_repeat(before, after):
    seen, state = [], None
    for rank in range(before):
        sampler = DistributedSampler(101, rank=rank, world_size=before, pad=False)
        sampler.set_epoch(2)
        taken = iter(sampler)
        seen += [next(taken) for _ in range(7)]
        state = sampler.state_dict()
        assert state == {"epoch": 2, "consumed": 7 * before}
    for rank in range(after):
        sampler = DistributedSampler(101, rank=rank, world_size=after, pad=False)
        sampler.load_state_dict(state)
        sampler.set_epoch(2)
        seen += list(sampler)
        assert sampler.state_dict() == {"epoch": 2, "consumed": 101}
        sampler.set_epoch(3)
        assert len(sampler) >= 101 // after
    assert sorted(seen) == list(range(101))


def test_shares_deal_each_step_in_their_parts():
    samplers = [iter(DistributedSampler(100, rank=rank, world_size=2, shuffle=False, shares=[0.75, 0.25])) for rank in range(2)]
    for step in range(5):
        taken = [next(samplers[0]) for _ in range(15)] + [next(samplers[1]) for _ in range(5)]
        assert sorted(taken) == list(range(20 * step, 20 * step + 20))


def test_the_rank_is_that_of_the_default_group():
    assert list(DistributedSampler(3, shuffle=False)) == [0, 1, 2]


@pytest.mark.parametrize("arguments, error, words", [
    ({"n": -1}, yoke.ValueError, "'n' is -1"), ({"n": 1.5}, yoke.TypeError, "'n' is 1.5"), ({"n": 3, "rank": 2, "world_size": 2}, yoke.ValueError, "'rank' is 2 and 'world_size' is 2"),
    ({"n": 3, "rank": 0}, yoke.ValueError, "'world_size' is None"), ({"n": 3, "rank": 0, "world_size": 2, "shares": [1.]}, yoke.ValueError, "1 numbers for 2"),
    ({"n": 3, "rank": 0, "world_size": 2, "shares": [0.5, 0.6]}, yoke.ValueError, "the sum 1.1"),
    ({"n": 2**63 - 1}, yoke.ValueError, "'n' is 9223372036854775807"), ({"n": 2**63}, yoke.ValueError, "'n' is 9223372036854775808"),
    ({"n": 3, "seed": 2**63}, yoke.ValueError, "'seed' is 9223372036854775808"), ({"n": 3, "rank": 2**40, "world_size": 1}, yoke.ValueError, "'rank' is 1099511627776 and 'world_size' is 1"),
    ({"n": 3, "rank": 0, "world_size": 2, "shares": "ab"}, yoke.TypeError, "'shares' is 'ab'"), ({"n": 3, "rank": 0, "world_size": 1, "shares": [[1]]}, yoke.TypeError, "'shares' is of type list"),
    ({"n": 3, "rank": 0, "world_size": 1, "shares": 1.}, yoke.TypeError, "'shares' is 1.0"),
    ({"n": 3, "rank": 0, "world_size": 1, "shares": [1.], "drop_last": True}, yoke.ValueError, "'drop_last' and 'shares'")])
def test_wrong_arguments_are_refused(arguments, error, words):
    with pytest.raises(error, match=words.replace(".", r"\.")):
        DistributedSampler(**arguments)


def test_states_that_are_none_are_refused():
    sampler = DistributedSampler(5, rank=0, world_size=1)
    for wrong, words in (({"epoch": 0, "consumed": 6}, "the data set has 5"), ({"epoch": 0}, "'consumed'"), (None, "'state_dict' is None")):
        with pytest.raises(yoke.ValueError, match=words):
            sampler.load_state_dict(wrong)


def test_epochs_that_are_none_are_refused():
    sampler = DistributedSampler(5, rank=0, world_size=1)
    for wrong in (-1, 1.5, 2**63):
        with pytest.raises(yoke.ValueError, match=f"set_epoch.*'epoch' is {wrong}"):
            sampler.set_epoch(wrong)
    with pytest.raises(yoke.TypeError, match="set_epoch.*'epoch' is 'a'"):
        sampler.set_epoch("a")
    for wrong in ({"epoch": "a", "consumed": 0}, {"epoch": 0, "consumed": None}):
        with pytest.raises(yoke.TypeError, match="load_state_dict"):
            sampler.load_state_dict(wrong)


def test_a_pass_that_was_left_for_another_one_says_so():
    def begun(count=2):
        sampler = DistributedSampler(8, rank=0, world_size=1, shuffle=False)
        taken = iter(sampler)
        assert [next(taken) for _ in range(count)] == list(range(count))
        return sampler, taken
    for leave in (list, lambda s: next(iter(s)), lambda s: s.set_epoch(1), lambda s: s.load_state_dict({"epoch": 0, "consumed": 4})):
        sampler, taken = begun()
        leave(sampler)
        with pytest.raises(yoke.StateError, match="before this pass ended"):
            next(taken)
    sampler, taken = begun(8)
    assert next(taken, None) is None and list(sampler) == list(range(8)) and next(taken, None) is None
    sampler, taken = begun()
    sampler.set_epoch(0)  # sets the current epoch again
    assert list(taken) == list(range(2, 8))


@pytest.mark.parametrize("n, size, options", [(3, 8, {"drop_last": True}), (0, 3, {}), (2, 4, {"pad": False})])
def test_a_pass_without_examples_comes_to_its_end_too(n, size, options):
    sampler = DistributedSampler(n, rank=size - 1, world_size=size, **options)
    assert sampler.state_dict() == {"epoch": 0, "consumed": 0}
    assert list(sampler) == [] and sampler.state_dict() == {"epoch": 0, "consumed": n}


def test_ranks_that_regroup_apart_go_on_from_the_furthest():
    def body(group):
        sampler = DistributedSampler(60, rank=group.rank, world_size=3, pad=False, shuffle=False)
        sampler.set_epoch(4)
        taken = iter(sampler)
        seen = [next(taken) for _ in range(10 + (group.rank == 1))]
        if group.rank < 2:
            sampler.regroup(group.split(0))
        else:
            group.split(None)
            return [], seen
        assert sampler.state_dict() == {"epoch": 4, "consumed": 33}
        return list(sampler), seen
    passes = done(on_ranks(3, body))
    rest = sorted(index for one, _ in passes for index in one)
    assert rest == list(range(33, 60))


def test_ranks_that_regroup_have_one_data_set():
    with pytest.raises(yoke.TypeError, match=r"regroup\(\): argument 'group' is None; it must be a yoke.comm.Group"):
        DistributedSampler(60, rank=0, world_size=1).regroup(None)

    def body(group):
        sampler = DistributedSampler(60 + 40 * group.rank, rank=group.rank, world_size=2)
        with pytest.raises(yoke.ValueError, match="60 examples on rank 0 and 100 on rank 1"):
            sampler.regroup(group)
    done(on_ranks(2, body))
