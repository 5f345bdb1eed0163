"""torch.distributed, over yoke.comm."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import yoke
from yoke import _yoke, comm
from yoke._yoke import Tensor
from yoke.comm import Group as ProcessGroup

default_pg_timeout = timedelta(seconds=600)


class ReduceOp:
    """Reductions of ranks."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "prod", "min", "max"


class Backend(str):
    """Name of a backend."""

    GLOO, NCCL, MPI, UNDEFINED = "gloo", "nccl", "mpi", "undefined"


class GroupMember:
    """WORLD: the group of all ranks. NON_GROUP_MEMBER: a group without this rank."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = None


class _World:
    """torch.distributed.group: WORLD is the group of all ranks."""

    @property
    def WORLD(self) -> ProcessGroup | None:
        """Returns the default group."""
        return GroupMember.WORLD


group = _World()
_backend: list[str] = ["undefined"]
_ranks: dict[int, list[int]] = {}  # ranks of each group of new_group(), by the id of the group
_kept: list[Any] = []


def is_available() -> bool:
    """Returns True."""
    return True


def is_initialized() -> bool:
    """Returns whether init_process_group() has made the default group."""
    return GroupMember.WORLD is not None


def is_nccl_available() -> bool:
    """Returns whether NCCL may serve: there is a CUDA device."""
    return yoke.cuda.is_available()


def is_gloo_available() -> bool:
    """Returns True: the engine on the CPU does what Gloo does."""
    return True


def is_mpi_available() -> bool:
    """Returns False; yoke.comm.init("mpi") tells why MPI cannot be used."""
    return False


def is_torchelastic_launched() -> bool:
    """Returns whether a launcher has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ or "RANK" in os.environ


def _seconds(timeout: Any) -> float:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1, rank: int = -1, store: Any = None,
                       group_name: str = "", pg_options: Any = None, device_id: Any = None) -> None:
    """Makes the default group of all ranks."""
    if is_initialized():
        raise _yoke.ValueError("init_process_group(): the default process group is initialized already; call destroy_process_group() first")
    if pg_options is not None:
        raise _yoke.UnsupportedError("init_process_group(): argument 'pg_options' is not there; leave it out")
    name = (backend or "gloo").rpartition(":")[2].lower()
    engine = {"gloo": "cpu", "nccl": None, "mpi": "mpi"}.get(name, name)
    seconds = 600.0 if timeout is None else _seconds(timeout)
    own = {"rank": rank if rank >= 0 else None, "world_size": world_size if world_size >= 0 else None}
    if (init_method or "env://") == "env://" and store is None:
        for key, value in (("RANK", rank), ("WORLD_SIZE", world_size)):  # as in PyTorch, arguments come before the environment
            if value >= 0:
                os.environ[key] = str(value)
        own = {"rank": None, "world_size": None}
    GroupMember.WORLD = comm.init(engine, init_method or "env://", timeout=seconds, init_timeout=max(seconds, 1.0), store=store, **own)  # type: ignore[arg-type]
    _backend[0] = backend or "gloo"


def destroy_process_group(group: Any = None) -> None:
    """Releases a group; None is the default group."""
    if group is None or group is GroupMember.WORLD:
        GroupMember.WORLD = None
        _ranks.clear()
        _kept.clear()
        comm.finalize()


def _of(group: Any) -> ProcessGroup:
    if group is not None:
        return group  # type: ignore[no-any-return]
    if GroupMember.WORLD is None:
        raise _yoke.ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return GroupMember.WORLD


def get_rank(group: Any = None) -> int:
    """Returns the number of this rank."""
    return _of(group).rank


def get_world_size(group: Any = None) -> int:
    """Returns the number of ranks."""
    return _of(group).size


def get_backend(group: Any = None) -> str:
    """Returns the name given to init_process_group()."""
    _of(group)
    return _backend[0]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank(): argument 'fallback_rank' is missing, and LOCAL_RANK is not set; give fallback_rank")
    return fallback_rank


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Returns the ranks of a group, by their numbers in the default group."""
    return list(_ranks.get(id(group)) or range(_of(group).size))


def get_group_rank(group: Any, global_rank: int) -> int:
    """Returns the number in a group of a rank of the default group."""
    return get_process_group_ranks(group).index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Returns the number in the default group of a rank of a group."""
    return get_process_group_ranks(group)[group_rank]


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, use_local_synchronization: bool = False,
              group_desc: Any = None, device_id: Any = None) -> Any:
    """Makes a group of some ranks; all ranks of the default group call it."""
    world = _of(None)
    listed = list(range(world.size)) if ranks is None else sorted(ranks)
    made = world.split(0 if world.rank in listed else None, world.rank)
    if made is None:
        return GroupMember.NON_GROUP_MEMBER
    _ranks[id(made)] = listed
    _kept.append(made)  # so that the id stays its own
    return made


