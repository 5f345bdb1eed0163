"""Modes put in force by `with` blocks: grad mode, anomaly mode, autocast, checkpoint scopes, devices and streams, each for its own context.

A context variable holds the sum of the open blocks of a context, a _Modes object of the binding. Its `entries` are the blocks,
innermost last. Tasks start with the blocks of their maker and open separate blocks. A generator shares the context of its caller,
so its blocks may end in an order other than their begin; then only the ended block is taken out.
"""

from __future__ import annotations

from typing import Any

from yoke import _yoke

_variable = _yoke._modes


class _Entry:
    """Open block. Without an owner: a setting made inside the block `below`, until its end."""

    __slots__ = ("below", "device", "ended", "kind", "owner", "token", "value")

    def __init__(self, owner: object, kind: str, value: Any, below: _Entry | None = None) -> None:
        self.owner, self.kind, self.value, self.below = owner, kind, value, below
        self.device = value.device if kind == "stream" else None
        self.ended = False
        self.token: Any = None

    def has_kind(self, kind: str, device: Any) -> bool:
        """Returns whether the block sets the same mode as an entry of this kind (and device, for a stream)."""
        if kind == "stream":
            return self.device is device
        return self.kind == kind or kind == "device" and self.kind == "stream" and self.owner is not None


_open_of_devices: dict[str, list[_Entry]] = {}


def _open(owner: object) -> list[_Entry]:
    """Returns the open blocks of an owner. The owner holds them itself, because a block may end in a context other than its own; a
    block never ended goes with its context and its owner. A Device has no attributes, and lives as long as the library.
    """
    if isinstance(owner, _yoke.Device):
        return _open_of_devices.setdefault(str(owner), [])
    return owner.__dict__.setdefault("_open_blocks", [])  # type: ignore[no-any-return]


def _put(entries: tuple[_Entry, ...]) -> Any:
    """Sets the blocks of this context."""
    grad = anomaly = region = checkpoint = device = None
    streams: dict[Any, Any] = {}
    for entry in entries:
        if entry.kind == "grad":
            grad = entry.value
        elif entry.kind == "anomaly":
            anomaly = entry.value
        elif entry.kind == "autocast":
            region = entry.value
        elif entry.kind == "checkpoint":
            checkpoint = entry.value
        elif entry.kind == "device":
            device = entry.value
        else:
            streams[entry.device] = entry.value
            if entry.owner is not None:
                device = entry.device
    if not entries:
        return _variable.set(None)
    return _variable.set(_yoke._Modes(grad, anomaly, region, checkpoint, device, tuple(streams.values()), entries))


def enter(owner: object, kind: str, value: Any) -> None:
    """Opens a block: `kind` is grad (a bool), anomaly (a number), autocast (a region), checkpoint (a scope), device or stream, which is a device
    too."""
    if kind == "stream":
        value = _yoke._stream_again(value)  # no other code can close this object
    entry = _Entry(owner, kind, value)
    entry.token = _put((*_yoke._modes_entries(), entry))
    try:
        _yoke._modes_put_in_force()
    except BaseException:
        _variable.reset(entry.token)
        _yoke._modes_put_in_force()
        raise
    _open(owner).append(entry)


def leave(owner: object) -> None:
    """Ends the owner's innermost block of this context, or a block that it opened in another context."""
    entries = _yoke._modes_entries()
    entry = next((each for each in reversed(entries) if each.owner is owner), None)
    opened = _open(owner)
    if entry is None:
        if not opened:
            raise _yoke.StateError(f"{type(owner).__name__}: this block is not open in any thread or task; enter it first")
        entry = opened[-1]
    if entry in opened:
        opened.remove(entry)
    try:
        _variable.reset(entry.token)
    except ValueError:  # the block began in another context; this context and contexts made there still have it
        entry.ended = True
        _yoke._modes_ended()
    rest = tuple(each for each in entries if each is not entry and each.below is not entry)
    state = _variable.get()
    if (state.entries if state is not None else ()) != rest:
        _put(rest)
    _yoke._modes_put_in_force()


def override(kind: str, value: Any) -> None:
    """Sets a mode until the innermost block of its kind ends."""
    device = value.device if kind == "stream" else None
    entries = _yoke._modes_entries()
    below = next(each for each in reversed(entries) if each.owner is not None and each.has_kind(kind, device))
    rest = tuple(each for each in entries if not (each.owner is None and each.below is below and each.kind == kind))
    _put((*rest, _Entry(None, kind, value, below)))
    _yoke._modes_put_in_force()


def prune() -> None:
    """Removes blocks that ended in another context."""
    state = _variable.get()
    assert state is not None  # a block is open
    gone = {id(each) for each in state.entries if each.ended}
    _put(tuple(each for each in state.entries if id(each) not in gone and id(each.below) not in gone))
    for each in reversed(state.entries):
        if each.ended and each.kind == "checkpoint":
            each.value.abandon()
