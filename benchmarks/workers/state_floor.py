"""Worker of state.py: time of copies and plain writes of the same bytes. state_floor.py DISK TMPFS

Cases: "copy" into memory written before, "copy fresh" into newly mapped memory, both one memcpy a tensor; "save disk|tmpfs" into
a new file, "over disk" over a former file: write and fsync.
"""

import ctypes
import os
import platform
import sys
import time

from bench import serve
from bench.state_cases import LARGE, TENSORS, WRITE, back, fresh, numbers, remove

memcpy = ctypes.CDLL(None).memcpy
memcpy.argtypes, memcpy.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), None
FOLDERS = dict(zip(("disk", "tmpfs"), sys.argv[1:]))
EACH = 4 * numbers(LARGE)


def filled():
    memory = fresh(LARGE)
    for i in range(0, LARGE, 1 << 20):
        memory[i:i + (1 << 20)] = bytes([i >> 20 & 255]) * (1 << 20)
    return memory


def copy(to, from_):
    """Copies all tensors. Views are local, so that the memory may be unmapped."""
    views = [ctypes.c_char.from_buffer(memory) for memory in (to, from_)]
    begin = [ctypes.addressof(view) for view in views]
    for i in range(TENSORS):
        memcpy(begin[0] + i * EACH, begin[1] + i * EACH, EACH)


SOURCE, TOUCHED = filled(), filled()
BYTES = memoryview(SOURCE)[:TENSORS * EACH]


def copy_fresh():
    back()
    start = time.perf_counter()
    memory = fresh(LARGE)
    copy(memory, SOURCE)
    took = time.perf_counter() - start
    memory.close()
    return took


def save(how, folder):
    path = f"{FOLDERS[folder]}/plain"
    if how == "save":
        remove(path)
    back()
    start = time.perf_counter()
    with open(path, "wb", buffering=0) as file:
        for i in range(0, len(BYTES), WRITE):
            file.write(BYTES[i:i + WRITE])
        os.fsync(file.fileno())
    took = time.perf_counter() - start
    if how == "save":
        remove(path)
    return took


def measure(case, count):
    if case == "copy fresh":
        return sum(copy_fresh() for _ in range(count)) / count
    if case == "copy":
        start = time.perf_counter()
        for _ in range(count):
            copy(TOUCHED, SOURCE)
        return (time.perf_counter() - start) / count
    return sum(save(*case.split()) for _ in range(count)) / count


serve(f"{' '.join(platform.libc_ver())}, one memcpy a tensor; write and fsync", measure)
