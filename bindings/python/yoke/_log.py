"""Where the library's log goes in Python: warnings for what matters, logging for the rest."""

from __future__ import annotations

import warnings

ERROR, WARN, INFO, DEBUG = range(4)  # the numbers of the C API


def emit(level: int, message: str) -> None:
    """One line of the log, called by the binding at a point where Python code may run."""
    if level <= WARN:
        # The frame above is that of the call that had something to say: C has none of its own.
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    import logging  # not before it is needed: an import costs more than all of Yoke's own

    logging.getLogger("yoke").log(logging.INFO if level == INFO else logging.DEBUG, message)
