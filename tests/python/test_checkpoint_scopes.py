"""Checkpoint scopes belong to the opening context and thread. Misused scopes raise errors and hold no memory."""

import asyncio
import contextlib
import contextvars
import copy
import gc
import pickle
import threading

import pytest

import yoke
from conftest import DEVICE
from yoke import nn


def dropped():
    """Returns whether saved tensors of ops made now are dropped, judged by the effect."""
    x = yoke.ones(4).requires_grad_(True)
    (saved,) = yoke.saved_tensors(yoke.tanh(x * 2.0))
    return saved.recomputed


def opened(policy=None):
    scope = yoke.checkpoint_scope(policy)
    scope.__enter__()
    return scope


def close(scope):
    scope.__exit__(None, None, None)


def in_thread(function):
    told = []

    def body():
        try:
            told.append(function())
        except Exception as error:
            told.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return told.pop()


@pytest.fixture(autouse=True)
def nothing_is_left():
    assert not dropped()
    before = yoke.memory_allocated(DEVICE)
    yield
    gc.collect()
    assert not dropped() and not in_thread(dropped)
    yoke.synchronize()
    assert yoke.memory_allocated(DEVICE) == before


def test_a_scope_may_be_used_again_and_within_itself():
    scope = yoke.checkpoint_scope()
    for _ in range(2):
        with scope:
            assert dropped()
            with scope:
                assert dropped()
            assert dropped()
        assert not dropped()


def test_closing_an_outer_one_first_is_an_error_that_changes_nothing():
    outer, inner = opened(), opened()
    with pytest.raises(yoke.StateError, match="not the innermost open scope.*; close its inner scopes first"):
        close(outer)
    assert dropped()
    close(inner)
    assert dropped()
    close(outer)


def test_closing_twice_or_unopened_is_an_error():
    scope = yoke.checkpoint_scope()
    for _ in range(2):
        with pytest.raises(yoke.StateError, match="checkpoint_scope: this scope is not open"):
            close(scope)
        with scope:
            pass


def test_another_thread_can_neither_close_a_scope_nor_log_into_it():
    scope = opened()
    assert not in_thread(dropped)
    error = in_thread(lambda: close(scope))
    assert isinstance(error, yoke.StateError)
    assert f"was opened in thread {threading.get_ident()}, and thread " in str(error)
    assert dropped()
    context = contextvars.copy_context()
    assert in_thread(lambda: context.run(dropped)) is False
    assert asyncio.run(asyncio.to_thread(dropped)) is False
    close(scope)


def test_one_that_nobody_closes_goes_with_its_last_reference():
    x = yoke.ones(4).requires_grad_(True)
    scope = opened()
    y = yoke.tanh(x * 2.0)
    del scope
    gc.collect()
    assert not dropped()
    y.sum().backward()
    expected = yoke.grad(yoke.tanh(x * 2.0).sum(), x)
    assert x.grad.tolist() == expected[0].tolist()


def test_an_outer_one_that_nobody_closes_waits_for_those_within():
    x = yoke.ones(4).requires_grad_(True)
    outer = opened()
    y = x * 2.0
    inner = opened()
    z = yoke.tanh(y)
    del outer
    gc.collect()
    assert dropped()
    close(inner)
    assert not dropped()
    (z * yoke.exp(y)).sum().backward()
    z = x * 2.0
    assert x.grad.tolist() == yoke.grad((yoke.tanh(z) * yoke.exp(z)).sum(), x)[0].tolist()


def test_one_that_is_collected_in_another_thread_leaves_its_own():
    held = [opened()]
    assert dropped()
    in_thread(held.clear)
    gc.collect()
    assert not dropped()


def test_a_thread_that_ends_takes_its_scope_along():
    held = []
    x = yoke.ones(4).requires_grad_(True)
    y = in_thread(lambda: held.append(opened()) or yoke.tanh(x * 2.0))
    with pytest.raises(yoke.StateError, match="scope dropped.* is still open in another thread"):
        y.sum().backward()
    with pytest.raises(yoke.StateError, match="was opened in thread"):
        close(held[0])


