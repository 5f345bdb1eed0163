"""Outputs of DistributedDataParallel have the structure of the module's outputs. Ranks are threads."""
import dataclasses
from typing import NamedTuple

import pytest

import yoke
from yoke import _outputs, nn
from test_parallel import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:DistributedDataParallel. the ranks began with different values")


class Pair(tuple):
    """Tuple made of two elements, with an attribute beside them."""

    def __new__(cls, first, second):
        made = super().__new__(cls, (first, second))
        made.lengths = [3]
        return made


class Two(NamedTuple):
    first: yoke.Tensor
    second: yoke.Tensor


class Named(Two):
    """Has attributes, because it does not declare slots."""


class Items(list):
    pass


class Table(dict):
    pass


def named(first, second):
    made = Named(first, second)
    made.lengths = [3]
    return made


def items(first, second):
    made = Items([first, second])
    made.lengths = [3]
    return made


def table(first, second):
    made = Table({0: first, 1: second})
    made.lengths = [3]
    return made


class Gives(nn.Module):
    def __init__(self, give):
        self.layer, self.give = nn.Linear(2, 1), give

    def forward(self, x):
        return self.give(self.layer(x), x)


def given_by(give, read):
    """Returns, for each rank, `read` of the module's own output and `read` of the wrapper's output."""
    def body(group):
        ddp = yoke.DistributedDataParallel(Gives(give), group)
        x = yoke.ones((1, 2)).requires_grad_()
        return read(ddp.module(x), x), read(ddp(x), x)
    return on_ranks(2, body)


@pytest.mark.parametrize("form", [Pair, named, items, table])
def test_attributes_of_a_container_are_in_its_copy_too(form):
    for plain, tied in given_by(form, lambda given, x: (type(given), given.lengths, given[1] is x)):
        assert tied == (*plain[:2], False)


def test_what_is_in_a_class_that_computes_fields_is_found():
    @dataclasses.dataclass
    class Lazy:
        first: object
        later: object = dataclasses.field(init=False, repr=False)

        def __getattr__(self, name):
            raise RuntimeError(f"not computed: {name}")

    for plain, tied in given_by(lambda y, x: Lazy(y), lambda given, x: given.first.sum().backward()):
        assert plain is tied is None

    def body(group):
        ddp = yoke.DistributedDataParallel(Gives(lambda y, x: Lazy(x)), group)
        x = yoke.ones((1, 2)).requires_grad_()
        return ddp(x).first is x
    assert on_ranks(2, body) == [True, True]  # a Lazy cannot be copied


def test_what_cannot_be_looked_into_is_given_as_it_is():
    class Closed(dict):
        def items(self):
            raise RuntimeError("nobody looks into it")

    assert given_by(lambda y, x: Closed(y=y), lambda given, x: type(given)) == [(Closed, Closed)] * 2


@pytest.mark.parametrize("trains", [True, False])
def test_a_closed_tensor_is_passed_by(trains):
    def give(y, x):
        x, other = (y, y * 2) if trains else (x.detach(), x.detach() * 2)
        other.close()
        return x, [other]
    assert given_by(give, lambda given, x: (given[1][0].closed, given[0].requires_grad)) == [((True, trains), (True, True))] * 2


def test_numbers_and_texts_are_told_apart_before_anything_looks_into_them(monkeypatch):
    asked, parts = [], _outputs._parts

    def noted(value):
        asked.append(type(value))
        return parts(value)
    monkeypatch.setattr(_outputs, "_parts", noted)
    x, other = yoke.ones((1,)), yoke.ones((1,))
    given = [x, {"a": 1, "b": 1.5, "c": "text"}, (None, True, b"", 1j)]
    assert _outputs.tensors_in(given) == [x] and asked == [list, dict, tuple]
    made = _outputs.replaced(given, {id(x): other})
    assert made[0] is other and made[1] is given[1] and asked[3:] == [list, dict, tuple]
