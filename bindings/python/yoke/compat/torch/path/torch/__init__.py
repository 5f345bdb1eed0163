"""What `import torch` finds first in a process that inherits PyTorch's words from its parent: Yoke takes this module's place."""

if __name__ == "torch":  # a tool may import this file under its full name
    from yoke.compat.torch import install

    install()
