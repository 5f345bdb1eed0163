"""Worker of state.py: states on the disk. state_yoke.py DISK TMPFS

Cases: "stall SECONDS": cost of a background save for the script, if a step that writes all tensors in place follows after SECONDS
of other work; "beside SECONDS": the same for a step that writes unsaved tensors; "slowed SECONDS": delay of the other work;
"first": stall of a first save; "save disk|tmpfs" and "over disk": blocking saves into a new file and over a former file; "kept
disk": by a CheckpointManager; "peak": memory of a save; "map large|small", "copy THREADS", "verified": loads of a state in the
page cache.
"""

import contextlib
import functools
import shutil
import sys
import time

import yoke
from bench import serve
from bench.state_cases import LARGE, SMALL, TENSORS, back, numbers, peak, remove, repeated, stall, timed

yoke.set_device("cpu")
yoke.set_num_threads(1)
FOLDERS = dict(zip(("disk", "tmpfs"), sys.argv[1:]))
DISK = FOLDERS["disk"]
WIDTH = 512


@contextlib.contextmanager
def threads_of(number):
    yoke.set_num_threads(number)
    try:
        yield
    finally:
        yoke.set_num_threads(1)


@functools.lru_cache(None)
def state(size, what="saved"):
    return {f"layer.{i}.{what}": yoke.ones((numbers(size),)) for i in range(TENSORS)}


def step(what="saved"):
    for tensor in state(LARGE, what).values():
        tensor.add_(1)


@functools.lru_cache(None)
def work(seconds):
    a = yoke.randn((WIDTH, WIDTH))
    return repeated(lambda: a @ a, seconds)


def save_beside():
    going_on = yoke.save(f"{DISK}/beside", state(LARGE), blocking=False)
    return lambda: None, going_on.wait


@functools.lru_cache(None)
def made_room():
    """Prepares the memory for the second save."""
    save_beside()[1]()


def stalled(seconds, what="saved"):
    made_room()
    back()
    return stall(lambda: step(what), save_beside, work(seconds))


def first():
    yoke.empty_cache()
    back()
    return stall(step, save_beside, work(0))[0]


def save(how, folder, count=timed):
    path = f"{FOLDERS[folder]}/yoke"
    if how == "save":
        remove(path)
    state(LARGE)
    back()
    counted = count(lambda: yoke.save(path, state(LARGE)))
    if how == "save":
        remove(path)
    return counted


def kept():
    manager = yoke.CheckpointManager(f"{DISK}/new", keep=1)
    back()
    took = timed(lambda: manager.save(1, state(LARGE), blocking=True))
    shutil.rmtree(f"{DISK}/new")
    return took


@functools.lru_cache(None)
def stored(size):
    path = f"{DISK}/{size}"
    yoke.save(path, state(size))
    return path


@functools.lru_cache(None)
def manager():
    found = yoke.CheckpointManager(f"{DISK}/run", keep=1)
    found.save(1, state(LARGE), blocking=True)
    return found


def load_mapped(size, count):
    start = time.perf_counter()
    kept_ = [yoke.load(stored(size)) for _ in range(count)]
    took = time.perf_counter() - start
    assert all(len(each) == TENSORS for each in kept_)
    return took / count


def load_copies(threads):
    """Loads with this number of threads; 0: as many as in a script without settings."""
    yoke.empty_cache()
    back()
    with threads_of(threads):
        start = time.perf_counter()
        loaded = yoke.load(stored(LARGE), mmap=False)
        took = time.perf_counter() - start
    assert len(loaded) == TENSORS
    return took


ONCE = {"stall": lambda seconds: stalled(float(seconds))[0], "slowed": lambda seconds: stalled(float(seconds))[1],
        "beside": lambda seconds: stalled(float(seconds), "other")[0], "first": first,
        "save": lambda folder: save("save", folder), "over": lambda folder: save("over", folder), "kept": lambda _: kept(),
        "peak": lambda: save("save", "disk", peak), "copy": lambda threads: load_copies(int(threads)), "verified": lambda: timed(manager().load)}


def measure(case, count):
    what, *more = case.split()
    if what == "map":
        stored(LARGE), stored(SMALL)
        return load_mapped({"large": LARGE, "small": SMALL}[more[0]], count)
    return sum(ONCE[what](*more) for _ in range(count)) / count


serve(f"Yoke {yoke.__version__}", measure)
