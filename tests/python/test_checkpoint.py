"""Checkpoint scopes: every number has the same bits as without scopes, and dropped tensors take no memory."""

import contextlib
import functools

import pytest

import yoke
from conftest import DEVICE
from yoke import nn

POLICIES = ["full", None, "matmul", ["gelu", "layer_norm", "dropout", "mul"],
            lambda op: "keep" if op.bytes < 200 or op.name == "linear" else "recompute"]
CASES = {}


def case(function):
    """Registers a case: a step that returns a list of tensors; `scope()` makes the step's blocks."""
    CASES[function.__name__] = function
    return function


def bits(tensors):
    return [x.to(dtype=yoke.float64).tolist() for x in tensors]


def run(step, scope):
    """The step's tensors, and where the random numbers stand after it."""
    yoke.manual_seed(7)
    return bits(step(scope)), yoke.get_rng_state().tolist()


def gradients(*leaves):
    return [leaf.grad for leaf in leaves]


def energy(x):
    return (x * x).sum()


def leaf(*shape):
    return yoke.randn(shape).requires_grad_(True)


def block(width=8):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


@case
def dropout(scope):
    nets, x = [nn.Sequential(block(), nn.Dropout(0.5)) for _ in range(3)], leaf(4, 8)
    y = x
    for net in nets:
        with scope():
            y = y + net(y)
    energy(y).backward()
    return [y, *gradients(x, *(p for net in nets for p in net.parameters()))]


@case
def tied_weights(scope):
    weight, index = leaf(12, 8), yoke.tensor([1, 5, 5, 0])
    with scope():
        y = yoke.gelu(yoke.embedding(index, weight))
    with scope():
        loss = yoke.cross_entropy(yoke.linear(y, weight), yoke.tensor([1, 2, 3, 4]))
    loss.backward()
    return [loss, weight.grad]


@case
def grouped_heads(scope):
    layer, x = nn.TransformerBlock(16, 4, causal=True, dropout=0.2), leaf(2, 5, 16)
    layer.attention = nn.MultiheadAttention(16, 4, num_kv_heads=2, dropout=0.2, causal=True)
    with scope():
        y = layer(layer.attention(x))
    energy(y).backward()
    return [y, *gradients(x, *layer.parameters())]


@case
def batch_norm(scope):
    net, x = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)), leaf(5, 4)
    for _ in range(2):
        with scope():
            y = net(x)
        y.sum().backward()
    return [y, *gradients(x, *net.parameters()), *net.buffers()]


@case
def in_place_chains(scope):
    x, w = leaf(4, 4), leaf(4, 4)
    with scope():
        y = x @ w
        y.add_(1.0).mul_(0.5)
        z = yoke.exp(y * 0.1)
        y.tanh_()
        z = z * y
        z.relu_()
        u = (z * z).add_(y)
    energy(u).backward()
    return [u, *gradients(x, w)]


@case
def views(scope):
    x, w = leaf(4, 6), leaf(3, 3)
    with scope():
        y = (x * 2).reshape((4, 2, 3)).transpose(0, 1)
        z = yoke.sigmoid(y @ w)
        part = (z[:, 1:] * z[:, :-1]).reshape(-1)
        with yoke.no_grad():
            weights = yoke.ones_like(z)
            weights[0] = z[1] * 3.0
            weights[:, 0].mul_(2.0)
        out = yoke.cat([part, (z * z * weights).reshape(-1)])
    energy(out).backward()
    return [out, *gradients(x, w)]


@case
def masks_and_data_inside(scope):
    x, w = leaf(6, 6), leaf(6, 6)
    with scope():
        with yoke.no_grad():
            mask = (yoke.rand(6, 6) < 0.5).to(yoke.float32)
        y = yoke.gelu(x @ w) * mask
        y = y * yoke.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) + yoke.randn((6, 6)) * y
        y = yoke.where(yoke.rand(6, 6) < 0.3, y, y * y)
        y = y * yoke.arange(6) * y
    y.sum().backward()
    return [y, *gradients(x, w)]


def under_autocast(scope, cache):
    net, x, weight = block(), leaf(4, 8), leaf(8, 8)
    with yoke.autocast("bfloat16", cache_enabled=cache):
        y = yoke.linear(x, weight)  # outside, inside, and outside again
        with scope():
            y = yoke.tanh(yoke.linear(net(y), weight))
        with scope():
            y = yoke.linear(net(y), weight)
        y = yoke.linear(y, weight)
    energy(y.to(yoke.float32)).backward()
    return [y, *gradients(x, weight, *net.parameters())]


