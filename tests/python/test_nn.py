"""yoke.nn and yoke.optim: modules, their state, and training."""

import copy
import math

import pytest

import yoke
from yoke import nn, optim


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Linear(4, 8)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3, bias=False))
        self.scale = nn.Parameter(yoke.ones(1))
        self.name = "net"

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


def values(module):
    return {name: p.tolist() for name, p in module.named_parameters()}


def test_parameters_are_listed_once_with_dotted_names():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "rest.2.weight"]
    assert len(list(net.parameters())) == 4 and all(isinstance(p, nn.Parameter) for p in net.parameters())
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1", "rest.2"]
    net.again = net.first
    assert len(list(net.parameters())) == 4


def test_linear_starts_as_the_other_languages_do():
    yoke.manual_seed(7)
    layer = nn.Linear(16, 4)
    yoke.manual_seed(7)
    bound = 1 / math.sqrt(16)
    weight = yoke.rand((4, 16)) * (2 * bound) - bound
    bias = yoke.rand(4) * (2 * bound) - bound
    assert layer.weight.tolist() == weight.tolist() and layer.bias.tolist() == bias.tolist()
    assert all(abs(v) <= bound for row in layer.weight.tolist() for v in row)
    assert layer.weight.is_leaf and layer.weight.requires_grad


def test_linear_computes_x_times_w_transposed_plus_b():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": yoke.tensor([[2.0, 3.0]]), "bias": yoke.tensor([1.0])})
    assert layer(yoke.tensor([[1.0, 10.0]])).tolist() == [[33.0]]
    assert nn.Linear(2, 1, bias=False).bias is None
    with pytest.raises(yoke.ValueError, match="'in_features' is 0"):
        nn.Linear(0, 1)


def test_attributes_behave_like_attributes():
    net = Net()
    assert net.name == "net" and net.first is next(net.children())
    del net.scale
    with pytest.raises(AttributeError, match="scale"):
        net.scale
    net.first = None
    assert net.first is None and "first.weight" not in dict(net.named_parameters())
    net.first = nn.Linear(1, 1)
    assert "first.weight" in dict(net.named_parameters())
    with pytest.raises(AttributeError):
        del net.nothing


def test_train_and_eval_reach_every_module():
    net = Net()
    assert all(m.training for m in net.modules())
    assert net.eval() is net and not any(m.training for m in net.modules())
    x = yoke.ones((2, 4))
    assert net(x).tolist() == net(x).tolist()
    net.train()
    yoke.manual_seed(0)
    assert yoke.amax(nn.Dropout(0.5)(yoke.ones(100))).item() == 2.0


def test_state_goes_from_one_module_to_another():
    a, b = Net(), Net()
    assert values(a) != values(b)
    b.load_state_dict(a.state_dict())
    assert values(a) == values(b)
    assert not any(t.requires_grad for t in a.state_dict().values())
    assert yoke.shares_memory(a.state_dict()["scale"], a.scale)


def test_loading_wrong_state_changes_nothing():
    net = Net()
    before = values(net)
    state = {name: t.clone() * 0 for name, t in net.state_dict().items()}
    with pytest.raises(yoke.ValueError, match=r"missing \['scale'\], unexpected \['other'\]"):
        net.load_state_dict({**{k: v for k, v in state.items() if k != "scale"}, "other": state["scale"]})
    for wrong in ("first.bais", "First.bias", "module.first.bias"):
        with pytest.raises(yoke.ValueError, match=rf"unexpected \['{wrong}'\]; did you mean 'first.bias' for '{wrong}'\?; strict=False"):
            net.load_state_dict({(wrong if k == "first.bias" else k): v for k, v in state.items()})
    with pytest.raises(yoke.ValueError, match=r"'first.bias' in the state has shape \(3,\); it must be \(8,\)"):
        net.load_state_dict({**state, "first.bias": yoke.zeros(3)})
    assert values(net) == before
    net.load_state_dict({"scale": yoke.tensor([5.0])}, strict=False)
    assert net.scale.tolist() == [5.0]


def test_to_casts_all_parameters_and_keeps_shared_ones_shared():
    net = Net()
    net.tied = nn.Linear(4, 8)
    net.tied.weight = net.first.weight
    assert net.to(dtype=yoke.float64) is net
    assert all(p.dtype is yoke.float64 and p.requires_grad for p in net.parameters())
    assert net.tied.weight is net.first.weight
    weight = net.first.weight
    assert net.to(yoke.current_device()).first.weight is weight


def test_activations_and_flatten():
    x = yoke.tensor([[-1.0, 0.0, 2.0]])
    assert nn.ReLU()(x).tolist() == [[0, 0, 2]]
    assert nn.Tanh()(x)[0, 2].item() == pytest.approx(math.tanh(2))
    assert nn.GELU()(x)[0, 2].item() == pytest.approx(1.9544997)
    assert nn.GELU("tanh")(x)[0, 2].item() == pytest.approx(1.9545977)
    assert sum(nn.Softmax()(x).tolist()[0]) == pytest.approx(1)
    assert nn.LogSoftmax(axis=1)(x)[0, 0].item() == pytest.approx(-1 - math.log(math.exp(-1) + 1 + math.exp(2)))
    assert nn.Flatten()(yoke.ones((2, 3, 4))).shape == (2, 12) and nn.Flatten()(yoke.ones((0, 3))).shape == (0, 3)


