"""The newest states of a run in a folder, of which one is whole whenever the machine stops."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from yoke import _state, _yoke
from yoke._check import shown
from yoke._named import Named
from yoke._yoke import Device, Tensor, Work

__all__ = ["CheckpointManager"]


class CheckpointManager(Named):
    """Keeps the newest `keep` states of a run in `folder`, which the first save makes.

        manager = yoke.CheckpointManager("run", keep=3)
        if manager.latest() is not None:
            state = manager.load(into={"net": net, "optimizer": optimizer})
            first = state["epoch"] + 1
        …
        manager.save(step, {"net": net, "optimizer": optimizer, "epoch": epoch})

    folder/step-N has state.safetensors, as yoke.save() writes it, and MANIFEST.json with the bytes and the hash of each
    file. A step's folder comes to its name last, when all of it is on the disk. The newest step is the one that was
    saved last, whatever its number: a run may go back. One manager at a time writes to a folder, from its first save on;
    any number may load from it meanwhile.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3) -> None:
        self.folder = folder
        self.keep = keep
        self._core = _yoke._CheckpointManager(folder, keep)

    def save(self, step: int, state: Any, metadata: dict[str, str] | None = None, blocking: bool = False) -> Work:
        """Saves a state, as yoke.save() takes it, as a step; one of that number is replaced. Then the oldest steps go.

        The state is that of this moment, also where it is written later: wait() of what is returned ends when the step
        is there, with blocking=True this does. StateError where another process writes to the folder, with its number;
        ValueError and TypeError name the place in the state of what cannot be saved, IOError has the path and what the
        system says.
        """
        return _state.kept_to_exit(self._core.save(step, state, metadata, bool(blocking)))

    def latest(self) -> int | None:
        """The newest step, which load() tries first, if there is any.

        Hashes are not read, but one that a load of this manager found damaged is left out. IOError with errno where the
        system refuses to read what may be the newest.
        """
        return self._core.latest()

    def steps(self) -> list[int]:
        """Lists all steps in the order of their saves: the newest is the last."""
        return self._core.steps()

    def load(self, step: int | None = None, into: dict[str, Any] | None = None, device: Device | str | int | None = None,
             verify: bool = True) -> Any:
        """The state of a step; without one, of the newest that is whole, with a warning where others are damaged.

        `into` says what goes on from the state: {"net": net, "optimizer": optimizer}. Each of its objects, tensors and
        what has a load_state_dict() or a set_state(), takes what was saved under its name. Names, shapes and dtypes that
        do not fit are a ValueError that lists all of them, and then nothing is changed. The whole state is returned in
        any case, on the CPU or `device`; on the CPU its tensors are pages of the file, read when they are touched.

        CheckpointError where no step is whole, with what was found, where the one asked for is not, and for one that
        a newer version has written; its native_code is errno.ENOENT where nothing at all is there, no damaged one
        either. Only broken content is damage: where the system refuses to read the newest step, this is an IOError with
        errno, or OutOfMemoryError, and no older step stands in for it. verify=False does not read the files to see whether they have their hashes.
        """
        if into is None:
            return self._core.load(step, device, bool(verify))
        _check_into(into)
        state = self._core.load(step, device, bool(verify))
        _hand_over(state, into)
        return state


def _check_into(into: Any) -> None:
    if not isinstance(into, dict):
        raise _yoke.TypeError(f"load(): argument 'into' is {shown(into)}; it takes a dict of what goes on from the state")
    for name, target in into.items():
        if not (isinstance(target, Tensor) or _setter(target)):
            raise _yoke.TypeError(f"load(): into[{name!r}] is {shown(target)}; it takes tensors and what has a load_state_dict()")


def _getter(target: Any) -> Callable[[], Any] | None:
    return getattr(target, "state_dict", None) or getattr(target, "get_state", None)


def _setter(target: Any) -> Callable[[Any], Any] | None:
    if hasattr(target, "load_state_dict"):
        return target.load_state_dict if hasattr(target, "state_dict") else None
    return getattr(target, "set_state", None) if hasattr(target, "get_state") else None


def _tensors_of(target: Any) -> Any:
    """The tensors that are the whole of a target, in a tree; None where a function of its own takes the state."""
    from yoke.nn import Module
    if isinstance(target, Tensor):
        return target
    if isinstance(target, Module) and type(target).load_state_dict is Module.load_state_dict:
        return target.state_dict()
    return None


def _kept(value: Any) -> Any:
    """Returns a state independent of later changes of its tensors."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _kept(each) for key, each in value.items()}
    return type(value)(map(_kept, value)) if type(value) in (list, tuple) else value


def _former(target: Any) -> Any:
    from yoke.optim import EMA
    from yoke.optim.optimizer import Optimizer
    getter = _getter(target)
    assert getter is not None
    # These take copies in place of their tensors, which so stay as they were.
    return getter() if isinstance(target, (Optimizer, EMA)) else _kept(getter())


def _hand_over(state: Any, into: dict[str, Any]) -> None:
    """Loads all or nothing: tensors are compared first and copied last; if a target with its own check fails, the other targets get
    their former states back.
    """
    if not isinstance(state, dict):
        raise _yoke.ValueError(f"load(): argument 'into' takes parts of a dict, and the state is {shown(state)}")
    tensors = {name: found for name, target in into.items() if (found := _tensors_of(target)) is not None}
    others = [name for name in into if name not in tensors]
    wrong = _yoke._misfits(state, tensors)
    wrong += [f"'{name}' is missing in the state" for name in others if name not in state]
    changed: list[tuple[Any, Any]] = []
    try:
        for name in others:
            if name not in state:
                continue
            former = _former(into[name])
            setter = _setter(into[name])
            assert setter is not None
            changed.append((setter, former))
            try:
                setter(state[name])
            except (_yoke.ValueError, _yoke.TypeError) as error:
                wrong.append(f"'{name}': {error}")
        if wrong:
            raise _yoke.ValueError("load(): the state does not fit, and nothing was changed:\n  " + "\n  ".join(wrong))
        _yoke._copy_into(state, tensors)
    except BaseException:
        for setter, former in reversed(changed):
            # A second failure, probably of the first failed target, does not keep other targets from their states.
            with contextlib.suppress(Exception):
                setter(former)
        raise
