"""Convolutions, transposed convolutions and products of random shapes, forward and both gradients, beside NumPy in float64.

A separate process runs for each instruction set to which oneDNN is limited, and memory holds NaN until a kernel writes
(engine_levels.py). The seed and the shape's number alone decide a shape: --only N runs shape N.
"""
import argparse
import ctypes
import dataclasses
import random

import numpy as np

import yoke

LEVELS = {"SSE41": 0x1, "AVX": 0x3, "AVX2": 0x7, "AVX512_CORE": 0x27, "AVX512_CORE_BF16": 0xe7, "AVX512_CORE_AMX": 0x3e7}  # dnnl_cpu_isa_t
# Half a unit in the last place. 16-bit floats are rounded once, from sums in float32, whose error grows with the
# depth.
ROUNDING = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}
MOST_WORK = 3e6  # multiplications


@dataclasses.dataclass
class Case:
    op: str  # conv2d, conv_transpose2d, matmul, linear
    dtype: str
    x: list
    weight: list
    options: dict
    is_nhwc: bool
    has_bias: bool
    threads: int


# ---- drawing --------------------------------------------------------------------------------------------------------

def draw_dtype(draw):
    return draw.choices(["f32", "bf16", "f16"], [35, 50, 15])[0]


def draw_window(draw):
    """Returns kernel, stride, dilation and padding for an axis."""
    kernel = draw.choice([1, 1, 2, 3, 3, 3, 4, 5, 7])
    dilation = 1 if draw.random() < 0.45 else draw.choice([2, 2, 3, 4])
    stride = 1 if draw.random() < 0.6 else draw.randint(2, 4)
    span = (kernel - 1) * dilation + 1
    return kernel, stride, dilation, draw.choice([0, span // 2, span // 2, draw.randint(0, span + 1)])


def draw_groups(draw):
    """Returns the number of groups, and the input and output channels of each group."""
    each = draw.choice([1, 2, 3, 5, 8, 16, 17, 20, 33, 48, 64])
    kind = draw.random()
    if kind < 0.2:
        return draw.choice([1, 3, 8, 16, 17, 32, 40]), 1, draw.choice([1, 1, 1, 2])
    return (1 if kind < 0.6 else draw.randint(2, 4)), each, draw.choice([1, 3, 8, 16, 17, 40, 64])


def draw_conv(draw):
    """A convolution as (shape of x, weight, options, shape of the result); None where no window fits or it is too much work."""
    down, across = draw_window(draw), draw_window(draw)
    groups, each, out = draw_groups(draw)
    places = [draw.randint(1, 12), draw.randint(29, 80) if draw.random() < 0.5 else draw.randint(1, 28)]
    if draw.random() < 0.25:  # channels that fill no vector, dilated, and wide
        groups, each, down, across = max(2, groups), each if each % 16 else each + 1, (3, 1, draw.randint(2, 4), draw.randint(0, 3)), (*across[:1], 1, *across[2:])
        places = [draw.randint(4, 14), draw.randint(29, 80)]
    sizes = [(n - 1) * s + (k - 1) * d + 1 - 2 * p + draw.randrange(s) for n, (k, s, d, p) in zip(places, (down, across))]
    n = draw.choice([1, 1, 2, 3, 5])
    if min(sizes) < 1 or n * np.prod(places) * groups * out * each * down[0] * across[0] > MOST_WORK:
        return None
    names = ("stride", "dilation", "padding")
    options = {name: [down[1 + i], across[1 + i]] for i, name in enumerate(names)} | {"groups": groups}
    return [n, groups * each, *sizes], [groups * out, each, down[0], across[0]], options, [n, groups * out, *places]


def draw_convolution(draw):
    shapes = None
    while shapes is None:
        shapes = draw_conv(draw)
    x, weight, options, out = shapes
    is_transposed = draw.random() < 0.35
    if is_transposed:
        natural = [(n - 1) * s + (k - 1) * d + 1 - 2 * p for n, s, k, d, p in zip(out[2:], options["stride"], weight[2:], options["dilation"], options["padding"])]
        options["output_padding"] = [size - least for size, least in zip(x[2:], natural)]
    rest = options, draw.random() < 0.5, draw.random() < 0.5, draw.choice([1, 2])
    return Case("conv_transpose2d", draw_dtype(draw), out, weight, *rest) if is_transposed else Case("conv2d", draw_dtype(draw), x, weight, *rest)


def draw_product(draw):
    m, k, n = (draw.choice([1, 3, 16, 17, 33, 63, 64, 65, 127, draw.randint(1, 300)]) for _ in range(3))
    batch = draw.choice([[], [], [1], [2], [5]])
    if draw.random() < 0.3:
        return Case("linear", draw_dtype(draw), [*batch, m, k], [n, k], {}, False, draw.random() < 0.5, draw.choice([1, 2]))
    turned, apart, of_all = draw.random() < 0.5, draw.choice([0, 0, 3]), [] if draw.random() < 0.3 else batch
    return Case("matmul", draw_dtype(draw), [*batch, m, k + apart], [*of_all, *((n, k) if turned else (k, n))], {"turned": turned, "apart": apart},
                False, False, draw.choice([1, 2]))


def draw_case(seed, number):
    draw = random.Random(f"{seed}:{number}")
    return draw_product(draw) if draw.random() < 0.25 else draw_convolution(draw)


def as_conv(case):
    """Returns channels of a group, places of the result, and options of the case's convolution, or of the convolution behind its
    gradient.
    """
    x = [case.weight[1], *case.x[2:]]
    return x[0], (case.x[2:] if case.op == "conv_transpose2d" else places_of(case)), case.options


def places_of(case):
    o = case.options
    return [(n + 2 * p - (k - 1) * d - 1) // s + 1 for n, p, k, d, s in zip(case.x[2:], o["padding"], case.weight[2:], o["dilation"], o["stride"])]


def skips_rows_twice(case):
    """Returns whether oneDNN's gradient by weight in bf16 without AMX would step over too many rows: see conv_parts.cpp."""
    if case.dtype != "bf16" or not case.op.startswith("conv"):
        return False
    channels, places, o = as_conv(case)
    is_first = o["groups"] == 1 and channels < 16
    return channels % 16 != 0 and not is_first and o["dilation"][0] > 1 and case.weight[2] > 1 and places[1] >= 29 and o["stride"] == [1, 1]


# ---- NumPy's results ------------------------------------------------------------------------------------------------

def np_conv(x, weight, grad, stride, padding, dilation, groups):
    """The result of a convolution, its gradient by x and by the weight, each from the other two."""
    n, c, height, width = x.shape
    (o, each, kh, kw), (oh, ow) = weight.shape, grad.shape[2:]
    spans = [max(s * (places - 1) + d * (k - 1) + 1, size + 2 * p) for s, places, d, k, size, p in
             zip(stride, (oh, ow), dilation, (kh, kw), (height, width), padding)]
    padded = np.zeros((n, c, *spans))
    padded[:, :, padding[0]:padding[0] + height, padding[1]:padding[1] + width] = x
    of_x, of_weight = np.zeros_like(padded), np.zeros((groups, o // groups, each, kh, kw))
    out, by = np.zeros((n, groups, o // groups, oh * ow)), weight.reshape(groups, o // groups, each, kh, kw)
    slopes = grad.reshape(n, groups, o // groups, oh * ow)
    for i, j in np.ndindex(kh, kw):
        at = (..., slice(i * dilation[0], i * dilation[0] + stride[0] * (oh - 1) + 1, stride[0]),
              slice(j * dilation[1], j * dilation[1] + stride[1] * (ow - 1) + 1, stride[1]))
        seen = padded[at].reshape(n, groups, each, oh * ow)
        out += by[..., i, j] @ seen
        of_weight[..., i, j] = (slopes @ seen.swapaxes(2, 3)).sum(0)
        of_x[at] += (by[..., i, j].swapaxes(1, 2) @ slopes).reshape(n, c, oh, ow)
    inside = of_x[:, :, padding[0]:padding[0] + height, padding[1]:padding[1] + width]
    return out.reshape(grad.shape), inside, of_weight.reshape(weight.shape)


def wanted_of_conv(case, x, weight, bias, grad):
    """(result, gradients of x, weight and bias), and the depth of the sums of each."""
    window = [case.options[name] for name in ("stride", "padding", "dilation", "groups")]
    is_transposed = case.op == "conv_transpose2d"
    pixels, places = (grad, x) if is_transposed else (x, grad)
    out, of_x, of_weight = np_conv(pixels, weight, places, *window)
    taps, groups, positions = weight.shape[2] * weight.shape[3], window[3], x.shape[0] * places.shape[2] * places.shape[3]
    down, up = taps * weight.shape[1], taps * weight.shape[0] // groups
    if is_transposed:
        out, of_x, down, up = of_x, out, up, down
    if bias is not None:
        out = out + bias[:, None, None]
    return [out, of_x, of_weight, grad.sum((0, 2, 3))], [down + 1, up, positions, grad.size // max(1, grad.shape[1])]


def summed_to(x, shape):
    """Returns the gradient of an operand broadcast from this shape."""
    return x.sum(tuple(range(x.ndim - len(shape)))).reshape(shape) if x.ndim > len(shape) else x


def wanted_of_product(case, x, weight, bias, grad):
    matrix = weight.T if case.op == "linear" else weight.swapaxes(-1, -2) if case.options["turned"] else weight
    seen = x[..., :matrix.shape[-2]]
    out, of_matrix = seen @ matrix, summed_to(seen.swapaxes(-1, -2) @ grad, matrix.shape)
    of_x = np.zeros_like(x)
    of_x[..., :matrix.shape[-2]] = grad @ matrix.swapaxes(-1, -2)
    of_weight = of_matrix if matrix is weight else of_matrix.swapaxes(-1, -2)
    rows = grad.size // grad.shape[-1]
    return [out if bias is None else out + bias, of_x, of_weight, grad.reshape(rows, -1).sum(0)], [matrix.shape[-2] + 1, grad.shape[-1], rows, rows]


# ---- Yoke's results -------------------------------------------------------------------------------------------------

def called(case, x, weight, bias):
    if case.op == "matmul":
        k = x.shape[-1] - case.options["apart"]
        return yoke.matmul(x[..., :k], weight.transpose(-1, -2) if case.options["turned"] else weight)
    return getattr(yoke, case.op)(x, weight, bias, **case.options)


def laid_out(case, t):
    """Returns the values as [N, H, W, C] in memory, as channels_last lays them out, if the case is NHWC."""
    return t.permute((0, 2, 3, 1)).clone().permute((0, 3, 1, 2)) if case.is_nhwc else t


def found(case, operands, grad, threads):
    """(result, gradients) by that many threads; `grad` makes the result's gradient."""
    yoke.set_num_threads(threads)
    leaves = [None if t is None else laid_out(case, t).detach().requires_grad_(True) if i == 0 else t.detach().requires_grad_(True)
              for i, t in enumerate(operands)]
    out = called(case, *leaves)
    out.backward(laid_out(case, grad(out.shape)))
    return [None if t is None else t.detach().to("f64").numpy() for t in (out, *(None if leaf is None else leaf.grad for leaf in leaves))]


def check(case, number):
    """Raises AssertionError where an element is further from NumPy's than rounding takes it."""
    rng = np.random.default_rng(number)

    def normal(shape):
        return yoke.tensor(rng.standard_normal(shape).astype(np.float32)).to("bf16").to(case.dtype)

    biases = {"conv2d": case.weight[0], "conv_transpose2d": case.weight[1] * case.options.get("groups", 1), "linear": case.weight[0]}
    operands = [normal(case.x), normal(case.weight), normal([biases[case.op]]) if case.has_bias else None]
    slopes = {}

    def grad(shape):
        return slopes.setdefault("grad", normal(shape) if not slopes else None)

    got = found(case, operands, grad, case.threads)
    if case.dtype == "bf16" and number % 8 == 0:
        for one, other in zip(got, found(case, operands, lambda _: slopes["grad"], 3 - case.threads)):
            np.testing.assert_array_equal(one, other, err_msg="by 1 and by 2 threads")
    arrays = [None if t is None else t.to("f64").numpy() for t in (*operands, slopes["grad"])]
    wanted, depths = (wanted_of_conv if case.op.startswith("conv") else wanted_of_product)(case, *arrays)
    largest = max(np.abs(a).max(initial=0) for a in arrays if a is not None) ** 2
    for name, one, want, depth in zip(("result", "x's gradient", "weight's gradient", "bias's gradient"), got, wanted, depths):
        if one is not None:
            # Sums of `depth` terms in float32 in any order: the error of random signs grows with the root, that of all
            # alike with the depth.
            np.testing.assert_allclose(one, want, rtol=2 * ROUNDING[case.dtype], atol=2.0**-24 * depth * largest, err_msg=name)


# ---- the process ----------------------------------------------------------------------------------------------------

def check_surroundings(level):
    """Raises unless oneDNN is limited to the level, and unwritten memory holds NaN."""
    effective = ctypes.CDLL("libdnnl.so.2").dnnl_get_effective_cpu_isa()
    assert level is None or effective == LEVELS[level], f"oneDNN takes {effective:#x}, not {level}"
    assert np.isnan(yoke.empty((1000,)).numpy()).all(), "memory that nobody wrote is not NaN: YOKE_NO_CACHING=1 and a filling allocator are needed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=LEVELS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shapes", type=int, default=300)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    check_surroundings(given.level)
    numbers = range(given.first, given.first + given.shapes) if given.only is None else [given.only]
    wrong = hits = 0
    for number in numbers:
        case = draw_case(given.seed, number)
        hits += skips_rows_twice(case)
        try:
            check(case, number)
        except AssertionError as error:
            wrong += 1
            if wrong <= 5:
                print(f"--seed {given.seed} --only {number}: {case}\n{str(error).strip()}", flush=True)
    print(f"{len(numbers)} shapes, {hits} of them dilated, wide and grouped in bf16: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
