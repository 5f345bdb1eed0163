"""PyTorch's rules, put in force for the process: the default device, methods of classes, texts."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke.compat.torch._modules import implementation
from yoke.compat.torch._table import ATTRIBUTES, TABLE


def apply() -> None:
    """Puts all rules in force; install() calls it once."""
    try:
        yoke.config_set("YOKE_DEVICE", "cpu")  # for every thread
    except _yoke.StateError:  # a device was used already
        pass
    yoke.set_device("cpu")
    _yoke._set_weak_zero_dim(True)
    _yoke._set_foreign_card(0)
    yoke.Error.__bases__ = (RuntimeError,)  # scripts catch RuntimeError, as PyTorch raises for most calls
    from yoke.compat.torch import devices, gradients, options, resets, text  # noqa: F401 (the modules keep Yoke's methods, so they load before any changes)

    wanted: list[tuple[type, str, Any]] = [
        (yoke.Tensor, "__repr__", text.repr_of), (yoke.Tensor, "__str__", text.repr_of), (yoke.Tensor, "__format__", text.format_of),
        (yoke.dtype, "__repr__", options.dtype_repr),
        (yoke.dtype, "__str__", options.dtype_repr), (yoke.Device, "__repr__", devices.repr_of), (yoke.Device, "__hash__", devices.hash_of), *resets.METHODS, *resets.STARTS]
    kinds: dict[str, type] = {"Tensor": yoke.Tensor, "nn.Module": yoke.nn.Module, "optim.Optimizer": yoke.optim.Optimizer}
    for place, kind in kinds.items():
        for name, entry in TABLE[place].items():
            value = implementation(entry)
            wanted.append((kind, name, property(value) if (place, name) in ATTRIBUTES else value))
    for kind, name, value in wanted:
        setattr(kind, name, value)
