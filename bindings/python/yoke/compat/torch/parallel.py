"""torch.nn.parallel, with PyTorch's arguments, over Yoke's DistributedDataParallel."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke.compat.torch.options import refused
from yoke.nn.module import Module


class DistributedDataParallel(yoke.DistributedDataParallel):
    """Model on each rank of a group. Names of its state begin with "module.". Unused parameters are always found."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
                 init_sync: bool = True, process_group: Any = None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False, **others: Any) -> None:
        refused("DistributedDataParallel", dim=(dim, 0), broadcast_buffers=(broadcast_buffers, True), init_sync=(init_sync, True),
                **{name: (value, None) for name, value in others.items()})
        ids = None if not device_ids else [f"cuda:{each}" if isinstance(each, int) else str(each) for each in device_ids]
        super().__init__(module, process_group, 25 if bucket_cap_mb is None else bucket_cap_mb, device_ids=ids, output_device=ids[0] if ids else None)

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Returns the state of `module`, whose names begin with "module."."""
        return self.module.state_dict(*args, destination=destination, prefix=prefix + "module.", keep_vars=keep_vars)  # type: ignore[call-arg]

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads a state whose names begin with "module."."""
        plain = {name[7:] if name.startswith("module.") else name: value for name, value in state_dict.items()}
        return self.module.load_state_dict(plain, strict, assign)  # type: ignore[call-arg]


class DataParallel(Module):
    """Model on the present device: several cards need DistributedDataParallel, with a process for each."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        refused("DataParallel", dim=(dim, 0))
        if yoke.cuda.device_count() > 1 and (device_ids is None or len(device_ids) > 1):
            raise _yoke.UnsupportedError("DataParallel(): argument 'device_ids' has several cards; write DistributedDataParallel, with a process for each card")
        self.module = module

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        return self.module(*inputs, **keywords)
