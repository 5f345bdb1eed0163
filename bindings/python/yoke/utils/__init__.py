"""PyTorch's places of checkpointing and of handles of hooks: yoke.utils.checkpoint, yoke.utils.hooks."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["checkpoint", "hooks"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        __import__(f"yoke.utils.{name}")  # read at the first use
        return globals()[name]
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
