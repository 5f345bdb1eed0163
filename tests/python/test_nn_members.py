"""Members of modules by name, and containers by key."""

import copy
import pickle
from collections import OrderedDict

import pytest

import yoke
from yoke import nn


def net():
    inner = nn.Sequential(OrderedDict([("up", nn.Linear(2, 3)), ("act", nn.ReLU())]))
    outer = nn.Sequential(OrderedDict([("body", inner), ("norm", nn.BatchNorm1d(3))]))
    return outer


# ---- Names of members -----------------------------------------------------------------------------------------------


def test_members_are_found_by_dotted_names():
    outer = net()
    assert outer.get_submodule("") is outer and outer.get_submodule("body.up") is outer.body.up
    assert outer.get_parameter("body.up.weight") is outer.body.up.weight
    assert outer.get_buffer("norm.running_mean") is outer.norm.running_mean
    assert all(outer.get_submodule(name) is module for name, module in outer.named_modules())


@pytest.mark.parametrize("method, target, told", [
    ("get_submodule", "body.upp", "argument 'target' is 'body.upp', but Sequential has no module 'upp'; did you mean 'up'?"),
    ("get_submodule", "body.up.x", "but Linear has no module 'x'; there is none"),
    ("get_submodule", "tail", "but Sequential has no module 'tail'; there are body, norm"),
    ("get_parameter", "body.up.wieght", "but Linear has no parameter 'wieght'; did you mean 'weight'?"),
    ("get_parameter", "norm.running_mean", "but BatchNorm1d has no parameter 'running_mean'; there are weight, bias"),
    ("get_buffer", "", "but Sequential has no buffer ''; there is none"),
])
def test_names_without_a_member_are_refused(method, target, told):
    for kind in (yoke.ValueError, AttributeError):
        with pytest.raises(kind) as caught:
            getattr(net(), method)(target)
        assert told in str(caught.value) and str(caught.value).startswith(f"{method}(): ")
    with pytest.raises(yoke.TypeError, match=rf"{method}\(\): argument 'target' is 3; a string is needed"):
        getattr(net(), method)(3)


def test_children_have_names_and_come_once():
    act = nn.ReLU()
    layers = nn.Sequential(nn.Linear(2, 2), act, act)
    assert [name for name, _ in layers.named_children()] == ["0", "1"] and len(list(layers.children())) == 2
    assert len(layers) == 3 and list(layers) == [layers[0], act, act]
    assert [name for name, _ in layers.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]
    assert [name for name, _ in layers.named_modules(prefix="p", remove_duplicate=False)] == ["p", "p.0", "p.1", "p.2"]


def test_names_have_a_prefix_and_may_be_the_modules_own_or_all():
    outer = net()
    outer.own = nn.Parameter(yoke.ones(1))
    outer.tied = outer.own
    assert [name for name, _ in outer.named_parameters("net", False)] == ["net.own"] and list(outer.parameters(recurse=False)) == [outer.own]
    assert [name for name, _ in outer.named_parameters(recurse=False, remove_duplicate=False)] == ["own", "tied"]
    assert [name for name, _ in outer.norm.named_buffers(prefix="n")] == [f"n.{each}" for each in ("running_mean", "running_var", "num_batches_tracked")]
    assert list(outer.buffers(recurse=False)) == [] and len(list(outer.buffers())) == 3


def test_modules_are_added_by_name():
    module = nn.Module()
    layer = nn.Linear(1, 1)
    module.add_module("layer", layer)
    module.register_module("other", nn.ReLU())
    module.add_module("layer", layer)
    assert [name for name, _ in module.named_children()] == ["layer", "other"] and module.layer is layer
    module.add_module("layer", None)
    assert module.layer is None and [name for name, _ in module.named_children()] == ["other"]


