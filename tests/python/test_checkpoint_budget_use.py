"""A memory budget serves a single forward at a time: misuse raises an error and leaves no scope open. Threads may walk and report."""

import asyncio
import contextlib
import copy
import gc
import pickle
import threading
import time

import pytest

import yoke
from conftest import DEVICE
from test_checkpoint import bits, block, energy, leaf
from yoke import nn

pytestmark = pytest.mark.filterwarnings("ignore:a memory budget of .* is too small")


@pytest.mark.parametrize("amount, kind, text", [
    (0, yoke.ValueError, "'0'; give a share"), (0.0, yoke.ValueError, "above 0"), (-1, yoke.ValueError, "'-1'; give a share"),
    (float("nan"), yoke.ValueError, "'nan'"), (float("inf"), yoke.ValueError, "'inf'"), (2, yoke.ValueError, "'2', which is a share above 1"),
    ("2", yoke.ValueError, "bytes without their unit"), (1.5, yoke.ValueError, "a share above 1"), ("", yoke.ValueError, "amount"),
    ("2Gub", yoke.ValueError, "'Gub' is not a unit .did you mean 'GB'"), ("GiB", yoke.ValueError, "'GiB'; give"), ("0.5x", yoke.ValueError, "'x' is not a unit"),
    ("0B", yoke.ValueError, "'0B'"), ("-1KiB", yoke.ValueError, "'-1KiB'"), ("1e400GiB", yoke.ValueError, "'e400GiB' is not a unit"), ("99999999999GiB", yoke.ValueError, "amount"),
    (b"1KiB", yoke.TypeError, "'amount' is of type bytes"), (True, yoke.TypeError, "'amount' is True"), (None, yoke.TypeError, "'amount' is None"),
    ([0.5], yoke.TypeError, "amount"), ("1KiB\0", yoke.ValueError, "NUL"),
])
def test_an_amount_that_is_none(amount, kind, text):
    with pytest.raises(kind, match=text):
        yoke.MemoryBudget(amount)


@pytest.mark.parametrize("amount", [1, 1.0, 0.5, 1e-9, "0.5", "1", "2GiB", "1.5 MB", "3kib", "1B"])
def test_an_amount_that_is_one(amount):
    budget = yoke.MemoryBudget(amount)
    assert repr(budget) == f"MemoryBudget({amount!r})"
    for other in (copy.copy(budget), copy.deepcopy(budget), pickle.loads(pickle.dumps(budget))):
        assert other is not budget and repr(other) == repr(budget) and other.report() == (0,) * 11


def test_the_word_budget_is_no_policy():
    with pytest.raises(yoke.ValueError, match="'policy' is 'budget'; give .* or a MemoryBudget"):
        yoke.checkpoint_scope("budget")


def test_a_copied_module_has_a_budget_of_its_own():
    class Both(nn.Module):
        def __init__(self, other=None):
            super().__init__()
            self.block, self.other = block(), other

        def forward(self, x):
            if self.other is not None:
                thread = threading.Thread(target=lambda: told.append(attempt(self.other, x)))
                thread.start()
                thread.join()
            return self.block(x)

    def attempt(net, x):
        try:
            return net(x).shape
        except yoke.StateError as error:
            return str(error)

    told, budget, x = [], yoke.MemoryBudget(0.5), yoke.randn((4, 8))
    shared = Both().checkpoint_(budget)
    for other, answer in ((shared, "'policy' is a memory budget that is in use"), (copy.deepcopy(shared), "(4, 8)")):
        energy(Both(other).checkpoint_(budget)(x)).backward()
        assert answer in str(told.pop())


def refused(budget):
    with pytest.raises(yoke.StateError, match="checkpoint_.*'policy' is a memory budget that is in use by an open scope"):
        with yoke.checkpoint_scope(budget):
            pass


def usable(budget):
    x = leaf(8)
    with yoke.checkpoint_scope(budget):
        y = yoke.tanh(x * 2.0)
    y.sum().backward()
    assert bits([x.grad]) == bits(yoke.grad(yoke.tanh(x * 2.0).sum(), x))


