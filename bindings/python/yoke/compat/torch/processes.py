"""torch.multiprocessing: Python's multiprocessing, and spawn() for the ranks of a job. Processes do not share tensors."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from yoke import _yoke


class ProcessException(Exception):
    """Failure of a process of spawn()."""

    def __init__(self, msg: str, error_index: int = 0, pid: int = 0) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """Exception in a process of spawn()."""


class ProcessExitedException(ProcessException):
    """Exit of a process of spawn()."""


def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn") -> Any:
    """Runs fn(i, *args) in `nprocs` new processes, i from 0; an error in a process is raised here, and ends the others."""
    if start_method != "spawn":
        raise _yoke.UnsupportedError(f"spawn(): argument 'start_method' is {start_method!r}; it must be 'spawn'")
    run = Context(fn, args, nprocs, daemon)
    if not join:
        return run
    while not run.join():
        pass
    return None


class Context:
    """Processes of spawn(join=False)."""

    def __init__(self, fn: Any, args: Any, nprocs: int, daemon: bool) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._errors = [spawning.SimpleQueue() for _ in range(nprocs)]
        self.processes = [spawning.Process(target=_guarded, args=(fn, i, tuple(args), self._errors[i]), daemon=daemon) for i in range(nprocs)]
        with _threads_shared(nprocs):
            for each in self.processes:
                each.start()

    def pids(self) -> list[Any]:
        """Returns the numbers of the processes."""
        return [each.pid for each in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until all processes have ended, and returns True; raises the first failure, and ends the other processes."""
        from multiprocessing.connection import wait

        left: dict[Any, int] = {each.sentinel: number for number, each in enumerate(self.processes) if each.exitcode is None}
        ended = [left[each] for each in wait(list(left), timeout)] if left else []
        for number in ended:
            self.processes[number].join()
        failed = next((number for number, each in enumerate(self.processes) if each.exitcode), None)
        if failed is None:
            return all(each.exitcode == 0 for each in self.processes)
        for each in self.processes:
            if each.is_alive():
                each.terminate()
        for each in self.processes:
            each.join()
        process = self.processes[failed]
        if not self._errors[failed].empty():
            raise ProcessRaisedException(f"\n\n-- Process {failed} terminated with the following error:\n{self._errors[failed].get()}", failed, process.pid or 0)
        raise ProcessExitedException(f"process {failed} terminated with exit code {process.exitcode}", failed, process.pid or 0)


@contextmanager
def _threads_shared(processes: int) -> Iterator[None]:
    """Divides the processors among processes that start in the block, unless a variable says otherwise."""
    name = "YOKE_NUM_THREADS"
    if name in os.environ or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    os.environ[name] = str(max(1, len(os.sched_getaffinity(0)) // processes))
    try:
        yield
    finally:
        del os.environ[name]


def _guarded(fn: Any, number: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


def get_all_sharing_strategies() -> set[str]:
    """Returns the ways of sharing tensors: none is used."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Returns "file_system"; processes do not share tensors."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Does nothing: processes do not share tensors."""


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)
