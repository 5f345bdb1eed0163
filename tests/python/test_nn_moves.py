"""Parameters that move to another dtype or device: state that goes along, and refused moves."""

import numpy as np
import pytest

import yoke
from yoke import nn, optim


def trained(net, optimizer, x, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (net(x.to(net.weight.dtype)) ** 2).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.01, momentum=0.9), lambda p: optim.Adam(p, lr=0.01), lambda p: optim.AdamW(p, lr=0.01)],
                         ids=["SGD", "Adam", "AdamW"])
def test_an_optimizer_goes_on_as_one_of_the_new_dtype_with_the_same_state(make):
    yoke.manual_seed(3)
    net, x = nn.Linear(3, 2), yoke.randn((4, 3))
    optimizer = make(net.parameters())
    trained(net, optimizer, x, 3)
    other = nn.Linear(3, 2).double()
    other.load_state_dict(net.state_dict())
    second = make(other.parameters())
    state = optimizer.state_dict()
    for each in state["state"].values():
        each.update({name: value.double() for name, value in each.items() if name != "step"})
    second.load_state_dict(state)
    net.double()
    assert all(v.dtype is yoke.float64 for each in optimizer.state_dict()["state"].values() for name, v in each.items() if name != "step")
    trained(net, optimizer, x, 3)
    trained(other, second, x, 3)
    assert net.weight.tolist() == other.weight.tolist() and net.bias.tolist() == other.bias.tolist()


def test_a_master_of_former_times_does_not_come_back():
    parameter = nn.Parameter(yoke.ones(2, dtype=yoke.float16))
    optimizer = optim.SGD([parameter], lr=1.0, master_weights=True)
    parameter.grad = yoke.zeros(2, dtype=yoke.float16)
    optimizer.step()
    parameter.to_(yoke.float32)
    parameter.grad = yoke.tensor([0.5, 0.25])
    optimizer.step()
    assert parameter.tolist() == [0.5, 0.75]
    parameter.to_("float16")
    parameter.grad = yoke.zeros(2, dtype=yoke.float16)
    optimizer.step()
    assert parameter.tolist() == [0.5, 0.75]


def test_an_average_follows_its_parameters():
    net = nn.Linear(2, 2)
    ema = optim.EMA(net.parameters(), decay=0.5)
    net.double()
    with yoke.no_grad():
        net.weight.fill_(4.0)
    before = ema.averages[0].tolist()
    ema.update()
    assert ema.averages[0].dtype is yoke.float64
    np.testing.assert_allclose(ema.averages[0].tolist(), np.asarray(before) / 2 + 2, rtol=1e-6)
    with ema.applied():
        assert net.weight.dtype is yoke.float64 and net.weight.tolist() == ema.averages[0].tolist()


def test_what_was_recorded_before_is_refused_and_says_so():
    net = nn.Linear(3, 1)
    loss = net(yoke.ones((2, 3))).sum()
    net.double()
    with pytest.raises(yoke.StateError, match="linear.* used a parameter that has moved .*call backward before that, or compute the loss again"):
        loss.backward()
    assert net.weight.grad is None
    net(yoke.ones((2, 3), dtype=yoke.float64)).sum().backward()
    assert net.weight.grad.dtype is yoke.float64 and net.weight.grad.tolist() == [[2, 2, 2]]


def test_views_keep_the_former_memory():
    parameter = nn.Parameter(yoke.ones(2))
    view, number = parameter.detach(), parameter.storage_id()
    assert parameter.to_(yoke.float64) is parameter and parameter.storage_id() != number
    with yoke.no_grad():
        parameter.fill_(7.0)
    assert view.tolist() == [1, 1] and view.dtype is yoke.float32
    unchanged = parameter.storage_id()
    assert parameter.to_(yoke.float64).storage_id() == unchanged


def test_what_others_were_given_stays_where_it_is():
    parameter = yoke.tensor([1.0, 2.0])
    array, view, shared = parameter.numpy(), memoryview(parameter), np.from_dlpack(parameter)
    parameter.to_(yoke.float64)
    others = [yoke.full(2, 9.0) for _ in range(8)]  # would take the memory if it were free
    assert array.tolist() == view.tolist() == shared.tolist() == [1, 2] and len(others) == 8
    array[0] = 5.0
    assert shared.tolist() == [5, 2] and parameter.tolist() == [1, 2]


def test_a_cast_that_autocast_has_kept_is_made_again():
    weight, x = nn.Parameter(yoke.ones((2, 2))), yoke.ones((1, 2))
    with yoke.autocast(yoke.bfloat16):
        assert yoke.matmul(x, weight).tolist() == [[2, 2]]
        weight.to_(yoke.float64)
        with yoke.no_grad():
            doubled = weight * 2
        weight.to_(yoke.float32)
        other = nn.Parameter(doubled.to(yoke.float32))
        assert yoke.matmul(x, other).tolist() == [[4, 4]] and yoke.matmul(x, weight).tolist() == [[2, 2]]


def test_what_cannot_move_itself_says_what_to_write():
    leaf = nn.Parameter(yoke.ones(2))
    with pytest.raises(yoke.StateError, match=r"to_: the tensor .* was made by mul, and only leaves can move in place; write x = x.to"):
        (leaf * 2).to_(yoke.float64)
    with pytest.raises(yoke.TypeError, match="to_: a tensor of dtype int64 has no gradient"):
        leaf.to_(yoke.int64)
    with pytest.raises(yoke.TypeError, match="non_blocking"):
        leaf.to_("cpu", non_blocking=True)
    plain = yoke.ones(2)
    assert plain.to_("int32") is plain and plain.dtype is yoke.int32 and leaf.dtype is yoke.float32


def test_a_module_moves_with_non_blocking():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert net.to("cpu", yoke.float64, True) is net and {t.dtype for t in [*net.parameters(), net[1].running_mean]} == {yoke.float64}
    assert net.to(dtype=yoke.float32, non_blocking=True)[0].weight.dtype is yoke.float32
    assert net.to("cpu", dtype=yoke.float64, non_blocking=True)[0].weight.dtype is yoke.float64
    with pytest.raises(yoke.TypeError, match=r"to\(\): argument 'device' is given twice, .*: to\(device=None, dtype=None, non_blocking=False\)"):
        net.to("cpu", device="cpu")


def test_flatten_joins_the_axes_that_it_is_told():
    x = yoke.ones((2, 3, 4, 5))
    for arguments, shape in [((), (2, 60)), ((0,), (120,)), ((2,), (2, 3, 20)), ((0, 1), (6, 4, 5)), ((1, -2), (2, 12, 5)), ((-1,), (2, 3, 4, 5))]:
        assert nn.Flatten(*arguments)(x).shape == shape
    assert nn.Flatten(start_dim=0, end_dim=2)(x).shape == (24, 5) and nn.Flatten(0)(yoke.ones(())).shape == (1,)
    assert nn.Flatten(0)(yoke.ones((0, 3))).shape == (0,) and repr(nn.Flatten(2)) == "Flatten(start_dim=2, end_dim=-1)"
    with pytest.raises(yoke.IndexError, match="argument 'start_dim' is 4; for x of shape .* it must be -4 to 3"):
        nn.Flatten(4)(x)
    with pytest.raises(yoke.ValueError, match="'start_dim' is 2 and 'end_dim' is 1"):
        nn.Flatten(2, 1)(x)
    with pytest.raises(yoke.TypeError, match="'start_dim'"):
        nn.Flatten("a")
