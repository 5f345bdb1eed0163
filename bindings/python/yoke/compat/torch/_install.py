"""What install() does: rules, modules, and what child processes inherit."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

from yoke import _yoke
from yoke.compat.torch import _modules

# Folder whose package `torch` installs Yoke's. Each child process finds the folder by its search path.
PATH = str(Path(__file__).with_name("path"))


def install() -> ModuleType:
    """Implements yoke.compat.torch.install()."""
    present = sys.modules.get("torch")
    if isinstance(present, _modules.Names):
        return present
    where = getattr(present, "__file__", None)
    if present is not None and not str(where).startswith(PATH):
        raise _yoke.StateError(f"install(): PyTorch is loaded already, from {where}; call yoke.compat.torch.install() before the first `import torch`, or run `python -m yoke.compat.torch script.py`")
    from yoke.compat.torch import _rules

    _rules.apply()
    sys.meta_path.insert(0, _modules.Finder())
    module = _modules.make("torch")
    sys.modules["torch"] = module
    _inherit()
    return module


def _inherit() -> None:
    """Puts PATH in front of the search path of this process and its children; multiprocessing gives children the path of the parent."""
    before = os.environ.get("PYTHONPATH", "")
    if PATH not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = PATH + (os.pathsep + before if before else "")
    if PATH not in sys.path:
        sys.path.insert(1, PATH)
