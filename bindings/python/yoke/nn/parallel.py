"""PyTorch's place of DistributedDataParallel."""

from yoke._parallel import DistributedDataParallel
from yoke._unknown import teller

__all__ = ["DistributedDataParallel"]
__getattr__ = teller(__name__)
