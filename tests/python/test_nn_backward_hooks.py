"""Hooks of modules in backward: what they see and replace, and what they may return."""

import copy
import gc
import pickle
import threading

import pytest

import yoke
from yoke import nn


class Square(nn.Module):
    def forward(self, x):
        return x * x


class Both(nn.Module):
    """Module of several arguments and results."""

    def forward(self, a, n, b, *, c=None):
        return a * b, n, b * 3


def leaf(*values):
    return yoke.tensor(values, requires_grad=True)


def shown(gradients):
    return tuple(each if each is None else each.tolist() for each in gradients)


def test_a_hook_sees_the_gradients_of_arguments_and_results():
    net, seen, x = Square(), [], leaf(1.0, 3.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((module, shown(grad_input), shown(grad_output))))
    (net(x) * yoke.tensor([1.0, 10.0])).sum().backward()
    assert seen == [(net, ([2, 60],), ([1, 10],))] and x.grad.tolist() == [2, 60]


def test_hooks_of_a_network_run_from_its_end_to_its_beginning():
    net, log = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), []
    for name, module in net.named_modules():
        module.register_full_backward_hook(lambda module, grad_input, grad_output, name=name: log.append((name, [g.shape for g in grad_input if g is not None], grad_output[0].shape)))
    x = yoke.ones(4, 2, requires_grad=True)
    net(x).sum().backward()
    assert log == [("2", [(4, 3)], (4, 1)), ("1", [(4, 3)], (4, 3)), ("0", [(4, 2)], (4, 3)), ("", [(4, 2)], (4, 1))]
    log.clear()
    net(yoke.ones(4, 2)).sum().backward()  # no argument of the first layer needs a gradient
    assert log == [("", [], (4, 1)), ("2", [(4, 3)], (4, 1)), ("1", [(4, 3)], (4, 3)), ("0", [], (4, 3))]


def test_hooks_change_no_gradient_of_themselves():
    yoke.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU(), nn.Linear(4, 2))
    other, x = copy.deepcopy(net), yoke.randn(5, 3)
    for module in other.modules():
        module.register_full_backward_hook(lambda *told: None)
        module.register_full_backward_pre_hook(lambda *told: None)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    (net(a) ** 2).sum().backward(), (other(b) ** 2).sum().backward()
    assert a.grad.tolist() == b.grad.tolist()
    assert [p.grad.tolist() for p in net.parameters()] == [p.grad.tolist() for p in other.parameters()]


def test_a_hook_replaces_the_gradients():
    net, x = Square(), leaf(1.0, 3.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 100,))
    net.register_full_backward_hook(lambda module, grad_input, grad_output: [grad_input[0] + 1])
    net.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    net(x).sum().backward()
    assert x.grad.tolist() == [2001, 6001]


def test_hooks_run_in_order_and_are_removed():
    net, log, x = Square(), [], leaf(1.0)
    handle = net.register_full_backward_hook(lambda *told: log.append("b"))
    net.register_full_backward_hook(lambda *told: log.append("a"), prepend=True)
    net.register_full_backward_hook(lambda *told: log.append("first"), True)
    with net.register_full_backward_pre_hook(lambda *told: log.append("before")):
        y = net(x)
    y.sum().backward()
    handle.remove()
    net(x).sum().backward()
    assert log == ["before", "first", "a", "b", "first", "a"]


def test_several_arguments_and_results():
    net, seen, a, b = Both(), [], leaf(2.0), leaf(5.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((shown(grad_input), shown(grad_output))))
    first, number, second = net(a, 7, b)
    assert number == 7
    (first * 10 + second).sum().backward()
    assert seen.pop() == (([50], None, [23]), ([10], None, [1])) and (a.grad.item(), b.grad.item()) == (50, 23)
    net(a.detach(), 7, b)[0].sum().backward()  # zeros where a tensor needs no gradient, None where a result has none
    assert seen.pop() == (([0], None, [2]), ([1], None, None))


