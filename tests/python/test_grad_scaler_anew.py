"""yoke.GradScaler if an iteration does not reach its end: a state loaded amid the iteration, a step that fails."""
import os
import subprocess
import sys

import pytest
from test_grad_scaler import one

import yoke


@pytest.mark.parametrize("begun", ["unscale_", "step"])
def test_a_loaded_state_begins_the_iteration_anew(begun):
    p, optimizer, scaler = one(init_scale=4.0)
    state = scaler.state_dict()
    scaler.scale(p.sum()).backward()
    getattr(scaler, begun)(optimizer)
    scaler.load_state_dict(state)
    with pytest.raises(yoke.StateError, match="no gradients were checked"):
        scaler.update()
    before = p.tolist()
    optimizer.zero_grad()
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]
    scaler.step(optimizer)
    assert p.tolist() == [each - 1 for each in before]
    scaler.update()


SHORT_OF_MEMORY = """
import resource, yoke
p = yoke.nn.Parameter(yoke.ones(1 << 24))
optimizer, scaler = yoke.optim.AdamW([p], lr=0.5, weight_decay=0.), yoke.GradScaler(init_scale=4., growth_interval=1)
scaler.scale(p.sum()).backward()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20), limits[1]))
try:
    scaler.step(optimizer)  # whose state takes 128 MiB
except yoke.OutOfMemoryError:
    print(p[0].item(), p.grad[0].item())
resource.setrlimit(resource.RLIMIT_AS, limits)
"""


def test_a_step_that_found_no_memory_may_be_made_again_or_left():
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer takes all of the address space")
    for way in "scaler.step(optimizer)", "scaler.update(4.); optimizer.zero_grad(); scaler.scale(p.sum()).backward(); scaler.step(optimizer)":
        program = SHORT_OF_MEMORY + way + "\nscaler.update(); print(p[0].item(), p.grad[0].item(), scaler.get_scale())"
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "YOKE_NO_CACHING": "1"}, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "1.0 1.0\n0.5 1.0 8.0\n"), (way, done.stderr)
