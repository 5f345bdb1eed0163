"""PyTorch's place of gradients: yoke.autograd."""

from yoke._grad import (backward, detect_anomaly, enable_grad, grad, inference_mode, is_anomaly_check_nan_enabled, is_anomaly_enabled,
                        no_grad, set_detect_anomaly, set_grad_enabled)
from yoke._unknown import teller
from yoke.autograd import function
from yoke.autograd.function import Function

__all__ = ["Function", "backward", "detect_anomaly", "enable_grad", "function", "grad", "inference_mode", "is_anomaly_check_nan_enabled",
           "is_anomaly_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled"]

__getattr__ = teller(__name__)
