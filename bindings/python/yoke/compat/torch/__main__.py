"""Runs a script that was written for PyTorch: python -m yoke.compat.torch script.py ARG…, or -m MODULE ARG…"""

from __future__ import annotations

import io
import os
import sys
from types import ModuleType, TracebackType
from typing import Any, NoReturn

USAGE = "usage: python -m yoke.compat.torch [-m MODULE | SCRIPT] [ARG ...]\n"


def main(arguments: list[str]) -> None:
    """Runs the script as Python itself would: arguments, __main__, search path, exit code and traceback are the script's."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        (sys.stdout if arguments and arguments[0] != "-m" else sys.stderr).write(USAGE)
        raise SystemExit(0 if arguments and arguments[0] != "-m" else 2)
    if arguments[0].startswith("-") and arguments[0] != "-m":
        sys.stderr.write(f"python -m yoke.compat.torch: unknown option {arguments[0]}\n{USAGE}")
        raise SystemExit(2)
    from yoke.compat.torch import install

    if arguments[0] == "-m":
        install()
        _run_module(arguments[1:])
    else:
        code = _compiled(arguments[0])
        install()
        _run_script(arguments, code)


def _fresh_main() -> ModuleType:
    """Returns a new __main__, which stays after the end of the script, for its threads and atexit functions."""
    fresh = ModuleType("__main__")
    sys.modules["__main__"] = fresh
    return fresh


def _compiled(path: str) -> Any:
    path = os.path.abspath(path)
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        raise SystemExit(2) from None
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        _raise_as_of_script()


def _run_script(arguments: list[str], code: Any) -> None:
    sys.argv = list(arguments)
    sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
    fresh = _fresh_main()
    fresh.__file__ = os.path.abspath(arguments[0])
    fresh.__dict__.update(__builtins__=__builtins__, __cached__=None)
    try:
        exec(code, fresh.__dict__)
    except SystemExit:
        raise
    except BaseException:
        _raise_as_of_script()


def _run_module(arguments: list[str]) -> None:
    import runpy

    sys.path[0] = os.getcwd()
    fresh = _fresh_main()
    fresh.__dict__.update(__builtins__=__builtins__)
    sys.argv = list(arguments)
    try:
        runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined]
    except SystemExit:
        raise
    except BaseException:
        _raise_as_of_script()


def _raise_as_of_script() -> NoReturn:
    """Raises the current error again; the traceback that Python prints begins with the script, whatever hook the script has set."""
    error, hook = sys.exc_info()[1], sys.excepthook
    assert error is not None
    own = _of_script(error.__traceback__)

    def without_us(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        if value is error:
            value.__traceback__ = trace = own
        hook(kind, value, trace)

    sys.excepthook = without_us
    raise error


def _of_script(trace: TracebackType | None) -> TracebackType | None:
    """Returns the traceback without the frames of this file at its beginning."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    main(sys.argv[1:])
