"""PyTorch's place of the handles of hooks."""

from __future__ import annotations

from yoke._hooks import RemovableHandle

__all__ = ["RemovableHandle"]
