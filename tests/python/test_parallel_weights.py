"""Weights in any unit give the same results, and an infinite or NaN gradient costs a single step with every compression."""
import math

import numpy as np
import pytest

import yoke
from test_parallel import on_ranks
from yoke import nn

POWERSGD = "powersgd:rank=1,start=2,rate=1"


def gradients(group, weights, compression=None, dtype=yoke.float32, losses=()):
    """Returns the gradients of each step, a step for each weight; `losses` are factors for rank 1's steps."""
    yoke.manual_seed(3)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))
    net.to(dtype)
    ddp = yoke.DistributedDataParallel(net, group, compression=compression)
    numbers, seen = np.random.default_rng(group.rank), []
    for step, weight in enumerate(weights):
        ddp.set_weight(weight)
        loss = ddp(yoke.tensor(numbers.normal(size=(4, 6)).astype("float32")).to(dtype=dtype)).pow(2).mean()
        (loss * (dict(losses).get(step, 1.0) if group.rank else 1.0)).backward()
        seen.append([each.grad.tolist() for each in net.parameters()])
        for each in net.parameters():
            each.grad = None
    return seen, ddp.comm_state()


@pytest.mark.parametrize("compression", [None, "fp16", "bf16", POWERSGD])
@pytest.mark.parametrize("dtype", [yoke.float32, yoke.float16])
def test_the_unit_of_weights_changes_no_bit(compression, dtype):
    def body(group):
        plain, _ = gradients(group, [1.0] * 8, compression, dtype)
        return plain, gradients(group, [1.0, 4096.0, 4096.0, 0.5, 2.0**60, 2.0**-60, 3.0, 1.0], compression, dtype)[0]
    for plain, weighed in on_ranks(2, body):
        assert plain == weighed and all(math.isfinite(each) for each in np.array(plain[-1][0]).ravel())


@pytest.mark.parametrize("bad", [math.inf, math.nan])
@pytest.mark.parametrize("compression", [None, "fp16", POWERSGD])
def test_a_gradient_that_is_not_finite_costs_one_step(compression, bad):
    def body(group):
        return gradients(group, [1.0] * 8, compression, losses={4: bad})
    for seen, state in on_ranks(2, body):
        sound = [all(np.isfinite(np.array(each)).all() for each in step) for step in seen]
        assert sound == [True] * 4 + [False] + [True] * 3
        assert all(np.isfinite(np.array(each.tolist())).all() for each in state["tensors"].values())


def test_weights_that_are_not_finite_together_are_told_on_all():
    def body(group):
        with pytest.raises(yoke.Error) as caught:
            gradients(group, [1.7e308])
        return str(caught.value)
    for told in on_ranks(2, body):
        assert "the sum of all ranks' weights is inf, and the weight of this rank is 1.7e+308" in told


def mean_of_constants(group, weight, gradient, compression, dtype):
    layer = nn.Linear(8, 4, bias=False).to(dtype)
    ddp = yoke.DistributedDataParallel(layer, group, compression=compression)
    ddp.set_weight(weight)
    (ddp(yoke.ones(1, 8, dtype=dtype)).sum() * gradient).backward()
    return np.array(layer.weight.grad.tolist())


def mean(bucket, group):
    return group.all_reduce(bucket.tensor, op="avg", async_op=True)


@pytest.mark.parametrize("compression, dtype", [("fp16", yoke.float32), (None, yoke.float16), ("bf16", yoke.float16), (mean, yoke.float16)])
@pytest.mark.parametrize("weights", [(1000, 1, 1, 1), (3, 1, 2, 2), (1, 1e-30, 1e-30, 1e-30)])
def test_no_weight_takes_a_float16_beyond_the_mean(compression, dtype, weights):
    def body(group):
        mine = weights[group.rank]
        large = mean_of_constants(group, mine, 60000.0, compression, dtype)
        return large, mean_of_constants(group, mine, 2.0**-10 * (group.rank + 1), compression, dtype)
    small = sum(2.0**-10 * (rank + 1) * each for rank, each in enumerate(weights)) / sum(weights)
    for large, found in on_ranks(4, body):
        assert abs(large / 60000 - 1).max() < 2e-3 and abs(found / small - 1).max() < 2e-3


def test_equal_weights_of_five_ranks_change_no_bit():
    def body(group):
        return gradients(group, [1.0] * 3, dtype=yoke.float64)[0], gradients(group, [21.9, 86.6, 11.7], dtype=yoke.float64)[0]
    for plain, weighed in on_ranks(5, body):
        assert plain == weighed
