"""SGD, Adam and AdamW over the core's optimizers, which step all parameters of a group in one launch."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from yoke import _yoke
from yoke._check import listed, shown
from yoke._named import Named
from yoke._yoke import Tensor


class Optimizer(Named):
    """Base of all optimizers: groups of parameters with their options, and their state.

    `params` are tensors, or dicts {"params": tensors, "lr": …}. Options in param_groups may be changed at any time and count from
    the next step; only add_param_group() adds tensors and groups. With master_weights, float16 and bfloat16 parameters have a
    float32 copy that the steps change; the parameter is the rounded copy. An optimizer is for one thread at a time.
    """

    _KIND: ClassVar[str]
    _OPTIONS: ClassVar[tuple[str, ...]]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._core = _yoke._Optimizer(self._KIND, defaults)
        self._told: list[tuple[Any, ...]] = []  # options of each group in the core,
        self._params: list[tuple[Tensor, ...]] = []  # tensors of each group
        entries = listed(self._KIND, "params", params, "tensors or dicts")
        if not entries:
            raise _yoke.ValueError(f"{self._KIND}(): argument 'params' is empty; give at least one tensor. A generator such as net.parameters() can be used once: call it again, or keep list(net.parameters())")
        groups = entries if isinstance(entries[0], dict) else [{"params": entries}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds tensors, {"params": tensors, "lr": …}; missing options take the defaults."""
        if not isinstance(param_group, dict):
            raise _yoke.TypeError(f"{self._KIND}(): group {len(self.param_groups)} is {shown(param_group)}; it must be a dict with the key 'params' and options")
        if "params" not in param_group:
            raise _yoke.TypeError(f"{self._KIND}(): group {len(self.param_groups)} has the keys {list(param_group)}; the key 'params' is missing: add 'params': a list of tensors")
        unknown = set(param_group) - {"params", *self._OPTIONS}
        if unknown:
            raise _yoke.ValueError(f"{self._KIND}(): a group has the unknown option '{min(unknown, key=str)}'; the options are {', '.join(self._OPTIONS)}")
        params = param_group["params"]
        if isinstance(params, (list, tuple)) and params and isinstance(params[0], tuple) and isinstance(next(iter(params[0]), None), str):
            raise _yoke.TypeError(f"{self._KIND}(): argument 'params' has pairs of a name and a tensor; give net.parameters() in place of net.named_parameters()")
        full = {**self.defaults, **param_group, "params":
                [params] if isinstance(params, Tensor) else listed(self._KIND, "params", params, "tensors")}
        self._add(full)

    def _add(self, group: dict[str, Any]) -> None:
        self._core.add_group(group["params"], group)
        self.param_groups.append(group)
        self._told.append(self._options_of(group))
        self._params.append(tuple(group["params"]))

    def _options_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return tuple([group[name] for name in self._OPTIONS])

    def _check_groups(self) -> None:
        """Raises if a script has added or removed groups or tensors in param_groups, because the core would not notice."""
        if len(self.param_groups) != len(self._params):
            raise _yoke.StateError(f"{self._KIND}: param_groups has {len(self.param_groups)} groups, but the optimizer has {len(self._params)}; add a group with add_param_group(), and create a new optimizer to remove a group")
        for i, (group, given) in enumerate(zip(self.param_groups, self._params)):
            params = group.get("params")
            if not (isinstance(params, (list, tuple)) and len(params) == len(given)
                    and all(map(operator.is_, params, given))):
                raise _yoke.StateError(f"{self._KIND}: param_groups[{i}]['params'] no longer holds the {len(given)} tensors that the optimizer was given; restore them, and add other tensors with add_param_group({{'params': …}})")
            for name in self._OPTIONS:
                if name not in group:
                    raise _yoke.ValueError(f"{self._KIND}: param_groups[{i}] does not have the option '{name}'; set the option again; its default is {self.defaults[name]}")

    def _tell(self) -> _yoke._Optimizer:
        """Passes changed options to the core's optimizer and returns it."""
        self._check_groups()
        for i, group in enumerate(self.param_groups):
            options = self._options_of(group)
            if options != self._told[i]:
                self._core.set_options(i, group)
                self._told[i] = options
        return self._core

    def step(self) -> None:
        """Steps over every parameter with a gradient."""
        self._tell().step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes all gradients, or fills them with zeros."""
        self._check_groups()
        self._core.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Returns state and options in PyTorch's layout. The tensors are live: clone() them to keep their values."""
        state: dict[str, Any] = self._tell().state()
        for group, saved in zip(self.param_groups, state["param_groups"]):
            saved.update({name: value for name, value in group.items() if name not in saved})
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over copies of state_dict()'s result. If it does not fit, raises an error and changes nothing.

        ValueError for missing, extra or out-of-range groups, options or states of a parameter; TypeError for a value that is not a
        dict, or a tensor of another dtype. A parameter without any state has not been stepped. An option of PyTorch that does not
        exist here must be off.
        """
        core, own = self._tell(), [set(group).difference(self._OPTIONS, ("params",)) for group in self.param_groups]
        known, added = _split_groups(state_dict, own)
        core.load_state(known)
        self._hear()
        for group, more in zip(self.param_groups, added):
            group.update(more)

    def _hear(self) -> None:
        """Takes over the core's options."""
        for i, (group, now) in enumerate(zip(self.param_groups, self._core.state()["param_groups"])):
            group.update({name: now[name] for name in self._OPTIONS})
            self._told[i] = self._options_of(group)

    _OF_THE_CORE: ClassVar[tuple[str, ...]] = ("_core", "_told", "_params")

    def __getstate__(self) -> dict[str, Any]:
        """Returns tensors, options and state for pickle and copy; the core's part is created from these again."""
        own = {name: value for name, value in vars(self).items() if name not in self._OF_THE_CORE}
        return {**own, "state": self.state_dict()["state"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = dict(state)
        values, groups = own.pop("state"), own.pop("param_groups")
        vars(self).update(own)
        self._core = _yoke._Optimizer(self._KIND, self.defaults)
        self.param_groups, self._told, self._params = [], [], []
        for group in groups:
            self._add(dict(group))
        self._core.load_state({"state": values, "param_groups": self._core.state()["param_groups"]})


def _split_groups(state_dict: Any, own: list[set[str]]) -> tuple[Any, list[dict[str, Any]]]:
    """Returns the state without entries that scripts added to the groups, and these entries for each group."""
    groups = state_dict.get("param_groups") if isinstance(state_dict, dict) else None
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, dict) for group in groups):
        return state_dict, []  # the core will refuse it
    names = [*own, *[set[str]()] * len(groups)]
    added = [{name: group[name] for name in each if name in group} for each, group in zip(names, groups)]
    known = [{name: value for name, value in group.items() if name not in each} for each, group in zip(names, groups)]
    return {**state_dict, "param_groups": known}, added


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, Nesterov's variant and weight decay, as in PyTorch:

        g += weight_decay * p;  b = momentum * b + g  (b = g at first);  p -= lr * (g + momentum * b if nesterov else b)
    """

    _KIND = "SGD"
    _OPTIONS = ("lr", "momentum", "weight_decay", "nesterov", "master_weights")

    def __init__(self, params: Any, lr: float, momentum: float = 0.0, *, weight_decay: float = 0.0, nesterov: bool = False,
                 master_weights: bool = False) -> None:
        super().__init__(params, dict(zip(self._OPTIONS, (lr, momentum, weight_decay, nesterov, master_weights))))


class Adam(Optimizer):
    """Adam as in PyTorch; weight_decay * p is added to the gradient. In step t:

        m += (1 - beta1) * (g - m);  v = beta2 * v + (1 - beta2) * g * g
        p -= lr / (1 - beta1**t) * m / (sqrt(v / (1 - beta2**t)) + eps)
    """

    _KIND = "Adam"
    _OPTIONS = ("lr", "betas", "eps", "weight_decay", "master_weights")

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, *, master_weights: bool = False) -> None:
        super().__init__(params, dict(zip(self._OPTIONS, (lr, betas, eps, weight_decay, master_weights))))


class AdamW(Adam):
    """Adam whose weight decay stands apart from the gradient: p -= lr * weight_decay * p."""

    _KIND = "AdamW"

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, *, master_weights: bool = False) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, master_weights=master_weights)


def need_optimizer(call: str, optimizer: Any) -> Optimizer:
    """Returns the argument 'optimizer' of a call."""
    if not isinstance(optimizer, Optimizer):
        raise _yoke.TypeError(f"{call}(): argument 'optimizer' must be an optimizer of yoke.optim, not {type(optimizer).__name__}")
    return optimizer
