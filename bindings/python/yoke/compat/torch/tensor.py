"""Methods of tensors whose rules are PyTorch's while its words are installed."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _types, _yoke
from yoke._numpy import array
from yoke._yoke import Tensor
from yoke.compat.torch.options import channels_last, need_memory_format

_view, _to, _type, _clone, _contiguous = Tensor.view, Tensor.to, Tensor.type, Tensor.clone, Tensor.contiguous


def _is_dense(x: Tensor) -> bool:
    """Returns whether the elements fill their memory without gaps or overlap, in some order of the axes, as a convolution's result does."""
    expected = 1
    for stride, length in sorted((stride, length) for stride, length in zip(x.strides, x.shape) if length != 1):
        if stride != expected:
            return False
        expected *= length
    return True


def view(self: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """x.view(shape): a view, or a copy of a dense tensor whose axes lie in another order, such as a convolution's result (NHWC)."""
    if len(shape) == 1 and isinstance(shape[0], yoke.dtype):
        dtype, shape = shape[0], ()
    if dtype is not None:
        return _viewed_as(self, dtype)
    try:
        return _view(self, *shape)
    except _yoke.ValueError:
        if self.is_contiguous() or not _is_dense(self):
            raise
        return self.reshape(*shape)


def _viewed_as(x: Tensor, dtype: yoke.dtype) -> Tensor:
    if dtype.itemsize != x.dtype.itemsize or x.requires_grad:
        raise _yoke.UnsupportedError(f"view(): a view of {x.dtype} as {dtype} needs a size of element that is equal, and no gradient; write x.to({dtype}) for the values")
    return _yoke._view_storage(x, dtype, x.shape, x.strides, _yoke._storage_offset(x))


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """x.type(): the name "torch.FloatTensor"; x.type(dtype): the tensor in another dtype."""
    if dtype is None:
        return _types.tensor_type(self, None).replace("yoke.", "torch.", 1)
    return _types.tensor_type(self, dtype)


def to(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """x.to(device, dtype, non_blocking, copy, memory_format), in each of PyTorch's orders; an index is a card."""
    need_memory_format("to", keywords.pop("memory_format", None))
    copy = keywords.pop("copy", False)
    of_dtype = bool(args) and isinstance(args[0], (yoke.dtype, type))
    names = ("dtype", "non_blocking", "copy") if of_dtype else ("other", "non_blocking", "copy") if args and isinstance(args[0], Tensor) else ("device", "dtype", "non_blocking", "copy")
    given = dict(zip(names, args))
    if len(args) > len(names):
        raise _yoke.TypeError(f"to(): takes at most {len(names)} arguments but {len(args)} were given")
    given.update(keywords)
    copy = given.pop("copy", copy)
    if isinstance(given.get("device"), int) and not isinstance(given["device"], bool):
        given["device"] = f"cuda:{given['device']}"
    if "other" in given:
        given["device"] = given.pop("other")
    found = _to(self, **given)
    return found.clone() if copy and yoke.shares_memory(found, self) else found


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """x.cuda(device): the tensor on a card, the current card by default."""
    from yoke.compat.torch import devices

    need_memory_format("cuda", memory_format)
    return _to(self, devices.opened("cuda" if device is None else device), non_blocking=non_blocking)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """x.cpu()."""
    return _to(self, "cpu")


def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """x.clone()."""
    need_memory_format("clone", memory_format)
    return _clone(self)


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """x.contiguous()."""
    need_memory_format("contiguous", memory_format)
    return _contiguous(self)


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """x.is_contiguous(): True also for a dense tensor in the order of channels last, which view() takes."""
    if memory_format is channels_last and self.ndim == 4:
        return bool(_is_contiguous(self.permute(0, 2, 3, 1)))
    need_memory_format("is_contiguous", memory_format)
    return _is_contiguous(self)


_is_contiguous = Tensor.is_contiguous


def numpy(self: Tensor, *, force: bool = False) -> Any:
    """x.numpy(): an array over the same memory."""
    return array(self.detach().cpu() if force else self)


def get_device(self: Tensor) -> int:
    """Returns the index of the card, -1 on the CPU."""
    return self.device.index if self.device.kind != "cpu" else -1


def is_cpu(self: Tensor) -> bool:
    """Returns whether the tensor is in host memory."""
    return self.device.kind == "cpu"


def false(self: Tensor) -> bool:
    """Returns False: there is one kind of tensor."""
    return False


def layout(self: Tensor) -> Any:
    """x.layout: torch.strided."""
    from yoke.compat.torch.options import strided

    return strided


def name(self: Tensor) -> None:
    """x.name: None."""


def storage_offset(self: Tensor) -> int:
    """Returns the place of the first element in its memory."""
    return _yoke._storage_offset(self)


def share_memory_(self: Tensor) -> Tensor:
    """Refuses: processes do not share tensors."""
    raise _yoke.UnsupportedError("share_memory_(): processes do not share tensors in Yoke; send x.numpy() through a Queue, or use torch.distributed")


def detach_(self: Tensor) -> Tensor:
    """Forgets how the tensor was made."""
    self.data = self.detach()
    return self


def _in_place(name: str) -> Any:
    def run(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        raise _yoke.UnsupportedError(f"{name}_(): a tensor does not change its shape in Yoke; write x = x.{name}(…)")

    run.__name__, run.__doc__ = name + "_", f"Refuses: write x = x.{name}(…)."
    return run


unsqueeze_, squeeze_, t_, transpose_ = _in_place("unsqueeze"), _in_place("squeeze"), _in_place("t"), _in_place("transpose")
swapaxes_, swapdims_ = _in_place("swapaxes"), _in_place("transpose")


def _written(name: str) -> Any:
    def run(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        before = self.clone() if self.requires_grad else self  # its gradient needs the values that are written over
        return self.copy_(getattr(before, name)(*args, **keywords))

    run.__name__, run.__doc__ = name + "_", f"Writes x.{name}(…) into x."
    return run


# Methods in place that write the result of the method without "_".
WRITTEN = """absolute addbmm addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2 arctanh acosh asinh atanh baddbmm clamp_max clamp_min clip
    conj_physical copysign cumprod cumsum deg2rad divide eq fix float_power ge greater greater_equal gt heaviside hypot le less less_equal
    logical_and logical_not logical_or logical_xor logit lt multiply ne negative nextafter not_equal rad2deg renorm round scatter_reduce sgn sign
    sinc subtract tril triu true_divide xlogy""".split()
for _each in WRITTEN:
    globals()[f"{_each}_"] = _written(_each)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Sets the diagonal to a value. With more axes it is that of all axes; `wrap` starts it again below its end in a tall matrix."""
    if self.ndim < 2 or self.ndim > 2 and len(set(self.shape)) > 1:
        raise _yoke.ValueError(f"fill_diagonal_(): the tensor has shape {list(self.shape)}; it must be a matrix, or have axes of one length")
    places = yoke.arange(min(self.shape), device=self.device)
    if self.ndim > 2:
        self[(places,) * self.ndim] = fill_value
        return self
    height, width = self.shape
    for start in range(0, height, width + 1) if wrap else (0,):
        self[start:].diagonal().fill_(fill_value)
    return self


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Refuses: tensors do not change their size."""
    raise _yoke.UnsupportedError("resize_(): tensors do not change their size in Yoke; write x = torch.empty(sizes)")


def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Any = None) -> Tensor:
    """Fills the tensor with exp of normal numbers."""
    return self.normal_(mean, std, generator=generator).exp_()


def new(self: Tensor, *args: Any) -> Tensor:
    """x.new(sizes) or x.new(data): a tensor of the same dtype on the same device."""
    if len(args) == 1 and not isinstance(args[0], int):
        return self.new_tensor(args[0])
    return self.new_empty(args or (0,))


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sums over axes until the tensor has a shape that broadcasts to its own."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    more = self.ndim - len(shape)
    axes = [*range(more), *(more + i for i, length in enumerate(shape) if length == 1 and self.shape[more + i] != 1)]
    return self.sum(axes, keepdim=True).reshape(shape) if axes else self


def map_(self: Tensor, *args: Any) -> Tensor:
    """Refuses: a Python function for each element."""
    raise _yoke.UnsupportedError("map_(), apply_(): write ops over the whole tensor, or numpy.vectorize(function)(x.numpy())")