def test_arguments_by_name_and_without_gradients_are_left_alone():
    class Named(nn.Module):
        def forward(self, x, scale):
            return x * scale

    net, seen, x = Named(), [], leaf(3.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(shown(grad_input)))
    net(yoke.ones(1), scale=x).sum().backward()
    assert seen == [(None,)] and x.grad.tolist() == [1]
    with yoke.no_grad():
        assert not net(x, scale=x).requires_grad
    assert net(yoke.ones(1), scale=2.0).requires_grad is False and len(seen) == 1


def test_a_graph_that_is_kept_calls_the_hooks_again():
    net, seen, x = Square(), [], leaf(2.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(shown(grad_input)))
    y = net(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [([4],), ([4],)] and x.grad.tolist() == [8]


def test_a_result_that_is_no_tensor_is_said():
    net, seen = nn.Module(), []
    net.forward = lambda x: {"y": x * 2}
    net.register_full_backward_hook(lambda *told: seen.append(told))
    x = leaf(1.0)
    with pytest.warns(RuntimeWarning, match="Module: the hooks in backward need a tensor or a tuple of tensors as result, which is a value of type dict"):
        net(x)["y"].sum().backward()
    assert seen == [] and x.grad.tolist() == [2]


@pytest.mark.parametrize("returned, kind, told", [
    (lambda g: g[0], yoke.TypeError, r"Square: the full backward hook .* returned a yoke.float32 tensor of shape \[2\]; return None, or a tuple with a gradient for each argument"),
    (lambda g: (g[0], g[0]), yoke.ValueError, "returned 2 gradients, for 1 argument; return None, or a tuple"),
    (lambda g: (3,), yoke.TypeError, "returned 3 for argument 0; return a tensor or None"),
    (lambda g: (g[0][:1],), yoke.ValueError, r"returned a gradient of shape \(1,\) for argument 0; it must have shape \(2,\)"),
])
def test_what_a_hook_may_not_return(returned, kind, told):
    net, x = Square(), leaf(1.0, 3.0)
    with net.register_full_backward_hook(lambda module, grad_input, grad_output: returned(grad_input)):
        with pytest.raises(kind, match=told):
            net(x).sum().backward()
    assert x.grad is None
    with net.register_full_backward_pre_hook(lambda module, grad_output: returned(grad_output)):
        with pytest.raises(kind, match=told.replace("backward hook", "backward pre-hook").replace("argument", "result")):
            net(x).sum().backward()
    net(x).sum().backward()
    assert x.grad.tolist() == [2, 6]


def test_no_gradient_is_given_where_no_argument_needs_any():
    net = nn.Linear(1, 1)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (yoke.ones(1, 1),))
    with pytest.raises(yoke.ValueError, match="Linear: the full backward hook .* returned a gradient, but no argument of the call requires one; return None"):
        net(yoke.ones(1, 1)).sum().backward()
    other = nn.Linear(1, 1)
    other.register_full_backward_hook(lambda module, grad_input, grad_output: (None,))
    other(yoke.ones(1, 1)).sum().backward()
    assert other.weight.grad is not None


def test_an_error_of_a_hook_leaves_backward_as_it_was_raised():
    class Own(Exception):
        pass

    def failing(*told):
        raise Own("here")

    net, x = Square(), leaf(1.0)
    with net.register_full_backward_hook(failing), pytest.raises(Own, match="here"):
        net(x).sum().backward()
    net(x).sum().backward()
    assert x.grad.tolist() == [2]


def test_a_hook_may_call_backward_itself():
    net, inner, x = Square(), leaf(5.0), leaf(1.0)

    def hook(module, grad_input, grad_output):
        assert not yoke.is_grad_enabled()
        with yoke.enable_grad():
            (inner * 2).sum().backward()

    net.register_full_backward_hook(hook)
    net(x).sum().backward()
    assert (inner.grad.item(), x.grad.item()) == (2, 2)


def note(module, grad_input, grad_output):
    module.seen = shown(grad_input)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["deepcopy", "pickle"])
