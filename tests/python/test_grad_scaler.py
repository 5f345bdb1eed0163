"""yoke.GradScaler against PyTorch's rules: a model in plain Python, and PyTorch itself with --oracle=torch."""

import random
from collections import namedtuple

import numpy as np
import pytest

import yoke
from yoke import nn, optim

INIT, GROWTH, BACKOFF, INTERVAL = 2.0**16, 2.0, 0.5, 7

# Iteration: factors of the two losses, optimizers unscaled by hand, optimizers that step, and the argument of update.
Iteration = namedtuple("Iteration", "factors unscaled stepped new_scale")


def schedule(seed, count=1000):
    draw = random.Random(seed)

    def factor():
        kind = draw.random()
        if kind < 0.03:
            return draw.choice([float("inf"), float("-inf"), float("nan")])
        # Times the scale, the largest of these overflow or not, as the scale has it.
        return draw.choice([-1, 1]) * 10.0 ** draw.uniform(30, 34.5) if kind < 0.4 else draw.uniform(-2, 2)

    iterations = []
    for _ in range(count):
        stepped = draw.choices([(True, True), (True, False), (False, True)], [0.8, 0.1, 0.1])[0]
        unscaled = tuple(steps and draw.random() < 0.3 for steps in stepped)
        new_scale = float(2 ** draw.randint(0, 20)) if draw.random() < 0.02 else None
        iterations.append(Iteration((factor(), factor()), unscaled, stepped, new_scale))
    return iterations


def model(iterations):
    """Returns the results of PyTorch's rules, computed in plain Python: scale, tracker and the optimizers that stepped."""
    scale, tracker, told = np.float32(INIT), 0, []
    with np.errstate(over="ignore"):
        for it in iterations:
            gradients = [np.float32(f) * scale for f in it.factors]
            good = [bool(np.isfinite(g)) for g in gradients]
            steps = tuple(bool(s and g) for s, g in zip(it.stepped, good))
            if it.new_scale is not None:
                scale = np.float32(it.new_scale)  # the tracker stays
            elif any(s and not g for s, g in zip(it.stepped, good)):
                scale, tracker = np.float32(float(scale) * BACKOFF), 0
            else:
                tracker += 1
                if tracker == INTERVAL:
                    grown = np.float32(float(scale) * GROWTH)
                    scale, tracker = (grown if np.isfinite(grown) else scale), 0
            told.append((float(scale), tracker, *steps))
    return told


def run(iterations, scaler, params, optimizers, tensor, reset):
    """Returns these results from a library: tensor([x]) makes a tensor, reset(p) sets a parameter to 1."""
    told = []
    for it in iterations:
        for factor, p, optimizer in zip(it.factors, params, optimizers):
            reset(p)
            optimizer.zero_grad()
            scaler.scale((p * tensor([factor])).sum()).backward()
        for by_hand, optimizer in zip(it.unscaled, optimizers):
            if by_hand:
                scaler.unscale_(optimizer)
        for steps, optimizer in zip(it.stepped, optimizers):
            if steps:
                scaler.step(optimizer)
        scaler.update(it.new_scale)
        told.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"], *(p.item() != 1 for p in params)))
    return told


def run_yoke(iterations):
    def reset(p):
        with yoke.no_grad():
            p.fill_(1.0)

    params = [nn.Parameter(yoke.ones(1)) for _ in range(2)]
    optimizers = [optim.SGD([params[0]], lr=0.25), optim.AdamW([params[1]], lr=0.01, weight_decay=0.5)]
    scaler = yoke.GradScaler(init_scale=INIT, growth_factor=GROWTH, backoff_factor=BACKOFF, growth_interval=INTERVAL)
    told = run(iterations, scaler, params, optimizers, yoke.tensor, reset)
    return told, optimizers[1].state_dict()["state"][0]["step"].item()


@pytest.mark.parametrize("seed", range(3))
def test_a_random_overflow_schedule_gives_the_scales_and_steps_of_the_rules(seed):
    iterations = schedule(seed)
    want = model(iterations)
    told, steps = run_yoke(iterations)
    assert told == want
    assert steps == sum(w[3] for w in want)
    # Steps and skips of both happened often, and the scale went through many values.
    assert all(100 < sum(w[k] for w in want) < 900 for k in (2, 3)) and len({w[0] for w in want}) > 8


