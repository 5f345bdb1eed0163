"""group.join(): ranks with unlike numbers of batches. Ranks are threads, and processes."""
import contextlib
import time

import numpy as np
import pytest

import yoke
from yoke import nn
from rank_scripts import start
from test_parallel import on_ranks


def batches(rank, count):
    numbers = np.random.default_rng(rank)
    return [yoke.tensor(numbers.normal(size=(3, 6))) for _ in range(count)]


def net(norm=False):
    yoke.manual_seed(5)
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)]
    return nn.Sequential(*(layers[:1] + [nn.BatchNorm1d(8)] * norm + layers[1:])).to(yoke.float64)


def train(ddp, model, xs, learning_rate=0.05):
    for x in xs:
        ddp(x).pow(2).mean().backward()
        with yoke.no_grad():
            for each in model.parameters():
                each.sub_(each.grad * learning_rate)
        model.zero_grad()


def values(model):
    return [each.tolist() for each in (*model.parameters(), *model.buffers())]


def joined(group, counts, norm=False, **options):
    model = net(norm)
    ddp = yoke.DistributedDataParallel(model, group, bucket_mb=0.0002, **options)
    with group.join():
        train(ddp, model, batches(group.rank, counts[group.rank]))
    return values(model)


def alone(counts):
    """Returns the result of a single process that goes through the batches of all ranks with batches left."""
    model = net()
    data = [batches(rank, count) for rank, count in enumerate(counts)]
    for step in range(max(counts)):
        xs = [each[step] for each in data if step < len(each)]
        train(lambda x: model(x), model, [yoke.cat(xs)])
    return values(model)


@pytest.mark.parametrize("counts", [(3,), (2, 5), (0, 4), (4, 1, 2), (1, 3, 0, 3)])
def test_ranks_with_unlike_counts_have_what_one_process_has(counts):
    first, *others = on_ranks(len(counts), lambda group: joined(group, counts))
    assert all(each == first for each in others)
    for found, expected in zip(first, alone(counts)):
        assert np.abs(np.array(found) - np.array(expected)).max() < 1e-12


@pytest.mark.parametrize("counts", [(1, 4, 3), (0, 2, 4)])
@pytest.mark.parametrize("compression", [None, "bf16", "powersgd:rank=1,start=2,rate=1", "a function"])
def test_all_end_alike_with_buffers_and_whatever_the_way(counts, compression):
    def hook(bucket, group):
        return group.all_reduce(bucket.tensor, op="avg", async_op=True)
    first, *others = on_ranks(len(counts), lambda group: joined(group, counts, norm=True, compression=hook if compression == "a function" else compression))
    assert all(each == first for each in others)
    assert first[-1] == max(counts), "the count of batches that the last rank's norm has seen"


@pytest.mark.parametrize("counts", [(1, 2), (0, 3), (2, 0, 1)])
def test_epochs_of_joins_are_those_of_one_process(counts):
    def epochs(forward, model, xs_of, join):
        optimizer = yoke.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        left = []
        for _ in range(3):
            with join(optimizer):
                for xs in xs_of:
                    forward(xs).pow(2).mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
            left.append([each.grad for each in model.parameters()])
        return left, values(model)

    def run(group):
        model = net()
        ddp = yoke.DistributedDataParallel(model, group, bucket_mb=0.0002)
        return epochs(ddp, model, batches(group.rank, counts[group.rank]), group.join)
    data = [batches(rank, count) for rank, count in enumerate(counts)]
    whole = [yoke.cat([each[step] for each in data if step < len(each)]) for step in range(max(counts))]
    model = net()
    _, expected = epochs(model, model, whole, contextlib.nullcontext)
    for left, found in on_ranks(len(counts), run):
        assert left == [[None] * 4] * 3
        assert all(np.abs(np.array(a) - np.array(b)).max() < 1e-12 for a, b in zip(found, expected))


def test_all_have_the_gradients_of_one_that_came_last():
    class Two(nn.Module):
        def __init__(self):
            self.first, self.late = nn.Parameter(yoke.ones(1)), nn.Parameter(yoke.ones(1))

        def forward(self, x, is_late):
            return (x * self.first + (x * self.late if is_late else 0)).sum()

    def run(group):
        model = Two()
        ddp = yoke.DistributedDataParallel(model, group, bucket_mb=0.0002)
        with group.join():
            for step in range(1 + 2 * group.rank):
                model.zero_grad()
                ddp(yoke.full((1,), 10. ** step + group.rank), step > 0).backward()
        ended = [each.grad and each.grad.item() for each in model.parameters()]
        ddp(yoke.ones(1), False).backward()
        return ended, model.first.grad.item()
    assert on_ranks(2, run) == [([101., 101.], 102.)] * 2


def test_what_is_added_up_over_a_join_is_alike_on_all():
    def run(group):
        layer = nn.Linear(1, 1, bias=False)
        ddp = yoke.DistributedDataParallel(layer, group)
        seen = []
        for _ in range(2):
            with group.join():
                for step in range(3 - group.rank):
                    ddp(yoke.full((1, 1), 10. ** step * (group.rank + 1))).sum().backward()
            seen.append(layer.weight.grad.item())
        return seen
    assert on_ranks(3, run) == [[2 + 15 + 100., 2 * (2 + 15 + 100.)]] * 3


