"""Worker of state.py: PyTorch's distributed checkpoints, torch.save and torch.load, and the package safetensors. state_torch.py DISK
TMPFS

Cases: "stall KIND SECONDS", as in state_yoke.py, of torch.distributed.checkpoint.async_save. KIND is the way of its copies:
default, kept (one DefaultStager for all saves, which keeps its memory) or async (the same, with copies in a thread). "save KIND"
and "peak KIND" for KIND torch or safetensors write a new file, with the fsync missing in these libraries; "copy KIND" and "map
KIND" are loads.
"""

import functools
import os
import sys
import time

import safetensors
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from bench import hold_torch, serve
from bench.state_cases import LARGE, TENSORS, back, numbers, peak, remove, repeated, stall, timed
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

hold_torch(torch, 1)
DISK = sys.argv[1]
STATE = {f"layer.{i}.saved": torch.ones(numbers(LARGE)) for i in range(TENSORS)}
WIDTH = 512


def step():
    for tensor in STATE.values():
        tensor.add_(1)


@functools.lru_cache(None)
def work(seconds):
    a = torch.randn(WIDTH, WIDTH)
    return repeated(lambda: a @ a, seconds)


@functools.lru_cache(None)
def stager(kind):
    if kind == "default":
        return None
    return DefaultStager(StagingOptions(use_pinned_memory=False, use_shared_memory=False, use_async_staging=kind == "async",
                                        use_non_blocking_copy=False))


def save_beside(kind):
    response = dcp.async_save(STATE, checkpoint_id=f"{DISK}/dcp", async_stager=stager(kind), no_dist=True)
    if kind == "async":
        return response.staging_completion.result, response.upload_completion.result
    return lambda: None, response.result


@functools.lru_cache(None)
def saved_once(kind):
    save_beside(kind)[1]()


def stalled(kind, seconds):
    saved_once(kind)
    back()
    return stall(step, lambda: save_beside(kind), work(float(seconds)))[0]


SAVE = {"torch": torch.save, "safetensors": safetensors.torch.save_file}


def save(kind, count=timed):
    path = f"{DISK}/{kind}"
    remove(path)
    back()

    def all_of_it():
        SAVE[kind](STATE, path)
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.close(file)
    counted = count(all_of_it)
    remove(path)
    return counted


@functools.lru_cache(None)
def stored(kind):
    path = f"{DISK}/stored-{kind}"
    SAVE[kind](STATE, path)
    return path


LOAD = {"copy torch": torch.load, "copy safetensors": functools.partial(safetensors.torch.load_file, backend="pread"),
        "map torch": functools.partial(torch.load, mmap=True), "map safetensors": safetensors.torch.load_file}


def load(case):
    path = stored(case.split()[1])
    back()
    start = time.perf_counter()
    loaded = LOAD[case](path)
    took = time.perf_counter() - start
    assert len(loaded) == TENSORS
    return took


ONCE = {"stall": stalled, "save": save, "peak": lambda kind: save(kind, peak)}


def measure(case, count):
    what, *more = case.split()
    return sum(load(case) if case in LOAD else ONCE[what](*more) for _ in range(count)) / count


serve(f"PyTorch {torch.__version__}, safetensors {safetensors.__version__}", measure)
