"""Collectives of NCCL in a process with several cards: values, groups, and refused calls."""
import gc
import itertools
import math

import pytest

import yoke
from nccl_cards import alone, card, four_cards, in_threads, init, nothing_is_left, ones, own, ramp, threads, together  # noqa: F401
from nccl_cases import DTYPES, Rank, check
from nccl_ranks import held_by_nccl

pytestmark = four_cards


# ---- Values ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_collective_gives_what_the_model_gives(size):
    groups = init(size)
    for dtype, count, strided in itertools.product(DTYPES, (0, 1, 6), (False, True)):
        ranks = [Rank(group.rank, size, own(group), dtype, count, strided) for group in groups]
        root = count % size
        for cases in zip(*[[*each.reductions(root), *each.passing(root)] for each in ranks], strict=True):
            together(groups, lambda group, cases=cases: cases[group.rank].call(group))
            for case in cases:
                check(case, (size, count, strided))


@pytest.mark.parametrize("dtype", [yoke.float32, yoke.float8_e4m3, yoke.bool], ids=str)
def test_calls_that_are_issued_together_give_the_same(dtype):
    groups = init(3)
    ranks = [Rank(group.rank, 3, own(group), dtype, 5, True) for group in groups]
    cases = [[*each.reductions(2), *each.passing(1), *each.messages()] for each in ranks]
    together(groups, lambda group: [case.call(group) for case in cases[group.rank]])
    for case in itertools.chain(*cases):
        check(case, "together")


def test_large_tensors_pass_whole():
    groups, count = init(2), 300_000
    t = [yoke.arange(count, dtype="int32", device=own(group)) * (group.rank + 1) for group in groups]
    together(groups, lambda group: group.all_reduce(t[group.rank]))
    assert all((each == yoke.arange(count, dtype="int32", device=each.device) * 3).all().item() for each in t)


FLOATS = [yoke.float64, yoke.float32, yoke.float16, yoke.bfloat16, yoke.float8_e4m3, yoke.float8_e5m2]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["min", "max"])
def test_min_and_max_are_nan_where_an_element_is(op, dtype):
    groups, nan = init(3), math.nan
    rows = [[nan, 1., -2., -0.5], [3., nan, 4., -1.], [0.5, 2., nan, -4.]]

    def made(group, times=1):
        return yoke.tensor(rows[group.rank] * times, device="cpu").to(dtype=dtype).to(own(group))

    everywhere, at_root, whole, part = [[made(group, times) for group in groups] for times in (1, 1, 3, 1)]
    together(groups, lambda group: group.all_reduce(everywhere[group.rank], op))
    together(groups, lambda group: group.reduce(at_root[group.rank], 1, op))
    together(groups, lambda group: group.reduce_scatter(part[group.rank], whole[group.rank], op))
    last = -4. if op == "min" else -0.5
    for t in (*everywhere, at_root[1], *part):
        found = t.tolist()
        assert [math.isnan(x) for x in found] == [True] * 3 + [False] and found[3] == last, (t.dtype, found)


@pytest.mark.parametrize("dtype, large", [(yoke.float16, 2048.), (yoke.bfloat16, 256.)], ids=str)
def test_reduce_dtype_rounds_a_sum_of_16_bit_floats_once(dtype, large):
    groups = init(3)

    def reduced(op, reduce_dtype):
        t = [yoke.full((3,), large if group.rank == 0 else 1., dtype=dtype, device=own(group)) for group in groups]
        together(groups, lambda group: group.all_reduce(t[group.rank], op, reduce_dtype=reduce_dtype))
        return [each.tolist() for each in t]

    assert reduced("sum", yoke.float32) == [[large + 2] * 3] * 3  # though large + 1 is no value of the dtype
    once = yoke.tensor([(large + 2) / 3], device="cpu").to(dtype=dtype).tolist() * 3
    assert reduced("avg", yoke.float32) == [once] * 3
    assert reduced("max", yoke.float32) == [[large] * 3] * 3
    by_nccl = reduced("sum", None)
    assert by_nccl[0] == by_nccl[1] == by_nccl[2] and abs(by_nccl[0][0] - large) <= 2


