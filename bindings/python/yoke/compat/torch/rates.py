"""torch.optim.lr_scheduler: PyTorch's schedules, as formulas of the epoch over optimizer.param_groups."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

from yoke import _yoke
from yoke.compat.torch.own_steps import Optimizer


class LRScheduler:
    """Base of all schedules: get_lr() returns the rates at last_epoch."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise _yoke.TypeError(f"{type(self).__name__}(): argument 'optimizer' is a {type(optimizer).__name__}; it takes an optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in param_groups when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """Returns the rate of each group at last_epoch."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """Returns the present rates."""
        return self._last_lr

    @property
    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Moves to the next epoch."""
        if not self._is_initial and self._step_count == 1:
            core = getattr(self.optimizer, "_core", None)  # a script's own optimizer has none
            if core is not None:
                core.note_schedule()
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        self._put(closed() if epoch is not None and closed is not None else self.get_lr())

    def _put(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = self._rates

    def state_dict(self) -> dict[str, Any]:
        """Returns all attributes but the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state; the optimizer's rates come with the optimizer's state."""
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """The base rate times lr_lambda(epoch)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(optimizer.param_groups)
        if len(self.lr_lambdas) != len(optimizer.param_groups):
            raise _yoke.ValueError(f"{type(self).__name__}(): argument 'lr_lambda' has {len(self.lr_lambdas)} functions for {len(optimizer.param_groups)} groups; give one for each group")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state without functions; objects that can be called give their attributes."""
        state = {name: value for name, value in vars(self).items() if name not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if hasattr(each, "__code__") else dict(vars(each)) for each in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state, with the present functions."""
        own = dict(state_dict)
        for function, values in zip(self.lr_lambdas, own.pop("lr_lambdas")):
            if values is not None:
                vars(function).update(values)
        vars(self).update(own)


class MultiplicativeLR(LambdaLR):
    """The rate before times lr_lambda(epoch)."""

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self._rates)]


class StepLR(LRScheduler):
    """Multiplies the rate by gamma after every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0
        return [rate * factor for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Any, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * self.gamma ** self.milestones.count(self.last_epoch) for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** bisect_right(self.milestones, self.last_epoch) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """factor times the rate before total_iters, then the rate."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = self.factor if self.last_epoch == 0 else 1 / self.factor if self.last_epoch == self.total_iters else 1.0
        return [rate * factor for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * (1.0 if self.last_epoch >= self.total_iters else self.factor) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Takes the rate in equal parts from start_factor to end_factor times the rate, in total_iters epochs."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates
        change = self.end_factor - self.start_factor
        factor = 1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)
        return [rate * factor for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma at each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * (1.0 if self._is_initial else self.gamma) for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Lets the rate fall to 0 by (1 - epoch / total_iters) ** power."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates
        factor = ((1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power
        return [rate * factor for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate down to eta_min in T_max epochs, then up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * up for base, rate in zip(self.base_lrs, self._rates)]
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max))
        return [part * (rate - self.eta_min) + self.eta_min for rate in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the rate to eta_min, again and again: T_0 epochs, then T_mult times as many."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Moves to the next epoch, or to a place within epochs."""
        place = max(0, self.last_epoch + 1) if epoch is None else epoch
        self.T_cur, self.T_i = place, self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self._step_count += 1
        self.last_epoch = math.floor(place)
        self._put(self.get_lr())


class OneCycleLR(LRScheduler):
    """Rises to max_lr over pct_start of the steps, and falls; the momentum goes the other way."""

    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
                 pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95,
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise _yoke.ValueError("OneCycleLR(): argument 'total_steps' is missing; give total_steps, or epochs and steps_per_epoch")
        self.total_steps = total_steps if total_steps is not None else int(epochs or 0) * int(steps_per_epoch or 0)
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        rise = float(pct_start * self.total_steps) - 1
        if three_phase:
            self._phases = [(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum"), (2 * rise, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                            (self.total_steps - 1.0, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self._phases = [(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                            (self.total_steps - 1.0, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        count = len(optimizer.param_groups)
        for group, most, low, high in zip(optimizer.param_groups, *(list(each) if isinstance(each, (list, tuple)) else [each] * count
                                                                   for each in (max_lr, base_momentum, max_momentum))):
            if last_epoch == -1:
                group.update(initial_lr=most / div_factor, max_lr=most, min_lr=most / div_factor / final_div_factor, lr=most / div_factor)
                if cycle_momentum:
                    group.update(base_momentum=low, max_momentum=high)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise _yoke.ValueError(f"OneCycleLR: argument 'total_steps' is {self.total_steps}, but this is step {self.last_epoch}; it must be the number of all steps")
        rates, start = [], 0.0
        for group in self.optimizer.param_groups:
            start = 0.0
            for end, low, high, momentum, other in self._phases:
                if self.last_epoch <= end or end == self.total_steps - 1.0:
                    break
                start = end
            share = (self.last_epoch - start) / (end - start)
            rates.append(self._between(group[low], group[high], share))
            if self.cycle_momentum:
                self._put_momentum(group, self._between(group[momentum], group[other], share))
        return rates

    @staticmethod
    def _put_momentum(group: dict[str, Any], value: float) -> None:
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class SequentialLR(LRScheduler):
    """Schedules in order: at each milestone the next begins."""

    def __init__(self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1) -> None:
        self.optimizer, self._schedulers, self._milestones = optimizer, schedulers, milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for each in schedulers:
            each.last_epoch -= 1
        schedulers[0]._is_initial = True
        schedulers[0].step()
        schedulers[0]._is_initial = False
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Moves to the next epoch."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            current.step(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Returns the states of all schedules."""
        state = {name: value for name, value in vars(self).items() if name not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state."""
        own = dict(state_dict)
        for each, state in zip(self._schedulers, own.pop("_schedulers")):
            each.load_state_dict(state)
        vars(self).update(own)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by factor if a measure has not become better for `patience` epochs."""

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8) -> None:
        if factor >= 1.0 or mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise _yoke.ValueError(f"ReduceLROnPlateau(): arguments 'factor', 'mode' and 'threshold_mode' are {factor}, {mode!r} and {threshold_mode!r}; 'factor' must be below 1, 'mode' 'min' or 'max', 'threshold_mode' 'rel' or 'abs'")
        self.optimizer, self.mode, self.factor, self.patience, self.threshold, self.threshold_mode = optimizer, mode, factor, patience, threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * len(optimizer.param_groups)
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self._last_lr = self._rates

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        edge = self.best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else self.best + sign * self.threshold
        return value > edge if self.mode == "max" else value < edge

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the measure of an epoch."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            rates = [max(rate * self.factor, least) for rate, least in zip(self._rates, self.min_lrs)]
            self._put([new if rate - new > self.eps else rate for rate, new in zip(self._rates, rates)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates
