"""Reductions, norms and normalisations at the ends of a dtype's range: a normal result is right, whatever the squares and sums on
the way are.
"""
import itertools

import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke

# Tolerance of each dtype, and powers of two that scale the values, from near the dtype's smallest normal number to
# near its largest.
SCALES = {"float32": (2e-6, (-120, -100, -77, -50, 0, 63, 64, 100, 124)), "bfloat16": (2e-2, (-120, -77, 0, 64, 100, 124)),
          "float16": (4e-3, (-11, 0, 12)), "float64": (1e-13, (-1016, -700, -540, 0, 511, 700, 1020))}
# Each layout has a shape, and the axes that are reduced.
LAYOUTS = {"all": ((3, 5), None), "rows": ((2, 37), 1), "long rows": ((2, 2100), 1), "columns": ((70, 9), 0), "middle": ((3, 40, 5), 1),
           "both ends": ((4, 6, 8), (0, 2))}


def scaled(values, dtype, power):
    """A tensor of values * 2^power, and values as the dtype has them, in float64."""
    held = to_numpy(to_yoke(values.astype(np.float32 if dtype != "float64" else np.float64), dtype)).astype(np.float64)
    return to_yoke(np.ldexp(held, power), dtype, requires_grad=True), held


def parameters():
    return [(dtype, power, layout) for dtype, (_, powers) in SCALES.items() for power in powers for layout in LAYOUTS]


def drawn(shape):
    return np.random.default_rng(41).uniform(-1, 1, shape).round(3) + 0.0005


def check_slope(x, slope, dtype, power=0):
    """Checks x's gradient. If values deviate little from the mean, rounding decides the gradient."""
    close = 2 * SCALES[dtype][0]
    got = np.ldexp(to_numpy(x.grad).astype(np.float64), -power)
    np.testing.assert_allclose(got, slope, rtol=close, atol=close * np.abs(slope).max())


def check(got, want, dtype, power):
    """Compares with `want`, the right result for unscaled values, after scaling. Elements that are no normal numbers of the dtype
    are left out.
    """
    want = np.ldexp(np.asarray(want, dtype=np.float64), power)
    least, most = {"float32": (2.0**-126, 3.4e38), "bfloat16": (2.0**-126, 3.38e38), "float16": (2.0**-14, 65504.0),
                   "float64": (2.0**-1022, 1.79e308)}[dtype]
    normal = (np.abs(want) >= least) & (np.abs(want) <= most)
    assert np.shape(got) == want.shape
    np.testing.assert_allclose(np.asarray(got, dtype=np.float64)[normal], want[normal], rtol=SCALES[dtype][0])


def np_std(x, axis):
    return x.std(axis=axis, ddof=1)


def std_slope(x, axis):
    count = x.size / x.std(axis=axis).size
    return (x - x.mean(axis=axis, keepdims=True)) / (count - 1) / x.std(axis=axis, ddof=1, keepdims=True)


@pytest.mark.parametrize("dtype, power, layout", parameters())
def test_std_and_its_gradient_scale_with_their_input(dtype, power, layout):
    shape, axis = LAYOUTS[layout]
    x, held = scaled(drawn(shape), dtype, power)
    y = yoke.std(x, axis)
    y.sum().backward()
    check(to_numpy(y), np_std(held, axis), dtype, power)
    check_slope(x, std_slope(held, axis), dtype)


@pytest.mark.parametrize("dtype, layout", itertools.product(SCALES, LAYOUTS))
def test_var_of_small_and_large_values_is_right_where_it_is_a_normal_number(dtype, layout):
    shape, axis = LAYOUTS[layout]
    for power in SCALES[dtype][1]:
        x, held = scaled(drawn(shape), dtype, power)
        y = yoke.var(x, axis)
        y.sum().backward()
        check(to_numpy(y), held.var(axis=axis, ddof=1), dtype, 2 * power)
        count = held.size / held.std(axis=axis).size
        if power > SCALES[dtype][1][0]:  # there gradients are no normal numbers
            check_slope(x, 2 * (held - held.mean(axis=axis, keepdims=True)) / (count - 1), dtype, power)


@pytest.mark.parametrize("dtype", list(SCALES))
def test_equal_values_have_a_deviation_of_exactly_0(dtype):
    for power, digits, count in itertools.product(SCALES[dtype][1], (1.0, 1.1, 1.7, 3.3, 6.1), (3, 7, 33, 319, 3000)):
        for shape, axis in (((count,), None), ((count, 5), 0), ((2, count), 1)):
            value = np.ldexp(digits / 8, power)
            x = yoke.full(shape, value, dtype=getattr(yoke, dtype)).requires_grad_()
            std = yoke.std(x, axis)
            std.sum().backward()
            assert np.all(to_numpy(std) == 0) and np.all(to_numpy(yoke.var(x, axis)) == 0), (shape, value)
            assert np.all(to_numpy(x.grad) == 0), (shape, value)


def np_norm(x, p, axis):
    size = np.abs(x)
    top = size.max(axis=axis, keepdims=True) if p > 0 else size.min(axis=axis, keepdims=True)
    return np.sum((size / top) ** p, axis=axis) ** (1 / p) * top.reshape(np.sum(size, axis=axis).shape)


def norm_slope(x, p, axis):
    whole = np_norm(x, p, axis).reshape(x.max(axis=axis, keepdims=True).shape)
    return np.sign(x) * (np.abs(x) / whole) ** (p - 1)


@pytest.mark.parametrize("dtype, power, layout", parameters())
def test_norms_and_their_gradients_scale_with_their_input(dtype, power, layout):
    shape, axis = LAYOUTS[layout]
    values = drawn(shape)
    values = np.where(np.abs(values) < 0.05, 0.25, values)
    for p in (2.0, 1.0, 3.5, -1.5):
        x, held = scaled(values, dtype, power)
        y = yoke.norm(x, p, axis)
        y.sum().backward()
        close = SCALES[dtype][0] * (1 if p in (1, 2) else 40)
        want = np.ldexp(np_norm(held, p, axis), power)
        least, most = {"float32": (2.0**-126, 3.4e38), "bfloat16": (2.0**-126, 3.38e38), "float16": (2.0**-14, 65504.0),
                       "float64": (2.0**-1022, 1.79e308)}[dtype]
        normal = (want >= least) & (want <= most)
        np.testing.assert_allclose(to_numpy(y).astype(np.float64)[normal], want[normal], rtol=close)
        if normal.all() and dtype in ("float32", "float64"):
            np.testing.assert_allclose(to_numpy(x.grad), norm_slope(held, p, axis), rtol=close)


@pytest.mark.parametrize("dtype", list(SCALES))
def test_sums_whose_parts_overflow_are_right_where_they_are_normal_numbers(dtype):
    most = {"float32": 2.0**127, "bfloat16": 2.0**127, "float16": 2.0**15, "float64": 2.0**1023}[dtype]
    for shape, axis in (((8,), None), ((3, 1200), 1), ((140, 6), 0), ((6, 140), 1)):
        signs = np.tile([1.0, 1.0, -1.0, -1.0], -(-np.prod(shape) // 4))[:np.prod(shape)]
        signs[-1] = 0.5
        values = (signs.reshape(shape) if axis != 0 else signs.reshape(shape[::-1]).T) * most
        x = to_yoke(values, dtype)
        check(to_numpy(yoke.mean(to_yoke(np.abs(values), dtype), axis)), np.abs(values / most).mean(axis), dtype, int(np.log2(most)))
        check(to_numpy(yoke.sum(x, axis)), (values / most).sum(axis), dtype, int(np.log2(most)))


NORMS = {"batch_norm": lambda x, w, b, eps: yoke.batch_norm(x, None, None, w, b, True, eps=eps),
         "batch_norm_add_relu": lambda x, w, b, eps: yoke.batch_norm_add_relu(x, None, None, None, w, b, True, eps=eps),
         "group_norm": lambda x, w, b, eps: yoke.group_norm(x, 2, w, b, eps=eps),
         "layer_norm": lambda x, w, b, eps: yoke.layer_norm(x, x.shape[-1:], eps=eps),
         "rms_norm": lambda x, w, b, eps: yoke.rms_norm(x, x.shape[-1:], eps=eps)}


def normalised(x, w, b, eps, name):
    """The op in float64 NumPy, of x [N, C, L]."""
    if name in ("layer_norm", "rms_norm"):
        mean = x.mean(-1, keepdims=True) if name == "layer_norm" else 0.0
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)
    if name == "group_norm":
        groups = x.reshape(x.shape[0], 2, -1)
        y = ((groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + eps)).reshape(x.shape)
    else:
        y = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + eps)
    y = y * w[:, None] + b[:, None]
    return np.maximum(y, 0) if name == "batch_norm_add_relu" else y


def slope_of(x, w, b, eps, name, upstream):
    """Returns the gradient by x, by differences in long doubles."""
    slope, step = np.zeros_like(x), 1e-5
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        slope[place] = ((normalised(up, w, b, eps, name) - normalised(down, w, b, eps, name)) * upstream).sum() / (2 * step)
    return slope


@pytest.mark.parametrize("name", list(NORMS))
@pytest.mark.parametrize("dtype, power", [("float32", 67), ("float32", 100), ("float32", 124), ("float64", 520), ("float64", 664),
                                          ("float64", 1020), ("bfloat16", 100)])
@pytest.mark.parametrize("order", ["rows", "channels last"])
def test_normalisations_of_large_values_are_those_of_small_ones_and_gradients_shrink_with_the_scale(name, dtype, power, order):
    if order == "channels last" and name in ("layer_norm", "rms_norm"):
        return
    rng = np.random.default_rng(3)
    values, upstream = rng.uniform(-1, 1, (3, 4, 6)), rng.uniform(-1, 1, (3, 4, 6))
    w, b = rng.uniform(0.5, 1.5, 4), rng.uniform(0.5, 1.5, 4)
    kept = "float64" if dtype == "float64" else "float32"
    x, held = scaled(values, dtype, power)
    weight, bias = to_yoke(w.astype(kept), dtype if name == "group_norm" else kept), to_yoke(b.astype(kept), dtype if name == "group_norm" else kept)
    w, b = to_numpy(weight).astype(np.float64), to_numpy(bias).astype(np.float64)
    leaf = x
    if order == "channels last":
        x = yoke.permute(yoke.contiguous(yoke.permute(x, (0, 2, 1))), (0, 2, 1))
    y = NORMS[name](x, weight, bias, 1e-5)
    y.backward(to_yoke(upstream.astype(kept), dtype))
    close = 100 * SCALES[dtype][0] if dtype != "bfloat16" else 3e-2
    np.testing.assert_allclose(to_numpy(y).astype(np.float64), normalised(held, w, b, 0.0, name), rtol=close, atol=close)
    want = slope_of(held, w, b, 0.0, name, upstream)
    largest = np.abs(want).max()
    got = np.ldexp(to_numpy(leaf.grad).astype(np.float64), power)
    if power < 124 or dtype == "float64" and power < 1020:  # there gradients are no normal numbers
        np.testing.assert_allclose(got, want, rtol=0, atol=max(close, 1e-6) * largest)


@pytest.mark.parametrize("dtype, power", [("float32", -60), ("float32", -100), ("float64", -600), ("float64", -900)])
@pytest.mark.parametrize("name", ["batch_norm", "batch_norm_add_relu", "group_norm"])
def test_normalisations_of_small_values_without_eps_are_those_of_large_ones(name, dtype, power):
    rng = np.random.default_rng(3)
    x, held = scaled(rng.uniform(-1, 1, (3, 4, 6)) + 0.1, dtype, power)
    w = b = np.ones(4, np.float32 if dtype == "float32" else np.float64)
    y = NORMS[name](x, to_yoke(w), to_yoke(b), 0.0)
    np.testing.assert_allclose(to_numpy(y), normalised(held, w, b, 0.0, name), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype, value", [("float32", 1e38), ("float32", 1e-30), ("float32", 3e20), ("float64", 1e300), ("float64", 1e-300),
                                          ("bfloat16", 2.0**100), ("float16", 60000.0)])
def test_clipping_takes_the_norm_of_gradients_at_the_ends_of_the_range(dtype, value):
    for p in (2.0, 1.0, 3.0):
        params = [yoke.zeros(n, dtype=getattr(yoke, dtype)).requires_grad_() for n in (3, 2000)]
        for param in params:
            (param * value).sum().backward()
        norm = float(to_numpy(yoke.optim.clip_grad_norm_(params, 1e-2 * value, p)))
        want = value * 2003 ** (1 / p)
        if want < 3e38 or dtype == "float64" and want < 1e308:
            assert abs(norm - want) <= 1e-2 * want if dtype == "bfloat16" else abs(norm - want) <= 1e-5 * want
        clipped = 1e-2 * 2003 ** (-1 / p)
        if value > 1:  # the quotient by which gradients are multiplied has 1e-6 beside the norm
            np.testing.assert_allclose(to_numpy(params[1].grad).astype(np.float64) / value, clipped, rtol=1e-2)


@pytest.mark.parametrize("dtype, value, most", [("float32", 3e38, 1e-4), ("float32", 3e38, 1e-8), ("float32", 3e38, 1e-35), ("bfloat16", 2.0**127, 1e-8),
                                                ("float64", 1e300, 1e-10), ("float64", 1e308, 1e-300)])
