"""Time of a function: Timer(fn).run()."""
import time
from typing import NamedTuple

from yoke import _yoke
from yoke._check import number, whole
from yoke._named import Named


class Measurement(NamedTuple):
    """Seconds per call: the median of all runs, the distance of their quartiles, and the number of runs."""
    median: float
    iqr: float
    runs: int


def _quantile(ordered, part):
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class Timer(Named):
    """Measures a function without arguments: `median, iqr, runs = Timer(fn).run()`.

    The function is called `warmup` times unmeasured, then in runs until `seconds` have passed, at least five. The timer waits for
    the device before and after each run, so that its work counts. A run has enough calls to take a tenth of a millisecond, so
    that the clock and the waits do not count.
    """

    def __init__(self, fn, device=None, seconds=0.5, warmup=3):
        if not callable(fn):
            raise _yoke.TypeError(f"Timer: argument 'fn' is {fn!r}; it must be a function without arguments")
        if not number("Timer", "seconds", seconds) >= 0:
            raise _yoke.ValueError(f"Timer(): argument 'seconds' is {seconds}; it must not be negative")
        self._fn = fn
        self._device = device
        self._seconds = seconds
        self._warmup = whole("Timer", "warmup", warmup, 0)

    def _time(self, calls):
        fn = self._fn
        _yoke.synchronize(self._device)
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        _yoke.synchronize(self._device)
        return time.perf_counter() - start

    def run(self):
        for _ in range(self._warmup):
            self._fn()
        calls = 1
        while self._time(calls) < 1e-4 and calls < 1 << 20:
            calls *= 2
        times = []
        end = time.perf_counter() + self._seconds
        while len(times) < 5 or time.perf_counter() < end:
            times.append(self._time(calls) / calls)
        times.sort()
        return Measurement(_quantile(times, 0.5), _quantile(times, 0.75) - _quantile(times, 0.25), len(times))
