"""Numbers and types of PyTorch's modules."""

from __future__ import annotations

import math
from typing import Union

import yoke
from yoke.compat.torch import __version__ as version

pi, inf, nan, e, newaxis = math.pi, math.inf, math.nan, math.e, None
Device = Union[yoke.Device, str, int, None]
Number = Union[int, float, bool]

__all__ = ["Device", "Number", "e", "inf", "nan", "newaxis", "pi", "version"]
