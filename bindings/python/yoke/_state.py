"""States in files: safetensors, which are whole whenever the machine stops, and which all tools read."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable
from typing import Any

from yoke import _yoke
from yoke._named import named
from yoke._yoke import Device, Work, dtype as dtype_


_begun: Work | None = None  # the last save that did not block


# Before the interpreter goes, which may own memory that is being saved; then the library waits too, and logs a failure.
def _wait_at_exit() -> None:
    while _begun and not _begun.done():
        time.sleep(0.01)


def kept_to_exit(work: Work) -> Work:
    global _begun
    if not work.done():
        if _begun is None:
            atexit.register(_wait_at_exit)
        _begun = work
    return work


@named
def save(path: str | os.PathLike[str], state: Any, metadata: dict[str, str] | None = None,
         blocking: bool = True, max_shard: int | str | None = None) -> Work:
    """Writes a state to a safetensors file.

        yoke.save("run.safetensors", {"net": net, "optimizer": optimizer, "epoch": 3})

    A state is made of None, bools, ints, floats, strings, tensors, lists, tuples, dicts with strings or ints as keys,
    and objects, which stand for their state_dict(). load() gives it back as it was: 3 stays an int, a tuple a tuple,
    and a tensor in two places is one. A dict of tensors is a file as any other writer's; of anything else the plain
    values are kept in the file's metadata, and a tensor's name is its path, "net.0.weight".

    The file at `path` is the former or the new one, whole, whenever the process or the machine stops, and once this
    has returned, the new one. `metadata` are strings to keep beside the state.

    blocking=False returns at once, and a thread of the library writes the state as it was at the call, whatever Yoke
    changes from then on; NumPy views of its memory must be left alone until the work is done. wait() of the work raises
    what it failed with; where nobody waits, the next such save does, and one that blocks logs it. That save waits for this one, and so does the end of
    the process. Beside the tensors there must be room for their copies; else it blocks, and a warning says so.

    With max_shard, such as "5GiB" or 5_000_000_000 bytes, a state with more bytes of tensors is a set of files, as
    HuggingFace's libraries have it: for "model.safetensors" an index, "model.safetensors.index.json", and beside it
    "model-0123abcd-00001-of-00002.safetensors" and so on, under names that no other set has. A larger tensor has a file
    of its own. The index comes last, in one step; then the file or set that was there before goes. load() takes the same
    `path`, whichever it has become.

    ValueError and TypeError name the place in the state of what cannot be saved; StateError while a graph is
    captured; IOError has the path and what the system says. Calls that a file system lacks are none: one warning says
    what is not promised there.
    """
    if isinstance(state, (str, os.PathLike)) and not isinstance(path, (str, bytes, os.PathLike)):
        raise _yoke.TypeError(f"save(): argument 'path' is a {type(path).__name__} and 'state' a path; the path comes first: save(path, state)")
    return kept_to_exit(_yoke._save(path, state, metadata, blocking, max_shard))


@named
def load(path: str | os.PathLike[str], device: Device | str | int | None = None, mmap: bool = True,
         dtype: dtype_ | None = None, names: str | Callable[[str], Any] | None = None) -> Any:
    """The state in a safetensors file or a set of them, whoever wrote it.

    `path` is a file; or the index of a set, *.index.json, which loads as one file of all its tensors would; or a file
    in the place of which a set stands; or a folder with one of these. Content says which, not the name.

    On the CPU, where no other `device` is given, tensors are pages of the file: read when they are touched, private to
    this process once they are written; the file may be saved anew meanwhile. mmap=False, and any other device, makes
    copies. `dtype` casts what floats. `names`, a prefix or a function of a name, says which tensors to load; they come
    as a dict by their names in the file.

    CheckpointError for a file that breaks a rule of the format, for a tensor of a dtype that Yoke has not, for a set
    that lacks a file or whose index leads out of its folder, and for a folder with no state or several; its native_code
    is errno.EINVAL for what is no state at all, or no single one, and 0 for one that is damaged. A file of PyTorch,
    NumPy, HDF5 or another known format is named as that, with what makes a state of it. IOError has the path
    and what the system says.
    """
    return _yoke._load(path, device, mmap, dtype, names)


@named
def load_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a safetensors file or a set of them holds, without the data.

    A dict of "path" (of the file or the index), "kind" ("file" or "set"), "bytes", "header_bytes", "files" (the bytes of
    each by its name), "has_tree" (whether save() kept a tree in it), "metadata" (strings) and "tensors": for each name a
    dict of "dtype" (a name, the format's own where Yoke has none), "shape", "bytes", "offset" in the file, and of a set
    "file". `path` and errors are those of load().
    """
    return _yoke._load_info(path)
