"""States of modules, optimizers and schedules in PyTorch's form: tests/python/pt has what PyTorch 2.15 did next."""
import io
import pathlib

import pytest

import yoke
from yoke import nn, optim
from yoke.compat.torch import states
from yoke.compat.torch.serialization import load, save

PT = pathlib.Path(__file__).with_name("pt")
LAYERS, OPTIMIZERS, SCHEDULES = (load(PT / f"{name}.pt", map_location="cpu") for name in ("layers", "optimizers", "schedules"))
# Relative bounds of rounding in some steps; bfloat16 has 8 bits.
NEAR = {"float32": 1e-5, "bfloat16": 2e-2}


@pytest.fixture(autouse=True, scope="module")
def _files_end_with_the_tests():
    yield
    for each in (LAYERS, OPTIMIZERS, SCHEDULES):
        each.clear()


def through_a_file(state):
    file = io.BytesIO()
    save(state, file)
    return load(file)


def layer_of(text):
    return eval(text.replace(", batch_first=True", ""), vars(nn))


# ---- Modules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", list(LAYERS))
def test_a_layer_has_pytorchs_names_and_gives_its_values(text):
    wanted, layer = LAYERS[text], layer_of(text)
    own = states.module_to_torch(layer)
    assert {name: x.shape for name, x in own.items()} == {name: x.shape for name, x in wanted["state"].items()}
    assert {name: x.dtype for name, x in own.items()} == {name: x.dtype for name, x in wanted["state"].items()}
    if "Attention" not in text:
        assert list(layer.state_dict()) == list(wanted["state"])
        layer.load_state_dict(wanted["state"])
    states.module_from_torch(layer, wanted["state"])
    layer.eval()
    if wanted["x"] is not None:
        assert yoke.allclose(layer(wanted["x"]), wanted["y"], rtol=1e-5, atol=1e-6)
    again = layer_of(text)
    states.module_from_torch(again, through_a_file(states.module_to_torch(layer)))
    assert all(a.tolist() == b.tolist() for a, b in zip(again.state_dict().values(), layer.state_dict().values()))


def test_a_state_without_counts_of_batches_loads_as_in_pytorch():
    """States from before PyTorch 0.4.1, and dicts that a script has made, lack versions and may lack the counts."""
    state = LAYERS["BatchNorm1d(3)"]["state"]
    assert state._metadata[""]["version"] == 2
    without = {name: x for name, x in state.items() if name != "num_batches_tracked"}
    net = nn.Sequential(nn.BatchNorm1d(3))
    net[0].num_batches_tracked.fill_(7)
    states.module_from_torch(net, {f"0.{name}": x for name, x in without.items()})
    assert net[0].num_batches_tracked.item() == 7 and net[0].weight.tolist() == state["weight"].tolist()
    del state["num_batches_tracked"]
    with pytest.raises(yoke.ValueError, match="num_batches_tracked"):
        states.module_from_torch(nn.BatchNorm1d(3), state)
    state["num_batches_tracked"] = yoke.tensor(3)


def test_only_attention_with_a_head_of_keys_for_each_head_has_a_form_in_pytorch():
    net = nn.ModuleDict({"a": nn.MultiheadAttention(4, 2, num_kv_heads=1)})
    for call in (lambda: states.module_to_torch(net), lambda: states.module_from_torch(net, {})):
        with pytest.raises(yoke.ValueError, match=r"module_\w+\(\): 'a' has 1 heads of keys for 2 heads of queries"):
            call()
    with pytest.raises(yoke.TypeError, match="argument 'module' is a dict"):
        states.module_to_torch({})
    with pytest.raises(yoke.ValueError, match="in_proj_wight|missing"):
        states.module_from_torch(nn.MultiheadAttention(4, 2), {"in_proj_wight": yoke.ones(1)})


class Net(nn.Module):
    def __init__(self):
        self.conv, self.norm, self.fc = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(self.norm(self.conv(x)).relu().mean((2, 3)))


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after a file of ours"])
def test_a_training_goes_on_from_a_checkpoint_of_pytorch(again):
    saved = load(PT / "checkpoint.pt")
    net, scaler = Net(), yoke.GradScaler()
    optimizer = optim.AdamW(net.parameters(), lr=0.5)
    schedule = optim.lr_scheduler.StepLR(optimizer, 3)
    for _ in range(1 + again):
        net.load_state_dict(saved["model"])
        states.optimizer_from_torch(optimizer, saved["optimizer"])
        states.scheduler_from_torch(schedule, saved["schedule"])
        scaler.load_state_dict(saved["scaler"])
        assert net.norm.num_batches_tracked.item() == 3 and saved["epoch"] == 3 and saved["rng"].dtype is yoke.uint8
        saved = {**saved, **through_a_file({"model": net.state_dict(), "optimizer": states.optimizer_to_torch(optimizer),
                                            "schedule": states.scheduler_to_torch(schedule), "scaler": scaler.state_dict()})}
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = yoke.cross_entropy(net(saved["x"]), saved["y"])
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    assert losses == pytest.approx(saved["next"], rel=1e-4)


