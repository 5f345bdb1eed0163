"""PyTorch's words and rules over Yoke: a script that was written for PyTorch runs unchanged.

    python -m yoke.compat.torch script.py ARG…       # or -m MODULE ARG…

    import yoke.compat.torch
    yoke.compat.torch.install()                      # before the first `import torch`
    import torch                                     # Yoke, under PyTorch's names

install() changes the process as a whole: `import torch` finds Yoke, and PyTorch's rules hold where Yoke's differ (docs/from-pytorch.md).
Processes that the script starts inherit both.
"""

from __future__ import annotations

from types import ModuleType

__all__ = ["__version__", "install"]

__version__ = "2.15.0+yoke"  # the version whose names and rules these are


def install() -> ModuleType:
    """Makes `import torch` find Yoke under PyTorch's names, here and in processes started from now on; returns that module.

    StateError if PyTorch itself is loaded already. A second call changes nothing.
    """
    from yoke.compat.torch import _install

    return _install.install()
