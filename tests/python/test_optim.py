"""Adam, AdamW, master weights, clipping, averages and schedules, against NumPy; against PyTorch with --oracle=torch."""

import math

import numpy as np
import pytest

import yoke
from yoke import nn, optim

HALVES = (yoke.float16, yoke.bfloat16)


def parameter(values, dtype=yoke.float32):
    return nn.Parameter(yoke.tensor(values, dtype=dtype))


def gradients(count, size=5):
    return np.random.default_rng(0).normal(size=(count, size)).astype(np.float32) * 3


def train(p, optimizer, grads):
    for g in grads:
        p.grad = yoke.tensor(g.tolist(), dtype=p.dtype)
        optimizer.step()


# ---- Adam ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, decoupled", [(optim.Adam, False), (optim.AdamW, True)])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_follows_its_definition(kind, decoupled, decay):
    start = np.linspace(-1, 1, 5)
    p, q, m, v = parameter(start.tolist()), start.copy(), np.zeros(5), np.zeros(5)
    train(p, kind([p], lr=0.01, betas=(0.8, 0.9), eps=1e-3, weight_decay=decay), gradients(20))
    for t, g in enumerate(gradients(20).astype(np.float64), 1):
        if decoupled:
            q *= 1 - 0.01 * decay
        else:
            g = g + decay * q
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        q -= 0.01 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
    np.testing.assert_allclose(p.detach().numpy(), q, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("momentum, nesterov", [(0.0, False), (0.9, False), (0.9, True)])
@pytest.mark.parametrize("dtype", [yoke.float32, yoke.float64], ids=str)
def test_sgd_follows_its_definition(momentum, nesterov, dtype):
    start = np.linspace(-1, 1, 5)
    p, q, b = parameter(start.tolist(), dtype), start.copy(), np.zeros(5)
    train(p, optim.SGD([p], lr=0.01, momentum=momentum, weight_decay=0.1, nesterov=nesterov), gradients(20))
    for g in gradients(20).astype(np.float64):
        g = g + 0.1 * q
        b = momentum * b + g
        q -= 0.01 * (g + momentum * b if nesterov else b)
    np.testing.assert_allclose(p.detach().numpy(), q, rtol=1e-13 if dtype == yoke.float64 else 1e-5)


def test_the_defaults_are_those_of_torch():
    p = parameter([1.0])
    want = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "master_weights": False}
    for kind, decay in ((optim.Adam, 0.0), (optim.AdamW, 1e-2)):
        group = kind([p]).param_groups[0]
        assert {name: group[name] for name in want} == {**want, "weight_decay": decay}


@pytest.mark.parametrize("make", [
    lambda m, p: m.SGD(p, lr=0.1), lambda m, p: m.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
    lambda m, p: m.Adam(p, lr=0.1, weight_decay=0.1), lambda m, p: m.AdamW(p, lr=0.1, betas=(0.7, 0.95))])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_steps_are_those_of_torch(make, dtype, request):
    if request.config.getoption("--oracle", default=None) != "torch":
        pytest.skip("runs with --oracle=torch")
    import torch
    p, q = parameter([0.5, -1.0, 2.0, 0.0, 3.0], getattr(yoke, dtype)), None
    q = torch.nn.Parameter(torch.tensor(p.tolist(), dtype=getattr(torch, dtype)))
    ours, theirs = make(optim, [p]), make(torch.optim, [q])
    tolerance = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 3e-2}[dtype]
    # With 16-bit floats PyTorch rounds within a step too, and the difference adds up.
    for g in gradients(3 if dtype == "bfloat16" else 30):
        p.grad, q.grad = yoke.tensor(g.tolist(), dtype=p.dtype), torch.tensor(g.tolist(), dtype=q.dtype)
        ours.step()
        theirs.step()
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=tolerance, atol=tolerance)


