"""States in files: safetensors, whole at any stop of the machine, and readable by all tools."""

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


# Waits before the interpreter ends, because it may own memory of a running save; then the library waits too, and logs
# a failure.
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
def save(path: str | os.PathLike[str] | Any, state: Any, metadata: dict[str, str] | None = None,
         blocking: bool = True, max_shard: int | str | None = None) -> Work:
    """Writes a state to a safetensors file.

        yoke.save("run.safetensors", {"net": net, "optimizer": optimizer, "epoch": 3})

    Path and state may stand in PyTorch's order too: if only `state` is a path, it is the path. Of two strings the first is the path.

    A state consists of None, bools, ints, floats, strings, tensors, lists, tuples, dicts with strings or ints as keys, and
    objects, represented by their state_dict(). load() returns an equal state: 3 stays an int, a tuple a tuple, and a tensor at
    two places a single object. A dict of tensors gives the same file as other writers. For any other state the plain values are
    kept in the file's metadata, and a tensor's name is its path, "net.0.weight".

    At any stop of the process or the machine the file at `path` is whole: the former or the new file; after the return it is the
    new file. `metadata` are strings to keep beside the state.

    blocking=False returns at once, and a thread of the library writes the state of the call, whatever Yoke changes later; NumPy
    views of its memory must be left alone until the work is done. wait() of the work raises the error of the save. Without a
    wait, the next such save raises the error, and a blocking save logs it. The next save and the end of the process wait for this
    save. There must be memory for copies of the tensors; else the call blocks, and a warning says so.

    With max_shard, such as "5GiB" or 5_000_000_000 bytes, a state with more bytes of tensors is a set of files, as in
    HuggingFace's libraries. The set of "model.safetensors" is an index, "model.safetensors.index.json", and files beside it,
    "model-0123abcd-00001-of-00002.safetensors" and so on, with names that no other set has. A tensor larger than max_shard has
    its own file. The index comes last, in one step; then the former file or set is removed. load() takes the same `path` in both
    cases.

    ValueError and TypeError name the place in the state of a value that cannot be saved; StateError while a graph is captured;
    IOError has the path and the system's error. Calls that a file system does not support are no error: a warning has the missing
    guarantee.
    """
    if isinstance(state, (str, os.PathLike)) and not isinstance(path, (str, bytes, os.PathLike)):
        path, state = state, path
    return kept_to_exit(_yoke._save(path, state, metadata, blocking, max_shard))


@named
def load(path: str | os.PathLike[str], device: Device | str | int | None = None, mmap: bool = True,
         dtype: dtype_ | None = None, names: str | Callable[[str], Any] | None = None, *,
         map_location: Device | str | int | None = None, weights_only: bool = True) -> Any:
    """Loads the state in a safetensors file or a set of files, from any writer.

    `path` is a file; the index of a set, *.index.json, which loads as a single file of all its tensors; a file replaced by a set;
    or a folder with one of these. Content decides, not the name.

    On the CPU, if no other `device` is given, tensors are pages of the file: read at the first access, private to this process
    after a write; meanwhile the file may be saved anew. With mmap=False, or on another device, tensors are copies. `dtype` casts
    floating tensors. `names`, a prefix or a function of a name, selects tensors; they come as a dict by their names in the file.
    `map_location` is PyTorch's name of `device`; `weights_only` changes nothing, because no code of a file ever runs.

    Raises CheckpointError for a file that breaks a rule of the format, and for a tensor with a dtype unknown to Yoke. Raises it
    too for a set with a missing file or with an index that leads out of its folder, and for a folder with no state or several.
    Its native_code is errno.EINVAL if the path has no state at all, or no single state, and 0 if the state is damaged. A file of PyTorch, NumPy,
    HDF5 or another known format is named as such, with its conversion. IOError has the path and the system's error.
    """
    if not isinstance(weights_only, bool):
        raise _yoke.TypeError(f"load(): argument 'weights_only' is a {type(weights_only).__name__}; it takes a bool")
    if map_location is not None and device is not None:
        raise _yoke.TypeError("load(): arguments 'device' and 'map_location' are the same argument; give one of the two")
    if callable(map_location) or isinstance(map_location, dict):
        raise _yoke.TypeError(f"load(): argument 'map_location' is a {type(map_location).__name__}; give the one device that all tensors go to")
    return _yoke._load(path, device if map_location is None else map_location, mmap, dtype, names)


@named
def load_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describes a safetensors file or a set of files, without the data.

    Returns a dict of "path" (of the file or the index), "kind" ("file" or "set"), "bytes", "header_bytes", "files" (the bytes of each by
    its name), "has_tree" (whether save() kept a tree in it), "metadata" (strings) and "tensors". "tensors" has for each name a
    dict of "dtype" (a name, the format's own if Yoke has none), "shape", "bytes", "offset" in the file, and for a set "file".
    `path` and errors are those of load().
    """
    return _yoke._load_info(path)
