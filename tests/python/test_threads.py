"""The number of threads is a matter of speed alone: bits, and what becomes of a team when the process forks or ends work."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import yoke
from yoke import nn

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
COUNTS = (1, 2, 3, 8)


@pytest.fixture(autouse=True)
def number_of_threads():
    before = yoke.get_num_threads()
    yield
    yoke.set_num_threads(before)


def bits_by_threads(compute):
    """The distinct results, as bytes, of compute() with each number of threads."""
    found = set()
    for threads in COUNTS:
        yoke.set_num_threads(threads)
        found.add(compute())
    return found


def bits(x):
    return x.to(yoke.float32).numpy().tobytes()  # exact from a narrower dtype


# ---- products --------------------------------------------------------------------------------------------------------


def extents(rng, most):
    while True:
        m, n, k = (int(v) for v in np.exp(rng.uniform(0, 7, 3)))
        if min(m, n, k) > 0 and 4096 < m * n * k < most:
            return m, n, k


def matrix(rng, batch, rows, columns, layout, dtype):
    """[batch, rows, columns] by rows or by columns, with or without a gap between them."""
    shape = (batch, columns, rows) if "columns" in layout else (batch, rows, columns)
    gap = 3 if "gap" in layout else 0
    x = yoke.tensor(rng.standard_normal((*shape[:2], shape[2] + gap)).astype(np.float32)).to(dtype)[:, :, :shape[2]]
    return x.transpose(1, 2) if "columns" in layout else x


LAYOUTS = ["rows", "columns", "rows gap", "columns gap"]


@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16], ids=str)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_a_product_has_the_same_bits(dtype, left, right):
    rng = np.random.default_rng(LAYOUTS.index(left) * 4 + LAYOUTS.index(right))
    for sample in range(100 if "YOKE_SOAK" in os.environ else 12):
        m, n, k = extents(rng, 3e7)
        batch = 1 + sample % 4 % 3 * 3
        x, y = matrix(rng, batch, m, k, left, dtype), matrix(rng, batch, k, n, right, dtype)
        assert len(bits_by_threads(lambda: bits(yoke.matmul(x, y)))) == 1, (batch, m, n, k)


@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16], ids=str)
@pytest.mark.parametrize("m, n, k", [(1, 3000, 700), (700, 1, 3000), (1, 1, 100_000), (128, 512, 784), (512, 784, 128), (17, 2000, 64),
                                     (2000, 17, 64), (97, 1001, 33), (64, 64, 4000)])
def test_linear_with_its_bias_and_activation_has_the_same_bits(dtype, m, n, k):
    rng = np.random.default_rng(m + n + k)
    x, w, b = (yoke.tensor(rng.standard_normal(s).astype(np.float32)).to(dtype) for s in ((m, k), (n, k), (n,)))
    assert len(bits_by_threads(lambda: bits(yoke.linear(x, w, b)))) == 1
    assert len(bits_by_threads(lambda: bits(yoke.gelu(yoke.linear(x, w, b))))) == 1


def test_a_cut_product_is_the_product():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((150, 1000)), rng.standard_normal((1000, 333))
    for threads in COUNTS:
        yoke.set_num_threads(threads)
        x, y = (yoke.tensor(v.astype(np.float32)) for v in (a, b))
        np.testing.assert_allclose(yoke.matmul(x, y).numpy(), a @ b, atol=2e-3)


# ---- trainings -------------------------------------------------------------------------------------------------------


@pytest.fixture
def examples():
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.mark.parametrize("amp", ["off", "bf16"])
def test_the_main_jobs_losses_are_the_same(examples, amp):
    import fashion_mnist

    rng = np.random.default_rng(1)
    images = yoke.tensor(rng.integers(0, 256, (1024, 784)).astype(np.uint8))
    labels = yoke.tensor(rng.integers(0, 10, 1024))

    def losses():
        yoke.manual_seed(3)
        net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return tuple(fashion_mnist.train(net, images, labels, 1, amp))

    found = bits_by_threads(losses)
    assert len(found) == 1
    assert len(set(next(iter(found)))) == 8  # eight steps


@pytest.mark.parametrize("amp", ["off", "bf16"])
def test_the_gpts_losses_are_the_same(examples, amp):
    import gpt

    text = yoke.tensor(list(np.random.default_rng(2).integers(0, 256, 4000)), dtype=yoke.int64)

    def losses():
        yoke.manual_seed(3)
        net = gpt.GPT(2, 128, 4, 64)
        step = gpt.make_step(net, text, 4, 4, amp=amp)[0]
        return tuple(step().item() for _ in range(4))

    found = bits_by_threads(losses)
    assert len(found) == 1
    assert len(set(next(iter(found)))) == 4


# ---- processes -------------------------------------------------------------------------------------------------------


def child_status(body):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os._exit(0 if body() else 1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer's allocator hangs in a fork beside a thread")
def test_children_that_are_forked_amid_work_compute_with_a_team():
    yoke.set_num_threads(3)
    x = yoke.randn((300, 300))
    want, stop = bits(x @ x), threading.Event()

    def work():
        while not stop.is_set():
            assert bits(x @ x) == want

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(200 if "YOKE_SOAK" in os.environ else 15):
            assert child_status(lambda: yoke.get_num_threads() == 3 and bits(x @ x) == want) == 0
    finally:
        stop.set()
        worker.join()
    assert bits(x @ x) == want


def settled_threads(count):
    """Returns the number of the process's threads, or `count` if the process reaches `count` within some seconds: a joined thread
    stays listed for a moment.
    """
    deadline = time.monotonic() + 10
    while len(os.listdir("/proc/self/task")) != count and time.monotonic() < deadline:
        time.sleep(0.001)
    return len(os.listdir("/proc/self/task"))


def test_shutdown_ends_the_team_and_the_next_call_makes_it_anew():
    yoke.set_num_threads(4)
    yoke.shutdown()
    time.sleep(0.05)  # earlier joined threads have gone
    others = len(os.listdir("/proc/self/task"))
    x = yoke.randn((300, 300))
    want = bits(x @ x)
    for _ in range(3):
        assert settled_threads(others + 3) == others + 3
        yoke.shutdown()
        assert settled_threads(others) == others
        assert bits(x @ x) == want


def test_an_idle_process_uses_no_processor():
    yoke.set_num_threads(4)
    x = yoke.randn((300, 300))
    for _ in range(50):
        x @ x
    time.sleep(0.02)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.005


SMALL_STACK = """
import threading, yoke
def layers(dtype):
    x = yoke.randn((1500, 130)).to(dtype=dtype).requires_grad_(True)
    yoke.batch_norm(x, None, None, training=True).sum().backward()
    yoke.batch_norm_add_relu(x, x, training=True).sum().backward()
    y = yoke.randn((4, 8, 9, 130)).to(dtype=dtype).requires_grad_(True)
    yoke.group_norm(y, 4).sum().backward()
    (yoke.softmax(x, -1) * x).sum((0,)).sum().backward()
