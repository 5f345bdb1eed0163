"""Exponential moving average of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, Iterator

from yoke import _yoke
from yoke._check import listed
from yoke._named import Named, named
from yoke._yoke import Tensor

__all__ = ["EMA"]


class EMA(Named):
    """Average of parameters, which begins as a copy: average = decay * average + (1 - decay) * parameter at each update().

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
        """Adds the present parameters to the averages, after a step of their optimizer."""
        self._core.update()

    def copy_to_params(self) -> None:
        """Copies the averages into the parameters."""
        self._core.copy_to_params()

    @contextmanager
    @named
    def applied(self) -> Iterator[None]:
        """Copies the averages into the parameters for a block, and restores the parameters afterwards. A nested call has no effect."""
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
        """Averages in the order of the parameters; the tensors are live."""
        return [self._core.average(i) for i in range(len(self.params))]

    def state_dict(self) -> dict[str, Any]:
        """Returns decay and averages. The tensors are live: clone() them to keep their values."""
        state: dict[str, Any] = self._core.state()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads copies of a result of state_dict(). ValueError or TypeError unless number and shapes of the parameters are the
        same."""
        self._core.load_state(state_dict)
        self.decay = self._core.state()["decay"]
