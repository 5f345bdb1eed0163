"""copy.deepcopy of tensors and modules, and parts of containers."""

import copy

import pytest

import yoke
from yoke import nn, optim


class Tied(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.note = ["a list"]

    def forward(self, x):
        return self.norm(self.second(self.first(x)))


@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16, yoke.int64, yoke.bool], ids=str)
def test_a_copied_tensor_has_memory_of_its_own(dtype):
    x = yoke.ones((2, 3), dtype=dtype)
    y = copy.deepcopy(x)
    assert type(y) is yoke.Tensor and y.dtype == dtype and y.device == x.device and y.shape == (2, 3)
    x.fill_(0)
    assert y.tolist() == yoke.ones((2, 3), dtype=dtype).tolist() and not y.requires_grad


def test_a_copied_parameter_is_a_leaf_with_a_gradient_of_its_own():
    p = nn.Parameter(yoke.tensor([1.0, 2.0]))
    p.name = "bias"
    (p * p).sum().backward()
    q = copy.deepcopy(p)
    assert type(q) is nn.Parameter and q.is_leaf and q.requires_grad and q.name == "bias"
    assert q.grad.tolist() == [2.0, 4.0] and not yoke.shares_memory(q.grad, p.grad)
    frozen = copy.deepcopy(nn.Parameter(yoke.ones(1), requires_grad=False))
    assert type(frozen) is nn.Parameter and not frozen.requires_grad


def test_only_leaves_are_copied():
    x = nn.Parameter(yoke.ones(2)) * 2
    with pytest.raises(yoke.StateError, match=r"copy tensor\.detach\(\)"):
        copy.deepcopy(x)
    assert copy.deepcopy(x.detach()).tolist() == [2.0, 2.0]
    y = yoke.ones(1)
    y.close()
    with pytest.raises(yoke.ClosedError):
        copy.deepcopy(y)


def test_the_best_network_so_far_is_kept():
    yoke.manual_seed(0)
    net = Tied()
    best = copy.deepcopy(net)
    assert best.first.weight is best.second.weight and best.first.weight is not net.first.weight
    assert best.note == net.note and best.note is not net.note
    before = {name: value.tolist() for name, value in best.state_dict().items()}
    optimizer = optim.SGD(net.parameters(), lr=1.0)
    net(yoke.randn((8, 3))).sum().backward()
    net(yoke.randn((8, 3)))
    optimizer.step()
    assert {name: value.tolist() for name, value in best.state_dict().items()} == before
    assert net.norm.running_mean.tolist() != best.norm.running_mean.tolist()
    optim.SGD(best.parameters(), lr=1.0).zero_grad()
    best(yoke.randn((8, 3))).sum().backward()
    assert best.first.weight.grad is not None
    assert len(list(best.parameters())) == len(list(net.parameters()))


def test_a_slice_of_a_container_is_one():
    layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).eval()
    part = layers[0:2]
    assert type(part) is nn.Sequential and len(part) == 2 and part[0] is layers[0] and not part.training
    assert part(yoke.ones((1, 2))).shape == (1, 3)
    assert len(layers[5:]) == 0 and layers[::-1][0] is layers[2]
    assert type(nn.ModuleList([nn.ReLU(), nn.Tanh()])[1:]) is nn.ModuleList
    with pytest.raises(yoke.IndexError):
        layers[3]


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("shape", [0, (2, 0), -1, ()])
def test_a_norm_over_nothing_is_refused(kind, shape):
    with pytest.raises(yoke.ValueError, match="normalized_shape"):
        kind(shape)


# ---- Shared memory ---------------------------------------------------------------------------------------------------


LAYOUTS = [yoke.tensor(3.5), yoke.zeros(0), yoke.zeros(2, 0, 3), yoke.arange(6).reshape(2, 3).T, yoke.arange(6)[::-1],
           yoke.ones(1).expand(3, 4), yoke.arange(9).reshape(3, 3)[1:, ::2], yoke.arange(8, dtype=yoke.bfloat16)[3:].view(5)]


@pytest.mark.parametrize("x", LAYOUTS, ids=lambda x: f"{x.shape} {x.strides}")
def test_a_copy_keeps_the_layout(x):
    y = copy.deepcopy(x)
    assert (y.dtype, y.shape, y.strides, y.tolist()) == (x.dtype, x.shape, x.strides, x.tolist())
    assert x.numel == 0 or not yoke.shares_memory(x, y)


def test_views_of_one_storage_are_views_of_one_copy():
    base = yoke.zeros(3, 4)
    whole, row, turned, same, again = copy.deepcopy([base, base[1], base.T, {"row": base[1]}, base])
    assert whole is again and row.storage_id() == turned.storage_id() == same["row"].storage_id() == whole.storage_id() != base.storage_id()
    row.fill_(5)
    assert whole[1].tolist() == same["row"].tolist() == turned[:, 1].tolist() == [5, 5, 5, 5] and base.sum().item() == 0
    apart = copy.deepcopy(base[1]), copy.deepcopy(base[1])
    assert not yoke.shares_memory(*apart)


class Flat(nn.Module):
    """Module with parameters and buffers that are parts of flat tensors."""

    def __init__(self):
        flat, weights = yoke.zeros(6), yoke.ones(6)
        self.register_buffer("flat", flat)
        self.register_buffer("left", flat[:3])
        self.first = nn.Parameter(weights[:2])
        self.second = nn.Parameter(weights[2:].reshape(2, 2))
        self.tied = self.second


def test_a_module_of_parts_of_flat_memory_comes_back_as_one():
    net = Flat()
    (net.first.sum() * 2 + (net.second * 3).sum()).backward()
    for other in (copy.deepcopy(net), copy.deepcopy([net])[0]):
        other.flat.fill_(7)
        assert other.left.tolist() == [7, 7, 7] and net.left.tolist() == [0, 0, 0]
        assert other.first.storage_id() == other.second.storage_id() and other.tied is other.second
        assert type(other.first) is nn.Parameter and other.first.is_leaf and other.first.requires_grad
        assert other.first.grad.tolist() == [2, 2] and not yoke.shares_memory(other.first.grad, net.first.grad)
        with yoke.no_grad():
            other.first += 1
        assert net.first.tolist() == [1, 1] and other.second.tolist() == [[1, 1], [1, 1]]


def test_gradients_that_share_memory_share_it_in_the_copy():
    a, b, gradients = nn.Parameter(yoke.ones(2)), nn.Parameter(yoke.ones(2)), yoke.arange(4, dtype=yoke.float32)
    a.grad, b.grad = gradients[:2], gradients[2:]
    c, d = copy.deepcopy((a, b))
    assert c.grad.storage_id() == d.grad.storage_id() != gradients.storage_id() and (c.grad.tolist(), d.grad.tolist()) == ([0, 1], [2, 3])
    with yoke.no_grad():
        inside = copy.deepcopy(a)
    assert inside.requires_grad and inside.grad.tolist() == [0, 1]


def test_one_object_in_a_structure_that_leads_back_to_it_is_one_copy():
    p = nn.Parameter(yoke.ones(2))
    p.owner = [p]
    q = copy.deepcopy(p)
    assert q.owner[0] is q and q is not p