def test_clipping_to_a_far_smaller_norm_keeps_what_is_normal(dtype, value, most):
    for p in (2.0, float("inf")):
        param = yoke.zeros(2, dtype=getattr(yoke, dtype)).requires_grad_()
        param.grad = yoke.tensor([value, -value / 2], dtype=param.dtype)
        norm = float(to_numpy(yoke.optim.clip_grad_norm_([param], most, p)))
        want = np.array([1, -0.5]) * most / (1.25 ** 0.5 if p == 2 else 1)
        np.testing.assert_allclose(to_numpy(param.grad).astype(np.float64), want, rtol=1e-2 if dtype == "bfloat16" else 1e-6)
        assert p == 2 or norm == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("dtype", list(SCALES))
@pytest.mark.parametrize("rows", [4, 150, 700])
def test_columns_of_every_kind_lie_beside_one_another(dtype, rows):
    """Constants, zeros, small, large, infinite and missing numbers, and numbers far from 0, in blocks of every kind."""
    rng = np.random.default_rng(8)
    small, large = SCALES[dtype][1][0], SCALES[dtype][1][-1] - 2
    columns = [np.zeros(rows), np.full(rows, 1.5), rng.uniform(-1, 1, rows), np.ldexp(rng.uniform(0.5, 1, rows), small),
               np.ldexp(rng.uniform(0.5, 1, rows), large), np.where(np.arange(rows) < rows // 2, 0, rng.uniform(-1, 1, rows)),
               np.where(np.arange(rows) < rows // 2, np.ldexp(1.0, small + 3), rng.uniform(-1, 1, rows)),
               np.full(rows, np.inf), np.where(np.arange(rows) == rows // 2, np.nan, 0), np.full(rows, np.nan),
               np.where(np.arange(rows) == rows - 1, -np.inf, 1.0), np.where(np.arange(rows) % 2, -1.25, 1.25)]
    values = np.stack(columns * 3, 1)
    x = to_yoke(values.astype(np.float64 if dtype == "float64" else np.float32), dtype)
    held = to_numpy(x).astype(np.longdouble)
    forms = [(x, 0)]
    if rows % 2 == 0:
        forms.append((yoke.permute(yoke.reshape(x, (2, rows // 2, -1)), (1, 0, 2)), (0, 1)))
    with np.errstate(all="ignore"):
        for op, want in ((lambda t, axis: yoke.std(t, axis), held.std(0, ddof=1)), (lambda t, axis: yoke.sum(t, axis), held.sum(0)),
                         (lambda t, axis: yoke.norm(t, 2.0, axis), np.sqrt((held**2).sum(0))),
                         (lambda t, axis: yoke.norm(t, 1.0, axis), np.abs(held).sum(0)),
                         (lambda t, axis: yoke.norm(t, 3.0, axis), np.cbrt((np.abs(held)**3).sum(0)))):
            for t, axis in forms:
                got, least = to_numpy(op(t, axis)).astype(np.longdouble), np.ldexp(1.0, small)
                finite = np.isfinite(want) & (want < {"float16": 65504, "float64": 1.7e308}.get(dtype, 3.3e38))
                np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
                np.testing.assert_allclose(got[finite], want[finite], rtol=20 * SCALES[dtype][0], atol=float(least) * 1e-3 * rows)


@pytest.mark.parametrize("dtype, value", [("float32", 1e-30), ("float64", 1e-170), ("float64", 1e-160), ("bfloat16", 2.0**-100)])
@pytest.mark.parametrize("order", ["rows", "channels last"])
@pytest.mark.parametrize("name", ["batch_norm", "batch_norm_add_relu", "group_norm"])
def test_small_values_about_a_mean_of_0_are_normalised_without_eps(name, dtype, value, order):
    for length in (2, 16, 300):
        signs = np.where(np.arange(length) % 2, -1.0, 1.0) * np.ones((2, 4, 1))
        signs[:, 1] *= np.where(np.arange(length) % 4 < 2, 2.0, 3.0) if length % 4 == 0 else 1.0
        x = to_yoke((signs * value).astype(np.float64 if dtype == "float64" else np.float32), dtype)
        if order == "channels last":
            x = yoke.permute(yoke.contiguous(yoke.permute(x, (0, 2, 1))), (0, 2, 1))
        w, b = np.ones(4), np.zeros(4)
        kept = "float64" if dtype == "float64" else "float32" if name != "group_norm" else dtype
        y = NORMS[name](x, to_yoke(w.astype(np.float32 if kept != "float64" else np.float64), kept),
                        to_yoke(b.astype(np.float32 if kept != "float64" else np.float64), kept), 0.0)
        np.testing.assert_allclose(to_numpy(y).astype(np.float64), normalised(signs, w, b, 0.0, name), rtol=1e-2 if dtype == "bfloat16" else 1e-5)


def centred(x, axis, wanted):
    """Returns x less its mean over an axis, divided by the deviation: layer_norm (or "rms_norm") without eps."""
    mean = x.mean(axis, keepdims=True) if wanted != "rms_norm" else 0.0
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True))


SMALL = [("float32", -60), ("float32", -100), ("float32", -120), ("float64", -460), ("float64", -600), ("float64", -1000), ("bfloat16", -100)]


@pytest.mark.parametrize("dtype, power", SMALL)
@pytest.mark.parametrize("length", [3, 64, 700, 20000])  # the last is more than a block of a device holds
def test_rows_of_small_values_without_eps_are_normalised_as_large_ones(dtype, power, length):
    rng = np.random.default_rng(5)
    x, held = scaled(rng.uniform(-1, 1, (3, length)) + 0.1, dtype, power)
    close = 1e-4 if dtype != "bfloat16" else 1e-2
    for name, op in (("layer_norm", yoke.layer_norm), ("rms_norm", yoke.rms_norm)):
        leaf = x.detach().requires_grad_()
        y = op(leaf, (length,), eps=0.0)
        np.testing.assert_allclose(to_numpy(y).astype(np.float64), centred(held, 1, name), rtol=close, atol=close)
        y.sum().backward()
        assert np.isfinite(to_numpy(leaf.grad).astype(np.float64)).all()
    total, y = yoke.add_layer_norm(x, yoke.zeros_like(x), (length,), eps=0.0)
    np.testing.assert_allclose(to_numpy(y).astype(np.float64), centred(held, 1, "layer_norm"), rtol=close, atol=close)


def test_rows_of_unlike_sizes_beside_one_another_are_normalised_without_eps():
    rows = np.random.default_rng(6).uniform(-1, 1, (6, 40)) * np.array([[1e-30], [1], [1e30], [1e-38], [3e38], [1e-16]])
    rows = np.concatenate([rows, 1 + np.arange(40)[None] * 2.0**-12, 1e-12 + np.arange(40)[None] * 1e-15]).astype(np.float32)
    for name, op in (("layer_norm", yoke.layer_norm), ("rms_norm", yoke.rms_norm)):
        got = to_numpy(op(yoke.tensor(rows), (40,), eps=0.0))
        np.testing.assert_allclose(got, centred(rows.astype(np.float64), 1, name), rtol=1e-3, atol=1e-3)


def test_stds_gradient_in_float64_is_right_wherever_it_is_a_normal_number():
    values = np.random.default_rng(7).uniform(-1, 1, 1000)
    for power, above in itertools.product((-1010, -600, 0, 600, 1023), (1e-300, 1e-13, 1.0, 1e10, 1e300)):
        for shape, axis in (((1000,), None), ((1, 1000), 1), ((1000, 1), 0), ((1000, 8), 0)):
            held = np.repeat(values[:, None], 8, 1) if shape == (1000, 8) else values.reshape(shape)
            x = to_yoke(np.ldexp(held, power), "float64", requires_grad=True)
            out = yoke.std(x, axis)
            out.backward(yoke.full_like(out, above))
            # An infinite sum of differences from the mean is not asked for.
            np.testing.assert_allclose(to_numpy(x.grad) / above, std_slope(held, axis), rtol=1e-11, atol=0)


def test_stds_gradient_is_right_where_the_dtype_holds_no_such_deviation():
    step = 2.0**-24  # step of float16 below 2^-13
    values = np.array([2.0**-14] * 3 + [2.0**-14 + step])
    for shape, axis in (((4,), None), ((1, 4), 1), ((4, 1), 0)):
        x = to_yoke(values.reshape(shape).astype(np.float32), "float16", requires_grad=True)
        yoke.std(x, axis).sum().backward()
        np.testing.assert_allclose(to_numpy(x.grad).astype(np.float64).ravel(), np.array([-1, -1, -1, 3]) / 6, rtol=1e-3)


@pytest.mark.parametrize("shape", [(3, 1000, 0), (0,), (0, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_reductions_of_nothing_read_nothing(dtype, shape):
    """Memory without elements may lie anywhere, so no kernel may read a first element."""
    x, axis = yoke.zeros(shape, dtype=getattr(yoke, dtype)), shape.index(0)
    for p in (1.0, 2.0, 3.0, 0.5, 1e18):
        assert not to_numpy(yoke.norm(x, p, axis)).any()
    assert not to_numpy(yoke.sum(x, axis)).any()
    for op in (yoke.var, yoke.std):
        assert np.isnan(to_numpy(op(x, axis))).all()
