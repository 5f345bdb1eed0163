"""yoke.grad through outputs of DistributedDataParallel equals yoke.grad through the plain module's outputs. Ranks are threads."""
import numpy as np
import pytest

import yoke
from yoke import nn
from test_parallel import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")


class Gives(nn.Module):
    """Module with a body and a head, and a function for its output."""

    def __init__(self, give):
        yoke.manual_seed(2)
        self.body, self.head, self.give = nn.Linear(4, 4, dtype=yoke.float64), nn.Linear(4, 2, dtype=yoke.float64), give

    def forward(self, x):
        return self.give(self, x)


def with_feature(module, x):
    feature = module.body(x)
    return module.head(yoke.tanh(feature)), feature


def with_parts(module, x):
    first, second = module.body(x).chunk(2, 1)  # results of the same op
    return (first * second).sum(), first, second


def given_back(module, x):
    return module.head(yoke.tanh(x)), x


def parameter_given_back(module, x):
    return module.head(module.body(x)), module.body.weight


def bare(module, x):
    return x * 2, x  # no parameter


def written(module, x):
    feature = module.body(x)
    logits = module.head(feature)
    feature.mul_(2)
    return logits, module.head(feature), feature


def input_of(group, is_made):
    x = yoke.tensor(np.random.default_rng(group).normal(size=(3, 4))).requires_grad_()
    return x * 3 if is_made else x


def loss(given):
    return sum((each ** 2).sum() * (k + 1) for k, each in enumerate(given))


def of_all(model, x):
    given = model(x)
    return yoke.grad(loss(given), list(given))


def of_the_first_alone(model, x):
    first, *others = model(x)
    return yoke.grad((first ** 2).sum(), others)


def each_by_itself(model, x):
    return [yoke.grad(each, [each], [yoke.full(each.shape, 3., dtype=yoke.float64)])[0] for each in model(x)]


def root_and_input(model, x):
    first, *others = model(x)
    return yoke.grad([first.sum(), others[-1]], [others[-1], x], [None, yoke.ones(others[-1].shape, dtype=yoke.float64)])


def twice(model, x):
    first, *others = model(x)
    total = (first ** 3).sum()
    return yoke.grad(total, [*others, x], retain_graph=True) + yoke.grad(total, [*others, x, *model.parameters()][:-1])


def once_too_often(model, x):
    first, *others = model(x)
    total = (first ** 3).sum()
    yoke.grad(total, [x])
    return yoke.grad(total, [x])


def in_a_scope(model, x):
    given = yoke.checkpoint(model, x)
    return yoke.grad(loss(given), [*given, x])


def of_what_was_written(model, x):
    first, *others = model(x)
    others[-1].mul_(2)
    return yoke.grad(loss([first, *others]), [*others])


def of_what_is_apart(model, x):
    first, *others = model(x)
    return yoke.grad((yoke.ones((2,), dtype=yoke.float64).requires_grad_() * 2).sum(), others)


GIVEN = [with_feature, with_parts, given_back, parameter_given_back, bare, written]
ASKED = [of_all, of_the_first_alone, each_by_itself, root_and_input, twice, once_too_often, in_a_scope, of_what_was_written, of_what_is_apart]


def outcome(ask, model, x):
    try:
        return [each.tolist() for each in ask(model, x)]
    except (yoke.ValueError, yoke.StateError, yoke.UnsupportedError) as error:
        return type(error), str(error).replace("DistributedDataParallel", "")


def agree(found, want):
    if isinstance(want, tuple):
        assert found == want
    else:
        assert isinstance(found, list) and len(found) == len(want), (found, want)
        assert all(np.allclose(one, other, rtol=1e-12) for one, other in zip(found, want))


# A tensor that the module gives back is a view, which cannot be written.
@pytest.mark.parametrize("is_made", [False, True], ids=["leaf", "made"])
@pytest.mark.parametrize("give, ask", [(give, ask) for give in GIVEN for ask in ASKED
                                       if ask is not of_what_was_written or give not in (given_back, parameter_given_back, bare)])
def test_it_has_all_that_the_plain_module_has(give, ask, is_made):
    def body(group):
        ddp = yoke.DistributedDataParallel(Gives(give), group)
        return outcome(ask, ddp, input_of(group.rank, is_made))
    found = on_ranks(2, body)
    for rank, each in enumerate(found):
        agree(each, outcome(ask, Gives(give), input_of(rank, is_made)))


class HandsOn(nn.Module):
    def __init__(self):
        self.unused = nn.Linear(1, 1)

    def forward(self, given):
        return given


def chain(wrap, give):
    """Chains three modules. The second may give back the first's output, and the third gives back the second's output."""
    first, second, third = (wrap(each) for each in (Gives(with_feature), Gives(give), HandsOn()))
    return lambda x: third(second(first(x)[1]))


@pytest.mark.parametrize("give", [with_feature, given_back])
@pytest.mark.parametrize("ask", [of_all, of_the_first_alone, each_by_itself, root_and_input, in_a_scope])
def test_so_it_has_through_several(give, ask):
    def body(group):
        return outcome(ask, chain(lambda each: yoke.DistributedDataParallel(each, group), give), input_of(group.rank, False))
    for rank, each in enumerate(on_ranks(2, body)):
        agree(each, outcome(ask, chain(lambda each: each, give), input_of(rank, False)))


def test_the_tape_tells_what_it_keeps_as_of_the_plain_module():
    def body(group):
        ddp = yoke.DistributedDataParallel(Gives(lambda module, x: yoke.tanh(module.body(x))), group)
        return [each[:2] for each in yoke.saved_tensors(ddp(input_of(0, False)))]
    want = [each[:2] for each in yoke.saved_tensors(yoke.tanh(input_of(0, False)))]
    assert want and on_ranks(2, body) == [want, want]
