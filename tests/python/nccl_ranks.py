"""Ranks with a card each over the fake NCCL: leftovers of NCCL in a process, and ranks as processes."""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from rank_scripts import free_port

BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", "/nowhere"))
DRIVER = BUILD / "tests" / "fakes" / "cuda" / "driver"
IS_BUILT = (DRIVER / "libnccl.so.2").is_file() and (BUILD / "bin" / "yoke").is_file()
OLD = BUILD / "tests" / "fakes" / "cuda" / "old_nccl"
FOLDER = pathlib.Path(__file__).parent


def held_by_nccl():
    """Returns how many communicators, windows, registrations and blocks the fake NCCL of this process has given out."""
    try:
        return ctypes.CDLL("libnccl.so.2", mode=os.RTLD_NOLOAD | os.RTLD_NOW).fake_nccl_held()
    except OSError:
        return 0


def thread_count():
    return len(os.listdir("/proc/self/task"))


def settles(condition, seconds=10.):
    """Returns whether a condition comes true within the time, through the work of other threads."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


# ---- Ranks as processes ---------------------------------------------------------------------------------------------

# meet() is a barrier without the group. told() prints the result or error of a call, and the seconds of a failed
# call.
BEGIN = """
import gc, os, signal, sys, time, yoke
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
card, MEETING = f"cuda:{rank}", os.environ["YOKE_TEST_MEETING"]
def come(name):
    open(os.path.join(MEETING, f"{name}.{rank}"), "w").close()
def await_rank(name, which):
    while not os.path.exists(os.path.join(MEETING, f"{name}.{which}")): time.sleep(0.002)
def meet(name, ranks=range(size)):
    come(name)
    for which in ranks: await_rank(name, which)
def ones(count=4):
    return yoke.ones(count, device=card)
def told(call):
    begin = time.monotonic()
    try:
        found = call()
        print("fine", found, flush=True)
    except yoke.Error as error:
        print(type(error).__name__, f"{time.monotonic() - begin:.2f}", error, flush=True)
"""


class Said(NamedTuple):
    """Output of a rank, its status, the lifetime of the process, and the time of its end."""
    out: str
    status: int
    error: str
    seconds: float
    ended: float

    @property
    def lines(self):
        return self.out.splitlines()


def environment(**variables):
    """Returns the environment of a process on a machine with four cards."""
    own = {**os.environ, "PYTHONPATH": f"{FOLDER}:{os.environ.get('PYTHONPATH', '')}", "YOKE_NUM_THREADS": "1",
           "FAKE_CUDA_DEVICES": "9.0,9.0,9.0,9.0", **variables}
    own.pop("YOKE_DEVICE", None)
    return own


def start(program, size, environments=None, stopped=(), limit=60, **common):
    """Starts a process for each rank; returns their outputs.

    `environments` has variables of single ranks. `stopped` are ranks killed after all other ranks have ended.
    """
    base = environment(WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), **common)
    with tempfile.TemporaryDirectory() as meeting:
        begin = time.monotonic()
        ranks = []
        for rank in range(size):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "YOKE_TEST_MEETING": meeting, **(environments or {}).get(rank, {})}
            ranks.append(subprocess.Popen([sys.executable, "-c", BEGIN + program], env={**base, **own}, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        said = {}
        try:
            for rank in sorted(range(size), key=lambda each: each in stopped):
                if rank in stopped:
                    ranks[rank].kill()
                out, error = ranks[rank].communicate(timeout=limit)
                ended = time.monotonic()
                said[rank] = Said(out, ranks[rank].returncode, error, ended - begin, ended)
        finally:
            for each in ranks:
                each.kill()
                each.wait()
    return [said[rank] for rank in range(size)]
