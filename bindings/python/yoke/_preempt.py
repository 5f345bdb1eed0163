"""What a script does when a signal asks the process to end, before the signal has its former effect."""

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


class Preemption:
    """What on_preempt() gives back: a registration, also for a `with` block, at the end of which it is removed."""

    def __init__(self, fn: Callable[[], Any], numbers: set[int]) -> None:
        self._fn = fn
        self._numbers = numbers
        self._is_passed_over = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A block amid which no function runs: a signal waits for its end, and then does all that it does.

            with preemption.held():
                train_step()

        So fn finds no step half done. Where an exception ends the block, a signal that waits passes fn over, which would
        save what is not whole. StateError in any thread but the main one.
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
        """The function no longer runs. Where no other is left, the former handlers come back.

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
    """What had a signal before: Python's handler, and the disposition below it, which a host may have set in C."""

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
        """Whether somebody has installed another handler since."""
        return signal.getsignal(self.number) is not _on_signal or not _yoke._has_disposition(self.number, self._ours)

    def put_back(self) -> None:
        if self.is_covered():
            return  # that one stays, and may call ours
        signal.signal(self.number, signal.SIG_DFL if self.handler is None else self.handler)
        if not callable(self.handler):
            _yoke._set_disposition(self.number, self.disposition)

    def take_turn(self, frame: FrameType | None) -> None:
        """It gets the signal. What raises has the signal from then on, so that another one cannot run all of it again."""
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
_formers: dict[int, _Former] = {}  # of all signals that ever were watched: somebody may have kept our handler and call it
_served = 0  # the signal whose functions run
_holds: list[Preemption] = []  # blocks amid which none may run, by who entered them
_held: list[int] = []  # signals that came meanwhile


def _registered_for(number: int) -> list[Preemption]:
    return [each for each in _registered if number in each._numbers]


def _call_all(functions: Sequence[Callable[[], Any]]) -> None:
    """The last one first, and all of them, whatever one raises."""
    if functions:
        try:
            functions[-1]()
        finally:
            _call_all(functions[:-1])


def _on_signal(number: int, frame: FrameType | None) -> None:
    global _served
    if _served or _holds:  # whoever saves is not disturbed; the same signal is not another one
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


# A signal that comes to a child which was just made waits until the former handler is there: Python would forget it.
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
        raise _yoke.StateError(f"{call}(): called in thread '{thread.name}', while signals come to Python's main thread; call it there")


def _number(name: Any) -> int:
    if isinstance(name, signal.Signals):
        name = name.name
    if not isinstance(name, str):
        raise _yoke.TypeError(f"on_preempt(): argument 'signals' has an item that is {shown(name)}; it takes names such as 'TERM', and signal.Signals")
    return _yoke._signal_number(name)


def on_preempt(fn: Callable[[], Any], signals: str | signal.Signals | Iterable[str | signal.Signals] = ("TERM",)) -> Preemption:
    """Runs fn() when a signal asks the process to end, and then what the signal did before.

        yoke.on_preempt(lambda: manager.save(step, state, blocking=True))

    fn runs in the main thread, between two lines of the script, or while it waits for the work of a save; a call that
    computes ends first. held() of what this returns keeps it out of a block. Then the signal has its former effect: a
    handler of Python's is called, one in C gets the signal, an ignored signal is ignored, and TERM by default ends the
    process with the status of its signal. Where the process goes on, so does the registration, until remove(); `with`
    does that at the end of a block.

    What fn raises comes out in the main thread in place of the former effect, so that fn may end the script its own way
    by SystemExit; this registration is at an end then. Of several, the newest function runs first, and all run. The
    same signal counts once until it has had its former effect, and other watched ones wait, so that nothing disturbs a
    save. A forked child has the former handlers and no registration.

    `signals` are "TERM" or "SIGTERM", INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP and PWR. One that is ignored, as HUP
    under nohup, runs fn all the same.

    TypeError for what is not callable or no name; ValueError, with those that serve, for a name that does not serve;
    StateError in any thread but the main one.
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
