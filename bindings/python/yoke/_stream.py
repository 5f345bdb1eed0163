"""The current stream as a context manager."""

from __future__ import annotations

from yoke import _modes, _yoke
from yoke._named import Named
from yoke._yoke import Stream


class stream(Named):
    """Puts this thread's work into a stream, and makes the device of the stream current: `with yoke.stream(s):`. A block belongs to the context
    (contextvars), as no_grad's does.

    The block only sets the current stream, as PyTorch's does: memory read by the stream must have been written on the stream, or
    be ordered by an event or s.wait_stream(other).
    """

    def __init__(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise _yoke.TypeError(f"stream(): argument 'stream' must be a Stream, not {type(stream).__name__}")
        self._stream = stream

    def __enter__(self) -> Stream:
        _modes.enter(self, "stream", self._stream)
        return self._stream

    def __exit__(self, *exception: object) -> None:
        _modes.leave(self)