def test_generators_that_end_in_another_order_leave_nothing():
    def late():
        with yoke.checkpoint_scope():
            yield dropped()

    a, b = late(), late()
    assert next(a) and next(b)
    with pytest.raises(yoke.StateError, match="close its inner scopes first") as told:
        a.close()
    del a, told
    gc.collect()
    b.close()
    assert not dropped()
    a = late()
    assert next(a)
    del a
    gc.collect()
    assert not dropped()


def test_overlapping_tasks_have_each_their_own():
    x = yoke.ones(4).requires_grad_(True)

    async def task(name, own, others, seen):
        y = x * 3.0
        with yoke.checkpoint_scope():
            y = yoke.tanh(y)
            own.set()
            await others.wait()
            y = yoke.exp(y * 2.0)
            await asyncio.sleep(0)
            seen[name] = dropped()
            y = y * y
        seen[name, "after"] = dropped()
        return y

    async def main():
        a, b, seen = asyncio.Event(), asyncio.Event(), {}
        tasks = [asyncio.create_task(task("a", a, b, seen)), asyncio.create_task(task("b", b, a, seen))]
        await asyncio.sleep(0)
        assert not dropped()
        return [await each for each in tasks], seen

    results, seen = asyncio.run(main())
    assert seen == {"a": True, ("a", "after"): False, "b": True, ("b", "after"): False}
    y = yoke.exp(yoke.tanh(x * 3.0) * 2.0)
    expected = yoke.grad((y * y).sum(), x)[0].tolist()
    for result in results:
        assert yoke.grad(result.sum(), x)[0].tolist() == expected


def test_tasks_made_inside_share_the_scope_of_their_thread():
    x = yoke.ones(4).requires_grad_(True)

    async def child(factor, policy):
        y = x * factor
        await asyncio.sleep(0)
        with yoke.checkpoint_scope(policy):
            y = yoke.tanh(y)
            await asyncio.sleep(0)
            y = yoke.exp(y)
            await asyncio.sleep(0)
            return y * y

    async def main():
        with yoke.checkpoint_scope():
            parts = await asyncio.gather(child(1.0, None), child(2.0, "matmul"), child(3.0, ["tanh"]))
            return parts[0] * parts[1] * parts[2]

    def plain(factor):
        y = yoke.exp(yoke.tanh(x * factor))
        return y * y

    result = asyncio.run(main())
    expected = yoke.grad((plain(1.0) * plain(2.0) * plain(3.0)).sum(), x)[0].tolist()
    assert yoke.grad(result.sum(), x)[0].tolist() == expected


def test_a_task_that_outlives_the_scope_it_was_made_in():
    async def child(end):
        with yoke.checkpoint_scope():
            await end.wait()
            return dropped()

    async def main():
        end = asyncio.Event()
        scope = opened()
        task = asyncio.create_task(child(end))
        await asyncio.sleep(0)
        with pytest.raises(yoke.StateError, match="close its inner scopes first"):
            close(scope)
        end.set()
        assert await task
        assert dropped()
        close(scope)
        bare = asyncio.create_task(asyncio.sleep(0, dropped()))
        return await bare

    assert asyncio.run(main()) is False


def test_what_was_changed_since_is_named_with_its_writer():
    x, shift = yoke.ones(4).requires_grad_(True), yoke.ones(4)
    with yoke.checkpoint_scope():
        y = yoke.tanh(x + shift)
    shift.mul_(2.0)
    with pytest.raises(yoke.StateError, match="backward of tanh needs a tensor that a checkpoint scope dropped.*mul_ has changed"):
        y.sum().backward()


@pytest.mark.parametrize("policy, kind, text", [
    ("ful", yoke.ValueError, "'policy' is 'ful'.*did you mean 'full'"),
    ("ops", yoke.ValueError, "'policy' is 'ops'; give a list of ops"),
    ("function", yoke.ValueError, "'policy' is 'function'; give a list of ops"),
    (["gelu", "sofmax"], yoke.ValueError, "'policy' names 'sofmax', which is not an op; did you mean 'softmax'"),
    (["gelu", 3], yoke.TypeError, "'policy' is 3; a string is needed"),
    (7, yoke.TypeError, "'policy' is 7; a sequence of names of ops is needed"),
])
def test_a_policy_that_is_none_is_refused_before_anything_runs(policy, kind, text):
    calls = []
    for call in (lambda: yoke.checkpoint(calls.append, 1, policy=policy), lambda: yoke.checkpoint_scope(policy),
                 lambda: nn.Linear(2, 2).checkpoint_(policy)):
        with pytest.raises(kind, match=text):
            call()
    assert calls == []