# ---- Optimizers ------------------------------------------------------------------------------------------------------


def made(case, **options):
    """Returns the parameters of a case, as PyTorch had them, and a new optimizer with other options."""
    params = [nn.Parameter(x.clone()) for x in case["params"]]
    more = {"momentum": 0.5} if "momentum" in case["options"] else {}
    return params, getattr(optim, case["kind"])([{"params": params[:1]}, {"params": params[1:]}], lr=1.0, **more, **options)


def three_steps(params, optimizer):
    for k in range(1, 4):
        for i, param in enumerate(params):
            param.grad = yoke.full_like(param.detach(), k * (i + 1) / 4)
        optimizer.step()


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_the_next_steps_are_pytorchs(name):
    case = OPTIMIZERS[name]
    params, optimizer = made(case)
    states.optimizer_from_torch(optimizer, case["state"])
    assert [group["lr"] for group in optimizer.param_groups] == [case["options"]["lr"], 0.05]
    three_steps(params, optimizer)
    for ours, theirs in zip(params, case["after"]):
        assert yoke.allclose(ours.to(dtype=yoke.float32), theirs.to(dtype=yoke.float32), rtol=NEAR[name.split()[-1]], atol=0.0)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_our_state_has_pytorchs_form(name):
    case = OPTIMIZERS[name]
    params, optimizer = made(case)
    states.optimizer_from_torch(optimizer, case["state"])
    state = through_a_file(states.optimizer_to_torch(optimizer))
    assert [list(group) for group in state["param_groups"]] == [list(group) for group in case["state"]["param_groups"]]
    assert state["param_groups"] == case["state"]["param_groups"]
    given = {key: each for key, each in case["state"]["state"].items() if any(value is not None for value in each.values())}
    assert {key: list(each) for key, each in state["state"].items()} == {key: list(each) for key, each in given.items()}
    for key, each in given.items():
        assert all(state["state"][key][part].tolist() == value.tolist() and state["state"][key][part].dtype is value.dtype for part, value in each.items())


def test_master_weights_begin_at_the_parameters_and_return():
    case = OPTIMIZERS["AdamW bfloat16"]
    params, optimizer = made(case, master_weights=True)
    states.optimizer_from_torch(optimizer, case["state"])
    state = states.optimizer_to_torch(optimizer)
    assert state["param_groups"][0]["master_weights"] is True and state["state"][0]["exp_avg"].dtype is yoke.float32
    assert state["state"][0]["master"].tolist() == params[0].to(dtype=yoke.float32).tolist()
    three_steps(params, optimizer)
    state = through_a_file(states.optimizer_to_torch(optimizer))
    params, other = made(case, master_weights=True)
    states.optimizer_from_torch(other, state)
    assert other.state_dict()["state"][0]["master"].tolist() == state["state"][0]["master"].tolist()


def copied(state):
    return {"state": {key: dict(each) for key, each in state["state"].items()}, "param_groups": [dict(group) for group in state["param_groups"]]}


def test_other_forms_of_the_same_state_are_taken():
    """Numbers of parameters as older versions had them, a tensor as the rate, entries of schedules, and entries of the script."""
    case = OPTIMIZERS["Adam float32"]
    params, optimizer = made(case)
    state = copied(case["state"])
    state["state"] = {7: state["state"][0], 9: {**state["state"][1], "step": 2}}
    state["param_groups"][0].update(params=[7], lr=yoke.tensor(0.25), initial_lr=0.5, max_lr=1.0)
    state["param_groups"][1]["params"] = [9]
    optimizer.param_groups[0]["tag"] = "mine"
    state["param_groups"][0]["tag"] = "theirs"
    states.optimizer_from_torch(optimizer, state)
    assert optimizer.param_groups[0]["lr"] == 0.25 and optimizer.state_dict()["state"][1]["step"].item() == 2
    assert optimizer.param_groups[0]["initial_lr"] == 0.5 and optimizer.param_groups[0]["max_lr"] == 1.0 and optimizer.param_groups[0]["tag"] == "theirs"
    again = states.optimizer_to_torch(optimizer)
    assert again["param_groups"][0]["initial_lr"] == 0.5 and list(again["param_groups"][0])[-1] == "params"
    optimizer.step()


