"""Norms and poolings of images whose channels are neighbours in memory: many channels, rows and tiles, and values that sums lose."""
import numpy as np
import pytest

import yoke
from cases_norm import np_batch_norm, np_group_norm
from op_table import to_numpy, to_yoke
from test_ops_fused import in_pieces, same, with_gradients

_rng = np.random.default_rng(97)
# The error of a result, of one rounding to the dtype and of statistics in float32.
NEAR = {"float64": 1e-12, "float32": 4e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
# Packs that fill a block's lanes, that do not, and channels that make no packs; rows for one thread and for many items.
SHAPES = [(3, 64, 5, 7), (2, 200, 6, 5), (5, 24, 33, 29), (3, 6, 40, 41), (2, 520, 2, 3), (70, 16), (2, 8, 150, 161)]


def normal(*shape):
    return _rng.standard_normal(shape)


def last(array, dtype="float32"):
    """A tensor of the array's shape whose channels are neighbours in memory."""
    x = to_yoke(np.moveaxis(array, 1, -1).copy(), dtype)
    return yoke.permute(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def shifted(array, step):
    """The same, off the boundaries of packs, or with a gap behind the channels."""
    x = np.moveaxis(array, 1, -1).astype(np.float32)
    x = to_yoke(np.concatenate([x[..., :step], x, x[..., :8]], -1))[..., step:x.shape[-1] + step]
    return yoke.permute(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def held(x):
    return to_numpy(x).astype(np.float64)


def near(got, want, dtype, times=1):
    want = np.asarray(want)
    np.testing.assert_allclose(held(got), want, rtol=times * NEAR[dtype], atol=times * NEAR[dtype] * np.abs(want).max())


def gradients(x, weight, g):
    """The gradients by x, weight and bias of batch_norm without eps."""
    axes = (0, *range(2, x.ndim))
    mean, rstd = x.mean(axes, keepdims=True), 1 / x.std(axes, keepdims=True)
    y = (x - mean) * rstd
    inner = g - g.mean(axes, keepdims=True) - y * (g * y).mean(axes, keepdims=True)
    return weight.reshape(-1, *[1] * (x.ndim - 2)) * rstd * inner, (g * y).sum(axes), g.sum(axes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_batch_norm_over_neighbouring_channels_has_the_values_and_gradients_of_numpy(shape, dtype):
    x, g = last(normal(*shape) * 3 - 1, dtype), last(normal(*shape), dtype)
    kept = "float64" if dtype == "float64" else "float32"
    weight, bias = to_yoke(normal(shape[1]), kept), to_yoke(normal(shape[1]), kept)
    out, *found = with_gradients(lambda x, w, b: yoke.batch_norm(x, None, None, w, b, True, eps=0.0), [g], x, weight, bias)
    near(out, np_batch_norm(held(x), None, None, held(weight), held(bias), True, eps=0.0), dtype)
    for got, want, times in zip(found, gradients(held(x), held(weight), held(g)), (1, 8, 8), strict=True):
        near(got, want, dtype if got.dtype == x.dtype else kept, times)


@pytest.mark.parametrize("shape", [(3, 64, 5, 7), (2, 40, 9, 8)], ids=str)
@pytest.mark.parametrize("lies", ["dense", "apart", "off"])
def test_norms_do_not_depend_on_gaps_or_on_where_a_tensor_begins(shape, lies):
    x, g = normal(*shape), normal(*shape)

    def lie(array):
        return last(array) if lies == "dense" else shifted(array, 0 if lies == "apart" else 3)
    for op in (lambda x: yoke.batch_norm(x, training=True), lambda x: yoke.group_norm(x, 4),
               lambda x: yoke.batch_norm_add_relu(x, training=True)):
        same(with_gradients(op, [lie(g)], lie(x)), with_gradients(op, [last(g)], last(x)))


@pytest.mark.parametrize("shape", [(2, 24, 33, 29), (3, 200, 5, 5)], ids=str)
def test_group_norm_over_neighbouring_channels_has_the_values_and_gradients_of_planes(shape):
    x, g = normal(*shape), normal(*shape)
    weight, bias = normal(shape[1]), normal(shape[1])

    def run(lie):
        leaves = [lie(x), to_yoke(weight, "float32"), to_yoke(bias, "float32")]
        return with_gradients(lambda x, w, b: yoke.group_norm(x, 8, w, b), [lie(g)], *leaves)
    got = run(last)
    near(got[0], np_group_norm(x, 8, weight, bias), "float32", 4)
    for a, b in zip(got, run(lambda array: to_yoke(array, "float32")), strict=True):
        near(a, held(b), "float32", 8)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("lies", ["channels last", "rows"])
def test_batch_norm_of_values_around_ten_thousand_keeps_its_digits(dtype, lies):
    spread = {"float32": 1.0, "float16": 64.0, "bfloat16": 512.0}[dtype]  # some steps of the dtype
    values, upstream, weight = 1e4 + spread * normal(4, 32, 21, 22), normal(4, 32, 21, 22), normal(32)
    lie = last if lies == "channels last" else to_yoke
    x, g, w = lie(values, dtype), lie(upstream, dtype), to_yoke(weight, "float32")
    mean, variance = yoke.zeros(32), yoke.zeros(32)
    out, *found = with_gradients(lambda x, w: yoke.batch_norm(x, mean, variance, w, None, True, 1.0, 0.0), [g], x, w)
    near(out, np_batch_norm(held(x), None, None, held(w), None, True, eps=0.0), dtype, 100 if dtype == "float32" else 1)  # the mean's last place is 1e-3
    near(mean, held(x).mean((0, 2, 3)), "float32")
    near(variance, held(x).var((0, 2, 3), ddof=1), "float32", 25)
    for got, want in zip(found, gradients(held(x), held(w), held(g))):
        near(got, want, dtype if got.dtype == x.dtype else "float32", 250)


def columns(rows):
    """Channels of every kind: those whose plain sums are lost stand beside others."""
    def first(value, others):
        return np.concatenate([[value], others[1:]])
    u = _rng.uniform(-1, 1, (8, rows))
    return [u[0], np.zeros(rows), np.full(rows, 1.5), np.full(rows, -1e30), first(1e4, u[1]), first(-300.0, u[2]), 1e30 * u[3],
            first(3e38, 1e37 * u[4]), 1e-30 * u[5], np.where(np.arange(rows) < rows // 2, 1e-25, u[6]), 1e4 + u[7], np.full(rows, 1e-40),
            np.where(np.arange(rows) % 2, -1e-30, 1e-30), np.where(np.arange(rows) == rows - 1, 1e3, 0), 1e20 + 1e15 * u[0], u[1] - 7]


@pytest.mark.parametrize("rows", [2, 37, 500, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("adds", [0, 1], ids=["packs", "no packs"])
def test_channels_of_every_kind_lie_beside_one_another(rows, dtype, adds):
    values = np.stack(columns(rows) * 2 + [np.arange(rows)] * adds, 1)
    x = to_yoke(values, dtype)
    mean, variance = (yoke.zeros(values.shape[1], dtype="float64" if dtype == "float64" else "float32") for _ in range(2))
    yoke.batch_norm(x, mean, variance, None, None, True, 1.0)
    exact = to_numpy(x).astype(np.longdouble)
    error = np.abs(held(mean) - exact.mean(0))
    assert (error <= 4e-6 * (np.abs(exact.mean(0)) + exact.std(0))).all(), error
    want = exact.var(0, ddof=1)
    normal_numbers = (want < (1e300 if dtype == "float64" else 3e38)) & ((want > 1e-37) | (want == 0))
    np.testing.assert_allclose(held(variance)[normal_numbers], want[normal_numbers].astype(np.float64), rtol=1e-4)
    assert (held(variance)[want == 0] == 0).all()


def test_infinity_and_nan_stay_in_their_channels():
    values = normal(300, 16)
    values[7, 3], values[290, 5], values[0, 9] = np.inf, np.nan, -np.inf
    out = held(yoke.batch_norm(to_yoke(values, "float32"), training=True))
    lost = np.isnan(out).all(0)
    np.testing.assert_array_equal(np.flatnonzero(lost), [3, 5, 9])
    kept = ~lost
    np.testing.assert_allclose(out[:, kept], np_batch_norm(values[:, kept], training=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 24, 33, 29), (2, 72, 6, 5), (2, 7, 9, 40)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("adds", [True, False], ids=["residual", "alone"])
def test_a_mask_comes_with_the_gradient_and_leaves_the_bits_of_separate_ops(shape, dtype, adds):
    x, residual, g = (last(normal(*shape), dtype) for _ in range(3))
    weight, bias = (to_yoke(normal(shape[1]), "float32") for _ in range(2))

    def run(op):
        return with_gradients(lambda x, r, w, b: op(x, r, None, None, w, b, True), [g], x, residual if adds else None, weight, bias)
    got = run(yoke.batch_norm_add_relu)
    if dtype == "float32":
        same(got, run(in_pieces))
    masked = np.where(held(got[0]) > 0, held(g), 0)
    if adds:
        np.testing.assert_array_equal(held(got[2]), masked)
    for mine, want, times in zip([got[1], *got[-2:]], with_gradients(lambda x, w, b: yoke.batch_norm(x, None, None, w, b, True),
                                                                    [last(masked, dtype)], x, weight, bias)[1:], (1, 8, 8)):
        near(mine, held(want), dtype if mine.dtype == x.dtype else "float32", times)


# Tiles of 8 and of 16 pixels and their borders, windows that overlap or leave pixels out, and tiles too large to be
# held.
POOLS = [((2, 16, 37, 41), (3, 2, 1)), ((1, 72, 20, 19), (3, 1, 1)), ((3, 8, 33, 18), (2, 2)), ((1, 24, 25, 27), (5, 2, 2)), ((1, 8, 40, 39), (7, 2, 3)),
         ((1, 40, 19, 17), ((3, 2), (1, 3), (1, 0), (2, 1))), ((1, 8, 30, 31), (3, 3, 1)), ((2, 8, 9, 50), ((1, 3), (1, 2), (0, 1))), ((1, 16, 40, 40), (9, 1, 4)),
         ((1, 16, 23, 24), (2, 3)), ((1, 8, 20, 21), (17, 2, 8)), ((1, 12, 18, 17), (3, 2, 1, 1, True)), ((1, 16, 70, 9), (3, (40, 2), 1))]


@pytest.mark.parametrize("shape, window", POOLS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_maxima_of_neighbouring_channels_are_those_of_planes_with_the_first_of_equals_and_nan(shape, window, dtype):
    values = np.round(normal(*shape) * 2)
    values[0, 1, 2, 3], values[-1, -1, -1, -1], values[0, 2] = np.nan, np.inf, -np.inf
    grad = _rng.integers(-3, 4, tuple(yoke.max_pool2d(to_yoke(values, dtype), *window).shape))

    def run(lie):
        return with_gradients(lambda x: yoke.max_pool2d(x, *window), [lie(grad.astype(np.float64), dtype)], lie(values, dtype))
    same(run(last), run(to_yoke))


@pytest.mark.parametrize("shape, window", [(shape, window[:3]) for shape, window in POOLS if len(window) < 4], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_means_of_neighbouring_channels_are_those_of_planes(shape, window, dtype):
    values = normal(*shape)
    values[0, 1, 2, 3] = 3e38  # whose sums with others overflow

    def run(lie):
        return with_gradients(lambda x: yoke.avg_pool2d(x, *window), [lie(grad, dtype)], lie(values, dtype))
    grad = normal(*yoke.avg_pool2d(to_yoke(values, dtype), *window).shape)
    same(run(last), run(to_yoke))


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (7, 5), (30, 2)], ids=str)
def test_adaptive_means_of_neighbouring_channels_are_those_of_planes(size):
    values, grad = normal(2, 24, 13, 17).astype(np.float32), normal(2, 24, *size).astype(np.float32)
    found = [with_gradients(lambda x: yoke.adaptive_avg_pool2d(x, size), [lie(grad)], lie(values)) for lie in (last, to_yoke)]
    for a, b in zip(*found, strict=True):
        near(a, held(b), "float32")