def test_sequential_is_a_sequence_of_modules():
    layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert len(layers) == 2 and layers[-1] is list(layers)[1]
    with pytest.raises(yoke.IndexError, match="5"):
        layers[5]
    with pytest.raises(yoke.TypeError, match="function"):
        nn.Sequential(lambda x: x)
    assert "(1): ReLU()" in repr(layers) and "in_features=2" in repr(layers)


def test_a_module_without_forward_says_so():
    with pytest.raises(yoke.UnsupportedError, match="forward"):
        nn.Module()(1)


def test_cross_entropy_loss_is_the_op():
    x, target = yoke.tensor([[1.0, 2.0], [3.0, 0.0]]), yoke.tensor([1, 1])
    want = [math.log(1 + math.exp(-1)), math.log(1 + math.exp(3))]
    assert nn.CrossEntropyLoss(reduction="none")(x, target).tolist() == pytest.approx(want)
    assert nn.CrossEntropyLoss()(x, target).item() == pytest.approx(sum(want) / 2)


def reference_sgd(p, grads, lr, momentum, weight_decay, nesterov):
    buffer = None
    for g in grads:
        g = g + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


@pytest.mark.parametrize("options", [
    {}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}], ids=str)
def test_sgd_follows_its_formula(options):
    p = nn.Parameter(yoke.tensor([1.0, -2.0], dtype=yoke.float64))
    optimizer = optim.SGD([p], lr=0.1, **options)
    grads = [0.5, -1.0, 2.0]
    for g in grads:
        optimizer.zero_grad()
        (p * g).sum().backward()
        optimizer.step()
    full = {"momentum": 0, "weight_decay": 0, "nesterov": False, **options}
    assert p.tolist() == pytest.approx([reference_sgd(v, grads, 0.1, **full) for v in (1.0, -2.0)], rel=1e-12)


def test_groups_have_options_of_their_own_that_may_change():
    a, b = nn.Parameter(yoke.ones(1)), nn.Parameter(yoke.ones(1))
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.5)
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == (0.0, 0.5)
    optimizer.param_groups[1]["lr"] = 0.25
    optimizer.step()
    assert (a.item(), b.item()) == (-1.0, 0.25)


def test_zero_grad_forgets_or_zeroes():
    p = nn.Parameter(yoke.ones(2))
    optimizer = optim.SGD([p], lr=1)
    p.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_the_optimizer_state_goes_on_where_it_was():
    def run(p, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

    p = nn.Parameter(yoke.tensor([3.0]))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    run(p, optimizer, 3)
    q = nn.Parameter(p.detach().clone())
    other = optim.SGD([q], lr=5.0)
    state = optimizer.state_dict()
    other.load_state_dict({**state, "state": {k: {n: t.clone() for n, t in s.items()} for k, s in state["state"].items()}})
    run(p, optimizer, 3)
    run(q, other, 3)
    assert p.tolist() == q.tolist() and other.param_groups[0]["lr"] == 0.1
    with pytest.raises(yoke.ValueError, match=r"\[1\].*\[2\]"):
        optim.SGD([nn.Parameter(yoke.ones(1)), nn.Parameter(yoke.ones(1))], lr=1).load_state_dict(state)


@pytest.mark.parametrize("make, error", [
    (lambda p: optim.SGD([], lr=1), yoke.ValueError),
    (lambda p: optim.SGD(p, lr=1), yoke.TypeError),
    (lambda p: optim.SGD([p, 1], lr=1), yoke.TypeError),
    (lambda p: optim.SGD([p, p], lr=1), yoke.ValueError),
    (lambda p: optim.SGD([p], lr=-1), yoke.ValueError),
    (lambda p: optim.SGD([p], lr="fast"), yoke.TypeError),
    (lambda p: optim.SGD([p], lr=1, nesterov=True), yoke.ValueError),
    (lambda p: optim.SGD([p * 2], lr=1), yoke.StateError),
    (lambda p: optim.SGD([{"params": [p], "speed": 1}], lr=1), yoke.ValueError),
    (lambda p: optim.SGD([{"lr": 1}], lr=1), yoke.TypeError),
    (lambda p: optim.schedule.linear(optim.SGD([p], lr=1), 1, 0, 0), yoke.ValueError),
])
def test_optimizers_refuse_wrong_input(make, error):
    with pytest.raises(error):
        make(nn.Parameter(yoke.ones(1)))


def test_the_linear_schedule_falls_to_its_end():
    optimizer = optim.SGD([nn.Parameter(yoke.ones(1))], lr=99)
    schedule = optim.schedule.linear(optimizer, 0.1, 0.0, 4)
    rates = [schedule.get_last_lr()[0]]
    for _ in range(5):
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.075, 0.05, 0.025, 0.0, 0.0])
    other = optim.schedule.linear(optimizer, 1, 1, 1)
    other.load_state_dict({**schedule.state_dict(), "last_step": 1})
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.075)


def test_a_small_network_learns_and_repeats_bit_for_bit():
    def train():
        yoke.manual_seed(3)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        x = yoke.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
        target = yoke.tensor([0, 1, 1, 0])
        optimizer = optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
        losses = []
        for _ in range(120):
            optimizer.zero_grad()
            loss = yoke.cross_entropy(net(x), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, net(x).argmax(axis=1).tolist()

    losses, answer = train()
    assert losses[-1] < 0.05 < losses[0] and answer == [0, 1, 1, 0]
    assert train()[0] == losses


def test_modules_can_be_copied_without_their_tensors_being_lost():
    net = nn.Sequential(nn.ReLU())
    again = copy.copy(net)
    assert again.training and again[0] is net[0]
