"""Python classes and functions whose errors about an unknown argument name the nearest argument, as the library's functions do."""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any, Callable, Optional, TypeVar

from yoke import _yoke

F = TypeVar("F", bound=Callable[..., Any])

_TAKES_MORE, _TAKES_ANY = 0x04, 0x08  # flags of a code object: it has *arguments, **keywords


class Named:
    """Checks the arguments before __init__: Python's errors name neither the nearest keyword nor the other keywords, and a class
    without __init__ takes any arguments.
    """

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        if args or keywords:
            check_arguments(cls, len(args), keywords)
        return super().__new__(cls)


def check_arguments(cls: type, given: int, keywords: dict[str, Any]) -> None:
    """Raises TypeError for a keyword unknown to cls.__init__ or already filled by one of the `given` positional arguments, and for a
    positional argument that is only allowed by name, or not at all.
    """
    init = cls.__init__  # type: ignore[misc]
    code = getattr(init, "__code__", None)
    if code is not None or init is object.__init__:
        is_ours = getattr(init, "__module__", cls.__module__).partition(".")[0] == "yoke"
        _check(cls.__name__, code, 1, given, keywords, is_ours)


def named(function: F) -> F:
    """Decorates a function with the same check of arguments."""
    code = function.__code__  # type: ignore[attr-defined]
    own = int(code.co_varnames[:1] == ("self",))

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords:
            _check(function.__name__, code, own, len(args) - own, keywords, True)
        return function(*args, **keywords)

    return call  # type: ignore[return-value]


# Devices that scripts written for other libraries name first.
_DEVICES = ("cuda", "cpu", "gpu", "sim", "auto", "mps", "xpu", "hip")


def refuse_device(call: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises TypeError where the first argument is a device, which a class like autocast does not take."""
    first = keywords.get("device", args[0] if args else None)
    if isinstance(first, _yoke.Device) or isinstance(first, str) and first.partition(":")[0] in _DEVICES:
        raise _yoke.TypeError(f"{call}(): the first argument is the device {str(first)!r}; leave it out, because {call} holds for every device: {call}()")


def _check(call: str, code: Optional[CodeType], own: int, given: int, keywords: dict[str, Any], is_ours: bool) -> None:
    """Checks arguments against the code of a function; its first `own` parameters are not the caller's.

    Advice about PyTorch is only for functions of Yoke: a script's function may give such words another meaning.
    """
    names = code.co_varnames[own:code.co_argcount + code.co_kwonlyargcount] if code else ()
    places, flags = (code.co_argcount - own, code.co_flags) if code else (0, 0)
    if given > places and not flags & _TAKES_MORE:
        _refuse_place(call, names, places, given, is_ours)
    for name in keywords:
        if name not in names:
            if not flags & _TAKES_ANY:
                raise _yoke.TypeError(f"{call}(): {_yoke._unknown_keyword(name, names, is_ours)}: {_signature(call, names, places)}")
        elif name in names[:min(given, places)]:
            raise _yoke.TypeError(f"{call}(): argument '{name}' is given twice, by position and by name; give it once: {_signature(call, names, places)}")


def _refuse_place(call: str, names: tuple[str, ...], places: int, given: int, is_ours: bool) -> None:
    if len(names) > places:
        why, which = (", because PyTorch has another argument in its place", "the name of your argument, such as ") if is_ours else ("", "")
        raise _yoke.TypeError(f"{call}(): argument '{names[places]}' must be given by name{why}; write {which}{names[places]}=…: {_signature(call, names, places)}")
    raise _yoke.TypeError(f"{call}(): takes at most {places} arguments but {given} were given: {_signature(call, names, places)}")


def _signature(call: str, names: tuple[str, ...], places: int) -> str:
    parts = [*names[:places], *(["*"] if len(names) > places else []), *names[places:]]
    return f"{call}({', '.join(parts)})"
