"""Model on all ranks of a group: gradients are reduced while backward runs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from yoke import _carried, _outputs, _own_card, _yoke
from yoke._check import noun, shown
from yoke._named import named
from yoke._refused import asked, made
from yoke._yoke import Device, Tensor, Work, dtype
from yoke.comm import Group
from yoke.data import DistributedSampler
from yoke.nn.module import LoadResult, Module

__all__ = ["Bucket", "DistributedDataParallel"]

_NAME = "DistributedDataParallel"
_PREFIX = "module."
_REMEDIES = {  # for arguments of other libraries' scripts
    "find_unused_parameters": "leave it out, because parameters that a rank does not use are always found", "process_group": "use 'group' instead", "bucket_cap_mb": "use 'bucket_mb' instead"}


class Bucket(NamedTuple):
    """Gradients of several parameters, which a function given as `compression` makes the mean over the ranks."""

    tensor: Tensor
    """Gradients of the bucket, with one axis; the function writes the mean here."""
    index: int  # type: ignore[assignment]  # tuple.index gives way
    """Number of the bucket in this backward; all ranks reduce buckets in this order."""
    is_last: bool


Hook = Callable[[Bucket, Group], "Work | Tensor | None"]


def _hook(function: Hook, groups: list[Group]) -> Callable[[Tensor, int, bool], Work | None]:
    def run(tensor: Tensor, index: int, is_last: bool) -> Work | None:
        given = function(Bucket(tensor, index, is_last), groups[0])
        if given is None or isinstance(given, Work):
            return given
        if not isinstance(given, Tensor):
            raise _yoke.TypeError(f"the hook returned {noun(given)} for a bucket; it must return a tensor like the bucket's, a Work, or None")
        if given.shape != tensor.shape or given.dtype != tensor.dtype:
            raise _yoke.ValueError(f"the hook returned {given.dtype} {list(given.shape)} for a bucket of {tensor.dtype} {list(tensor.shape)}; it must return a tensor like the bucket's, a Work, or None")
        tensor.copy_(given)
        return None
    return run


def _weakly(run: Callable[[Tensor, int, bool], Work | None]) -> Callable[[Tensor, int, bool], Work | None]:
    """Wraps a hook for the core, whose references the garbage collector does not see: a hook may hold the object with the hook."""
    held = weakref.ref(run)

    def call(tensor: Tensor, index: int, is_last: bool) -> Work | None:
        kept = held()
        if kept is None:
            raise _yoke.StateError(f"{_NAME}: the object was released while backward ran; keep it until backward has ended")
        return kept(tensor, index, is_last)
    return call


def _check_group(group: Any, call: str) -> None:
    if not isinstance(group, Group):
        raise _yoke.TypeError(f"{call}(): argument 'group' is {shown(group)}; it must be a yoke.comm.Group")


class DistributedDataParallel(Module):
    """`module` on each rank of `group`, with the mean of all ranks in its gradients after each backward.

    group: if None, the group of yoke.comm.init(). bucket_mb: MiB of gradients reduced together. compression: "fp16" or "bf16"
    send 16-bit floats; "powersgd:rank=4,start=10,rate=2" sends matrices as thin products; a function (bucket, group) reduces
    itself, and returns a Work, a tensor like the bucket's, or None. device_ids=[d]: d is the card of all parameters, a device, an
    index or a text, and tensors in the arguments of module(...) are copied there; without it they are passed unchanged.
    output_device is the same card. reduce_dtype=yoke.float32: NCCL adds up 16-bit gradients in float32, as the CPU engine
    does.

    All ranks make the same call. If values differ, all ranks take rank 0's values, and rank 0's buffers after each backward. A
    parameter used on some ranks counts as 0 on the other ranks; a parameter used on no rank keeps no gradient. A backward from
    results of module(...), also in tuples, lists, dicts and dataclasses, is a backward of all ranks, even if a rank used no
    parameter at all. If no result requires a gradient, its floating tensors do from then on. If a rank's backward fails, the
    group ends on all ranks with its reason; `module` then goes on alone. To wrap `module` anew `del ddp` first. While the old
    wrapper lives, a new wrapper in its group is a StateError, also if it would take the old wrapper's name. ValueError if the
    ranks' modules differ, with the first different parameter.
    """

    module: Module

    def __init__(self, module: Module, group: Group | None = None, bucket_mb: float = 25, compression: str | Hook | None = None,
                 device_ids: Sequence[Device | str | int] | None = None, output_device: Device | str | int | None = None,
                 reduce_dtype: dtype | None = None, **unknown: NoReturn) -> None:
        for name in unknown:
            raise _yoke.TypeError(f"{_NAME}(): there is no argument '{name}'; {_REMEDIES.get(name, 'the arguments are module, group, bucket_mb, compression, device_ids, output_device and reduce_dtype')}")
        if not isinstance(module, Module):
            raise _yoke.TypeError(f"{_NAME}(): argument 'module' is {shown(module)}; it must be a yoke.nn.Module")
        if group is not None and not isinstance(group, Group):
            raise _yoke.TypeError(f"{_NAME}(): argument 'group' is {shown(group)}; it must be a yoke.comm.Group, or None{'; give a list of devices as device_ids=' if isinstance(group, (list, tuple)) else ''}")
        if not (compression is None or isinstance(compression, str) or callable(compression)):
            raise _yoke.TypeError(f"{_NAME}(): argument 'compression' is {shown(compression)}; it must be a text, a function, or None")
        self.module = module
        held = Group(_yoke._comm_group()) if group is None else group
        named = list(module.named_parameters())
        card = made(held._core, _NAME, lambda: _own_card.own_card(_NAME, device_ids, output_device, [each for _, each in named]))
        buffers = list(module.named_buffers())
        groups = [held]  # a hook sees later changes
        hook = None if compression is None or isinstance(compression, str) else _hook(compression, groups)
        text = compression if isinstance(compression, str) else None
        object.__setattr__(self, "_card", card)
        object.__setattr__(self, "_groups", groups)
        object.__setattr__(self, "_hook", hook)  # held here alone
        object.__setattr__(self, "_wrapped", {name: (each, each.requires_grad) for name, each in named})
        object.__setattr__(self, "_places", {name: (each.dtype, each.device) for name, each in named})
        object.__setattr__(self, "_broadcast", dict(buffers))
        object.__setattr__(self, "_reducer", held._core.reducer(
            [each for _, each in named], [name for name, _ in named], [each for _, each in buffers], [name for name, _ in buffers],
            bucket_mb, text, None if hook is None else _weakly(hook), reduce_dtype))

    @property
    def group(self) -> Group:
        """Group of the module's ranks."""
        group: Group = self._groups[0]
        return group

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the results of module(…)."""
        forward = self._reducer.check()
        is_recorded = _yoke.is_grad_enabled()
        if self._card is not None:
            args, kwargs = _own_card.brought((args, kwargs), self._card)
        try:
            given = self.module(*args, **kwargs)
        finally:  # the module may assign parameters that backward would not reduce, and may fail because of missing parameters
            if is_recorded:
                self._check_module()
        tied = self._tied(forward, given) if is_recorded and self.group.size > 1 else given
        self._reducer.check()  # after a failure, later records give gradients of this rank only
        return tied

    def _tied(self, forward: int, given: Any) -> Any:
        """Ties outputs to the reducer: a backward from them is a backward of all ranks, even if it reaches no parameter."""
        try:
            found = _outputs.tensors_in(given)
        except Exception:  # the class does not allow a look inside
            return given
        tied = zip(found, self._reducer.tie(forward, found), strict=True) if found else ()
        by = {id(each): other for each, other in tied if other is not None}
        try:
            return _outputs.replaced(given, by) if by else given
        except Exception:  # the class cannot be rebuilt: the module's object is returned
            return given

    def _check_module(self) -> None:
        if self.group.size == 1:
            return
        change = self._change_of_parameters() or self._change_of_buffers()
        if change is None:
            return
        text = f"{_NAME}: the module has changed since it was wrapped: {change}; wrap the module again on all ranks"
        self.group.abort(text)
        raise _yoke.StateError(text)

    def _change_of_parameters(self) -> str | None:
        every = list(self.module.named_parameters())
        was, now = {id(each): trains for each, trains in self._wrapped.values()}, {id(each): each.requires_grad for _, each in every}
        for name, each in every:
            if id(each) not in was:
                return f"the parameter '{name}' " + ("was moved, or another parameter has this name" if name in self._wrapped else "was added")
        for name, (each, trained) in self._wrapped.items():
            if id(each) not in now:
                return f"the parameter '{name}' was removed"
            if now[id(each)] != trained:
                return f"the parameter '{name}' was " + ("frozen" if trained else "frozen, and requires a gradient now")
            if (each.dtype, each.device) != self._places[name]:
                return f"the parameter '{name}' was moved to another dtype or device"
        return None

    def _change_of_buffers(self) -> str | None:
        now = dict(self.module.named_buffers())
        for name, each in self._broadcast.items():
            if name not in now:
                return f"the buffer '{name}' was removed"
            if now[name] is not each:
                return f"the buffer '{name}' is not the tensor that was wrapped; change buffers in place, buf.copy_(...)"
        return next((f"the buffer '{name}' was added" for name in now if name not in self._broadcast), None)

    @contextmanager
    @named
    def no_sync(self) -> Iterator[None]:
        """Turns reduction off in a block: backward adds up on this rank only; the next backward outside reduces the sum."""
        before = self._reducer.sync
        self._reducer.sync = False
        try:
            yield
        finally:
            self._reducer.sync = before

    def set_weight(self, n: float) -> None:
        """Sets this rank's weight n from the next backward on: gradients are the sum of n times gradient, divided by the sum of n.

        With n as the number of its tokens or examples, the gradient is the mean over all of them. For gradients added up in
        no_sync, the weight at the reducing backward counts. ValueError unless above 0 and finite.
        """
        made(self.group._core, "set_weight", lambda: self._reducer.set_weight(n))

    def regroup(self, group: Group, *objects: Any) -> None:
        """Moves the module to the ranks of `group`, such as a group of Group.shrink(); all its ranks call it.

            group = group.shrink(); ddp.regroup(group, optimizer, scaler, sampler)

        If the ranks have stopped at different steps, all take parameters, buffers, the compression's state and the objects'
        states from the furthest rank; objects have state_dict() and load_state_dict(). Gradients are removed: run the failed step
        again. A DistributedSampler deals the rest of its epoch among the present ranks. After a failure `module` has its former
        values and goes on alone; another call with another group is allowed. StateError on all ranks if all have stepped after
        reductions that their cards did not finish: load the last saved state, and call again with this group.
        """
        made(self.group._core, "regroup", lambda: _check_group(group, "regroup"))  # there is no other group to notify
        made(group._core, "regroup", lambda: _carried.check(objects, "regroup"))
        with group:
            states = _carried.states(objects)
        told = group._core.regroup(self._reducer, states)
        with group:
            self._groups[0] = group
            _carried.compare(objects, told, "regroup")  # before this rank waits in a sampler's call for ranks without a sampler
            for each in objects:
                if isinstance(each, DistributedSampler):
                    each.regroup(group)
            _carried.load(objects, told, "regroup")

    def comm_state(self) -> dict[str, Any]:
        """Returns the state of this rank's compression: {"steps": …, "tensors": {…}}. StateError while a backward runs."""
        state: dict[str, Any] = self._reducer.state()
        return state

    def load_comm_state(self, state: dict[str, Any]) -> None:
        """Loads a state. ValueError for the state of another model or compression, StateError while a backward runs."""
        asked(self.group._core, "load_comm_state", lambda: self._reducer.load_state(state))

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the state of `module`, under its names."""
        return self.module.state_dict()

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True) -> LoadResult:
        """Loads a state into `module`. Names may have the prefix "module.", as in PyTorch."""
        if isinstance(state_dict, dict) and state_dict and all(isinstance(name, str) and name.startswith(_PREFIX) for name in state_dict):
            plain = {name[len(_PREFIX):]: each for name, each in state_dict.items()}
            own = self.module.state_dict().keys()
            if len(own & plain.keys()) > len(own & state_dict.keys()):
                state_dict = plain
        return made(self.group._core, "load_state_dict", lambda: self.module.load_state_dict(state_dict, strict))
