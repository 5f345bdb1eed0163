"""Newest states of a run in a folder. At any stop of the machine one of the states is whole."""

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

    folder/step-N has state.safetensors, as yoke.save() writes it, and MANIFEST.json with the bytes and the hash of each file. A
    step's folder gets its name last, when all its data is on the disk. The newest step is the step saved last, whatever its
    number: a run may go back. One manager at a time writes to a folder, from its first save on; meanwhile any number may load
    from the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3) -> None:
        self.folder = folder
        self.keep = keep
        self._core = _yoke._CheckpointManager(folder, keep)

    def save(self, step: int, state: Any, metadata: dict[str, str] | None = None, blocking: bool = False) -> Work:
        """Saves a state (as in yoke.save()) as a step and replaces a step of the same number. Then the oldest steps are removed.

        The state is that of the call, even if written later: wait() of the returned work ends when the step is there; with
        blocking=True save() waits itself. StateError if another process writes to the folder, with its number. ValueError and
        TypeError name the place in the state of a value that cannot be saved, IOError has the path and the system's error.
        """
        return _state.kept_to_exit(self._core.save(step, state, metadata, bool(blocking)))

    def latest(self) -> int | None:
        """Returns the newest step, which load() tries first; None if there is no step.

        Hashes are not read, but a step that a load of this manager found damaged does not count. IOError with errno if the system
        refuses to read a possibly newest step.
        """
        return self._core.latest()

    def steps(self) -> list[int]:
        """Lists all steps in the order of their saves: the newest is the last."""
        return self._core.steps()

    def load(self, step: int | None = None, into: dict[str, Any] | None = None, device: Device | str | int | None = None,
             verify: bool = True) -> Any:
        """Loads the state of a step; without `step`, of the newest whole step, with a warning about damaged steps.

        `into` has the objects that continue from the state: {"net": net, "optimizer": optimizer}. Each object, a tensor or an
        object with load_state_dict() or set_state(), takes the state saved under its name. Names, shapes and dtypes that do not
        fit are a ValueError with all misfits, and then nothing is changed. The whole state is returned in any case, on the CPU or
        `device`; on the CPU its tensors are pages of the file, read at the first access.

        CheckpointError if no step is whole, with the findings; if the requested step is not whole; and for a step of a newer
        version. Its native_code is errno.ENOENT if there is no step at all, not even a damaged step. Only broken content is
        damage: if the system refuses to read the newest step, this is an IOError with errno, or OutOfMemoryError, and no older
        step is loaded in its place. verify=False skips the check of the files' hashes.
        """
        if into is None:
            return self._core.load(step, device, bool(verify))
        _check_into(into)
        state = self._core.load(step, device, bool(verify))
        _hand_over(state, into)
        return state


def _check_into(into: Any) -> None:
    if not isinstance(into, dict):
        raise _yoke.TypeError(f"load(): argument 'into' is {shown(into)}; it must be a dict of the objects that continue from the state")
    for name, target in into.items():
        if not (isinstance(target, Tensor) or _setter(target)):
            raise _yoke.TypeError(f"load(): into[{name!r}] is {shown(target)}; it must be a tensor or have load_state_dict()")


def _getter(target: Any) -> Callable[[], Any] | None:
    return getattr(target, "state_dict", None) or getattr(target, "get_state", None)


def _setter(target: Any) -> Callable[[Any], Any] | None:
    if hasattr(target, "load_state_dict"):
        return target.load_state_dict if hasattr(target, "state_dict") else None
    return getattr(target, "set_state", None) if hasattr(target, "get_state") else None


def _tensors_of(target: Any) -> Any:
    """Returns a target's tensors as a tree if the target has only tensors; None if a function of the target takes the state."""
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
    # Both replace their tensors by copies, so the old tensors stay unchanged.
    return getter() if isinstance(target, (Optimizer, EMA)) else _kept(getter())


def _hand_over(state: Any, into: dict[str, Any]) -> None:
    """Loads all or nothing: tensors are compared first and copied last; if a target with its own check fails, the other targets get
    their former states back.
    """
    if not isinstance(state, dict):
        raise _yoke.ValueError(f"load(): argument 'into' is given, but the state is {shown(state)}; the state must be a dict")
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
            raise _yoke.ValueError("load(): the state does not fit, and no tensor was changed:\n  " + "\n  ".join(wrong))
        _yoke._copy_into(state, tensors)
    except BaseException:
        for setter, former in reversed(changed):
            # A second failure, probably of the first failed target, does not keep other targets from their states.
            with contextlib.suppress(Exception):
                setter(former)
        raise
