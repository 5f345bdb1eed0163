"""DistributedDataParallel: gradients of all ranks equal a single process's gradients on the whole batch. Ranks are threads, and
processes.
"""
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import yoke
from yoke import nn
from rank_scripts import start

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")


class Net(nn.Module):
    """A shared layer, used twice; a layer used by some ranks, and a layer used by no rank."""

    def __init__(self, dtype=yoke.float64):
        self.first, self.shared, self.some, self.never = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)
        self.to(dtype)

    def forward(self, x, some):
        x = yoke.tanh(self.first(x))
        x = yoke.tanh(self.shared(self.shared(x)))
        if some:
            x = yoke.tanh(self.some(x))
        return self.last(x)


def net(dtype=yoke.float64, seed=3):
    yoke.manual_seed(seed)
    return Net(dtype)


def batch(rank, rows, dtype="float64"):
    numbers = np.random.default_rng(rank)
    return yoke.tensor(numbers.normal(size=(rows, 6)).astype(dtype)), yoke.tensor(numbers.normal(size=(rows, 3)).astype(dtype))


def on_ranks(size, body, groups=None):
    """Returns the results of body(group) for each rank, which is a thread."""
    groups, results = groups or yoke.comm.init_all(["cpu"], size=size), [None] * size

    def run(rank):
        try:
            results[rank] = body(groups[rank])
        except BaseException as error:
            results[rank] = error
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def values(module):
    return {name: None if each.grad is None else np.array(each.grad.tolist()) for name, each in module.named_parameters()}


def summed_loss(model, x, y, some):
    return ((model(x, some) - y) ** 2).sum()


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_gradients_are_those_of_one_process_on_all_batches(size, dtype, tolerance):
    rows = [3 + 2 * rank for rank in range(size)]
    some = [rank == 1 for rank in range(size)]
    whole = net(getattr(yoke, dtype))
    for rank in range(size):
        (summed_loss(whole, *batch(rank, rows[rank], dtype), some[rank]) / sum(rows)).backward()
    expected = values(whole)

    def train(group):
        model = net(getattr(yoke, dtype), seed=group.rank)  # all ranks take rank 0's values
        model.load_state_dict(net(getattr(yoke, dtype)).state_dict())
        ddp = yoke.DistributedDataParallel(model, group, bucket_mb=0.0005)
        found = []
        for step in range(3):
            ddp.set_weight(rows[group.rank])
            x, y = batch(group.rank, rows[group.rank], dtype)
            (summed_loss(ddp, x, y, some[group.rank]) / rows[group.rank]).backward()
            found.append(values(model))
            model.zero_grad()
        return found

    for found in on_ranks(size, train):
        for step in found:
            for name, grad in step.items():
                want = expected[name]
                assert (grad is None) == (want is None), name
                if want is not None:
                    assert np.abs(grad - want).max() <= tolerance * max(1, np.abs(want).max()), name


def test_values_of_rank_0_are_those_of_all_and_buffers_too():
    def run(group):
        yoke.manual_seed(group.rank)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        ddp = yoke.DistributedDataParallel(model, group)
        ddp(yoke.ones((3, 4)) * (group.rank + 1) + yoke.rand((3, 4))).sum().backward()
        return [each.tolist() for each in (*model.parameters(), *model.buffers())]
    first, *others = on_ranks(3, run)
    assert all(each == first for each in others)


def test_no_sync_adds_up_here_and_the_next_backward_reduces_the_sum():
    def run(group):
        layer = nn.Linear(2, 1, bias=False)
        ddp = yoke.DistributedDataParallel(layer, group)
        x = yoke.full((1, 2), float(group.rank + 1))
        with ddp.no_sync():
            for _ in range(3):
                ddp(x).sum().backward()
        alone = layer.weight.grad.tolist()
        ddp(x).sum().backward()
        return alone, layer.weight.grad.tolist()
    for rank, (alone, together) in enumerate(on_ranks(2, run)):
        assert alone == [[3. * (rank + 1)] * 2] and together == [[6., 6.]]


