"""torch.utils.data.distributed, over yoke.data."""

from __future__ import annotations

from typing import Any

from yoke import data


class DistributedSampler(data.DistributedSampler):
    """Indices of a data set for a rank in an epoch."""

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None and rank is None:
            super().__init__(len(dataset), shuffle=shuffle, seed=seed, drop_last=drop_last)
        else:
            super().__init__(len(dataset), rank=rank, world_size=num_replicas, shuffle=shuffle, seed=seed, drop_last=drop_last)
        self.dataset = dataset
