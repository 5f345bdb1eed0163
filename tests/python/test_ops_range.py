"""Values and gradients of rows with elements far apart, or tied far from 0: right to rounding if they are normal numbers."""
import math

import numpy as np
import pytest

import yoke
from conftest import DEVICE

EPSILON = {"float64": 2.0 ** -52, "float32": 2.0 ** -23, "bfloat16": 2.0 ** -7, "float16": 2.0 ** -10}
# Magnitude of factors: the product of a few factors leaves the range of the accumulating type.
LARGE = {"float64": 1e200, "float32": 1e25, "bfloat16": 1e25, "float16": 3e4}


def made(values, dtype, **options):
    return yoke.tensor(values, dtype=dtype, device=DEVICE, **options)


def listed(t):
    return t.detach().to(device="cpu", dtype=yoke.float64).numpy()


def exact_product(values):
    """Returns the product of exact numbers as a mantissa and an exponent of 2."""
    mantissa, exponent = 1.0, 0
    for value in values:
        part, power = math.frexp(value)
        mantissa, more = math.frexp(mantissa * part)
        exponent += power + more
    return mantissa, exponent


def orders(large, dtype):
    """Rows of as many large as small factors, in orders that overflow, underflow or pass through subnormal numbers."""
    few = [large] * 4 + [1 / large] * 4
    yield few
    yield few[::-1]
    yield [large, 1 / large] * 4
    yield ([large, large, 1 / large, 1 / large] * 300)[:1100]  # more than a chunk
    yield [1 / large] * 20 + [3.0] + [large] * 20
    if dtype == "float32":
        yield [1e-20, 1e-20, 1e20, 1e20, 1.2345]  # subnormal on the way, and no less


@pytest.mark.parametrize("dtype", EPSILON)
def test_products_are_right_whatever_they_are_on_the_way(dtype):
    for row in orders(LARGE[dtype], dtype):
        x = made(row, dtype)
        want = math.ldexp(*exact_product(listed(x).tolist()))
        error = EPSILON[dtype] * (2 if dtype in ("bfloat16", "float16") else len(row))
        for got in (x.prod(), made([row] * 3, dtype).prod(1)[1], made([[v] * 5 for v in row], dtype).prod(0)[4]):
            assert listed(got) == pytest.approx(want, rel=error), (row[:5], len(row))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_such_products_are_right(dtype):
    for row in orders(LARGE[dtype], dtype):
        x = made(row, dtype, requires_grad=True)
        x.prod().backward()
        mantissa, exponent = exact_product(listed(x).tolist())
        for value, got in zip(listed(x).tolist(), listed(x.grad).tolist()):
            part, power = math.frexp(value)
            if -1000 < exponent - power < 1000:
                want = float(np.array(math.ldexp(mantissa / part, exponent - power)).astype(dtype))
                assert got == pytest.approx(want, rel=EPSILON[dtype] * len(row)), (row[:5], len(row))


def test_zeros_infinities_and_nan_keep_their_meaning_in_products():
    for row, want in (([0.0] + [1e30] * 3, 0.0), ([1e30] * 3 + [-0.0], -0.0), ([1e30, 1e30], math.inf), ([-1e30, 1e30], -math.inf),
                      ([1e-30, 1e-30], 0.0), ([math.inf, 0.0], math.nan), ([math.nan, 0.0], math.nan), ([math.inf, -1e-30], -math.inf)):
        got = made(row, "float32").prod().item()
        assert (math.isnan(got) and math.isnan(want)) or (got == want and math.copysign(1, got) == math.copysign(1, want)), row
    for row, want in (([3.0, 0.0, 1e30], [0.0, np.float32(3e30), 0.0]), ([0.0, 0.0, 1e30], [0.0, 0.0, 0.0])):
        x = made(row, "float32", requires_grad=True)
        x.prod().backward()
        assert listed(x.grad).tolist() == pytest.approx(want, rel=1e-6)


# Scores of two tied elements, beside a negligible element.
SCORES = {"float64": (30.0, 1e6, 1e16, 1e300), "float32": (30.0, 1e4, 1e6, 1e8, 1e30), "bfloat16": (20.0, 60.0, 100.0, 1e3, 1e30),
          "float16": (20.0, 1e3, 3e4)}


@pytest.mark.parametrize("dtype", EPSILON)
def test_ties_of_large_scores_share_the_gradient_of_logsumexp(dtype):
    for score in SCORES[dtype]:
        for sign in 1, -1:
            row = [sign * score, sign * score, -abs(score) * 2 if sign < 0 else -score]
            x = made([row, row], dtype, requires_grad=True)
            x.logsumexp(1).sum().backward()
            assert listed(x.grad).tolist()[1] == pytest.approx([0.5, 0.5, 0.0], rel=2 * EPSILON[dtype], abs=1e-8), row
            y = made([row, row], dtype, requires_grad=True)
            y.logsumexp().backward()
            assert listed(y.grad).tolist()[0] == pytest.approx([0.25, 0.25, 0.0], rel=2 * EPSILON[dtype], abs=1e-8), row


def test_infinite_results_of_logsumexp_keep_their_gradients():
    x = made([[1.0, math.inf], [1.0, 2.0]], "float32", requires_grad=True)
    x.logsumexp(1).sum().backward()
    grad = listed(x.grad)
    assert grad[0][0] == 0 and math.isnan(grad[0][1]) and grad[1].sum() == pytest.approx(1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", EPSILON)
def test_ties_of_large_scores_share_the_gradient_of_cross_entropy(dtype, smoothing):
    for score in SCORES[dtype]:
        x = made([[score, score, -score], [-score, score, -score]], dtype, requires_grad=True)
        target = yoke.tensor([0, 1], device=DEVICE)
        yoke.cross_entropy(x, target, reduction="sum", label_smoothing=smoothing).backward()
        third, rest = smoothing / 3, 1 - smoothing
        want = [[0.5 - third - rest, 0.5 - third, -third], [-third, 1 - third - rest, -third]]
        assert listed(x.grad) == pytest.approx(np.array(want), abs=2 * EPSILON[dtype]), score


def test_gradients_of_std_are_right_where_only_the_deviation_is_subnormal():
    for scale in 1e-308, 1e-300, 1e-150, 1.0, 1e150, 1e300:
        rows = np.array([8.9, 8.91, 8.88]) * scale
        x = made(rows.tolist(), "float64", requires_grad=True)
        x.std().backward()
        wide = (rows / scale if scale != 1e-308 else rows * 2.0 ** 900)
        deviations = wide - wide.mean()
        want = deviations / (2 * wide.std(ddof=1))
        assert listed(x.grad) == pytest.approx(want, rel=1e-9), scale
