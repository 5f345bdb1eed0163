"""An exponential moving average of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, Iterator

from yoke import _yoke
from yoke._check import entries, listed, tensor
from yoke._grad import no_grad
from yoke._named import Named
from yoke._yoke import Tensor

__all__ = ["EMA"]


class EMA(Named):
    """average = decay * average + (1 - decay) * parameter, at each update(); it begins as a copy.

        ema = yoke.optim.EMA(net.parameters(), decay=0.999)
        optimizer.step(); ema.update()
        with ema.applied():
            evaluate(net)  # with the averages in place of the parameters

    Averages are float32 (float64 of float64), where a small weight still counts.
    """

    def __init__(self, params: Iterable[Tensor], decay: float = 0.999) -> None:
        self.params = listed("EMA", "params", params, "tensors")
        self.decay = decay
        self._core = _yoke._Ema(self.params, decay)
        self._depth = 0  # of applied() in applied()

    def update(self) -> None:
        """Takes the parameters in, after a step of their optimizer."""
        self._core.update()

    def copy_to_params(self) -> None:
        """Puts the averages into the parameters."""
        self._core.copy_to_params()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The parameters are the averages inside, and themselves again after it; inside itself it changes nothing."""
        if self._depth == 0:
            self._core.swap()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._core.swap()

    @property
    def averages(self) -> list[Tensor]:
        """The averages, live, in the order of the parameters."""
        return [self._core.average(i) for i in range(len(self.params))]

    def state_dict(self) -> dict[str, Any]:
        """Decay and averages. The tensors are the live ones: clone() what must stay."""
        return {"decay": self.decay, "averages": self.averages}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over copies of what state_dict() gave, of as many parameters of the same shapes; else ValueError or
        TypeError."""
        if self._depth > 0:
            raise _yoke.StateError("load_state_dict(): the averages stand in the place of the parameters; leave applied() first")
        call = "load_state_dict"
        decay, averages = entries(call, "state_dict", state_dict, ("decay", "averages"))
        averages = [tensor(call, "averages", each) for each in listed(call, "averages", averages, "tensors")]
        shapes, own = ([tuple(t.shape) for t in side] for side in (averages, self.params))
        if shapes != own:
            raise _yoke.ValueError(f"load_state_dict(): averages of shapes {shapes} for parameters of shapes {own}")
        core = _yoke._Ema(self.params, decay)
        with no_grad():
            for i, average in enumerate(averages):
                core.average(i).copy_(average)
        self.decay, self._core = decay, core
