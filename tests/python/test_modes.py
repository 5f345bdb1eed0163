"""Grad mode, autocast, devices and streams belong to the context: overlapping tasks, generators and threads leave no mode behind."""

import asyncio
import contextvars
import gc
import threading
import time

import pytest

import yoke
from conftest import DEVICE
from yoke import _modes


def grad():
    """Returns the mode, asked in two ways: by the library's answer, and by its effect."""
    recorded = (yoke.ones(2, requires_grad=True) * 2).requires_grad
    assert recorded == yoke.is_grad_enabled()
    return recorded


def cast():
    x = yoke.ones((2, 2))
    assert ((x @ x).dtype is not yoke.float32) == yoke.is_autocast_enabled()
    return yoke.is_autocast_enabled()


STREAM = yoke.Stream(DEVICE)


def stream():
    return yoke.current_stream(DEVICE) == STREAM


# How to open a block, how to ask for its mode, and the answer without the block.
MODES = pytest.mark.parametrize("block, ask, outside", [
    pytest.param(yoke.no_grad, grad, True, id="no_grad"),
    pytest.param(lambda: yoke.set_grad_enabled(False), grad, True, id="set_grad_enabled"),
    pytest.param(lambda: yoke.autocast("bfloat16"), cast, False, id="autocast"),
    pytest.param(lambda: yoke.stream(STREAM), stream, False, id="stream"),
])


@MODES
@pytest.mark.parametrize("order", ["first in first out", "last in first out"])
def test_overlapping_tasks_have_each_their_own(block, ask, outside, order):
    seen = {}

    async def task(name, opened, end):
        with block():
            opened.set()
            await end.wait()
            seen[name] = ask()
        seen[name, "after"] = ask()

    async def main():
        events = {name: (asyncio.Event(), asyncio.Event()) for name in "ab"}
        tasks = {}
        for name in "ab":
            tasks[name] = asyncio.create_task(task(name, *events[name]))
            await events[name][0].wait()
            seen["between", name] = ask()
        for name in "ab" if order[0] == "f" else "ba":
            events[name][1].set()
            await tasks[name]
            seen["behind", name] = ask()

    asyncio.run(main())
    inside = not outside
    assert seen == {"a": inside, "b": inside, ("a", "after"): outside, ("b", "after"): outside, ("between", "a"): outside,
                    ("between", "b"): outside, ("behind", "a"): outside, ("behind", "b"): outside}
    assert ask() is outside


@MODES
def test_tasks_and_threads_begin_with_the_blocks_of_those_that_made_them(block, ask, outside):
    async def child(end):
        first = ask()
        await end.wait()
        return first, ask()  # the block of its creation has ended by now

    async def main():
        end = asyncio.Event()
        with block():
            task = asyncio.create_task(child(end))
            in_thread = await asyncio.to_thread(ask)
            await asyncio.sleep(0)
        end.set()
        return (*(await task), in_thread, ask())

    assert asyncio.run(main()) == (not outside, not outside, not outside, outside)
    seen = []
    with block():
        thread = threading.Thread(target=lambda: seen.append(ask()))  # the thread begins with an empty context
        thread.start()
        thread.join()
    assert seen == [outside] and ask() is outside


@MODES
def test_generators_may_end_in_any_order(block, ask, outside):
    def late():
        with block():
            yield ask()

    a, b = late(), late()
    assert next(a) is next(b) is not outside
    a.close()
    assert ask() is not outside
    b.close()
    assert ask() is outside
    a, b = late(), late()
    next(a)
    with block():
        next(b)
        a.close()
    del a, b
    gc.collect()
    assert ask() is outside


@MODES
def test_a_block_may_end_in_another_context_or_thread(block, ask, outside, monkeypatch):
    def late():
        with block():
            yield

    generator = late()
    next(generator)
    copied, older = contextvars.copy_context(), contextvars.copy_context()
    copied.run(generator.close)
    pruned, prune = [], _modes.prune
    monkeypatch.setattr(_modes, "prune", lambda: (pruned.append(1), prune()))
    assert ask() is outside and copied.run(ask) is outside and older.run(ask) is outside
    assert len(pruned) == 2  # once in each context with the block
    generator = late()
    next(generator)
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert ask() is outside


def test_an_interrupt_while_ended_blocks_are_taken_out_is_heard(monkeypatch):
    def late():
        with yoke.no_grad():
            yield

    def interrupted():
        raise KeyboardInterrupt
    generator = late()
    next(generator)
    contextvars.copy_context().run(generator.close)
    monkeypatch.setattr(_modes, "prune", interrupted)
    with pytest.raises(KeyboardInterrupt):
        yoke.ones(1)
        for _ in range(1000):
            pass
    monkeypatch.undo()
    assert yoke.is_grad_enabled()


@MODES
def test_an_asynchronous_generator_that_is_left_leaves_nothing(block, ask, outside):
    async def items():
        with block():
            yield 1
            yield 2

    async def main():
        async for _ in items():
            break
        gc.collect()
        await asyncio.sleep(0)  # the loop closes the generator in a separate task
        await asyncio.sleep(0)
        return ask()

    assert asyncio.run(main()) is outside and ask() is outside


