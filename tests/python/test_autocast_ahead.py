"""Casts of the weights of the last region, made together at the first use: values, memory, and everything that makes them stale."""
import gc
import threading

import numpy as np
import pytest

import yoke
from conftest import DEVICE

TOGETHER = DEVICE != "cpu"
SIDE, COUNT = 64, 5
HALF_BYTES = SIDE * SIDE * 2


def make(count=COUNT):
    return [yoke.full((SIDE, SIDE), float(i + 1)).requires_grad_(True) for i in range(count)]


def use(weights):
    """Returns the values of the weights as products see them."""
    return [yoke.linear(yoke.ones((1, SIDE)), w).float().mean().item() / SIDE for w in weights]


def region(weights, **options):
    with yoke.autocast("bfloat16", **options):
        return use(weights)


def held_by_first_use(weights):
    """Returns how many casts the first use of a weight makes."""
    with yoke.autocast("bfloat16"):
        gc.collect()
        before = yoke.memory_allocated(DEVICE)
        use(weights[:1])
        gc.collect()
        return round((yoke.memory_allocated(DEVICE) - before) / HALF_BYTES)


def test_the_first_use_casts_all_weights_of_the_last_region():
    weights = make()
    assert held_by_first_use(weights) == 1
    assert region(weights) == [1, 2, 3, 4, 5]
    assert held_by_first_use(weights) == (COUNT if TOGETHER else 1)
    # The region before used a single weight.
    assert held_by_first_use(weights) == 1


def test_values_are_those_of_the_moment():
    weights = make()
    region(weights)
    with yoke.no_grad():
        for w in weights:
            w.mul_(2)
    with yoke.autocast("bfloat16"):
        assert use(weights[:1]) == [2]
        with yoke.no_grad():
            weights[1].fill_(7)
        assert use(weights) == [2, 7, 6, 8, 10]


def test_gradients_reach_weights_that_were_cast_ahead():
    weights = make()
    for times in (1, 2, 3):
        with yoke.autocast("bfloat16"):
            sum((yoke.linear(yoke.ones((2, SIDE)), w).float().sum() for w in weights), yoke.zeros(())).backward()
        for w in weights:
            np.testing.assert_array_equal(w.grad.numpy(), np.full((SIDE, SIDE), 2.0 * times))


def test_a_region_without_the_tape_comes_first():
    weights = make()
    region(weights)
    with yoke.autocast("bfloat16"):
        with yoke.no_grad():
            use(weights)
        yoke.linear(yoke.ones((1, SIDE)), weights[2]).float().sum().backward()
    assert weights[2].grad is not None


def test_weights_end_between_regions():
    gc.collect()
    before = yoke.memory_allocated(DEVICE)
    weights = make()
    region(weights)
    del weights[1:3]
    gc.collect()
    assert yoke.memory_allocated(DEVICE) - before == 3 * 2 * HALF_BYTES
    others = make(2)  # perhaps at the same addresses
    assert held_by_first_use(weights) == (3 if TOGETHER else 1)
    assert region(weights + others) == [1, 4, 5, 1, 2]
    del weights, others
    gc.collect()
    assert yoke.memory_allocated(DEVICE) == before


def test_weights_that_moved_or_froze_are_left_out():
    weights = make()
    region(weights)
    weights[1].requires_grad_(False)
    weights[2].to_(dtype="float16")
    assert region(weights) == [1, 2, 3, 4, 5]
    weights[1].requires_grad_(True)
    weights[2].to_(dtype="float32")
    with yoke.no_grad():
        weights[2].fill_(30)
    assert region(weights) == [1, 2, 30, 4, 5]


def test_models_that_take_turns_each_have_their_own():
    first, second = make(), make(3)
    for weights in (first, second, first, second):
        region(weights)
    assert held_by_first_use(first) == (COUNT if TOGETHER else 1)
    assert held_by_first_use(second) == (3 if TOGETHER else 1)


def test_another_dtype_casts_anew():
    weights = make()
    region(weights)
    with yoke.autocast("float16"):
        assert use(weights) == [1, 2, 3, 4, 5]
        with yoke.autocast("bfloat16"):
            assert use(weights) == [1, 2, 3, 4, 5]


