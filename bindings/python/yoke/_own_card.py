"""PyTorch's arguments for the card of a rank, device_ids=[d] and output_device=d, and the move of inputs to this card."""

from __future__ import annotations

from operator import index
from typing import Any, NoReturn

from yoke import _outputs, _yoke
from yoke._check import shown
from yoke._yoke import Device, Tensor


def _text(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        return f"[{', '.join(_text(each) for each in given)}]"
    return str(given) if isinstance(given, Device) else shown(given)


def _refuse(kind: type[Exception], call: str, name: str, given: Any, problem: str) -> NoReturn:
    raise kind(f"{call}(): argument '{name}' is {_text(given)}{problem}")


def _only(call: str, given: Any) -> Any:
    """Returns the only device of `device_ids`, None without devices."""
    if given is None:
        return None
    if not isinstance(given, (list, tuple)):
        _refuse(_yoke.TypeError, call, "device_ids", given, f"; it must be a list of one device, [{_text(given)}], or None")
    if len(given) > 1:
        _refuse(_yoke.ValueError, call, "device_ids", given, f", but a rank uses one card; start one rank for each card: yoke run -n {len(given)}")
    return given[0] if given else None


def _spec(given: Any, kind: str) -> Device | str | None:
    """Returns the name of a device, None for other values; an index counts the devices of a kind."""
    if isinstance(given, (str, Device)):
        return given
    try:
        return None if isinstance(given, bool) else f"{kind}:{index(given)}"
    except TypeError:
        return None


def _check_one(call: str, name: str, given: Any, device: Any, homes: dict[str, Device]) -> None:
    """Raises unless `device`, from the argument `given`, is the only entry of `homes`."""
    if len(homes) > 1:
        _refuse(_yoke.ValueError, call, name, given, f", but the module is on {' and '.join(homes)}; leave out this argument, because a module on several devices moves its own tensors")
    (where, home), = homes.items()
    if home.kind == "cpu":
        _refuse(_yoke.ValueError, call, name, given, ", but the module is on cpu; leave out this argument, or move the module to its card first: module.to(device)")
    spec = _spec(device, home.kind)
    if spec is None:
        _refuse(_yoke.TypeError, call, name, given, "; it must be a device, an index or a text, such as " + ("['cuda:0']" if name == "device_ids" else "'cuda:0'"))
    meant = str(_yoke.device(spec))
    if meant != where:
        _refuse(_yoke.ValueError, call, name, given, f", which is {meant}, but the module is on {where}; give the module's own card, or move the module first: module.to('{meant}')")


def own_card(call: str, device_ids: Any, output_device: Any, parameters: list[Tensor]) -> Device | None:
    """Returns the card of `device_ids`, None without a card. Raises unless parameters lie on all named devices."""
    device = _only(call, device_ids)
    homes = {str(each.device): each.device for each in parameters}
    if not homes:  # refused elsewhere for its own reason
        return None
    if device is not None:
        _check_one(call, "device_ids", device_ids, device, homes)
    if output_device is not None:
        _check_one(call, "output_device", output_device, output_device, homes)
    return None if device is None else next(iter(homes.values()))


def brought(value: Any, device: Device) -> Any:
    """Returns `value` with its tensors on a device, also in tuples, lists, dicts and dataclasses."""
    there = str(device)
    by = {id(each): each.to(device) for each in _outputs.tensors_in(value) if str(each.device) != there}
    return _outputs.replaced(value, by) if by else value
