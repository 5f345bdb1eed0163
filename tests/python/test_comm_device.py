"""Collectives on tensors of a device, through the CPU engine: values, order, memory, and what is refused."""
import math
import threading
import time

import pytest

import yoke
from conftest import DEVICE, EMULATED

on_device = pytest.mark.skipif(DEVICE == "cpu", reason="the cpu runs each call at once in the caller")
emulated = pytest.mark.skipif(not EMULATED, reason="there is no fake driver")


def together(body, size=2, timeout=60.):
    """Returns the results or errors of body(group) on each rank, a thread each."""
    groups, results = yoke.comm.init_all(["cpu"], size=size, timeout=timeout), [None] * size

    def run(group):
        try:
            results[group.rank] = body(group)
        except yoke.Error as error:
            results[group.rank] = f"{type(error).__name__} {error}"

    threads = [threading.Thread(target=run, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def values(group, dtype, shape, device, strided):
    """Small whole numbers, others on each rank; or the same lying otherwise in memory."""
    t = yoke.tensor([i % 3 + group.rank for i in range(math.prod(shape))], device="cpu").to(dtype=dtype).reshape(*shape)
    if strided:
        return t.transpose(0, 1).contiguous().to(device).transpose(0, 1)
    return t.to(device)


def every_op(group, dtype, device, strided):
    def made(*shape):
        return values(group, dtype, shape, device, strided)

    size, results = group.size, []
    for op in ["sum", "max"] + ["avg"] * (dtype in (yoke.float32, yoke.bfloat16)):
        t = made(4, 3)
        group.all_reduce(t, op)
        results.append(t)
        t = made(4, 3)
        group.reduce(t, 1, op)
        results += [t] if group.rank == 1 else []
        out = made(2, 3)
        group.reduce_scatter(out, made(2 * size, 3), op)
        results.append(out)
    t, out = made(4, 3), made(size * 4, 3)
    group.broadcast(t, 1)
    group.all_gather(out, made(4, 3))
    results += [t, out]
    out = made(4 * size, 3)
    group.all_to_all(out, made(4 * size, 3))
    results.append(out)
    out = made(size * 4, 3) if group.rank == 0 else None
    group.gather(out, made(4, 3), 0)
    results += [] if out is None else [out]
    out = made(4, 3)
    group.scatter(out, made(size * 4, 3) if group.rank == 1 else None, 1)
    results.append(out)
    if group.rank == 0:
        group.send(made(4, 3), 1)
    elif group.rank == 1:
        t = yoke.zeros((4, 3), dtype=dtype, device=device)
        group.recv(t, 0)
        results.append(t)
    group.barrier()
    return [t.tolist() for t in results]


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16, yoke.int64, yoke.int32, yoke.uint8], ids=str)
def test_every_op_gives_what_it_gives_on_the_host(dtype, strided):
    found = together(lambda group: every_op(group, dtype, DEVICE, strided), 3)
    assert found == together(lambda group: every_op(group, dtype, "cpu", strided), 3)
    assert isinstance(found[0], list) and len(found[0]) >= 9


def test_nothing_is_reduced_of_nothing():
    def body(group):
        t = yoke.zeros((0, 3), device=DEVICE)
        group.all_reduce(t)
        work = group.all_reduce(t, async_op=True)
        work.wait(30.)
        return t.tolist()

    assert together(body) == [[], []]


def test_a_work_is_waited_for_with_and_without_a_time():
    def body(group):
        a, b, c = (yoke.full((1000,), float(group.rank + i), device=DEVICE) for i in range(3))
        first, second, third = (group.all_reduce(t, async_op=True) for t in (a, b, c))
        first.wait()
        second.wait(30.)
        while not third.done():
            time.sleep(0.001)
        for work in first, second, third:
            work.wait()
            work.wait(30.)
        return [(t + 1).tolist()[::999] for t in (a, b, c)]

    assert together(body) == [[[2.0] * 2, [4.0] * 2, [6.0] * 2]] * 2


def test_tensors_of_host_and_device_take_turns_in_one_group():
    def body(group):
        on_host, there = yoke.ones(5, device="cpu"), yoke.ones(5, device=DEVICE)
        for _ in range(3):
            group.all_reduce(on_host)
            group.all_reduce(there)
        return on_host.tolist() + there.tolist()

    assert together(body) == [[8.0] * 10] * 2