def test_parts_may_lie_in_the_whole():
    size = 3
    groups = init(size)
    whole = [ramp(group, 6) for group in groups]
    together(groups, lambda group: group.all_gather(whole[group.rank], whole[group.rank][2 * group.rank:2 * group.rank + 2]))
    assert [each.tolist() for each in whole] == [[0., 1., 12., 13., 24., 25.]] * size
    whole = [ramp(group, 6) for group in groups]
    together(groups, lambda group: group.reduce_scatter(whole[group.rank][2 * group.rank:2 * group.rank + 2], whole[group.rank]))
    assert [each.tolist()[2 * i:2 * i + 2] for i, each in enumerate(whole)] == [[30. + 6 * i, 33. + 6 * i] for i in range(size)]
    whole = [ramp(group, 6) for group in groups]
    together(groups, lambda group: group.all_to_all(whole[group.rank], whole[group.rank]))
    assert [each.tolist() for each in whole] == [[10. * r + 2 * i + j for r in range(size) for j in range(2)] for i in range(size)]
    whole = [ramp(group, 6) for group in groups]  # the output begins where the input does
    together(groups, lambda group: group.all_gather(whole[group.rank], whole[group.rank][:2]))
    assert [each.tolist() for each in whole] == [[0., 1., 10., 11., 20., 21.]] * size
    whole = [ramp(group, 6) for group in groups]
    together(groups, lambda group: group.reduce_scatter(whole[group.rank][1:3], whole[group.rank]))  # across two parts
    assert [each.tolist()[1:3] for each in whole] == [[30. + 6 * i, 33. + 6 * i] for i in range(size)]
    whole = [ramp(group, 6) for group in groups]
    together(groups, lambda group: group.gather(whole[group.rank] if group.rank == 1 else None, whole[group.rank][2:4], 1))
    assert whole[1].tolist() == [2., 3., 12., 13., 22., 23.] and whole[0].tolist() == ramp(groups[0], 6).tolist()


def test_tensors_of_host_and_card_take_turns_and_stand_in_one_scope():
    groups = init(2)
    on_host, there = [yoke.ones(5, device="cpu") for _ in groups], [ones(group, 5) for group in groups]
    for _ in range(3):
        together(groups, lambda group: group.all_reduce(on_host[group.rank]))
        together(groups, lambda group: group.all_reduce(there[group.rank]))
    together(groups, lambda group: (group.all_reduce(on_host[group.rank]), group.all_reduce(there[group.rank]), group.barrier()))
    assert [each.tolist() for each in on_host + there] == [[16.] * 5] * 4


def test_a_rank_alone_has_what_it_gives():
    group, = init(1)
    t, out = yoke.arange(4, dtype="float32", device=card(0)), yoke.zeros(4, device=card(0))
    group.all_reduce(t, "avg")  # a group of a single device needs no scope
    group.all_gather(out, t)
    assert out.tolist() == [0., 1., 2., 3.]


# ---- Memory of NCCL's, split and shrink -----------------------------------------------------------------------------

@pytest.mark.parametrize("windows", [True, False])
def test_memory_that_peers_reach_is_reduced_where_it_lies_and_outlives_its_group(monkeypatch, windows):
    if not windows:
        monkeypatch.setenv("FAKE_NCCL_NO_WINDOWS", "1")
    groups = init(2)

    def body(group):
        t = group.empty((3, 5), yoke.float32, own(group))
        t.fill_(group.rank + 1.)
        alone(lambda: group.all_reduce(t))
        return t

    t = in_threads(groups, body)
    assert [str(each.device) for each in t] == [card(0), card(1)] and held_by_nccl() > 2
    del groups
    gc.collect()
    assert [each.tolist() for each in t] == [[[3.] * 5] * 3] * 2


