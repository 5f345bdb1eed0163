"""Modules that DistributedDataParallel takes: names and prefixes of states, and changes refused on all ranks."""
import os
import traceback

import pytest

import yoke
from yoke import nn
from rank_scripts import start
from test_parallel import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")


def test_names_have_no_prefix_and_those_with_one_are_taken():
    group, = yoke.comm.init_all(["cpu"], size=1)
    layer = nn.Linear(2, 3)
    ddp = yoke.DistributedDataParallel(layer, group)
    state = ddp.state_dict()
    assert list(state) == ["weight", "bias"]
    ddp.load_state_dict({"module." + name: each for name, each in state.items()})
    ddp.load_state_dict(state)
    with pytest.raises(yoke.ValueError):
        ddp.load_state_dict({"module.weight": state["weight"], "bias": state["bias"]})


def test_a_prefix_that_is_the_modules_own_stays():
    class Holder(nn.Module):
        def __init__(self):
            self.module = nn.Linear(2, 3)

        def forward(self, x):
            return self.module(x)

    group, = yoke.comm.init_all(["cpu"], size=1)
    ddp = yoke.DistributedDataParallel(Holder(), group)
    state = {name: yoke.ones(each.shape) for name, each in ddp.state_dict().items()}
    assert list(state) == ["module.weight", "module.bias"]
    ddp.load_state_dict(state)
    assert ddp.module.module.bias.tolist() == [1., 1., 1.]
    ddp.load_state_dict({"module." + name: each * 2 for name, each in state.items()})
    assert ddp.module.module.bias.tolist() == [2., 2., 2.]


def test_unlike_modules_are_refused_alike_on_all_ranks():
    def run(group):
        yoke.DistributedDataParallel(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4 + (group.rank == 2))), group)
    told = on_ranks(3, run)
    assert len({str(each) for each in told}) == 1 and all(isinstance(each, yoke.ValueError) for each in told), told
    assert "'1.weight'" in str(told[0]) and "[4, 3]" in str(told[0]) and "[5, 3]" in str(told[0]) and "rank 2 (host" in str(told[0]), told[0]


def test_frozen_parameters_are_those_of_rank_0_and_the_same_on_all_ranks():
    def frozen(net, names):
        for name, each in net.named_parameters():
            each.requires_grad_(name not in names)
        return net

    def run(group):
        net = frozen(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)), ("0.weight", "0.bias"))
        with yoke.no_grad():
            for each in net.parameters():
                each.fill_(group.rank + 5.)
        ddp = yoke.DistributedDataParallel(net, group)
        for _ in range(3):
            net.zero_grad()
            ddp(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        return [(each.tolist()[0], each.grad is None) for each in (*net[0].parameters(), net[1].bias)]
    assert on_ranks(2, run) == [[([5., 5.], True), (5., True), (5., False)]] * 2
    for names, shape in ((("0.weight",), 3), ((), 4)):  # a weight frozen on rank 1 only, and a weight with another shape, frozen on both
        def unlike(group):
            net = frozen(nn.Sequential(nn.Linear(2, 3 + (group.rank and shape - 3))), ("0.weight",) if group.rank or shape == 4 else ())
            yoke.DistributedDataParallel(net, group)
        for told in on_ranks(2, unlike):
            assert isinstance(told, yoke.ValueError) and "'0.weight' is [3, 2] float32 on cpu" in str(told) and f"'0.weight' is [{shape}, 2] float32 on cpu and frozen on rank 1" in str(told), told


def freeze(net):
    net[0].weight.requires_grad_(False)


def unfreeze(net):
    net.frozen.requires_grad_(True)


def replace_frozen(net):
    net.frozen = nn.Parameter(yoke.ones(1), requires_grad=False)


def add(net):
    net.extra = nn.Parameter(yoke.ones((2,)))


def take_away(net):
    del net[1].bias


def move(net):
    net[1].to(yoke.float64)


def assign_buffer(net):
    net[2].running_mean = net[2].running_mean * 0.5


def add_buffer(net):
    net.register_buffer("seen", yoke.zeros((1,)))


def take_buffer_away(net):
    del net[2].running_var


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("change, words", [(assign_buffer, "'2.running_mean' is not the tensor that was wrapped; change buffers in place, buf.copy_(...)"),
                                           (add_buffer, "'seen' was added"), (take_buffer_away, "'2.running_var' was removed"),
                                           (freeze, "'0.weight' was frozen; "), (unfreeze, "'frozen' was frozen, and requires a gradient now"),
                                           (replace_frozen, "'frozen' was moved, or another parameter"), (add, "'extra' was added"), (take_away, "'1.bias' was removed"),
                                           (move, "'1.weight' was moved")])
def test_a_module_that_changed_on_one_rank_is_told_on_all(change, words, is_training):
    def run(group):
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.BatchNorm1d(2))
        net.frozen = nn.Parameter(yoke.ones(1), requires_grad=False)
        ddp = yoke.DistributedDataParallel(net, group).train(is_training)
        group.monitored_barrier(30.)
        if group.rank == 1:
            change(net)
        with pytest.raises(yoke.StateError if group.rank == 1 else yoke.CancelledError) as caught:
            ddp(yoke.ones((3, 2))).sum().backward()
        if group.rank == 0:
            net(yoke.ones((3, 2))).sum().backward()  # alone
        return str(caught.value)
    first, second = on_ranks(2, run)
    assert words in second and words in first and "rank 1 (host" in first, (first, second)


