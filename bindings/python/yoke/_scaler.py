"""Loss scaling for float16."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yoke import _yoke
from yoke._check import number
from yoke._named import Named, refuse_device
from yoke._yoke import Tensor
from yoke.optim.optimizer import Optimizer, need_optimizer


class GradScaler(Named):
    """Loss scaling against the loss of small gradients in float16: the loss is multiplied by a scale, gradients are divided by the
    scale.

        with yoke.autocast(yoke.float16):
            loss = loss_fn(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # skipped if a gradient is infinite or NaN
        scaler.update()         # smaller then; larger after growth_interval good iterations

    The rules are those of PyTorch's GradScaler. To clip, call unscale_(optimizer) before. To gather gradients over n
    batches, divide each loss by n, and call step and update after the last alone. Scale and overflow flags stay on the
    device: only get_scale and state_dict wait for them. One scaler is for one thread at a time.
    """

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        refuse_device("GradScaler", args, keywords)
        return super().__new__(cls, *args, **keywords)

    def __init__(self, *, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        self._enabled = bool(enabled)
        self._core = _yoke._GradScaler((init_scale, growth_factor, backoff_factor, growth_interval, 0))
        self._rule = (growth_factor, backoff_factor, growth_interval)

    def scale(self, outputs: Any) -> Any:
        """Returns the outputs times the scale: a tensor, or lists and tuples of tensors, nested as given."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return self._core.scale(outputs)
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(each) for each in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes, dict)):
            return map(self.scale, outputs)
        raise _yoke.TypeError(f"scale(): argument 'outputs' must be a tensor or an iterable of tensors, not {type(outputs).__name__}")

    @staticmethod
    def _core_of(optimizer: Any, call: str) -> _yoke._Optimizer:
        return need_optimizer(call, optimizer)._tell()

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the optimizer's gradients by the scale now, for clipping; at most once an iteration."""
        core = self._core_of(optimizer, "unscale_")
        if self._enabled:
            self._core.unscale(core)

    def step(self, optimizer: Optimizer) -> None:
        """Unscales, if the gradients are not yet unscaled, and steps unless a gradient is not finite.

        After an OutOfMemoryError the step may be repeated; for other gradients call update() first.
        """
        core = self._core_of(optimizer, "step")
        if self._enabled:
            self._core.step(core)
        else:
            optimizer.step()

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Ends an iteration after the steps of all its optimizers; new_scale overrides the rule."""
        if not self._enabled:
            return
        if new_scale is None:
            self._core.update()
            return
        if not isinstance(new_scale, Tensor):
            new_scale = _yoke.tensor(float(number("update", "new_scale", new_scale)), dtype=_yoke.float32,
                                     device="cpu")  # where its value is looked at
        self._core.update_to(new_scale)

    def get_scale(self) -> float:
        """Returns the present scale, 1 if disabled. Waits for the device."""
        return self._core.get_state()[0] if self._enabled else 1.0

    def is_enabled(self) -> bool:
        return self._enabled

    def get_growth_factor(self) -> float:
        return self._rule[0]

    def set_growth_factor(self, new_factor: float) -> None:
        self._set_rule(new_factor, self._rule[1], self._rule[2])

    def get_backoff_factor(self) -> float:
        return self._rule[1]

    def set_backoff_factor(self, new_factor: float) -> None:
        self._set_rule(self._rule[0], new_factor, self._rule[2])

    def get_growth_interval(self) -> int:
        return self._rule[2]

    def set_growth_interval(self, new_interval: int) -> None:
        self._set_rule(self._rule[0], self._rule[1], new_interval)

    def _set_rule(self, growth_factor: float, backoff_factor: float, growth_interval: int) -> None:
        self._core.set_rule(growth_factor, backoff_factor, growth_interval)
        self._rule = (growth_factor, backoff_factor, growth_interval)

    def __getstate__(self) -> tuple[bool, tuple[float, float, float, int, int]]:
        return self._enabled, self._core.get_state()

    def __setstate__(self, state: tuple[bool, tuple[float, float, float, int, int]]) -> None:
        self._enabled, values = state
        self._core = _yoke._GradScaler(values)
        self._rule = values[1:4]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state for load_state_dict(), after update(); {} if disabled."""
        state: dict[str, Any] = self._core.state() if self._enabled else {}
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from state_dict()'s result, with a new iteration; does nothing if disabled. ValueError or TypeError if the state
        does not fit.
        """
        if not self._enabled:
            return
        self._core.load_state(state_dict)
        self._rule = self._core.get_state()[1:4]
