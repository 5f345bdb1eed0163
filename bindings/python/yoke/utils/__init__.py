"""PyTorch's place of checkpointing: yoke.utils.checkpoint."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["checkpoint"]


def __getattr__(name: str) -> Any:
    if name == "checkpoint":
        __import__("yoke.utils.checkpoint")  # read at the first use
        return globals()[name]
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
