"""Hooks of modules in backward: two nodes of the tape around a call, one behind its arguments and one before its results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from yoke import _yoke
from yoke._check import noun
from yoke._yoke import Tensor
from yoke.autograd.function import Function

if TYPE_CHECKING:
    from yoke.nn.hooks import Called, _Hook

_Gradients = tuple[Any, ...]  # a tensor or None for each argument, or for each result


class _Node(Function):
    """Returns its tensors; backward passes their gradients through a function."""

    @staticmethod
    def forward(ctx: Any, function: Callable[[_Gradients], Sequence[Any]], keeps_none: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.function = function
        ctx.set_materialize_grads(not keeps_none)
        ctx.mark_non_differentiable(*(each for each in tensors if not each.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.function(gradients))


class BackwardCall:
    """Call of a module with hooks in backward. Holds gradients between the two nodes, and no tensor of forward."""

    def __init__(self, module: Called, before: list[_Hook], after: list[_Hook]) -> None:
        self.module, self.before, self.after = module, before, after
        self.outputs: _Gradients | None = None  # gradients of the results, once they are there
        self.count = 0  # of arguments
        self.inputs: list[int] | None = None  # places of tensors among the arguments; None if no argument needs a gradient
        self.results: list[int] = []  # places of tensors among the results
        self.result_count = 0

    def take_arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.count = len(args)
        args, self.inputs = _recorded(args, self.of_inputs, False)
        return args

    def take_result(self, result: Any) -> Any:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(f"{type(self.module).__name__}: the hooks in backward need a tensor or a tuple of tensors as result, which is {noun(result)}; they are not called", RuntimeWarning, stacklevel=6)
            return result
        results = result if isinstance(result, tuple) else (result,)
        self.result_count = len(results)
        results, places = _recorded(results, self.of_results, True)
        self.results = places or []
        return results if isinstance(result, tuple) else results[0]

    def of_results(self, gradients: _Gradients) -> Sequence[Any]:
        """Calls the hooks that see the gradients of the results; if no argument needs a gradient, the other hooks too."""
        outputs = _spread(self.results, gradients, self.result_count)
        for hook in self.before:
            outputs = self.replaced("full backward pre-hook", hook, outputs, hook.function(self.module, outputs), "result")
        if self.inputs is None:
            nothing = (None,) * self.count
            for hook in self.after:
                given = hook.function(self.module, nothing, outputs)
                if given is not None and any(each is not None for each in given):
                    raise _yoke.ValueError(f"{type(self.module).__name__}: the full backward hook {hook} returned a gradient, but no argument of the call requires one; return None")
        else:
            self.outputs = outputs
        return [outputs[place] for place in self.results]

    def of_inputs(self, gradients: _Gradients) -> Sequence[Any]:
        """Calls the hooks that see the gradients of the arguments, unless they did not come from the results."""
        outputs, self.outputs = self.outputs, None
        if outputs is None or self.inputs is None:
            return gradients
        inputs = _spread(self.inputs, gradients, self.count)
        for hook in self.after:
            inputs = self.replaced("full backward hook", hook, inputs, hook.function(self.module, inputs, outputs), "argument")
        return [inputs[place] for place in self.inputs]

    def replaced(self, kind: str, hook: _Hook, before: _Gradients, given: Any, of: str) -> _Gradients:
        """Returns the gradients that a hook returned, or those before if it returned None."""
        if given is None:
            return before
        where = f"{type(self.module).__name__}: the {kind} {hook} returned"
        if not isinstance(given, (tuple, list)):
            raise _yoke.TypeError(f"{where} {noun(given)}; return None, or a tuple with a gradient for each {of}")
        if len(given) != len(before):
            raise _yoke.ValueError(f"{where} {len(given)} gradients, for {len(before)} {of}{'s' * (len(before) != 1)}; return None, or a tuple with a gradient or None for each {of}")
        for number, (old, new) in enumerate(zip(before, given)):
            if new is not None and not isinstance(new, Tensor):
                raise _yoke.TypeError(f"{where} {noun(new)} for {of} {number}; return a tensor or None")
            if isinstance(old, Tensor) and new is not None and new.shape != old.shape:
                raise _yoke.ValueError(f"{where} a gradient of shape {new.shape} for {of} {number}; it must have shape {old.shape}")
        return tuple(given)


def _recorded(values: tuple[Any, ...], function: Callable[[_Gradients], Sequence[Any]], keeps_none: bool) -> tuple[Any, list[int] | None]:
    """Returns the values with their tensors behind a node, and the places of tensors; None in place of these if none is recorded."""
    places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]
    if not _yoke.is_grad_enabled() or not any(values[place].requires_grad for place in places):
        return values, None
    found = list(values)
    for place, tensor in zip(places, _Node.apply(function, keeps_none, *(values[place] for place in places))):
        found[place] = tensor
    return tuple(found) if type(values) is tuple else type(values)(*found), places


def _spread(places: list[int], gradients: _Gradients, count: int) -> _Gradients:
    found: list[Any] = [None] * count
    for place, gradient in zip(places, gradients):
        found[place] = gradient
    return tuple(found)
