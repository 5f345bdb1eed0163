"""Optimizers with PyTorch's arguments, over Yoke's."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import optim
from yoke.compat.torch.options import refused
from yoke.compat.torch.own_steps import text_of
from yoke.compat.torch.states import optimizer_from_torch, optimizer_to_torch


def _named(params: Any) -> Any:
    """Returns the tensors of pairs of a name and a tensor, such as net.named_parameters() has."""
    if isinstance(params, yoke.Tensor):
        return params
    params = list(params)
    return [each[1] for each in params] if params and isinstance(params[0], tuple) else params


# Options of PyTorch that Yoke does not have, with the value that changes nothing.
_OFF = {"dampening": 0, "maximize": False, "amsgrad": False, "differentiable": False, "decoupled_weight_decay": False}


class _Steps:
    """What PyTorch's optimizers have in common. foreach, fused and capturable choose among equal ways, and change no value."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds tensors with their options. Entries that no option has, such as a name, stay in the group."""
        known = {"params", *self._OPTIONS}  # type: ignore[attr-defined]
        more = {name: value for name, value in param_group.items() if name not in known}
        refused(type(self).__name__, **{name: (value, _OFF[name]) for name, value in more.items() if name in _OFF})
        own = {name: value for name, value in param_group.items() if name in known}
        if "params" in own:
            own["params"] = _named(own["params"])
        super().add_param_group(own)  # type: ignore[misc]
        self.param_groups[-1].update(more)  # type: ignore[attr-defined]

    def step(self, closure: Any = None) -> Any:
        """Steps over every parameter with a gradient; calls closure() before, and returns its result."""
        loss = None
        if closure is not None:
            with yoke.enable_grad():
                loss = closure()
        super().step()  # type: ignore[misc]
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Returns state and options in PyTorch's form."""
        return optimizer_to_torch(self)  # type: ignore[arg-type]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state of PyTorch's form."""
        optimizer_from_torch(self, state_dict)  # type: ignore[arg-type]

    __repr__ = text_of

    @property
    def state(self) -> dict[Any, dict[str, Any]]:
        """State of each parameter, a copy of the optimizer's own."""
        values = self.state_dict()["state"]  # type: ignore[attr-defined]
        params = [each for group in self.param_groups for each in group["params"]]  # type: ignore[attr-defined]
        return {params[number]: value for number, value in values.items()}


class SGD(_Steps, optim.SGD):
    """Stochastic gradient descent."""

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None) -> None:
        refused("SGD", dampening=(dampening, 0), maximize=(maximize, False), differentiable=(differentiable, False))
        optim.SGD.__init__(self, _named(params), _number(lr), momentum, weight_decay=weight_decay, nesterov=nesterov)


def _number(lr: Any) -> float:
    return lr.item() if isinstance(lr, yoke.Tensor) else lr


class Adam(_Steps, optim.Adam):
    """Adam."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        refused("Adam", amsgrad=(amsgrad, False), maximize=(maximize, False), differentiable=(differentiable, False),
                decoupled_weight_decay=(decoupled_weight_decay, False))
        optim.Adam.__init__(self, _named(params), _number(lr), betas, eps, weight_decay)


class AdamW(_Steps, optim.AdamW):
    """Adam whose weight decay stands apart from the gradient."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        refused("AdamW", amsgrad=(amsgrad, False), maximize=(maximize, False), differentiable=(differentiable, False))
        optim.AdamW.__init__(self, _named(params), _number(lr), betas, eps, weight_decay)


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> yoke.Tensor:
    """Multiplies all gradients by the same factor, so that their norm is max_norm at most; returns the norm before."""
    norm = optim.clip_grad_norm_(_named(parameters), float(max_norm), float(norm_type))
    if error_if_nonfinite and not yoke.isfinite(norm).item():
        raise RuntimeError(f"clip_grad_norm_(): argument 'parameters' has gradients of norm {norm.item()}; the norm must be finite, as 'error_if_nonfinite' is True")
    return norm


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Holds each element of all gradients between -clip_value and clip_value."""
    yoke.nn.utils.clip_grad_value_(_named(parameters), clip_value)
