"""Other libraries' words over Yoke: yoke.compat.torch runs scripts that were written for PyTorch."""
