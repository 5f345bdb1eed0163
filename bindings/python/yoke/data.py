"""Readers of data files, and the choice of examples for each rank."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from yoke import _yoke
from yoke._check import listed, number, shown, whole
from yoke._named import Named, named
from yoke._yoke import Device, Tensor
from yoke.comm import Group

__all__ = ["DistributedSampler", "read_idx"]


@named
def read_idx(path: str | os.PathLike[str], device: Device | str | int | None = "cpu") -> Tensor:
    """Returns a tensor with the shape and dtype of an IDX file (the format of MNIST), plain or gzip-compressed.

    IOError for a file that is missing, truncated or damaged; UnsupportedError for an element type that Yoke
    does not support. Both name the path.
    """
    tensor = _yoke._read_idx(path)
    return tensor if device == "cpu" else tensor.to(device)


class DistributedSampler(Named):
    """Indices of a data set of `n` examples for a rank in an epoch; an iteration is a pass.

        for epoch in range(10):
            sampler.set_epoch(epoch)
            for index in sampler: …

    rank, world_size: the default group's, if there is a default group, else a single rank's. shuffle: each epoch has a different
    order, decided by `seed`, the same on all ranks. For equal numbers on all ranks the order continues with its beginning, or
    with drop_last its rest is left out; pad=False gives each example to exactly one rank, for an evaluation. shares: each rank's
    share, with the sum 1; in each step of all ranks a rank takes its part of the order. ValueError, with the argument and both
    values.
    """

    def __init__(self, n: int, *, rank: int | None = None, world_size: int | None = None, shuffle: bool = True, seed: int = 0,
                 drop_last: bool = False, pad: bool = True, shares: Sequence[float] | None = None) -> None:
        if (rank is None) != (world_size is None):
            raise _yoke.ValueError(f"DistributedSampler(): argument 'rank' is {shown(rank)} and 'world_size' is {shown(world_size)}; give both, or neither")
        if rank is None or world_size is None:
            rank, world_size = _own_rank()
        for name, given in (("n", n), ("rank", rank), ("world_size", world_size), ("seed", seed)):
            if not isinstance(given, int) or isinstance(given, bool):
                raise _yoke.TypeError(f"DistributedSampler(): argument '{name}' is {shown(given)}; it must be a whole number")
            whole("DistributedSampler", name, given)
        if not (0 <= rank < world_size < 2**31):
            raise _yoke.ValueError(f"DistributedSampler(): argument 'rank' is {rank} and 'world_size' is {world_size}; 'world_size' must be 1 or more, and 'rank' 0 to world_size - 1")
        if shares is not None:
            shares = [float(number("DistributedSampler", "shares", each)) for each in listed("DistributedSampler", "shares", shares, "numbers")]
            if len(shares) != world_size:
                raise _yoke.ValueError(f"DistributedSampler(): argument 'shares' has {len(shares)} numbers for {world_size} ranks; give one number for each rank")
        self._pass: object = None  # pass described by the state
        self._core = _yoke._Sampler(n, rank, world_size, bool(shuffle), seed, bool(drop_last), bool(pad), shares)

    def __len__(self) -> int:
        """Returns the number of examples of a pass that begins now."""
        return self._core.length()

    def __iter__(self) -> Iterator[int]:
        """Begins a pass, described by the state. StateError if a pass goes on after another was begun, or after the state was set."""
        self._core.begin()
        own = self._pass = object()
        index = self._core.next()
        while index >= 0:
            yield index
            if self._pass is not own:
                raise _yoke.StateError("DistributedSampler: another pass, state or epoch began before this pass ended; use one pass at a time, and another sampler to inspect the order")
            index = self._core.next()

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass."""
        before = self._core.state()[0]
        self._core.set_epoch(whole("set_epoch", "epoch", epoch, 0))
        if epoch != before:
            self._pass = None

    def state_dict(self) -> dict[str, int]:
        """Returns {"epoch", "consumed"}: the progress of all ranks together, if each rank has made as many steps as this rank."""
        epoch, consumed = self._core.state()
        return {"epoch": epoch, "consumed": consumed}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Sets the progress from which the next pass continues, on any number of ranks, without loss or repeat."""
        try:
            epoch, consumed = state_dict["epoch"], state_dict["consumed"]
        except (KeyError, TypeError):
            raise _yoke.ValueError(f"load_state_dict(): argument 'state_dict' is {shown(state_dict)}; it must have 'epoch' and 'consumed'") from None
        self._core.load(whole("load_state_dict", "epoch", epoch), whole("load_state_dict", "consumed", consumed))
        self._pass = None

    def regroup(self, group: Group) -> None:
        """Distributes the rest of the furthest rank's epoch among the ranks of `group`, from the next pass on; all its ranks call it."""
        if not isinstance(group, Group):
            raise _yoke.TypeError(f"regroup(): argument 'group' is {shown(group)}; it must be a yoke.comm.Group")
        group._core.regroup_sampler(self._core)
        self._pass = None


def _own_rank() -> tuple[int, int]:
    try:
        group = _yoke._comm_group()
    except _yoke.StateError:
        return 0, 1
    return group.rank(), group.size()
