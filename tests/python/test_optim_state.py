"""load_state_dict() of an optimizer: refused states, by name and without a change, and accepted states."""

import pytest

import yoke
from yoke import nn, optim


def stepped(make, dtype=yoke.float32):
    """An optimizer of two groups, all of whose parameters but the last have been stepped."""
    params = [nn.Parameter(yoke.tensor([1.0, 2.0], dtype=dtype)) for _ in range(3)]
    optimizer = make([{"params": params[:2]}, {"params": params[2:]}])
    for p in params[:2]:
        p.grad = yoke.ones(2, dtype=dtype)
    optimizer.step()
    return optimizer


def adamw(params):
    return optim.AdamW(params, lr=0.5)


def sgd(params):
    return optim.SGD(params, lr=0.5, momentum=0.9)


def now(optimizer):
    saved = optimizer.state_dict()
    return {n: {k: v.tolist() for k, v in s.items()} for n, s in saved["state"].items()}, saved["param_groups"]


def copied(optimizer):
    saved = optimizer.state_dict()
    return {"state": {n: dict(s) for n, s in saved["state"].items()}, "param_groups": [dict(g) for g in saved["param_groups"]]}


def refused(optimizer, state, *words, error=yoke.ValueError):
    before = now(optimizer)
    with pytest.raises(yoke.Error) as raised:
        optimizer.load_state_dict(state)
    assert type(raised.value) is error, raised.value
    for word in ("load_state_dict", *words):
        assert word in str(raised.value), raised.value
    assert now(optimizer) == before


STEPS = [-1, 1.5, float("nan"), float("inf"), yoke.tensor(-1.0), yoke.tensor(2.5), yoke.tensor(float("nan"))]


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_a_step_count_that_no_step_leaves_is_refused(steps):
    optimizer = stepped(adamw)
    state = copied(optimizer)
    state["state"][1]["step"] = steps
    shown = steps if isinstance(steps, (int, float)) else steps.item()
    refused(optimizer, state, '"step" of parameter 1 of group 0', "AdamW", f"{shown:g}", "finite whole number of at least 0")


@pytest.mark.parametrize("name", ["exp_avg", "exp_avg_sq", "step"])
def test_a_state_that_lacks_something_is_refused(name):
    optimizer = stepped(adamw)
    for lacking in ("del", None):
        state = copied(optimizer)
        state["state"][1].pop(name) if lacking else state["state"][1].update({name: None})
        refused(optimizer, state, "parameter 1 of group 0", f"has no '{name}'", "exp_avg, exp_avg_sq, step", "state[1]")


def test_a_state_without_its_master_is_refused():
    optimizer = stepped(lambda params: optim.SGD(params, lr=0.5, momentum=0.9, master_weights=True), yoke.bfloat16)
    state = copied(optimizer)
    del state["state"][0]["master"]
    refused(optimizer, state, "parameter 0 of group 0", "has no 'master'")
    state = copied(optimizer)
    del state["state"][0]["momentum_buffer"]  # the buffer begins with the next step
    optimizer.load_state_dict(state)
    assert set(now(optimizer)[0][0]) == {"master"}


@pytest.mark.parametrize("name, value, shown", [("foo", 3.0, "3.0"), ("max_exp_avg_sq", yoke.ones(2), "shape [2]"),
                                                ("momentum_buffer", yoke.ones(2), "float32 tensor")])
def test_a_state_that_the_optimizer_has_no_use_for_is_refused(name, value, shown):
    optimizer = stepped(adamw)
    state = copied(optimizer)
    state["state"][0][name] = value
    refused(optimizer, state, "parameter 0 of group 0", f"'{name}'", shown, "AdamW has no such state")


def test_the_state_of_another_kind_is_refused():
    for one, other in ((sgd, adamw), (adamw, sgd), (lambda p: optim.SGD(p, lr=1.0), adamw)):
        refused(stepped(one), copied(stepped(other)), "group 0")


