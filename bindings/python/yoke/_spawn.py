"""Start of a function in several processes of this machine, the ranks of one job, from a script."""

from __future__ import annotations

import importlib
import multiprocessing.process
import multiprocessing.spawn
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from yoke import _yoke
from yoke._check import listed, shown
from yoke._named import named

_CHILD = "import sys; sys.path[:] = sys.argv[1:]; from yoke._spawn import _be_rank; _be_rank()"


@named
def spawn(fn: Callable[..., object], n: int, args: Sequence[Any] = ()) -> None:
    """Runs `fn(*args)` in `n` new processes, as `yoke run -n N` would start them, and returns when all have ended.

        def train(epochs):
            group = yoke.comm.init()
            …
        if __name__ == "__main__":
            yoke.spawn(train, 4, (10,))

    `fn` is a function that the processes can import: from a module, or from the script, which they run under a name other than
    "__main__"; `args` are pickled. Printed lines have their rank in front; the input is empty. If a process fails, the others are
    ended, and CollectiveError has the rank and its traceback. Ctrl-C ends all.
    """
    _check_function(fn)
    values = tuple(listed("spawn", "args", args, "values; write (value,) for one"))
    try:
        call = pickle.dumps((fn, values))
    except Exception as error:  # any error of a __reduce__
        raise _yoke.TypeError(f"spawn(): argument 'args' cannot be pickled: {type(error).__name__}: {error}") from error
    about = multiprocessing.spawn.get_preparation_data("yoke.spawn")  # how modules are found, and the script
    about.pop("authkey", None)
    for stream in (sys.stdout, sys.stderr):  # keeps earlier output in front
        if stream is not None:
            stream.flush()
    python = os.fsdecode(multiprocessing.spawn.get_executable() or "")
    code, text, trace = _yoke._run([python, "-c", _CHILD, *map(str, sys.path)], n, pickle.dumps((about, call)))
    if code:
        raise _yoke.CollectiveError(f"spawn(): {text}" + (f"\n\n{trace.rstrip()}" if trace else ""))


def _check_function(fn: object) -> None:
    """Raises if a fresh process would not find the function by its name."""
    name, module = getattr(fn, "__qualname__", None), getattr(fn, "__module__", None)
    if not callable(fn) or name is None or module is None:
        raise _yoke.TypeError(f"spawn(): argument 'fn' is {shown(fn)}; it must be a function of a module or a script")
    if "<" in name:
        raise _yoke.ValueError(f"spawn(): argument 'fn' is '{name}', which other processes cannot import; define it at the top level of a module or script, and pass its inputs in 'args'")
    if module == "__main__" and getattr(sys.modules["__main__"], "__spec__", None) is None \
            and not os.path.isfile(getattr(sys.modules["__main__"], "__file__", None) or ""):
        raise _yoke.ValueError(f"spawn(): argument 'fn' is '{name}' of an interactive session, which other processes cannot import; write the function in a file")
    found: object = sys.modules[module] if module in sys.modules else importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not fn and getattr(found, "__func__", found) is not getattr(fn, "__func__", fn):
        raise _yoke.ValueError(f"spawn(): argument 'fn' is not {module}.{name}, so other processes would import another object; give each function its own name")


def _be_rank() -> None:
    """Runs a rank from start to end. The rank reads its call from the input and leaves the input empty."""
    process = multiprocessing.process.current_process()
    about, call = pickle.load(sys.stdin.buffer)
    try:
        process._inheriting = True  # type: ignore[attr-defined]  # a script that spawns at its import gets an error
        try:
            multiprocessing.spawn.prepare(about)
            fn, args = pickle.loads(call)
        finally:
            del process._inheriting  # type: ignore[attr-defined]
        fn(*args)
    except BaseException as error:
        cause = _cause(error)
        if cause:
            with open(os.environ["TORCHELASTIC_ERROR_FILE"] + ".trace", "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(cause)
        raise


def _cause(error: BaseException) -> str:
    """Returns the reason of a rank's end for the caller: a traceback, the text of sys.exit(text), or ""."""
    if isinstance(error, SystemExit):
        return "" if error.code is None or isinstance(error.code, int) else str(error.code)
    return traceback.format_exc().replace("\0", "\\x00")  # the text becomes a string of C