yoke.set_num_threads(2)
layers(yoke.float32)
threading.stack_size(65536)
for dtype in (yoke.float32, yoke.float64, yoke.bfloat16, yoke.float16):
    thread = threading.Thread(target=layers, args=(dtype,))
    thread.start()
    thread.join()
print("lives")
"""


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="a sanitizer needs more stack")
def test_layers_run_in_a_thread_with_a_stack_of_64_kib():
    done = subprocess.run([sys.executable, "-c", SMALL_STACK], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "lives", done.stderr or f"status {done.returncode}"


def test_rows_are_shared_however_few_there_are():
    """Sixty-four rows of a vocabulary are work for a team: its worker has computed too."""
    yoke.set_num_threads(2)
    x = yoke.randn((64, 20_000))
    for op in (lambda: yoke.softmax(x, -1), lambda: yoke.logsumexp(x, (1,)), lambda: yoke.argmax(x, axis=1)):
        before, calls = seconds_of_workers(), 0
        while seconds_of_workers() <= before + 0.001:  # on a busy machine the caller may be done before they run
            op()
            calls += 1
            assert calls < 4000


def test_work_of_few_parts_leaves_the_team_as_it_is():
    """Threads that end and start again cost more than a small convolution."""
    yoke.set_num_threads(6)
    large = yoke.ones((1 << 20,))
    for _ in range(4000):
        large + large
        if len(workers()) == 5:  # each thread sets its name as it begins to run
            break
    before = {task.name for task in workers()}
    assert len(before) == 5
    x, weight = (yoke.randn(shape).requires_grad_(True) for shape in ((2, 64, 28, 28), (64, 64, 3, 3)))
    for _ in range(3):
        yoke.conv2d(x, weight, padding=1).sum().backward()
        yoke.matmul(yoke.ones((2, 300, 300)), yoke.ones((2, 300, 300)))
        assert {task.name for task in workers()} == before


def workers():
    return [task for task in pathlib.Path("/proc/self/task").iterdir() if re.match(r"yoke-\d", (task / "comm").read_text())]


def seconds_of_workers():
    """Returns the processor time of the team's threads."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in workers()) / 1e9
