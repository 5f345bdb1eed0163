"""yoke.backends: what the engines behind the ops may do, for the whole process."""

from __future__ import annotations

import contextlib
from typing import Iterator

from yoke import _yoke

_ENABLED, _BENCHMARK, _BENCHMARK_LIMIT, _DETERMINISTIC, _WORKSPACE_LIMIT = range(5)  # as in yoke/engines.h
_CUDNN = ("enabled", "benchmark", "benchmark_limit", "deterministic", "workspace_limit")


class _Cudnn:
    """What cuDNN may do for convolutions and attention on CUDA devices.

    A setting begins with what its variable says: YOKE_CUDNN_ENABLED, YOKE_CUDNN_BENCHMARK and so on. A graph keeps those
    of its capture.
    """

    __slots__ = ()

    @property
    def enabled(self) -> bool:
        """Whether ops may go through cuDNN, where it is found. True at first.

        False from the start: it is not even looked for. Without it Yoke's own kernels compute the same.
        """
        return bool(_yoke._cudnn_get(_ENABLED))

    @enabled.setter
    def enabled(self, value: bool) -> None:
        _yoke._cudnn_set(_ENABLED, "enabled", value)

    @property
    def benchmark(self) -> bool:
        """Whether the first call of each shape times cuDNN's plans and keeps the quickest. False at first: its first."""
        return bool(_yoke._cudnn_get(_BENCHMARK))

    @benchmark.setter
    def benchmark(self, value: bool) -> None:
        _yoke._cudnn_set(_BENCHMARK, "benchmark", value)

    @property
    def benchmark_limit(self) -> int:
        """How many plans `benchmark` times, 0: all. 10 at first."""
        return _yoke._cudnn_get(_BENCHMARK_LIMIT)

    @benchmark_limit.setter
    def benchmark_limit(self, value: int) -> None:
        _yoke._cudnn_set(_BENCHMARK_LIMIT, "benchmark_limit", value)

    @property
    def deterministic(self) -> bool:
        """Whether the same call always gives the same bits. True at first; False lets cuDNN add in any order."""
        return bool(_yoke._cudnn_get(_DETERMINISTIC))

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        _yoke._cudnn_set(_DETERMINISTIC, "deterministic", value)

    @property
    def workspace_limit(self) -> int:
        """Bytes of memory that a call's plan may want beside its tensors. 256 MiB at first."""
        return _yoke._cudnn_get(_WORKSPACE_LIMIT)

    @workspace_limit.setter
    def workspace_limit(self, value: int) -> None:
        _yoke._cudnn_set(_WORKSPACE_LIMIT, "workspace_limit", value)

    def version(self) -> int | None:
        """91900 is 9.19.0; None where cuDNN cannot serve. Looks for it, unless it is not enabled."""
        return _yoke._cudnn_version() or None

    def why_unavailable(self) -> str | None:
        """Why cuDNN cannot serve, with a remedy; None where it can. Looks for it, unless it is not enabled."""
        return _yoke._cudnn_why_unavailable() or None

    @contextlib.contextmanager
    def flags(self, *, enabled: bool | None = None, benchmark: bool | None = None, benchmark_limit: int | None = None,
              deterministic: bool | None = None, workspace_limit: int | None = None) -> Iterator[None]:
        """Settings for the length of a with block, in all threads: with yoke.backends.cudnn.flags(benchmark=True): ..."""
        wanted = zip(_CUDNN, (enabled, benchmark, benchmark_limit, deterministic, workspace_limit))
        before = {name: getattr(self, name) for name in _CUDNN}
        try:
            for name, value in wanted:
                if value is not None:
                    setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        return f"yoke.backends.cudnn({', '.join(f'{name}={getattr(self, name)}' for name in _CUDNN)})"


_cudnn = _Cudnn()


class _Backends:
    """Settings of the engines behind the ops. They hold for all threads, from the next op on."""

    __slots__ = ()  # a setting that does not exist is refused, not made

    @property
    def allow_tf32(self) -> bool:
        """Whether GPUs may round what products of float32 matrices multiply to TF32 (10 bits of mantissa).

        Several times as fast on tensor cores from Ampere on; sums stay float32. False at first, unless YOKE_ALLOW_TF32
        is 1. A graph keeps what was allowed at its capture. The CPU never rounds.
        """
        return _yoke._get_allow_tf32()

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        _yoke._set_allow_tf32(allowed)

    @property
    def cudnn(self) -> _Cudnn:
        """What cuDNN may do."""
        return _cudnn

    def __repr__(self) -> str:
        return f"yoke.backends(allow_tf32={self.allow_tf32})"


backends = _Backends()
