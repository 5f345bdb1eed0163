"""Outputs of DistributedDataParallel: a backward through an output takes part, even if the rank used no parameter."""
import dataclasses
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest

import yoke
from yoke import nn
from test_parallel import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")


@dataclasses.dataclass(frozen=True)
class Answer:
    loss: yoke.Tensor
    text: str = "no tensor"


class Two(NamedTuple):
    first: yoke.Tensor
    second: list


FORMS = {
    "tensor": (lambda y: y, lambda given: given), "tuple": (lambda y: (1, y), lambda given: given[1]), "list": (lambda y: [[y]], lambda given: given[0][0]),
    "dict": (lambda y: {"loss": y, "n": 3}, lambda given: given["loss"]), "dataclass": (lambda y: Answer(y), lambda given: given.loss),
    "named": (lambda y: Two(y, [y, None]), lambda given: given.second[0])}


class Gate(nn.Module):
    """Module whose layers depend on the batch."""

    def __init__(self, form="tensor"):
        self.a, self.b, self.form = nn.Linear(4, 4, dtype=yoke.float64), nn.Linear(4, 4, dtype=yoke.float64), form

    def forward(self, x, uses):
        return FORMS[self.form][0](self.b(self.a(x)) if uses else x)


def gate(form="tensor"):
    yoke.manual_seed(0)
    return Gate(form)


def inputs(rank, step):
    return yoke.tensor(np.random.default_rng(100 * rank + step).normal(size=(3, 4)))


def uses(rank, step):
    return not (rank == 1 and step in (0, 2))


def expected(steps, size=2):
    """Returns the gradients of a single process, step by step."""
    model, told = gate(), []
    for step in range(steps):
        model.zero_grad()
        for rank in range(size):
            (model(inputs(rank, step).requires_grad_(), uses(rank, step)).pow(2).sum() / size).backward()
        told.append([each.grad.numpy() for each in model.parameters()])
        take_step(model)
    return told


def take_step(model):
    with yoke.no_grad():
        for each in model.parameters():
            each.sub_(each.grad * 0.01)


def trained(group, loss_of, form="tensor", set_to_none=True, steps=4):
    model, told = gate(form), []
    ddp = yoke.DistributedDataParallel(model, group, bucket_mb=1e-4)
    for step in range(steps):
        model.zero_grad(set_to_none=set_to_none)
        loss_of(ddp, inputs(group.rank, step), uses(group.rank, step)).backward()
        told.append([np.array(each.grad.numpy()) for each in model.parameters()])
        take_step(model)
    return told


def groups():
    return yoke.comm.init_all(["cpu"], size=2, timeout=5.)  # a wrong step fails soon


def close(told, want):
    assert isinstance(told, list), told
    for found, expected_ in zip(told, want, strict=True):
        for one, other in zip(found, expected_, strict=True):
            assert np.abs(one - other).max() < 1e-12


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_a_rank_that_uses_no_parameter_takes_part_with_zeros(form, set_to_none):
    def loss_of(ddp, x, is_used):
        return FORMS[form][1](ddp(x.requires_grad_(), is_used)).pow(2).sum()
    for told in on_ranks(2, lambda group: trained(group, loss_of, form, set_to_none), groups()):
        close(told, expected(4))


def test_so_it_does_where_what_it_gave_requires_no_gradient():
    def loss_of(ddp, x, is_used):
        head = yoke.ones((4,), dtype=yoke.float64).requires_grad_()  # the loss requires a gradient through `head`
        return ddp(x, is_used).pow(2).sum() + head.sum()
    for told in on_ranks(2, lambda group: trained(group, loss_of), groups()):
        close(told, expected(4))


def test_what_is_not_recorded_stays_as_it_is():
    def body(group):
        ddp = yoke.DistributedDataParallel(gate("dict"), group)
        x = inputs(0, 0)
        with yoke.no_grad():
            assert ddp(x, False)["loss"] is x
        given = ddp(x.requires_grad_(), False)
        assert given["n"] == 3 and given["loss"].requires_grad and not given["loss"].is_leaf
        assert given["loss"].data_ptr() == x.data_ptr()
        layer = yoke.DistributedDataParallel(nn.Sequential(nn.Linear(4, 2)), group)
        made = layer(yoke.ones((0, 4)))
        made.sum().backward()
        assert made.shape == (0, 2) and layer.module[0].weight.grad.tolist() == [[0.] * 4] * 2
        return True
    assert on_ranks(2, body) == [True, True]


def test_within_no_sync_and_a_refused_backward_it_is_as_with_parameters():
    def body(group):
        ddp = yoke.DistributedDataParallel(gate(), group)
        x = inputs(0, 0).requires_grad_()
        with ddp.no_sync():
            ddp(x, False).sum().backward()
        group.monitored_barrier(30.)  # no rank fails before
        with pytest.raises(yoke.CancelledError if group.rank == 0 else yoke.ValueError) as caught:
            made = ddp(x, group.rank == 0)
            made.sum().backward() if group.rank == 0 else made.backward()
        return str(caught.value)
    first, second = on_ranks(2, body)
    assert "'gradient' is missing" in second and second in first and "rank 1 (host" in first, (first, second)


def test_a_structure_that_holds_itself_is_given_as_it_is_where_it_holds_no_tensor():
    class Holds(nn.Module):
        def __init__(self, has_tensor):
            self.layer, self.has_tensor = nn.Linear(2, 1), has_tensor

        def forward(self, x):
            given = [self.layer(x)] if self.has_tensor else ["none"]
            given.append(given)
            return given

    def body(group):
        plain, other = (yoke.DistributedDataParallel(Holds(each), group) for each in (False, True))
        given = plain(yoke.ones((1, 2)))
        assert given[1] is given
        other(yoke.ones((1, 2)))[0].sum().backward()
        return other.module.layer.weight.grad.tolist()
    assert on_ranks(2, body) == [[[1., 1.]]] * 2


