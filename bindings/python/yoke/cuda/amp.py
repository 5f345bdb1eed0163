"""PyTorch's older words for mixed precision on CUDA devices: yoke.amp for the device "cuda"."""

from __future__ import annotations

from typing import Any

from yoke import amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """Region of mixed precision: yoke.amp.autocast("cuda", dtype, enabled, cache_enabled)."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """Loss scaling: yoke.amp.GradScaler("cuda", …)."""

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