def test_groups_have_options_of_their_own_and_late_parameters_steps_of_their_own():
    a, b, c = parameter([1.0]), parameter([1.0]), parameter([1.0])
    optimizer = optim.AdamW([{"params": [a, c], "lr": 0.5, "weight_decay": 0.0}, {"params": b, "betas": (0.5, 0.5)}], lr=0.25)
    assert optimizer.param_groups[1]["betas"] == (0.5, 0.5) and optimizer.param_groups[1]["lr"] == 0.25
    a.grad = b.grad = yoke.tensor([1.0])
    optimizer.step()
    assert a.item() == pytest.approx(0.5) and c.item() == 1.0
    c.grad = yoke.tensor([1.0])
    optimizer.param_groups[0]["lr"] = 0.125
    optimizer.step()
    assert c.item() == pytest.approx(0.875)  # the first step of c: at most lr
    state = optimizer.state_dict()["state"]
    assert [state[i]["step"].item() for i in range(3)] == [2.0, 1.0, 2.0]


def test_a_group_can_be_added_later():
    a, b = parameter([1.0]), parameter([1.0])
    optimizer = optim.SGD([a], lr=1.0)
    optimizer.add_param_group({"params": [b], "lr": 0.5})
    a.grad = b.grad = yoke.tensor([1.0])
    optimizer.step()
    assert (a.item(), b.item()) == (0.0, 0.5)


# ---- Master weights --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("make", [lambda p, **o: optim.SGD(p, lr=1e-4, momentum=0.5, **o),
                                  lambda p, **o: optim.AdamW(p, lr=1e-4, weight_decay=0.0, **o)], ids=["SGD", "AdamW"])
def test_masters_keep_what_a_half_would_lose(make, dtype):
    start = [1.0, 2.0, -3.0]
    plain, mixed, exact = parameter(start, dtype), parameter(start, dtype), parameter(start)
    optimizers = make([plain]), make([mixed], master_weights=True), make([exact])
    for p, optimizer in zip((plain, mixed, exact), optimizers):
        train(p, optimizer, np.ones((100, 3)))
    assert plain.tolist() == start  # each step is below the half's resolution
    state = optimizers[1].state_dict()["state"][0]
    assert all(tensor.dtype == yoke.float32 for tensor in state.values())
    np.testing.assert_allclose(state["master"].numpy(), exact.detach().numpy(), rtol=1e-6)
    assert mixed.tolist() == yoke.cast(state["master"], dtype).tolist() != start


def test_masters_are_for_halves_alone_and_fixed():
    half, whole = parameter([1.0], yoke.float16), parameter([1.0])
    optimizer = optim.Adam([half, whole], lr=0.5, master_weights=True)
    half.grad, whole.grad = yoke.ones(1, dtype=yoke.float16), yoke.ones(1)
    optimizer.step()
    state = optimizer.state_dict()["state"]
    assert "master" in state[0] and "master" not in state[1]
    assert half.item() == whole.item() == 0.5
    optimizer.param_groups[0]["master_weights"] = False
    with pytest.raises(yoke.ValueError, match="'master_weights' of group 0 cannot change"):
        optimizer.step()


# ---- State -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p, lr=0.1),
                                  lambda p: optim.AdamW(p, lr=0.1, master_weights=True)])
@pytest.mark.parametrize("dtype", [yoke.float32, yoke.bfloat16], ids=str)
def test_the_state_goes_on_where_it_was(make, dtype):
    grads = gradients(6)
    p, q = parameter([1.0] * 5, dtype), parameter([1.0] * 5, dtype)
    whole, first, second = make([p]), make([q]), make([q])
    train(p, whole, grads)
    train(q, first, grads[:3])
    second.param_groups[0]["lr"] = 77.0
    second.load_state_dict(first.state_dict())
    first.step()  # does not change the second's state
    q_now = first.state_dict()
    with yoke.no_grad():
        q.copy_(yoke.tensor([1.0] * 5, dtype=dtype))
    third = make([q])
    train(q, third, grads[:3])
    train(q, second, grads[3:])
    assert q.tolist() == p.tolist() and second.param_groups[0]["lr"] == 0.1
    assert q_now["state"].keys() == {0}


