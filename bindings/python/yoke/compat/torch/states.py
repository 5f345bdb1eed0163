"""States of optimizers, schedules and attention in PyTorch's form, both ways.

    torch.save({"net": net.state_dict(), "optimizer": optimizer_to_torch(optimizer)}, "run.pt")    # PyTorch goes on from here,
    optimizer_from_torch(optimizer, torch.load("run.pt")["optimizer"])                             # and Yoke from PyTorch's

States of modules and of GradScaler have the same form in both libraries, but for MultiheadAttention, which has other names.
"""

from __future__ import annotations

from typing import Any

from yoke import _yoke
from yoke._check import entries, listed, number, whole
from yoke._named import named
from yoke._yoke import Tensor
from yoke.nn import Module, MultiheadAttention
from yoke.optim.optimizer import Optimizer, need_optimizer
from yoke.optim.schedule import Schedule

__all__ = ["module_from_torch", "module_to_torch", "optimizer_from_torch", "optimizer_to_torch", "scheduler_from_torch", "scheduler_to_torch"]

_SWITCHES = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False, "fused": None}
# Options of PyTorch's optimizers in PyTorch's order, with the value of options without a place in Yoke.
_SGD = {"lr": None, "momentum": None, "dampening": 0, "weight_decay": None, "nesterov": None, **_SWITCHES}
_ADAM = {"lr": None, "betas": None, "eps": None, "weight_decay": None, "amsgrad": False, **_SWITCHES}
_STATES = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer", "master")
# Entries of PyTorch's schedules in the groups of an optimizer.
_OF_SCHEDULES = frozenset(("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr", "param_names"))


@named
def optimizer_to_torch(optimizer: Optimizer) -> dict[str, Any]:
    """Returns the state of an SGD, Adam or AdamW for load_state_dict() of PyTorch's optimizer, and for optimizer_from_torch().

    The tensors are live, but for the steps, which PyTorch keeps on the CPU. With master_weights, the option and the float32 copies
    are there too; PyTorch does not read these entries.
    """
    state = Optimizer.state_dict(need_optimizer("optimizer_to_torch", optimizer))
    defaults = dict(_SGD) if optimizer._KIND == "SGD" else {**_ADAM, "decoupled_weight_decay": optimizer._KIND == "AdamW"}
    if "momentum" in defaults:
        del defaults["capturable"]  # of Adam alone
    groups = []
    for group in state["param_groups"]:
        own = {name: value for name, value in group.items() if name != "master_weights" or value}
        numbers = own.pop("params")
        groups.append({**defaults, **own, "params": numbers})
    return {"state": {key: _one_to_torch(one) for key, one in state["state"].items()}, "param_groups": groups}


def _one_to_torch(state: dict[str, Any]) -> dict[str, Any]:
    return {name: state[name].cpu() if name == "step" else state[name] for name in _STATES if name in state}


@named
def optimizer_from_torch(optimizer: Optimizer, state_dict: dict[str, Any]) -> None:
    """Takes over the state of PyTorch's optimizer of the same kind, or of optimizer_to_torch(). All or nothing changes.

    States take dtype and device of the parameters, as in PyTorch. ValueError for an option or a state without a place in Yoke's
    optimizer, such as amsgrad=True, and for groups of other sizes.
    """
    need_optimizer("optimizer_from_torch", optimizer)
    groups, states = entries("load_state_dict", "state_dict", state_dict, ("param_groups", "state"))
    groups = listed("load_state_dict", "state_dict['param_groups']", groups, "dicts")
    fit = all(isinstance(group, dict) and isinstance(group.get("params"), (list, tuple)) for group in groups) and isinstance(states, dict)
    own = [_own_names(optimizer, group) for group in optimizer.param_groups] if fit else []
    known = [{name: _plain(value) for name, value in group.items() if name not in names} for group, names in zip(groups, own)] if fit else groups
    if fit and len(groups) == len(own):
        states = _renumbered(optimizer, groups, states)
        for i, group in enumerate(known):
            group["params"] = list(range(len(group["params"])))
            group.setdefault("master_weights", optimizer.param_groups[i]["master_weights"])
    else:
        known = groups
    optimizer._tell().load_state({"state": states, "param_groups": known})
    optimizer._hear()
    for group, given, names in zip(optimizer.param_groups, groups, own):
        group.update({name: value for name, value in given.items() if name in names or name in group and name not in (*optimizer._OPTIONS, "params")})


def _own_names(optimizer: Optimizer, group: dict[str, Any]) -> frozenset[str]:
    """Returns entries of a group beside the options of an optimizer: of schedules, and of the script."""
    return (_OF_SCHEDULES | group.keys()).difference(optimizer._OPTIONS, _SGD, _ADAM, ("params", "decoupled_weight_decay"))