@pytest.mark.parametrize("seed", range(3))
def test_a_random_overflow_schedule_gives_what_torch_gives(seed, request):
    if request.config.getoption("--oracle", default=None) != "torch":
        pytest.skip("runs with --oracle=torch")
    import torch
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip(f"torch {torch.__version__} has no GradScaler for the CPU")
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    optimizers = [torch.optim.SGD([params[0]], lr=0.25), torch.optim.AdamW([params[1]], lr=0.01, weight_decay=0.5)]
    scaler = torch.amp.GradScaler("cpu", INIT, GROWTH, BACKOFF, INTERVAL)
    want = run(schedule(seed), scaler, params, optimizers, torch.tensor, lambda p: p.data.fill_(1))
    told, steps = run_yoke(schedule(seed))
    assert told == want
    assert steps == optimizers[1].state_dict()["state"][0]["step"].item()


# ---- Effects ---------------------------------------------------------------------------------------------------------

def one(**options):
    p = nn.Parameter(yoke.tensor([1.0, 2.0]))
    return p, optim.SGD([p], lr=1.0), yoke.GradScaler(**options)


def test_gradients_are_unscaled_in_place_and_may_be_clipped_before_the_step():
    p, optimizer, scaler = one(init_scale=1024.0)
    scaler.scale((p * p).sum()).backward()
    assert p.grad.tolist() == [2048.0, 4096.0]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [2.0, 4.0]
    norm = yoke.clip_grad_norm_([p], 1.0)
    assert norm.item() == pytest.approx(20**0.5)
    scaler.step(optimizer)
    assert p.tolist() == pytest.approx([1 - 2 / 20**0.5, 2 - 4 / 20**0.5], rel=1e-5)
    scaler.update()
    scaler.scale((p * p).sum()).backward()
    scaler.step(optimizer)


def test_a_skipped_step_leaves_parameters_state_and_step_count():
    p = nn.Parameter(yoke.tensor([1.0, 2.0]))
    for make in (lambda: optim.SGD([p], lr=0.1, momentum=0.9), lambda: optim.Adam([p], lr=0.1), lambda: optim.AdamW([p])):
        optimizer, scaler = make(), yoke.GradScaler(growth_interval=1)

        def step(factor):
            optimizer.zero_grad()
            scaler.scale((p * yoke.tensor([factor, 1.0])).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

        def now():
            return p.tolist(), {k: v.tolist() for k, v in optimizer.state_dict()["state"][0].items()}

        start = p.tolist()
        step(float("inf"))  # the very first step
        assert now()[0] == start and all(np.all(np.array(v) == 0) for v in now()[1].values())
        step(1.0)
        after = now()
        assert after[0] != start
        step(float("nan"))
        assert now() == after
        assert scaler.get_scale() == 2.0**15


def test_gradients_gather_over_batches_with_the_right_denominator():
    yoke.manual_seed(0)
    net, batches = nn.Linear(3, 2), [(yoke.randn((4, 3)), yoke.randn((4, 2))) for _ in range(4)]
    whole = yoke.cat([x for x, _ in batches]), yoke.cat([y for _, y in batches])

    def loss(x, y):
        difference = net(x) - y
        return (difference * difference).mean()

    loss(*whole).backward()
    want = [p.grad.clone() for p in net.parameters()]
    optimizer, scaler = optim.SGD(net.parameters(), lr=0.0), yoke.GradScaler()
    optimizer.zero_grad()
    for x, y in batches:
        scaler.scale(loss(x, y) / len(batches)).backward()
    scaler.step(optimizer)
    scaler.update()
    for p, g in zip(net.parameters(), want):
        np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-5, atol=1e-6)


