"""Products and convolutions of shapes drawn at random: bfloat16 beside float32, one thread beside two, and float32
beside own loops in float64 where a convolution is large enough to be cut into bands.

oneDNN 2.6 has kernels that fail for a few shapes in a thousand, among them such as read memory that nobody wrote; and it
takes other layouts of the weight for some bands of an image than for others."""
import os
import random

import numpy as np
import pytest

import yoke

SOAKS = bool(os.environ.get("YOKE_SOAK"))
SANITIZED = "ASAN_OPTIONS" in os.environ  # takes its time
SEEDS, CASES = range(300 if SOAKS else 4 if SANITIZED else 10), 40
LARGE_SEEDS, LARGE_CASES = range(30 if SOAKS else 1), 8 if SANITIZED else 40


@pytest.fixture(autouse=True)
def threads():
    before = yoke.get_num_threads()
    yield
    yoke.set_num_threads(before)


def soil():
    """Leaves memory behind that holds what shows wherever it is read."""
    del [yoke.full((2**power,), float("nan")) for power in range(8, 20) for _ in range(2)][:]


def pair(draw, least, most):
    return [draw.randint(least, most), draw.randint(least, most)]


def draw_conv(draw):
    groups = draw.choice([1, 1, 1, 2, 3])
    n, channels, out = draw.choice([1, 2, 5, 9]), draw.choice([1, 2, 3, 5, 8, 16, 17, 33, 64]), draw.choice([1, 3, 8, 16, 40, 64])
    options = {"stride": pair(draw, 1, 3), "padding": pair(draw, 0, 3), "dilation": [draw.choice([1, 1, 2, 3]) for _ in range(2)], "groups": groups}
    shape, kernel = [n, groups * channels, *pair(draw, 1, 18)], pair(draw, 1, 4)
    if draw.random() < 0.3:
        return yoke.conv_transpose2d, shape, [groups * channels, out, *kernel], options
    return yoke.conv2d, shape, [groups * out, channels, *kernel], options


def draw_product(draw):
    m, k, n = (draw.choice([1, 3, 16, 17, 33, 63, 64, 65, 127, 240, draw.randint(1, 300)]) for _ in range(3))
    batch, turned, apart = draw.choice([[], [], [1], [2], [5]]), draw.random() < 0.5, draw.choice([0, 0, 3])

    def product(x, y):
        x = x[..., :k]
        return yoke.matmul(x, y.transpose(-1, -2) if turned else y)
    return product, [*batch, m, k + apart], [*([] if draw.random() < 0.3 else batch), *((n, k) if turned else (k, n))], {}


def results(op, operands, options, dtype, count, slopes):
    """What comes out, and the gradients of the operands; `slopes` holds the gradient of what comes out, drawn once."""
    yoke.set_num_threads(count)
    leaves = [t.to(dtype).detach().requires_grad_(True) for t in operands]
    out = op(*leaves, **options)
    slopes[:] = slopes or [yoke.randn(out.shape).to("bf16")]
    soil()
    out.backward(slopes[0].to(dtype))
    return [t.detach().to("f32").numpy() for t in (out, *(leaf.grad for leaf in leaves))]


@pytest.mark.parametrize("draw_case", [draw_conv, draw_product], ids=["conv", "product"])
@pytest.mark.parametrize("seed", SEEDS)
def test_halves_are_floats_but_for_rounding(draw_case, seed):
    draw = random.Random(seed)
    yoke.manual_seed(seed)
    done = 0
    while done < CASES:
        case = op, x, weight, options = draw_case(draw)
        operands = [yoke.randn(shape).to("bf16") for shape in (x, weight)]
        slopes = []
        try:
            want = results(op, operands, options, "f32", 1, slopes)
        except yoke.ValueError as error:  # no window fits
            assert "the window" in str(error) or "gives a result of" in str(error), case
            continue
        alone, together = (results(op, operands, options, "bf16", count, slopes) for count in (1, 2))
        for floats, one, two in zip(want, alone, together):
            np.testing.assert_allclose(one, floats, rtol=0, atol=1.5e-2 * np.abs(floats).max(initial=1e-6), err_msg=str(case))
            np.testing.assert_array_equal(one, two, err_msg=str(case))
        done += 1


def draw_large_conv(draw):
    """One or two images whose result is cut into bands, of windows with a stride or of 1 x 1 with padding."""
    while True:
        kernel = [draw.randint(1, 9)] * 2 if draw.random() < 0.8 else pair(draw, 1, 7)
        stride, padding = pair(draw, 1, 4), [draw.choice([0, size // 2, size // 2, size]) for size in kernel]
        if draw.random() < 0.7:
            stride = [stride[0]] * 2
        n, channels, out = draw.choice([1, 1, 1, 2]), draw.choice([32, 64, 128, 256, 384]), draw.choice([48, 64, 68, 96, 192])
        sides = [draw.randint(20, 120), draw.randint(6, 200)]
        places = [(side + 2 * pad - size) // step + 1 for side, pad, size, step in zip(sides, padding, kernel, stride)]
        work = n * channels * out * np.prod(kernel) * np.prod(places)
        if min(places) > 0 and 2e7 < work < 3e8:
            return yoke.conv2d, [n, channels, *sides], [out, channels, *kernel], {"stride": stride, "padding": padding}


@pytest.mark.parametrize("dtype, bound", [("f32", 1e-4), ("bf16", 1.5e-2)])
@pytest.mark.parametrize("seed", LARGE_SEEDS)
def test_large_convolutions_are_those_of_own_loops(dtype, bound, seed):
    draw = random.Random(seed)
    yoke.manual_seed(seed)
    for _ in range(LARGE_CASES):
        op, x, weight, options = case = draw_large_conv(draw)
        operands, slopes = [yoke.randn(shape).to(dtype) for shape in (x, weight)], []
        want = results(op, operands, options, "f64", 2, slopes)
        got = results(op, operands, options, dtype, draw.choice([1, 2]), slopes)
        for exact, one in zip(want, got):
            np.testing.assert_allclose(one, exact, rtol=0, atol=bound * np.abs(exact).max(initial=1e-6), err_msg=str(case))


@pytest.mark.parametrize("dtype, x, weight, options", [
    ("f32", (1, 64, 35, 151), (192, 64, 7, 7), {"stride": 4, "padding": 3}), ("f32", (1, 384, 24, 40), (48, 384, 7, 7), {"stride": 2, "padding": 3}),
    ("bf16", (1, 100, 32, 6), (128, 100, 1, 1), {"stride": 3, "padding": (0, 1)}), ("bf16", (1, 100, 38, 24), (68, 100, 1, 1), {"stride": 2, "padding": (0, 1)}),
    ("bf16", (1, 384, 64, 12), (68, 384, 4, 4), {"stride": (2, 3), "padding": 2}), ("bf16", (1, 384, 54, 6), (192, 384, 7, 7), {"stride": 3, "padding": (0, 3)}),
    ("bf16", (1, 512, 54, 18), (64, 512, 3, 3), {"stride": 2, "padding": 1}), ("bf16", (1, 512, 111, 129), (68, 128, 4, 3), {"stride": (2, 1), "padding": (5, 1), "groups": 4})])
def test_convolutions_that_were_wrong_are_right(dtype, x, weight, options):
    operands, slopes = [yoke.randn(shape).to(dtype) for shape in (x, weight)], []
    want, got = (results(yoke.conv2d, operands, options, given, 2, slopes) for given in ("f64", dtype))
    for exact, one in zip(want, got):
        np.testing.assert_allclose(one, exact, rtol=0, atol=1.5e-2 * np.abs(exact).max())
