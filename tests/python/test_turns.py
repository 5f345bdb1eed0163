"""Optimizers, scalers, averages and graphs serve a single thread at a time; a second thread gets an error."""

import threading
import time

import numpy as np
import pytest

import yoke

WIDTH = 1 << 20  # long enough for other threads to run amid a step


def run_threads(count, body):
    """body(i) in as many threads, all begun at once; what each returned."""
    start, results = threading.Barrier(count), [None] * count

    def run(i):
        start.wait()
        results[i] = body(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def tries(call, times):
    """Returns how often the call went through. Otherwise another thread was inside."""
    done = 0
    for _ in range(times):
        try:
            call()
            done += 1
        except yoke.StateError as error:
            assert "another thread is inside" in str(error), error
    return done


def parameter():
    x = yoke.zeros((WIDTH,)).requires_grad_(True)
    x.grad = yoke.ones((WIDTH,))
    return x


def test_a_step_is_whole_or_refused():
    x = parameter()
    optimizer = yoke.optim.SGD([x], lr=1.0)
    steps = sum(run_threads(4, lambda i: tries(optimizer.step, 40)))
    assert 1 <= steps <= 160
    np.testing.assert_array_equal(x.detach().numpy(), np.full(WIDTH, -float(steps), np.float32))


def test_a_step_of_adam_counts_as_many_as_were_done():
    x = parameter()
    optimizer = yoke.optim.AdamW([x], lr=0.5, weight_decay=0.0)
    steps = sum(run_threads(3, lambda i: tries(optimizer.step, 20)))
    assert optimizer.state_dict()["state"][0]["step"] == steps
    assert np.unique(x.detach().numpy()).size == 1


def test_groups_may_not_come_in_the_midst_of_a_step():
    x, more = parameter(), [parameter() for _ in range(20)]
    optimizer = yoke.optim.SGD([x], lr=1.0)

    def body(i):
        if i == 0:
            return tries(optimizer.step, 60)
        return sum(tries(lambda p=p: optimizer.add_param_group({"params": [p]}), 1) for p in more)

    added = run_threads(2, body)[1]
    assert len(optimizer.param_groups) == 1 + added
    optimizer.step()


def test_a_scaler_and_an_average_take_turns_as_well():
    x = parameter()
    ema = yoke.optim.EMA([x], 0.5)
    assert sum(run_threads(3, lambda i: tries(ema.update, 40))) >= 1
    scaler, loss = yoke.GradScaler(), yoke.ones((WIDTH,))
    assert sum(run_threads(3, lambda i: tries(lambda: scaler.scale(loss), 40))) >= 1


def test_a_graph_is_replayed_by_one_thread_at_a_time():
    x = yoke.zeros((WIDTH,))
    graph = yoke.Graph()
    with graph.capture():
        x.add_(1.0)
    replays = sum(run_threads(3, lambda i: tries(graph.replay, 40)))
    np.testing.assert_array_equal(x.numpy(), np.full(WIDTH, float(replays), np.float32))


@pytest.mark.parametrize("retain", [True, False])
def test_threads_may_go_backward_over_a_shared_trunk(retain):
    for _ in range(20):
        x = yoke.ones((1000,)).requires_grad_(True)
        trunk = x * x * x
        losses = [(trunk * float(i + 1)).sum() for i in range(3)]

        def body(i):
            try:
                losses[i].backward(retain_graph=retain)
                return i + 1
            except yoke.StateError as error:
                assert "freed by an earlier backward" in str(error)
                return 0

        done = sum(run_threads(3, body))
        if retain:
            assert done == 6
        if done == 6:
            np.testing.assert_array_equal(x.grad.numpy(), np.full(1000, 18.0, np.float32))


def test_a_state_that_is_read_beside_steps_is_whole_or_refused():
    p = yoke.nn.Parameter(yoke.ones(400, 500))
    p.grad = yoke.ones(400, 500)
    optimizer = yoke.optim.SGD([p], lr=1e-3, momentum=0.9)
    optimizer.step()
    stop, seen = threading.Event(), {"whole": 0, "refused": 0, "empty": 0}

    def steps():
        while not stop.is_set():
            try:
                optimizer.step()
            except yoke.StateError:
                pass

    thread = threading.Thread(target=steps)
    thread.start()
    end = time.monotonic() + 60
    while sum(seen.values()) < 3000 or (not seen["refused"] and time.monotonic() < end):
        try:
            seen["whole" if optimizer.state_dict()["state"] else "empty"] += 1
        except yoke.StateError:
            seen["refused"] += 1
    stop.set()
    thread.join()
    assert seen["empty"] == 0 and seen["refused"], seen