def test_parts_of_split_have_communicators_of_their_own():
    groups = init(4)
    parts = in_threads(groups, lambda group: group.split(group.rank % 2))
    assert [(part.rank, part.size) for part in parts] == [(0, 2), (0, 2), (1, 2), (1, 2)]
    t = [ramp(group) for group in groups]
    with yoke.comm.coalesce():
        for part, each in zip(parts, t):
            part.all_reduce(each)
    assert [each.tolist()[0] for each in t] == [20., 40., 20., 40.]
    together(groups, lambda group: group.all_reduce(t[group.rank]))
    assert [each.tolist()[0] for each in t] == [120.] * 4


def test_shrink_gives_a_group_of_those_that_call_it():
    groups = init(3)
    t = [ones(group) for group in groups]
    together(groups, lambda group: group.all_reduce(t[group.rank]))
    smaller = in_threads(groups[:2], lambda group: group.shrink(0.5))
    assert [(group.rank, group.size) for group in smaller] == [(0, 2), (1, 2)]
    together(smaller, lambda group: group.all_reduce(t[group.rank]))
    assert [each.tolist() for each in t] == [[6.] * 4, [6.] * 4, [3.] * 4]


def test_a_rank_that_gives_up_ends_the_calls_of_all():
    groups = init(3, timeout=10.)
    t = [ones(group) for group in groups]

    def body(group):
        if group.rank == 1:
            group.abort("enough")
        alone(lambda: group.all_reduce(t[group.rank]))
        return t[group.rank].tolist()

    found = in_threads(groups, body)
    assert all("CancelledError" in each and "enough" in each for each in found), found


# ---- Refused arguments ----------------------------------------------------------------------------------------------

def test_a_call_outside_of_a_scope_is_refused_and_the_groups_go_on():
    groups = init(2)
    t = [ones(group) for group in groups]
    with pytest.raises(yoke.StateError, match="all_reduce: the ranks of this group are devices of one process.*coalesce"):
        groups[0].all_reduce(t[0])
    together(groups, lambda group: group.all_reduce(t[group.rank]))
    assert [each.tolist() for each in t] == [[2.] * 4] * 2


@pytest.mark.parametrize("devices, told", [
    ([0, 1, 0], "cuda:0 twice"), (["cpu", 0], "cpu, whose ranks are threads"), ([0, "cpu"], "cpu, whose ranks are threads"),
    ([], "0 devices"), ([9], "cuda:9")])
def test_devices_that_cannot_be_ranks_are_refused(devices, told):
    with pytest.raises(yoke.Error, match=told):
        yoke.comm.init_all([card(each) if isinstance(each, int) else each for each in devices])


def test_a_tensor_of_another_card_is_refused_and_the_groups_go_on():
    groups = init(2)
    t = [ones(group) for group in groups]
    with pytest.raises(yoke.ValueError, match="the call is for cuda:2, but since its first collective this group uses cuda:0"):
        with yoke.comm.coalesce():
            groups[0].all_reduce(yoke.ones(4, device=card(2)))
    together(groups, lambda group: group.all_reduce(t[group.rank]))
    assert [each.tolist() for each in t] == [[2.] * 4] * 2
    with pytest.raises(yoke.ValueError, match="is on cuda:1, but 'out' is on cuda:0"):
        with yoke.comm.coalesce():
            groups[0].all_gather(yoke.ones(8, device=card(0)), t[1])


def test_a_capture_refuses_collectives_and_goes_on():
    group, = init(1)
    t, kept, graph = ones(group), ones(group), yoke.Graph(card(0))
    work = group.all_reduce(kept, async_op=True)
    with graph.capture():
        with pytest.raises(yoke.StateError, match="all_reduce: a graph is being captured"):
            group.all_reduce(t)
        with pytest.raises(yoke.StateError, match="a graph is being captured"):
            work.wait()
        out = t + 1
    work.wait()
    graph.replay()
    group.all_reduce(out)
    assert out.tolist() == [2.] * 4


def test_a_kind_that_a_group_uses_is_not_disabled():
    groups = init(2)
    with pytest.raises(yoke.StateError, match="cuda is in use: .*group"):
        yoke.disable("cuda")
    t = [ones(group) for group in groups]
    together(groups, lambda group: group.all_reduce(t[group.rank]))
