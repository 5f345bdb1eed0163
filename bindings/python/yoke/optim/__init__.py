"""Optimizers: PyTorch's interface over those of the core, which step all parameters of a group in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yoke import _yoke
from yoke._yoke import Tensor
from yoke.optim import schedule

__all__ = ["SGD", "schedule"]


class SGD:
    """Stochastic gradient descent with momentum, Nesterov's variant and weight decay, as in PyTorch:

        g += weight_decay * p;  b = momentum * b + g  (b = g at first);  p -= lr * (g + momentum * b if nesterov else b)

    `params` are tensors, or dicts {"params": tensors, "lr": …} with options of their own. Options in
    param_groups may be changed at any time and count from the next step.
    """

    _OPTIONS = ("lr", "momentum", "weight_decay", "nesterov")

    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]], lr: float, momentum: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False) -> None:
        self.defaults: dict[str, Any] = dict(zip(self._OPTIONS, (lr, momentum, weight_decay, nesterov)))
        self.param_groups: list[dict[str, Any]] = []
        self._core = _yoke._Sgd(**self.defaults)
        self._told: list[tuple[Any, ...]] = []  # the options that the core has of each group
        if isinstance(params, Tensor):
            raise _yoke.TypeError("SGD(): argument 'params' must be a sequence of tensors or dicts, not one tensor; write "
                                  "[tensor]")
        entries: list[Any] = list(params)
        if not entries:
            raise _yoke.ValueError("SGD(): argument 'params' is empty; there is nothing to optimize")
        groups = entries if isinstance(entries[0], dict) else [{"params": entries}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds tensors, {"params": tensors, "lr": …}; options that are missing take the defaults."""
        if not isinstance(group, dict) or "params" not in group:
            raise _yoke.TypeError("SGD(): a group of parameters is a dict with the key 'params', and options beside it")
        unknown = set(group) - {"params", *self._OPTIONS}
        if unknown:
            raise _yoke.ValueError(f"SGD(): a group has the unknown option '{min(unknown)}'; there are "
                                   f"{', '.join(self._OPTIONS)}")
        params = group["params"]
        full = {**self.defaults, **group, "params": [params] if isinstance(params, Tensor) else list(params)}
        options = tuple(full[name] for name in self._OPTIONS)
        self._core.add_group(full["params"], *options)
        self.param_groups.append(full)
        self._told.append(options)

    def _tell(self) -> None:
        for i, group in enumerate(self.param_groups):
            options = tuple(group[name] for name in self._OPTIONS)
            if options != self._told[i]:
                self._core.set_options(i, *options)
                self._told[i] = options

    def step(self) -> None:
        """One step over every parameter that has a gradient."""
        self._tell()
        self._core.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets all gradients, or fills them with zeros."""
        self._core.zero_grad(set_to_none)

    def _places(self) -> list[tuple[int, int]]:
        return [(g, i) for g, group in enumerate(self.param_groups) for i in range(len(group["params"]))]

    def state_dict(self) -> dict[str, Any]:
        """State and options in PyTorch's layout. Tensors in it are the live ones: clone() what must stay."""
        state = {}
        for number, (group, index) in enumerate(self._places()):
            buffer = self._core.get_state(group, index, "momentum")
            if buffer is not None:
                state[number] = {"momentum_buffer": buffer}
        groups, first = [], 0
        for group_ in self.param_groups:
            count = len(group_["params"])
            groups.append({**group_, "params": list(range(first, first + count))})
            first += count
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict() gave; ValueError if the numbers of groups or parameters differ."""
        groups = state_dict["param_groups"]
        own, given = ([len(g["params"]) for g in side] for side in (self.param_groups, groups))
        if own != given:
            raise _yoke.ValueError(f"load_state_dict(): the state has groups of {given} parameters, the optimizer of {own}")
        unknown = set(state_dict["state"]) - set(range(sum(own)))
        if unknown:
            raise _yoke.ValueError(f"load_state_dict(): the state is of parameter {min(unknown)}, but there are {sum(own)}")
        for group, new in zip(self.param_groups, groups):
            group.update({name: new[name] for name in self._OPTIONS if name in new})
        self._tell()
        for number, (group_, index) in enumerate(self._places()):
            buffer = state_dict["state"].get(number, {}).get("momentum_buffer")
            self._core.set_state(group_, index, "momentum", buffer)
