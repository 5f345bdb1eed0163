"""Calls of modules: forward, with hooks around it and in a checkpoint scope."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from yoke import _yoke
from yoke._check import noun, shown
from yoke._checkpoint import Policy, checkpoint_scope
from yoke._hooks import RemovableHandle, Table
from yoke._named import Named, refusal, under_own_names

if TYPE_CHECKING:
    from yoke.nn.backward_hooks import BackwardCall

C = TypeVar("C", bound="Called")


class _Hook(NamedTuple):
    """Registered function of a script, with what it asked for."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False

    def __str__(self) -> str:
        return f"{getattr(self.function, '__qualname__', type(self.function).__name__)}"


class _Hooks:
    """Hooks of a module, a table for each place of a call."""

    def __init__(self) -> None:
        self.before, self.after, self.before_backward, self.after_backward = Table(), Table(), Table(), Table()

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.before_backward or self.after_backward)


class Called(Named):
    """Calls and hooks of a Module. A call of a module without hooks and scopes costs one look-up more than its forward()."""

    _is_plain: bool = True  # no hooks and no scope, so a call is forward()
    _hooks: _Hooks | None = None
    _checkpoint_scope: checkpoint_scope | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the result of a call; every subclass defines it."""
        raise _yoke.UnsupportedError(f"{type(self).__name__} has no forward(); a Module must define one")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_plain:
            return _call_around(self, args, kwargs)
        try:
            return self.forward(*args, **kwargs)
        except TypeError as error:
            ours, problem = _refused(error, self, args, kwargs)
            if ours is None and problem is None:
                raise
        if ours is not None:
            return self(*args, **ours)
        raise _yoke.TypeError(problem)

    def checkpoint_(self: C, policy: Policy | bool = None, offload: bool = False) -> C:
        """Makes each later call of this module a yoke.checkpoint_scope(policy, offload); returns the module. False turns the scopes
        off."""
        scope = None if policy is False else checkpoint_scope(None if policy is True else policy, offload)
        object.__setattr__(self, "_checkpoint_scope", scope)
        object.__setattr__(self, "_is_plain", scope is None and self._hooks is None)
        return self

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Calls hook(module, args) before each forward(), or hook(module, args, kwargs) if with_kwargs is True.

        The hook may return other arguments: one, or a tuple of all; with with_kwargs a pair (args, kwargs). None changes nothing.
        Returns a handle with remove(). prepend: before the hooks that are there.
        """
        own = _read("register_forward_pre_hook", hook, prepend=prepend, with_kwargs=with_kwargs)
        return self._own_hooks().before.add(own, prepend)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Calls hook(module, args, result) after each forward(), or hook(module, args, kwargs, result) if with_kwargs is True.

        Unless the hook returns None, the call returns what the hook returned. Returns a handle with remove(). prepend: before the
        hooks that are there. always_call: also after an error of the call, with None if there is no result.
        """
        own = _read("register_forward_hook", hook, prepend=prepend, with_kwargs=with_kwargs, always_call=always_call)
        return self._own_hooks().after.add(own, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls hook(module, grad_input, grad_output) in backward, when the gradients of the call's arguments are there.

        Both are tuples of tensors, with None for values that need no gradient. A returned tuple takes the place of grad_input. If no
        argument requires a gradient, the hook is called with the gradients of the results. The hook sees positional arguments and
        a result that is a tensor or a tuple. Returns a handle with remove(). prepend: before the hooks that are there.
        """
        own = _read("register_full_backward_hook", hook, prepend=prepend)
        return self._own_hooks().after_backward.add(own, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls hook(module, grad_output) in backward, before the gradients pass the module. A returned tuple takes the place of
        grad_output. Returns a handle with remove(). prepend: before the hooks that are there.
        """
        own = _read("register_full_backward_pre_hook", hook, prepend=prepend)
        return self._own_hooks().before_backward.add(own, prepend)

    def _own_hooks(self) -> _Hooks:
        if self._hooks is None:
            object.__setattr__(self, "_hooks", _Hooks())
            object.__setattr__(self, "_is_plain", False)
        return self._hooks  # type: ignore[return-value]


def _read(call: str, hook: Any, **flags: Any) -> _Hook:
    """Returns the entry of a table; raises for a hook that cannot be called, and for flags that are no bools."""
    if not callable(hook):
        raise _yoke.TypeError(f"{call}(): argument 'hook' is {shown(hook)}; a function is needed")
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise _yoke.TypeError(f"{call}(): argument '{name}' is {shown(flag)}; True or False is needed")
    return _Hook(hook, flags.get("with_kwargs", False), flags.get("always_call", False))


def _refused(error: TypeError, module: Called, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """Returns the keywords under forward's own names, or else the text about arguments that forward does not take, or else nothing."""
    forward: Any = type(module).forward
    ours = under_own_names(error, forward, (module, *args), kwargs)
    return ours, None if ours else refusal(error, forward, (module, *args), kwargs, f"{type(module).__name__}.forward")


def _call_forward(module: Called, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns forward's result, as Called.__call__ does for a module without hooks."""
    try:
        return module.forward(*args, **kwargs)
    except TypeError as error:
        ours, problem = _refused(error, module, args, kwargs)
        if ours is None and problem is None:
            raise
    if ours is not None:
        return _call_forward(module, args, ours)
    raise _yoke.TypeError(problem)


def _call_around(module: Called, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the result of a module with a scope or hooks. Hooks run inside the scope."""
    if module._checkpoint_scope is None:
        return _call_hooks(module, args, kwargs)
    with module._checkpoint_scope:
        return _call_hooks(module, args, kwargs)


def _call_hooks(module: Called, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    hooks = module._hooks
    if not hooks:
        return _call_forward(module, args, kwargs)
    return _Call(module, hooks, args, kwargs).run()


class _Call:
    """Call of a module with hooks. Hooks that are added or removed meanwhile count from the next call on."""

    def __init__(self, module: Called, hooks: _Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module, self.hooks, self.args, self.kwargs = module, hooks, args, kwargs
        self.result: Any = None
        self.done: set[int] = set()  # hooks that have been called after forward

    def run(self) -> Any:
        try:
            for hook in list(self.hooks.before.values()):
                self.before(hook)
            backward = self.backward()
            if backward is not None:
                self.args = backward.take_arguments(self.args)
            self.result = _call_forward(self.module, self.args, self.kwargs)
            for number, hook in list(self.hooks.after.items()):
                self.done.add(number)
                self.after(hook)
            if backward is not None:
                self.result = backward.take_result(self.result)
        except Exception:
            self.after_failure()
            raise
        return self.result

    def backward(self) -> BackwardCall | None:
        """Returns the part of the call that its hooks in backward need; None without such hooks."""
        hooks = self.hooks
        if not hooks.before_backward and not hooks.after_backward:
            return None
        from yoke.nn.backward_hooks import BackwardCall  # at the first use

        return BackwardCall(self.module, list(hooks.before_backward.values()), list(hooks.after_backward.values()))

    def answer(self, kind: str, hook: _Hook, *result: Any) -> Any:
        """Returns what a hook returns; TypeError if the hook has other arguments than the call has for it."""
        told = (self.args, self.kwargs, *result) if hook.with_kwargs else (self.args, *result)
        try:
            return hook.function(self.module, *told)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised inside the hook
                raise
            problem = str(error)
        names = ", ".join(["module, args", *["kwargs"] * hook.with_kwargs, *["result"] * len(result)])
        raise _yoke.TypeError(f"{type(self.module).__name__}: the {kind} {hook} must take ({names}): {problem}")

    def before(self, hook: _Hook) -> None:
        given = self.answer("forward pre-hook", hook)
        if given is None:
            return
        if not hook.with_kwargs:
            self.args = given if isinstance(given, tuple) else (given,)
        elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], (tuple, list)) and isinstance(given[1], Mapping):
            self.args, self.kwargs = tuple(given[0]), dict(given[1])
        else:
            raise _yoke.TypeError(f"{type(self.module).__name__}: the forward pre-hook {hook} returned {noun(given)}; with with_kwargs=True it must return None or a pair of a tuple and a dict, (args, kwargs)")

    def after(self, hook: _Hook) -> None:
        given = self.answer("forward hook", hook, self.result)
        if given is not None:
            self.result = given

    def after_failure(self) -> None:
        """Calls the hooks with always_call that have not been called; the error of the call is the one that is raised."""
        for number, hook in list(self.hooks.after.items()):
            if hook.always_call and number not in self.done:
                try:
                    self.after(hook)
                except Exception as error:
                    warnings.warn(f"the forward hook {hook} of {type(self.module).__name__} raised {type(error).__name__}: {error}; the call had failed before, and raises its own error", RuntimeWarning, stacklevel=5)
