"""Optimizers of PyTorch that Yoke's core does not have, as ops for each parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yoke
from yoke._yoke import Tensor
from yoke.compat.torch.options import refused
from yoke.compat.torch.own_steps import Optimizer


class _ByOps(Optimizer):
    """Calls _change() for each parameter with a gradient."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Steps over every parameter with a gradient; calls closure() before, and returns its result."""
        loss = None
        if closure is not None:
            with yoke.enable_grad():
                loss = closure()
        with yoke.no_grad():
            for group in self.param_groups:
                for each in group["params"]:
                    if each.grad is not None:
                        gradient = each.grad if not group["weight_decay"] else each.grad + group["weight_decay"] * each
                        self._change(each, -gradient if group["maximize"] else gradient, self.state[each], group)
        return loss

    def _change(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError


class RMSprop(_ByOps):
    """Divides gradients by the root of their mean square (G. Hinton)."""

    def __init__(self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        refused("RMSprop", differentiable=(differentiable, False))
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                                  "maximize": maximize})

    def _change(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        for name, wanted in (("square_avg", True), ("grad_avg", group["centered"]), ("momentum_buffer", group["momentum"])):
            if wanted and name not in state:
                state[name] = yoke.zeros_like(parameter)
        state["step"] = state.get("step", 0) + 1
        alpha, square = group["alpha"], state["square_avg"]
        square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if group["centered"]:
            state["grad_avg"].lerp_(gradient, 1 - alpha)
            square = square - state["grad_avg"] * state["grad_avg"]
        scaled = gradient / (yoke.sqrt(square) + group["eps"])
        if group["momentum"]:
            scaled = state["momentum_buffer"].mul_(group["momentum"]).add_(scaled)
        parameter.sub_(scaled, alpha=group["lr"])


class Adagrad(_ByOps):
    """Divides gradients by the root of the sum of all their squares (J. Duchi et al.)."""

    def __init__(self, params: Any, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0,
                 eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        refused("Adagrad", differentiable=(differentiable, False))
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "initial_accumulator_value": initial_accumulator_value})

    def _change(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if "sum" not in state:
            state.update(step=0, sum=yoke.full_like(parameter, group["initial_accumulator_value"]))
        state["step"] += 1
        state["sum"].addcmul_(gradient, gradient)
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        parameter.addcdiv_(gradient, yoke.sqrt(state["sum"]) + group["eps"], value=-rate)
