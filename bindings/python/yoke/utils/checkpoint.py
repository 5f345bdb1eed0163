"""PyTorch's forms of checkpointing, over yoke.checkpoint and yoke.checkpoint_sequential."""

from __future__ import annotations

from typing import Any, Callable

from yoke import _checkpoint, _yoke
from yoke._named import named

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Returns function(*args, **kwargs), whose inner results are computed again in the backward pass.

    use_reentrant and preserve_rng_state change nothing: the function runs once, and recomputed ops draw the same random numbers.
    """
    _need_flags("checkpoint", use_reentrant, preserve_rng_state)
    return _checkpoint.checkpoint(function, *args, **kwargs)


@named
def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, *, preserve_rng_state: bool = True) -> Any:
    """Returns input after all functions in order; each of the `segments` parts but the last is computed again in the backward pass."""
    _need_flags("checkpoint_sequential", use_reentrant, preserve_rng_state)
    return _checkpoint.checkpoint_sequential(functions, segments, input)


def _need_flags(call: str, use_reentrant: Any, preserve_rng_state: Any) -> None:
    if use_reentrant is not None and not isinstance(use_reentrant, bool):
        raise _yoke.TypeError(f"{call}(): argument 'use_reentrant' is a {type(use_reentrant).__name__}; it takes a bool or None")
    if preserve_rng_state is not True:
        raise _yoke.ValueError(f"{call}(): argument 'preserve_rng_state' is {preserve_rng_state!r}; leave it out, because recomputed ops always draw the same random numbers")
