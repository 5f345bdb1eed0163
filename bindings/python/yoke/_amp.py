"""Mixed precision: autocast regions."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

from yoke import _modes, _yoke
from yoke._grad import Scope, wrap_in_scope
from yoke._named import Named, refuse_device

F = TypeVar("F", bound=Callable[..., Any])

class autocast(Named):
    """Region whose ops run in a suitable dtype: `with yoke.autocast():`, or `@yoke.autocast()` above a function.

    Matrix products run in `dtype` (float16 or bfloat16; None: float16 on cuda, bfloat16 on cpu). Ops with a need for range or
    precision run in float32; docs/ops.md has the list. float64 and integers are never cast. Casts of float32 weights are kept
    until the outermost region ends, unless cache_enabled is False. Regions nest, and enabled=False inside a region switches it
    off. The region belongs to the context (contextvars): to its task and the tasks made there; a thread begins without regions.
    Backward needs no region.
    """

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        refuse_device("autocast", args, keywords)
        return super().__new__(cls, *args, **keywords)

    def __init__(self, dtype: Any = None, *, enabled: bool = True, cache_enabled: bool = True) -> None:
        self._options = (dtype, enabled, cache_enabled)
        _yoke._AutocastRegion(*self._options)  # raises for wrong options now, not later

    def __enter__(self) -> None:
        _modes.enter(self, "autocast", _yoke._AutocastRegion(*self._options))

    def __exit__(self, *exception: object) -> None:
        _modes.leave(self)

    def __call__(self, function: F) -> F:
        """Decorates a function: the region is in force while the function runs, in any thread."""
        options = self._options
        return wrap_in_scope(function, "autocast", lambda: Scope("autocast", _yoke._AutocastRegion(*options)))
