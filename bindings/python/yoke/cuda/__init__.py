"""PyTorch's words for CUDA devices: yoke.cuda.is_available() is yoke.is_available("cuda").

A device is an index among the CUDA devices, a spec or a Device; None is the current CUDA device, else the first. Without a CUDA
device figures of memory are 0, empty_cache() and the seeds change nothing else, and the other calls raise DeviceUnavailableError.
"""

from __future__ import annotations

import sys
from typing import Any, Optional, Union

from yoke import _random, _yoke
from yoke._named import named
from yoke._yoke import Device, Event, OutOfMemoryError, Stream, Tensor

DeviceLike = Optional[Union[Device, str, int]]

__all__ = ["Event", "OutOfMemoryError", "Stream", "amp", "current_device", "current_stream", "device", "device_count", "empty_cache",
           "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "init", "is_available", "is_bf16_supported",
           "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
           "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_device", "set_rng_state", "set_stream",
           "stream", "synchronize"]


@named
def is_available() -> bool:
    """Returns whether a CUDA device can be used."""
    return _yoke.is_available("cuda")


@named
def device_count() -> int:
    """Returns the number of CUDA devices."""
    return _yoke.device_count("cuda")


def _device(device: DeviceLike) -> Device:
    if isinstance(device, int) and not isinstance(device, bool):
        return _yoke.device(f"cuda:{device}")
    if device is None:
        current = _yoke.current_device()
        return current if current.kind == "cuda" else _yoke.device("cuda")
    found = _yoke.device(device)
    if found.kind != "cuda":
        raise _yoke.ValueError(f"cuda: argument 'device' is {found}, which is not a CUDA device; give an index or a spec such as \"cuda:0\"")
    return found


@named
def current_device() -> int:
    """Returns the index of the current CUDA device."""
    return _device(None).index


@named
def set_device(device: DeviceLike) -> None:
    """Makes a CUDA device the current device."""
    _yoke.set_device(_device(device))


@named
def device(device: DeviceLike) -> Device:
    """Returns a CUDA device, which `with` makes the current device in a block."""
    return _device(device)


@named
def synchronize(device: DeviceLike = None) -> None:
    """Waits until all work given to the device has finished."""
    _device(device).synchronize()


@named
def get_device_name(device: DeviceLike = None) -> str:
    """Returns the name that the maker gave the device."""
    return _device(device).name


@named
def get_device_capability(device: DeviceLike = None) -> tuple[int, int] | None:
    """Returns the compute capability, such as (9, 0)."""
    return _device(device).compute_capability


class DeviceProperties:
    """Facts about a device, under PyTorch's names."""

    def __init__(self, device: Device) -> None:
        self.name, self.total_memory, self.multi_processor_count = device.name, device.total_memory, device.multiprocessors
        self.major, self.minor = device.compute_capability or (0, 0)

    def __repr__(self) -> str:
        return f"DeviceProperties({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


@named
def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Returns the name, total_memory, multi_processor_count, major and minor of a device."""
    return DeviceProperties(_device(device))


@named
def is_bf16_supported(device: DeviceLike = None) -> bool:
    """Returns whether ops of the device take bfloat16."""
    return is_available() and _device(device).supports(_yoke.bfloat16)


@named
def init() -> None:
    """Does nothing: the first use of a device opens the device."""


@named
def is_initialized() -> bool:
    """Returns whether a CUDA device can be used: no call must open the devices first."""
    return is_available()


# ---- Memory ----------------------------------------------------------------------------------------------------------


@named
def memory_allocated(device: DeviceLike = None) -> int:
    """Returns the bytes of tensors on the device."""
    return _yoke.memory_allocated(_device(device)) if is_available() else 0


@named
def max_memory_allocated(device: DeviceLike = None) -> int:
    """Returns the peak of memory_allocated()."""
    return _yoke.max_memory_allocated(_device(device)) if is_available() else 0


@named
def memory_reserved(device: DeviceLike = None) -> int:
    """Returns the bytes that the allocator holds on the device."""
    return _yoke.memory_reserved(_device(device)) if is_available() else 0


@named
def max_memory_reserved(device: DeviceLike = None) -> int:
    """Returns the peak of memory_reserved()."""
    return _yoke.max_memory_reserved(_device(device)) if is_available() else 0


@named
def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Returns the allocator's figures with PyTorch's keys; an empty dict without a CUDA device."""
    return _yoke.memory_stats(_device(device)) if is_available() else {}


@named
def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Starts the peaks at the present figures."""
    if is_available():
        _yoke.reset_peak_memory_stats(_device(device))


@named
def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Returns the free and the total bytes of the device."""
    return _yoke.mem_get_info(_device(device))


@named
def empty_cache() -> None:
    """Gives memory that no tensor uses back to the driver."""
    if is_available():
        _yoke.empty_cache(_device(None))


# ---- Random numbers and streams --------------------------------------------------------------------------------------


@named
def manual_seed(seed: int) -> None:
    """Calls yoke.manual_seed(seed): one stream of random numbers serves every device."""
    _yoke.manual_seed(seed)


@named
def manual_seed_all(seed: int) -> None:
    """Calls yoke.manual_seed(seed): one stream of random numbers serves every device."""
    _yoke.manual_seed(seed)


@named
def get_rng_state(device: DeviceLike = None) -> Tensor:
    """Returns yoke.get_rng_state(), which holds for every device."""
    state: Tensor = _random.get_rng_state()  # type: ignore[no-untyped-call]
    return state


@named
def set_rng_state(new_state: Tensor, device: DeviceLike = None) -> None:
    """Calls yoke.set_rng_state(new_state), which holds for every device."""
    _random.set_rng_state(new_state)  # type: ignore[no-untyped-call]


@named
def current_stream(device: DeviceLike = None) -> Stream:
    """Returns the current stream of the device."""
    return _yoke.current_stream(_device(device))


@named
def set_stream(stream: Stream) -> None:
    """Makes a stream the current stream of its device."""
    _yoke.set_stream(stream)


def __getattr__(name: str) -> Any:
    if name == "amp":
        __import__("yoke.cuda.amp")  # read at the first use
        return globals()[name]
    if name == "stream":
        from yoke._stream import stream

        return stream
    if name.endswith("Tensor"):
        return _type_on_cuda(name)
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)


def _type_on_cuda(name: str) -> Any:
    """Returns FloatTensor and the like, whose tensors are on the CUDA device."""
    from yoke import _types

    kind = getattr(_types, name, None) if name in _types.__all__ else None
    if kind is None:
        raise AttributeError(f"module 'yoke.cuda' has no attribute '{name}'")
    return lambda *args: kind(*args, device=_device(None))