def _plain(value: Any) -> Any:
    """Returns an option. A tensor of a single element, as PyTorch may have here, becomes a number."""
    return value.item() if isinstance(value, Tensor) and value.nelement() == 1 else value


def _renumbered(optimizer: Optimizer, groups: list[Any], states: dict[Any, Any]) -> dict[Any, Any]:
    """Returns the states by the place of the parameter, each with dtype and device of the optimizer's state."""
    found: dict[Any, Any] = {}
    counted = {id_ for group in groups for id_ in group["params"]}
    place = 0
    for given, group in zip(groups, optimizer.param_groups):
        for id_, param in zip(given["params"], group["params"]):
            if id_ in states:
                found[place] = _fitted(states[id_], param, group["master_weights"] and param.dtype.itemsize == 2)
            place += 1
    found.update({id_: one for id_, one in states.items() if id_ not in counted})  # refused by the core
    return found


def _fitted(state: Any, param: Tensor, has_master: bool) -> Any:
    if not isinstance(state, dict):
        return state
    found = {}
    for name, value in state.items():
        if name == "step":
            value = _plain(value)
        elif isinstance(value, Tensor):
            value = value.to(param.device, _yoke.float32 if has_master else param.dtype)
        found[name] = value
    if has_master and found:
        found.setdefault("master", param.detach().to(dtype=_yoke.float32))
    return found


# ---- Modules ---------------------------------------------------------------------------------------------------------

_OF_ATTENTION = {"qkv.weight": "in_proj_weight", "qkv.bias": "in_proj_bias", "out.weight": "out_proj.weight", "out.bias": "out_proj.bias"}


def _torch_names(call: str, module: Any) -> dict[str, str]:
    """Returns PyTorch's names of tensors with another name in Yoke."""
    if not isinstance(module, Module):
        raise _yoke.TypeError(f"{call}(): argument 'module' is a {type(module).__name__}; it must be a module of yoke.nn")
    found = {}
    for name, each in module.named_modules():
        if isinstance(each, MultiheadAttention):
            if each.num_kv_heads != each.num_heads:
                raise _yoke.ValueError(f"{call}(): '{name}' has {each.num_kv_heads} heads of keys for {each.num_heads} heads of queries, which PyTorch's MultiheadAttention does not have; use state_dict() of the module")
            prefix = f"{name}." if name else ""
            found.update({prefix + own: prefix + theirs for own, theirs in _OF_ATTENTION.items()})
    return found


@named
def module_to_torch(module: Module) -> dict[str, Tensor]:
    """Returns the state of a module under PyTorch's names: state_dict(), with other names for MultiheadAttention alone."""
    names = _torch_names("module_to_torch", module)
    return {names.get(name, name): value for name, value in module.state_dict().items()}


@named
def module_from_torch(module: Module, state_dict: dict[str, Tensor], strict: bool = True) -> Any:
    """Loads a state under PyTorch's names, as load_state_dict() of the module does."""
    names = {theirs: own for own, theirs in _torch_names("module_from_torch", module).items()}
    entries("load_state_dict", "state_dict", state_dict, ())
    return module.load_state_dict({names.get(name, name): value for name, value in with_counts(module, state_dict).items()}, strict)


def with_counts(module: Module, state_dict: Any) -> dict[str, Any]:
    """Returns the entries of a module's state. States from before PyTorch 0.4.1, and dicts without versions, may lack the counts of
    batches; as in PyTorch, the module keeps the present counts.
    """
    found, versions = dict(state_dict), getattr(state_dict, "_metadata", None)
    for name, each in module.named_modules():
        count = each._buffers.get("num_batches_tracked")
        version = versions.get(name) if isinstance(versions, dict) else None
        if count is not None and version != {"version": 2}:
            found.setdefault(f"{name}.num_batches_tracked" if name else "num_batches_tracked", count.detach().clone())
    return found


# ---- Schedules -------------------------------------------------------------------------------------------------------

# Yoke's kind of a schedule, and PyTorch's names of its options.
_NAMES = {"step": ("step_size", "gamma"), "constant": ("factor", "total_iters"), "linear": ("start_factor", "end_factor", "total_iters"),
          "cosine": ("T_max", "eta_min"), "one_cycle": ("total_steps", "_schedule_phases", "_anneal_func_type", "cycle_momentum")}


def _need_schedule(call: str, scheduler: Any) -> Any:
    if not isinstance(scheduler, Schedule):
        raise _yoke.TypeError(f"{call}(): argument 'scheduler' is a {type(scheduler).__name__}; it must be a schedule of yoke.optim.lr_scheduler")
    return scheduler


