"""Modes of recording as context managers and decorators, yoke.grad and yoke.autograd.backward."""

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


class _Mode:
    """Mode for the length of a `with` block or of a function's calls; may be nested and used again.

    The mode belongs to the context (contextvars): a task's block has no effect on other tasks, except the tasks made inside. A
    thread begins without blocks.
    """

    _kind = "grad"

    def __init__(self, value: Any) -> None:
        self._value = value

    def __enter__(self) -> None:
        _modes.enter(self, self._kind, self._value)

    def __exit__(self, *exception: object) -> None:
        _modes.leave(self)

    def __call__(self, function: F) -> F:
        """Decorates a function: the mode holds while the function runs, in any thread."""
        kind, value = self._kind, self._value
        return wrap_in_scope(function, type(self).__name__, lambda: Scope(kind, value))


class _SetMode(_Mode):
    """Mode set at once: for this thread, or until the end of the enclosing block of its kind. A `with` block restores the former
    mode at its end.
    """

    _before: Any = None  # None: the immediate change was taken back

    def _set(self, value: Any) -> Any:
        raise NotImplementedError

    def _take_back(self) -> None:
        if self._before is not None:
            self._set(self._before)
            self._before = None

    def __enter__(self) -> None:
        self._take_back()
        super().__enter__()

    def __call__(self, function: F) -> F:
        self._take_back()  # a decorator is about the function alone
        return super().__call__(function)


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


class no_grad(_Mode):
    """Mode in which ops are not recorded: `with yoke.no_grad():`, or `@yoke.no_grad()` above a function."""

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)  # @yoke.no_grad, without brackets

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_Mode):
    """Mode in which ops are recorded again, inside a no_grad block."""

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_SetMode):
    """Mode that turns recording on or off at once: for this thread, or until the end of the enclosing grad mode block. A `with`
    block restores the former mode at its end.
    """

    @named
    def __init__(self, enabled: bool) -> None:
        super().__init__(enabled)
        self._before = self._set(enabled)

    def _set(self, value: Any) -> Any:
        return _yoke._set_grad_enabled(value)


class inference_mode(_Mode):
    """Mode without recording, as no_grad; inference_mode(False) records again. Its tensors may be used in recorded ops later."""

    def __new__(cls, *given: Any, **keywords: Any) -> Any:
        return cls()(given[0]) if given and callable(given[0]) else super().__new__(cls)  # without brackets

    @named
    def __init__(self, mode: bool = True) -> None:
        super().__init__(_yoke._truth(mode, "inference_mode", "mode") is False)


def _anomaly(mode: bool, check_nan: bool, call: str) -> int:
    """Returns the number of the mode, a YOKE_ANOMALY_*."""
    checks, is_on = _yoke._truth(check_nan, call, "check_nan"), _yoke._truth(mode, call, "mode")
    _yoke._comm_tell_lines(__file__)  # the library asks for lines of the script
    return (2 if checks else 1) if is_on else 0


class detect_anomaly(_Mode):
    """Mode that finds the first NaN of backward: ops note the line of the script, and backward raises StateError with the op, its
    argument and the line. With check_nan=False only errors of backward get the line. Backward waits for the device at each op.
    """

    _kind = "anomaly"

    @named
    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(_anomaly(True, check_nan, "detect_anomaly"))


class set_detect_anomaly(_SetMode):
    """Mode of detect_anomaly, turned on or off at once; a `with` block restores the former mode at its end."""

    _kind = "anomaly"

    @named
    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(_anomaly(mode, check_nan, "set_detect_anomaly"))
        self._before = self._set(self._value)

    def _set(self, value: Any) -> Any:
        return _yoke._set_detect_anomaly(value)


def is_anomaly_enabled() -> bool:
    """Returns whether ops note the line of the script for errors of backward."""
    return _yoke._get_detect_anomaly() > 0


def is_anomaly_check_nan_enabled() -> bool:
    """Returns whether backward looks for NaN."""
    return _yoke._get_detect_anomaly() == 2


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


def _read_flags(call: str, retain_graph: bool | None, create_graph: bool) -> bool:
    """Returns whether the graph stays; raises for a graph of gradients."""
    if _yoke._truth(create_graph, call, "create_graph"):
        raise _yoke.UnsupportedError(f"{call}(): argument 'create_graph' is True, but there are no second-order gradients; leave it out, and write the first gradient as ops of the forward if a loss needs it")
    return retain_graph is not None and _yoke._truth(retain_graph, call, "retain_graph")


@named
def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
         grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None, create_graph: bool = False,
         *, allow_unused: bool | None = None, materialize_grads: bool = False) -> list[Any]:
    """Computes the gradients of `outputs` with respect to `inputs`, a list as long as inputs; .grad of leaves does not change.

    grad_outputs weigh the elements of the outputs; None is allowed if an output has a single element. ValueError for an input on
    which no output depends: with allow_unused it gets None, with materialize_grads zeros. StateError for a second walk through a
    graph that was not retained. UnsupportedError for create_graph=True: there are no second-order gradients.
    """
    retain = _read_flags("grad", retain_graph, create_graph)
    zeros = _yoke._truth(materialize_grads, "grad", "materialize_grads")
    unused = zeros if allow_unused is None else _yoke._truth(allow_unused, "grad", "allow_unused")
    if zeros and not unused:
        raise _yoke.ValueError("grad(): argument 'materialize_grads' is True, but 'allow_unused' is False; leave 'allow_unused' out")
    grads = _yoke._grad(outputs, inputs, grad_outputs, retain, unused)
    if zeros:
        of = [inputs] if isinstance(inputs, Tensor) else inputs
        return [_yoke.zeros_like(x) if each is None else each for each, x in zip(grads, of)]
    return grads


@named
def backward(tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
             retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Tensor | Sequence[Tensor] | None = None) -> None:
    """Adds the gradients of `tensors` to the leaves behind them, or to `inputs` alone.

    grad_tensors weigh the elements; None is allowed for a tensor of one element. An input that is the result of an op retains its
    gradient (retain_grad). ValueError for an empty `inputs`; else as Tensor.backward.
    """
    retain = _read_flags("backward", retain_graph, create_graph)
    if inputs is not None and not isinstance(inputs, Tensor) and not len(inputs):
        raise _yoke.ValueError("backward(): argument 'inputs' is empty; give at least one tensor, or leave it out for all leaves")
    _yoke._backward(tensors, grad_tensors, () if inputs is None else inputs, retain)
