"""Functions of a script that run when a signal asks the process to end, before the signal has its former effect."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

from yoke import _yoke
from yoke._check import listed, shown
from yoke._named import named


class Preemption:
    """Registration from on_preempt(), also for a `with` block; the block's end removes the registration."""

    def __init__(self, fn: Callable[[], Any], numbers: set[int]) -> None:
        self._fn = fn
        self._numbers = numbers
        self._is_passed_over = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Block within which no function runs: a signal waits for the block's end, and then has its full effect.

            with preemption.held():
                train_step()

        So fn never sees a half-done step. If an exception ends the block, a waiting signal skips fn, because fn would save an
        incomplete state. StateError in any thread but the main thread.
        """
        _need_main_thread("held")
        _holds.append(self)
        try:
            yield
        except BaseException:
            self._is_passed_over = True
            raise
        finally:
            if self in _holds:  # not in a child that was forked meanwhile
                _holds.remove(self)
            try:
                _raise_held()
            finally:
                self._is_passed_over = False

    def remove(self) -> None:
        """Removes the function: it no longer runs. If no other function is left, the former handlers are restored.

        Any thread may call it. Away from the main thread the handler stays and passes signals straight on.
        """
        if self in _registered:
            _registered.remove(self)
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                if not _registered_for(number):
                    _formers[number].put_back()

    def __enter__(self) -> Preemption:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def _run(self) -> None:
        if self._is_passed_over:
            return
        try:
            self._fn()
        except BaseException:
            self.remove()
            raise


class _Former:
    """Former handling of a signal: Python's handler, and the disposition below, which a host program may have set in C."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.handler = signal.getsignal(number)
        self.disposition = _yoke._disposition(number)
        self._ours = b""

    def take_over(self) -> None:
        _formers[self.number] = self  # first: from the next line on a signal may come
        signal.signal(self.number, _on_signal)
        self._ours = _yoke._disposition(self.number)

    def is_covered(self) -> bool:
        """Returns whether other code has installed another handler since."""
        return signal.getsignal(self.number) is not _on_signal or not _yoke._has_disposition(self.number, self._ours)

    def put_back(self) -> None:
        if self.is_covered():
            return  # the other handler stays, and may call this handler
        signal.signal(self.number, signal.SIG_DFL if self.handler is None else self.handler)
        if not callable(self.handler):
            _yoke._set_disposition(self.number, self.disposition)

    def take_turn(self, frame: FrameType | None) -> None:
        """Passes the signal to the former handler. If this raises, the former handler has the signal from then on, so that a second
        signal cannot run all again.
        """
        if not callable(self.handler):
            self.disposition = _yoke._raise_under(self.number, self.disposition)
            return
        try:
            self.handler(self.number, frame)
        except BaseException:
            for each in _registered_for(self.number):
                each._numbers.discard(self.number)
            if _formers.get(self.number) is self:
                self.put_back()
            raise


_registered: list[Preemption] = []  # newest last
_formers: dict[int, _Former] = {}  # all signals ever watched: other code may have kept this handler and call it
_served = 0  # the signal whose functions run
_holds: list[Preemption] = []  # blocks within which no function may run, in order of entry
_held: list[int] = []  # signals that came meanwhile


def _registered_for(number: int) -> list[Preemption]:
    return [each for each in _registered if number in each._numbers]


def _call_all(functions: Sequence[Callable[[], Any]]) -> None:
    """Calls all functions, the last first, even if a function raises."""
    if functions:
        try:
            functions[-1]()
        finally:
            _call_all(functions[:-1])


def _on_signal(number: int, frame: FrameType | None) -> None:
    global _served
    if _served or _holds:  # a save is not disturbed; a repeat of the same signal does not count
        if number != _served and number not in _held:
            _held.append(number)
        return
    _served = number
    former = _formers[number]
    try:
        _call_all([each._run for each in _registered_for(number)])
        former.take_turn(frame)
    finally:
        _served = 0
        _raise_held()


def _raise_held() -> None:
    if _served or _holds:
        return
    held = [partial(signal.raise_signal, each) for each in reversed(_held)]
    _held.clear()
    _call_all(held)


_forking = threading.local()


# A signal to a new child waits until the former handler is there: Python would forget the signal.
def _before_fork() -> None:
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _formers)


def _after_fork() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _after_fork_in_child() -> None:
    global _served
    _registered.clear()
    _held.clear()
    _holds.clear()
    for former in _formers.values():
        former.put_back()
    _served = 0
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _need_main_thread(call: str) -> None:
    thread = threading.current_thread()
    if thread is not threading.main_thread():
        raise _yoke.StateError(f"{call}(): called in thread '{thread.name}', but signals arrive in Python's main thread; call it there")


def _number(name: Any) -> int:
    if isinstance(name, signal.Signals):
        name = name.name
    if not isinstance(name, str):
        raise _yoke.TypeError(f"on_preempt(): argument 'signals' has an item that is {shown(name)}; it must have names such as 'TERM', or signal.Signals")
    return _yoke._signal_number(name)


@named
def on_preempt(fn: Callable[[], Any], signals: str | signal.Signals | Iterable[str | signal.Signals] = ("TERM",)) -> Preemption:
    """Runs fn() when a signal asks the process to end, and then lets the signal have its former effect.

        yoke.on_preempt(lambda: manager.save(step, state, blocking=True))

    fn runs in the main thread, between two lines of the script, or while the script waits for the work of a save; a computing
    call ends first. held() of the result keeps fn out of a block. Then the signal has its former effect: a Python handler is
    called, a C handler gets the signal, an ignored signal is ignored, and TERM by default ends the process with the status of its
    signal. If the process goes on, the registration goes on too, until remove(); with `with` until the end of the block.

    An error of fn is raised in the main thread and replaces the former effect, so that fn may end the script by SystemExit; this
    registration then ends. With several registrations, the newest function runs first, and all run. The same signal counts once
    until its former effect, and other watched signals wait, so that a save is not disturbed. A forked child has the former
    handlers and no registration.

    `signals` are "TERM" or "SIGTERM", INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP and PWR. For an ignored signal, as HUP under
    nohup, fn runs too.

    TypeError for an object that is not callable or a value that is no name; ValueError, with the valid names, for an invalid
    name; StateError in any thread but the main thread.
    """
    if not callable(fn):
        raise _yoke.TypeError(f"on_preempt(): argument 'fn' is {shown(fn)}; a function without arguments is needed")
    items = [signals] if isinstance(signals, (str, signal.Signals)) else listed("on_preempt", "signals", signals, "names such as 'TERM'")
    if not items:
        raise _yoke.ValueError("on_preempt(): argument 'signals' names no signal; give names such as 'TERM'")
    numbers = {_number(each) for each in items}
    _need_main_thread("on_preempt")
    made = Preemption(fn, numbers)
    for number in sorted(numbers):
        if number not in _formers or _formers[number].is_covered():
            _Former(number).take_over()
    _registered.append(made)
    return made
