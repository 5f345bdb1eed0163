"""torch.optim.Optimizer, the base of optimizers that scripts write, and GradScaler, which takes them where it is off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from yoke import _yoke, amp, optim
from yoke._yoke import Tensor


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or cls is Optimizer and isinstance(instance, optim.Optimizer)


class Optimizer(metaclass=_Kind):
    """Groups of parameters with their options, and a state for each parameter; a subclass has step(). Yoke's optimizers are instances too."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults, self.param_groups = defaults, []
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        if isinstance(params, Tensor):
            raise _yoke.TypeError(f"{type(self).__name__}(): argument 'params' is a tensor; it takes tensors or dicts in a list")
        groups = list(params)
        if not groups:
            raise _yoke.ValueError(f"{type(self).__name__}(): argument 'params' is empty; give at least one tensor")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    param_groups: list[dict[str, Any]]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds tensors, {"params": tensors, "lr": …}; missing options take the defaults."""
        params = param_group["params"]
        listed = [params] if isinstance(params, Tensor) else [each[1] if isinstance(each, tuple) else each for each in params]
        for each in listed:
            if not isinstance(each, Tensor):
                raise _yoke.TypeError(f"{type(self).__name__}(): argument 'params' has a {type(each).__name__}; it takes tensors")
            if not each.is_leaf:
                raise _yoke.ValueError(f"{type(self).__name__}(): argument 'params' has a tensor that an op has made; it takes leaves")
        known = {id(each) for group in self.param_groups for each in group["params"]}
        if not known.isdisjoint(map(id, listed)):
            raise _yoke.ValueError(f"{type(self).__name__}(): argument 'params' has a tensor that another group has; a tensor must be in one group")
        self.param_groups.append({**self.defaults, **param_group, "params": listed})

    def _every(self) -> Iterable[Tensor]:
        return (each for group in self.param_groups for each in group["params"])

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes all gradients, or fills them with zeros."""
        for each in self._every():
            if set_to_none:
                each.grad = None
            elif each.grad is not None:
                each.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Steps over every parameter; a subclass defines it."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Returns state and options; parameters are numbers in their order."""
        numbers = {id(each): number for number, each in enumerate(self._every())}
        groups = [{**{name: value for name, value in group.items() if name != "params"}, "params": [numbers[id(each)] for each in group["params"]]}
                  for group in self.param_groups]
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state. ValueError if its groups have other numbers of parameters."""
        groups = state_dict["param_groups"]
        sizes, own = [len(group["params"]) for group in groups], [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise _yoke.ValueError(f"load_state_dict(): argument 'state_dict' has groups of {sizes} parameters; it must have {own}")
        names = dict(zip((number for group in groups for number in group["params"]), self._every()))
        self.state = defaultdict(dict, {names.get(key, key): _copied(value) for key, value in state_dict["state"].items()})
        for mine, group in zip(self.param_groups, groups):
            mine.update({name: value for name, value in group.items() if name != "params"})

    def __repr__(self) -> str:
        return text_of(self)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return {name: _copied(each) for name, each in value.items()} if isinstance(value, dict) else value


def text_of(optimizer: Any) -> str:
    """Returns repr() of an optimizer: its groups and their options."""
    lines = [f"{type(optimizer).__name__} ("]
    for number, group in enumerate(optimizer.param_groups):
        lines.append(f"Parameter Group {number}")
        lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
    return "\n".join([*lines, ")"])


class GradScaler(amp.GradScaler):
    """Loss scaling. Where it is off, step() takes optimizers of scripts too."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscales, and steps unless a gradient is not finite; returns the result of the optimizer's step() where scaling is off."""
        if not self.is_enabled():
            return optimizer.step(*args, **kwargs)
        if args or kwargs:
            raise _yoke.UnsupportedError("GradScaler.step(): argument 'closure' is given; call closure() before")
        _need_ours("GradScaler.step", optimizer)
        super().step(optimizer)
        return None

    def unscale_(self, optimizer: Any) -> None:
        """Divides the optimizer's gradients by the scale now, for clipping."""
        if self.is_enabled():
            _need_ours("GradScaler.unscale_", optimizer)
            super().unscale_(optimizer)


def _need_ours(call: str, optimizer: Any) -> None:
    if isinstance(optimizer, Optimizer) and not isinstance(optimizer, optim.Optimizer):
        raise _yoke.UnsupportedError(f"{call}(): argument 'optimizer' is a {type(optimizer).__name__} of the script; scaling takes SGD, Adam and AdamW")


class CudaGradScaler(GradScaler):
    """Loss scaling for cards: torch.amp.GradScaler("cuda", …)."""

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


