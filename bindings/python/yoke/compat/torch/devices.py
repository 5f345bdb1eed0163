"""torch.device: a name of a device, which needs no such device before its first use; and the default device, the CPU."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke
from yoke.compat.torch import cards

KINDS = ("cpu", "cuda", "meta", "mps", "xpu", "hip", "xla", "vulkan", "mtia", "hpu", "privateuseone")


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, yoke.Device)


class device(str, metaclass=_Kind):
    """Name of a device, such as "cuda:1", also where no card is. x.device is Yoke's device, which counts as an instance of this class."""

    type: str
    index: int | None  # type: ignore[assignment]

    def __new__(cls, type: Any = None, index: int | None = None) -> device:
        if isinstance(type, yoke.Device):
            kind, number = type.kind, type.index if type.kind != "cpu" else None
        elif isinstance(type, int) and not isinstance(type, bool):
            kind, number = "cuda", type
        elif isinstance(type, str):
            kind, number = _parts(type)
        else:
            raise _yoke.TypeError(f"device(): argument 'type' is {type!r}; it takes a name such as \"cuda:1\", or an index")
        if index is not None:
            number = int(index)
        made = str.__new__(cls, kind if number is None else f"{kind}:{number}")
        made.type, made.index = kind, number
        return made

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + ("" if self.index is None else f", index={self.index}") + ")"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, yoke.Device):
            return self.type == other.kind and (self.index is None and other.kind == "cpu" or (self.index or 0) == other.index)
        return str.__eq__(self, other) if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __reduce__(self) -> Any:
        return device, (str(self),)

    def __enter__(self) -> device:
        opened(self).__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        opened(self).__exit__(*exception)


def _parts(text: str) -> tuple[str, int | None]:
    kind, colon, number = text.partition(":")
    if kind not in KINDS or colon and not number.isdigit():
        raise RuntimeError(f"device(): argument 'type' is '{text}'; it takes a kind ({', '.join(KINDS[:2])}), and an index: \"cuda:1\"")
    return kind, int(number) if colon else None


def opened(name: Any) -> yoke.Device:
    """Returns the device of a name; DeviceUnavailableError if there is none."""
    if isinstance(name, yoke.Device):
        return name
    if isinstance(name, int):
        return yoke.device(f"cuda:{name}")
    if name == "cuda":
        return cards.current()
    return yoke.device(str(name))


def set_default_device(device: Any) -> None:
    """Makes a device the default of new tensors; None is the CPU."""
    yoke.set_device("cpu" if device is None else opened(device))


def get_default_device() -> device:
    """Returns the default device of new tensors."""
    return device(yoke.current_device())


def hash_of(self: yoke.Device) -> int:
    """hash() of a tensor's device: that of the equal torch.device."""
    return hash(device(self))


def repr_of(self: yoke.Device) -> str:
    """repr() of a tensor's device, in PyTorch's form."""
    return f"device(type='{self.kind}'" + ("" if self.kind == "cpu" else f", index={self.index}") + ")"