def _root(call: str, group: Any, given: int | None, group_given: int | None, name: str) -> int:
    if given is None and group_given is None:
        raise _yoke.TypeError(f"{call}(): argument '{name}' is missing; give the number of a rank")
    return group_given if given is None else get_group_rank(group, given) if id(group) in _ranks else given  # type: ignore[return-value]


# ---- Collectives -----------------------------------------------------------------------------------------------------


class _Later:
    """Work of a call whose results are copied when it is waited for."""

    def __init__(self, work: Any, copy: Callable[[], object] | None = None) -> None:
        self._work, self._copy = work, copy

    def wait(self, timeout: Any = None) -> bool:
        """Waits until the tensors are written."""
        self._work.wait(None if timeout is None else _seconds(timeout))
        if self._copy is not None:
            self._copy()
            self._copy = None
        return True

    def is_completed(self) -> bool:
        """Returns whether the tensors are written."""
        return bool(self._work.done())


def _done(work: Any, copy: Callable[[], object] | None = None) -> Any:
    if work is not None:
        return _Later(work, copy)
    if copy is not None:
        copy()
    return None


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Reduces a tensor over all ranks."""
    return _done(_of(group).all_reduce(tensor.detach(), op, async_op))


def reduce(tensor: Tensor, dst: int | None = None, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: int | None = None) -> Any:
    """Reduces a tensor over all ranks, to rank dst."""
    return _done(_of(group).reduce(tensor.detach(), _root("reduce", group, dst, group_dst, "dst"), op, async_op))


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None) -> Any:
    """Copies the tensor of rank src to all ranks."""
    return _done(_of(group).broadcast(tensor.detach(), _root("broadcast", group, src, group_src, "src"), async_op))


def _joined(like: Tensor, count: int) -> Tensor:
    return yoke.empty((count, *like.shape), dtype=like.dtype, device=like.device)


def _spread(parts: Any, whole: Tensor) -> Callable[[], object]:
    def copy() -> None:
        with yoke.no_grad():
            for part, each in zip(parts, whole):
                part.detach().copy_(each)

    return copy


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """Fills a list with the tensors of all ranks."""
    held = _of(group)
    whole = _joined(tensor, held.size)
    return _done(held.all_gather(whole, tensor.detach(), async_op), _spread(tensor_list, whole))


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """Fills a tensor with the tensors of all ranks."""
    return _done(_of(group).all_gather(output_tensor.detach(), input_tensor.detach(), async_op))


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None, async_op: bool = False,
           group_dst: int | None = None) -> Any:
    """Fills the list of rank dst with the tensors of all ranks."""
    held, root = _of(group), _root("gather", group, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    if held.rank != root:
        return _done(held.gather(None, tensor.detach(), root, async_op))
    whole = _joined(tensor, held.size)
    return _done(held.gather(whole, tensor.detach(), root, async_op), _spread(gather_list or [], whole))


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None, async_op: bool = False,
            group_src: int | None = None) -> Any:
    """Fills a tensor with this rank's part of the list of rank src."""
    held, root = _of(group), _root("scatter", group, 0 if src is None and group_src is None else src, group_src, "src")
    whole = yoke.stack([each.detach() for each in scatter_list or []]) if held.rank == root else None
    return _done(held.scatter(tensor.detach(), whole, root, async_op))


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Reduces lists over all ranks, and fills a tensor with this rank's part."""
    return _done(_of(group).reduce_scatter(output.detach(), yoke.stack([each.detach() for each in input_list]), op, async_op))


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Reduces a tensor over all ranks, and fills another with this rank's part."""
    return _done(_of(group).reduce_scatter(output.detach(), input.detach(), op, async_op))


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False) -> Any:
    """Exchanges parts between all ranks; all parts have the same shape."""
    whole = _joined(output_tensor_list[0], len(output_tensor_list))
    return _done(_of(group).all_to_all(whole, yoke.stack([each.detach() for each in input_tensor_list]), async_op), _spread(output_tensor_list, whole))


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None,
                      async_op: bool = False) -> Any:
    """Exchanges equal parts between all ranks."""
    if output_split_sizes or input_split_sizes:
        raise _yoke.UnsupportedError("all_to_all_single(): argument 'output_split_sizes' or 'input_split_sizes' is given; leave both out, and send equal parts")
    return _done(_of(group).all_to_all(output.detach(), input.detach(), async_op))


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Waits for all ranks."""
    return _done(_of(group).barrier(async_op))


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits for all ranks, and names the missing ranks."""
    _of(group).monitored_barrier(600.0 if timeout is None else _seconds(timeout))


