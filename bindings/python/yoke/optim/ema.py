"""An exponential moving average of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, Iterator

from yoke import _yoke
from yoke._check import listed
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
        self._depth = 0  # depth of nested applied()

    def update(self) -> None:
        """Takes the parameters in, after a step of their optimizer."""
        self._core.update()

    def copy_to_params(self) -> None:
        """Puts the averages into the parameters."""
        self._core.copy_to_params()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Puts the averages into the parameters inside, and the parameters back afterwards. A nested call has no effect."""
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
        """Decay and averages. The tensors are live: clone() them to keep their values."""
        state: dict[str, Any] = self._core.state()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over copies of what state_dict() gave, of as many parameters of the same shapes; else ValueError or
        TypeError."""
        self._core.load_state(state_dict)
        self.decay = self._core.state()["decay"]
