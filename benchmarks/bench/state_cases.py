"""What the workers of state.py share: sizes, memory that is as fresh for all, and what a save costs the script.

Sizes are those of a state: so many float32 tensors, all alike.
"""

import mmap
import os
import time

TENSORS, LARGE, SMALL = 200, 2**30, 2**20
WRITE = 16 << 20  # bytes of a plain write


def numbers(size):
    """Of one tensor of a state."""
    return size // TENSORS // 4


def fresh(size, *advice):
    """Memory straight from the system, in huge pages, as Yoke's tensors are."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for each in (mmap.MADV_HUGEPAGE, *advice):
        memory.madvise(each)
    return memory


def back():
    """Before whatever takes new pages. Those that a virtual machine has not used for a while its host takes back, and giving them anew
    costs from nothing to seconds a GiB: so more than will be asked for is touched and let go, and the next who asks mostly gets of that."""
    populate_write = 23  # MADV_POPULATE_WRITE, which Python does not name
    fresh(3 * LARGE, populate_write).close()


def timed(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def stall(step, save, work):
    """(what a save costs the script, how much longer the work beside it took): the call, waiting for copies, and what the step behind
    the work takes longer than alone. `save` gives two waits: for all that a script may have to wait for before it steps, and for the end."""
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
    """As many of it as take so long."""
    act()
    number = max(1, round(10 * seconds / timed(lambda: [act() for _ in range(10)]))) if seconds else 0
    return lambda: [act() for _ in range(number)]


def peak(act):
    """Bytes of memory that it takes at most beyond what is there before."""
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
