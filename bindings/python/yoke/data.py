"""Readers of data files."""

from __future__ import annotations

import os

from yoke import _yoke
from yoke._yoke import Device, Tensor

__all__ = ["read_idx"]


def read_idx(path: str | os.PathLike[str], device: Device | str | int | None = "cpu") -> Tensor:
    """A tensor of the shape and dtype of an IDX file (the format of MNIST), plain or gzip-compressed.

    IOError for a file that is missing, truncated or damaged; UnsupportedError for an element type that Yoke
    has not. Both name the path.
    """
    tensor = _yoke._read_idx(path)
    return tensor if device == "cpu" else tensor.to(device)
