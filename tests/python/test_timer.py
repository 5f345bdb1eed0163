"""yoke.Timer: its calls, their number, and figures from times. The tests judge no times."""
import pytest

import yoke
from yoke import _timer


def test_the_median_and_quartiles_are_those_of_the_runs(monkeypatch):
    monkeypatch.setattr(yoke.Timer, "_time", lambda self, calls: next(times))
    times = iter([1.0, 5.0, 2.0, 4.0, 1.0, 3.0])  # the first finds how many calls make a run
    median, iqr, runs = yoke.Timer(lambda: None, seconds=0).run()
    assert (median, iqr, runs) == (3.0, 2.0, 5)
    assert _timer._quantile([1.0, 2.0], 0.25) == 1.25 and _timer._quantile([7.0], 0.75) == 7.0


def test_a_function_is_warmed_up_and_run_at_least_five_times():
    count = []
    result = yoke.Timer(lambda: (count.append(1), yoke.rand(200_000)), seconds=0, warmup=4).run()
    assert result.runs == 5 and len(count) >= 4 + 1 + 5
    assert result.median > 0 and result.iqr >= 0 and result == tuple(result)


def test_the_device_is_waited_for_around_every_run(monkeypatch):
    waits = []
    monkeypatch.setattr(_timer._yoke, "synchronize", waits.append)
    runs = yoke.Timer(lambda: yoke.rand(200_000), device="cpu", seconds=0).run().runs
    assert waits.count("cpu") == len(waits) and len(waits) % 2 == 0 and len(waits) >= 2 * runs + 2


def test_an_error_of_the_function_passes_through_and_misuse_is_refused():
    with pytest.raises(ZeroDivisionError):
        yoke.Timer(lambda: 1 // 0).run()
    with pytest.raises(yoke.TypeError, match="'fn' is 5"):
        yoke.Timer(5)
    with pytest.raises(yoke.ValueError, match="-1"):
        yoke.Timer(print, seconds=-1)
