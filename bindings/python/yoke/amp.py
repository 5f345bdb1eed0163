"""PyTorch's words for mixed precision: amp.autocast("cuda", dtype=yoke.float16), amp.GradScaler("cuda")."""

from __future__ import annotations

import warnings
from typing import Any

from yoke import _amp, _scaler, _yoke
from yoke._unknown import teller

__all__ = ["GradScaler", "autocast", "is_autocast_available"]
__getattr__ = teller(__name__)


def _usable(call: str, device: Any, enabled: bool) -> bool:
    """Returns whether a call for a device has an effect; warns for a device that cannot be used, as PyTorch does."""
    if not isinstance(device, str):
        raise _yoke.TypeError(f"{call}(): the first argument is {device!r}; give the kind of device, such as \"cuda\"")
    kind = device.partition(":")[0]
    if enabled and not _yoke.is_available(kind):
        warnings.warn(f"{call}: the device {device!r} cannot be used, so the call has no effect: {_yoke.why_unavailable(kind)}", RuntimeWarning, stacklevel=4)
        return False
    return bool(enabled)


def is_autocast_available(device_type: str) -> bool:
    """Returns whether autocast serves this kind of device."""
    return _yoke.is_available(device_type)


class autocast(_amp.autocast):
    """yoke.autocast with PyTorch's arguments. The region holds for every device; without a device of this kind it is off."""

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        usable = _usable("autocast", device_type, enabled)
        super().__init__(dtype, enabled=usable, cache_enabled=cache_enabled is not False)


class GradScaler(_scaler.GradScaler):
    """yoke.GradScaler with PyTorch's arguments; without a device of this kind it is off."""

    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        super().__init__(init_scale=init_scale, growth_factor=growth_factor, backoff_factor=backoff_factor, growth_interval=growth_interval,
                         enabled=_usable("GradScaler", device, enabled))
