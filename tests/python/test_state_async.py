"""Saves beside the running script: saved values, the report of the end, and waits."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import yoke
from conftest import DEVICE
from op_table import to_numpy
from yoke import nn, optim

MANY = 40  # tensors of 256 KiB: the writer is at work while the script goes on


def state(count=MANY):
    yoke.manual_seed(1)
    return {f"t{i}": yoke.randn((256, 256)) for i in range(count)}


def arrays(tensors):
    return {name: to_numpy(tensor).copy() for name, tensor in tensors.items()}


def check(path, wanted):
    found = arrays(yoke.load(path))
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


WRITES = {
    "in place": lambda x: x.mul_(2),
    "fill": lambda x: x.fill_(3),
    "index": lambda x: x.__setitem__(slice(1, 3), 0.5),
    "copy": lambda x: x.copy_(yoke.zeros((256, 256))),
    "from the host": lambda x: x.copy_(yoke.zeros((256, 256), device="cpu")),
    "a view": lambda x: x.T[0].add_(1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_the_moment_of_the_call_is_saved(tmp_path, write):
    tensors = state()
    wanted = arrays(tensors)
    work = yoke.save(tmp_path / "a", tensors, blocking=False)
    for tensor in tensors.values():
        write(tensor)
    work.wait()
    assert work.done() and work.progress()[0] == work.progress()[1] == os.path.getsize(tmp_path / "a")
    check(tmp_path / "a", wanted)
    assert not np.array_equal(to_numpy(tensors["t0"]), wanted["t0"])


def test_training_goes_on_from_the_same_bits(tmp_path):
    yoke.manual_seed(2)
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    optimizer = optim.AdamW(net.parameters(), lr=0.1)
    x = yoke.randn((16, 256))

    def step():
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()

    step()
    for i in range(4):
        whole = {"net": net, "optimizer": optimizer}
        yoke.save(tmp_path / "blocking", whole)
        work = yoke.save(tmp_path / "beside", whole, blocking=False)
        step()
        step()
        work.wait()
        assert (tmp_path / "beside").read_bytes() == (tmp_path / "blocking").read_bytes(), i


def test_what_a_replay_writes_is_kept(tmp_path):
    x, made = yoke.zeros((256, 256)), []
    graph = yoke.Graph()
    with graph.capture():
        x.add_(1)
        made.append(x * 2)
    graph.replay()
    wanted = arrays({"x": x, "made": made[0]})
    work = yoke.save(tmp_path / "a", {"x": x, "made": made[0]}, blocking=False)
    graph.replay()
    work.wait()
    check(tmp_path / "a", wanted)


def test_a_capture_refuses(tmp_path):
    x = yoke.zeros(3)
    with pytest.raises(yoke.StateError, match="save"), yoke.Graph().capture():
        yoke.save(tmp_path / "a", {"x": x}, blocking=False)
    assert os.listdir(tmp_path) == []


def test_tensors_that_do_not_lie_row_major(tmp_path):
    x = yoke.arange(12, dtype=yoke.float32).reshape(3, 4)
    tensors = {"t": x.T, "step": x[:, ::2], "same": x, "wide": yoke.ones(1).expand(5), "none": yoke.zeros((0, 3))}
    wanted = arrays(tensors)
    work = yoke.save(tmp_path / "a", tensors, blocking=False)
    x.fill_(0)
    work.wait()
    check(tmp_path / "a", wanted)


def test_what_is_dropped_and_replaced_meanwhile(tmp_path):
    tensors = state()
    wanted = arrays(tensors)
    work = yoke.save(tmp_path / "a", tensors, blocking=False)
    for name in list(tensors):
        tensors[name] = tensors[name] * 0
    work.wait()
    check(tmp_path / "a", wanted)


def test_a_save_waits_for_the_one_before(tmp_path):
    tensors, wanted = state(), []
    for i in range(4):
        wanted.append(arrays(tensors))
        yoke.save(tmp_path / f"{i}", tensors, blocking=i == 3)
        for tensor in tensors.values():
            tensor.add_(1)
    for i, each in enumerate(wanted):
        check(tmp_path / f"{i}", each)


def test_many_threads_save_at_once(tmp_path):
    tensors = state(8)
    wanted = arrays(tensors)

    def run(number):
        for i in range(5):
            yoke.save(tmp_path / f"{number}", tensors, blocking=False).wait()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(4):
        check(tmp_path / f"{n}", wanted)


def test_numpys_memory_is_let_go_by_the_end(tmp_path):
    array = np.arange(1 << 16, dtype=np.float32)
    wanted = array.copy()
    tensor = yoke.from_dlpack(array) if DEVICE == "cpu" else yoke.tensor(array)
    work = yoke.save(tmp_path / "a", {"x": tensor}, blocking=False)
    del tensor, array
    work.wait()
    check(tmp_path / "a", {"x": wanted})


# ---- Reports of the end, in separate processes ------------------------------------------------------------------

HEAD = """
import os, resource, sys, time, yoke
folder = sys.argv[1]
def few_bytes():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
def all_bytes():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
x = yoke.ones((256, 256))
def end_of(work):
    while not work.done():
        time.sleep(0.001)
def save(name="a"):
    return yoke.save(os.path.join(folder, name), {"x": x}, blocking=False)