@pytest.mark.parametrize("name, value, kind, told", [
    ("a.b", nn.ReLU(), yoke.ValueError, "argument 'name' is 'a.b'; a name that is not empty and has no dot is needed"),
    ("", nn.ReLU(), yoke.ValueError, "argument 'name' is ''"),
    (3, nn.ReLU(), yoke.TypeError, "argument 'name' is 3; a string is needed"),
    ("forward", nn.ReLU(), yoke.ValueError, "'forward' is an attribute of Linear; choose another name"),
    ("weight", nn.ReLU(), yoke.ValueError, "'weight' is a parameter of this Linear"),
    ("inner", print, yoke.TypeError, "argument 'module' is of type builtin_function_or_method; a Module or None is needed"),
])
def test_modules_under_wrong_names_are_refused(name, value, kind, told):
    with pytest.raises(kind) as caught:
        nn.Linear(1, 1).add_module(name, value)
    assert str(caught.value).startswith("add_module(): ") and told in str(caught.value)


def test_names_of_pytorch_that_modules_do_not_have_come_with_advice():
    layer = nn.Linear(1, 1)
    with pytest.raises(AttributeError, match="'Linear' has no attribute 'register_backward_hook'; write register_full_backward_hook"):
        layer.register_backward_hook
    assert not hasattr(layer, "share_memory")
    with pytest.raises(AttributeError, match="'Linear' has no attribute 'wieght'$"):
        layer.wieght


# ---- Containers -----------------------------------------------------------------------------------------------------


def test_a_sequence_of_named_modules():
    layers = net()
    assert sorted(layers.state_dict())[:2] == ["body.up.bias", "body.up.weight"] and layers(yoke.ones(4, 2)).shape == (4, 3)
    assert nn.Sequential({"a": nn.ReLU()}).a is not None and "(body): Sequential(" in repr(layers)
    for wrong, told in (({"a": 1}, r"Sequential\(\): argument 0 must be a Module, not int"), ({"append": nn.ReLU()}, "'append' is an attribute"), ({"a.b": nn.ReLU()}, "no dot")):
        with pytest.raises(yoke.Error, match=told):
            nn.Sequential(wrong)


def test_slices_of_a_sequence_keep_names_and_those_of_a_list_do_not():
    layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    part = layers[1:]
    assert list(part._modules) == ["1", "2"] and len(part.append(nn.Tanh())) == 3 and isinstance(part[-1], nn.Tanh)
    assert list(nn.ModuleList(layers)[1:]._modules) == ["0", "1"]


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *modules: nn.ModuleList(modules)], ids=["Sequential", "ModuleList"])
def test_modules_in_order_are_replaced_inserted_and_removed(kind):
    a, b, c, d = nn.Linear(1, 1), nn.ReLU(), nn.Tanh(), nn.SiLU()
    layers = kind(a, b)
    layers[-1] = c
    assert list(layers) == [a, c] and list(layers._modules) == ["0", "1"]
    layers.insert(0, b)
    layers += [d]
    assert [type(each) for each in layers + [a]] == [nn.ReLU, nn.Linear, nn.Tanh, nn.SiLU, nn.Linear] and len(layers) == 4
    assert list(layers) == [b, a, c, d] and list(layers._modules) == ["0", "1", "2", "3"]
    assert layers.pop() is d and layers.pop(0) is b and "0.weight" in layers.state_dict()
    del layers[:1]
    assert list(layers) == [c] and list(layers._modules) == ["0"]
    for wrong in (lambda: layers[5], lambda: layers.pop(5), lambda: layers.__setitem__(5, a), lambda: layers.__delitem__(5)):
        with pytest.raises(yoke.IndexError, match="index 5 is out of range for 1 modules"):
            wrong()
    with pytest.raises(yoke.TypeError, match="argument 0 must be a Module, not int"):
        layers[0] = 3


def test_modules_by_key():
    heads = nn.ModuleDict({"a": nn.Linear(2, 1), "keys": nn.Linear(2, 2)})
    heads["b"] = nn.ReLU()
    heads.update([("c", nn.Tanh())])
    assert list(heads) == list(heads.keys()) == ["a", "keys", "b", "c"] and len(heads) == 4 and "a" in heads and "z" not in heads
    assert dict(heads.items())["a"] is heads["a"] is heads.a and list(heads.values())[2] is heads["b"]
    assert "keys.weight" in heads.state_dict() and len(list(heads.parameters())) == 4
    assert isinstance(heads.pop("b"), nn.ReLU)
    del heads["c"]
    assert list(copy.deepcopy(heads)) == list(pickle.loads(pickle.dumps(heads))) == ["a", "keys"]
    for kind in (KeyError, yoke.IndexError):
        with pytest.raises(kind) as caught:
            heads["z"]
        assert str(caught.value) == "ModuleDict: there is no key 'z'; there are ['a', 'keys']"
    heads.clear()
    assert len(heads) == 0