def test_a_state_of_a_compression_goes_on_with_the_same_bits():
    def run(group):
        def model():
            yoke.manual_seed(1)
            return nn.Linear(40, 30, bias=True)
        kind = "powersgd:rank=2,start=2"

        def steps(ddp, layer, which):
            for step in which:
                yoke.manual_seed(100 * step + group.rank)
                layer.zero_grad()
                ddp(yoke.randn((5, 40))).pow(2).sum().backward()
            return layer.weight.grad.tolist()
        whole, before, after = model(), model(), model()
        expected = steps(yoke.DistributedDataParallel(whole, group, compression=kind), whole, range(6))
        first = yoke.DistributedDataParallel(before, group, compression=kind)
        steps(first, before, range(4))
        second = yoke.DistributedDataParallel(after, group, compression=kind)
        second.load_comm_state(first.comm_state())
        return steps(second, after, range(4, 6)) == expected
    assert on_ranks(2, run) == [True, True]


@pytest.mark.parametrize("way", ["work", "tensor", "none"])
def test_a_function_reduces_in_its_own_way(way):
    seen = []

    def hook(bucket, group):
        seen.append((bucket.index, bucket.is_last))
        if way == "work":
            return group.all_reduce(bucket.tensor, op="max", async_op=True)
        other = bucket.tensor.clone()
        group.all_reduce(other, op="max")
        if way == "tensor":
            return other
        bucket.tensor.copy_(other)

    def run(group):
        layer = nn.Linear(2, 1, bias=False)
        ddp = yoke.DistributedDataParallel(layer, group, compression=hook)
        ddp(yoke.full((1, 2), float(group.rank + 1))).sum().backward()
        return layer.weight.grad.tolist()
    assert on_ranks(2, run) == [[[2., 2.]]] * 2 and seen == [(0, True)] * 2


def test_a_function_that_holds_what_it_reduces_for_is_collected_with_it():
    class Trainer:
        def __init__(self, group):
            self.net = nn.Linear(2, 1)
            self.ddp = yoke.DistributedDataParallel(self.net, group, compression=self.reduce)

        def reduce(self, bucket, group):
            assert self.ddp.group is group
            return group.all_reduce(bucket.tensor, op="avg", async_op=True)

    group, = yoke.comm.init_all(["cpu"], size=1)
    trainer = Trainer(group)
    trainer.ddp(yoke.ones((1, 2))).sum().backward()
    net = weakref.ref(trainer.net)
    del trainer
    gc.collect()
    assert net() is None


def test_a_function_that_gives_another_shape_or_raises_fails_on_all_ranks():
    for hook, words in ((lambda bucket, group: bucket.tensor[:1], "float32 [1] for a bucket of"), (lambda bucket, group: 1 / 0, "ZeroDivisionError"),
                        (lambda bucket, group: 7, "a Work")):
        def run(group):
            layer = nn.Linear(2, 1)
            ddp = yoke.DistributedDataParallel(layer, group, compression=hook if group.rank else (lambda bucket, g: g.all_reduce(bucket.tensor, async_op=True)))
            group.monitored_barrier(30.)  # no rank fails before all ranks are here
            try:
                ddp(yoke.ones((1, 2))).sum().backward()
            except yoke.Error as error:
                layer.zero_grad()
                layer(yoke.ones((1, 2))).sum().backward()  # alone
                assert layer.weight.grad.tolist() == [[1., 1.]]
                with pytest.raises(yoke.CancelledError):
                    ddp(yoke.ones((1, 2)))
                return str(error)
        for told in on_ranks(2, run):
            assert isinstance(told, str) and words in told, told


def test_values_that_were_unlike_are_told_of_by_rank_0():
    def run(group):
        yoke.manual_seed(group.rank)
        yoke.DistributedDataParallel(nn.Linear(2, 2), group)
    with pytest.warns(RuntimeWarning, match=r"all ranks took the values of rank 0 \(host"):
        on_ranks(2, run)


