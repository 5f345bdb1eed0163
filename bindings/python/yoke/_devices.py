"""Choice of devices by their properties, leases, and switching kinds off."""

from __future__ import annotations

import builtins
import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from yoke import _yoke
from yoke._named import Named, named
from yoke._yoke import Device, _explain, _open, _select

_T = TypeVar("_T")
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Sample(NamedTuple):
    """Present figures of a device; None for unknown figures. Units: bytes, watts, degrees Celsius, hertz; shares from 0 to 1."""

    utilization: float | None
    memory_used: int | None
    memory_free: int | None
    memory_total: int | None
    watts: float | None
    temperature: float | None
    sm_clock: float | None
    memory_clock: float | None
    processes: int | None


class Lease(Named):
    """Claim of this process to a device; ends with the process. Also a context manager."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def release(self) -> None:
        """Releases the device. A second call does nothing."""
        _yoke._release_lease(self.device)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<lease of {self.device}>"


class Verdict(NamedTuple):
    """Result of explain() for a device."""

    device: str
    accepted: builtins.bool
    reason: str


class Explanation(list[Verdict]):
    """Every device with its result, chosen devices first."""

    problem: str
    visible: str


def _value(key: str, value: Any) -> str:
    """Returns a constraint in the spec's form."""
    if value is True:
        return key
    if isinstance(value, (builtins.list, builtins.tuple, builtins.set)) and key == "min_cc":
        text = ".".join(str(part) for part in value)
    elif isinstance(value, (builtins.list, builtins.tuple, builtins.set)):
        text = "+".join(builtins.sorted(str(part) for part in value))
    elif isinstance(value, builtins.int) and key in ("min_free", "min_memory"):
        text = f"{value}B"
    elif isinstance(value, (builtins.int, builtins.float)) and key == "wait":
        text = f"{value:f}s"
    else:
        text = str(value)
    if "," in text:
        raise _yoke.ValueError(f"select(): argument '{key}' is {value!r}; a value must not contain a comma")
    return f"{key}={text}"


def _spec(constraints: dict[str, Any]) -> str:
    parts = [_value(key, value) for key, value in constraints.items() if value is not None and value is not False]
    return "auto:" + ",".join(parts) if parts else "auto"


def _seconds(wait: Any) -> float | None:
    """Returns how long to wait; None for no wait or an invalid value, for which the library raises."""
    seconds = 0.0
    if isinstance(wait, (builtins.int, builtins.float)) and not isinstance(wait, builtins.bool):
        seconds = builtins.float(wait)
    elif isinstance(wait, str) and (found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)", wait)):
        seconds = builtins.float(found[1]) * _UNITS[found[2]]
    return seconds if 0 < seconds < math.inf else None


@named
def select(n: int | None = None, **constraints: Any) -> list[Device]:
    """Chooses the best n devices, in order: select(2, min_free="8GiB", same="nvlink", homogeneous=True, wait=60, lease=True).

    Without n, chooses a single device: for a rank among several on a machine its own, as "auto" does. The keys are those of a
    spec (docs/devices.md); numbers are bytes and seconds if a spec has a unit. DeviceUnavailableError names each rejected device
    with its reason; TimeoutError if no device is suitable within `wait`.
    """
    if isinstance(n, str):
        raise _yoke.TypeError(f"select(): argument 'n' is {n!r}; it must be the number of devices; give constraints by name: "
                              f"select(1, min_free=\"8GiB\"); yoke.device({n!r}) opens the device of a spec")
    wait = _seconds(constraints.get("wait"))
    if wait is None:
        return _select(_spec(constraints), n)
    return _waiting(wait, _spec(constraints), lambda spec: _select(spec, n))


def _waiting(wait: float, spec: str, choose: Callable[[str], _T]) -> _T:
    """Returns choose(spec) as soon as a device fits, within `wait` seconds. Waits here, so that Ctrl-C ends the wait."""
    _explain(spec)  # raises for an invalid spec at once
    end, pause, in_time = time.monotonic() + wait, 0.1, True
    while in_time:
        try:
            return choose(_changed(spec, wait="1ms", fallback="error"))
        except _yoke.TimeoutError:
            left = end - time.monotonic()
            in_time = left > 0
            time.sleep(builtins.max(0.0, builtins.min(left, pause)))
            pause = builtins.min(2 * pause, 1.0)
        except _yoke.DeviceUnavailableError:
            break  # no waiting changes that
    try:
        return choose(_changed(spec, wait=None))
    except _yoke.DeviceUnavailableError as error:
        if in_time:
            raise
        late = _yoke.TimeoutError(f"no device was suitable within {wait:g} s: {error}")
        late.call = error.call
        raise late from None


def _changed(spec: str, **changes: str | None) -> str:
    """Returns a spec of constraints with replaced values; None removes a constraint."""
    items = [item.strip() for item in spec.partition(":")[2].split(",")]
    items = [item for item in items if item.partition("=")[0].strip() not in changes]
    items += [f"{key}={value}" for key, value in changes.items() if value is not None]
    return "auto:" + ",".join(items) if items else "auto"


def _device(spec: str) -> Device:
    """Returns yoke.device() of a spec that has wait=."""
    found = re.search(r"[:,]\s*wait\s*=([^,]*)", spec)
    wait = _seconds(found[1].strip()) if found and spec.startswith("auto:") else None
    return _waiting(wait, spec, _open) if wait is not None else _open(spec)


@named
def explain(spec: str = "auto") -> Explanation:
    """Explains select's result without a selection: (device, accepted, reason) for every device, chosen devices first.

    .problem says why no device fits, .visible is a value for CUDA_VISIBLE_DEVICES. No device is opened.
    """
    verdicts, problem, visible = _explain(spec)
    explanation = Explanation(Verdict(*verdict) for verdict in verdicts)
    explanation.problem, explanation.visible = problem, visible
    return explanation


@contextlib.contextmanager
@named
def disabled(kind: str) -> Iterator[None]:
    """Disables a kind of devices inside a block: `with yoke.disabled("cuda"):`."""
    _yoke.disable(kind)
    try:
        yield
    finally:
        _yoke.enable(kind)


# ---- Attributes lease, take_lease and sample of Device
# ---------------------------------------------------------------

def _lease_of(device: Device) -> Lease | None:
    return Lease(device) if _yoke._device_is_leased(device) else None


def _take_lease(device: Device) -> Lease:
    _yoke._lease(device)
    return Lease(device)


def _sample(device: Device) -> Sample:
    return Sample(**_yoke._device_sample(device))
