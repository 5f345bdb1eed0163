"""Tensors held by checkpoint scopes are offloaded to host memory: equal bits, and little device memory. On the CPU no tensor moves."""
import contextlib
import functools
import gc
import threading

import pytest

import yoke
from conftest import DEVICE, EMULATED
from test_checkpoint import CASES, run
from yoke import nn

POLICIES = ["full", "matmul", ["gelu"], lambda op: "offload" if op.name == "linear" else "recompute"]


def blocks():
    yoke.manual_seed(3)
    return [nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 128), nn.GELU(), nn.Dropout(0.2), nn.Linear(128, 32)) for _ in range(5)]


def step(run):
    """Loss and gradients, and how much more memory stands between forward and backward than before."""
    nets, x = blocks(), yoke.randn((64, 32))
    yoke.synchronize()
    before, y = yoke.memory_allocated(DEVICE), x
    for net in nets:
        y = y + run(net, y)
    loss = (y * y).mean()
    yoke.synchronize()
    held = yoke.memory_allocated(DEVICE) - before
    loss.backward(retain_graph=True)
    loss.backward()
    return [loss.item(), *(p.grad.tolist() for net in nets for p in net.parameters())], held


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_waits_in_the_hosts_memory_has_the_same_bits(policy):
    plain, all_held = step(lambda net, y: net(y))
    offloaded, held = step(lambda net, y: yoke.checkpoint(net, y, policy=policy, offload=True))
    stays = step(lambda net, y: yoke.checkpoint(net, y, policy=policy if isinstance(policy, str) else "full"))
    assert offloaded == plain == stays[0]
    if DEVICE != "cpu":
        assert held < all_held / 3 and held <= stays[1]


@functools.cache
def plain(name):
    return run(CASES[name], contextlib.nullcontext)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_every_case_has_the_same_bits(name, policy):
    assert run(CASES[name], lambda: yoke.checkpoint_scope(policy, offload=True)) == plain(name)


def offloaded(x, w):
    with yoke.checkpoint_scope("matmul", offload=True):
        return yoke.tanh(x @ w)


def leaves():
    yoke.manual_seed(5)
    return [yoke.randn((32, 32)).requires_grad_() for _ in range(2)]


def wanted():
    x, w = leaves()
    return [g.tolist() for g in yoke.grad(yoke.tanh(x @ w).sum(), [x, w])]


def test_a_loss_that_nobody_walks_leaves_nothing():
    x, w = leaves()
    yoke.synchronize()
    before = yoke.memory_allocated(DEVICE)
    for _ in range(5):
        loss = offloaded(x, w).sum()
    del loss
    gc.collect()
    yoke.synchronize()
    assert yoke.memory_allocated(DEVICE) == before


def test_what_is_read_from_outside_may_not_change_and_a_clone_may():
    x, w = leaves()
    h = (x * 2.0).detach()
    with yoke.checkpoint_scope(offload=True):
        y = yoke.exp(h * w)
    with yoke.no_grad():
        h.add_(1.0)
    with pytest.raises(yoke.StateError, match="to recompute it, mul must read operand 0 as it was, but add_ has changed"):
        y.sum().backward()
    assert w.grad is None


def test_a_value_that_leaves_its_scope_may_not_change_either():
    x, w = leaves()
    with yoke.checkpoint_scope("matmul", offload=True):
        h = x @ w
        y = yoke.exp(h)
    with yoke.checkpoint_scope("matmul", offload=True):
        z = yoke.tanh(h * 3.0)
    with yoke.no_grad():
        h.mul_(2.0)
    for loss in (y.sum(), z.sum()):
        try:
            found = [g.tolist() for g in yoke.grad(loss, [x, w])]
        except yoke.StateError as error:
            assert "mul_ has changed" in str(error)
            continue
        x2, w2 = leaves()
        h2 = x2 @ w2
        expected = yoke.exp(h2) if loss is y else yoke.tanh(h2 * 3.0)
        assert found == [g.tolist() for g in yoke.grad(expected.sum(), [x2, w2])]


def test_two_threads_walk_one_record():
    x, w = leaves()
    loss, found = offloaded(x, w).sum(), []

    def walk():
        found.append([g.tolist() for g in yoke.grad(loss, [x, w], retain_graph=True)])

    threads = [threading.Thread(target=walk) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted()] * 2


