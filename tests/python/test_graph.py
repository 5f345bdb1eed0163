"""Captured steps: every replay does the script's work, and capture refuses work that no replay can do."""

import gc
import threading

import pytest

import yoke
from yoke import nn

STEPS = 5


def network(dropout=0.0):
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(dropout), nn.Linear(8, 3))


def batches():
    yoke.manual_seed(7)
    return [(yoke.randn((4, 6)), yoke.randint(0, 3, (4,))) for _ in range(STEPS)]


def make_optimizer(kind, net):
    kinds = {"sgd": lambda p: yoke.optim.SGD(p, lr=0.1, momentum=0.9), "adam": lambda p: yoke.optim.Adam(p, lr=0.05),
             "adamw": lambda p: yoke.optim.AdamW(p, lr=0.05)}
    return kinds[kind](net.parameters())


def trained(kind, captured, amp=None, scaled=False, dropout=0.0):
    """The losses of some steps and the weights after them, by replays or as ever."""
    data = batches()
    yoke.manual_seed(3)
    net = network(dropout)
    optimizer, scaler = make_optimizer(kind, net), yoke.GradScaler(init_scale=1024.0, enabled=scaled)
    x, target = yoke.zeros_like(data[0][0]), yoke.zeros_like(data[0][1])
    loss = None

    def step():
        with yoke.autocast(amp, enabled=amp is not None):
            loss = yoke.cross_entropy(net(x), target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    losses = []
    graph = yoke.Graph()
    if captured:
        with graph.capture():
            loss = step()
    for images, labels in data:
        x.copy_(images)
        target.copy_(labels)
        if captured:
            graph.replay()
        else:
            loss = step()
        losses.append(loss.item())
    return losses, [p.tolist() for p in net.parameters()]


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
def test_replays_of_a_training_step_equal_the_steps_themselves(kind):
    assert trained(kind, True) == trained(kind, False)


@pytest.mark.parametrize("amp, scaled", [(yoke.bfloat16, False), (yoke.float16, True)])
def test_mixed_precision_and_loss_scaling_are_captured_too(amp, scaled):
    assert trained("adamw", True, amp, scaled) == trained("adamw", False, amp, scaled)


def test_each_replay_draws_the_random_numbers_that_the_step_would():
    losses, weights = trained("sgd", True, dropout=0.5)
    assert (losses, weights) == trained("sgd", False, dropout=0.5)
    x = yoke.zeros((1000,))
    graph = yoke.Graph()
    with graph.capture():
        x.copy_(yoke.rand((1000,)))
    yoke.manual_seed(5)
    expected = [yoke.rand((1000,)).tolist() for _ in range(3)]
    yoke.manual_seed(5)
    seed_of_capture = yoke.Graph()
    with seed_of_capture.capture():
        x.copy_(yoke.rand((1000,)))
    drawn = []
    for _ in range(3):
        seed_of_capture.replay()
        drawn.append(x.tolist())
    assert drawn == expected


def test_nothing_runs_at_the_capture():
    x = yoke.zeros((3,))
    graph = yoke.Graph()
    with graph.capture():
        x.copy_(yoke.ones((3,)) * 2)
    assert x.tolist() == [0, 0, 0]
    graph.replay()
    assert x.tolist() == [2, 2, 2]


def test_a_capture_leaves_the_stream_of_random_numbers_where_it_was():
    yoke.manual_seed(1)
    expected = yoke.rand((4,)).tolist()
    yoke.manual_seed(1)
    graph = yoke.Graph()
    with graph.capture():
        yoke.rand((100,))
    assert yoke.rand((4,)).tolist() == expected


@pytest.mark.parametrize("call", [
    lambda x: x.item(), lambda x: x.tolist(), lambda x: yoke.tensor([1.0]), lambda x: yoke.synchronize(),
    lambda x: repr(x), lambda x: yoke.nonzero(x), lambda x: yoke.empty_cache(), lambda x: yoke.set_caching(not yoke.is_caching())],
    ids=["item", "tolist", "tensor", "synchronize", "repr", "nonzero", "empty_cache", "set_caching"])
def test_what_would_wait_or_bring_bytes_is_refused_by_name(call):
    x, caching = yoke.ones(()), yoke.is_caching()
    graph = yoke.Graph()
    with pytest.raises(yoke.StateError, match="a graph is being captured"):
        with graph.capture():
            call(x)
    assert (x + 1).item() == 2  # the thread's state is restored
    assert yoke.is_caching() == caching


def test_a_failed_capture_leaves_the_graph_empty_and_usable():
    x = yoke.zeros((2,))
    graph = yoke.Graph()
    with pytest.raises(ZeroDivisionError):
        with graph.capture():
            x.add_(1)
            1 / 0
    with pytest.raises(yoke.StateError, match="no captured step"):
        graph.replay()
    with graph.capture():
        x.add_(1)
    graph.replay()
    graph.replay()
    assert x.tolist() == [2, 2]


def test_misuse_is_refused():
    graph, other = yoke.Graph(), yoke.Graph()
    with pytest.raises(yoke.StateError, match="no captured step"):
        graph.replay()
    x = yoke.zeros((2,))
    with graph.capture():
        x.add_(1)
        with pytest.raises(yoke.StateError, match="already captures a graph"):
            other._graph.begin()
        with pytest.raises(yoke.StateError, match="end the capture before the replay"):
            graph.replay()
    with pytest.raises(yoke.StateError, match="captured before"):
        with graph.capture():
            pass
    with pytest.raises(yoke.StateError, match="this thread is not capturing this graph"):
        other._graph.end()


def test_what_a_graph_names_lives_as_long_as_it():
    graph = yoke.Graph()
    weight = yoke.ones((256, 256))
    with graph.capture():
        result = (weight * 2).sum()
    del weight
    gc.collect()
    scratch = [yoke.zeros((256, 256)) for _ in range(4)]  # would reuse released memory
    graph.replay()
    assert result.item() == 2 * 256 * 256
    del graph, scratch
    gc.collect()
    assert result.item() == 2 * 256 * 256  # the result outlives the graph


def test_memory_that_is_freed_within_the_capture_serves_again_within_it():
    x = yoke.ones((1 << 16,))
    before = yoke.memory_allocated()
    graph = yoke.Graph()
    with graph.capture():
        y = x
        for _ in range(20):
            y = y + 1
    assert yoke.memory_allocated() - before <= 4 * x.nbytes
    graph.replay()
    assert y.sum().item() == 21 * (1 << 16)
    del graph, y
    gc.collect()
    assert yoke.memory_allocated() == before


def test_another_thread_works_on_while_one_captures():
    done = []

    def work():
        done.append((yoke.ones((8,)) + 1).tolist())

    graph = yoke.Graph()
    x = yoke.zeros((8,))
    with graph.capture():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        x.add_(1)
    assert done == [[2.0] * 8]
    graph.replay()
    assert x.tolist() == [1.0] * 8


@pytest.mark.parametrize("call", [
    lambda: yoke.synchronize(), lambda: yoke.empty_cache(), lambda: yoke.Stream().synchronize(),
    lambda: yoke.synchronize("cpu")], ids=["synchronize", "empty_cache", "a stream's", "another device's"])
def test_another_thread_waits_without_harm_to_a_capture(call):
    told = []

    def work():
        try:
            call()
        except yoke.Error as error:
            told.append(error)

    if yoke.current_device().kind == "cpu" and "Stream" in call.__code__.co_names:
        return  # the CPU has no streams
    graph = yoke.Graph()
    x = yoke.ones((8,))
    with graph.capture():
        y = x * 3
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        total = y.sum()
    assert not told
    graph.replay()
    assert total.item() == 24


def test_threads_that_wait_all_the_time_never_meet_a_capture():
    stop, told = threading.Event(), []

    def work():
        while not stop.is_set() and not told:
            try:
                yoke.synchronize()
                yoke.empty_cache()
            except yoke.Error as error:
                told.append(error)

    x = yoke.ones((8,))
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            graph = yoke.Graph()
            with graph.capture():
                total = (x * 3).sum()
            graph.replay()
            assert total.item() == 24
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not told


def test_memory_that_runs_out_within_a_capture_is_taken_from_what_waits():
    if yoke.current_device().kind == "cpu":
        return  # the amount of host memory is unknown
    if yoke.mem_get_info()[1] > 4 << 30:
        pytest.skip("takes most of the memory: not on a GPU that others use")
    yoke.empty_cache()
    tenth = yoke.mem_get_info()[0] // 10 // 4
    waiting = [yoke.empty((tenth,)) for _ in range(8)]
    del waiting
    gc.collect()
    x = yoke.ones((8,))
    graph = yoke.Graph()
    with graph.capture():
        yoke.empty((3 * tenth,))  # larger than the cached blocks
        total = (x * 3).sum()
    graph.replay()
    assert total.item() == 24


def test_replays_step_the_version_of_what_they_write():
    x = yoke.ones((3,)).requires_grad_(True)
    w = yoke.ones((3,))
    graph = yoke.Graph()
    with graph.capture(), yoke.no_grad():
        w.mul_(2)
    y = (x * w).sum()
    graph.replay()
    with pytest.raises(yoke.Error, match="mul"):
        y.backward()


def test_a_graph_holds_what_another_graph_has_made():
    x = yoke.full((1000,), 3.0)
    first, second = yoke.Graph(), yoke.Graph()
    with first.capture():
        made = x + 1.0
    first.replay()
    with second.capture():
        result = made * 2.0
    del made, first
    gc.collect()
    others = [yoke.full((1000,), -1.0) for _ in range(8)]  # would reuse the memory of `made`
    second.replay()
    assert result.tolist() == [8.0] * 1000
    del others


MOVED = "has moved since the capture .* capture the step again, in another Graph"


def test_a_graph_of_a_parameter_that_has_moved_is_refused():
    net, x = nn.Linear(2, 1), yoke.ones((1, 2))
    optimizer, graph, other, eager = yoke.optim.SGD(net.parameters(), lr=0.5), yoke.Graph(), yoke.Graph(), yoke.Graph()

    def step():
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    with graph.capture():
        step()
    with other.capture():
        y = x * 2
    graph.replay()
    net.float()  # moves no parameter
    graph.replay()
    net.double()
    for _ in range(2):
        with pytest.raises(yoke.StateError, match=MOVED):
            graph.replay()
    before = net.weight.tolist()
    other.replay()
    assert net.weight.tolist() == before and y.tolist() == [[2, 2]]
    x = x.double()
    with eager.capture():
        step()
    eager.replay()
    assert net.weight.tolist() == [[w - 0.5 for w in before[0]]]
    with pytest.raises(yoke.StateError, match=MOVED):
        graph.replay()


def test_a_graph_that_was_captured_after_a_move_goes_on():
    leaf = yoke.ones(2)
    view, graph = leaf.detach(), yoke.Graph()
    leaf.to_(yoke.float64)  # the view keeps the memory
    with graph.capture():
        view.mul_(2)
    graph.replay()
    graph.replay()
    assert view.tolist() == [4, 4] and leaf.tolist() == [1, 1]
    del graph
    yoke.ones(1).to_(yoke.int32)  # no graph is left to notify
