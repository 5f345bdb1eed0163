"""yoke.backends: what the engines behind the ops may do, for the whole process."""

from __future__ import annotations

import contextlib
from typing import Generic, Iterator, TypeVar

from yoke import _yoke
from yoke._named import named

_T = TypeVar("_T", bool, int)


class _Setting(Generic[_T]):
    """Setting of cuDNN, by its number in yoke/engines.h."""

    def __init__(self, number: int, kind: type[_T], doc: str) -> None:
        self._number, self.__doc__ = number, doc
        self._kind: type[_T] = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> _T:
        return self if instance is None else self._kind(_yoke._cudnn_get(self._number))  # type: ignore[return-value]

    def __set__(self, instance: object, value: _T) -> None:
        _yoke._cudnn_set(self._number, self._name, value)


class _Cudnn:
    """Settings of cuDNN for convolutions and attention on CUDA devices.

    A setting begins with the value of its variable: YOKE_CUDNN_ENABLED, YOKE_CUDNN_BENCHMARK and so on. A graph keeps the
    settings of its capture.
    """

    __slots__ = ()

    enabled = _Setting(0, bool, """True if ops may use cuDNN, where cuDNN is found; the default.

        If False from the start, the process does not look for cuDNN. Without cuDNN Yoke's own kernels compute the same ops.
        """)
    benchmark = _Setting(1, bool, "True if the first call of each shape measures cuDNN's plans and keeps the fastest. False, the default, takes cuDNN's first plan.")
    benchmark_limit = _Setting(2, int, "Number of plans that `benchmark` measures; 0: all. 10 by default.")
    deterministic = _Setting(3, bool, "True if cuDNN adds in order, so the same call gives the same bits. False by default. See use_deterministic_algorithms, too.")
    workspace_limit = _Setting(4, int, "Bytes of memory that the plan of a call may use beside its tensors. 256 MiB by default.")

    def version(self) -> int | None:
        """Returns the version, 91900 for 9.19.0; None if cuDNN cannot be used. Looks for cuDNN, if `enabled` is True."""
        return _yoke._cudnn_version() or None

    def why_unavailable(self) -> str | None:
        """Returns why cuDNN cannot be used, with a remedy; None if cuDNN can be used. Looks for cuDNN, if `enabled` is True."""
        return _yoke._cudnn_why_unavailable() or None

    @contextlib.contextmanager
    @named
    def flags(self, *, enabled: bool | None = None, benchmark: bool | None = None, benchmark_limit: int | None = None,
              deterministic: bool | None = None, workspace_limit: int | None = None) -> Iterator[None]:
        """Changes settings for the length of a `with` block, in all threads: with yoke.backends.cudnn.flags(benchmark=True): ..."""
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


_CUDNN = tuple(name for name, value in vars(_Cudnn).items() if isinstance(value, _Setting))
_cudnn = _Cudnn()


class _Backends:
    """Settings of the engines behind the ops. They hold for all threads, from the next op on."""

    __slots__ = ()  # a setting that does not exist is refused, not made

    @property
    def allow_tf32(self) -> bool:
        """Returns whether GPUs may round the operands of float32 matrix products to TF32 (10 bits of mantissa).

        Products are then several times as fast on tensor cores from Ampere on; sums stay float32. False by default, unless
        YOKE_ALLOW_TF32 is 1. A graph keeps the setting of its capture. The CPU never rounds.
        """
        return _yoke._get_allow_tf32()

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        _yoke._set_allow_tf32(allowed)

    @property
    def cudnn(self) -> _Cudnn:
        """Settings of cuDNN."""
        return _cudnn

    def __repr__(self) -> str:
        return f"yoke.backends(allow_tf32={self.allow_tf32})"


backends = _Backends()

_precision = "high"  # the last of the two words for TF32


@named
def set_float32_matmul_precision(precision: str) -> None:
    """Sets backends.allow_tf32 by PyTorch's word: "highest" turns it off, "high" and "medium" turn it on."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise _yoke.ValueError(f"set_float32_matmul_precision(): argument 'precision' is {precision!r}; it must be \"highest\", \"high\" or \"medium\"")
    if precision != "highest":
        _precision = precision
    backends.allow_tf32 = precision != "highest"


@named
def get_float32_matmul_precision() -> str:
    """Returns "highest" unless backends.allow_tf32 is on; then the word that turned it on, or "high"."""
    return _precision if backends.allow_tf32 else "highest"