def test_without_the_cache_nothing_is_cast_ahead():
    weights = make()
    region(weights)
    with yoke.autocast("bfloat16", cache_enabled=False):
        gc.collect()
        before = yoke.memory_allocated(DEVICE)
        use(weights[:1])
        gc.collect()
        assert yoke.memory_allocated(DEVICE) == before


def test_a_capture_casts_together_and_each_replay_casts_again():
    weights = make()
    region(weights)
    graph, seen = yoke.Graph(), []
    with graph.capture(), yoke.autocast("bfloat16"):
        for w in weights:
            seen.append(yoke.linear(yoke.ones((1, SIDE)), w).float().mean())
    for factor in (1, 2, 4):
        graph.replay()
        assert [x.item() / SIDE for x in seen] == [factor * (i + 1) for i in range(COUNT)]
        with yoke.no_grad():
            for w in weights:
                w.mul_(2)


def test_only_a_move_of_a_weight_that_a_graph_uses_ends_its_replays():
    weights, graph = make(), yoke.Graph()
    region(weights)
    with graph.capture(), yoke.autocast("bfloat16"):
        seen = [yoke.linear(yoke.ones((1, SIDE)), w).float().mean() for w in weights[::2]]
    weights[1].to_(dtype="float16")
    del weights[3]
    gc.collect()
    graph.replay()
    assert [x.item() / SIDE for x in seen] == [1, 3, 5]
    weights[2].to_(dtype="float16")
    with pytest.raises(yoke.StateError, match="has moved since the capture"):
        graph.replay()


def test_a_checkpoint_recomputes_what_was_cast_ahead():
    plain, again = make(), make()
    for _ in range(3):
        for weights, scoped in ((plain, False), (again, True)):
            def forward(x):
                for w in weights:
                    x = yoke.tanh(yoke.linear(x, w) / 1000)
                return x
            x = yoke.ones((2, SIDE))
            with yoke.autocast("bfloat16"):
                y = yoke.checkpoint(forward, x) if scoped else forward(x)
            y.float().sum().backward()
    for a, b in zip(plain, again):
        np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())


@pytest.mark.skipif(not TOGETHER, reason="the host has one stream")
def test_another_stream_casts_its_own():
    weights = make()
    region(weights)
    with yoke.autocast("bfloat16"):
        use(weights[:1])
        with yoke.stream(yoke.Stream(DEVICE)):
            assert use(weights) == [1, 2, 3, 4, 5]


def give_work():
    """Gives the current stream work, behind which later work waits."""
    x = yoke.zeros((256, 256))
    for _ in range(20):
        x = x + 1


@pytest.mark.skipif(not TOGETHER, reason="the host has one stream")
def test_a_stream_does_not_read_the_cast_that_another_has_yet_to_make():
    weights, side = make(2), yoke.Stream(DEVICE)
    for _ in range(2):
        yoke.synchronize()
        with yoke.autocast("bfloat16"):
            give_work()
            yoke.linear(yoke.ones((1, SIDE)), weights[0])
            with yoke.stream(side):
                assert use(weights) == [1, 2]


@pytest.mark.skipif(not TOGETHER, reason="the host has one stream")
def test_weights_that_another_stream_writes_are_cast_at_their_own_use():
    weights, side = make(), yoke.Stream(DEVICE)
    region(weights)
    yoke.synchronize()
    with yoke.stream(side), yoke.no_grad():
        give_work()
        weights[1].fill_(7)
        written = side.record_event()
    with yoke.autocast("bfloat16"):
        yoke.linear(yoke.ones((1, SIDE)), weights[0])
        yoke.current_stream().wait_event(written)
        assert use(weights) == [1, 7, 3, 4, 5]
    with yoke.no_grad():
        weights[1].fill_(8)  # on this stream
    assert held_by_first_use(weights) == COUNT


def test_threads_have_lists_of_their_own():
    weights = make()
    region(weights)
    seen = []
    thread = threading.Thread(target=lambda: seen.extend([held_by_first_use(weights), region(weights)]))
    thread.start()
    thread.join()
    assert seen == [1, [1, 2, 3, 4, 5]]
    assert held_by_first_use(weights) == (COUNT if TOGETHER else 1)