@named
def scheduler_to_torch(scheduler: Schedule) -> dict[str, Any]:
    """Returns the state of a schedule for load_state_dict() of PyTorch's schedule, and for scheduler_from_torch()."""
    own = Schedule.state_dict(_need_schedule("scheduler_to_torch", scheduler))
    return {**_options_to_torch(scheduler, own), "base_lrs": own["base_lrs"], "last_epoch": own["last_step"], "_step_count": own["last_step"] + 1,
            "_is_initial": False, "_get_lr_called_within_step": False, "_last_lr": [float(rate) for rate in scheduler.last_lr]}


def _options_to_torch(scheduler: Any, own: dict[str, Any]) -> dict[str, Any]:
    kind = own["kind"]
    if kind == "step":
        return {name: own[name] for name in ("step_size", "gamma")}
    if kind == "constant":
        return {"factor": own["factor"], "total_iters": own["total_steps"]}
    if kind == "linear":
        base = own["base_lrs"][0] or 1.0
        return {"start_factor": own["start"] / base, "end_factor": own["end"] / base, "total_iters": own["total_steps"]}
    if kind == "cosine":
        if own["warmup_steps"]:
            raise _yoke.ValueError(f"scheduler_to_torch(): the schedule has {own['warmup_steps']} steps of warm-up, which PyTorch's CosineAnnealingLR does not have; save scheduler.state_dict() of Yoke")
        return {"T_max": own["total_steps"], "eta_min": own["min_lr"]}
    own["base_lrs"] = [own["max_lr"] / own["div_factor"]] * len(own["base_lrs"])
    phases = [("initial_lr", "max_lr", own["pct_start"] * own["total_steps"] - 1), ("max_lr", "min_lr", own["total_steps"] - 1)]
    return {"total_steps": own["total_steps"], "_anneal_func_type": "cos", "cycle_momentum": False, "_schedule_phases": [
        {"end_step": end, "start_lr": first, "end_lr": last, "start_momentum": high, "end_momentum": low}
        for (first, last, end), (high, low) in zip(phases, (("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")))]}


@named
def scheduler_from_torch(scheduler: Schedule, state_dict: dict[str, Any]) -> None:
    """Continues from the place of PyTorch's schedule of the same kind. If the state does not fit, raises an error and changes nothing."""
    kind = _need_schedule("scheduler_from_torch", scheduler)._kind()
    names = _NAMES[kind]
    found = dict(zip((*names, "base_lrs", "last_epoch"), entries("load_state_dict", "state_dict", state_dict, (*names, "base_lrs", "last_epoch"), f"; PyTorch's schedule must be the same as {kind}")))
    options = _options_from_torch(scheduler, kind, found)
    Schedule.load_state_dict(scheduler, {"kind": kind, **options, "last_step": found["last_epoch"]})


def _options_from_torch(scheduler: Any, kind: str, found: dict[str, Any]) -> dict[str, Any]:
    rates = listed("load_state_dict", "state_dict['base_lrs']", found["base_lrs"], "numbers")

    def real(name: str) -> float:
        return float(number("load_state_dict", name, found[name]))

    if kind == "step":
        return {"step_size": found["step_size"], "gamma": real("gamma"), "base_lrs": rates}
    if kind == "constant":
        return {"factor": real("factor"), "total_steps": found["total_iters"], "base_lrs": rates}
    if kind == "linear":
        base = number("load_state_dict", "base_lrs", rates[0] if rates else None)
        return {"start": base * real("start_factor"), "end": base * real("end_factor"), "total_steps": found["total_iters"], "base_lrs": rates}
    if kind == "cosine":
        return {"total_steps": found["T_max"], "min_lr": real("eta_min"), "warmup_steps": 0, "base_lrs": rates}
    steps = whole("load_state_dict", "total_steps", found["total_steps"], 1)
    # As in PyTorch, a schedule keeps the rates from its construction.
    return {"max_lr": scheduler.max_lr, "total_steps": steps, "pct_start": _share(found) / steps, "div_factor": scheduler.div_factor,
            "final_div_factor": scheduler.final_div_factor, "base_lrs": scheduler.base_lrs}


def _share(found: dict[str, Any]) -> float:
    """Returns the number of PyTorch's steps with a rising rate."""
    phases = found["_schedule_phases"]
    if not isinstance(phases, list) or not all(isinstance(phase, dict) and "end_step" in phase for phase in phases):
        raise _yoke.TypeError("load_state_dict(): '_schedule_phases' is no list of dicts with 'end_step', as in the state of PyTorch's OneCycleLR")
    if found["cycle_momentum"] or found["_anneal_func_type"] != "cos" or len(phases) != 2:
        raise _yoke.ValueError("load_state_dict(): the state is of a OneCycleLR with cycle_momentum, another anneal_strategy than 'cos', or three_phase; make PyTorch's schedule with cycle_momentum=False")
    return float(number("load_state_dict", "end_step", phases[0]["end_step"])) + 1