def test_copies_have_the_hooks(copied):
    net, x = Square(), leaf(1.0)
    net.register_full_backward_hook(note)
    other = copied(net)
    other(x).sum().backward()
    assert other.seen == ([2],) and not hasattr(net, "seen")


@pytest.mark.parametrize("way", ["module", "function"])
def test_gradients_of_recomputed_modules(way):
    yoke.manual_seed(1)
    net, found = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)), []
    for module in net.modules():
        module.register_full_backward_hook(lambda module, grad_input, grad_output: found.append((shown(grad_input), shown(grad_output))))
    x = yoke.ones(2, 3, requires_grad=True)
    net(x).sum().backward()
    want, gradient = list(found), x.grad.tolist()
    found.clear()
    x.grad = None
    if way == "module":
        net.checkpoint_()
    (net(x) if way == "module" else yoke.checkpoint(net, x)).sum().backward()
    assert found == want and len(found) == 4 and x.grad.tolist() == gradient


def test_arguments_of_registration_are_checked():
    for name in ("register_full_backward_hook", "register_full_backward_pre_hook"):
        with pytest.raises(yoke.TypeError, match=rf"{name}\(\): argument 'hook' is None; a function is needed"):
            getattr(Square(), name)(None)
        with pytest.raises(yoke.TypeError, match=rf"{name}\(\): argument 'prepend' is 1; True or False is needed"):
            getattr(Square(), name)(print, 1)


def test_hooks_of_a_module_on_several_ranks():
    alone, = yoke.comm.init_all(["cpu"], size=1)
    net, log = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), []
    ddp = yoke.DistributedDataParallel(net, alone)
    for name, module in (("ddp", ddp), ("net", net), ("linear", net[0])):
        module.register_full_backward_hook(lambda module, grad_input, grad_output, name=name: log.append((name, grad_output[0].shape)))
    ddp(yoke.ones(4, 2, requires_grad=True)).sum().backward()
    assert log == [("linear", (4, 3)), ("net", (4, 3)), ("ddp", (4, 3))] and net[0].weight.grad.shape == (3, 2)


def test_threads_call_one_module():
    net, wrong = Square(), []
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] + grad_output[0],))

    def work(number):
        for _ in range(50):
            x = leaf(number)
            (net(x) * number).sum().backward()
            wrong.extend([x.grad.item()] if x.grad.item() != 2 * number * number + number else [])

    threads = [threading.Thread(target=work, args=(float(number), )) for number in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_what_is_written_into_in_place_is_refused_as_in_pytorch():
    class InPlace(nn.Module):
        def forward(self, x):
            return x.relu_() * 2

    net, x = InPlace(), leaf(1.0, -1.0)
    with net.register_full_backward_hook(lambda *told: None):
        with pytest.raises(yoke.UnsupportedError, match="relu_: 'x' is .* an output of a wrapped module"):
            net(x * 1)
    net(x * 1).sum().backward()
    assert x.grad.tolist() == [2, 0]


def test_one_tensor_in_two_places_and_a_module_that_returns_its_argument():
    class Product(nn.Module):
        def forward(self, a, b):
            return a * b

    net, seen, x = Product(), [], leaf(3.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(shown(grad_input)))
    net(x, x).sum().backward()
    assert seen == [([3], [3])] and x.grad.tolist() == [6]
    same, y = nn.Identity(), leaf(1.0)
    same.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 3,))
    same(y).sum().backward()
    assert y.grad.tolist() == [3] and yoke.grad(same(y).sum(), y)[0].tolist() == [3]


def test_hooks_hold_no_tensor_after_backward():
    net = Square()
    net.register_full_backward_hook(lambda *told: None)
    gc.collect()
    before = yoke.live_tensor_count()
    for does_backward in (True, False):
        y = net(leaf(1.0, 2.0)).sum()
        if does_backward:
            y.backward()
        del y
        gc.collect()
        assert yoke.live_tensor_count() == before