def test_one_budget_in_two_threads_at_once():
    budget, told = yoke.MemoryBudget(0.5), []

    def elsewhere():
        try:
            refused(budget)
            told.append(budget.report().steps)  # report() works at any time
        except BaseException as error:
            told.append(error)

    with yoke.checkpoint_scope(budget):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert told == [0]
    usable(budget)


def test_a_context_that_holds_one_open():
    budget = yoke.MemoryBudget(0.5)

    def generator():
        with yoke.checkpoint_scope(budget):
            yield

    async def tasks():
        end = asyncio.Event()

        async def holder():
            with yoke.checkpoint_scope(budget):
                await end.wait()

        task = asyncio.create_task(holder())
        await asyncio.sleep(0)
        refused(budget)
        end.set()
        await task

    asyncio.run(tasks())
    usable(budget)
    holds = generator()
    next(holds)
    holds.close()
    usable(budget)
    holds = generator()
    next(holds)
    del holds
    usable(budget)
    scope = yoke.checkpoint_scope(budget)
    scope.__enter__()
    del scope
    usable(budget)


def test_a_thread_that_ends_leaves_the_budget_usable():
    budget, scopes = yoke.MemoryBudget(0.5), []

    def ends():
        scopes.append(yoke.checkpoint_scope(budget))
        scopes[0].__enter__()
        yoke.tanh(leaf(8) * 2.0)

    thread = threading.Thread(target=ends)
    thread.start()
    thread.join()
    refused(budget)
    scopes.clear()
    gc.collect()
    end = time.monotonic() + 10
    while time.monotonic() < end:  # the thread releases its scope after the last step awaited by join()
        with contextlib.suppress(yoke.StateError):
            return usable(budget)
    usable(budget)


def test_a_forward_over_two_devices():
    budget, x = yoke.MemoryBudget(0.4), leaf(64)

    def function():
        y = yoke.exp(yoke.tanh(x * 2.0))
        y = yoke.tanh(yoke.exp(y.to("cpu") * 0.1) * 0.1)
        with yoke.no_grad():
            shift = yoke.ones(64, device="cpu")
        y = yoke.exp(y + shift)
        shift.mul_(2.0)
        return yoke.exp(yoke.tanh(y.to(DEVICE) * 0.1)).sum()

    expected = bits(yoke.grad(function(), x))
    for _ in range(4):
        with yoke.checkpoint_scope(budget):
            loss = function()
        assert bits(yoke.grad(loss, x)) == expected
    assert budget.report().steps == 4


def test_a_budget_that_goes_while_its_scope_is_open():
    x = leaf(64)
    with yoke.checkpoint_scope(yoke.MemoryBudget(0.5)):
        y = yoke.exp(yoke.tanh(yoke.exp(x) * 0.1))
    assert bits(yoke.grad(y.sum(), x)) == bits(yoke.grad(yoke.exp(yoke.tanh(yoke.exp(x) * 0.1)).sum(), x))


def test_what_is_open_is_walked_in_its_own_thread_alone():
    budget, x, told = yoke.MemoryBudget("1KiB"), leaf(64), []

    def walk(y):
        try:
            told.append(bits(yoke.grad(y.sum(), x, retain_graph=True)))
        except yoke.StateError as error:
            told.append(str(error))

    with yoke.checkpoint_scope(budget):
        y = yoke.exp(yoke.tanh(yoke.exp(yoke.tanh(x * 2.0) * 0.1)) * 0.1)
        for target in (threading.Thread(target=walk, args=(y,)).run, None):
            if target is None:
                thread = threading.Thread(target=walk, args=(y,))
                thread.start()
                thread.join()
            else:
                target()
    walk(y)
    assert told[0] == told[2] and "still open in another thread; close the scope first" in told[1]


def test_two_threads_walk_the_losses_of_one_forward_while_another_reports():
    budget, net, x = yoke.MemoryBudget(0.4), nn.Sequential(*(block() for _ in range(4))), yoke.randn((16, 8)).requires_grad_(True)
    for _ in range(3):
        with yoke.checkpoint_scope(budget):
            loss = energy(net(x))
        expected, told = bits(yoke.grad(loss, x, retain_graph=True)), []

        def walk():
            for _ in range(5):
                told.append(bits(yoke.grad(loss, x, retain_graph=True)))
                budget.report()

        threads = [threading.Thread(target=walk) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told == [expected] * 10