@pytest.mark.skipif(DEVICE == "cpu", reason="the CPU has one stream")
def test_forward_and_backward_on_streams_of_their_own():
    x, w = leaves()
    yoke.synchronize()
    one, other = yoke.Stream(DEVICE), yoke.Stream(DEVICE)
    with yoke.stream(one):
        loss = offloaded(x, w).sum()
    other.wait_stream(one)
    with yoke.stream(other):
        found = yoke.grad(loss, [x, w])
    other.synchronize()
    assert [g.tolist() for g in found] == wanted()


def test_memory_whose_address_was_given_stays():
    x, w = leaves()
    with yoke.checkpoint_scope("matmul", offload=True):
        h = x @ w
        address = h.data_ptr()
        y = yoke.tanh(h)
    assert h.data_ptr() == address
    assert [g.tolist() for g in yoke.grad(y.sum(), [x, w])] == wanted()


def test_a_function_or_policy_that_raises_holds_nothing():
    x, w = leaves()
    yoke.synchronize()
    before = yoke.memory_allocated(DEVICE)

    def fails():
        offloaded(x, w)
        raise KeyError("fn")

    with pytest.raises(KeyError):
        yoke.checkpoint(fails, policy="matmul", offload=True)
    with pytest.raises(yoke.ValueError, match='returned 3 for .*"keep", "recompute" or "offload" is needed'):
        yoke.checkpoint(lambda: yoke.tanh(x @ w), policy=lambda op: 3, offload=True)
    gc.collect()
    yoke.synchronize()
    assert yoke.memory_allocated(DEVICE) == before


@pytest.mark.skipif(not EMULATED, reason="there is no fake driver, whose calls can fail")
def test_no_pinned_memory_is_an_error_that_holds_nothing(monkeypatch):
    x, w = (yoke.randn((1024, 1024)).requires_grad_() for _ in range(2))  # more than is kept at hand
    yoke.synchronize()
    before = yoke.memory_allocated(DEVICE)
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cudaHostAlloc=2")
    with pytest.raises(yoke.OutOfMemoryError, match="pinned"):
        offloaded(x, w)
    monkeypatch.delenv("FAKE_CUDA_FAIL")
    gc.collect()
    yoke.synchronize()
    assert yoke.memory_allocated(DEVICE) == before
    assert not yoke.saved_tensors(yoke.tanh(x * 2.0))[0].recomputed  # the scope is closed


@pytest.mark.skipif(not EMULATED, reason="there is no fake driver, whose calls can fail")
def test_no_memory_to_come_back_to_is_an_error_that_holds_nothing(monkeypatch):
    yoke.manual_seed(5)
    x, w = (yoke.randn((2048, 1024)).requires_grad_(), yoke.randn((1024, 16)).requires_grad_())
    yoke.synchronize()
    before = yoke.memory_allocated(DEVICE)

    def loss():
        with yoke.checkpoint_scope(["tanh"], offload=True):
            return (yoke.tanh(x * 0.5) @ w).sum()

    failing = loss()
    yoke.synchronize()
    yoke.empty_cache()
    monkeypatch.setenv("FAKE_CUDA_FAIL", "cudaMalloc=2,cuMemCreate=2,cudaMallocAsync=2")
    with pytest.raises(yoke.OutOfMemoryError):
        yoke.grad(failing, [x, w])
    monkeypatch.delenv("FAKE_CUDA_FAIL")
    del failing
    gc.collect()
    yoke.synchronize()
    assert yoke.memory_allocated(DEVICE) == before
    found, plain_loss = yoke.grad(loss(), [x, w]), (yoke.tanh(x * 0.5) @ w).sum()
    assert [g.tolist() for g in found] == [g.tolist() for g in yoke.grad(plain_loss, [x, w])]


def test_offload_is_true_or_false_and_not_for_budgets():
    with pytest.raises(yoke.TypeError, match="'offload' is 3; True or False"):
        yoke.checkpoint_scope(offload=3)
    with pytest.raises(yoke.ValueError, match="'offload' is True, but 'policy' is a MemoryBudget"):
        yoke.checkpoint_scope(yoke.MemoryBudget(0.5), offload=True)
