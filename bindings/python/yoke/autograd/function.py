"""Functions of a script with a backward of their own."""

from __future__ import annotations

import functools
from _thread import get_ident
from typing import Any, Callable, TypeVar

from yoke import _yoke
from yoke._yoke import Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]

F = TypeVar("F", bound=Callable[..., Any])

_FRESH, _CONSTANT, _WRITTEN = 0, 1, 2  # YOKE_OUTPUT_*


class FunctionCtx:
    """What a call of a Function passes from its forward to its backward, the argument `ctx`. A script may set further attributes,
    but not to an output of the call, which would then live for ever.
    """

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self, name: str) -> None:
        self._name = name
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: dict[int, tuple[Tensor | None, ...]] = {}  # by thread in backward
        self._written: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materializes = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps inputs, outputs and other tensors of forward for backward; None stays None. Backward raises StateError if such a
        tensor was changed in place since.
        """
        for each in tensors:
            if each is not None and not isinstance(each, Tensor):
                raise _yoke.TypeError(f"save_for_backward(): an argument is of type {type(each).__name__}; it takes tensors and None, set other values as attributes of ctx")
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Tensors of save_for_backward, in backward; tensors of the same memory, without history."""
        saved = self._saved.get(get_ident())
        if saved is None:
            raise _yoke.StateError(f"saved_tensors: {self._name} has saved tensors only while its backward runs; read them there")
        return saved

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Notes inputs that forward has changed in place; forward returns each of them."""
        self._written = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Notes outputs without a gradient. Outputs of integer dtypes have none anyway."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether backward gets zeros for an output without a gradient, as at first, or None."""
        self._materializes = _yoke._truth(value, "set_materialize_grads", "value")


def _is_among(x: object, tensors: tuple[Any, ...]) -> bool:
    return any(x is each for each in tensors)


class Function:
    """Op of a script with its own gradient: a class with static methods forward(ctx, …) and backward(ctx, *gradients).

    MyFunction.apply(…) calls forward without recording, and returns its tensors, recorded as one op. backward gets a gradient for
    each output, and returns a gradient or None for each argument of forward. There are no second-order gradients. With a static
    setup_context(ctx, inputs, output), forward takes no ctx.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise _yoke.TypeError(f"{type(self).__name__}: a Function has no instances; call {type(self).__name__}.apply(…), and write forward and backward as static methods")

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """Computes the outputs, a tensor or a tuple, from (ctx, …), or from (…) beside a setup_context."""
        raise _yoke.UnsupportedError("apply(): the Function has no forward; write a static method forward(ctx, …)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Saves what backward needs, after a forward without ctx."""
        raise _yoke.UnsupportedError("apply(): the Function has no setup_context")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Computes the gradients of forward's arguments from those of its outputs."""
        raise _yoke.UnsupportedError("backward(): the Function has no backward; write a static method backward(ctx, *gradients)")

    vjp = backward

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs forward, and records the call for backward."""
        ctx = FunctionCtx(cls.__name__)
        ctx.needs_input_grad = tuple(isinstance(each, Tensor) and each.requires_grad for each in args)
        records = any(ctx.needs_input_grad) and _yoke.is_grad_enabled()
        from yoke._grad import Scope

        scope = Scope("grad", False)
        try:
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        finally:
            scope.exit()
        return _Call(cls, ctx, args).finish(output, records)


class _Call:
    """Call of a Function whose forward has run."""

    def __init__(self, cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...]) -> None:
        self.cls, self.ctx, self.args = cls, ctx, args

    def finish(self, output: Any, records: bool) -> Any:
        """Returns forward's result with its tensors replaced by those that are recorded."""
        parts = list(output) if isinstance(output, (tuple, list)) else [output]
        tensors = [each for each in parts if isinstance(each, Tensor)]
        name = self.cls.__name__
        for each in self.ctx._written:
            if not _is_among(each, self.args):
                raise _yoke.ValueError(f"mark_dirty(): {name} marks a tensor that is none of its inputs; mark only inputs")
            if not _is_among(each, tuple(tensors)):
                raise _yoke.ValueError(f"mark_dirty(): {name} marks an input that its forward does not return; return it, so that the result has its gradient")
        if records:
            made = self._record(tensors)
        else:
            made = [each.detach() if _is_among(each, self.args) and not _is_among(each, self.ctx._written) else each for each in tensors]
        if not isinstance(output, (tuple, list)):
            return made[0] if made else output
        rest = iter(made)
        return tuple(next(rest) if isinstance(each, Tensor) else each for each in parts)

    def _record(self, outputs: list[Tensor]) -> list[Tensor]:
        ctx, self.args = self.ctx, self.args
        kinds = [_WRITTEN if _is_among(each, ctx._written) else _CONSTANT if _is_among(each, ctx._constant) else _FRESH
                 for each in outputs]
        saved, ctx._to_save = ctx._to_save, ()
        ctx._written = ctx._constant = ()  # the results would hold their own history
        count = len(self.args)
        made = _yoke._record_function(self.cls.__name__, _backward_of(self.cls, ctx, count), saved, self.args, outputs, kinds,
                                      not ctx._materializes)
        return [old if kind == _WRITTEN else new for old, new, kind in zip(outputs, made, kinds)]


def _backward_of(cls: type[Function], ctx: FunctionCtx, count: int) -> Callable[..., tuple[Any, ...]]:
    """Returns the function that backward calls with the saved tensors and the outputs' gradients. It does not hold the arguments."""
    backward = cls.backward if cls.backward is not Function.backward else cls.vjp

    def run(saved: tuple[Any, ...], gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        thread = get_ident()
        outer = ctx._saved.get(thread)
        ctx._saved[thread] = saved
        try:
            made = backward(ctx, *gradients)
        finally:
            if outer is None:
                del ctx._saved[thread]
            else:
                ctx._saved[thread] = outer
        if not isinstance(made, (tuple, list)):
            made = (made,)
        if len(made) < count or any(each is not None for each in made[count:]):
            raise _yoke.ValueError(f"backward(): {cls.__name__} returned {len(made)} gradients for {count} arguments of its forward; return one for each, None where there is none")
        return tuple(made[:count])

    return run


def once_differentiable(function: F) -> F:
    """Decorates a backward whose gradients have no gradient themselves, as all have here."""

    @functools.wraps(function)
    def wrapped(ctx: Any, *args: Any) -> Any:
        return function(ctx, *args)

    return wrapped  # type: ignore[return-value]