@on_device
def test_a_call_comes_behind_its_stream_and_the_stream_behind_it():
    def body(group):
        side, other = yoke.Stream(DEVICE), yoke.Stream(DEVICE)
        with yoke.stream(side):
            t = yoke.ones((64, 64), device=DEVICE)
            for _ in range(20):
                t = t @ yoke.eye(64, device=DEVICE)
            group.all_reduce(t)
            doubled = (t * 2).sum().item()
            work = group.all_reduce(t, async_op=True)
        with yoke.stream(other):
            work.wait()
            return doubled, t.sum().item()

    found = together(body)
    assert found == [(4 * 64. * 64, 4 * 64. * 64)] * 2, found


@on_device
def test_calls_that_are_issued_together_come_behind_the_streams_on_which_they_were_called():
    def body(group):
        side, peer = yoke.Stream(DEVICE), 1 - group.rank
        theirs, total, host = yoke.zeros(100, device=DEVICE), yoke.ones(3, device=DEVICE), yoke.ones(2, device="cpu")
        with yoke.comm.coalesce():
            with yoke.stream(side):
                mine = yoke.full((100,), 1., device=DEVICE)
                for _ in range(10):
                    mine = mine + 1
                group.send(mine, peer)
            work = group.recv(theirs, peer, async_op=True)
            group.all_reduce(total)
            group.all_reduce(host)
        work.wait()
        return theirs.sum().item(), total.tolist(), host.tolist()

    assert together(body) == [(1100., [2.] * 3, [2.] * 2)] * 2


@on_device
def test_memory_is_not_used_again_before_its_call_has_ended():
    def body(group):
        works, outs = [], []
        for i in range(8):
            out = yoke.zeros(4 << 10, device=DEVICE)
            works.append(group.all_gather(out, yoke.full((2 << 10,), float(i + group.rank), device=DEVICE), async_op=True))
            other = yoke.full((2 << 10,), -1., device=DEVICE)  # where the allocator may have the block again
            outs.append(out)
            del other
        del works[1:]
        works[0].wait()
        group.barrier()
        group.all_reduce(yoke.zeros(1, device=DEVICE))  # after all earlier calls
        return [out.reshape(2, 2 << 10).sum(1).tolist() for out in outs]

    found = together(body)
    assert found == [[[i * 2048., (i + 1) * 2048.] for i in range(8)]] * 2, found


# ---- Refused arguments ----------------------------------------------------------------------------------------------

@on_device
def test_tensors_of_two_devices_are_refused():
    group, = yoke.comm.init_all(["cpu"])
    with pytest.raises(yoke.ValueError, match="all_gather: argument 't' is on cpu, but 'out' is on cuda:0"):
        group.all_gather(yoke.ones(2, device=DEVICE), yoke.ones(2, device="cpu"))


@on_device
def test_a_capture_refuses_collectives_and_goes_on():
    group, = yoke.comm.init_all(["cpu"])
    t, kept = yoke.ones(4, device=DEVICE), yoke.ones(4, device=DEVICE)
    work, graph = group.all_reduce(kept, async_op=True), yoke.Graph(DEVICE)
    with graph.capture():
        with pytest.raises(yoke.StateError, match="all_reduce: a graph is being captured"):
            group.all_reduce(t)
        with pytest.raises(yoke.StateError, match="a graph is being captured"):
            work.wait()
        out = t + 1
    work.wait()
    graph.replay()
    group.all_reduce(out)
    assert out.tolist() == [2.] * 4 and kept.tolist() == [1.] * 4


def test_a_tensor_that_is_written_before_its_work_was_waited_for_is_told():
    def body(group):
        t = yoke.ones(1000, device=DEVICE)
        if group.rank == 0:
            work = group.all_reduce(t, async_op=True)
            t.add_(1.)  # before the other rank has called
            group.store.set()
        else:
            group.store.wait()
            work = group.all_reduce(t, async_op=True)
            if DEVICE != "cpu":
                others.wait()
                t.add_(1.)  # at any progress of the call
        try:
            work.wait()
        except yoke.StateError as error:
            return "add_" in str(error)
        finally:
            others.set()

    event, others = threading.Event(), threading.Event()
    yoke.comm.Group.store = event
    try:
        found = together(body)
    finally:
        del yoke.comm.Group.store
    assert found == ([True, None] if DEVICE == "cpu" else [True, True])
