"""Output of the library's log in Python: important lines are warnings; other lines go to standard error, or to `logging` if the script has set it up."""

from __future__ import annotations

import os
import sys
import warnings

ERROR, WARN, INFO, DEBUG = range(4)  # the numbers of the C API


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _stacklevel() -> int:
    """Returns the level, for warnings.warn in emit, of the first frame outside this package."""
    level, frame = 2, sys._getframe(1).f_back  # no frame above in a call from a C thread
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def emit(level: int, message: str) -> None:
    """Emits a line of the log; called by the binding at a point where Python code may run."""
    if level <= WARN:
        try:
            warnings.warn(message, RuntimeWarning, stacklevel=_stacklevel())
        except ValueError:  # from a closed standard error; a filter that makes errors of warnings raises the warning itself
            pass
        return
    logging = sys.modules.get("logging")  # not imported here: an import costs more than all of Yoke's own
    if logging is not None and logging.getLogger("yoke").hasHandlers():
        logging.getLogger("yoke").log(logging.INFO if level == INFO else logging.DEBUG, message)
    elif sys.stderr is not None:  # absent in a program without a console
        try:
            print(f"yoke: {message}", file=sys.stderr, flush=True)
        except (OSError, ValueError):  # closed, or without a reader: no op fails for a line of the log
            pass