@case
def autocast_with_its_cache(scope):
    return under_autocast(scope, True)


@case
def autocast_without_its_cache(scope):
    return under_autocast(scope, False)


@case
def autocast_within(scope):
    net, x = block(), leaf(4, 8)
    with scope():
        with yoke.autocast("bfloat16"):
            y = net(x)
        y = net(y.to(yoke.float32))
    y.sum().backward()
    return [y, *gradients(x, *net.parameters())]


@case
def a_scaled_loss(scope):
    net, x = block(), yoke.randn((4, 8))
    optimizer, scaler = yoke.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), yoke.GradScaler(init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        with yoke.autocast("bfloat16"), scope():
            loss = energy(net(x).to(yoke.float32))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return [loss, *net.parameters()]


@case
def two_backwards_added(scope):
    net, x = block(), leaf(4, 8)
    for _ in range(2):
        with scope():
            y = net(x)
        energy(y).backward()
    return [y, *gradients(x, *net.parameters())]


@case
def a_retained_graph_walked_twice(scope):
    net, x = block(), leaf(4, 8)
    with scope():
        y = net(x)
    loss = energy(y)
    loss.backward(retain_graph=True)
    once = [g.clone() for g in gradients(x, *net.parameters())]
    loss.backward()
    return [*once, *gradients(x, *net.parameters())]


@case
def grad(scope):
    net, x = block(), leaf(4, 8)
    with scope():
        y = net(x)
    first = yoke.grad(energy(y), [x, *net.parameters()], retain_graph=True)
    return [*first, *yoke.grad(y, x, yoke.ones_like(y))]


@case
def three_nested(scope):
    a, b, c, x = block(), block(), block(), leaf(4, 8)
    with scope():
        y = a(x)
        with scope():
            y = b(y) * y
            with scope():
                z = c(y) * y
            z = b(z) + y * z
        z = a(z * z)
    z.sum().backward()
    return [z, *gradients(x, *(p for net in (a, b, c) for p in net.parameters()))]


@case
def a_captured_step(scope):
    net, x = nn.Sequential(block(), nn.Dropout(0.3), block()), yoke.randn((4, 8))
    for p in net.parameters():
        p.grad = yoke.zeros_like(p)
    graph = yoke.Graph()
    with graph.capture():
        net.zero_grad(set_to_none=False)
        y = x
        for layer in net:
            with scope():
                y = layer(y)
        energy(y).backward()
    for _ in range(2):
        graph.replay()
    return [y, *gradients(*net.parameters())]


@case
def backward_inside(scope):
    net, x = block(), leaf(4, 8)
    with scope():
        y = net(x)
        energy(y).backward()
        z = net(y.detach())
    z.sum().backward()
    return [y, z, *gradients(x, *net.parameters())]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_scopes_change_no_bit(name, policy):
    plain = run(CASES[name], contextlib.nullcontext)
    assert run(CASES[name], functools.partial(yoke.checkpoint_scope, policy)) == plain


def test_the_function_is_called_once_with_all_that_it_was_given():
    calls = []

    def function(a, *rest, key, other):
        calls.append((a, rest, key, other))
        return {"y": a * 2, "rest": rest}, None

    x = leaf(3)
    out = yoke.checkpoint(function, x, 1, "two", key=[3], other=None, policy="matmul")
    assert out[1] is None and out[0]["rest"] == (1, "two")
    (out[0]["y"] * out[0]["y"]).sum().backward()
    assert len(calls) == 1 and calls[0][0] is x and calls[0][1:] == ((1, "two"), [3], None)
    assert yoke.checkpoint(lambda: 5) == 5


def test_an_exception_of_the_function_closes_the_scope():
    x = leaf(3)

    class Mine(Exception):
        pass

    def function(y):
        yoke.exp(y)
        raise Mine("as it is")

    with pytest.raises(Mine, match="as it is"):
        yoke.checkpoint(function, x)
    y = yoke.exp(x)
    assert not yoke.saved_tensors(y)[0].recomputed


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_memory_is_what_it_was_after_backward_and_after_a_dropped_loss(policy):
    net, x = nn.Sequential(block(), block()), yoke.randn((4, 8))
    for p in net.parameters():
        p.grad = yoke.zeros_like(p)
    before = yoke.memory_allocated(DEVICE)
    for ends in (lambda loss: loss.backward(), lambda loss: loss.backward(retain_graph=True), lambda loss: None):
        loss = yoke.checkpoint(net, x, policy=policy).sum()
        ends(loss)
        del loss
        yoke.synchronize()
        assert yoke.memory_allocated(DEVICE) == before


def test_dropped_results_take_no_memory_until_backward():
    x = leaf(1000)

    def chain(y):
        for _ in range(8):
            y = yoke.tanh(y)
        return y

    def grown(call):
        before = yoke.memory_allocated(DEVICE)
        y = call()
        yoke.synchronize()
        return yoke.memory_allocated(DEVICE) - before, y

    plain, dropped = grown(lambda: chain(x))[0], grown(lambda: yoke.checkpoint(chain, x))[0]
    held = grown(lambda: yoke.checkpoint(chain, x, policy=["tanh"]))[0]
    assert plain == held == 8 * dropped


def test_saved_tensors_tells_what_will_be_made_again():
    x, w = leaf(3, 4), leaf(4, 4)

    def function(x):
        return yoke.tanh(yoke.linear(x, w)), w * 2

    for policy, again in ((None, True), ("matmul", True), (["tanh"], False)):
        y, z = yoke.checkpoint(function, x, policy=policy)
        (saved,) = yoke.saved_tensors(y)
        assert (saved.op, saved.shape, saved.nbytes, saved.recomputed) == ("tanh", (3, 4), 48, again)
    assert not any(saved.recomputed for saved in yoke.saved_tensors(yoke.tanh(x)))


def test_a_function_decides_once_for_each_op_that_something_needs():
    x, w, told = leaf(3, 4), leaf(5, 4), []

    def policy(op):
        told.append(op)
        return "keep" if op.name == "linear" else "recompute"

    def function():
        y = yoke.linear(x, w)
        with yoke.no_grad():
            y.mul_(2.0)  # makes no new tensor
        y = yoke.tanh(y)
        y.detach().exp()  # unused result
        return yoke.exp(y * y)

    y = yoke.checkpoint(function, policy=policy)
    assert [op.name for op in told] == ["linear", "tanh", "mul", "exp"]
    assert told[0] == ("linear", (3, 5), yoke.float32, 60, 2 * 3 * 5 * 4)
    y.sum().backward()
    assert len(told) == 4


def test_sequential_is_cut_into_segments_and_keeps_the_last():
    layers = [block() for _ in range(5)]
    x = leaf(4, 8)
    plain = x
    for layer in layers:
        plain = layer(plain)
    expected = bits(yoke.grad(plain.sum(), x))
    for fns in (nn.Sequential(*layers), layers, tuple(layers)):
        for segments in (1, 2, 3, 5):
            y = yoke.checkpoint_sequential(fns, segments, x)
            assert not any(saved.recomputed for saved in yoke.saved_tensors(y))
            assert bits([y]) == bits([plain]) and bits(yoke.grad(y.sum(), x)) == expected
    with pytest.raises(yoke.ValueError, match="checkpoint_sequential.*'segments' is 6, for 5 functions"):
        yoke.checkpoint_sequential(layers, 6, x)
    with pytest.raises(yoke.ValueError, match="'segments' is 0"):
        yoke.checkpoint_sequential(layers, 0, x)
    with pytest.raises(yoke.TypeError, match="'fns' is 5"):
        yoke.checkpoint_sequential(5, 1, x)
    with pytest.raises(yoke.ValueError, match="'fns' is empty"):
        yoke.checkpoint_sequential([], 1, x)


def test_each_call_of_a_module_is_a_scope_until_it_is_switched_off():
    net, x = nn.Sequential(*(block() for _ in range(2))), leaf(4, 8)

    def recomputed():
        return [saved.recomputed for saved in yoke.saved_tensors(net(x)) if saved.argument == "x"]

    assert recomputed() == [False]
    for arguments, again in (((), True), ((None,), True), (("matmul",), True), ((["gelu"],), False), ((True,), True)):
        assert net[1].checkpoint_(*arguments) is net[1]
        assert recomputed() == [again], arguments
    assert net[1].checkpoint_(False) is net[1] and recomputed() == [False]
    with pytest.raises(yoke.ValueError, match="'policy' is 'matmull'; .*did you mean 'matmul'"):
        net[1].checkpoint_("matmull")