@pytest.mark.parametrize("arguments, error, words", [
    (("a text",), yoke.TypeError, "'module' is 'a text'"), ((nn.Linear(1, 1), 5), yoke.TypeError, "'group' is 5"),
    ((nn.Linear(1, 1), None, -1), yoke.ValueError, "'bucket_mb' is -1"), ((nn.Linear(1, 1), None, 25, "fp8"), yoke.ValueError, "'compression' is 'fp8'"),
    ((nn.Linear(1, 1), None, 0), yoke.ValueError, "'bucket_mb' is 0; .*1e\\+06"), ((nn.Linear(1, 1), None, 1e12), yoke.ValueError, "'bucket_mb' is 1e\\+12; .*1e\\+06"),
    ((nn.Linear(1, 1), None, float("inf")), yoke.ValueError, "'bucket_mb' is inf; .*1e\\+06"),
    ((nn.Linear(1, 1), None, 25, "powersgd:speed=2"), yoke.ValueError, "the key 'speed'"), ((nn.Linear(1, 1), None, 25, 4), yoke.TypeError, "'compression' is 4"),
    ((nn.ReLU(),), yoke.ValueError, "no parameter")])
def test_wrong_arguments_are_refused(arguments, error, words):
    group, = yoke.comm.init_all(["cpu"], size=1)
    module, given, *rest = (*arguments, None)[:max(2, len(arguments))]
    with pytest.raises(error, match=words.replace("[", r"\[")):
        yoke.DistributedDataParallel(module, group if given is None else given, *rest)


@pytest.mark.parametrize("name, words", [
    ("find_unused_parameters", "leave it out"), ("process_group", "use 'group'"), ("buckets", "the arguments are module, group")])
def test_arguments_that_it_does_not_have_are_told_with_what_to_do(name, words):
    group, = yoke.comm.init_all(["cpu"], size=1)
    with pytest.raises(yoke.TypeError, match=f"there is no argument '{name}'; {words}"):
        yoke.DistributedDataParallel(nn.Linear(1, 1), group, **{name: None})


def test_weights_that_are_none_are_refused():
    group, = yoke.comm.init_all(["cpu"], size=1)
    ddp = yoke.DistributedDataParallel(nn.Linear(1, 1), group)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(yoke.ValueError, match="set_weight: argument 'n'"):
            ddp.set_weight(wrong)


def test_ranks_that_are_processes_train_to_the_same_bits():
    outs, statuses, errors = start("""
from yoke import nn
yoke.manual_seed(rank)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
ddp = yoke.DistributedDataParallel(net)
optimizer = yoke.optim.AdamW(net.parameters(), lr=0.01)
for step in range(20):
    ddp(yoke.randn((4, 5))).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print([each.tolist() for each in net.parameters()])
""", 2)
    assert statuses == [0, 0], errors
    assert outs[0] == outs[1] and outs[0]


def test_a_rank_whose_backward_fails_is_told_to_all():
    def run(group):
        layer = nn.Linear(2, 1)
        ddp = yoke.DistributedDataParallel(layer, group)
        group.monitored_barrier(30.)
        with pytest.raises(yoke.Error) as caught:
            loss = ddp(yoke.ones((1, 2))).sum()
            if group.rank == 1:
                layer.weight.requires_grad_(False)
            loss.backward()
        return str(caught.value)
    told = on_ranks(3, run)
    assert "'weight' was frozen" in told[1] and all("rank 1 (host" in told[rank] and "its backward failed" in told[rank] for rank in (0, 2)), told


def test_shares_are_alike_on_all_ranks_and_larger_where_a_step_is_quicker():
    told = on_ranks(3, lambda group: yoke.comm.measure_shares(lambda: time.sleep(0.3 if group.rank == 1 else 0.01), group))
    assert told[0] == told[1] == told[2] and abs(sum(told[0]) - 1) < 1e-12
    assert told[0][1] < min(told[0][0], told[0][2])
    with pytest.raises(yoke.TypeError, match="'step_fn' is 5"):
        yoke.comm.measure_shares(5)