def test_parameters_in_order_and_by_key():
    scales = nn.ParameterList([yoke.ones(2), nn.Parameter(yoke.zeros(3))])
    scales.append(yoke.ones(1)).extend([yoke.ones(4)])
    scales += [yoke.ones(5)]
    assert len(scales) == 5 and all(isinstance(each, nn.Parameter) and each.requires_grad for each in scales)
    assert [name for name, _ in scales.named_parameters()] == ["0", "1", "2", "3", "4"] and scales[-1] is scales[4]
    scales[0] = yoke.zeros(7)
    assert scales[0].shape == (7,) and [each.shape for each in scales[1:3]] == [(3,), (1,)]
    assert "ParameterList([7], [3]" in repr(scales)
    by_key = nn.ParameterDict({"a": yoke.ones(2)})
    by_key["b"] = nn.Parameter(yoke.ones(1))
    by_key.update({"c": yoke.ones(1)})
    assert list(by_key) == ["a", "b", "c"] and by_key["a"] is by_key.a and by_key.get("z") is None and "b" in by_key and len(by_key) == 3
    assert sorted(by_key.state_dict()) == ["a", "b", "c"] and dict(by_key.items()).keys() == set(by_key.keys()) and len(list(by_key.values())) == 3
    by_key.pop("b")
    del by_key["c"]
    with pytest.raises(KeyError, match="ParameterDict: there is no key 'c'"):
        by_key["c"]
    by_key.clear()
    with pytest.raises(yoke.UnsupportedError, match="ParameterList has no forward"):
        scales(1)


@pytest.mark.parametrize("make, kind, told", [
    (lambda: nn.ModuleDict({"a": 1}), yoke.TypeError, r"ModuleDict\(\): the value of 'a' is 1; a Module is needed"),
    (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), yoke.ValueError, "no dot"),
    (lambda: nn.ModuleDict([nn.ReLU()]), yoke.TypeError, "argument 'modules' has a value of type ReLU; pairs of key and value, or a dict of modules, are needed"),
    (lambda: nn.ModuleDict(5), yoke.TypeError, "argument 'modules' is 5; a sequence of pairs"),
    (lambda: nn.ModuleDict({3: nn.ReLU()}), yoke.TypeError, "'name' is 3; a string is needed"),
    (lambda: nn.ParameterList([3]), yoke.TypeError, r"ParameterList\(\): 3 is no tensor; a Parameter, or a tensor"),
    (lambda: nn.ParameterList(yoke.ones(2)), yoke.TypeError, r"write \[tensor\]"),
    (lambda: nn.ParameterList()[0], yoke.IndexError, "index 0 is out of range for 0 parameters"),
    (lambda: nn.ParameterDict({"a": None}), yoke.TypeError, "None is no tensor"),
    (lambda: nn.Unflatten(1, 4), yoke.TypeError, "'unflattened_size' is 4; a sequence of lengths is needed"),
    (lambda: nn.Unflatten(1, (2, 2))(yoke.ones(3, 5)), yoke.ValueError, "unflatten"),
])
def test_wrong_entries_are_named(make, kind, told):
    with pytest.raises(kind, match=told):
        make()


def test_layers_of_shapes():
    x = yoke.arange(12, dtype=yoke.float32).reshape(2, 6)
    assert nn.Unflatten(1, (2, 3))(x).shape == (2, 2, 3) and nn.Unflatten(-1, [3, -1])(x).shape == (2, 3, 2)
    assert nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Flatten())(x).tolist() == x.tolist()
    assert nn.Identity()(x) is x and nn.Identity(54, unused=True)(x) is x
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
