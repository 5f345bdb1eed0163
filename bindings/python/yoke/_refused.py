"""Calls of a group that are refused on a rank: other ranks that wait for the call get the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from yoke import _yoke
from yoke._named import refusal


def text_of(error: BaseException) -> str:
    """Returns the text of an error, if other ranks can receive it."""
    try:
        text = str(error)
    except Exception:  # a class of the script
        text = "an error without a text"
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def made(core: Any, call: str, make: Callable[[], Any]) -> Any:
    """Returns the result of `make`; an error is a defect of this rank's call, and other ranks are notified."""
    try:
        return make()
    except Exception as error:
        core.note_refused(call, text_of(error))
        raise


def asked(core: Any, call: str, ask: Callable[[], Any]) -> Any:
    """Returns the result of a call that may fail without a defect: only TypeError and ValueError are reported."""
    try:
        return ask()
    except (_yoke.TypeError, _yoke.ValueError) as error:
        core.note_refused(call, text_of(error))
        raise


def heard(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method of groups as _named.named does; other ranks get the text about the arguments too."""
    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return method(self, *arguments, **keywords)
        except TypeError as error:
            problem = refusal(error, method, (self, *arguments), keywords)
            if problem is None:
                raise
        self._core.note_refused(method.__name__, problem.encode(errors="backslashreplace").decode())
        raise _yoke.TypeError(problem)

    return call
