"""Hooks of modules around forward: order, replaced arguments and results, handles, copies, errors."""

import copy
import pickle
import warnings

import pytest

import yoke
from yoke import nn
from yoke.utils.hooks import RemovableHandle


class Double(nn.Module):
    def forward(self, x, scale=2.0):
        return x * scale


def noted(log, name):
    def hook(module, *rest):
        log.append((name, type(module).__name__, len(rest)))
    return hook


def plus_one(module, args, result):
    return result + 1


def test_hooks_run_in_order_around_forward():
    net, log = Double(), []
    net.register_forward_hook(noted(log, "after"))
    net.register_forward_pre_hook(noted(log, "before"))
    net.register_forward_pre_hook(noted(log, "first"), prepend=True)
    net.register_forward_hook(noted(log, "after first"), prepend=True)
    net.register_forward_pre_hook(noted(log, "before with"), with_kwargs=True)
    net.register_forward_hook(noted(log, "after with"), with_kwargs=True)
    assert net(yoke.ones(1), scale=3.0).item() == 3
    assert log == [("first", "Double", 1), ("before", "Double", 1), ("before with", "Double", 2),
                   ("after first", "Double", 2), ("after", "Double", 2), ("after with", "Double", 3)]


def test_hooks_of_inner_modules_run_too():
    net, log = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU())), []
    for name, module in net.named_modules():
        module.register_forward_hook(lambda module, args, result, name=name: log.append((name, args[0].shape, result.shape)))
    net(yoke.ones(3, 2))
    assert log == [(name, (3, 2), (3, 2)) for name in ("0", "1.0", "1", "")]


def test_a_pre_hook_replaces_the_arguments():
    net = Double()
    with net.register_forward_pre_hook(lambda module, args: args[0] + 1):
        assert net(yoke.ones(1)).item() == 4
    with net.register_forward_pre_hook(lambda module, args: (args[0], 5.0)):
        assert net(yoke.ones(1)).item() == 5
    with net.register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs, "scale": 7.0}), with_kwargs=True):
        seen = []
        with net.register_forward_hook(lambda module, args, kwargs, result: seen.append((args[0].item(), kwargs)), with_kwargs=True):
            assert net(yoke.ones(1), scale=1.0).item() == 7
        assert seen == [(1, {"scale": 7.0})]
    assert net(yoke.ones(1)).item() == 2


def test_a_forward_hook_replaces_the_result():
    net = Double()
    net.register_forward_hook(plus_one)
    net.register_forward_hook(lambda module, args, result: {"result": result})
    assert net(yoke.ones(1))["result"].item() == 3


def test_gradients_pass_through_what_hooks_compute():
    net, x = nn.Linear(2, 1, bias=False), yoke.ones(1, 2)
    net.register_forward_pre_hook(lambda module, args: args[0] * 3)
    net.register_forward_hook(lambda module, args, result: result * 2)
    net(x).sum().backward()
    assert net.weight.grad.tolist() == [[6, 6]]


def test_a_removed_hook_runs_no_more():
    net, log = Double(), []
    handles = [net.register_forward_hook(noted(log, i)) for i in range(3)]
    assert all(isinstance(handle, RemovableHandle) for handle in handles)
    handles[1].remove()
    handles[1].remove()
    net(yoke.ones(1))
    assert [name for name, *_ in log] == [0, 2]
    with net.register_forward_pre_hook(noted(log, "in the block")):
        net(yoke.ones(1))
    net(yoke.ones(1))
    assert [name for name, *_ in log].count("in the block") == 1
    del net
    handles[0].remove()  # the module is gone


def test_a_hook_that_is_removed_or_added_during_a_call_counts_from_the_next_call_on():
    net, log = Double(), []

    def once(module, args, result):
        log.append("once")
        first.remove()
        last.remove()
        module.register_forward_hook(noted(log, "new"))

    first = net.register_forward_hook(once)
    last = net.register_forward_hook(lambda *told: log.append("last"))
    net(yoke.ones(1))
    assert log == ["once", "last"]
    net(yoke.ones(1))
    assert log[2:] == [("new", "Double", 2)]


def test_an_error_of_a_hook_or_of_forward_is_the_callers():
    net, log = Double(), []
    net.register_forward_hook(noted(log, "after"))
    with pytest.raises(ZeroDivisionError):
        with net.register_forward_pre_hook(lambda module, args: 1 / 0):
            net(yoke.ones(1))
    with pytest.raises(yoke.ValueError):
        nn.Linear(3, 1).register_forward_hook(plus_one), net(yoke.ones(2), yoke.ones(3))
    assert log == []
    assert net(yoke.ones(1)).item() == 2 and len(log) == 1


def test_hooks_that_are_always_called_see_failed_calls():
    net, log = Double(), []
    net.register_forward_hook(lambda module, args, result: log.append(result), always_call=True)
    net.register_forward_hook(lambda module, args, kwargs, result: log.append(kwargs), always_call=True, with_kwargs=True)
    net.register_forward_hook(noted(log, "after"))
    net.register_forward_hook(lambda *told: 1 / 0, always_call=True)
    with pytest.raises(yoke.ValueError), pytest.warns(RuntimeWarning, match="forward hook .*<lambda>.* of Double raised.*division by zero"):
        net(yoke.ones(2), scale=yoke.ones(3))
    assert log[0] is None and list(log[1]) == ["scale"] and len(log) == 2


