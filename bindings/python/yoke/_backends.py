"""yoke.backends: what the engines behind the ops may do, for the whole process."""

from __future__ import annotations

from yoke import _yoke


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

    def __repr__(self) -> str:
        return f"yoke.backends(allow_tf32={self.allow_tf32})"


backends = _Backends()
