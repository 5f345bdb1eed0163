"""The current stream as a context manager."""

from __future__ import annotations

import threading

from yoke import _yoke
from yoke._yoke import Device, Stream


class _Outer(threading.local):
    """What a thread found in force where it entered an object's blocks, innermost last."""

    def __init__(self) -> None:
        self.places: list[tuple[Device, Stream]] = []


class stream:
    """Gives this thread's work to a stream, and makes its device the current one: `with yoke.stream(s):`.

    The block only sets what is current, as PyTorch's does: what the stream reads must have been written on
    it, or be ordered by an event or s.wait_stream(other).
    """

    def __init__(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise _yoke.TypeError(f"stream(): argument 'stream' must be a Stream, not {type(stream).__name__}")
        self._stream = stream
        self._outer = _Outer()

    def __enter__(self) -> Stream:
        device = self._stream.device
        before = _yoke.current_stream(device)
        outer = _yoke.current_device()
        _yoke.set_stream(self._stream)
        _yoke.set_device(device)
        self._outer.places.append((outer, before))
        return self._stream

    def __exit__(self, *exception: object) -> None:
        device, before = self._outer.places.pop()
        _yoke.set_stream(before)
        _yoke.set_device(device)
