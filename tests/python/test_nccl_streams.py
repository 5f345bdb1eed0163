"""Calls of NCCL in a process with several cards: works, streams, and memory."""
import threading

import pytest

import yoke
from nccl_cards import alone, card, four_cards, in_threads, init, nothing_is_left, ones, own, ramp, threads, together  # noqa: F401
from nccl_ranks import settles

pytestmark = four_cards


def test_a_work_is_waited_for_with_and_without_a_time():
    groups = init(2)
    t = [[ones(group, 1000) * (i + group.rank) for i in range(3)] for group in groups]
    works = together(groups, lambda group: [group.all_reduce(each, async_op=True) for each in t[group.rank]])
    for first, second, third in works:
        first.wait()
        second.wait(30.)
        assert second.done()
        assert settles(third.done)
        for work in first, second, third:
            work.wait()
            work.wait(30.)
    assert [[(each + 1).tolist()[::999] for each in mine] for mine in t] == [[[2.] * 2, [4.] * 2, [6.] * 2]] * 2


def test_a_call_that_blocks_does_not_hold_the_host_up():
    groups, called = init(2), threading.Event()

    def body(group):
        t = ramp(group)
        if group.rank == 1:
            assert called.wait(15)  # otherwise rank 0 waits for this rank, and this rank for rank 0
        alone(lambda: group.all_reduce(t))
        called.set()
        return (t * 2).tolist()

    assert in_threads(groups, body) == [[20. + 4 * i for i in range(8)]] * 2


def test_the_stream_of_the_wait_comes_behind_the_work_and_the_work_behind_the_stream_of_the_call():
    groups, kept = init(2), []

    def body(group):
        device = own(group)
        side, other = yoke.Stream(device), yoke.Stream(device)
        with yoke.stream(side):
            t = yoke.ones((64, 64), device=device)
            before = [t]
            for _ in range(20):
                before.append(t := t @ yoke.eye(64, device=device))
            alone(lambda: group.all_reduce(t))
            twice = t * 2  # lives to the end: without a cache a free would wait for the other rank, and this thread hold it up
            doubled = twice.sum()
            found = doubled.item()
            work = alone(lambda: group.all_reduce(t, async_op=True))
        with yoke.stream(other):
            work.wait()
            total = t.sum()
            kept.append((before, twice, doubled, total))
            return found, total.item()

    assert in_threads(groups, body) == [(4 * 64. * 64, 4 * 64. * 64)] * 2


def test_calls_of_one_scope_come_behind_the_streams_on_which_they_were_called():
    groups = init(2)

    def body(group):
        device, peer = own(group), 1 - group.rank
        side, theirs, total = yoke.Stream(device), yoke.zeros(100, device=device), ones(group, 3)
        with yoke.comm.coalesce():
            with yoke.stream(side):
                mine = yoke.full((100,), 1., device=device)
                for _ in range(10):
                    mine = mine + 1
                group.send(mine, peer)
            work = group.recv(theirs, peer, async_op=True)
            group.all_reduce(total)
        work.wait()
        return theirs.sum().item(), total.tolist()

    assert in_threads(groups, body) == [(1100., [2.] * 3)] * 2


def test_memory_is_not_used_again_before_its_call_has_ended():
    groups = init(2)

    def body(group):
        device, works, outs = own(group), [], []
        for i in range(8):
            out = yoke.zeros(4 << 10, device=device)
            t = yoke.full((2 << 10,), float(i + group.rank), device=device)
            works.append(alone(lambda: group.all_gather(out, t, async_op=True)))
            del t
            other = yoke.full((2 << 10,), -1., device=device)  # where the allocator may have the block again
            outs.append(out)
            del other
        del works[1:]
        works[0].wait()
        alone(lambda: group.all_reduce(yoke.zeros(1, device=device)))  # after all earlier calls
        return [out.reshape(2, 2 << 10).sum(1).tolist() for out in outs]

    assert in_threads(groups, body) == [[[i * 2048., (i + 1) * 2048.] for i in range(8)]] * 2


def test_works_that_are_dropped_leave_memory_as_before():
    groups = init(2)
    before = [yoke.memory_allocated(card(i)) for i in range(2)]
    for _ in range(200):
        together(groups, lambda group: [group.all_reduce(ones(group, 64), async_op=True), None][1])
    for i in range(2):
        yoke.synchronize(card(i))
    assert settles(lambda: [yoke.memory_allocated(card(i)) for i in range(2)] == before)


def test_a_tensor_that_is_written_amid_its_call_is_told():
    groups = init(2)
    t = [ones(group, 1000) for group in groups]
    works = together(groups, lambda group: group.all_reduce(t[group.rank], async_op=True))
    t[0].add_(1.)
    with pytest.raises(yoke.StateError, match="add_"):
        works[0].wait()
    works[1].wait()  # values of before or after the write
    assert t[1].tolist()[::999] in ([2., 2.], [3., 3.])


def test_groups_on_the_same_cards_go_on_beside_each_other():
    first, second = init(3), init(2)
    a, b = [ones(group) for group in first], [ones(group) for group in second]
    for _ in range(3):
        together(first, lambda group: group.all_reduce(a[group.rank]))
        together(second, lambda group: group.all_reduce(b[group.rank]))
    with yoke.comm.coalesce():
        for group in first:
            group.all_reduce(a[group.rank])
        for group in second:
            group.all_reduce(b[group.rank])
    assert [each.tolist() for each in a] == [[81.] * 4] * 3 and [each.tolist() for each in b] == [[16.] * 4] * 2
