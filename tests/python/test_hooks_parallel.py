"""Hooks and functions in a data parallel module, whose ranks are threads; and in the child of a fork."""
import os
import warnings

import pytest

import yoke
from yoke import nn
from test_parallel import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")


def wrapped(group):
    yoke.manual_seed(3)
    net = nn.Linear(2, 1, bias=False)
    return net, yoke.DistributedDataParallel(net, group)


def test_a_hook_sees_this_ranks_gradient_before_all_ranks_reduce_it():
    def body(group):
        net, ddp = wrapped(group)
        seen, factor = [], group.rank + 1.0
        net.weight.register_hook(lambda g: seen.append(g.tolist()))
        net.weight.register_hook(lambda g: g * 10)
        for _ in range(2):
            net.weight.grad = None
            ddp(yoke.full((1, 2), factor)).sum().backward()
        return seen, net.weight.grad.tolist()

    first, second = on_ranks(2, body)
    assert first == ([[[1.0, 1.0]]] * 2, [[15.0, 15.0]]) and second == ([[[2.0, 2.0]]] * 2, [[15.0, 15.0]])


class Mine(Exception):
    pass


def test_a_hook_that_raises_on_one_rank_ends_the_group_with_its_text():
    def body(group):
        net, ddp = wrapped(group)
        loss = ddp(yoke.ones((1, 2))).sum()
        if group.rank == 1:
            def fails(g):
                raise Mine("of rank 1")

            net.weight.register_hook(fails)
        loss.backward()

    first, second = on_ranks(2, body)
    assert isinstance(second, Mine) and isinstance(first, yoke.CancelledError)
    assert "of rank 1" in str(first)


def test_inputs_of_backward_are_no_parameters_of_a_data_parallel_module():
    def body(group):
        net, ddp = wrapped(group)
        loss = ddp(yoke.ones((1, 2))).sum()
        with pytest.raises(yoke.UnsupportedError, match="'inputs' has the tensor .*data parallel module.*leave 'inputs' out"):
            loss.backward(inputs=[net.weight])
        loss.backward()
        return net.weight.grad.tolist()

    assert on_ranks(2, body) == [[[1.0, 1.0]]] * 2


def test_a_function_of_a_script_takes_part():
    class Twice(yoke.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def body(group):
        net, ddp = wrapped(group)
        Twice.apply(ddp(yoke.full((1, 2), group.rank + 1.0))).sum().backward()
        return net.weight.grad.tolist()

    assert on_ranks(2, body) == [[[3.0, 3.0]]] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_runs_hooks_and_functions():
    x = yoke.ones(2).requires_grad_()
    seen = []
    x.register_hook(seen.append)
    loss = (x * 3).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            loss.backward()
            x.register_hook(lambda g: g * 2)
            (x * 3).sum().backward()
            os._exit(0 if len(seen) == 2 and x.grad.tolist() == [9.0, 9.0] else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0 and not seen
