"""Files with a whole content at any time, and errors of files."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from yoke import _yoke

_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS)  # errors of file systems without sync


class MissingFileError(_yoke.IOError, FileNotFoundError):
    """Error of a missing file or folder; scripts for PyTorch catch Python's FileNotFoundError."""


def file_error(call: str, what: str, path: Any, error: OSError) -> Exception:
    """Returns the error of a call for the refusal of the system."""
    kind = MissingFileError if isinstance(error, FileNotFoundError) else _yoke.IOError
    folder = os.path.dirname(os.path.abspath(path))
    more = "" if os.path.isdir(folder) else f": there is no folder {folder!r}"
    told = kind(f"{call}(): cannot {what} '{os.fsdecode(path)}': {error.strerror or error}{more}")
    told.errno = error.errno
    return told


@contextmanager
def new_file(path: Any) -> Iterator[Any]:
    """Opens a new file, which replaces the path's file at the end of a block without an error. A pipe or a device is written directly."""
    try:
        target = os.path.realpath(path)
        mode = os.stat(target).st_mode if os.path.exists(target) else None
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb") as file:
                yield file
            return
        with _replacement(target, mode) as file:
            yield file
    except _yoke.Error:
        raise
    except OSError as error:
        raise file_error("save", "write", path, error) from None


@contextmanager
def _replacement(target: Any, mode: int | None) -> Iterator[Any]:
    folder, name = os.path.split(os.fsdecode(target))
    # yoke.save() removes files of such names after the death of the writer.
    beside = os.path.join(folder, f".{name.encode()[:200].decode(errors='ignore')}.yoke-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    file = open(beside, "xb")
    try:
        with file:
            if mode is not None:
                with suppress(OSError):
                    os.chmod(beside, stat.S_IMODE(mode))
            yield file
            file.flush()
            _sync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(folder)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)