def test_states_of_those_that_came_last_are_handed_on():
    def run(group):
        model = net()
        ddp = yoke.DistributedDataParallel(model, group)
        optimizer = yoke.optim.AdamW(model.parameters(), lr=0.05)
        with pytest.raises(yoke.TypeError, match=r"join\(\): object 1 is 5"):
            with group.join(optimizer, 5):
                pass

        def go_on(count):
            for x in batches(group.rank, count):
                ddp(x).pow(2).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        with group.join(optimizer):
            go_on([1, 4, 3][group.rank])
        steps = {each["step"].item() for each in optimizer.state_dict()["state"].values()}
        go_on(3)
        return steps, values(model)
    first, *others = on_ranks(3, run)
    assert first[0] == {4.} and all(each == first for each in others)


def test_weights_count_among_those_that_have_data():
    def run(group):
        layer = nn.Linear(1, 1, bias=False)
        ddp = yoke.DistributedDataParallel(layer, group)
        seen = []
        with group.join():
            for step in range(3 - group.rank):
                ddp.set_weight(group.rank + 1)
                ddp(yoke.full((1, 1), float(10 ** group.rank))).sum().backward()
                seen.append(round(layer.weight.grad.item(), 4))
                layer.zero_grad()
        return seen
    assert on_ranks(3, run) == [[53.5, 7., 1.], [53.5, 7.], [53.5]]


def test_a_join_comes_after_another_and_training_without_one_goes_on():
    def run(group):
        model = net()
        ddp = yoke.DistributedDataParallel(model, group)
        for counts in (1, 3), (2, 0):
            with group.join():
                train(ddp, model, batches(group.rank, counts[group.rank]))
        train(ddp, model, batches(group.rank, 2))
        return values(model)
    first, second = on_ranks(2, run)
    assert first == second


def test_no_sync_adds_up_within():
    def run(group):
        layer = nn.Linear(2, 1, bias=False)
        ddp = yoke.DistributedDataParallel(layer, group)
        x = yoke.full((1, 2), float(group.rank + 1))
        seen = []
        with group.join():
            for _ in range(1 + group.rank):
                with ddp.no_sync():
                    ddp(x).sum().backward()
                ddp(x).sum().backward()
                seen.append(layer.weight.grad.tolist())
                layer.zero_grad()
        return seen
    assert on_ranks(2, run) == [[[[3., 3.]]], [[[3., 3.]], [[4., 4.]]]]


def told(group, body):
    """Returns the error of `body`, after a use of the module alone."""
    layer = nn.Linear(2, 1, bias=False)
    ddp = yoke.DistributedDataParallel(layer, group)
    group.monitored_barrier(30.)  # no rank fails before all ranks are here
    with pytest.raises((yoke.Error, KeyError)) as caught:
        body(layer, ddp)
        ddp(yoke.ones((1, 2)))  # the group has ended
    with pytest.raises(yoke.Error):
        ddp(yoke.ones((1, 2)))
    layer.zero_grad()
    layer(yoke.ones((1, 2))).sum().backward()
    assert layer.weight.grad.tolist() == [[1., 1.]]
    return caught.value


@pytest.mark.parametrize("is_out", [False, True])
def test_a_rank_that_is_in_none_is_told_on_all(is_out):
    def run(group):
        def body(layer, ddp):
            if group.rank == 1:
                with group.join():
                    if not is_out:
                        ddp(yoke.ones((1, 2))).sum().backward()
            else:
                ddp(yoke.ones((1, 2))).sum().backward()
        return told(group, body)
    for error in on_ranks(3, run):
        words = ("rank 1 (host", "has ended its join" if is_out else "is in a join", "rank 0 (host", "is not in a join")
        assert isinstance(error, (yoke.StateError, yoke.CancelledError)) and all(each in str(error) for each in words), error


def test_what_a_block_raises_ends_the_group_with_its_reason():
    def run(group):
        def body(layer, ddp):
            with group.join():
                if group.rank == 2:
                    raise KeyError("no such batch")
                ddp(yoke.ones((1, 2))).sum().backward()
        return told(group, body)
    errors = on_ranks(3, run)
    assert isinstance(errors[2], KeyError)
    assert all(isinstance(each, yoke.CancelledError) and "no such batch" in str(each) and "rank 2 (host" in str(each) for each in errors[:2]), errors


def test_gradients_that_no_sync_has_left_are_told_on_all():
    def run(group):
        def body(layer, ddp):
            with group.join():
                if group.rank == 0:
                    with ddp.no_sync():
                        ddp(yoke.ones((1, 2))).sum().backward()
        return told(group, body)
    for error in on_ranks(2, run):
        assert "added up in no_sync, which no backward has reduced" in str(error), error