"""


def run(tmp_path, program, **options):
    done = subprocess.run([sys.executable, "-c", HEAD + program, str(tmp_path)], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr
    return done


def test_wait_tells_a_failure_each_time_and_the_next_save_does_not(tmp_path):
    run(tmp_path, """
few_bytes()
work = save()
for _ in range(2):
    try:
        work.wait()
        raise SystemExit("no error")
    except OSError as error:
        assert error.errno == 27 and folder in str(error), error
assert work.done() and os.listdir(folder) == []
all_bytes()
save().wait()
""")
    assert os.listdir(tmp_path) == ["a"]


def test_the_next_save_tells_what_nobody_waited_for(tmp_path):
    run(tmp_path, """
few_bytes()
end_of(save())
all_bytes()
try:
    yoke.save(os.path.join(folder, "b"), {"x": x}, blocking=False)
    raise SystemExit("no error")
except OSError as error:
    assert error.errno == 27 and "the save before" in str(error) and os.path.join(folder, "a") in str(error), error
assert os.listdir(folder) == []
save("b")
""")
    assert os.listdir(tmp_path) == ["b"]


# The last save before a process ends is written, although an earlier save failed.
def test_a_save_that_blocks_logs_the_failure_of_the_one_before(tmp_path):
    done = run(tmp_path, """
few_bytes()
end_of(save())
all_bytes()
yoke.save(os.path.join(folder, "b"), {"x": x})
""")
    assert "an earlier save, without a wait, failed" in done.stderr and str(tmp_path / "a") in done.stderr
    assert os.listdir(tmp_path) == ["b"]


def test_the_end_of_the_process_waits_and_logs(tmp_path):
    run(tmp_path, "save()")
    assert yoke.load(tmp_path / "a")["x"].sum().item() == 65536
    done = run(tmp_path, "few_bytes(); save('b')")
    assert "an earlier save, without a wait, failed" in done.stderr and str(tmp_path / "b") in done.stderr
    assert os.listdir(tmp_path) == ["a"]


def test_shutdown_waits(tmp_path):
    run(tmp_path, "save(); yoke.shutdown(); os._exit(0)")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(DEVICE != "cpu", reason="a forked child has the CPU alone")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's allocator may be locked by the thread that saves, which the child does not have")
def test_a_forked_child_is_told_and_saves_itself(tmp_path):
    run(tmp_path, """
big = {f"t{i}": yoke.ones((1 << 20,)) for i in range(16)}
work = yoke.save(os.path.join(folder, "a"), big, blocking=False)
child = os.fork()
if child == 0:
    try:
        work.wait()
    except yoke.Error as error:
        assert "FORKED" in repr(error) or "forked" in str(error), error
    assert work.done()
    for tensor in big.values():
        tensor.fill_(2)
    save("b").wait()
    assert yoke.load(os.path.join(folder, "b"))["x"].sum().item() == 65536
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
work.wait()
assert yoke.load(os.path.join(folder, "a"))["t9"].sum().item() == 1 << 20
""")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.skipif(DEVICE != "cpu", reason="what a device's copies need is pinned")
def test_without_room_for_copies_it_blocks(tmp_path):
    done = run(tmp_path, """
big = yoke.ones((1 << 26,))
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20), resource.RLIM_INFINITY))
work = yoke.save(os.path.join(folder, "a"), {"x": big}, blocking=False)
assert work.done()
""")
    assert "not enough host memory" in done.stderr
    assert os.path.getsize(tmp_path / "a") > 1 << 28


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes all of the address space")
def test_what_fits_without_the_room_of_the_last_copies_gets_it(tmp_path):
    """A copy of 256 MiB waits for the next save; 320 MiB fit where 192 MiB are left beside it."""
    done = run(tmp_path, """
big = yoke.ones((1 << 26,), device="cpu")
yoke.save(os.path.join(folder, "a"), {"x": big}, blocking=False).wait()
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + (192 << 20), resource.RLIM_INFINITY))
more = yoke.zeros((80 << 20,), device="cpu")
try:
    yoke.zeros((80 << 20,), device="cpu")
except yoke.OutOfMemoryError:
    print("refused")
del more
yoke.save(os.path.join(folder, "b"), {"x": big}, blocking=False).wait()  # what the allocator keeps goes for the copies
""")
    assert done.stdout == "refused\n" and "not enough host memory" not in done.stderr, done.stdout + done.stderr


def test_no_copies_are_left_where_threads_save_and_fail(tmp_path):
    run(tmp_path, """
import threading
few_bytes()
big = {"x": yoke.ones((1 << 20,))}
def fail_often():
    for i in range(25):
        try:
            yoke.save(os.path.join(folder, f"{threading.get_ident()}-{i}"), big, blocking=False).wait()
        except OSError:
            pass
threads = [threading.Thread(target=fail_often) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
big.clear()
all_bytes()
for _ in range(2):
    try:
        save().wait()
    except OSError:
        pass
del x
assert yoke.memory_allocated("cpu") == 0, yoke.memory_allocated("cpu")
""")


def test_no_thread_is_left(tmp_path):
    run(tmp_path, """
def threads():
    return len(os.listdir("/proc/self/task"))
save("a").wait(); yoke.save(os.path.join(folder, "b"), {"x": x})
before = threads()
for i in range(5):
    save(str(i))
yoke.save(os.path.join(folder, "c"), {"x": x})
assert threads() == before, threads()
""")
