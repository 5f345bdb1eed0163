"""Calls while a checkpoint scope closes and releases memory: ends of borrowed memory, which may run ops of the script."""
import gc
import math
import weakref

import numpy as np
import pytest

import yoke


@pytest.mark.parametrize("budget", [False, True])
def test_ops_that_run_as_a_closing_scope_lets_go_of_memory_are_not_logged(budget):
    ended = []

    class Lent(np.ndarray):
        pass

    def end():
        z = yoke.ones(3)
        for _ in range(40):
            z = z + 1
        ended.append(z.tolist())

    def lent():
        array = np.ones(4, dtype=np.float32).view(Lent)
        weakref.finalize(array, end)
        return yoke.from_dlpack(array) + 1

    x = yoke.ones(4, requires_grad=True)
    policy = yoke.MemoryBudget(0.5) if budget else None
    for _ in range(3):
        x.grad = None
        with yoke.checkpoint_scope(policy):
            y = (x * x).exp()
            kept = lent()
            z = (y * y).sum()
        z.backward()
        assert kept.tolist() == [2.] * 4
        assert x.grad.tolist() == pytest.approx([4 * math.e ** 2] * 4, rel=1e-5)
    gc.collect()
    assert ended and all(each == [41.] * 3 for each in ended)
