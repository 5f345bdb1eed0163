"""Tensors, modules and optimizers are pickled and copied as in PyTorch."""

import copy
import io
import pickle
import subprocess
import sys

import pytest

import yoke
from yoke import nn, optim

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16, yoke.float16, yoke.float8_e4m3, yoke.int64, yoke.bool], ids=str)
def test_a_tensor_comes_back(dtype, protocol):
    x = yoke.arange(6).reshape(2, 3).to(dtype=dtype)
    y = again(x, protocol)
    assert type(y) is yoke.Tensor and (y.dtype, y.shape, y.strides, y.device) == (x.dtype, x.shape, x.strides, x.device)
    assert y.tolist() == x.tolist() and not y.requires_grad and not yoke.shares_memory(x, y)


@pytest.mark.parametrize("x", [yoke.tensor(3.5), yoke.zeros(0), yoke.zeros(2, 0, 3), yoke.arange(6).reshape(2, 3).T,
                               yoke.arange(6)[::-1], yoke.ones(1).expand(3, 4), yoke.arange(9).reshape(3, 3)[1:, ::2]],
                         ids=lambda x: f"{x.shape} {x.strides}")
def test_a_layout_comes_back(x):
    y = again(x)
    assert (y.shape, y.strides, y.tolist()) == (x.shape, x.strides, x.tolist())


def test_what_shares_memory_in_one_pickle_shares_it_again():
    x = yoke.arange(12).reshape(3, 4)
    y, row, turned = again([x, x[1], x.T])
    assert y.storage_id() == row.storage_id() == turned.storage_id() != x.storage_id()
    row.fill_(7)
    assert y[1].tolist() == [7, 7, 7, 7] and turned[:, 1].tolist() == [7, 7, 7, 7] and x[1].tolist() == [4, 5, 6, 7]
    same = again([x, x])
    assert same[0] is same[1]
    apart = again(x), again(x)
    assert not yoke.shares_memory(*apart)


def test_a_pickle_says_what_is_there_when_it_is_written():
    """A second pickle has a later value. A pickle of another pickler has it too, while the first pickler lives."""
    x = yoke.zeros(3)
    first = io.BytesIO()
    pickler = pickle.Pickler(first)
    pickler.dump(x)
    x.fill_(1)
    assert again(x).tolist() == [1, 1, 1] and pickle.loads(first.getvalue()).tolist() == [0, 0, 0]


def test_gradients_stay_behind_and_requires_grad_does_not():
    x = yoke.ones(2).requires_grad_()
    (x * x).sum().backward()
    y = again(x)
    assert y.requires_grad and y.is_leaf and y.grad is None
    computed = again(x * 2)
    assert computed.requires_grad and computed.is_leaf and computed.tolist() == [2, 2]


def test_a_parameter_comes_back_with_its_attributes():
    p = nn.Parameter(yoke.ones(2))
    p.name = "bias"
    for q in (again(p), copy.copy(p)):
        assert type(q) is nn.Parameter and q.requires_grad and q.name == "bias" and q.tolist() == [1, 1]
    assert not again(nn.Parameter(yoke.ones(1), requires_grad=False)).requires_grad


def test_a_shallow_copy_shares_memory():
    x = yoke.arange(6).reshape(2, 3)
    y = copy.copy(x.T)
    assert y.storage_id() == x.storage_id() and y.strides == (1, 3)
    y.fill_(0)
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    leaf = copy.copy(yoke.ones(1).requires_grad_())
    assert leaf.requires_grad and leaf.is_leaf


def test_a_closed_tensor_says_so():
    x = yoke.ones(2)
    x.close()
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(yoke.ClosedError, match="closed"):
            call(x)