def test_a_state_that_does_not_fit_changes_nothing():
    p = parameter([1.0, 2.0])
    optimizer = optim.Adam([p], lr=0.1)
    train(p, optimizer, np.ones((2, 2)))

    def now():
        dict_ = optimizer.state_dict()
        return {k: v.tolist() for k, v in dict_["state"][0].items()}, dict_["param_groups"]

    before = now()
    good = optimizer.state_dict()
    for wrong, error in (({**good["state"][0], "exp_avg_sq": yoke.ones(3)}, yoke.ValueError),
                         ({**good["state"][0], "exp_avg_sq": yoke.ones(2, dtype=yoke.float64)}, yoke.TypeError),
                         ({**good["state"][0], "master": yoke.ones(2)}, yoke.ValueError)):
        changed = {"state": {0: {**wrong, "step": 9}}, "param_groups": [{**good["param_groups"][0], "lr": 5.0}]}
        with pytest.raises(error):
            optimizer.load_state_dict(changed)
        assert now() == before
    optimizer.load_state_dict({"state": {0: {**good["state"][0], "step": 9}}, "param_groups": good["param_groups"]})
    assert optimizer.state_dict()["state"][0]["step"].item() == 9.0


@pytest.mark.parametrize("make, words", [
    (lambda p: optim.Adam([p], lr=-1.0), "'lr' is -1"), (lambda p: optim.AdamW([p], betas=(0.9, 1.0)), "'betas' is"),
    (lambda p: optim.Adam([p], betas=0.9), "betas"), (lambda p: optim.Adam([p], eps=-1.0), "'eps' is -1"),
    (lambda p: optim.Adam([p], weight_decay=float("inf")), "'weight_decay' is inf"),
    (lambda p: optim.AdamW([{"params": [p], "momentum": 1}]), "unknown option 'momentum'; the options are lr, betas, eps"),
    (lambda p: optim.Adam([yoke.arange(3)]), r"int64 on \S+, is not floating .* cast it"),
    (lambda p: optim.Adam([yoke.ones(1).expand(3).requires_grad_(True)]), "is expanded"),
    (lambda p: optim.Adam(p), r"write \[tensor\]"), (lambda p: optim.Adam([]), "is empty")])
def test_wrong_arguments_are_refused_by_name(make, words):
    with pytest.raises((yoke.ValueError, yoke.TypeError), match=words):
        make(parameter([1.0]))


# ---- Clipping --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", [yoke.float64, yoke.float32, *HALVES], ids=str)
def test_clipping_takes_all_gradients_as_one_vector(kind, dtype):
    params = [parameter([0.0] * n, dtype) for n in (3, 1, 5)] + [parameter([0.0])]
    for i, p in enumerate(params[:-1]):
        p.grad = yoke.tensor([0.5 * (i + 1) * (-1) ** k for k in range(p.numel)], dtype=dtype)
    flat = np.concatenate([p.grad.numpy().astype(np.float64) for p in params[:-1]]) if dtype != yoke.bfloat16 else \
        np.concatenate([yoke.cast(p.grad, yoke.float64).numpy() for p in params[:-1]])
    norm = yoke.clip_grad_norm_(params, 1.5, kind)
    want = np.linalg.norm(flat, kind)
    assert norm.item() == pytest.approx(want, rel=1e-6) and norm.shape == ()
    clipped = np.concatenate([yoke.cast(p.grad, yoke.float64).numpy() for p in params[:-1]])
    np.testing.assert_allclose(clipped, flat * min(1, 1.5 / (want + 1e-6)), rtol=1e-2 if dtype in HALVES else 1e-6)
    assert params[-1].grad is None
    after = [p.grad.tolist() for p in params[:-1]]
    yoke.clip_grad_norm_(iter(params), 100.0, kind)  # large enough for no change
    assert [p.grad.tolist() for p in params[:-1]] == after


def test_clipping_without_gradients_gives_zero_and_nan_passes():
    p = parameter([1.0])
    assert yoke.clip_grad_norm_([p], 1.0).item() == 0.0 and yoke.clip_grad_norm_([], 1.0).item() == 0.0
    p.grad = yoke.tensor([float("nan")])
    assert math.isnan(yoke.clip_grad_norm_(p, 1.0).item()) and math.isnan(p.grad.item())
    p.grad = yoke.tensor([1e30])
    assert yoke.clip_grad_norm_(p, 1.0).item() == pytest.approx(1e30)  # the square would overflow
    for arguments, words in (((-1.0,), "'max_norm' is -1"), ((1.0, 0.0), "'norm_type' is 0"), (("1",), "max_norm")):
        with pytest.raises((yoke.ValueError, yoke.TypeError), match=words):
            yoke.clip_grad_norm_([p], *arguments)


