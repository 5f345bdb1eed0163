"""Checkpoint scopes: activations that are dropped, and recomputed for backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

from yoke import _modes, _yoke
from yoke._check import listed, noun, shown, text, whole
from yoke._grad import need_plain_function
from yoke._named import Named, named


class CheckpointOp(NamedTuple):
    """Op of a checkpoint scope, as passed to a policy's function: shape and dtype of the first result, `bytes` of all results, and
    `work`: the floating-point operations of a product, or the bytes read and written by another op.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    bytes: int
    work: float


class BudgetReport(NamedTuple):
    """Figures of a MemoryBudget: `steps` with a backward, known `forwards`, and the other figures of the last forward. Bytes are
    those beyond the memory at the start of forward and beyond new gradients; `limit` and `plain_peak`, the peak without a budget,
    are 0 until measured. `held` waits from forward to backward, `seconds` is the time for recomputed values. Each figure is
    planned, and measured in the last step (`measured_seconds` on the CPU only).
    """

    steps: int
    forwards: int
    cuts: int
    limit: int
    plain_peak: int
    held: int
    measured_held: int
    peak: int
    measured_peak: int
    seconds: float
    measured_seconds: float


class MemoryBudget(Named):
    """Limit for the memory of a step's activations: MemoryBudget(0.5), a share of their peak without a budget, or
    MemoryBudget("2GiB"). A policy for checkpoint(), checkpoint_scope() and Module.checkpoint_() over a whole forward.

    The budget decides where forward is cut into scopes, and which results they hold. The first step takes little memory and
    measures. Later steps follow a plan of the least time whose peak fits, as long as ops and shapes are the same; up to 8
    forwards have a plan each. Scopes inside belong to the budget; inside another scope the budget is "full". If the budget cannot
    be reached, the least possible memory is used, and the log has a warning. No value depends on the budget.
    """

    def __init__(self, amount: Union[float, str]) -> None:
        if isinstance(amount, bool) or not isinstance(amount, (int, float, str)):
            raise _yoke.TypeError(f"MemoryBudget(): argument 'amount' is {shown(amount)}; a number such as 0.5 or a text such as \"2GiB\" is needed")
        self._amount = amount
        plain = str(amount)
        self._budget = _yoke._MemoryBudget(f"{amount:.25f}" if isinstance(amount, float) and "e" in plain else plain)

    def report(self) -> BudgetReport:
        """Returns the figures of the last step; figures are 0 until measured. Never raises."""
        return BudgetReport(*self._budget.figures())

    def __repr__(self) -> str:
        return f"MemoryBudget({self._amount!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._amount,)


Policy = Union[str, Sequence[str], Callable[[CheckpointOp], str], MemoryBudget, None]
_Read = tuple[str, list[str], Optional[Callable[..., int]], Any, bool]  # as the library takes it


_ANSWERS = {"recompute": 0, "keep": 1, "offload": 2}  # yoke/checkpoint.h


def _decider(policy: Callable[[CheckpointOp], str]) -> Callable[..., int]:
    def decide(*told: Any) -> int:
        op = CheckpointOp(*told)
        answer = policy(op)
        if not isinstance(answer, str) or answer not in _ANSWERS:
            raise _yoke.ValueError(f"checkpoint_scope(): argument 'policy' returned {noun(answer)} for {op.name}; \"keep\", \"recompute\" or \"offload\" is needed")
        return _ANSWERS[answer]

    return decide


def read_policy(call: str, policy: Policy, offload: bool) -> _Read:
    """Returns a policy in the library's form; raises for an invalid policy."""
    if not isinstance(offload, bool):
        raise _yoke.TypeError(f"{call}(): argument 'offload' is {shown(offload)}; True or False is needed")
    if isinstance(policy, str) and policy in ("ops", "function", "budget"):
        raise _yoke.ValueError(f"{call}(): argument 'policy' is '{policy}'; give a list of ops such as [\"gelu\"], a function, or a MemoryBudget")
    if isinstance(policy, MemoryBudget):
        if offload:
            raise _yoke.ValueError(f"{call}(): argument 'offload' is True, but 'policy' is a MemoryBudget, which plans only memory of the device; leave out one of them")
        return "budget", [], None, policy._budget, False
    if policy is None or isinstance(policy, str):
        found: _Read = ("full" if policy is None else policy, [], None, None, offload)
    elif callable(policy):
        found = ("function", [], _decider(policy), None, offload)
    else:
        found = ("ops", [text(call, "policy", name) for name in listed(call, "policy", policy, "names of ops")], None, None, offload)
    _yoke._CheckpointScope(*found).end()
    return found