def test_half_losses_and_nested_lists_are_scaled():
    _, _, scaler = one(init_scale=65536.0)
    loss = yoke.tensor([1.0, 2.0], dtype=yoke.float16)
    assert scaler.scale(loss).dtype == yoke.float32  # too large for float16
    assert scaler.scale(loss).tolist() == [65536.0, 131072.0]
    a, b = scaler.scale((loss[0], [loss[1]]))
    assert (a.item(), b[0].item()) == (65536.0, 131072.0)
    assert [t.item() for t in scaler.scale(iter([loss[0]]))] == [65536.0]
    with pytest.raises(yoke.TypeError, match="'outputs' must be a tensor"):
        scaler.scale("loss")
    with pytest.raises(yoke.TypeError, match="int64"):
        scaler.scale(yoke.tensor([1]))


def test_small_half_gradients_survive_with_a_scale_alone():
    w = nn.Parameter(yoke.ones((1, 1)))
    for init_scale, survives in ((1.0, False), (65536.0, True)):
        w.grad = None
        scaler = yoke.GradScaler(init_scale=init_scale)
        with yoke.autocast(yoke.float16):
            out = yoke.matmul(yoke.full((1, 1), 1e-4), w)
        scaler.scale((out * 1e-5).sum()).backward()
        scaler.unscale_(optim.SGD([w], lr=1))
        assert (w.grad.item() != 0) == survives


def test_the_scale_can_be_set_by_number_and_tensor():
    p, optimizer, scaler = one()
    scaler.scale(p.sum()).backward()
    scaler.update(8)
    assert scaler.get_scale() == 8.0
    scaler.update(yoke.tensor([4.0], dtype=yoke.float64))
    assert scaler.get_scale() == 4.0
    for wrong in (yoke.ones(2), yoke.tensor([1]), nn.Parameter(yoke.ones(1))):
        with pytest.raises(yoke.ValueError, match="'new_scale'"):
            scaler.update(wrong)