class Assigns(nn.Module):
    """Module that replaces a tensor of its own."""

    def __init__(self, kind):
        self.kind, self.weight = kind, nn.Parameter(yoke.ones((2,)))
        self.register_buffer("mean", yoke.zeros((2,)))

    def forward(self, x):
        if self.kind == "mean":
            self.mean = self.mean * 0.5 + x
        if self.kind == "weight":
            self.weight = nn.Parameter(self.weight.detach() * 0.5)
        if self.kind == "gone":
            del self.mean
            x = x + self.mean
        return x * self.weight


@pytest.mark.parametrize("kind, words", [("mean", "'mean' is not the tensor"), ("weight", "'weight' was moved, or another parameter"), ("gone", "'mean' was removed")])
def test_what_the_first_forward_assigns_is_told_before_its_backward(kind, words):
    def run(group):
        ddp = yoke.DistributedDataParallel(Assigns(kind if group.rank else None), group)
        with pytest.raises(yoke.StateError if group.rank else yoke.CancelledError) as caught:
            ddp(yoke.ones((2,))).sum().backward()
        return str(caught.value)
    for told in on_ranks(2, run):
        assert words in told, told


def test_a_backward_of_what_was_recorded_before_it_was_let_go_is_told():
    def body(group):
        net, x = nn.Linear(2, 2, bias=False), yoke.full((1, 2), group.rank + 1.)
        ddp = yoke.DistributedDataParallel(net, group)
        made = ddp(x)
        del ddp
        for loss in made.sum(), (made + net(x)).sum():
            with pytest.raises(yoke.StateError, match="was released after the forward"):
                loss.backward(retain_graph=True)
            assert net.weight.grad is None
        net(x).sum().backward()  # this rank alone
        alone = net.weight.grad.tolist()
        net.zero_grad()
        ddp = yoke.DistributedDataParallel(net, group)
        made.sum().backward()
        return alone, net.weight.grad.tolist()
    assert on_ranks(2, body) == [([[rank + 1.] * 2] * 2, [[1.5] * 2] * 2) for rank in range(2)]


def test_whose_group_has_failed_leaves_gradients_to_each_rank():
    def body(group):
        net = nn.Linear(2, 2, bias=False)
        ddp = yoke.DistributedDataParallel(net, group)
        made = ddp(yoke.ones((1, 2)))
        group.monitored_barrier(30.)
        group.abort()
        del ddp
        made.sum().backward()
        return net.weight.grad.tolist()
    assert on_ranks(2, body) == [[[1.] * 2] * 2] * 2


def change_the_module(group, net, ddp):
    net[0].weight.requires_grad_(False)
    with pytest.raises(yoke.Error, match="was frozen"):
        ddp(yoke.ones((1, 2)))
    net[0].weight.requires_grad_(True)


def call_unlike(group, net, ddp):
    with pytest.raises(yoke.Error):
        group.all_reduce(yoke.ones(2 + group.rank))


def abort(group, net, ddp):
    group.abort("enough")


def leave_by_an_error(group, net, ddp):
    with pytest.raises(KeyError), group:
        raise KeyError("no such batch")


@pytest.mark.parametrize("failing", [change_the_module, call_unlike, abort, leave_by_an_error])
def test_the_module_goes_on_alone_from_its_first_backward_on(failing):
    def run(group):
        net = nn.Sequential(nn.Linear(2, 1, bias=False))
        ddp = yoke.DistributedDataParallel(net, group)
        group.monitored_barrier(30.)
        failing(group, net, ddp)
        net(yoke.full((1, 2), group.rank + 1.)).sum().backward()
        assert net[0].weight.grad.tolist() == [[group.rank + 1.] * 2]
        return True
    assert on_ranks(2, run) == [True, True]


def test_a_failure_amid_a_forward_is_told_by_it():
    class Fails(nn.Linear):
        def forward(self, x):
            group.abort("enough")
            return super().forward(x)
    group, _ = groups = yoke.comm.init_all(["cpu"], size=2)
    ranks = [(Fails if each.rank == 0 else nn.Linear)(2, 1) for each in groups]

    def run(one):
        ddp = yoke.DistributedDataParallel(ranks[one.rank], one)
        if one.rank == 0:
            with pytest.raises(yoke.CancelledError, match="enough"):
                ddp(yoke.ones((1, 2)))
        return True
    assert on_ranks(2, run, groups) == [True, True]


def of_no_scalar(ddp, made):
    made.backward()


def with_a_wrong_gradient(ddp, made):
    made.backward(yoke.ones((2, 2)))


def of_what_was_freed(ddp, made):
    with ddp.no_sync():
        made.sum().backward()
    made.sum().backward()