class _Block:
    """Block of `with`. A context holds this block instead of the checkpoint_scope, so that the scope's end closes its blocks."""

    def __init__(self, policy: _Read) -> None:
        self.scope = _yoke._CheckpointScope(*policy)
        _modes.enter(self, "checkpoint", self.scope)

    def end(self) -> None:
        try:
            self.scope.end()
        finally:
            if self.scope.closed:
                _modes.leave(self)

    def abandon(self) -> None:
        _modes.leave(self)
        self.scope.abandon()


class checkpoint_scope(Named):
    """Results of ops in the block are not kept for backward: `with yoke.checkpoint_scope():`. Backward runs the necessary ops again,
    bit for bit.

    No code of the script runs twice. `policy` selects results that are kept nevertheless: "full" or None: no results; "matmul":
    results of matrix products and attention; a list of op names in docs/ops.md; a function, called with each CheckpointOp as the
    scope closes, with the answer "keep", "recompute" or "offload"; a MemoryBudget. `offload`: kept tensors, and tensors that
    scopes read from each other, wait in pinned host memory and come back one scope ahead of backward; no effect on the CPU.
    Scopes nest; a model has a scope for each of its blocks. The scope belongs to the context (contextvars) and to the thread that
    opened it.
    """

    def __init__(self, policy: Policy = None, offload: bool = False) -> None:
        self._blocks: list[_Block] = []
        self._given, self._policy = (policy, offload), read_policy(type(self).__name__, policy, offload)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given  # without the blocks: they belong to their contexts

    def __enter__(self) -> None:
        self._blocks.append(_Block(self._policy))

    def __exit__(self, *exception: object) -> None:
        block = self._innermost()
        try:
            block.end()
        finally:
            if block.scope.closed:
                self._blocks.remove(block)

    def _innermost(self) -> _Block:
        """Returns the block that was opened last in this context, or else in any context."""
        for entry in reversed(_yoke._modes_entries()):
            if isinstance(entry.owner, _Block) and entry.owner in self._blocks:
                return entry.owner
        if not self._blocks:
            raise _yoke.StateError("checkpoint_scope: this scope is not open: it was already closed, or was never entered; use a new scope in a with block")
        return self._blocks[-1]

    def __del__(self) -> None:
        for block in reversed(getattr(self, "_blocks", ())):  # blocks never closed
            block.abandon()


@named
def checkpoint(fn: Callable[..., Any], /, *args: Any, policy: Policy = None, offload: bool = False, **kwargs: Any) -> Any:
    """Returns fn(*args, **kwargs), called in a separate scope: see checkpoint_scope. fn is called once."""
    if not callable(fn):
        raise _yoke.TypeError(f"checkpoint(): argument 'fn' is {shown(fn)}; a function is needed")
    need_plain_function(fn, "checkpoint_scope")
    for name in kwargs.keys() & {"use_reentrant", "preserve_rng_state"}:  # PyTorch's own, which are not for `fn`
        raise _yoke.TypeError(f"checkpoint(): {_yoke._unknown_keyword(name, ('policy', 'offload'), True)}: checkpoint(fn, *args, policy, offload)")
    with checkpoint_scope(policy, offload):
        return fn(*args, **kwargs)


@named
def checkpoint_sequential(fns: Any, segments: int, x: Any, policy: Policy = None, offload: bool = False) -> Any:
    """Returns x after all functions in order, in `segments` parts of nearly the same length. Each part but the last is in
    a scope; backward needs the results of the last at once. `fns` is an nn.Sequential, or a sequence of functions or modules.
    """
    fns = listed("checkpoint_sequential", "fns", fns, "functions")
    segments = whole("checkpoint_sequential", "segments", segments, 1)
    if not fns:
        raise _yoke.ValueError("checkpoint_sequential(): argument 'fns' is empty; it must have at least one function, such as the layers of a network")
    if segments > len(fns):
        raise _yoke.ValueError(f"checkpoint_sequential(): argument 'segments' is {segments}, for {len(fns)} functions; there can be at most one segment for each function")
    last = len(fns) // segments * (segments - 1)
    for begin in range(0, last, len(fns) // segments):
        with checkpoint_scope(policy, offload):
            for fn in fns[begin:begin + len(fns) // segments]:
                x = fn(x)
    for fn in fns[last:]:
        x = fn(x)
    return x
