"""Wrong arguments of layers, optimizers, schedules, scalers and timers: an error of Yoke's names call and argument."""

import pytest

import yoke
from yoke import nn, optim

SCHEDULES = {"constant": {"factor": 1.0, "total_steps": 3}, "linear": {"start": 1.0, "end": 0.0, "total_steps": 3},
             "cosine": {"total_steps": 3, "min_lr": 0.0, "warmup_steps": 1}, "step": {"step_size": 3, "gamma": 0.5},
             "one_cycle": {"max_lr": 1.0, "total_steps": 3, "pct_start": 0.5, "div_factor": 2.0, "final_div_factor": 2.0}}


def sgd(lr=1.0):
    return optim.SGD([nn.Parameter(yoke.ones(2))], lr=lr)


def refused(call, *words, error=yoke.TypeError):
    with pytest.raises(yoke.Error) as raised:
        call()
    assert type(raised.value) is error, raised.value
    for word in words:
        assert word in str(raised.value), raised.value


# ---- Schedules -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, name", [(kind, name) for kind, options in SCHEDULES.items() for name in options])
def test_a_schedule_names_an_option_that_is_no_number(kind, name):
    make, options = getattr(optim.schedule, kind), SCHEDULES[kind]
    for wrong, shown in (("x", "'x'"), (None, "None"), ([1], "list")):
        optimizer = sgd()
        refused(lambda: make(optimizer, **{**options, name: wrong}), f"schedule.{kind}()", f"'{name}' is", shown, "number")
        assert optimizer.param_groups[0]["lr"] == 1.0
    schedule = make(sgd(), **options)
    before = schedule.state_dict()
    refused(lambda: schedule.load_state_dict({**before, name: "x"}), "load_state_dict", f"'{name}' is 'x'")
    assert schedule.state_dict() == before


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_names_an_optimizer_and_a_state_that_are_none(kind):
    make, options = getattr(optim.schedule, kind), SCHEDULES[kind]
    refused(lambda: make(None, **options), f"schedule.{kind}()", "'optimizer'", "NoneType")
    schedule = make(sgd(), **options)
    before = schedule.state_dict()
    refused(lambda: schedule.load_state_dict(None), "load_state_dict", "'state_dict' is none")
    refused(lambda: schedule.load_state_dict({}), "load_state_dict", "is missing", "last_step", error=yoke.ValueError)
    for name, wrong, error in (("base_lrs", None, yoke.TypeError), ("base_lrs", ["x"], yoke.TypeError),
                               ("last_step", -1, yoke.ValueError), ("last_step", "x", yoke.TypeError)):
        refused(lambda: schedule.load_state_dict({**before, name: wrong}), "load_state_dict", f"'{name}'", error=error)
    assert schedule.state_dict() == before


def test_a_schedule_takes_whole_numbers_of_numpy_and_no_larger_ones_than_fit():
    import numpy as np
    assert optim.schedule.cosine(sgd(), np.int64(4), min_lr=np.float32(0.5)).total_steps == 4
    refused(lambda: optim.schedule.cosine(sgd(), 2**70), "schedule.cosine()", "'total_steps'", "64 bits", error=yoke.ValueError)
    refused(lambda: optim.schedule.step(sgd(), 3, 10**400), "schedule.step()", "'gamma'", error=yoke.ValueError)


# ---- Optimizers, averages, clipping ----------------------------------------------------------------------------------

@pytest.mark.parametrize("call, words", [
    (lambda: optim.SGD(None, lr=1), ["SGD", "'params' is None", "sequence of tensors"]),
    (lambda: optim.AdamW(nn.Linear(2, 2)), ["AdamW", "'params'", "Linear"]),
    (lambda: optim.Adam([{"params": None}]), ["Adam", "'params' is None"]),
    (lambda: optim.Adam("ab"), ["Adam", "'params' is 'ab'"]), (lambda: optim.Adam([3]), ["Adam", "'params'", "int"]),
    (lambda: sgd("x"), ["SGD", "'lr'", "str"]), (lambda: optim.EMA(None), ["EMA", "'params' is None"]),
    (lambda: optim.EMA([nn.Parameter(yoke.ones(2))], "x"), ["EMA", "'decay'", "str"]),
    (lambda: yoke.clip_grad_norm_(None, 1.0), ["clip_grad_norm_", "'parameters' is None"]),
    (lambda: yoke.clip_grad_norm_([None], 1.0), ["clip_grad_norm_", "'parameters'", "NoneType"])])
def test_optimizers_and_averages_name_what_is_wrong(call, words):
    refused(call, *words)


def test_an_average_names_what_is_wrong_with_its_state():
    ema = optim.EMA([nn.Parameter(yoke.ones(2))], 0.5)
    good = ema.state_dict()
    for state, word, error in ((None, "'state_dict' is none", yoke.TypeError), ({}, "'decay' is missing", yoke.ValueError),
                               ({**good, "averages": 3}, "'averages' is 3", yoke.TypeError),
                               ({**good, "averages": [3]}, "'averages' is 3", yoke.TypeError),
                               ({**good, "decay": "x"}, "'decay'", yoke.TypeError)):
        refused(lambda: ema.load_state_dict(state), word, error=error)
    assert ema.decay == 0.5


# ---- Loss scaling ----------------------------------------------------------------------------------------------------

