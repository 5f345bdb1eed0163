"""A store of the program's, by which comm.init() finds rank 0."""

from __future__ import annotations

import datetime
import time
from typing import Any

from yoke import _yoke
from yoke._check import noun, shown


class HostStore:
    """Calls of comm.init() on a store of the program. Each call returns a status, and the value or the problem."""

    _OK, _LATE, _FAILED = range(3)
    _EARLY = 0.01  # seconds by which a store's wait may end too early: PyTorch's count whole milliseconds

    def __init__(self, store: Any) -> None:
        for name in ("set", "get"):
            if not callable(getattr(store, name, None)):
                raise _yoke.TypeError(f"init(): argument 'store' is {shown(store)}, which does not have a method {name}(); give an object with set(key, value) and get(key), such as a store of torch.distributed")
        self._store = store
        self.failure: Exception | None = None

    def set(self, key: str, value: str) -> tuple[int, str]:
        try:
            self._store.set(key, value)
        except Exception as error:  # Ctrl-C leaves init() as it is
            return self._failed(error, self._FAILED)
        return self._OK, ""

    def get(self, key: str, timeout: float) -> tuple[int, str]:
        until = time.monotonic() + timeout
        try:
            value = self._awaited(key, until)
        except Exception as error:
            is_late = isinstance(error, TimeoutError) or time.monotonic() >= until - self._EARLY
            return self._failed(error, self._LATE if is_late else self._FAILED)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._OK, bytes(value).decode(errors="replace")
        if isinstance(value, str):
            return self._OK, value
        wrong = TypeError(f"get() returned {noun(value)}; it must return bytes or a str")
        return self._failed(wrong, self._FAILED) if value is not None else (self._LATE, "no rank has set the key within the timeout")

    def _awaited(self, key: str, until: float) -> object:
        """Returns the value once it is there. If a store's get() does not wait, it returns None until then."""
        if callable(getattr(self._store, "wait", None)):
            self._store.wait([key], datetime.timedelta(seconds=max(until - time.monotonic(), 0.001)))
        while True:
            value = self._store.get(key)
            if value is not None or time.monotonic() >= until:
                return value
            time.sleep(0.01)

    def _failed(self, error: Exception, status: int) -> tuple[int, str]:
        self.failure = error
        return status, f"{type(error).__name__}: {error}"