# ---- Averages --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [yoke.float64, yoke.float32, *HALVES], ids=str)
def test_an_average_follows_its_parameters(dtype):
    p = parameter([1.0, 2.0], dtype)
    ema, want = optim.EMA([p], decay=0.75), np.array([1.0, 2.0])
    assert ema.averages[0].dtype == (yoke.float64 if dtype == yoke.float64 else yoke.float32)
    for value in (3.0, -1.0, 0.5):
        with yoke.no_grad():
            p.fill_(value)
        ema.update()
        want = 0.75 * want + 0.25 * value
        np.testing.assert_allclose(ema.averages[0].numpy(), want, rtol=1e-6)
    with ema.applied():
        np.testing.assert_allclose(yoke.cast(p, yoke.float64).tolist(), want, rtol=1e-2)
    assert p.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(ema.averages[0].numpy(), want, rtol=1e-6)
    ema.copy_to_params()
    np.testing.assert_allclose(yoke.cast(p, yoke.float64).tolist(), want, rtol=1e-2)


def test_an_average_goes_on_where_it_was():
    p = parameter([1.0])
    first, second = optim.EMA([p], 0.5), optim.EMA([p], 0.9)
    with yoke.no_grad():
        p.fill_(3.0)
    first.update()
    second.load_state_dict(first.state_dict())
    assert second.averages[0].item() == 2.0 and second.decay == 0.5
    second.update()
    assert second.averages[0].item() == 2.5 and first.averages[0].item() == 2.0
    with pytest.raises(yoke.ValueError, match="shapes"):
        optim.EMA([parameter([1.0, 2.0])]).load_state_dict(first.state_dict())
    for arguments in (([p], 1.5), ([], 0.5)):
        with pytest.raises(yoke.ValueError):
            optim.EMA(*arguments)
    with pytest.raises(yoke.TypeError, match="not floating"):
        optim.EMA([yoke.arange(2)])


# ---- Schedules -------------------------------------------------------------------------------------------------------

def rates(make, count):
    optimizer = optim.SGD([{"params": [parameter([1.0])], "lr": 0.5}, {"params": [parameter([1.0])]}], lr=2.0)
    schedule = make(optim.schedule, optimizer)
    seen = [schedule.last_lr]
    for _ in range(count):
        schedule.step()
        seen.append(schedule.get_last_lr())
    return np.array(seen)