def test_a_backward_more_on_one_rank_is_told_on_all():
    def run(group):
        layer = nn.Linear(2, 1)
        ddp = yoke.DistributedDataParallel(layer, group)
        with pytest.raises(yoke.CollectiveError) as caught:
            for _ in range(2 + (group.rank == 1)):
                ddp(yoke.ones((1, 2))).sum().backward()
            group.barrier()
        with pytest.raises(yoke.CollectiveError):
            ddp(yoke.ones((1, 2)))
        layer(yoke.ones((1, 2))).sum().backward()  # alone
        return str(caught.value)
    for told in on_ranks(2, run):
        assert isinstance(told, str) and all(part in told for part in ("rank 0 (host", "called barrier", "rank 1 (host", "called all_reduce")), told


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_rank_that_raises_is_told_on_all_and_the_module_goes_on_alone(where):
    def run(group):
        def hook(bucket, group):
            if group.rank == 1 and where == "backward":
                yoke.zeros((1 << 45,))
            return group.all_reduce(bucket.tensor, op="avg", async_op=True)
        layer = nn.Linear(2, 1)
        ddp = yoke.DistributedDataParallel(layer, group, compression=hook)
        group.monitored_barrier(30.)
        with pytest.raises(yoke.Error) as caught:
            with group:
                loss = ddp(yoke.ones((1, 2))).sum()
                if group.rank == 1 and where == "forward":
                    yoke.zeros((1 << 45,))
                loss.backward()
        with pytest.raises(yoke.Error):
            ddp(yoke.ones((1, 2)))
        layer.zero_grad()
        layer(yoke.ones((1, 2))).sum().backward()
        assert layer.weight.grad.tolist() == [[1., 1.]]
        return str(caught.value)
    first, second, third = on_ranks(3, run)
    for told in first, third:  # in the hook or after it
        assert "rank 1 (host" in told and "OutOfMemoryError" in told and "bytes" in second, (told, second)


def test_a_state_of_another_model_is_refused():
    group, = yoke.comm.init_all(["cpu"], size=1)
    ddp = yoke.DistributedDataParallel(nn.Linear(2, 1), group, compression="bf16")
    with pytest.raises(yoke.ValueError, match="'q/weight'"):
        ddp.load_comm_state({"steps": 3, "tensors": {"q/weight": yoke.ones((2, 1))}})

    def run(group):
        ddp = yoke.DistributedDataParallel(nn.Linear(40, 30), group, compression="powersgd:rank=2,start=2")
        for name, shape in (("q/other", (40, 2)), ("q/weight", (40, 3)), ("error/weight", (30, 41)), ("r/weight", (30, 40))):
            with pytest.raises(yoke.ValueError, match=name):
                ddp.load_comm_state({"steps": 3, "tensors": {name: yoke.ones(shape)}})
        return ddp.comm_state() == {"steps": 0, "tensors": {}}
    assert on_ranks(2, run) == [True, True]


@pytest.mark.parametrize("order", [range(11, -1, -1), range(12), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]])
def test_the_first_backward_moves_gradients_without_room_for_all_of_them(order):
    yoke.manual_seed(0)  # ranks are threads of a process, so no other such tensors may live
    start = threading.Barrier(2)

    def body(group):
        layers = nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(12)])  # 1 MiB each
        ddp = yoke.DistributedDataParallel(layers, group, bucket_mb=2)
        x = yoke.ones((1, 512))
        for i in order:
            x = layers[i](x)
        start.wait(30)
        if group.rank == 0:
            yoke.reset_peak_memory_stats()
        before = yoke.memory_allocated()
        start.wait(30)
        x.sum().backward()
        start.wait(30)
        return ddp, (yoke.max_memory_allocated() - before) / 2**20
    for _, more in on_ranks(2, body):
        assert more < 2 * (2 * 2 + 1)  # for two ranks: two buckets and a gradient


def test_a_parameter_is_wrapped_once():
    def body(group):
        net = nn.Linear(2, 2, bias=False)
        first = yoke.DistributedDataParallel(net, group)
        with pytest.raises(yoke.StateError, match=r"the parameter 'weight' is already wrapped.*\(del ddp; in Lua ddp:close\(\)"):
            first = yoke.DistributedDataParallel(net, group)  # the old wrapper lives while the new wrapper is made
        first(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        means = net.weight.grad.tolist()
        del first
        second = yoke.DistributedDataParallel(net, group)
        net.zero_grad()
        second(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        return means, net.weight.grad.tolist()
    assert on_ranks(2, body) == [([[1.5, 1.5]] * 2,) * 2] * 2
