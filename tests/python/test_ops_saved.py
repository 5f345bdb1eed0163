"""Memory of the tape: memory kept for backward, no more than the op's line says, freed during backward."""
import numpy as np
import pytest

import yoke
from op_table import to_yoke


def test_memory_falls_as_backward_goes():
    x = to_yoke(np.ones(1 << 18, np.float32), requires_grad=True)  # 1 MiB
    y = x
    for _ in range(20):
        y = yoke.tanh(y)  # each op keeps its result
    loss = yoke.sum(y)
    del y
    held = yoke.memory_allocated()
    yoke.reset_peak_memory_stats()
    loss.backward()
    assert yoke.memory_allocated() < held - (18 << 20)
    # Backward frees kept results on the way, so all gradients never stand beside all results.
    assert yoke.max_memory_allocated() < held + (4 << 20)


def test_dropping_the_loss_frees_what_the_graph_kept():
    before = yoke.memory_allocated()
    x = to_yoke(np.ones(1 << 18, np.float32), requires_grad=True)
    y = yoke.exp(yoke.exp(x))
    assert yoke.memory_allocated() - before >= 3 << 20
    del y
    assert yoke.memory_allocated() - before < 2 << 20


KEPT = {
    # How many results or inputs of 1 MiB an op keeps for its gradient, beyond the test's own input.
    "add": (lambda x: x + 1, 0), "neg": (yoke.neg, 0), "sum": (yoke.sum, 0), "mean": (yoke.mean, 0), "sub": (lambda x: 2 - x, 0),
    "mul by a number": (lambda x: x * 2, 0), "clone": (yoke.clone, 0), "exp": (yoke.exp, 1), "relu": (yoke.relu, 1),
    "tanh": (yoke.tanh, 1), "softmax": (yoke.softmax, 1), "log_softmax": (yoke.log_softmax, 1), "log": (yoke.log, 1),
    "gelu": (yoke.gelu, 1), "cast": (lambda x: yoke.cast(x, yoke.float16), 0), "dropout": (lambda x: yoke.dropout(x, 0.5), 0),
    "transpose": (lambda x: yoke.transpose(x, 0, 1), 0), "cat": (lambda x: yoke.cat([x, x]), 0),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_op_keeps_for_its_gradient_what_its_line_says_and_no_more(name):
    function, count = KEPT[name]
    base = to_yoke(np.ones((512, 512), np.float32), requires_grad=True)
    before = yoke.memory_allocated()
    x = base * 2  # not a leaf: dropped below, so only tensors kept by the op stay
    y = function(x)
    end = yoke.sum(y)
    del x, y
    kept = (yoke.memory_allocated() - before) / (1 << 20)
    end.backward()  # the kept tensors suffice for backward
    assert base.grad is not None
    assert round(kept) == count


def test_mul_keeps_only_the_side_that_the_other_needs():
    x = to_yoke(np.ones(1 << 18, np.float32), requires_grad=True)
    before = yoke.memory_allocated()
    constant = to_yoke(np.full(1 << 18, 2.0, np.float32))
    y = x * constant  # the gradient of x reads the constant; nothing reads x
    del constant
    assert round((yoke.memory_allocated() - before) / (1 << 20)) == 2  # the constant and y
    y.backward(yoke.ones_like(y))
