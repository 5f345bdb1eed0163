"""Steps before an OutOfMemoryError: garbage is collected and on_out_of_memory's functions are asked, amid any call.

Each test is a process with 64 MiB of the device of YOKE_TEST_DEVICE to take.
"""
import os
import subprocess
import sys

import pytest

import yoke

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")
pytestmark = pytest.mark.skipif(DEVICE == "cpu" and "san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes all of the address space")

PRELUDE = """
import gc, os, resource, sys
import yoke

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")

def block(mib):
    return yoke.zeros((mib << 18,), device=DEVICE)

class Ring:
    def __init__(self, mib):
        self.me, self.held = self, block(mib)

block(1)
optimizers = yoke.optim  # loads it before the limit is set
if DEVICE == "cpu":
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
"""


def run(script):
    """Returns the standard output and error of the script."""
    env = {**os.environ, "FAKE_CUDA_MEMORY": "64", "YOKE_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# {call without enough memory: (MiB of garbage, the call)}
GARBAGE = {
    "an op": (30, "x = block(24) + 1; assert x[7].item() == 1"),
    "a creation": (40, "x = yoke.full((10 << 20,), 3., device=DEVICE); assert x[7].item() == 3"),
    "a tensor of data": (34, "data = bytearray(20 << 20); x = yoke.tensor(data, device=DEVICE)"),
    "an index": (40, "index = yoke.zeros((20,), dtype=yoke.int64, device=DEVICE); x = block(2).reshape((1, -1))[index]; assert x.shape == (20, 1 << 19)"),
    "a list": (40, "x = yoke.split(block(11) + 1, [1 << 18, 10 << 18]); y = [each + 1 for each in x]"),
}


@pytest.mark.parametrize("call", GARBAGE)
@pytest.mark.parametrize("collector", ["gc.enable()", "gc.disable()"])
def test_garbage_is_collected_for(call, collector):
    mib, line = GARBAGE[call]
    run(f"{collector}\nRing({mib})\n{line}\nassert gc.isenabled() == ('enable' in '{collector}')")


def test_garbage_is_collected_amid_backward_and_its_gradients_are_right():
    run("""
gc.disable()
x = yoke.full((11 << 18,), 3., device=DEVICE, requires_grad=True)
loss = (x * x).sum()
Ring(40)
loss.backward()
assert yoke.amin(x.grad).item() == yoke.amax(x.grad).item() == 6
del loss
x.grad = None
loss = (x * x).sum()
Ring(40)
(wanted,) = yoke.grad(loss, x)
assert yoke.amin(wanted).item() == yoke.amax(wanted).item() == 6
""")


def test_garbage_is_collected_amid_a_step_and_a_load(tmp_path):
    run(f"""
gc.disable()
p = yoke.nn.Parameter(yoke.ones((11 << 18,), device=DEVICE))
p.sum().backward()
Ring(34)
yoke.optim.AdamW([p], lr=0.5, weight_decay=0.).step()
assert abs(yoke.amin(p).item() - 0.5) < 1e-3
p.grad = None
yoke.save({str(tmp_path / 'a')!r}, {{"p": p}})
del p
Ring(50)
x = yoke.load({str(tmp_path / 'a')!r}, device=DEVICE, mmap=False)["p"]
assert x.shape == (11 << 18,)
""")


# A failure is reported once, and leaves the former allocations in place.
def test_without_garbage_the_call_fails_and_keeps_nothing():
    run("""
x = yoke.ones((3 << 20,), device=DEVICE, requires_grad=True)
loss = (x * x).sum()
held = block(38)
before = yoke.memory_allocated(DEVICE)
for call in (lambda: block(40), lambda: held + 1, lambda: loss.backward(), lambda: held.sort()):
    try:
        call()
    except yoke.OutOfMemoryError as error:
        message = str(error)
    else:
        raise AssertionError("it had room")
    del error
    x.grad = None
    if call.__code__.co_names != ("loss", "backward"):
        assert yoke.memory_allocated(DEVICE) == before, (yoke.memory_allocated(DEVICE), before)
assert "no memory on" in message
""".replace("    del error\n", ""))


def test_a_function_is_asked_until_it_has_let_go_of_enough():
    out, _ = run("""
cache = [block(10) for _ in range(4)]

def let_go(device, bytes):
    print(device, bytes, len(cache))
    cache.pop()
    return True

with yoke.on_out_of_memory(let_go) as handle:
    x = block(40)
print(len(cache))
del x
cache += [block(10), block(10)]
try:
    block(40)
except yoke.OutOfMemoryError:
    print("refused")
handle.remove()
""")
    told = f"{yoke.device(DEVICE)}".split(":")[0]
    lines = out.splitlines()
    asked = [line for line in lines if line.startswith(told)]
    assert [line.split()[1:] for line in asked] == [[str(40 << 20), "4"], [str(40 << 20), "3"]], out
    assert lines[len(asked):] == ["2", "refused"], out


def test_functions_are_asked_in_order_and_three_times_at_most():
    out, _ = run("""
held = block(40)
asked = []
yoke.on_out_of_memory(lambda device, bytes: asked.append("a"))
gone = yoke.on_out_of_memory(lambda device, bytes: asked.append("gone"))
yoke.on_out_of_memory(lambda device, bytes: asked.append("b") or True)
gone.remove()
gone.remove()
for _ in range(2):
    try:
        held + 1
    except yoke.OutOfMemoryError:
        print("".join(asked))
    asked.clear()
""")
    assert out.split() == ["ababab", "ababab"]


def test_a_function_that_another_one_removes_is_not_asked():
    out, _ = run("""
held = block(40)
first = yoke.on_out_of_memory(lambda device, bytes: second.remove())
second = yoke.on_out_of_memory(lambda device, bytes: print("asked"))
try:
    held + 1
except yoke.OutOfMemoryError:
    print("refused")
""")
    assert out == "refused\n"


# A shared gradient is copied when it reaches its leaf, and the next gradient is added there.
def test_a_function_may_take_gradients_away_amid_backward():
    run("""
x = yoke.ones((6 << 18,), device=DEVICE, requires_grad=True)
y = yoke.ones((6 << 18,), device=DEVICE, requires_grad=True)
held = [block(36)]

def let_go(device, bytes):
    assert x.grad is None or x.grad.shape == x.shape
    x.grad = y.grad = None
    held.clear()
    return True

yoke.on_out_of_memory(let_go)
for _ in range(2):
    (x + y).backward(yoke.ones((6 << 18,), device=DEVICE))
assert yoke.amax(x.grad).item() >= 1 and not held
""")


# A function that raises has not helped. Its error goes to sys.unraisablehook, Ctrl-C goes to the script.
def test_a_function_may_raise_allocate_and_compute():
    out, err = run("""
held = [block(44)]

def wrong(device, bytes):
    raise KeyError("of the function")

def computes(device, bytes):
    try:
        block(60)
    except yoke.OutOfMemoryError:
        print("none within either")
    x = yoke.ones((4,), device=device, requires_grad=True)
    with yoke.enable_grad(), yoke.autocast():
        (x * 2).sum().backward()
    print(x.grad.sum().item())
    held.clear()
    return True

yoke.on_out_of_memory(wrong)
yoke.on_out_of_memory(computes)
x = yoke.ones((2 << 20,), device=DEVICE, requires_grad=True)
with yoke.autocast():
    loss = (x * x * x).sum()
    loss.backward()
    assert yoke.is_grad_enabled() and yoke.is_autocast_enabled()
assert (x.grad == 3).all().item() and yoke.is_grad_enabled() and not yoke.is_autocast_enabled()
del loss, x
held.append(block(40))

def interrupted(device, bytes):
    raise KeyboardInterrupt

yoke.on_out_of_memory(interrupted)
try:
    y = block(40)
    for _ in range(1000): pass
except KeyboardInterrupt:
    print("interrupted")
""")
    assert out.split("\n")[:2] == ["none within either", "8.0"] and "interrupted" in out, out
    assert "KeyError: 'of the function'" in err


# A call uses an argument to the call's end, even if the argument is closed meanwhile.
def test_a_function_may_close_the_arguments():
    run("""
a, b = yoke.ones((4 << 20,), device=DEVICE), yoke.ones((4 << 20,), device=DEVICE)
held = [block(20)]

def close(device, bytes):
    a.close()
    b.close()
    held.clear()
    return True

yoke.on_out_of_memory(close)
x = a + b
assert (x == 2).all().item() and a.closed
""")


def test_what_is_no_function_is_refused():
    with pytest.raises(yoke.TypeError, match=r"on_out_of_memory\(\): argument 'fn' must be a function \(device, bytes\), not int"):
        yoke.on_out_of_memory(3)