@MODES
def test_one_object_serves_overlapping_tasks(block, ask, outside):
    shared = block()
    ask()

    async def task(pauses):
        with shared, shared:
            for _ in range(pauses):
                await asyncio.sleep(0)
                assert ask() is not outside
        assert ask() is outside

    async def main():
        await asyncio.gather(*(task(pauses) for pauses in (3, 1, 2)))

    asyncio.run(main())
    assert ask() is outside
    with pytest.raises(yoke.StateError, match="this block is not open"):
        shared.__exit__(None, None, None)


def test_a_decorated_function_holds_its_mode_in_tasks():
    inside = []

    @yoke.no_grad()
    def ask():
        inside.append(grad())

    async def task():
        ask()
        await asyncio.sleep(0)
        inside.append(grad())

    async def main():
        await asyncio.gather(task(), task())

    asyncio.run(main())
    assert inside == [False, False, True, True]


def test_what_is_set_inside_a_block_ends_with_it():
    with yoke.no_grad():
        yoke.set_grad_enabled(True)
        assert grad()
        with yoke.no_grad():
            assert not grad()
        assert grad()
        yoke.set_grad_enabled(False)
        yoke.set_grad_enabled(True)
    assert grad()
    other = yoke.Stream(DEVICE)
    with yoke.stream(STREAM):
        yoke.set_stream(other)
        assert yoke.current_stream(DEVICE) == other
        with yoke.no_grad():
            assert yoke.current_stream(DEVICE) == other
    assert not stream() and yoke.current_stream(DEVICE) != other
    default = yoke.current_stream(DEVICE)
    with yoke.no_grad():  # opens no block of streams: set_stream() acts on the thread
        yoke.set_stream(other)
        yoke.set_device(yoke.current_device())
    assert yoke.current_stream(DEVICE) == other and grad()
    yoke.set_stream(default)


def test_what_is_set_without_a_block_is_the_threads():
    seen = []
    yoke.set_grad_enabled(False)
    try:
        assert not grad()
        with yoke.enable_grad():
            assert grad()

        async def task():
            seen.append(grad())

        asyncio.run(task())
        thread = threading.Thread(target=lambda: seen.append(grad()))
        thread.start()
        thread.join()
    finally:
        yoke.set_grad_enabled(True)
    assert seen == [False, True] and grad()
    block = yoke.set_grad_enabled(False)
    with block:
        assert not grad()
    yoke.set_grad_enabled(False)
    with block:
        assert not grad()
    assert not grad()  # the mode that the block found the second time
    yoke.set_grad_enabled(True)


def test_a_stream_that_is_closed_in_its_block_stays_in_force():
    own = yoke.Stream(DEVICE)
    again = yoke.wrap_stream(own.handle, DEVICE) if DEVICE != "cpu" else None
    with yoke.stream(own):
        own.close()
        with yoke.no_grad(), yoke.autocast("bfloat16"):
            yoke.ones(2) + 1
        assert again is None or yoke.current_stream(DEVICE) == again
        assert not stream()
    with pytest.raises(yoke.ClosedError):
        yoke.stream(own).__enter__()
    assert grad() and not cast()


def test_a_region_that_a_thread_inherits_keeps_its_casts_to_itself():
    weight = yoke.ones((4, 4), requires_grad=True)

    async def main():
        with yoke.autocast("bfloat16"):
            first = weight @ weight
            results = await asyncio.gather(*(asyncio.to_thread(lambda: (weight @ weight).dtype) for _ in range(8)))
        return first.dtype, set(results)

    assert asyncio.run(main()) == (yoke.bfloat16, {yoke.bfloat16})


def test_devices_nest_and_end_in_any_order():
    device = yoke.device(DEVICE)
    before = yoke.current_device()
    with device as entered, device:
        assert entered is device is yoke.current_device()
    device.__enter__()
    with yoke.no_grad():
        device.__exit__(None, None, None)
        assert not grad()
    assert yoke.current_device() is before and grad()
    with pytest.raises(yoke.StateError, match="this block is not open"):
        device.__exit__(None, None, None)


def test_a_thread_or_a_task_that_ends_inside_a_block_takes_its_casts_along():
    x, w = yoke.ones(8, 8), yoke.nn.Parameter(yoke.ones(8, 8))

    def enters():
        yoke.autocast("bfloat16").__enter__()
        assert (x @ w).dtype is yoke.bfloat16

    def leaves_a_generator():
        def inside():
            with yoke.autocast("bfloat16"):
                yield x @ w
        kept.append(inside())
        next(kept[-1])

    async def enters_in_a_task():
        enters()

    kept = []
    gc.collect()
    before = yoke.live_tensor_count()
    for run in (enters, leaves_a_generator, lambda: asyncio.run(enters_in_a_task())):
        for _ in range(5):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        del thread
        kept.clear()
        for _ in range(500):  # join() returns a little before the thread's context goes
            gc.collect()
            if yoke.live_tensor_count() == before:
                break
            time.sleep(0.01)
        assert yoke.live_tensor_count() == before