def test_schedules_follow_their_formulas():
    base = np.array([[0.5, 2.0]])
    t = np.arange(13)[:, None]
    np.testing.assert_allclose(rates(lambda s, o: s.constant(o), 12), base + 0 * t)
    np.testing.assert_allclose(rates(lambda s, o: s.constant(o, 0.25, 4), 12), np.where(t < 4, base / 4, base))
    np.testing.assert_allclose(rates(lambda s, o: s.step(o, 5, 0.1), 12), base * 0.1 ** (t // 5))
    np.testing.assert_allclose(rates(lambda s, o: s.linear(o, 1.0, 0.0, 10), 12), np.maximum(1 - t / 10, 0) + 0 * base)
    half = 0.1 + (base - 0.1) * (1 + np.cos(np.pi * np.minimum((t - 3) / 7, 1))) / 2
    want = np.where(t < 3, base * (t + 1) / 4, half)
    np.testing.assert_allclose(rates(lambda s, o: s.cosine(o, 10, min_lr=0.1, warmup_steps=3), 12), want)
    cycle = rates(lambda s, o: s.one_cycle(o, 1.0, 10, pct_start=0.3, div_factor=10, final_div_factor=100), 12)[:, 0]
    assert cycle[0] == pytest.approx(0.1) and cycle[2] == cycle.max() == 1.0
    assert cycle[9] == cycle[12] == pytest.approx(0.001) and cycle[5] == pytest.approx(
        0.001 + 0.999 * (1 + math.cos(math.pi * 3 / 7)) / 2)


@pytest.mark.parametrize("ours, theirs", [
    (lambda s, o: s.constant(o, 0.25, 4), lambda s, o: s.ConstantLR(o, 0.25, 4)),
    (lambda s, o: s.step(o, 5, 0.3), lambda s, o: s.StepLR(o, 5, 0.3)),
    (lambda s, o: s.cosine(o, 12, 0.1), lambda s, o: s.CosineAnnealingLR(o, 12, 0.1)),
    (lambda s, o: s.one_cycle(o, 1.5, 13), lambda s, o: s.OneCycleLR(o, 1.5, 13, cycle_momentum=False))])
def test_schedules_are_those_of_torch(ours, theirs, request):
    if request.config.getoption("--oracle", default=None) != "torch":
        pytest.skip("runs with --oracle=torch")
    import torch
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": params[:1], "lr": 0.5}, {"params": params[1:]}], lr=2.0)
    schedule = theirs(torch.optim.lr_scheduler, optimizer)
    want = [schedule.get_last_lr()]
    for _ in range(12):
        optimizer.step()
        schedule.step()
        want.append(schedule.get_last_lr())
    np.testing.assert_allclose(rates(ours, 12), want, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("make", [
    lambda s, o: s.constant(o, 0.5, 3), lambda s, o: s.linear(o, 1.0, 0.0, 9), lambda s, o: s.cosine(o, 9, 0.1, warmup_steps=2),
    lambda s, o: s.step(o, 2), lambda s, o: s.one_cycle(o, 1.0, 9)])
def test_a_schedule_goes_on_where_it_was(make):
    whole = rates(make, 8)
    optimizer = optim.SGD([{"params": [parameter([1.0])], "lr": 0.5}, {"params": [parameter([1.0])]}], lr=2.0)
    first = make(optim.schedule, optimizer)
    for _ in range(5):
        first.step()
    second = make(optim.schedule, optim.SGD([{"params": [parameter([1.0])]}, {"params": [parameter([1.0])]}], lr=9.0))
    second.load_state_dict(first.state_dict())
    for at in range(5, 9):
        np.testing.assert_allclose(second.last_lr, whole[at])
        second.step()
    with pytest.raises(yoke.ValueError, match="2 groups"):
        make(optim.schedule, optim.SGD([parameter([1.0])], lr=1.0)).load_state_dict(first.state_dict())


@pytest.mark.parametrize("make, words", [
    (lambda s, o: s.constant(o, 1.0, -1), "'total_steps' is -1"), (lambda s, o: s.cosine(o, 0), "'total_steps' is 0"),
    (lambda s, o: s.cosine(o, 5, warmup_steps=-1), "'warmup_steps' is -1"), (lambda s, o: s.step(o, 0), "'step_size' is 0"),
    (lambda s, o: s.one_cycle(o, 1.0, 0), "'total_steps' is 0"), (lambda s, o: s.one_cycle(o, 1.0, 5, pct_start=2.0), "'pct_start' is 2"),
    (lambda s, o: s.one_cycle(o, 1.0, 5, div_factor=0.0), "'div_factor'"), (lambda s, o: s.linear(o, 1, 0, 2.5), "2.5")])
def test_schedules_refuse_wrong_numbers(make, words):
    with pytest.raises(yoke.ValueError, match=words):
        make(optim.schedule, optim.SGD([parameter([1.0])], lr=1.0))


def test_averages_of_half_parameters_are_the_same_after_an_evaluation():
    p = yoke.ones(3, dtype="bfloat16").requires_grad_(True)
    ema = optim.EMA([p], decay=0.999)
    with yoke.no_grad():
        p.fill_(1.5)
    ema.update()
    before = ema.averages[0].tolist()
    with ema.applied():
        assert p.tolist() == [1.0] * 3  # the average, rounded to 16 bits
        assert ema.averages[0].tolist() == before
    assert ema.averages[0].tolist() == before and before[0] > 1.0
    assert p.tolist() == [1.5] * 3