def test_a_scaler_names_what_is_wrong():
    scaler = yoke.GradScaler()
    for wrong in ("x", [1]):
        refused(lambda: scaler.update(wrong), "update()", "'new_scale' is", "a number is needed")
    before = scaler.state_dict()
    refused(lambda: scaler.load_state_dict(None), "load_state_dict", "'state_dict' is none")
    refused(lambda: scaler.load_state_dict({**before, "scale": "x"}), "load_state_dict", "'scale'")
    assert scaler.state_dict() == before
    refused(lambda: yoke.GradScaler("x"), "GradScaler", "'init_scale'")


# ---- Layers ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("call, words", [
    (lambda x: nn.Linear(x, 2), ["Linear()", "in_features"]), (lambda x: nn.Linear(2, x), ["Linear()", "out_features"]),
    (lambda x: nn.Embedding(x, 2), ["Embedding()", "num_embeddings"]),
    (lambda x: nn.Embedding(2, x), ["Embedding()", "embedding_dim"]),
    (lambda x: nn.Embedding(2, 2, padding_idx=x), ["Embedding()", "padding_idx"]),
    (lambda x: nn.LayerNorm(x), ["LayerNorm()", "normalized_shape"]),
    (lambda x: nn.LayerNorm((2, x)), ["LayerNorm()", "normalized_shape"]),
    (lambda x: nn.RMSNorm(x), ["RMSNorm()", "normalized_shape"]),
    (lambda x: nn.GroupNorm(x, 2), ["GroupNorm()", "num_groups"]), (lambda x: nn.GroupNorm(2, x), ["GroupNorm()", "num_channels"]),
    (lambda x: nn.BatchNorm1d(x), ["BatchNorm1d()", "num_features"]),
    (lambda x: nn.BatchNorm2d(x), ["BatchNorm2d()", "num_features"]),
    (lambda x: nn.MultiheadAttention(x, 2), ["MultiheadAttention()", "embed_dim"]),
    (lambda x: nn.MultiheadAttention(2, x), ["MultiheadAttention()", "num_heads"]),
    (lambda x: nn.MultiheadAttention(2, 2, num_kv_heads=x), ["MultiheadAttention()", "num_kv_heads"]),
    (lambda x: nn.TransformerBlock(x, 2), ["TransformerBlock()", "width"]),
    (lambda x: nn.TransformerBlock(2, 2, hidden=x), ["TransformerBlock()", "hidden"])])
def test_layers_name_a_size_that_is_no_whole_number(call, words):
    refused(lambda: call("a"), *words, "'a'", "whole number")
    refused(lambda: call(2.5), *words, "2.5", "whole number", error=yoke.ValueError)


@pytest.mark.parametrize("call, words", [
    (lambda: nn.Dropout("x"), ["Dropout()", "'p' is 'x'"]), (lambda: nn.Dropout(None), ["Dropout()", "'p' is None"]),
    (lambda: nn.TransformerBlock(2, 1, dropout="x"), ["Dropout()", "'p' is 'x'"]),
    (lambda: nn.Linear([2], 2), ["Linear()", "in_features", "list"]), (lambda: nn.LayerNorm(None), ["LayerNorm()", "None"]),
    (lambda: nn.Parameter(None), ["Parameter()", "'data' is None"]),
    (lambda: nn.ModuleList(None), ["ModuleList()", "'modules' is None"]),
    (lambda: nn.ModuleList()["x"], ["ModuleList()", "'index' is 'x'"]),
    (lambda: nn.Linear(2, 2).load_state_dict(None), ["load_state_dict()", "'state_dict' is None"]),
    (lambda: nn.Linear(2, 2).register_parameter("w", 3), ["register_parameter()", "'parameter' is 3"]),
    (lambda: nn.Linear(2, 2).register_parameter(["w"], None), ["register_parameter()", "'name' is", "list"]),
    (lambda: nn.Linear(2, 2).register_buffer(None, None), ["register_buffer()", "'name' is None"]),
    (lambda: nn.init.xavier_normal_(yoke.ones((2, 2)), None), ["xavier_normal_()", "'gain' is None"]),
    (lambda: nn.init.orthogonal_(yoke.ones((2, 2)), "x"), ["orthogonal_()", "'gain' is 'x'"]),
    (lambda: nn.init.normal_(None), ["normal_()", "'tensor' is None"]),
    (lambda: nn.init.normal_(yoke.ones(2), 0.0, "x"), ["normal_()", "'std' is 'x'"]),
    (lambda: nn.init.uniform_(yoke.ones(2), "x"), ["uniform_()", "'a' is 'x'"]),
    (lambda: nn.init.trunc_normal_(yoke.ones(2), a="x"), ["trunc_normal_()", "'a' is 'x'"]),
    (lambda: nn.init.zeros_(3), ["constant_()", "'tensor' is 3"]),
    (lambda: nn.init.xavier_uniform_(None), ["xavier_uniform_()", "'tensor' is None"]),
    (lambda: yoke.Timer(print, seconds="x"), ["Timer()", "'seconds' is 'x'"]),
    (lambda: yoke.Timer(print, warmup="x"), ["Timer()", "'warmup' is 'x'"])])
def test_layers_and_timers_name_what_is_wrong(call, words):
    refused(call, *words)


def test_an_optimizer_names_a_group_without_tensors():
    refused(lambda: optim.Adam([{"lr": 1}]), "Adam(): group 0 has the keys ['lr']; the key 'params' is missing")
    optimizer = sgd()
    refused(lambda: optimizer.add_param_group([3]), "SGD(): group 1 is of type list; it must be a dict with the key 'params'")
