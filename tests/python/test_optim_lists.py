"""Optimizers, averages and clipping over many tensors at once, of all sizes, dtypes and layouts."""

import numpy as np
import pytest

import yoke
from yoke import nn, optim

HALVES = (yoke.float16, yoke.bfloat16)


def test_one_step_covers_many_tensors_of_all_layouts_and_sizes():
    yoke.manual_seed(0)
    shapes = [(300, 300), (), (7,), (0,), (3, 5)]
    params = [nn.Parameter(yoke.randn(s)) for s in shapes] + [nn.Parameter(yoke.randn((4, 6)).permute((1, 0)))]
    before = [p.detach().numpy().copy() for p in params]
    for p in params:
        p.grad = yoke.randn(p.shape)
    optimizer = optim.AdamW(params, lr=0.5, weight_decay=0.0)
    optimizer.step()
    for p, old in zip(params, before):
        g = p.grad.numpy().astype(np.float64)
        np.testing.assert_allclose(p.detach().numpy(), old - 0.5 * g / (abs(g) + 1e-8), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_a_step_leaves_out_tensors_that_require_no_grad(kind):
    frozen, trained = yoke.ones(2), nn.Parameter(yoke.ones(2))
    held = nn.Parameter(yoke.ones(2)).requires_grad_(False)
    optimizer = kind([frozen, trained, held], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (frozen * trained * held).sum().backward()
        optimizer.step()
    assert frozen.tolist() == held.tolist() == [1.0, 1.0] and trained.tolist() != [1.0, 1.0]
    assert set(optimizer.state_dict()["state"]) <= {1}
    frozen.requires_grad_(True)  # from now on the optimizer trains the tensor too
    (frozen * 2).sum().backward()
    optimizer.step()
    assert frozen[0].item() < 1.0 and held.tolist() == [1.0, 1.0]


def test_a_tensor_that_requires_no_grad_stands_once_in_the_list():
    x, y = yoke.ones(2), yoke.ones(2)
    assert len(optim.SGD([x, y], lr=0.1).param_groups[0]["params"]) == 2
    with pytest.raises(yoke.ValueError, match="parameter 1, .* is already in a group"):
        optim.SGD([x, x], lr=0.1)


def test_the_result_of_an_op_is_no_parameter():
    with pytest.raises(yoke.StateError, match=r"SGD: parameter 1, \[2\] float32 on \S+, is the result of an op"):
        optim.SGD([yoke.ones(2), nn.Parameter(yoke.ones(2)) * 2], lr=0.1)


def laid_out(values, dtype, layout):
    """Returns a tensor of these values: dense, from an odd place on, with gaps, or transposed."""
    x = yoke.tensor(values.tolist(), dtype=dtype)
    if layout == "odd":
        x = yoke.cast(yoke.zeros(values.size + 3), dtype)[3:].reshape(values.shape).copy_(x)
    elif layout == "gaps":
        x = yoke.cast(yoke.zeros(values.shape[:-1] + (2 * values.shape[-1],)), dtype)[..., ::2].copy_(x)
    elif layout == "transposed":
        x = yoke.transpose(yoke.tensor(values.T.tolist(), dtype=dtype), 0, -1)
    return x


def drawn_parameter(i):
    """Returns a parameter of a long list with its gradient. Half of the list is float32 and a quarter float64, and most tensors are
    dense.
    """
    rng, shape = np.random.default_rng(i), ((7,), (3, 5), (1, 4), (2, 600))[i % 4 if i % 50 else 3]
    dtype = (yoke.float64, yoke.float16, yoke.float64, yoke.bfloat16)[i // 2 % 4] if i % 2 else yoke.float32
    layouts = [("gaps", "transposed", "odd", "dense")[(i // k) % 4] if i % 5 == 4 else "dense" for k in (10, 40)]
    p = nn.Parameter(laid_out(rng.normal(size=shape), dtype, layouts[0]))
    p.grad = laid_out(rng.normal(size=shape), dtype, layouts[1])
    return p


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1), lambda p: optim.SGD(p, lr=0.1, momentum=0.9, master_weights=True),
    lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1), lambda p: optim.AdamW(p, lr=0.1, master_weights=True)])
def test_each_of_a_long_list_steps_as_it_would_alone(make):
    params = [drawn_parameter(i) for i in range(320)]
    optimizer, ema = make(params), optim.EMA(params, 0.5)
    optimizer.step()
    optimizer.step()
    ema.update()
    for i in (*range(0, 320, 23), *range(9, 320, 70), 319):
        alone = drawn_parameter(i)
        average, single = optim.EMA([alone], 0.5), make([alone])
        single.step()
        single.step()
        average.update()
        for got, want in ((params[i].detach(), alone.detach()), (ema.averages[i], average.averages[0])):
            np.testing.assert_allclose(yoke.cast(got, yoke.float64).numpy(), yoke.cast(want, yoke.float64).numpy(),
                                       rtol=1e-2 if alone.dtype in HALVES else 1e-5, atol=1e-6)


def test_a_long_list_is_clipped_as_one_vector():
    params = [drawn_parameter(i) for i in range(320)]
    flat = np.concatenate([yoke.cast(p.grad, yoke.float64).numpy().ravel() for p in params])
    norm = yoke.clip_grad_norm_(params, 1.0)
    assert norm.item() == pytest.approx(np.linalg.norm(flat), rel=1e-6)
    clipped = np.concatenate([yoke.cast(p.grad, yoke.float64).numpy().ravel() for p in params])
    np.testing.assert_allclose(clipped, flat / np.linalg.norm(flat), rtol=1e-2, atol=1e-6)
    assert yoke.clip_grad_norm_(params, 5.0).item() == yoke.clip_grad_norm_(params, 5.0).item()


@pytest.mark.parametrize("count", [499, 500, 501])
def test_lists_about_as_long_as_a_launch_takes_step_as_one_tensor_does(count):
    values = np.random.default_rng(0).normal(size=(2, count)).astype(np.float32)
    params = [nn.Parameter(yoke.tensor([value])) for value in values[0].tolist()]
    whole = nn.Parameter(yoke.tensor(values[0].tolist()))
    many, one = optim.AdamW(params, lr=0.1), optim.AdamW([whole], lr=0.1)
    whole.grad = yoke.tensor(values[1].tolist())
    for p, g in zip(params, values[1].tolist()):
        p.grad = yoke.tensor([g])
    for _ in range(3):
        many.step()
        one.step()
    np.testing.assert_array_equal(yoke.cat([p.detach() for p in params]).numpy(), whole.detach().numpy())
