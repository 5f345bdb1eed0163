"""Checks of arguments and saved states in the package itself, with the same wording for all problems.

Each function returns the checked value. Otherwise it raises an error with the call, the argument, its value and the allowed
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index

from yoke import _yoke

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shown(value: object) -> str:
    """Returns a value's text for errors: its kind if the text would be long."""
    if isinstance(value, _yoke.Tensor):
        return f"a {value.dtype} tensor of shape {list(value.shape)}"
    if value is None or isinstance(value, (int, float, str)):
        return repr(value)
    return f"of type {type(value).__name__}"


def noun(value: object) -> str:
    """Returns shown(value) for places where no "is" stands before it: "a value of type ReLU"."""
    text = shown(value)
    return f"a value {text}" if text.startswith("of type ") else text


def _wrong(call: str, name: str, value: object, wanted: str) -> str:
    return f"{call}(): argument '{name}' is {shown(value)}; {wanted}"


def whole(call: str, name: str, value: Any, least: int | None = None) -> int:
    """Returns a whole number that fits in 64 bits, of at least `least`."""
    found: int | None
    try:
        found = index(value)
    except TypeError:
        found = None
    low = -(2**63) if least is None else least
    if found is not None and low <= found < 2**63:
        return found
    limits = "in 64 bits" if least is None or found is not None and found > least else f"of at least {least}"
    kind = _yoke.TypeError if found is None and not isinstance(value, float) else _yoke.ValueError
    raise kind(_wrong(call, name, value, f"a whole number {limits} is needed"))


def number(call: str, name: str, value: Any) -> float:
    """Returns a real number; a number other than int or float becomes a float."""
    if isinstance(value, float):
        return value
    found: float | None
    try:
        found = float(value) if not isinstance(value, (str, bytes, bytearray)) else None
    except (TypeError, ValueError):
        found = None
    except OverflowError:
        raise _yoke.ValueError(f"{call}(): argument '{name}' is too large; a number that fits in a float is needed") from None
    if found is None:
        raise _yoke.TypeError(_wrong(call, name, value, "a number is needed"))
    return value if isinstance(value, int) else found


def listed(call: str, name: str, value: Any, of: str) -> list[Any]:
    """Returns the items of a sequence or another iterable; `of` names the items."""
    if isinstance(value, Iterable) and not isinstance(value, (_yoke.Tensor, str, bytes, Mapping)):
        return list(value)
    instead = "; write [tensor]" if isinstance(value, _yoke.Tensor) else "; write net.parameters() of a module net" if hasattr(value, "parameters") else ""
    raise _yoke.TypeError(_wrong(call, name, value, f"a sequence of {of} is needed{instead}"))


def text(call: str, name: str, value: Any) -> str:
    """Returns a string."""
    if isinstance(value, str):
        return value
    raise _yoke.TypeError(_wrong(call, name, value, "a string is needed"))


def tensor(call: str, name: str, value: Any) -> _yoke.Tensor:
    """Returns a tensor."""
    if isinstance(value, _yoke.Tensor):
        return value
    raise _yoke.TypeError(_wrong(call, name, value, "a tensor is needed"))


def entries(call: str, name: str, value: Any, wanted: Iterable[str], hint: str = "") -> list[Any]:
    """Returns the values of a saved state under the wanted keys; `hint` names another possible cause."""
    wanted = list(wanted)
    if not isinstance(value, Mapping):
        raise _yoke.TypeError(_wrong(call, name, value, "a dict is needed, as in the result of state_dict()"))
    for key in wanted:
        if key not in value:
            raise _yoke.ValueError(f"{call}(): '{key}' is missing in argument '{name}', which must have {', '.join(wanted)}, as in the result of state_dict(){hint}")
    return [value[key] for key in wanted]
