"""Functions of a script that are asked when a device has no memory left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yoke import _yoke


class OutOfMemoryHandle:
    """What on_out_of_memory() returns: a registration, also for a `with` block, at the end of which it is removed."""

    def __init__(self, fn: Callable[[_yoke.Device, int], Any]) -> None:
        self._id = _yoke._add_on_out_of_memory(fn)

    def remove(self) -> None:
        """The function is no longer asked. A second call does nothing."""
        number, self._id = self._id, 0
        if number:
            _yoke._remove_on_out_of_memory(number)

    def __enter__(self) -> OutOfMemoryHandle:
        if not self._id:
            raise _yoke.StateError("on_out_of_memory(): this handle was removed; make a new one")
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def on_out_of_memory(fn: Callable[[_yoke.Device, int], Any]) -> OutOfMemoryHandle:
    """Asks fn(device, bytes) before a request of so many bytes fails with OutOfMemoryError.

        handle = yoke.on_out_of_memory(lambda device, bytes: cache.drop(bytes))

    By then all that is cached was given back, and garbage was collected. If fn returns a true value, the request tries
    again; it asks three times at most. Several functions are asked in the order in which they were added. The function
    stays until remove() of what this returns.

    fn runs in the thread that asks for memory, amid the call that needs it, such as an op, backward() or step(). It may
    let go of tensors and call the library. If fn raises an Exception, sys.unraisablehook tells of it, and fn counts as
    having returned False. KeyboardInterrupt and SystemExit leave the call. TypeError for what is not callable.
    """
    return OutOfMemoryHandle(fn)
