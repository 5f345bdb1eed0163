"""memory_stats and the numbers of an OutOfMemoryError."""
import os
import subprocess
import sys

import pytest

import yoke

QUANTITIES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
DETAILS = {"device", "requested", "allocated", "rounding", "reserved", "free_in_cache", "largest_free", "stranded", "waiting", "graphs", "foreign", "others",
           "free", "total", "limit"}


def test_every_key_of_pytorch_is_there_and_agrees_with_the_functions():
    x = yoke.ones((1000, 1001))
    stats = yoke.memory_stats()
    for quantity in QUANTITIES:
        for pool in ("all", "large_pool", "small_pool"):
            for field in ("current", "peak", "allocated", "freed"):
                assert isinstance(stats[f"{quantity}.{pool}.{field}"], int)
            assert stats[f"{quantity}.{pool}.current"] <= stats[f"{quantity}.{pool}.peak"]
        if not quantity.startswith("inactive"):
            assert stats[f"{quantity}.all.allocated"] - stats[f"{quantity}.all.freed"] == stats[f"{quantity}.all.current"]
            assert sum(stats[f"{quantity}.{pool}.current"] for pool in ("large_pool", "small_pool")) == stats[f"{quantity}.all.current"]
    assert stats["allocated_bytes.all.current"] == yoke.memory_allocated()
    assert stats["reserved_bytes.all.peak"] == yoke.max_memory_reserved()
    assert 0 <= stats["fragmentation"] <= 1 and isinstance(stats["fragmentation"], float)
    assert stats["max_split_size"] == -1 and stats["rung.growth"] >= 0
    assert x.nbytes <= stats["requested_bytes.large_pool.current"] <= stats["allocated_bytes.large_pool.current"]


def test_peaks_and_totals_start_again():
    x = yoke.ones(100)
    yoke.reset_accumulated_memory_stats()
    yoke.reset_peak_memory_stats()
    stats = yoke.memory_stats()
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == stats["num_device_alloc"] == 0
    assert stats["allocation.all.peak"] == stats["allocation.all.current"] >= 1
    del x
    y = [yoke.ones(100) for _ in range(5)]
    stats = yoke.memory_stats()
    assert (stats["allocation.small_pool.allocated"], stats["allocation.small_pool.freed"]) == (5, 1)
    assert stats["requested_bytes.all.allocated"] == 5 * y[0].nbytes


def test_a_small_and_a_large_tensor_count_apart():
    before = yoke.memory_stats()
    small, large = yoke.ones(300), yoke.ones((1 << 20,))
    after = yoke.memory_stats()
    for pool, x in ("small_pool", small), ("large_pool", large):
        assert after[f"allocation.{pool}.current"] - before[f"allocation.{pool}.current"] == 1
        assert after[f"requested_bytes.{pool}.current"] - before[f"requested_bytes.{pool}.current"] == x.nbytes


def test_an_error_has_its_numbers():
    x = yoke.ones(1000)
    with pytest.raises(yoke.OutOfMemoryError) as error:
        yoke.zeros((1 << 42,), dtype="float64") + x
    details = error.value.details
    assert set(details) == DETAILS
    assert details["requested"] == 1 << 45 and details["device"] == "cpu" == error.value.device
    assert details["allocated"] == yoke.memory_allocated() and 0 < details["free"] <= details["total"]
    with pytest.raises(yoke.ValueError) as other:
        yoke.zeros((-1,))
    assert not hasattr(other.value, "details")
    assert yoke.OutOfMemoryError("of a script").details == {}


LIMITED = """
import resource, yoke
yoke.ones(4)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
x = yoke.zeros((40 << 18,))
try:
    y = x + 1
except yoke.OutOfMemoryError as error:
    print(error.details["limit"], error.details["requested"], error.details["allocated"] >= 40 << 20)
    print("ulimit -v" in str(error))
"""


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes all of the address space")
def test_an_error_of_an_op_names_the_limit_that_was_met():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"RLIMIT_AS (ulimit -v) {40 << 20} True\nTrue\n", done.stderr
