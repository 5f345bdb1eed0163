"""What checkpoint scopes hold waits in the host's memory: the same bits, and little of the device's. On the CPU nothing moves."""
import pytest

import yoke
from conftest import DEVICE
from yoke import nn

POLICIES = ["full", "matmul", ["gelu"], lambda op: "offload" if op.name == "linear" else "recompute"]


def blocks():
    yoke.manual_seed(3)
    return [nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 128), nn.GELU(), nn.Dropout(0.2), nn.Linear(128, 32)) for _ in range(5)]


def step(run):
    """Loss and gradients, and how much more memory stands between forward and backward than before."""
    nets, x = blocks(), yoke.randn((64, 32))
    yoke.synchronize()
    before, y = yoke.memory_allocated(DEVICE), x
    for net in nets:
        y = y + run(net, y)
    loss = (y * y).mean()
    yoke.synchronize()
    held = yoke.memory_allocated(DEVICE) - before
    loss.backward(retain_graph=True)
    loss.backward()
    return [loss.item(), *(p.grad.tolist() for net in nets for p in net.parameters())], held


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_waits_in_the_hosts_memory_has_the_same_bits(policy):
    plain, all_held = step(lambda net, y: net(y))
    offloaded, held = step(lambda net, y: yoke.checkpoint(net, y, policy=policy, offload=True))
    stays = step(lambda net, y: yoke.checkpoint(net, y, policy=policy if isinstance(policy, str) else "full"))
    assert offloaded == plain == stays[0]
    if DEVICE != "cpu":
        assert held < all_held / 3 and held <= stays[1]


def test_offload_is_true_or_false_and_not_for_budgets():
    with pytest.raises(yoke.TypeError, match="'offload' is 3; True or False"):
        yoke.checkpoint_scope(offload=3)
    with pytest.raises(yoke.ValueError, match="'offload' is True, and 'policy' a MemoryBudget"):
        yoke.checkpoint_scope(yoke.MemoryBudget(0.5), offload=True)
