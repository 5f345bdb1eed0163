"""Common parts of state.py's workers: sizes, equally fresh memory for all, and the cost of a save for the script.

Sizes are those of a state: the number of float32 tensors, all of equal size.
"""

import mmap
import os
import time

TENSORS, LARGE, SMALL = 200, 2**30, 2**20
WRITE = 16 << 20  # bytes of a plain write


def numbers(size):
    """Returns the numbers of a tensor of a state."""
    return size // TENSORS // 4


def fresh(size, *advice):
    """Returns memory straight from the system, in huge pages, as for Yoke's tensors."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for each in (mmap.MADV_HUGEPAGE, *advice):
        memory.madvise(each)
    return memory


def back():
    """Touches and releases more memory than the next measurement needs, before it takes new pages. The machine below a virtual
    machine takes unused pages back. Giving them anew costs from nothing to seconds a GiB; after this call most pages are there.
    """
    populate_write = 23  # MADV_POPULATE_WRITE, which Python does not name
    fresh(3 * LARGE, populate_write).close()


def timed(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def stall(step, save, work):
    """Returns (cost of a save for the script, how much longer the work beside the save took). The cost is the call, the wait for
    copies, and the longer time of the step after the work. `save` returns two waits: for the copies, and for the end.
    """
    step()
    alone, plain = timed(step), timed(work)
    start = time.perf_counter()
    copied, ended = save()
    call = time.perf_counter() - start
    worked = timed(work)

    def wait_and_step():
        copied()
        step()
    stepped = timed(wait_and_step)
    ended()
    return call + stepped - alone, worked - plain


def repeated(act, seconds):
    """Returns a function that repeats `act` for about so many seconds."""
    act()
    number = max(1, round(10 * seconds / timed(lambda: [act() for _ in range(10)]))) if seconds else 0
    return lambda: [act() for _ in range(number)]


def peak(act):
    """Returns the peak bytes of `act` beyond the memory in use before."""
    def told(name):
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))

    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")  # the peak counts from here
    before = told("VmRSS:")
    act()
    return float(told("VmHWM:") - before)


def remove(path):
    if os.path.exists(path):
        os.unlink(path)