def test_a_hook_that_raises_after_others_lets_the_always_called_ones_run_once():
    net, log = Double(), []
    net.register_forward_hook(noted(log, "first"), always_call=True)
    net.register_forward_hook(lambda *told: 1 / 0)
    net.register_forward_hook(noted(log, "last"), always_call=True)
    with pytest.raises(ZeroDivisionError):
        net(yoke.ones(1))
    assert [name for name, *_ in log] == ["first", "last"]


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_arguments_of_registration_are_checked(register):
    net = Double()
    with pytest.raises(yoke.TypeError, match=rf"{register}\(\): argument 'hook' is 3; a function is needed"):
        getattr(net, register)(3)
    with pytest.raises(yoke.TypeError, match=rf"{register}\(\): argument 'prepend' is 'yes'; True or False is needed"):
        getattr(net, register)(print, prepend="yes")
    with pytest.raises(yoke.TypeError, match=rf"{register}\(\): there is no argument 'first'"):
        getattr(net, register)(print, first=True)


@pytest.mark.parametrize("returned", [(1, 2, 3), 5, (3, {}), ((), 4)], ids=str)
def test_a_pre_hook_with_keywords_returns_a_pair(returned):
    net = Double()

    def both(module, args, kwargs):
        return returned

    net.register_forward_pre_hook(both, with_kwargs=True)
    with pytest.raises(yoke.TypeError, match=r"Double: the forward pre-hook .*both returned .*; with with_kwargs=True it must return None or a pair of a tuple and a dict"):
        net(yoke.ones(1))


def test_wrong_arguments_of_forward_are_named_with_hooks_too():
    net = Double()
    net.register_forward_pre_hook(lambda module, args: None)
    with pytest.raises(yoke.TypeError, match=r"Double.forward\(\): there is no argument 'scal'"):
        net(yoke.ones(1), scal=3.0)
    with pytest.raises(yoke.TypeError, match=r"Double.forward\(\): argument 'x' is missing"):
        net()
    norm = nn.LayerNorm(2)
    norm.register_forward_pre_hook(lambda module, args: None)
    assert norm(input=yoke.ones(1, 2)).shape == (1, 2)


def test_a_hook_with_other_arguments_is_named():
    net = Double()
    with net.register_forward_hook(lambda module, args: None):
        with pytest.raises(yoke.TypeError, match=r"Double: the forward hook .*<lambda> must take \(module, args, result\): .*takes 2 positional arguments but 3 were given"):
            net(yoke.ones(1))
    with net.register_forward_pre_hook(lambda module, args: None, with_kwargs=True):
        with pytest.raises(yoke.TypeError, match=r"the forward pre-hook .* must take \(module, args, kwargs\)"):
            net(yoke.ones(1))

    def own_error(module, args):
        len(5)

    net.register_forward_pre_hook(own_error)
    with pytest.raises(TypeError, match="^object of type 'int' has no len"):
        net(yoke.ones(1))


class Counting(nn.Module):
    """Module that holds a handle and registers a method of its own."""

    def __init__(self):
        self.calls = 0
        self.inner = nn.Linear(1, 1)
        self.handle = self.inner.register_forward_hook(self.count)

    def count(self, module, args, result):
        self.calls += 1

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["deepcopy", "pickle"])
def test_hooks_and_handles_are_copied_with_their_module(copied):
    net = Counting()
    net.inner.register_forward_hook(plus_one)
    other = copied(net)
    assert (other(yoke.ones(1)) - other.inner.forward(yoke.ones(1))).item() == pytest.approx(1)
    assert (net.calls, other.calls) == (0, 1)
    other.handle.remove()
    other(yoke.ones(1)), net(yoke.ones(1))
    assert (net.calls, other.calls) == (1, 1)


def test_the_handle_of_a_module_that_is_gone_can_be_copied():
    handle = Double().register_forward_hook(plus_one)
    copy.deepcopy(handle).remove()
    pickle.loads(pickle.dumps(handle)).remove()


def test_hooks_leave_states_parameters_and_texts_alone():
    net = nn.Linear(2, 2)
    before = sorted(net.state_dict()), len(list(net.parameters())), repr(net)
    net.register_forward_hook(plus_one)
    assert (sorted(net.state_dict()), len(list(net.parameters())), repr(net)) == before
    net.load_state_dict(nn.Linear(2, 2).state_dict())
    net.double().train().requires_grad_(False)
    assert net(yoke.ones(1, 2, dtype=yoke.float64)).dtype is yoke.float64


@pytest.mark.parametrize("way", ["checkpoint", "scope", "module"])
def test_hooks_run_once_where_ops_are_recomputed(way):
    net, calls, want = nn.Linear(2, 2), [], []
    net.register_forward_pre_hook(lambda module, args: calls.append("before") or args[0] * 2)
    net.register_forward_hook(lambda module, args, result: calls.append("after") or yoke.tanh(result))
    for recomputed in (False, True):
        net.zero_grad()
        x = yoke.ones(1, 2, requires_grad=True)
        if recomputed and way == "module":
            net.checkpoint_()
        if recomputed and way == "checkpoint":
            loss = yoke.checkpoint(net, x).sum()
        elif recomputed and way == "scope":
            with yoke.checkpoint_scope():
                loss = net(x).sum()
        else:
            loss = net(x).sum()
        loss.backward()
        want.append((x.grad.tolist(), net.weight.grad.tolist()))
        assert calls == ["before", "after"]
        calls.clear()
    assert want[0] == want[1]


def test_features_are_taken_by_a_hook():
    net, found = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, module in net.named_children():
            module.register_forward_hook(lambda module, args, result, name=name: found.update({name: result.detach()}))
        net(yoke.ones(5, 4))
    assert {name: value.shape for name, value in found.items()} == {"0": (5, 3), "1": (5, 3), "2": (5, 2)}
