"""PyTorch's place of DistributedDataParallel."""

from yoke._parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
