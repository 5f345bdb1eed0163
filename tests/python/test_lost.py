"""A program that loses its device to a kernel's failure, on the fake device: the program gets the error, returns its memory and
ends.
"""

import os
import subprocess
import sys

import pytest

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")
pytestmark = pytest.mark.skipif(
    DEVICE != "cuda" or "tests/fakes/cuda" not in os.environ.get("YOKE_CUDA_LIB_PATH", ""), reason="only a fake device may be lost"
)

HOLDINGS = """
import os, yoke
x = yoke.arange(1000, dtype="float32", device="cuda")
kept = [x + i for i in range(50)]
large = [yoke.zeros(1 << 20, device="cuda") for _ in range(4)]
pinned = yoke.zeros(1000, device="cpu").pin_memory()
side, event = yoke.Stream("cuda"), yoke.Event(timing=True)
with yoke.stream(side):
    used = large[0] + 1
    event.record()
graph = yoke.Graph("cuda")
with graph.capture():
    out = x * 2
graph.replay()
yoke.synchronize("cuda")
os.environ["FAKE_CUDA_WORK_FAIL"] = "700"
def lose():
    y = x + 1
    yoke.synchronize("cuda")
"""


def lines_of(program):
    done = subprocess.run([sys.executable, "-c", HOLDINGS + program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_the_caller_is_told_and_one_line_says_what_became_of_the_rest():
    said, logged = lines_of("""
try:
    lose()
except yoke.DeviceLostError as error:
    print(error)
del kept, used, side, event, graph, out, pinned
yoke.empty_cache()
del large, x
yoke.empty_cache()
""")
    assert len(said) == 1 and "caused by earlier work" in said[0] and "compute-sanitizer" in said[0]
    assert len(logged) == 1 and "cuda:0: an earlier error was found at the release of memory and handles" in logged[0] and "700" in logged[0]


@pytest.mark.parametrize("seed", range(4))
def test_without_caches_each_release_meets_the_loss_and_it_is_one_line_all_the_same(seed, monkeypatch):
    monkeypatch.setenv("FAKE_CUDA_SEED", str(seed))  # started work fails at once, or later
    _, logged = lines_of("""
yoke.set_caching(False)
try:
    x + 1
except yoke.DeviceLostError:
    pass
del kept, large, used, side, event, graph, out, pinned, x
yoke.empty_cache()
""")
    assert len(logged) == 1 and "cuda:0: an earlier error was found at the release of memory and handles" in logged[0]


def test_without_caches_a_product_that_fails_says_why_whatever_its_workspace_meets(monkeypatch):
    monkeypatch.setenv("YOKE_CUBLASLT_AUTOTUNE", "1")  # the trials have a workspace
    said, _ = lines_of("""
yoke.set_caching(False)
del os.environ["FAKE_CUDA_WORK_FAIL"]
a = yoke.ones((16, 16), device="cuda")
yoke.synchronize("cuda")
os.environ["FAKE_CUDA_FAIL"] = "cublasLt's kernel=700"
try:
    a @ a
except yoke.DeviceLostError as error:
    print(error)
""")
    assert len(said) == 1 and "cublasLtMatmul" in said[0] and "caused by earlier work" in said[0] and "restart the process" in said[0]


def test_a_process_ends_quietly_with_everything_still_in_its_hands():
    said, logged = lines_of("""
try:
    lose()
except yoke.DeviceLostError as error:
    print("told")
""")
    assert said == ["told"] and len(logged) <= 1
