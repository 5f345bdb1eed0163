"""Training with the allocator's cache off: reserved memory equals allocated memory at every step, and no memory is left."""
import os
import subprocess
import sys

import pytest

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")
DEVICES = ["cpu"] if DEVICE == "cpu" else [f"{DEVICE}:0", f"{DEVICE}:1"]

# A net whose halves lie on the first and the last device; the last batch is smaller.
SCRIPT = """
import ctypes, gc, os, sys
import yoke
from yoke import nn

first, last = sys.argv[1], sys.argv[-1]
devices = sorted({first, last})


def blocks():
    '''Blocks of device memory by the fake driver's count.'''
    return 0 if first == "cpu" else ctypes.CDLL("libcuda.so.1").fake_held(2)


def check(where):
    for device in devices:
        allocated, reserved = yoke.memory_allocated(device), yoke.memory_reserved(device)
        assert allocated == reserved, (where, device, allocated, reserved)


def train(checks):
    lower = nn.Sequential(nn.Linear(36, 40), nn.ReLU(), nn.Linear(40, 40)).to(first)
    upper = nn.Sequential(nn.ReLU(), nn.Linear(40, 10)).to(last)
    optimizer = yoke.optim.AdamW([{"params": list(half.parameters())} for half in (lower, upper)], lr=1e-2)
    losses = []
    for step in range(6):
        rows = 32 if step < 5 else 7
        x, target = yoke.randn((rows, 36), device=first), yoke.randint(0, 10, (rows,), device=last)
        hidden = lower(x)
        checks("forward")
        loss = yoke.cross_entropy(upper(hidden.to(last)), target)
        loss.backward()
        checks("backward")
        optimizer.step()
        optimizer.zero_grad()
        checks("step")
        losses.append(loss.item())
        checks("item")
    return losses


def left():
    gc.collect()
    return [(yoke.memory_allocated(device), yoke.memory_reserved(device)) for device in devices]


yoke.manual_seed(3)
yoke.ones((), device=first).item(), yoke.ones((), device=last).item()  # what is made once
yoke.set_caching(False)
[yoke.empty_cache(device) for device in devices]
before, held = left(), blocks()
assert not yoke.is_caching() and all(allocated == reserved for allocated, reserved in before), before
yoke.manual_seed(3)
off = train(check)
assert left() == before and blocks() == held, (left(), before, blocks(), held)

yoke.set_caching(True)
yoke.manual_seed(3)
on = train(lambda where: None)
assert on == off, (on, off)
[yoke.empty_cache(device) for device in devices]
assert left() == before and blocks() == held, (left(), before, blocks(), held)

yoke.manual_seed(3)
kept = yoke.randn((100, 100), device=first) @ yoke.randn((100, 100), device=first)
yoke.set_caching(False)  # amid a life: older blocks keep their chunks until these are idle
stats = yoke.memory_stats(first)
apart = stats["reserved_bytes.all.current"] - stats["allocated_bytes.all.current"]
assert apart == stats["inactive_split_bytes.all.current"], stats
train(lambda where: None)
assert yoke.memory_reserved(first) - yoke.memory_allocated(first) <= apart
del kept
assert left() == before, (left(), before)
"""


@pytest.mark.parametrize("conf", ["", "expandable_segments:False"])
def test_without_the_cache_nothing_is_reserved_that_nobody_has(conf):
    env = {**os.environ, "YOKE_ALLOC_CONF": conf, "FAKE_CUDA_DEVICES": "9.0,9.0"}
    if not conf:
        del env["YOKE_ALLOC_CONF"]
    env.pop("YOKE_NO_CACHING", None)
    done = subprocess.run([sys.executable, "-c", SCRIPT, *DEVICES], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