@pytest.mark.parametrize("name, value, fits", [
    ("amsgrad", True, False), ("amsgrad", False, True), ("maximize", None, True), ("maximize", True, False),
    ("foreach", True, True), ("fused", True, True), ("capturable", False, True), ("differentiable", False, True),
    ("decoupled_weight_decay", True, True), ("decoupled_weight_decay", False, False), ("dampening", 0, True),
    ("dampening", 0.5, False), ("initial_lr", 0.5, True), ("rule", "x", False)])
def test_an_option_that_is_not_here_must_be_off_or_without_effect(name, value, fits):
    optimizer = stepped(adamw)
    state = copied(optimizer)
    state["param_groups"][1].update({name: value, "lr": 0.25})
    if fits:
        optimizer.load_state_dict(state)
        assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]
    else:
        refused(optimizer, state, "group 1", f"'{name}', {str(value).lower() if value is True or value is False else repr(value)}", "AdamW", "betas")


def test_options_that_are_missing_are_refused_and_a_scripts_own_go_along():
    optimizer = stepped(adamw)
    state = copied(optimizer)
    del state["param_groups"][0]["betas"]
    refused(optimizer, state, "group 0", "no option 'betas'")
    optimizer.param_groups[0]["tag"] = "decoder"
    state = copied(optimizer)
    optimizer.param_groups[0]["tag"] = ""
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["tag"] == "decoder"
    refused(stepped(adamw), state, "'tag', 'decoder'")


def test_what_torch_saves_is_taken():
    optimizer = stepped(adamw)
    group = {"lr": 0.125, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False, "maximize": False,
             "foreach": None, "capturable": False, "differentiable": False, "fused": None, "decoupled_weight_decay": True}
    one = {"step": yoke.tensor(3.0), "exp_avg": yoke.ones(2), "exp_avg_sq": yoke.ones(2)}
    optimizer.load_state_dict({"state": {0: one, 2: one}, "param_groups": [{**group, "params": [0, 1]},
                                                                           {**group, "params": [2]}]})
    state, groups = now(optimizer)
    assert set(state) == {0, 2} and state[2]["step"] == 3.0 and groups[1]["lr"] == 0.125
    plain = optim.SGD([nn.Parameter(yoke.ones(2))], lr=1.0)
    plain.load_state_dict({"state": {0: {"momentum_buffer": None}}, "param_groups": [
        {"lr": 0.5, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False,
         "foreach": None, "differentiable": False, "fused": None, "params": [0]}]})
    assert plain.param_groups[0]["lr"] == 0.5 and not now(plain)[0]


@pytest.mark.parametrize("change, words, error", [
    (lambda s: None, ["'state_dict' is none", "it must be a dict"], yoke.TypeError),
    (lambda s: {}, ["'param_groups' is missing", "param_groups, state"], yoke.ValueError),
    (lambda s: {**s, "param_groups": 3}, ["'param_groups' is 3"], yoke.TypeError),
    (lambda s: {**s, "param_groups": [{}, {}]}, ["'params' is missing"], yoke.ValueError),
    (lambda s: {**s, "state": None}, ["'state' is none"], yoke.TypeError),
    (lambda s: {**s, "state": {0: 3}}, ["state[0], of parameter 0 of group 0, is 3"], yoke.TypeError),
    (lambda s: {**s, "state": {"0": {}, 9: {}}}, ["parameter '0'", "there are 3"], yoke.ValueError),
    (lambda s: {**s, "state": {0: {**s["state"][0], "exp_avg": [1.0]}}}, ["of parameter 0", "'exp_avg'", "list"], yoke.TypeError),
    (lambda s: {**s, "state": {1: {**s["state"][1], "exp_avg": yoke.ones(3)}}}, ['"exp_avg" of parameter 1', "[3]", "[2]"],
     yoke.ValueError),
    (lambda s: {**s, "state": {0: {**s["state"][0], "step": 10**400}}}, ["step"], yoke.ValueError)])
def test_what_is_no_state_of_an_optimizer_is_refused(change, words, error):
    optimizer = stepped(adamw)
    refused(optimizer, change(copied(optimizer)), *words, error=error)
