"""Mixed precision: autocast regions."""

from __future__ import annotations

import threading
from typing import Any, Callable, TypeVar

from yoke import _yoke
from yoke._grad import wrap_in_scope

F = TypeVar("F", bound=Callable[..., Any])


class _Open(threading.local):
    """The regions that are open in a thread, innermost last, each with who opened it; `base` was there before."""

    def __init__(self) -> None:
        self.regions: list[tuple[object, Any]] = []
        self.base: Any = None


_open = _Open()


def _enter(owner: object, options: tuple[Any, ...]) -> None:
    region = _yoke._AutocastRegion(*options)
    if not _open.regions:
        _open.base = _yoke._AutocastRegion.current()
    _open.regions.append((owner, region))
    region.put_in_force()


def _leave(owner: object) -> None:
    """Ends the innermost region of this owner; what is then innermost is in force, in whatever order regions end."""
    for i in reversed(range(len(_open.regions))):
        if _open.regions[i][0] is owner:
            del _open.regions[i]
            (_open.regions[-1][1] if _open.regions else _open.base).put_in_force()
            return
    raise _yoke.StateError("autocast: this region is not open in this thread; it ends where it began")


class _Scope:
    """A region in force until exit()."""

    def __init__(self, options: tuple[Any, ...]) -> None:
        _enter(self, options)

    def exit(self) -> None:
        _leave(self)


class autocast:
    """Ops run in the dtype that suits them: `with yoke.autocast():`, or `@yoke.autocast()` above a function.

    Matrix products run in `dtype` (float16 or bfloat16; None: float16 on cuda, bfloat16 on cpu), what needs range
    or precision in float32; docs/ops.md tells which. float64 and integers are never cast. Casts of float32 weights
    are kept until the outermost region ends, unless cache_enabled is False. Regions nest, and enabled=False inside
    one switches it off. The region belongs to the thread (tasks of one event loop share it); backward needs none.
    """

    def __init__(self, dtype: Any = None, enabled: bool = True, cache_enabled: bool = True) -> None:
        self._options = (dtype, enabled, cache_enabled)
        _yoke._AutocastRegion(*self._options)  # what is wrong with them is said here, not later

    def __enter__(self) -> None:
        _enter(self, self._options)

    def __exit__(self, *exception: object) -> None:
        _leave(self)

    def __call__(self, function: F) -> F:
        """Decorates a function: the region is in force while it runs, in whichever thread."""
        options = self._options
        return wrap_in_scope(function, "autocast", lambda: _Scope(options))
