"""Calls of a group that are refused on one rank: whoever waits for them elsewhere is told why."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from yoke import _yoke


def text_of(error: BaseException) -> str:
    """As far as it has one that others can be told."""
    try:
        text = str(error)
    except Exception:  # of a class of the script's
        text = "its text cannot be made"
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def made(core: Any, call: str, make: Callable[[], Any]) -> Any:
    """What `make` gives; what it raises was wrong with this rank's call."""
    try:
        return make()
    except Exception as error:
        core.note_refused(call, text_of(error))
        raise


def asked(core: Any, call: str, ask: Callable[[], Any]) -> Any:
    """So, of one that may fail and leaves the group as it is: then nothing was wrong with it."""
    try:
        return ask()
    except (_yoke.TypeError, _yoke.ValueError) as error:
        core.note_refused(call, text_of(error))
        raise


def heard(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of groups whose refusal by Python itself is told, too: arguments are missing, or nobody knows them."""
    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # it was not entered
                self._core.note_refused(method.__name__, text_of(error))
            raise

    return call
