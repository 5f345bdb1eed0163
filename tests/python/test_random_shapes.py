"""Products and convolutions of shapes drawn at random: bfloat16 beside float32, one thread beside two.

oneDNN 2.6 has kernels that fail for a few shapes in a thousand, among them such as read memory that nobody wrote."""
import random

import numpy as np
import pytest

import yoke

SEEDS, CASES = range(10), 40


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