def test_a_policy_that_raises_or_answers_otherwise_keeps_nothing_and_closes():
    x = yoke.ones(4).requires_grad_(True)

    def plain():
        return yoke.exp(yoke.tanh(x * 2.0)).sum()

    asked = []

    def raising(op):
        raise KeyError(op.name)

    for policy, kind, told in ((raising, KeyError, "tanh|exp|mul"), (lambda op: "hold", yoke.ValueError, "'policy' returned 'hold' for "),
                               (lambda op: None, yoke.ValueError, "returned None for ")):
        made = []
        scope = yoke.checkpoint_scope(policy)
        for _ in range(2):
            with pytest.raises(kind, match=told):
                with scope:
                    made.append(plain())
            assert not dropped()
        assert yoke.grad(made[0], x)[0].tolist() == yoke.grad(plain(), x)[0].tolist()
        made.clear()
    outer, inner = opened(lambda op: asked.append(op) or "keep"), opened(raising)
    y = plain()
    del outer
    gc.collect()
    with pytest.raises(KeyError):
        close(inner)
    assert asked == []  # the outer scope was given up
    assert yoke.grad(y, x)[0].tolist() == yoke.grad(plain(), x)[0].tolist()


def test_functions_that_run_later_are_refused():
    async def later():
        pass

    with pytest.raises(yoke.TypeError, match="'later' is a generator or coroutine"):
        yoke.checkpoint(later)
    with pytest.raises(yoke.TypeError, match=r"checkpoint\(\): argument 'fn' is 5"):
        yoke.checkpoint(5)


def test_scopes_and_modules_with_one_can_be_copied_and_pickled():
    net, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).checkpoint_(["linear"]), yoke.ones((2, 3))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert yoke.saved_tensors(other(x))[0].recomputed
    scope = opened()
    with copy.copy(scope):
        assert dropped()
    close(scope)


@pytest.mark.filterwarnings("ignore:a memory budget of .* is too small")
@pytest.mark.parametrize("policy", ["full", "matmul", ["dropout"], yoke.MemoryBudget("1KiB")], ids=str)
def test_what_was_drawn_before_a_capture_is_drawn_again_in_it(policy):
    def gradient(scope):
        yoke.manual_seed(7)
        x = yoke.ones(64).requires_grad_(True)
        x.grad = yoke.zeros_like(x)
        with scope:
            loss = (yoke.exp(yoke.dropout(x * 2.0, 0.5)) * yoke.rand(64)).sum()
        graph = yoke.Graph()
        with graph.capture():
            loss.backward()
        yoke.rand(3)
        for _ in range(2):
            graph.replay()
        return x.grad.tolist(), yoke.get_rng_state().tolist()

    assert gradient(yoke.checkpoint_scope(policy)) == gradient(contextlib.nullcontext())


def test_what_a_capture_has_drawn_is_drawn_again_in_that_capture_alone():
    x, graph = yoke.ones(64).requires_grad_(True), yoke.Graph()
    with graph.capture(), yoke.checkpoint_scope():
        loss = yoke.exp(yoke.dropout(x, 0.5)).sum()
    graph.replay()
    with pytest.raises(yoke.StateError, match="dropout must draw the random numbers of the last replay"):
        loss.backward()


def test_two_threads_walk_one_scope():
    x = yoke.ones(64).requires_grad_(True)
    with yoke.checkpoint_scope():
        y = yoke.exp(yoke.tanh(x * 2.0))
    total = y.sum()
    expected = yoke.grad(total, x, retain_graph=True)[0].tolist()
    barrier, told = threading.Barrier(2), []

    def walk():
        barrier.wait()
        told.append([yoke.grad(total, x, retain_graph=True)[0].tolist() for _ in range(20)])

    threads = [threading.Thread(target=walk) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [[expected] * 20] * 2