def _need_no_tag(call: str, tag: int) -> None:
    if tag:
        raise _yoke.UnsupportedError(f"{call}(): argument 'tag' is {tag}; leave it out: messages between two ranks arrive in their order")


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends a tensor to rank dst."""
    _need_no_tag("send", tag)
    _of(group).send(tensor.detach(), _root("send", group, dst, group_dst, "dst"))


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receives a tensor from rank src."""
    _need_no_tag("recv", tag)
    _of(group).recv(tensor.detach(), _root("recv", group, src, group_src, "src"))
    return int(src if src is not None else group_src or 0)


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Any:
    """Sends a tensor to rank dst, and returns at once."""
    _need_no_tag("isend", tag)
    return _done(_of(group).send(tensor.detach(), _root("isend", group, dst, group_dst, "dst"), True))


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Any:
    """Receives a tensor from rank src, and returns at once."""
    _need_no_tag("irecv", tag)
    return _done(_of(group).recv(tensor.detach(), _root("irecv", group, src, group_src, "src"), True))


class P2POp:
    """Send or receive of batch_isend_irecv()."""

    def __init__(self, op: Any, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0, group_peer: int | None = None) -> None:
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Issues sends and receives together, so that none waits for another."""
    with comm.coalesce():
        return [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]


# ---- Objects ---------------------------------------------------------------------------------------------------------


def _packed(value: Any) -> Tensor:
    return yoke.tensor(list(pickle.dumps(value)), dtype=yoke.uint8)


def _unpacked(data: Tensor, length: int) -> Any:
    return pickle.loads(bytes(data[:length].tolist()))


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fills a list with the objects of all ranks, by pickle: the ranks trust each other."""
    held, data = _of(group), _packed(obj)
    lengths = yoke.zeros((held.size,), dtype=yoke.int64)
    held.all_gather(lengths, yoke.tensor([len(data)]))
    sizes = lengths.tolist()
    whole = yoke.zeros((held.size, max(sizes)), dtype=yoke.uint8)
    held.all_gather(whole, yoke.pad(data, [0, max(sizes) - len(data)]))
    object_list[:] = [_unpacked(row, length) for row, length in zip(whole, sizes)]


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None, group_dst: int | None = None) -> None:
    """Fills the list of rank dst with the objects of all ranks."""
    found: list[Any] = []
    all_gather_object(found, obj, group)
    if _of(group).rank == _root("gather_object", group, 0 if dst is None and group_dst is None else dst, group_dst, "dst") and object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None) -> None:
    """Copies the objects of rank src to all ranks, by pickle: the ranks trust each other."""
    held, root = _of(group), _root("broadcast_object_list", group, 0 if src is None and group_src is None else src, group_src, "src")
    data = _packed(object_list) if held.rank == root else yoke.zeros(0, dtype=yoke.uint8)
    length = yoke.tensor([len(data)])
    held.broadcast(length, root)
    if held.rank != root:
        data = yoke.zeros((int(length.item()),), dtype=yoke.uint8)
    held.broadcast(data, root)
    object_list[:] = _unpacked(data, len(data))


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None, group: Any = None,
                        group_src: int | None = None) -> None:
    """Gives each rank its object of the list of rank src."""
    values = [scatter_object_input_list]
    broadcast_object_list(values, src, group, group_src=group_src)
    scatter_object_output_list[0] = values[0][_of(group).rank]  # type: ignore[index]
