"""What `import torch` finds first in a process that inherits PyTorch's words from its parent: Yoke takes this module's place."""

from yoke.compat.torch import install

install()
