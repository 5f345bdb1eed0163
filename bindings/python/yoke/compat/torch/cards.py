"""torch.cuda: the current card is a number of its own, because the default device of new tensors is the CPU."""

from __future__ import annotations

import threading
from typing import Any

import yoke
from yoke import _yoke

_of_thread = threading.local()


def current() -> yoke.Device:
    """Returns the current CUDA device: the device of torch.cuda.set_device(), else the first."""
    return yoke.device(f"cuda:{getattr(_of_thread, 'index', 0)}")


def _index(device: Any) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    found = device if isinstance(device, yoke.Device) else None
    kind = found.kind if found is not None else str(device).partition(":")[0]
    if kind != "cuda":
        raise _yoke.ValueError(f"cuda: argument 'device' is {device}, which is not a CUDA device; give an index or a name such as \"cuda:0\"")
    if found is not None:
        return found.index
    number = str(device).partition(":")[2]
    return int(number) if number else getattr(_of_thread, "index", 0)


def set_device(device: Any) -> None:
    """Makes a card the current CUDA device of this thread; new tensors stay on the default device."""
    index = _index(device)
    if index >= 0:
        yoke.device(f"cuda:{index}")  # an error if there is no such card
        _put(index)


def _put(index: int) -> None:
    _of_thread.index = index
    _yoke._set_foreign_card(index)  # what "cuda" means from now on


def current_device() -> int:
    """Returns the index of the current CUDA device."""
    return current().index


def current_accelerator(check_available: bool = False) -> Any:
    """Returns torch.device("cuda") if a card can be used, else None."""
    from yoke.compat.torch import devices

    return devices.device("cuda") if yoke.cuda.is_available() else None


class device:
    """Block in which a card is the current CUDA device."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device) if device is not None else -1
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(getattr(_of_thread, "index", 0))
        if self.idx >= 0:
            set_device(self.idx)

    def __exit__(self, *exception: Any) -> None:
        _put(self._before.pop())


def is_current_stream_capturing() -> bool:
    """Returns False: captures are yoke.Graph's."""
    return False


def _of_current(name: str) -> Any:
    function = getattr(yoke.cuda, name)

    def call(device: Any = None) -> Any:
        return function(f"cuda:{_index(device)}" if yoke.cuda.is_available() else None)

    call.__name__, call.__doc__ = name, function.__doc__
    return call


get_device_name, get_device_capability, get_device_properties = map(_of_current, ("get_device_name", "get_device_capability", "get_device_properties"))
synchronize, current_stream, mem_get_info = map(_of_current, ("synchronize", "current_stream", "mem_get_info"))
memory_allocated, max_memory_allocated = _of_current("memory_allocated"), _of_current("max_memory_allocated")
memory_reserved, max_memory_reserved = _of_current("memory_reserved"), _of_current("max_memory_reserved")
memory_stats, reset_peak_memory_stats = _of_current("memory_stats"), _of_current("reset_peak_memory_stats")