def test_the_state_goes_on_in_another_scaler():
    p, optimizer, scaler = one(init_scale=4.0, growth_interval=3)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(p.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    state = scaler.state_dict()
    assert state == {"scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3,
                     "_growth_tracker": 2}
    fresh, used = yoke.GradScaler(), one()
    used[2].scale(used[0].sum())
    for other in (fresh, used[2]):
        other.load_state_dict(state)
        assert other.state_dict() == state
        optimizer.zero_grad()
        other.scale(p.sum()).backward()
        other.step(optimizer)
        other.update()
        assert other.get_scale() == 8.0
    with pytest.raises(yoke.ValueError, match="'scale' is missing"):
        fresh.load_state_dict({})


def test_the_rule_can_be_changed():
    p, optimizer, scaler = one(init_scale=4.0)
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(1)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (4.0, 0.25, 1)
    for factor, scale in ((1.0, 16.0), (float("inf"), 4.0)):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale


def test_a_disabled_scaler_lets_all_pass():
    p, optimizer, scaler = one(enabled=False)
    loss = p.sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and not scaler.is_enabled()
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [-1.0, 0.0] and scaler.state_dict() == {}
    scaler.load_state_dict({})


# ---- Misuse ----------------------------------------------------------------------------------------------------------

def test_calls_out_of_order_say_what_to_do():
    p, optimizer, scaler = one()
    for call in (lambda: scaler.unscale_(optimizer), lambda: scaler.step(optimizer), scaler.update):
        with pytest.raises(yoke.StateError, match=r"no loss was scaled yet; call scaler.scale\(loss\) and backward"):
            call()
    loss = scaler.scale(p.sum())
    with pytest.raises(yoke.StateError, match="step: no parameter of this SGD has a gradient; .* backward"):
        scaler.step(optimizer)
    with pytest.raises(yoke.StateError, match="unscale_: no parameter of this SGD has a gradient; .* backward"):
        scaler.unscale_(optimizer)
    with pytest.raises(yoke.StateError, match=r"update: no gradients were checked .*; call step\(optimizer\) first"):
        scaler.update()
    loss.backward()
    scaler.unscale_(optimizer)
    with pytest.raises(yoke.StateError, match=r"unscale_: a second call on this SGD since the last update\(\)"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(yoke.StateError, match=r"unscale_: called after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(yoke.StateError, match=r"step: a second call on this SGD since the last update\(\)"):
        scaler.step(optimizer)
    assert p.grad.tolist() == [1.0, 1.0] and p.tolist() == [0.0, 1.0]
    scaler.update()
    scaler.unscale_(optimizer)


def test_unscaling_too_early_is_made_good_by_a_backward():
    p, optimizer, scaler = one(init_scale=4.0)
    loss = scaler.scale(p.sum())
    with pytest.raises(yoke.StateError, match="has a gradient"):
        scaler.unscale_(optimizer)
    loss.backward()
    scaler.step(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]


def test_half_gradients_are_refused_before_any_is_changed():
    good, half = nn.Parameter(yoke.ones(2)), nn.Parameter(yoke.ones(2, dtype=yoke.float16))
    optimizer, scaler = optim.SGD([good, half], lr=1.0), yoke.GradScaler(init_scale=8.0)
    scaler.scale((good * half).sum()).backward()
    for call in (scaler.unscale_, scaler.step):
        with pytest.raises(yoke.TypeError, match="is float16, .* keep the parameters in float32 and let autocast"):
            call(optimizer)
    assert good.grad.tolist() == [8.0, 8.0] and good.tolist() == [1.0, 1.0]


def test_an_expanded_gradient_is_refused():
    p, optimizer, scaler = one()
    scaler.scale(p.sum())
    p.grad = yoke.ones(1).expand(2)
    for call in (lambda: scaler.step(optimizer), lambda: yoke.clip_grad_norm_([p], 0.1)):
        with pytest.raises(yoke.ValueError, match="expanded"):
            call()


@pytest.mark.parametrize("options, words", [
    ({"init_scale": 0.0}, "'init_scale' is 0"), ({"init_scale": float("inf")}, "'init_scale' is inf"),
    ({"growth_factor": 1.0}, "'growth_factor' is 1"), ({"backoff_factor": 1.0}, "'backoff_factor' is 1"),
    ({"growth_interval": 0}, "'growth_interval' is 0"), ({"growth_factor": "2"}, "growth_factor"),
    ({"growth_interval": 1.5}, "growth_interval")])
def test_wrong_options_are_refused_by_name(options, words):
    with pytest.raises((yoke.ValueError, yoke.TypeError), match=words):
        yoke.GradScaler(**options)


def test_what_is_no_optimizer_is_refused():
    p, _, scaler = one()
    scaler.scale(p.sum()).backward()
    for call in (scaler.unscale_, scaler.step):
        with pytest.raises(yoke.TypeError, match="'optimizer' must be .*, not Linear"):
            call(nn.Linear(1, 1))


@pytest.mark.parametrize("scale", [0.0, 1e-60, 1e40, float("inf"), float("nan")])
def test_a_first_scale_that_float32_does_not_hold_is_refused(scale):
    with pytest.raises(yoke.ValueError, match="GradScaler: argument 'init_scale'"):
        yoke.GradScaler(init_scale=scale)


@pytest.mark.parametrize("scale", [-1.0, 1e40, float("inf"), float("nan")])
def test_a_scale_that_no_scaler_comes_to_is_refused_wherever_it_comes_from(scale):
    scaler = yoke.GradScaler(init_scale=4.0)
    scaler.scale(yoke.ones(()))
    with pytest.raises(yoke.ValueError, match="load_state_dict: the scale is"):
        scaler.load_state_dict({**scaler.state_dict(), "scale": scale})
    for new_scale in (scale, yoke.tensor([scale], dtype=yoke.float64, device="cpu")):
        with pytest.raises(yoke.ValueError, match="update: argument 'new_scale' is"):
            scaler.update(new_scale)
    with pytest.raises(yoke.ValueError, match="update: argument 'new_scale' is 0"):
        scaler.update(0.0)
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("bad", [0, 419, None])
def test_one_overflow_among_very_many_optimizers_is_noticed(bad):
    params = [nn.Parameter(yoke.ones(1)) for _ in range(420)]
    scaler = yoke.GradScaler(init_scale=4.0)
    scaler.scale(yoke.ones(()))
    for i, p in enumerate(params):
        p.grad = yoke.tensor([float("inf") if i == bad else 8.0])
        scaler.step(optim.SGD([p], lr=0.25))
    scaler.update()
    assert [p.item() for p in params] == [1.0 if i == bad else 0.5 for i in range(420)]
    assert scaler.get_scale() == (4.0 if bad is None else 2.0)
