"""Groups of ranks that work together, and their collectives.

    group = yoke.comm.init()                     # torchrun, mpirun, srun, … tell which rank this is
    group.all_reduce(gradient, op="avg")
    work = group.all_gather(out, part, async_op=True); …; work.wait()

Ranks are processes, or threads of a process (init_all). All ranks of a group make the same calls in the same order. If calls
differ, or a rank has died or does not arrive in time, every rank gets the same yoke.CollectiveError (or TimeoutError) with the
culprit: its rank, host and process, and its call. No rank hangs, and no result is wrong. A failed group stays failed; init()
makes a new group in the same process.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import timeit
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple

from yoke import _carried, _yoke
from yoke._check import shown
from yoke._host_store import HostStore
from yoke._named import Named, name_methods, named
from yoke._refused import asked, heard, made, text_of
from yoke._yoke import Device, Tensor, Work, dtype as dtype_

__all__ = ["Group", "Variable", "coalesce", "env", "finalize", "hang", "init", "init_all", "measure_shares"]

_yoke._comm_tell_lines(__file__)  # reports the script's line, not this file's

_REDUCTIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4}


def _reduction(op: str, call: str) -> int:
    if not isinstance(op, str) or op not in _REDUCTIONS:
        raise _yoke.ValueError(f"{call}(): argument 'op' is {shown(op)}; it must be 'sum', 'avg', 'prod', 'min' or 'max'")
    return _REDUCTIONS[op]


class _Scopes(threading.local):
    """State of the calling thread: the number of open coalesce() scopes, and the works of the outermost scope."""

    def __init__(self) -> None:
        self.depth = 0
        self.works: list[Work] = []


_scopes = _Scopes()


_NO_OP: Any = object()


def _run(core: Any, call: str, async_op: bool, t: Any = None, out: Any = None, peer: Any = None, op: str = _NO_OP,
         reduce_dtype: dtype_ | None = None) -> Work | None:
    try:
        if not isinstance(async_op, bool):
            raise _yoke.TypeError(f"{call}(): argument 'async_op' is {shown(async_op)}; it must be True or False")
        wants_work = async_op or _scopes.depth > 0
        work: Work | None = core.run(call, t, out, peer, 0 if op is _NO_OP else _reduction(op, call), reduce_dtype, wants_work)
    except Exception as error:
        core.note_refused(call, text_of(error))
        raise
    if async_op or work is None:
        return work
    if _scopes.depth:  # the scope's end waits
        _scopes.works.append(work)
        return None
    work.wait()
    return None


def _reason_of(error: BaseException) -> str:
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _tell_raised() -> None:
    """Notes the error that ended the script, kept by Python; ignores errors that an interactive prompt has shown."""
    error = getattr(sys, "last_exc", getattr(sys, "last_value", None))
    if not isinstance(error, BaseException) or hasattr(sys, "ps1") or sys.flags.interactive:
        return
    _yoke._comm_note_raised(_reason_of(error))
    if isinstance(error, KeyboardInterrupt):  # Python ends by the signal, so no later C code runs
        _yoke._comm_finalize()


atexit.register(_tell_raised)


class Group:
    """Ranks that make the same calls in the same order; made by init(), init_all() and split().

    Every collective returns None when its tensors are written. With async_op=True a collective returns a Work at once; wait() of
    the work ends when the tensors are written, and until then no other code may write them. Tensors may have any strides. For
    tensors of a GPU the current stream waits, not the caller, unless wait() has a time. `op` is "sum", "avg", "prod", "min" or
    "max"; float16 and bfloat16 add up in float32 on the host, and by reduce_dtype in NCCL. avg is for floating dtypes, min and
    max for every dtype, sum and prod for all but bool and float8.
    """

    def __init__(self, core: Any) -> None:
        self._core = core

    @property
    def rank(self) -> int:
        """Returns the number of this rank, from 0."""
        return self._core.rank()

    @property
    def size(self) -> int:
        """Returns the number of ranks in the group."""
        return self._core.size()

    @property
    def local_rank(self) -> int:
        """Returns the number among the ranks on the same machine."""
        return self._core.local_rank()

    def all_reduce(self, t: Tensor, op: str = "sum", async_op: bool = False, reduce_dtype: dtype_ | None = None) -> Work | None:
        """Reduces `t` over all ranks; the result is in `t` of every rank.

        With reduce_dtype=yoke.float32 NCCL too adds up 16-bit floats in float32; None means the dtype of the engine.
        """
        return _run(self._core, "all_reduce", async_op, t, op=op, reduce_dtype=reduce_dtype)

    def reduce(self, t: Tensor, root: int, op: str = "sum", async_op: bool = False) -> Work | None:
        """Reduces `t` over all ranks; the result is in `t` of rank `root`."""
        return _run(self._core, "reduce", async_op, t, peer=root, op=op)

    def broadcast(self, t: Tensor, root: int, async_op: bool = False) -> Work | None:
        """Copies `t` of rank `root` to `t` of every rank."""
        return _run(self._core, "broadcast", async_op, t, peer=root)

    def all_gather(self, out: Tensor, t: Tensor, async_op: bool = False) -> Work | None:
        """Fills `out` with `t` of all ranks in their order; `out` has `size` times the elements of `t`."""
        return _run(self._core, "all_gather", async_op, t, out)

    def gather(self, out: Tensor | None, t: Tensor, root: int, async_op: bool = False) -> Work | None:
        """Fills `out` of rank `root` with `t` of all ranks; `out` is None on the other ranks."""
        return _run(self._core, "gather", async_op, t, out, root)

    def scatter(self, out: Tensor, t: Tensor | None, root: int, async_op: bool = False) -> Work | None:
        """Fills `out` with this rank's part of `t` of rank `root`; `t` is None on the other ranks."""
        return _run(self._core, "scatter", async_op, t, out, root)

    def reduce_scatter(self, out: Tensor, t: Tensor, op: str = "sum", async_op: bool = False) -> Work | None:
        """Reduces `t` over all ranks, and fills `out` with this rank's part of the result."""
        return _run(self._core, "reduce_scatter", async_op, t, out, op=op)

    def all_to_all(self, out: Tensor, t: Tensor, async_op: bool = False) -> Work | None:
        """Fills part i of `out` with this rank's part of rank i's `t`."""
        return _run(self._core, "all_to_all", async_op, t, out)

    def send(self, t: Tensor, dst: int, async_op: bool = False) -> Work | None:
        """Sends `t` to rank `dst`, which calls recv."""
        return _run(self._core, "send", async_op, t, peer=dst)

    def recv(self, t: Tensor, src: int, async_op: bool = False) -> Work | None:
        """Receives a tensor of rank `src` into `t`."""
        return _run(self._core, "recv", async_op, t, peer=src)

    def barrier(self, async_op: bool = False) -> Work | None:
        """Waits until all ranks have called barrier."""
        return _run(self._core, "barrier", async_op)

    def monitored_barrier(self, timeout: float) -> None:
        """Waits as barrier does, at most `timeout` seconds; TimeoutError lists all ranks that did not arrive, and the group goes on.

        If a rank has died, the call ends at once: CollectiveError lists dead ranks and ranks that are not there yet.
        """
        asked(self._core, "monitored_barrier", lambda: self._core.monitored_barrier(timeout))

    def split(self, color: int | None, key: int = 0) -> Group | None:
        """Makes groups of the ranks with the same color, in the order of their keys; all ranks call it.

        Returns None for a color of None, or below 0: the rank is in no new group.
        """
        part = made(self._core, "split", lambda: self._core.split(-1 if color is None else color, key))
        return None if part is None else Group(part)

    def shrink(self, timeout: float = 5.) -> Group:
        """Makes a new group of the ranks that call within `timeout` seconds, in their order; this group ends.

        The call works whatever has happened to the other ranks, to rank 0, or to the launcher. It returns early if each rank has
        joined or its process has ended; the last quarter of the time is for making the group. A rank that calls after the new
        group was made gets CollectiveError, and makes no group. If this was the default group, the new group becomes the default.
        """
        return Group(asked(self._core, "shrink", lambda: self._core.shrink(timeout)))

    def empty(self, shape: int | Sequence[int], dtype: dtype_ | None = None, device: Device | str | None = None) -> Tensor:
        """Makes a tensor in memory that peers reach without a copy, in host memory if `device` is None; all ranks make the same
        call.

        On a GPU the memory is NCCL's if NCCL serves the group, else the allocator's.
        """
        return made(self._core, "empty", lambda: self._core.empty(shape, dtype, device))

    def abort(self, reason: str | None = None) -> None:
        """Ends the group on all ranks: running and later calls are a CancelledError."""
        self._core.abort(reason)

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Writes this rank's knowledge of the group: its ranks, the last 2,000 calls with lines of the script, the reason of a
        failure.

        The file is JSON, for hang() and `yoke hang`. Any thread may call it while another thread hangs in a call, and so may a
        handler of signal.signal(): signal.signal(signal.SIGUSR1, lambda *_: group.dump(path)). A failed group may be dumped too.
        """
        self._core.dump(path)

    @contextmanager
    @named
    def join(self, *objects: Any) -> Iterator[None]:
        """Encloses the loops of ranks with different numbers of batches: with group.join(optimizer): for x in batches: ddp(x)…

        A finished rank answers the other ranks' backward passes with weight 0 until all have finished. Then all have the
        parameters, buffers and gradients of a rank that finished last, and the states of its `objects`, because these have made
        more steps. Each rank has such a block; else each backward is a StateError on all ranks. The end of the block is a
        StateError if no rank had a backward, or if the group does not have exactly one DistributedDataParallel. An exception that
        leaves the block ends the group, on all ranks with its reason.
        """
        made(self._core, "join", lambda: _carried.check(objects, "join"))
        self._core.join_begin()
        with self:
            yield
            mine = _carried.states(objects)
        told = self._core.join_end(mine)
        with self:
            _carried.load(objects, told, "join")

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        try:
            self.abort(_reason_of(error))
        except _yoke.ForkedError:
            pass  # the block's own error is the reported error

    def __repr__(self) -> str:
        return f"<yoke.comm.Group: {self._core.describe()}>"


name_methods(Group, heard, ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "send", "recv",
                             "barrier", "monitored_barrier", "split", "shrink", "empty"))
name_methods(Group)


@named
def init(backend: str | None = None, init_method: str = "env://", rank: int | None = None, world_size: int | None = None,
         timeout: float = 600., init_timeout: float = 300., store: Any = None, device: Device | str | None = None) -> Group:
    """Makes the group of all ranks; each rank calls it. The first group of a process is its default group.

    Rank, number of ranks and rank 0's address come from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun, Kubeflow), from
    mpirun, srun or an indexed Job; or from `init_method` "tcp://HOST:PORT" or "file:///PATH" with `rank` and `world_size`.
    `timeout` is the seconds of a call, `init_timeout` the seconds until all ranks must be there.

    `backend` None: the CPU engine, and NCCL for tensors of GPUs if NCCL can serve all ranks; else these tensors pass through
    host memory, and a warning says why. "nccl": an error if NCCL cannot serve. "cpu" (also called "gloo") or "mpi": for all
    tensors. NCCL's communicator is made at the first collective with a tensor of a GPU, on this GPU, so set_device may come after
    init(); with `device`, on all ranks, at once.

    `store` replaces rank 0's address: an object with set(key, value), get(key), and wait([key], timeout) if get() does not wait,
    such as a TCPStore, FileStore or PrefixStore of torch.distributed. Only init() calls the store, in this thread. If several
    jobs share a store, each needs a prefix.

    ValueError for missing or contradicting settings; TimeoutError with the ranks that did not arrive; CollectiveError from an
    error of the store; DeviceUnavailableError if the backend's module is missing.
    """
    calls = None if store is None else HostStore(store)
    try:
        return Group(_yoke._comm_init(backend, init_method, rank, world_size, timeout, init_timeout, calls, device))
    except _yoke.Error as error:
        if calls is None or calls.failure is None:
            raise
        raise error from calls.failure


class coalesce(Named):
    """Issues collectives of this thread together, at the end of `with yoke.comm.coalesce():`.

    No send or receive among them waits for another, so two ranks may send to each other. The calls return at once, and their
    tensors are written after the scope; wait for works after the scope. Calls with other results (split(), empty(),
    measure_shares() or a backward of data parallel) are a StateError inside. After an error inside nothing is issued, in the
    outermost scope neither; if the error did not leave the outermost scope, its end is a StateError.
    """

    def __enter__(self) -> None:
        _yoke._comm_coalesce_begin()
        _scopes.depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        is_open = _scopes.depth > 0
        _scopes.depth = max(0, _scopes.depth - 1)
        if error is not None:
            _scopes.works = []
            if is_open:
                _yoke._comm_coalesce_drop()
            return
        works: list[Work] = []
        if _scopes.depth == 0:
            works, _scopes.works = _scopes.works, []
        _yoke._comm_coalesce_end()
        for work in works:
            work.wait()


@named
def hang(*paths: str | os.PathLike[str]) -> dict[str, Any]:
    """Finds the ranks that block groups, from dumps of some or all ranks: files, or folders of files "*.json".

    Returns a dict of "hangs"; "groups", each with "group" (its number), "size", "hangs", "blamed" (ranks), "finished" (calls finished by
    all), "findings" (each of "kind", "ranks" and "text"), "ranks" and "older" (dumps replaced by newer dumps); "problems", of
    "path" and "text". IOError if no file is a dump.
    """
    return _yoke._comm_hang(list(paths))


@named
def measure_shares(step_fn: Callable[[], object], group: Group | None = None) -> list[float]:
    """Measures each rank's share of the work, with the sum 1, so that all ranks need the same time: by the time of step_fn().

    All ranks call it; step_fn does the same work on each, and synchronizes work on a device. step_fn calls no group, because each
    rank would then wait for the slowest: it steps the plain module, not the DistributedDataParallel. step_fn is called four
    times; the first call does not count, and the quickest counts. For DistributedSampler(shares=…), batches of a size by share,
    and DistributedDataParallel.set_weight. `group` None: the default group. An error of step_fn ends the group, on all ranks with
    its reason.
    """
    if not callable(step_fn):
        raise _yoke.TypeError(f"measure_shares(): argument 'step_fn' is {shown(step_fn)}; it must be a function without arguments")
    if _scopes.depth:
        raise _yoke.StateError("measure_shares(): this call needs the other ranks at once, but this thread is in a coalesce scope, which issues its calls at the end; call measure_shares before or after the scope")
    held = Group(_yoke._comm_group()) if group is None else group
    with held:  # the other ranks wait in this group
        step_fn()
        held.barrier()  # an early rank would have the processors alone
        seconds = timeit.repeat(step_fn, number=1, repeat=3)
    speeds = _yoke.zeros((held.size,), dtype=_yoke.float64)
    held.all_gather(speeds, _yoke.tensor([1 / max(min(seconds), 1e-9)], dtype=_yoke.float64))
    return list((speeds / speeds.sum()).tolist())


@named
def finalize() -> None:
    """Releases the default group. At its end a process releases it automatically."""
    _yoke._comm_finalize()


class Variable(NamedTuple):
    """Variable of NCCL, Gloo or PyTorch in the environment, with its effect here; from env().

    `effect` is "sets": decides `setting`, "YOKE_COMM_SHM=0"; "overruled": another variable or the program decides `setting`;
    "always": the requested behaviour always holds; "passed": NCCL reads the variable, if NCCL serves tensors of GPUs; "nothing";
    "unknown"; or "unreadable", an error at its first use. `text` is for people; for a variable without effect it names the
    effective setting.
    """
    name: str
    value: str
    effect: str
    setting: str
    text: str


@named
def env() -> list[Variable]:
    """Lists the variables NCCL_*, GLOO_* and TORCH_NCCL_* of the environment, with their effect here, by their names."""
    return [Variable(*each) for each in _yoke._comm_variables()]


@named
def init_all(devices: Sequence[Device | str], size: int | None = None, timeout: float = 600.) -> list[Group]:
    """Makes groups of one process, a rank each: init_all(["cuda:0", "cuda:1"]), or init_all(["cpu"], size=4) with threads as ranks.

    For GPUs a single thread may call for all ranks, so calls stand in `with yoke.comm.coalesce():`, which begins the calls of all
    groups before any wait; a call outside is a StateError. A thread for each group calls split(), shrink() and other calls that
    wait for all ranks. Groups of ["cpu"] are used by a thread each, and take tensors of any device.
    """
    if isinstance(devices, str) or not isinstance(devices, Iterable):
        raise _yoke.TypeError(f"init_all(): argument 'devices' is {shown(devices)}; it must be a list of devices, such as ['cuda:0', 'cuda:1'] or ['cpu']")
    given = list(devices)
    if list(map(str, given)) == ["cpu"]:
        return [Group(core) for core in _yoke._comm_init_threads(1 if size is None else size, timeout)]
    if size is not None and size != len(given):
        raise _yoke.ValueError(f"init_all(): argument 'size' is {shown(size)} but 'devices' has {len(given)} devices; each device is a rank, so leave out 'size'")
    return [Group(core) for core in _yoke._comm_init_devices(given, timeout)]
