"""Functions of a script that are called when a device is out of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yoke import _yoke
from yoke._named import named


class OutOfMemoryHandle:
    """Registration from on_out_of_memory(), also for a `with` block; the block's end removes the registration."""

    def __init__(self, fn: Callable[[_yoke.Device, int], Any]) -> None:
        self._id = _yoke._add_on_out_of_memory(fn)

    def remove(self) -> None:
        """Removes the function: it is no longer called. A second call does nothing."""
        number, self._id = self._id, 0
        if number:
            _yoke._remove_on_out_of_memory(number)

    def __enter__(self) -> OutOfMemoryHandle:
        if not self._id:
            raise _yoke.StateError("on_out_of_memory(): this handle was removed; create a new handle")
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


@named
def on_out_of_memory(fn: Callable[[_yoke.Device, int], Any]) -> OutOfMemoryHandle:
    """Calls fn(device, bytes) before a request of this size fails with OutOfMemoryError.

        handle = yoke.on_out_of_memory(lambda device, bytes: cache.drop(bytes))

    By then all cached memory was given back, and garbage was collected. If fn returns a true value, the request tries again, at
    most three times. Several functions are called in the order of their addition. The function stays until remove() of the
    result.

    fn runs in the thread of the request, within the call that needs the memory, such as an op, backward() or step(). It may
    release tensors and call the library. If fn raises an Exception, sys.unraisablehook reports it, and fn counts as False.
    KeyboardInterrupt and SystemExit leave the call. TypeError for an object that is not callable.
    """
    return OutOfMemoryHandle(fn)
