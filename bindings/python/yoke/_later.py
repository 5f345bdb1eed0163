"""Names of the package that are read at their first use: a script that looks for devices does not load layers.

The imported modules of the standard library cost several times the load of the library itself.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock

_IN = {
    "_amp": ("autocast",),
    "_backends": ("backends", "get_float32_matmul_precision", "set_float32_matmul_precision"),
    "_checkpoint": ("BudgetReport", "MemoryBudget", "checkpoint", "checkpoint_scope", "checkpoint_sequential"),
    "_checkpoints": ("CheckpointManager",),
    "_devices": ("Explanation", "Lease", "Sample", "Verdict", "disabled", "explain", "select"),
    "_doctor": ("doctor", "doctor_record"),
    "_grad": ("enable_grad", "grad", "inference_mode", "no_grad", "saved_tensors", "set_grad_enabled"),
    "_graph": ("Graph",),
    "_inventory": ("catalog", "catalog_find", "inventory", "topology"),
    "_memory": ("on_out_of_memory",),
    "_parallel": ("DistributedDataParallel",),
    "_preempt": ("on_preempt",),
    "_random": ("Generator", "get_rng_state", "set_rng_state"),
    "_scaler": ("GradScaler",),
    "_spawn": ("spawn",),
    "_state": ("load", "load_info", "save"),
    "_stream": ("stream",),
    "_timer": ("Measurement", "Timer"),
    "_types": ("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
               "LongTensor", "as_tensor", "from_numpy", "is_tensor", "numel"),
    "amp": (),
    "autograd": (),
    "comm": (),
    "compat": (),
    "cuda": (),
    "data": (),
    "nn": (),
    "optim": ("clip_grad_norm_",),
    "utils": (),
}
MODULES = {name: f"yoke.{module}" for module, names in _IN.items() for name in names}
MODULES.update({name: f"yoke.{name}" for name in _IN if name[0] != "_"})

# PyTorch's names of dtypes.
DTYPES = {"double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64"}

# A fork waits until another thread has finished a read; else the child would find it half done for ever.
_reading = RLock()
os.register_at_fork(before=_reading.acquire, after_in_parent=_reading.release, after_in_child=_reading.release)


def load(name: str) -> object:
    """Returns the package's attribute of this name, from its first use on; AttributeError if there is no such name."""
    if name in DTYPES:
        return getattr(sys.modules["yoke"], DTYPES[name])
    if name not in MODULES:
        from yoke._unknown import unknown_name

        raise unknown_name(sys.modules["yoke"], name)
    with _reading:
        __import__(MODULES[name])
    module = sys.modules[MODULES[name]]
    value = module if module.__name__ == f"yoke.{name}" else getattr(module, name)
    setattr(sys.modules["yoke"], name, value)
    return value


def has(name: str) -> bool:
    """Returns whether the package has a public name, without a load."""
    return name in vars(sys.modules["yoke"]) or name in MODULES


def names() -> list[str]:
    """Returns the package's names for dir()."""
    return sorted({*vars(sys.modules["yoke"]), *MODULES, *DTYPES})


def public() -> list[str]:
    """Returns the names for `from yoke import *`, without the dtypes that have names of Python's types."""
    return [name for name in names() if name[0] != "_" and name not in DTYPES]
