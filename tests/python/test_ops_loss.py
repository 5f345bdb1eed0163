"""Losses beyond the table: halves, limits, broadcast, gradients of targets, bad input."""
import numpy as np
import pytest

import yoke
from cases_loss import np_cross_entropy, np_log_softmax
from op_table import FLOATS, to_numpy, to_yoke


def refused(kind, *words):
    return pytest.raises(kind, match="".join(f"(?=.*{w})" for w in words))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss"])
def test_the_mean_of_halves_does_not_overflow_on_the_way(name):
    x, target = yoke.full((1000,), 250.0, dtype=yoke.float16), yoke.zeros(1000, dtype=yoke.float16)
    got = getattr(yoke, name)(x, target).item()
    assert got == {"mse_loss": 62_500 - 4, "l1_loss": 250, "smooth_l1_loss": 249.5}[name]  # 62500 as float16


def test_the_batch_mean_of_halves_does_not_overflow_on_the_way():
    x, target = yoke.full((100, 100), -30.0, dtype=yoke.float16), yoke.ones((100, 100), dtype=yoke.float16)
    assert yoke.kl_div(x, target, reduction="batchmean").item() == 3000
    assert yoke.cross_entropy(x * 0, yoke.zeros(100, dtype=yoke.int64)).item() == pytest.approx(np.log(100), rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("classes", [3, 300, 701, 5004])
def test_the_loss_of_few_classes_or_thousands_is_numpys_and_so_is_its_gradient(classes, dtype):
    rng = np.random.default_rng(classes)
    x, target = rng.standard_normal((6, classes)).astype(dtype), rng.integers(0, classes, 6)
    target[2] = -100
    logits, logs = to_yoke(x, requires_grad=True), to_yoke(np_log_softmax(x).astype(dtype), requires_grad=True)
    for loss, want in ((yoke.cross_entropy(logits, to_yoke(target), label_smoothing=0.25),
                        np_cross_entropy(x, target, label_smoothing=0.25)),
                       (yoke.nll_loss(logs, to_yoke(target)), np_cross_entropy(x, target))):
        np.testing.assert_allclose(loss.item(), want, rtol=1e-5)
        loss.backward()
    share = (target >= 0)[:, None] / 5
    hits = share * (np.arange(classes) == target[:, None])
    smooth = 0.75 * hits + 0.25 * share / classes
    np.testing.assert_allclose(to_numpy(logits.grad), share * np.exp(np_log_softmax(x)) - smooth, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(to_numpy(logs.grad), -hits, rtol=1e-6)


@pytest.mark.parametrize("dtype", [yoke.bfloat16, yoke.float16])
@pytest.mark.parametrize("classes", [5, 333, 5003])
def test_rows_of_halves_that_begin_off_every_boundary(classes, dtype):
    rng = np.random.default_rng(classes)
    logits = (to_yoke(rng.standard_normal((9, classes)) * 3)).to(dtype).requires_grad_(True)
    x, target = to_numpy(logits.detach().to(yoke.float64)), rng.integers(0, classes, 9)
    target[4] = -100
    losses = yoke.cross_entropy(logits, to_yoke(target), reduction="none", label_smoothing=0.125)
    step = 2.0**-8 if dtype is yoke.bfloat16 else 2.0**-11
    np.testing.assert_allclose(to_numpy(losses.to(yoke.float64)), np_cross_entropy(x, target, None, "none", label_smoothing=0.125), rtol=1.5 * step)
    losses.sum().backward()
    hits = np.arange(classes) == target[:, None]
    want = (target >= 0)[:, None] * (np.exp(np_log_softmax(x)) - 0.875 * hits - 0.125 / classes)
    got = to_numpy(logits.grad.to(yoke.float64))
    np.testing.assert_allclose(got, want, rtol=1.5 * step, atol=2e-7)
    assert not got[4].any()


@pytest.mark.parametrize("rows", [8192, 8193, 20_001])
def test_losses_of_many_rows_add_up_in_parts(rows):
    rng = np.random.default_rng(rows)
    x, target = rng.standard_normal((rows, 3)).astype(np.float32), rng.integers(0, 3, rows)
    target[rng.integers(0, rows, 100)] = -100
    for reduction in ("mean", "sum"):
        got = yoke.cross_entropy(to_yoke(x), to_yoke(target), reduction=reduction).item()
        np.testing.assert_allclose(got, np_cross_entropy(x.astype(np.float64), target, None, reduction), rtol=1e-5)
        logs = to_yoke(np_log_softmax(x).astype(np.float32))
        np.testing.assert_allclose(yoke.nll_loss(logs, to_yoke(target), reduction=reduction).item(), got, rtol=1e-5)


def test_large_logits_have_finite_losses():
    x = to_yoke(np.array([1000.0, -1000.0, 1000.0, -1000.0], np.float32), requires_grad=True)
    loss = yoke.binary_cross_entropy_with_logits(x, yoke.tensor([1.0, 0.0, 0.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(to_numpy(loss), [0, 0, 1000, 1000])
    yoke.sum(loss).backward()
    np.testing.assert_array_equal(to_numpy(x.grad), [0, 0, 1, -1])
    tiny = yoke.binary_cross_entropy_with_logits(yoke.tensor([20.0]), yoke.tensor([1.0])).item()
    assert tiny == pytest.approx(np.log1p(np.exp(-20.0)), rel=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("pos_weight", [None, 0.0, 1.0, 3.0])
def test_cross_entropy_of_infinite_logits_is_zero_or_infinite(dtype, pos_weight):
    inf, weight = np.inf, 1.0 if pos_weight is None else pos_weight
    x = to_yoke(np.array([inf, inf, inf, -inf, -inf, -inf]), dtype, requires_grad=True)
    target = to_yoke(np.array([0.0, 1.0, 0.5, 0.0, 1.0, 0.5]), dtype)
    more = {} if pos_weight is None else {"pos_weight": to_yoke(np.array([pos_weight]), dtype)}
    loss = yoke.binary_cross_entropy_with_logits(x, target, reduction="none", **more)
    certain = inf if weight else 0.0
    np.testing.assert_array_equal(to_numpy(loss), [inf, 0, inf, 0, certain, certain])
    loss.sum().backward()
    np.testing.assert_array_equal(to_numpy(x.grad), [1, 0, 0.5, 0, -weight, -0.5 * weight])


def test_the_gradient_of_cross_entropy_of_logits_by_infinite_ones_is_right_in_the_target():
    x, target = to_yoke(np.array([np.inf, -np.inf, 3.0])), to_yoke(np.array([1.0, 0.0, 0.0]), requires_grad=True)
    for more in ({}, {"pos_weight": yoke.tensor([1.0], dtype=yoke.float64)}):
        target.grad = None
        yoke.binary_cross_entropy_with_logits(x, target, reduction="sum", **more).backward()
        np.testing.assert_allclose(to_numpy(target.grad), [-np.inf, np.inf, -3], rtol=1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("which", ["weight", "pos_weight"])
def test_weights_of_infinite_logits_have_the_right_gradient(dtype, value, which):
    inf = np.inf
    x = to_yoke(np.array([inf, inf, -inf, -inf, 0.0]), dtype, requires_grad=True)
    target = to_yoke(np.array([0.0, 1.0, 0.0, 1.0, 0.0]), dtype)
    weight = to_yoke(np.full(5, value), dtype, requires_grad=True)
    loss = yoke.binary_cross_entropy_with_logits(x, target, reduction="none", **{which: weight})
    loss.sum().backward()
    wrong, log2 = (inf if value else 0), to_numpy(to_yoke(np.array(np.log(2)), dtype)).astype(float)
    if which == "weight":
        want, slopes = [wrong, 0, 0, wrong, value * log2], [inf, 0, 0, inf, log2]
    else:
        want, slopes = [inf, 0, 0, wrong, log2], [0, 0, 0, inf, 0]
    np.testing.assert_allclose(to_numpy(loss).astype(float), want, rtol=1e-6)
    np.testing.assert_allclose(to_numpy(weight.grad).astype(float), slopes, rtol=1e-6)
    assert np.isfinite(to_numpy(x.grad).astype(float)).all()


def test_cross_entropy_of_logits_keeps_gradients_where_sigmoid_is_nearly_one():
    x, target = to_yoke(np.array([40.0, -40.0], np.float32), requires_grad=True), yoke.tensor([1.0, 0.0])
    yoke.binary_cross_entropy_with_logits(x, target, reduction="sum").backward()
    np.testing.assert_allclose(to_numpy(x.grad), [-np.exp(-40), np.exp(-40)], rtol=1e-6)


def test_a_certain_mistake_costs_a_hundred_and_a_target_of_zero_nothing():
    x = yoke.tensor([0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(
        to_numpy(yoke.binary_cross_entropy(x, yoke.tensor([1.0, 0.0, 0.0, 1.0]), reduction="none")), [100, 100, 0, 0])
    np.testing.assert_array_equal(to_numpy(yoke.kl_div(yoke.tensor([-np.inf, -1.0]), yoke.tensor([0.0, 1.0]), reduction="none")), [0, 1])


def test_kinks_have_a_slope_of_zero_and_nan_passes():
    x = to_yoke(np.array([1.0, np.nan], np.float32), requires_grad=True)
    yoke.l1_loss(x, yoke.tensor([1.0, 0.0]), reduction="sum").backward()
    np.testing.assert_array_equal(to_numpy(x.grad), [0, np.nan])
    assert np.isnan(yoke.mse_loss(x, x, reduction="sum").item())


def test_shapes_that_broadcast_give_the_losses_of_all_pairs():
    x, target = to_yoke(np.zeros((4, 1), np.float32), requires_grad=True), yoke.tensor([1.0, 2.0, 3.0])
    loss = yoke.mse_loss(x, target)
    assert loss.item() == pytest.approx(14 / 3)
    loss.backward()
    np.testing.assert_allclose(to_numpy(x.grad), np.full((4, 1), -1), rtol=1e-6)


def test_dtypes_that_differ_are_promoted_and_each_gets_a_gradient_of_its_own():
    x = to_yoke(np.ones(3, np.float32), "bfloat16", requires_grad=True)
    target = to_yoke(np.zeros(3, np.float32), requires_grad=True)
    loss = yoke.mse_loss(x, target, reduction="sum")
    assert loss.dtype == yoke.float32
    loss.backward()
    assert x.grad.dtype == yoke.bfloat16 and to_numpy(target.grad).tolist() == [-2, -2, -2]
    assert yoke.l1_loss(x, yoke.tensor([1, 2, 3])).item() == 1.0


def test_the_mean_of_nothing_is_nan_and_its_sum_zero():
    nothing = yoke.zeros((0, 3))
    assert np.isnan(yoke.mse_loss(nothing, nothing).item()) and yoke.mse_loss(nothing, nothing, reduction="sum").item() == 0
    assert np.isnan(yoke.nll_loss(yoke.zeros((2, 3)), yoke.tensor([-100, -100])).item())


def test_bad_arguments_name_the_op_the_argument_and_the_values():
    x, y = yoke.zeros((2, 3)), yoke.zeros((2, 4))
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "kl_div"):
        with refused(yoke.ValueError, name, r"\[2, 3\]", r"\[2, 4\]"):
            getattr(yoke, name)(x, y)
    for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
        with refused(yoke.ValueError, name, r"\[2, 3\]", r"\[3\]"):
            getattr(yoke, name)(x, yoke.zeros(3))
        with refused(yoke.ValueError, name, "weight", r"\[2\]"):
            getattr(yoke, name)(x, x, yoke.ones(2))
    with refused(yoke.ValueError, "mse_loss", "reduction", "batchmean", "mean"):
        yoke.mse_loss(x, x, reduction="batchmean")
    with refused(yoke.ValueError, "kl_div", "reduction", "average", "batchmean"):
        yoke.kl_div(x, x, reduction="average")
    with refused(yoke.ValueError, "kl_div", "'x' has no axes", "batchmean"):
        yoke.kl_div(yoke.tensor(1.0), yoke.tensor(1.0), reduction="batchmean")
    with refused(yoke.ValueError, "smooth_l1_loss", "beta", "-1"):
        yoke.smooth_l1_loss(x, x, beta=-1)
    with refused(yoke.TypeError, "mse_loss", "int64"):
        yoke.mse_loss(yoke.tensor([1]), yoke.tensor([2]))
    with refused(yoke.ValueError, "binary_cross_entropy", "1.5", "between 0 and 1"):
        yoke.binary_cross_entropy(yoke.tensor([0.5, 1.5]), yoke.tensor([0.0, 1.0]))
    with refused(yoke.ValueError, "binary_cross_entropy", "-0.25", "between 0 and 1"):
        yoke.binary_cross_entropy(yoke.tensor([0.5, -0.25]), yoke.tensor([0.0, 1.0]))
    with refused(yoke.ValueError, "nll_loss", r"\[2, 3\]", r"\[3\]"):
        yoke.nll_loss(x, yoke.tensor([0, 1, 2]))
    with refused(yoke.IndexError, "nll_loss", r"target\[1\] is 3", "0 to 2"):
        yoke.nll_loss(x, yoke.tensor([0, 3]))
        yoke.synchronize()
    with refused(yoke.IndexError, "nll_loss", r"target\[0\] is -1", "0 to 299"):
        yoke.nll_loss(yoke.zeros((2, 300)), yoke.tensor([-1, 3]))
        yoke.synchronize()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "kl_div"])
def test_shapes_that_do_not_broadcast_are_refused_in_every_reduction(name, reduction):
    with pytest.raises(yoke.ValueError, match=rf"^{name}: .*\[64, 64\].*\[16, 64\]"):
        getattr(yoke, name)(yoke.zeros((64, 64)), yoke.zeros((16, 64)), reduction=reduction)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div",
                                  "binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_another_term_is_added_to_a_loss_in_place(name, reduction):
    rng = np.random.default_rng(0)
    x = to_yoke(rng.uniform(0.1, 0.9, (4, 3)).astype(np.float32), requires_grad=True)
    target = yoke.tensor([0, 2, 1, 1]) if name in ("cross_entropy", "nll_loss") else to_yoke(rng.uniform(0.1, 0.9, (4, 3)).astype(np.float32))

    def gradient(in_place):
        loss, term = getattr(yoke, name)(x, target, reduction=reduction), (x * x).sum()
        if in_place:
            loss += term
            loss *= 2
        else:
            loss = (loss + term) * 2
        return to_numpy(yoke.grad(loss.sum(), [x])[0])

    np.testing.assert_array_equal(gradient(True), gradient(False))
