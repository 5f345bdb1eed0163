"""Grad modes as context managers and decorators, and yoke.grad."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, TypeVar

from yoke import _modes, _yoke
from yoke._named import named
from yoke._yoke import Tensor

F = TypeVar("F", bound=Callable[..., Any])

# Code flags of functions whose body does not run at the call.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


class _GradMode:
    """Mode for the length of a `with` block or of a function's calls; may be nested and used again.

    The mode belongs to the context (contextvars): a task's block has no effect on other tasks, except the tasks made inside. A
    thread begins without blocks.
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        _modes.enter(self, "grad", self._enabled)

    def __exit__(self, *exception: object) -> None:
        _modes.leave(self)

    def __call__(self, function: F) -> F:
        """Decorates a function: the mode holds while the function runs, in any thread."""
        enabled = self._enabled
        return wrap_in_scope(function, type(self).__name__, lambda: Scope("grad", enabled))


class Scope:
    """Opens a block that is open until exit()."""

    def __init__(self, kind: str, value: Any) -> None:
        _modes.enter(self, kind, value)

    def exit(self) -> None:
        _modes.leave(self)


def need_plain_function(function: Callable[..., Any], name: str) -> None:
    """Raises for a function whose body would run outside the scope `name`."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & (_GENERATOR | _COROUTINE | _ASYNC_GENERATOR):
        raise _yoke.TypeError(f"{name}: '{function.__name__}' is a generator or coroutine, whose body runs after the call; write `with yoke.{name}():` inside it")


def wrap_in_scope(function: F, name: str, enter: Callable[[], Any]) -> F:
    """Returns `function` wrapped: each call runs in a new scope, opened by `enter`."""
    need_plain_function(function, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        scope = enter()
        try:
            return function(*args, **kwargs)
        finally:
            scope.exit()

    return wrapped  # type: ignore[return-value]


class no_grad(_GradMode):
    """Mode in which ops are not recorded: `with yoke.no_grad():`, or `@yoke.no_grad()` above a function."""

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)  # @yoke.no_grad, without brackets

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Mode in which ops are recorded again, inside a no_grad block."""

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Mode that turns recording on or off at once: for this thread, or until the end of the enclosing grad mode block. A `with`
    block restores the former mode at its end.
    """

    @named
    def __init__(self, enabled: bool) -> None:
        super().__init__(enabled)
        self._before: bool | None = _yoke._set_grad_enabled(enabled)  # if None, the immediate change was taken back

    def _take_back(self) -> None:
        if self._before is not None:
            _yoke._set_grad_enabled(self._before)
            self._before = None

    def __enter__(self) -> None:
        self._take_back()
        super().__enter__()

    def __call__(self, function: F) -> F:
        self._take_back()  # a decorator is about the function alone
        return super().__call__(function)


class Saved(NamedTuple):
    """Tensor that the tape keeps for the gradient of an op: in memory, or, if `recomputed`, to be recomputed."""
    op: str
    argument: str
    dtype: Any
    shape: tuple[int, ...]
    nbytes: int
    recomputed: bool


@named
def saved_tensors(tensor: Tensor) -> list[Saved]:
    """Lists the tensors kept by the tape for the gradient of the op that made `tensor`; empty for a leaf and after backward."""
    return [Saved(*saved) for saved in _yoke._saved_tensors(tensor)]


@named
def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
         grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool = False) -> list[Tensor]:
    """Computes the gradients of `outputs` with respect to `inputs`, a list as long as inputs; .grad of leaves does not change.

    grad_outputs weigh the elements of the outputs; None is allowed if an output has a single element. ValueError for an input on
    which no output depends, StateError for a second walk through a graph that was not retained.
    """
    return _yoke._grad(outputs, inputs, grad_outputs, retain_graph)
