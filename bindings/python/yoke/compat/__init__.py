"""Other libraries' words over Yoke: yoke.compat.torch runs scripts that were written for PyTorch."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["torch"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yoke.compat import torch


def __getattr__(name: str) -> Any:
    if name == "torch":
        __import__("yoke.compat.torch")  # read at the first use
        return globals()[name]
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
