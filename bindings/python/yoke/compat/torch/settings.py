"""torch.backends, torch.cuda.amp and torch.version: modules whose attributes are settings."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke.compat.torch._modules import Names
from yoke.compat.torch.options import refused


def _setting(name: str) -> Any:
    return property(lambda self: getattr(yoke.backends.cudnn, name), lambda self, value: setattr(yoke.backends.cudnn, name, value))


def _get_tf32(place: Any) -> bool:
    """Returns yoke.backends.allow_tf32."""
    return yoke.backends.allow_tf32


def _set_tf32(place: Any, value: bool) -> None:
    yoke.backends.allow_tf32 = value


_allow_tf32 = property(_get_tf32, _set_tf32)


class Cudnn(Names):
    """torch.backends.cudnn: Yoke's settings of cuDNN."""

    enabled, benchmark, benchmark_limit, deterministic = map(_setting, ("enabled", "benchmark", "benchmark_limit", "deterministic"))

    allow_tf32 = _allow_tf32

    @staticmethod
    def is_available() -> bool:
        """Returns whether cuDNN can be used."""
        return yoke.cuda.is_available() and yoke.backends.cudnn.version() is not None

    @staticmethod
    def version() -> int | None:
        """Returns cuDNN's version, or None."""
        return yoke.backends.cudnn.version()

    @staticmethod
    def flags(**given: Any) -> Any:
        """Changes settings for a block."""
        now = yoke.backends.allow_tf32
        refused("cudnn.flags", allow_tf32=(given.pop("allow_tf32", now), now))
        return yoke.backends.cudnn.flags(**given)


class _Matmul:
    """torch.backends.cuda.matmul."""

    allow_tf32 = _allow_tf32
    allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = False


matmul = _Matmul()


def is_built() -> bool:
    """Returns whether a module for CUDA is there."""
    return yoke.cuda.is_available()


def no() -> bool:
    """Returns False: there is no such device or library."""
    return False


def yes() -> bool:
    """Returns True."""
    return True


def ways_of_attention(*arguments: Any, **keywords: Any) -> None:
    """Does nothing: attention chooses its kernel itself."""


cuda: Any = None
hip: Any = None
debug, git_version = False, "unknown"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Makes ops give the same bits in each run; each of Yoke's ops can."""
    yoke.use_deterministic_algorithms(bool(mode))


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Makes ops give the same bits in each run, unless the mode is 0 or "default"."""
    yoke.use_deterministic_algorithms(debug_mode not in (0, "default"))


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Returns whether an autocast region is in force."""
    return yoke.is_autocast_enabled()


def get_autocast_dtype(device_type: str) -> yoke.dtype:
    """Returns the dtype of matrix products under autocast."""
    return yoke.get_autocast_dtype(device_type if device_type == "cpu" or yoke.is_available(device_type) else None)


def custom_fwd(fwd: Any = None, *, device_type: str | None = None, cast_inputs: Any = None) -> Any:
    """Decorates the forward of an autograd.Function; it runs under the caller's region."""
    if cast_inputs is not None:
        raise _yoke.UnsupportedError("custom_fwd(): argument 'cast_inputs' is not there; cast the tensors in forward()")
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Any = None, *, device_type: str | None = None) -> Any:
    """Decorates the backward of an autograd.Function."""
    return bwd if bwd is not None else lambda function: function
