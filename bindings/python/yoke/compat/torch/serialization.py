"""torch.save and torch.load: PyTorch's files of tensors and containers. No code of a file is ever executed."""

from __future__ import annotations

import mmap as mmap_module
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from yoke import _yoke
from yoke._check import shown
from yoke._named import named
from yoke.compat.torch.files.new_file import file_error, new_file
from yoke.compat.torch.files.reader import Pickle, Tree
from yoke.compat.torch.files.tensors import Storages
from yoke.compat.torch.files.writer import write
from yoke.compat.torch.files.archive import Archive

__all__ = ["load", "save"]

_NEWEST = 10  # version of the format


@named
def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True) -> None:
    """Writes tensors and containers to a file for PyTorch, where weights_only=True loads the file.

        torch.save({"net": net.state_dict(), "epoch": 3}, "run.pt")

    `f` is a path or an object with write(). At any stop of the process the file at a path is whole: the former or the new file.
    Views of the same memory stay views of the same memory. TypeError has the place of a value without a form in such files:
    save the state_dict() of a module or an optimizer, and not the object. `pickle_protocol` has no effect for readers.
    """
    if pickle_module is not None or not _use_new_zipfile_serialization:
        name = "_use_new_zipfile_serialization" if pickle_module is None else "pickle_module"
        raise _yoke.ValueError(f"save(): argument '{name}' is given, but files have the zip format and a pickle of their own; leave the argument out")
    if isinstance(f, (str, os.PathLike)):
        with new_file(os.fspath(f)) as file:
            write(obj, file)
    elif hasattr(f, "write"):
        write(obj, f)
    else:
        raise _yoke.TypeError(f"save(): argument 'f' is {shown(f)}; it must be a path or a file that is open for writing bytes: torch.save(obj, f)")


@named
def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None) -> Any:
    """Reads a PyTorch file of tensors and containers.

        state = torch.load("run.pt", map_location="cpu")

    `f` is a path, or a file of bytes with seek(). A tensor goes to the saved device, or by `map_location`: a device, a dict from
    saved to wanted devices, or a function of memory and saved device. Tensors with common memory have common memory again.
    With mmap=True the tensors of a path are private pages of the file, read at the first access.

    With weights_only=False argparse.Namespace and defaultdict are allowed too. Any other value off the list of allowed values is a
    CheckpointError in both cases, because no code of a file is executed. The error has the value, and how to write the file anew. A storage alone becomes a tensor, and a
    missing device a string.
    """
    for name, value in (("weights_only", weights_only), ("mmap", mmap)):
        if value is not None and not isinstance(value, bool):
            raise _yoke.TypeError(f"load(): argument '{name}' is {shown(value)}; it takes a bool")
    if pickle_module is not None:
        raise _yoke.ValueError("load(): argument 'pickle_module' is given, but no pickle of Python reads the file; leave the argument out")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise _yoke.ValueError(f"load(): argument 'mmap' is True and argument 'f' is {shown(f)}; 'f' must be a path, because only the file of a path can be mapped")
    with _opened(f) as file:
        return _read(file, map_location, _mapped(file) if mmap else None, _damaged_by(f), weights_only is not False)


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "read") or not hasattr(f, "seek") or isinstance(f, (bytes, bytearray)):
            raise _yoke.TypeError(f"load(): argument 'f' is {shown(f)}; it must be a path or a file of bytes with read() and seek(), such as io.BytesIO(data)")
        yield f
        return
    try:
        file = open(f, "rb")
    except OSError as error:
        raise file_error("load", "read", f, error) from None
    with file:
        yield file


def _damaged_by(f: Any) -> Callable[[str], Exception]:
    """Returns the maker of errors about the file. Names in the file may be long, and have characters without a form in UTF-8."""
    where = f"'{os.fspath(f)}'" if isinstance(f, (str, os.PathLike)) else f"a {type(f).__name__}"
    return lambda rule: _yoke.CheckpointError(f"load(): argument 'f', {where}: {rule[:1200].encode(errors='backslashreplace').decode()}")


def _mapped(file: Any) -> Any:
    """Returns private pages of the file. Without NumPy, which makes tensors over pages, returns None: then tensors are copies."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return None
    return mmap_module.mmap(file.fileno(), 0, access=mmap_module.ACCESS_COPY) if file.seek(0, 2) else None


def _read(file: Any, map_location: Any, mapped: Any, damaged: Callable[[str], Exception], weights_only: bool) -> Any:
    _check_form(file, damaged)
    archive = Archive(file, damaged)
    prefix = _prefix(archive, damaged)
    if f"{prefix}constants.pkl" in archive.entries:
        raise damaged("the file is a program of TorchScript, which has code; in PyTorch write torch.save(torch.jit.load(FILE).state_dict(), NEW)")
    order = _text(archive, f"{prefix}byteorder", "little")
    if order != "little":
        raise damaged(f"the file has the order of bytes {order!r}; load it in PyTorch on a little-endian machine, and save it there")
    version = _text(archive, f"{prefix}version", "3")
    if not version.isdecimal() or not 1 <= int(version) <= _NEWEST:
        raise damaged(f"the file has version {version!r} of the format; versions 1 to {_NEWEST} are known. Save it by an older PyTorch")
    storages = Storages(archive, prefix, map_location, mapped, damaged)
    value = Pickle(archive.read(archive.entries[f"{prefix}data.pkl"]), storages.load, damaged, weights_only).run()
    return Tree(damaged).value(value)


def _prefix(archive: Archive, damaged: Callable[[str], Exception]) -> str:
    """Returns the folder in the archive, with a slash."""
    found = [name[:-len("data.pkl")] for name in archive.entries if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(found) != 1:
        raise damaged("the zip archive has no data.pkl in a folder, as files of torch.save have; it is another zip archive")
    return found[0]


def _text(archive: Archive, name: str, default: str) -> str:
    entry = archive.entries.get(name)
    return default if entry is None or entry.size > 64 else archive.read(entry).decode("ascii", "replace").strip()


_ANEW = "in PyTorch write torch.save(torch.load(FILE, map_location='cpu', weights_only=True), NEW)"
_OTHERS = ((0, b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19", f"the file has the form from before PyTorch 1.6, a pickle without an archive; {_ANEW}"),
           (257, b"ustar", f"the file is a tar archive, the first form of PyTorch's files; {_ANEW}"),
           (0, b"\x80", "the file is a pickle of Python, and not a file of torch.save; load it with the program that wrote it, and save its tensors by torch.save"))


def _check_form(file: Any, damaged: Callable[[str], Exception]) -> None:
    """Raises for a file of another form, by the first bytes."""
    file.seek(0)
    first = file.read(300)
    if not isinstance(first, bytes):
        raise _yoke.TypeError(f"load(): argument 'f' is a file of {type(first).__name__}; it must be a file of bytes: open the file with mode 'rb'")
    if not first.startswith(b"PK\3\4"):
        for place, magic, told in _OTHERS:
            if first[place:].startswith(magic):
                raise damaged(told)
        raise damaged("the file is empty" if not first else "the file is not of torch.save: it is no zip archive; yoke.load(FILE) reads safetensors, and names other formats")
