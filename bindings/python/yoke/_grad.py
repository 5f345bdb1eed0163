"""Grad modes as context managers and decorators, and yoke.grad."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable, TypeVar

from yoke import _yoke
from yoke._yoke import Tensor

F = TypeVar("F", bound=Callable[..., Any])

# Code flags of functions whose body does not run when they are called.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


class _GradMode:
    """A mode for the length of a `with` block or of a function's calls; may be nested and used again."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        self._outer.append(_yoke._set_grad_enabled(self._enabled))

    def __exit__(self, *exception: object) -> None:
        _yoke._set_grad_enabled(self._outer.pop())

    def __call__(self, function: F) -> F:
        """Decorates a function: the mode holds while it runs, in whichever thread."""
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & (_GENERATOR | _COROUTINE | _ASYNC_GENERATOR):
            raise _yoke.TypeError(f"{type(self).__name__}: '{function.__name__}' is a generator or coroutine, whose body "
                                  f"runs after the call; write `with yoke.{type(self).__name__}():` inside it")
        enabled = self._enabled

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            outer = _yoke._set_grad_enabled(enabled)
            try:
                return function(*args, **kwargs)
            finally:
                _yoke._set_grad_enabled(outer)

        return wrapped  # type: ignore[return-value]


class no_grad(_GradMode):
    """Ops are not recorded: `with yoke.no_grad():`, or `@yoke.no_grad()` above a function."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Ops are recorded again, inside a no_grad block."""

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Turns recording on or off at once; as a `with` block it restores the mode at its end."""

    def __init__(self, enabled: bool) -> None:
        super().__init__(enabled)
        self._before = _yoke._set_grad_enabled(enabled)

    def __enter__(self) -> None:
        self._outer.append(self._before)
        self._before = _yoke._set_grad_enabled(self._enabled)

    def __call__(self, function: F) -> F:
        _yoke._set_grad_enabled(self._before)  # a decorator is about the function alone
        return super().__call__(function)


def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
         grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool = False) -> list[Tensor]:
    """Gradients of `outputs` with respect to `inputs`, a list as long as inputs; .grad of leaves stays as it is.

    grad_outputs weigh the elements of the outputs, and may be left out where an output has one element.
    ValueError for an input that no output depends on, StateError for a second time through a record that was
    not retained.
    """
    return _yoke._grad(outputs, inputs, grad_outputs, retain_graph)