class Gives(nn.Module):
    """Module with two layers, and a function of the first layer's result."""

    def __init__(self, give):
        yoke.manual_seed(5)
        self.layer, self.second, self.give, self.kept = nn.Linear(4, 4, dtype=yoke.float64), nn.Linear(4, 4, dtype=yoke.float64), give, None

    def forward(self, x):
        self.kept = self.layer(x)
        return self.give(self, self.kept)


GIVEN = {"what it keeps": lambda module, h: h, "a saved result": lambda module, h: yoke.tanh(h), "a result and its view": lambda module, h: (h, h[:, :2]),
         "a result and it in another shape": lambda module, h: (h, h.reshape(12)), "the same twice": lambda module, h: [h, h],
         "a parameter": lambda module, h: module.layer.weight, "a view of one": lambda module, h: module.layer.weight.transpose(0, 1)}
WRITES = {"not": lambda *given: None, "all of the first": lambda *given: given[0].mul_(2), "all of the last": lambda *given: given[-1].mul_(2)}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("give", GIVEN)
def test_writes_into_what_it_gave_are_as_without_it(give, write):
    def outcome(group=None):
        module = Gives(GIVEN[give])
        try:
            wrapped = module if group is None else yoke.DistributedDataParallel(module, group)
            given = wrapped(inputs(0, 1))
            given = given if isinstance(given, (tuple, list)) else (given,)
            WRITES[write](*given)
            loss = sum((each.pow(k + 2).sum() for k, each in enumerate(given)), module.kept.pow(2).sum())
            loss.backward()
        except (yoke.StateError, yoke.UnsupportedError, yoke.CancelledError):  # cancelled where the other rank was first
            return 0, None
        return loss.item(), [each.grad if each.grad is None else each.grad.tolist() for each in module.parameters()]
    want = outcome()
    for loss, gradients in on_ranks(2, outcome):
        assert loss == pytest.approx(want[0], rel=1e-12)
        assert (gradients is None) == (want[1] is None)
        for one, other in zip(gradients or [], want[1] or [], strict=True):
            assert (one is None) == (other is None) and (one is None or np.allclose(one, other, rtol=1e-12))


class Fixed(dict):
    def __setitem__(self, key, value):
        raise TypeError("read only")


@dataclasses.dataclass
class Single:
    value: object

    def __copy__(self):
        raise RuntimeError("no copies")


def nested(x):
    for _ in range(3000):
        x = (x,)
    return x


@pytest.mark.parametrize("form", [lambda x: time.struct_time([x] * 9), lambda x: Fixed(a=x), Single, nested], ids=["tuple", "dict", "dataclass", "deep"])
@pytest.mark.parametrize("trains", [True, False])
def test_what_cannot_be_built_anew_is_given_as_it_is(form, trains):
    class Former(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 1)

        def forward(self, x):
            self.given = form(self.layer(x) if trains else x)
            return self.given

    def body(group):
        ddp = yoke.DistributedDataParallel(Former(), group)
        return ddp(yoke.ones((1, 2))) is ddp.module.given
    assert on_ranks(2, body) == [True, True]


class Asks(nn.Module):
    """Module whose forward calls itself once."""

    def __init__(self):
        self.layer, self.meanwhile = nn.Linear(4, 4, dtype=yoke.float64), None

    def forward(self, x, depth=1):
        y = self.layer(x)
        if depth:
            self.meanwhile(depth)
        return y


def evaluates(ddp, depth):
    with yoke.no_grad():
        ddp(inputs(0, 0), depth - 1)


def evaluates_elsewhere(ddp, depth):
    other = threading.Thread(target=evaluates, args=(ddp, depth))
    other.start()
    other.join()


def recurs(ddp, depth):
    ddp(inputs(0, 0), depth - 1).mul_(2)


@pytest.mark.parametrize("meanwhile", [evaluates, evaluates_elsewhere, recurs])
def test_what_a_forward_made_is_its_own_whatever_forward_came_between(meanwhile):
    def body(group):
        ddp = yoke.DistributedDataParallel(Asks(), group)
        ddp.module.meanwhile = lambda depth: meanwhile(ddp, depth)
        made = ddp(inputs(0, 0), 2)
        made.mul_(2)
        made.sum().backward()
        return ddp.module.layer.bias.grad.tolist()
    assert on_ranks(2, body) == [[6.] * 4] * 2


def test_what_is_the_scripts_own_is_given_back_as_a_view_and_leads_nowhere_by_itself():
    class GivesBack(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(4, 4, dtype=yoke.float64)

        def forward(self, h):
            return {"own": h, "made": self.layer(h)}

    def body(group):
        ddp = yoke.DistributedDataParallel(GivesBack(), group)
        h = inputs(group.rank, 0).requires_grad_() * 2
        given = ddp(h)
        with pytest.raises(yoke.UnsupportedError, match="is a view"):
            given["own"].mul_(2)
        if group.rank == 0:
            h.pow(2).sum().backward()  # this rank alone: no other rank takes part
        group.barrier()
        ddp(inputs(group.rank, 0).requires_grad_() * 2)["own"].sum().backward()
        assert [each.grad for each in ddp.module.parameters()] == [None, None]
        given["made"].sum().backward()
        return ddp.module.layer.weight.grad.tolist()
    first, second = on_ranks(2, body, groups())
    assert isinstance(first, list) and first == second
