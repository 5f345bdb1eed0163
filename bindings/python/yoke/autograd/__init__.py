"""PyTorch's place of gradients: yoke.autograd."""

from __future__ import annotations

import sys

from yoke._grad import (backward, detect_anomaly, enable_grad, grad, inference_mode, is_anomaly_check_nan_enabled, is_anomaly_enabled,
                        no_grad, set_detect_anomaly, set_grad_enabled)
from yoke.autograd import function
from yoke.autograd.function import Function

__all__ = ["Function", "backward", "detect_anomaly", "enable_grad", "function", "grad", "inference_mode", "is_anomaly_check_nan_enabled",
           "is_anomaly_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled"]


def __getattr__(name: str) -> object:
    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