def test_another_process_reads_it(tmp_path):
    (tmp_path / "x.pickle").write_bytes(pickle.dumps({"x": yoke.arange(4).reshape(2, 2), "p": nn.Parameter(yoke.ones(1))}))
    code = f"import pickle; s = pickle.load(open({str(tmp_path / 'x.pickle')!r}, 'rb')); print(s['x'].tolist(), type(s['p']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("[[0, 1], [2, 3]] <class 'yoke.nn"), done.stderr


@pytest.mark.skipif(yoke.is_available("cuda"), reason="there is a GPU")
def test_a_device_that_is_not_here_is_named():
    from yoke._copy import _read_storage

    with pytest.raises(yoke.DeviceUnavailableError, match=r"was pickled on cuda:1.*pickle x\.cpu\(\)"):
        _read_storage("cuda:1", b"\0")


@pytest.mark.skipif(not yoke.is_available("cuda"), reason="there is no GPU")
def test_a_tensor_of_a_device_comes_back_to_it():
    x = yoke.arange(6, device="cuda").reshape(2, 3).T
    y = again(x)
    assert y.device == x.device and y.tolist() == x.tolist() and y.strides == x.strides


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.second(self.first(x)))


def train(net, optimizer, steps=2):
    yoke.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        (net(yoke.randn(8, 3)) * yoke.randn(8, 3)).sum().backward()
        optimizer.step()
    return {name: value.tolist() for name, value in net.state_dict().items()}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_module_comes_back(protocol):
    yoke.manual_seed(0)
    net = Net().eval()
    other = again(net, protocol)
    assert other.first.weight is other.second.weight and not other.training
    x = yoke.randn(4, 3)
    assert other(x).tolist() == net(x).tolist()
    assert [name for name, _ in other.named_parameters()] == [name for name, _ in net.named_parameters()]
    shallow = copy.copy(net)
    assert shallow.first.weight is net.first.weight and shallow(x).tolist() == net(x).tolist()


MAKERS = [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p), lambda p: optim.AdamW(p, lr=0.01),
          lambda p: optim.SGD(p, lr=0.1)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("copied", [again, copy.deepcopy, lambda pair: again(pair, 0)], ids=["pickle", "deepcopy", "protocol 0"])
def test_training_goes_on_from_a_copy_as_from_the_original(make, copied):
    yoke.manual_seed(0)
    net = Net()
    optimizer = make(net.parameters())
    train(net, optimizer)
    optimizer.param_groups[0]["lr"] = 0.05
    other, its = copied((net, optimizer))
    assert type(its) is type(optimizer) and its.param_groups[0]["lr"] == 0.05
    assert its.param_groups[0]["params"][0] is next(iter(other.parameters()))
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    result = train(other, its)
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before != result
    assert train(net, optimizer) == result


def test_a_shallow_copy_of_an_optimizer_steps_the_same_tensors_with_a_state_of_its_own():
    p = nn.Parameter(yoke.ones(2))
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5)
    (p * 2).sum().backward()
    optimizer.step()
    other = copy.copy(optimizer)
    assert other.param_groups[0]["params"][0] is p
    other.step()
    other.param_groups[0]["lr"] = 9.0
    assert p.tolist() == [-4, -4] and optimizer.param_groups[0]["lr"] == 1.0
    assert optimizer.state_dict()["state"][0]["momentum_buffer"].tolist() == [2, 2]


def test_groups_schedules_and_untouched_optimizers_come_back():
    a, b = nn.Parameter(yoke.ones(1)), nn.Parameter(yoke.ones(1))
    optimizer = optim.AdamW([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.25, weight_decay=0.125)
    schedule = optim.schedule.cosine(optimizer, 10)
    schedule.step()
    optimizer, schedule = again((optimizer, schedule))
    assert schedule.optimizer is optimizer and schedule.last_step == 1
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1]
    assert optimizer.param_groups[0]["lr"] > optimizer.param_groups[1]["lr"] and optimizer.defaults["weight_decay"] == 0.125
    optimizer.add_param_group({"params": [nn.Parameter(yoke.ones(1))]})
    optimizer.zero_grad()
    optimizer.step()
