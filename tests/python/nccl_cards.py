"""Groups of a process with several cards over the fake NCCL, and fixtures that check for leftovers."""
import gc
import threading
import time

import pytest

import yoke
from conftest import DEVICE, EMULATED
from nccl_ranks import held_by_nccl, settles, thread_count

CARDS = len(yoke.devices(DEVICE)) if EMULATED else 0
four_cards = pytest.mark.skipif(CARDS < 4, reason="no emulated machine with four cards")


@pytest.fixture(scope="module", autouse=True)
def threads():
    """Returns the number of threads of the process between two tests, after a first group has started its permanent threads."""
    together(init(2), lambda group: group.all_reduce(ones(group)))
    yoke.synchronize()
    assert settles(lambda: held_by_nccl() == 0)
    time.sleep(0.05)
    return thread_count()


@pytest.fixture(autouse=True)
def nothing_is_left(threads, request, recwarn):
    memory = [yoke.memory_allocated(card(i)) for i in range(CARDS)]
    yield
    if not getattr(request.node, "passed", False):
        return  # the traceback of a failure keeps the groups
    gc.collect()
    assert settles(lambda: held_by_nccl() == 0), "communicators or memory of NCCL are left"
    assert settles(lambda: thread_count() <= threads), "threads are left"
    if any("stay allocated until this process ends" in str(each.message) for each in recwarn):
        return  # NCCL was amid a call when its group failed, and may still use the call's memory
    assert settles(lambda: [yoke.memory_allocated(card(i)) for i in range(CARDS)] == memory), "memory is not freed"


def card(i):
    return f"{DEVICE}:{i}"


def own(group):
    return card(group.rank)


def init(size, timeout=20.):
    return yoke.comm.init_all([card(i) for i in range(size)], timeout=timeout)


def ones(group, *shape):
    return yoke.ones(shape or (4,), device=own(group))


def ramp(group, count=8):
    return yoke.arange(count, dtype="float32", device=own(group)) + 10. * group.rank


def together(groups, call):
    with yoke.comm.coalesce():
        return [call(group) for group in groups]


def in_threads(groups, body):
    """Returns the results or errors of body(group), each called in a thread for its group."""
    results = [None] * len(groups)

    def run(i, group):
        try:
            results[i] = body(group)
        except yoke.Error as error:
            results[i] = f"{type(error).__name__} {error}"

    threads = [threading.Thread(target=run, args=each) for each in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def alone(call):
    """Calls on a single group in a thread of its own."""
    with yoke.comm.coalesce():
        return call()