def test_all_ranks_out_of_data_is_an_error_on_all_and_the_group_goes_on():
    def run(group):
        model = net()
        ddp = yoke.DistributedDataParallel(model, group)
        with pytest.raises(yoke.StateError, match="all 2 ranks were out of data"):
            with group.join():
                pass
        train(ddp, model, batches(group.rank, 1))
        return values(model)
    first, second = on_ranks(2, run)
    assert first == second


def test_where_there_is_nothing_to_join():
    def run(group):
        with pytest.raises(yoke.StateError, match="this group of 2 ranks has no DistributedDataParallel"):
            with group.join():
                pass
        ddp = yoke.DistributedDataParallel(nn.Linear(1, 1), group)
        with pytest.raises(yoke.StateError, match="not in a join of this group"):
            group._core.join_end(None)
        with pytest.raises(yoke.StateError, match="in a no_sync"):
            with ddp.no_sync(), group.join():
                pass
        other = yoke.DistributedDataParallel(nn.Linear(1, 1), group)
        with pytest.raises(yoke.StateError, match="gradients of 2 modules"):
            with group.join():
                pass
        del other
        with group.join():
            ddp(yoke.ones((1, 1))).sum().backward()
            with pytest.raises(yoke.StateError, match="already in a join of this group"):
                group._core.join_begin()
        return True
    assert on_ranks(2, run) == [True, True]


def test_a_rank_that_is_lost_amid_a_join_is_told_to_those_that_answer_and_all_go_on():
    def run(group):
        model = net()
        ddp = yoke.DistributedDataParallel(model, group)
        with pytest.raises((yoke.CancelledError, KeyError)) as caught:
            with group.join():
                train(ddp, model, batches(group.rank, [1, 3, 3][group.rank]))
                if group.rank == 2:
                    time.sleep(0.1)  # the other ranks have come as far
                    raise KeyError("no such batch")
                train(ddp, model, batches(group.rank, 9 * group.rank))
        if group.rank == 2:
            return None
        assert "no such batch" in str(caught.value), caught.value
        before = values(model)
        smaller = group.shrink(timeout=0.5)
        ddp.regroup(smaller)
        furthest.append((group.rank, before, values(model)))
        with smaller.join():
            train(ddp, model, batches(group.rank, 2 + group.rank))
        return values(model)
    furthest = []
    first, second, _ = on_ranks(3, run)
    assert isinstance(first, list) and first == second, first
    (_, out, taken), (_, before, kept) = sorted(furthest)
    assert taken == kept == before != out, "rank 0 was out, and two steps behind"


def test_another_call_meets_the_answers_of_those_that_are_out():
    def run(group):
        layer = nn.Linear(2, 1)
        ddp = yoke.DistributedDataParallel(layer, group)
        with pytest.raises(yoke.CollectiveError) as caught:
            with group.join():
                ddp(yoke.ones((1, 2))).sum().backward()
                if group.rank == 1:
                    group.all_reduce(yoke.ones(3))
        return str(caught.value)
    for told in on_ranks(2, run):
        assert isinstance(told, str) and "all_reduce of 3 float32" in told and "rank 0 (host" in told, told


def test_unlike_objects_are_told_on_all():
    def body(group):
        layer = yoke.nn.Linear(2, 1)
        ddp = yoke.DistributedDataParallel(layer, group)
        optimizer = yoke.optim.SGD(layer.parameters(), lr=0.1, momentum=0.5)
        with pytest.raises((yoke.ValueError, yoke.CancelledError)) as caught:
            with group.join(*[optimizer] * group.rank):
                ddp(yoke.ones((1, 2))).sum().backward()
            group.barrier()
        return str(caught.value)
    told = on_ranks(2, body)
    assert all("this rank gives" in each and "give the same objects on all ranks" in each for each in told), told


def test_a_measured_step_that_raises_is_told_on_all():
    def body(group):
        with pytest.raises((ZeroDivisionError, yoke.CancelledError)) as caught:
            yoke.comm.measure_shares(lambda: 1 / (1 - group.rank), group)
        return str(caught.value)
    told = on_ranks(2, body)
    assert all("division by zero" in each for each in told), told


def test_a_failed_join_names_the_line_of_the_script():
    outs, statuses, errors = start("""
ddp = yoke.DistributedDataParallel(yoke.nn.Linear(2, 1), group)
def joined():
    with group.join():
        ddp(yoke.ones(1, 2)).sum().backward()
        if rank == 1: os._exit(0)
told(joined)
""", 2)
    assert statuses == [0, 0] and " at <string>:" in outs[0] and "(joined)" in outs[0] and "contextlib" not in outs[0], (outs, errors)


def test_what_no_sync_has_added_up_may_be_dropped_before_the_end():
    def body(group):
        model = net()
        ddp = yoke.DistributedDataParallel(model, group)
        with group.join():
            for x in batches(group.rank, 2):
                train(ddp, model, [x])
            with ddp.no_sync():
                ddp(x).sum().backward()
            model.zero_grad()
        return values(model)
    first, second = on_ranks(2, body)
    assert first == second