@pytest.mark.parametrize("call, words", [(of_no_scalar, "'gradient' is missing"), (with_a_wrong_gradient, "both must have the same shape"), (of_what_was_freed, "freed")])
def test_a_backward_that_one_rank_is_refused_is_told_on_all(call, words):
    def run(group):
        net = nn.Linear(2, 2)
        ddp = yoke.DistributedDataParallel(net, group)
        with pytest.raises(yoke.CancelledError if group.rank == 0 else (yoke.ValueError, yoke.StateError)) as caught:
            made = ddp(yoke.ones((3, 2)))
            call(ddp, made) if group.rank else made.sum().backward()
        net(yoke.ones((3, 2))).sum().backward()  # alone
        return str(caught.value)
    groups = yoke.comm.init_all(["cpu"], size=2, timeout=5.)
    first, second = on_ranks(2, run, groups)
    assert words in second and words in first and "its backward failed" in first and "rank 1 (host" in first, (first, second)


def test_a_backward_that_is_refused_within_no_sync_is_the_rank_s_own():
    def run(group):
        net = nn.Linear(2, 2, bias=False)
        ddp = yoke.DistributedDataParallel(net, group)
        with ddp.no_sync(), pytest.raises(yoke.ValueError):
            ddp(yoke.ones((3, 2))).backward()
        ddp(yoke.ones((1, 2))).sum().backward()
        return net.weight.grad.tolist()
    assert on_ranks(2, run) == [[[1., 1.]] * 2] * 2


class Untold(Exception):
    def __str__(self):
        raise KeyboardInterrupt("in its text")


@pytest.mark.parametrize("kind, left", [(KeyboardInterrupt, None), (SystemExit, None), (GeneratorExit, None), (KeyError, yoke.CancelledError), (Untold, KeyboardInterrupt)])
def test_what_a_function_raises_leaves_backward_or_is_the_cause(kind, left):
    raised = kind(7)  # not the parameter, because its traceback keeps tensors
    def run(group):
        def hook(bucket, group):
            if group.rank == 1:
                raise raised
            return group.all_reduce(bucket.tensor, async_op=True)
        ddp = yoke.DistributedDataParallel(nn.Linear(2, 1), group, compression=hook)
        group.monitored_barrier(30.)
        try:
            ddp(yoke.ones((1, 2))).sum().backward()
        except BaseException as error:
            return [error]  # on_ranks passes the error on
    (other,), (own,) = on_ranks(2, run)
    assert isinstance(other, yoke.CancelledError) and "rank 1" in str(other), other
    assert ("an error without a text" if kind is Untold else kind.__name__) in str(other)
    if left is None:
        assert own is raised and "hook" in [each.name for each in traceback.extract_tb(own.__traceback__)]
    else:
        assert type(own) is left and (left is KeyboardInterrupt or own.__cause__ is raised)


FORKED = """
from yoke import nn
net = nn.Linear(2, 1, bias=False)
ddp = yoke.DistributedDataParallel(net, group)
ddp(yoke.ones((1, 2)) * (rank + 1)).sum().backward()
child = os.fork()
if child == 0:
    seen = net.weight.grad.tolist()
    net.weight.grad.fill_(9.)
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(6 if net.weight.grad.tolist() == [[9., 9.]] else 8)
    ended = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    net.zero_grad()
    os._exit(7 if (seen, ended) == ([[1.5, 1.5]], 6) else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), net.weight.grad.tolist())
net.zero_grad(set_to_none=False)
ddp(yoke.ones((1, 2)) * (rank + 2)).sum().backward()
print(net.weight.grad.tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_gradients_of_its_own():
    outs, statuses, errors = start(FORKED, 2)
    assert outs == ["7 [[1.5, 1.5]]\n[[2.5, 2.5]]\n"] * 2, (outs, errors)
    assert statuses == [0, 0]


def test_gradients_of_a_module_that_moved_are_not_reduced_as_what_it_was():
    def run(group):
        layer = nn.Linear(2, 1)
        ddp = yoke.DistributedDataParallel(layer, group)
        ddp(yoke.ones((1, 2))).sum().backward()
        layer.double()
        loss = layer(yoke.ones((1, 2), dtype=yoke.float64)).sum()  # the call bypasses the wrapper's check
        with pytest.raises(yoke.StateError, match=r"'weight' is now \[1, 2\] float64 on .*, but its gradients are reduced as .*float32.*wrap the module again"):
            loss.backward()
        return "told"
    told = on_ranks(2, run)
    assert "told" in told and all(each == "told" or isinstance(each, (yoke.Error, AssertionError)) for each in told), told


def test_one_rank_alone_may_move_its_module():
    group, = yoke.comm.init_all(["cpu"], size=1)
    layer = nn.Linear(2, 1)
    ddp = yoke.DistributedDataParallel(layer, group)
    optimizer = yoke.optim.SGD(layer.parameters(), lr=0.5)
    layer.double()
    before = layer.weight.tolist()[0]
    ddp(yoke.ones((1, 2), dtype=yoke.float64)).sum().backward()
    optimizer.step()
    assert layer.weight.tolist()[0] == [before[0] - 0.5, before[1] - 0.5]
