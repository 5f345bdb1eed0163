"""What an optimizer asks of a state before load_state_dict() changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yoke import _yoke
from yoke._check import entries, listed, number, shown
from yoke._yoke import Tensor

if TYPE_CHECKING:
    from yoke.optim.optimizer import Optimizer

_CALL = "load_state_dict"

# What groups of PyTorch's have beside the options, and what changes no number of a step.
_ASIDE = {"capturable", "differentiable", "foreach", "fused", "initial_lr", "param_names"}


def fitting_state(optimizer: Optimizer, state_dict: Any) -> tuple[list[Any], dict[int, dict[str, Any]]]:
    """The groups and the state by number in a state_dict; an error where the optimizer cannot go on from it."""
    groups, state = entries(_CALL, "state_dict", state_dict, ("param_groups", "state"))
    groups = listed(_CALL, "param_groups", groups, "dicts")
    given = [len(listed(_CALL, "params", entries(_CALL, "param_groups", group, ["params"])[0], "numbers"))
             for group in groups]
    own = [len(group["params"]) for group in optimizer.param_groups]
    if own != given:
        raise _yoke.ValueError(f"{_CALL}(): the state has groups of {given} parameters, the optimizer of {own}; make the optimizer over the same groups first")
    entries(_CALL, "state", state, ())
    for at in state:
        if at not in range(sum(own)):
            raise _yoke.ValueError(f"{_CALL}(): the state is of parameter {at!r}, but there are {sum(own)}, counted from 0")
    for at, group in enumerate(groups):
        _check_options(optimizer, at, group)
    return groups, _checked_states(optimizer, state)


def _check_options(optimizer: Optimizer, at: int, group: Any) -> None:
    kind, options = optimizer._KIND, ", ".join(optimizer._OPTIONS)
    for name in optimizer._OPTIONS:
        if name not in group and name != "master_weights":  # which PyTorch has not
            raise _yoke.ValueError(f"{_CALL}(): group {at} of the state has no option '{name}'; {kind} has {options}; load the state into the kind of optimizer that saved it")
    for name, value in group.items():
        if name in optimizer.param_groups[at] or name in _ASIDE:
            continue
        meant = optimizer._IMPLIED.get(name, False)
        if not (value is None or isinstance(value, (int, float)) and value == meant):
            raise _yoke.ValueError(f"{_CALL}(): group {at} of the state has the option '{name}', {shown(value)}, which {kind} cannot follow: it has {options}; load the state into the kind of optimizer that saved it, or take '{name}' out of the state")


def _checked_states(optimizer: Optimizer, state: Any) -> dict[int, dict[str, Any]]:
    """The states by number of their parameter, without what is None."""
    names = [optimizer._STATE_NAMES.get(name, name) for name in optimizer._core.state_names()]
    checked = {}
    for at, (group, index, param) in enumerate(optimizer._places()):
        found = state.get(at, {})
        entries(_CALL, f"state[{at}]", found, ())
        checked[at] = {name: value for name, value in found.items() if value is not None}
        halves = param.dtype in (_yoke.float16, _yoke.bfloat16)
        has_master = halves and optimizer.param_groups[group]["master_weights"]
        needed = [name for name in names if (has_master if name == "master" else name not in optimizer._MAY_LACK)]
        place = f"state[{at}], of parameter {index} of group {group}"
        _check_state(f"{_CALL}(): {place},", optimizer._KIND, checked[at], names, needed)
    return checked


def _check_state(where: str, kind: str, found: dict[str, Any], names: list[str], needed: list[str]) -> None:
    for name, value in found.items():
        if name not in names:
            raise _yoke.ValueError(f"{where} has '{name}', {shown(value)}, which {kind} lacks: it has {', '.join(names)}; load the state into the kind of optimizer that saved it")
        if name == "step" and isinstance(value, (int, float)):
            number(_CALL, "step", value)
        elif not isinstance(value, Tensor):
            raise _yoke.TypeError(f"{where} has '{name}', {shown(value)}; a tensor is needed, as state_dict() gave it")
    missing = [name for name in needed if found and name not in found]
    if missing:
        raise _yoke.ValueError(f"{where} is without '{missing[0]}'; {kind} needs {', '.join(needed)}; save it with all of them, or leave it out to begin that parameter anew")