@pytest.mark.parametrize("change, words", [
    (lambda state: state["param_groups"][0].update(amsgrad=True), ["amsgrad"]),
    (lambda state: state["param_groups"][1].update(maximize=True), ["maximize"]),
    (lambda state: state["param_groups"][0].update(decoupled_weight_decay=True), ["decoupled_weight_decay"]),
    (lambda state: state["param_groups"].pop(), ["groups of [1]", "[1, 1]"]),
    (lambda state: state["param_groups"][0].update(params=[0, 2]), ["[2, 1]"]),
    (lambda state: state["state"][0].pop("exp_avg"), ["exp_avg"]),
    (lambda state: state["state"].update({5: {}}), ["parameter 5"]),
    (lambda state: state.pop("state"), ["'state' is missing"]),
    (lambda state: state.update(param_groups=3), ["param_groups"]),
    (lambda state: state.update(param_groups=[3, 4]), ["group 0"]),
    (lambda state: state.update(state=3), ["'state'"]),
    (lambda state: state["state"].update({0: 3}), ["state[0]"]),
    (lambda state: state["state"][0].update(exp_avg=yoke.ones(7)), ["[7]"]),
])
def test_states_that_do_not_fit_are_refused_and_nothing_changes(change, words):
    case = OPTIMIZERS["Adam float32"]
    params, optimizer = made(case)
    state = copied(case["state"])
    change(state)
    with pytest.raises((yoke.ValueError, yoke.TypeError)) as told:
        states.optimizer_from_torch(optimizer, state)
    assert "load_state_dict" in str(told.value) and all(word in str(told.value) for word in words), told.value
    assert not optimizer.state_dict()["state"] and [group["lr"] for group in optimizer.param_groups] == [1.0, 1.0]


# ---- Schedules -------------------------------------------------------------------------------------------------------


def scheduled(name, **options):
    case = SCHEDULES[name]
    optimizer = optim.SGD([nn.Parameter(yoke.ones(1))], lr=0.1)
    optimizer.step()
    arguments = {"StepLR": (7, 0.9), "ConstantLR": (0.9, 8), "LinearLR": (0.5, 0.6, 9), "CosineAnnealingLR": (3, 0.5)}.get(name, case["arguments"])
    return case, optimizer, getattr(optim.lr_scheduler, name)(optimizer, *arguments, **options)


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after a file of ours"])
@pytest.mark.parametrize("name", list(SCHEDULES))
def test_the_next_rates_are_pytorchs(name, again):
    case, optimizer, schedule = scheduled(name)
    state = case["state"]
    for _ in range(1 + again):
        states.optimizer_from_torch(optimizer, case["optimizer"])
        states.scheduler_from_torch(schedule, state)
        state = through_a_file(states.scheduler_to_torch(schedule))
        assert state.keys() == case["state"].keys() and state["_last_lr"] == pytest.approx(case["state"]["_last_lr"])
    flat = {key: value for key, value in state.items() if key[0] != "_"}
    assert flat == pytest.approx({key: value for key, value in case["state"].items() if key[0] != "_"})
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    assert rates == pytest.approx(case["rates"], rel=1e-6)


@pytest.mark.parametrize("name, change, words", [
    ("StepLR", {"gamma": None}, ["gamma"]), ("StepLR", "gamma", ["'gamma' is missing", "step"]), ("CosineAnnealingLR", "T_max", ["'T_max' is missing"]),
    ("StepLR", {"last_epoch": -1}, ["last_step"]), ("OneCycleLR", {"cycle_momentum": True}, ["cycle_momentum=False"]),
    ("OneCycleLR", {"_anneal_func_type": "linear"}, ["'cos'"]), ("LinearLR", {"base_lrs": []}, ["base_lrs"]), ("LinearLR", {"base_lrs": 3}, ["base_lrs"]),
    ("OneCycleLR", {"_schedule_phases": [1, 2]}, ["_schedule_phases"]), ("ConstantLR", {"factor": "x"}, ["factor"])])
def test_schedules_that_do_not_fit_are_refused(name, change, words):
    case, optimizer, schedule = scheduled(name)
    state = {key: value for key, value in case["state"].items() if key != change}
    state.update(change if isinstance(change, dict) else {})
    before = schedule.state_dict()
    with pytest.raises((yoke.ValueError, yoke.TypeError)) as told:
        states.scheduler_from_torch(schedule, state)
    assert "load_state_dict" in str(told.value) and all(word in str(told.value) for word in words), told.value
    assert schedule.state_dict() == before


def test_other_objects_are_refused():
    for call, word in ((lambda: states.optimizer_to_torch(3), "optimizer"), (lambda: states.optimizer_from_torch({}, {}), "optimizer"), (lambda: states.scheduler_to_torch(3), "scheduler"),
                       (lambda: states.scheduler_from_torch(None, {}), "scheduler")):
        with pytest.raises(yoke.TypeError, match=f"argument '{word}'"):
            call()
    with pytest.raises(yoke.ValueError, match="4 steps of warm-up"):
        states.scheduler_to_torch(optim.schedule.cosine(optim.SGD([nn.Parameter(yoke.ones(1))], lr=0.1), 9, warmup_steps=4))


def test_a_scaler_has_pytorchs_state():
    saved = load(PT / "checkpoint.pt")["scaler"]
    assert yoke.GradScaler().state_dict() == saved
