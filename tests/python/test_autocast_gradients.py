"""Gradients of weights under autocast: summed in float32 on a device, added in place, and right however a weight is used."""
import gc

import numpy as np
import pytest

import yoke
from conftest import DEVICE
from yoke import nn

ROWS, IN, OUT = 48, 24, 40
WIDE = DEVICE != "cpu"  # the host rounds products of halves to halves


def halves(shape, seed):
    """Returns float32 numbers that a half holds, so that only sums are rounded."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float16)
    return values.astype(np.float32)


class Case:
    """A linear layer with its input and the gradient of its result, and the gradients in float64."""

    def __init__(self, activation="none", bias=True):
        self.x, self.g = halves((ROWS, IN), 1), halves((ROWS, OUT), 2)
        self.input, self.given = yoke.tensor(self.x), yoke.tensor(self.g)
        self.weight = yoke.tensor(halves((OUT, IN), 3), requires_grad=True)
        self.bias = yoke.tensor(halves((OUT,), 4), requires_grad=True) if bias else None
        self.activation = activation

    def forward(self, dtype="float16"):
        with yoke.autocast(dtype):
            return yoke.linear(self.input, self.weight, self.bias, activation=self.activation)

    def walk(self, dtype="float16", **options):
        y = self.forward(dtype)
        y.backward(self.given.to(dtype=y.dtype), **options)

    def check(self, times=1, rounded=not WIDE):
        g, x = self.g.astype(np.float64), self.x.astype(np.float64)
        bound = times * (1e-3 if rounded else 3e-6)
        for leaf, want, size in ((self.weight, g.T @ x, np.abs(g).T @ np.abs(x)), (self.bias, g.sum(0), np.abs(g).sum(0))):
            if leaf is not None:
                assert leaf.grad.dtype == yoke.float32
                assert (np.abs(leaf.grad.numpy() - times * want) <= bound * size).all()


@pytest.mark.parametrize("bias", [True, False])
def test_sums_are_rounded_once_on_a_device(bias):
    case = Case(bias=bias)
    case.walk()
    case.check()


def test_each_pass_adds_in_place():
    case = Case()
    for times in (1, 2, 3):
        case.walk()
        case.check(times)
        if times == 1:
            grad, where = case.weight.grad, case.weight.grad.data_ptr()
    assert case.weight.grad.data_ptr() == where
    np.testing.assert_array_equal(grad.numpy(), case.weight.grad.numpy())


def test_a_retained_graph_adds_again():
    case = Case()
    y = case.forward()
    g = yoke.tensor(case.g).to(dtype=y.dtype)
    y.backward(g, retain_graph=True)
    case.check()
    y.backward(g)
    case.check(2)
    with pytest.raises(yoke.StateError, match="freed by an earlier backward"):
        y.backward(g)
    case.check(2)


def test_a_second_set_of_gradients_is_not_made_where_the_walk_adds():
    rows, side = 4, 256
    x, weight = yoke.ones((rows, side)), yoke.ones((side, side), requires_grad=True)

    def walk():
        with yoke.autocast("float16"):
            yoke.linear(x, weight).float().sum().backward()
        yoke.synchronize()

    walk()
    gc.collect()
    before = yoke.memory_allocated(DEVICE)
    yoke.reset_peak_memory_stats(DEVICE)
    walk()
    peak = yoke.max_memory_allocated(DEVICE) - before
    cast = 2 * side * side
    assert peak < (cast + cast // 2 if WIDE else 5 * cast)


def test_a_weight_that_serves_twice_gets_both():
    case = Case()
    with yoke.autocast("float16"):
        x = yoke.tensor(case.x)
        y = yoke.linear(x, case.weight, case.bias) + yoke.linear(x, case.weight, case.bias)
    y.backward(yoke.tensor(case.g).to(dtype=y.dtype))
    case.check(2)
    case.walk()
    case.check(3)


def test_a_weight_that_is_used_in_float32_too_gets_both():
    case = Case(bias=False)
    for times in (1, 2):
        y = case.forward()
        loss = (y.float() * yoke.tensor(case.g)).sum() + (case.weight * 2).sum()
        loss.backward()
        g, x = case.g.astype(np.float64), case.x.astype(np.float64)
        np.testing.assert_allclose(case.weight.grad.numpy(), times * (g.T @ x + 2), rtol=1e-3, atol=0.05)


def test_products_of_several_kinds_sum_in_the_wider_dtype():
    x, g = halves((ROWS, IN), 1), halves((ROWS, IN), 2)
    for linear_first in (True, False):
        weight = yoke.tensor(halves((IN, IN), 3), requires_grad=True)
        with yoke.autocast("float16"):
            parts = [lambda a: yoke.linear(a, weight), lambda a: a @ weight]
            y, z = (part(yoke.tensor(x)) for part in parts[::1 if linear_first else -1])
        (y + z).backward(yoke.tensor(g).half())
        np.testing.assert_allclose(weight.grad.numpy(), g.T @ x + x.T @ g, rtol=2e-3, atol=0.1)


def test_grad_gives_each_input_its_own_dtype_and_changes_no_leaf():
    case = Case()
    y = case.forward()
    g = yoke.tensor(case.g).to(dtype=y.dtype)
    weight, bias = yoke.grad(y, [case.weight, case.bias], g)
    assert weight.dtype == bias.dtype == yoke.float32
    assert case.weight.grad is None
    np.testing.assert_allclose(weight.numpy(), case.g.T @ case.x, rtol=1e-3, atol=0.05)
    half = case.weight.to(dtype="float16")
    made = yoke.linear(yoke.tensor(case.x).half(), half)
    (found,) = yoke.grad(made, [half], yoke.tensor(case.g).half())
    assert found.dtype == yoke.float16


def test_a_weight_in_halves_keeps_a_gradient_in_halves():
    weight = yoke.tensor(halves((OUT, IN), 3)).half().requires_grad_(True)
    bias = yoke.zeros((OUT,), requires_grad=True)
    with yoke.autocast("float16"):
        yoke.linear(yoke.tensor(halves((ROWS, IN), 1)), weight, bias).float().sum().backward()
    assert weight.grad.dtype == yoke.float16 and bias.grad.dtype == yoke.float32


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_behind_an_activation_are_those_of_the_parts(activation, dtype):
    whole, parts = Case(activation), Case()
    whole.walk(dtype)
    with yoke.autocast(dtype):
        y = yoke.linear(yoke.tensor(parts.x), parts.weight, parts.bias)
        y = yoke.gelu(y, approximate="tanh") if activation == "gelu_tanh" else getattr(yoke, activation)(y)
    y.backward(yoke.tensor(parts.g).to(dtype=y.dtype))
    for a, b in ((whole.weight, parts.weight), (whole.bias, parts.bias)):
        np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())


def test_vectors_and_batches_of_rows():
    for shape in ((IN,), (2, 3, IN)):
        weight, x = yoke.tensor(halves((OUT, IN), 3), requires_grad=True), halves(shape, 1)
        with yoke.autocast("float16"):
            yoke.linear(yoke.tensor(x), weight).float().sum().backward()
        want = np.broadcast_to(x.reshape(-1, IN).astype(np.float64).sum(0), (OUT, IN))
        np.testing.assert_allclose(weight.grad.numpy(), want, rtol=1e-3, atol=1e-3)


def test_a_frozen_bias_or_weight_gets_none():
    case = Case()
    case.bias.requires_grad_(False)
    case.walk()
    assert case.bias.grad is None
    case.bias = None
    case.check()
    case = Case()
    case.weight.requires_grad_(False)
    case.walk()
    assert case.weight.grad is None
    np.testing.assert_allclose(case.bias.grad.numpy(), case.g.sum(0), rtol=1e-3, atol=0.05)


def test_a_scaler_steps_as_without_it():
    weights = []
    for scaled in (False, True):
        yoke.manual_seed(0)
        net = nn.Linear(IN, OUT)
        optimizer = yoke.optim.SGD(net.parameters(), lr=0.125)
        scaler = yoke.GradScaler(enabled=scaled, init_scale=4.0)
        for _ in range(3):
            for part in range(2):  # gradients accumulate over two passes
                with yoke.autocast("float16"):
                    y = net(yoke.tensor(halves((ROWS, IN), part)))
                scaler.scale(y.float().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        weights.append(net.weight.detach().numpy())
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5, atol=1e-6)


def test_a_graph_replays_passes_that_add():
    case, graph = Case(), yoke.Graph()
    case.walk()
    with graph.capture():
        case.walk()
    before = case.weight.grad.numpy().copy()
    graph.replay()
    step = case.weight.grad.numpy() - before
    np.testing.assert_allclose(step, case.g.T @ case.x, rtol=1e-2, atol=0.05)
    graph.replay()
    np.testing.assert_allclose(case.weight.grad.numpy(), before + 2 * step, rtol=1e-4, atol=1e-2)


def test_checkpointed_layers_have_the_same_gradients():
    plain, again = Case("gelu"), Case("gelu")
    for _ in range(2):
        plain.walk()
        with yoke.autocast("float16"):
            y = yoke.checkpoint(lambda x: yoke.linear(x, again.weight, again.bias, activation="gelu"), yoke.tensor(again.x))
        y.backward(yoke.tensor(again.g).to(dtype=y.dtype))
    np.testing.assert_array_equal(plain.weight.grad.numpy(), again.weight.grad.numpy())
    np.testing.assert_array_equal(plain.bias.grad.numpy(), again.bias.grad.numpy())
