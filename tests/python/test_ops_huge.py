"""Normalisations and softmaxes of values near the ends of a dtype's range, against float64: no sum or square overflows on the way."""
import numpy as np
import pytest

import instruction_sets
import yoke
from op_table import as_dtype, to_numpy, to_yoke

# Rows shared by lanes, groups of lanes, blocks and chunks of a long row, in packs or as single elements.
LENGTHS = (1, 5, 8, 33, 64, 100, 700, 4099, 9000)
SCALES = (1e-38, 1.0, 1e18, 3e19, 1e36, 1e38)
CLOSE = {"float32": 2e-5, "bfloat16": 2e-2, "float64": 1e-12}


def wave(*shape):
    """Values between -3 and 3."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 1.7) + 2 * np.cos(np.arange(count) ** 2 * 0.3)).reshape(shape)


def near(values):
    """Returns values with small deviations beside their mean."""
    return 1 + wave(*values.shape) * 1e-3


def constant(values):
    return np.ones_like(values)


KINDS = {"waves": lambda v: v, "near": near, "constant": constant}


def gradient(normal, rstd, g, axes, centred):
    """Returns the gradient of a normalisation, in float64."""
    mean_g = g.mean(axes, keepdims=True) if centred else 0
    return rstd * (g - mean_g - normal * (g * normal).mean(axes, keepdims=True))


def reference(x, g, axes, eps, centred):
    # Scales each row by its own size, so that float64 loses no square.
    size = np.maximum(np.abs(x).max(axes, keepdims=True), 1e-100)
    deviations = x / size - (x / size).mean(axes, keepdims=True) if centred else x / size
    variance = (deviations**2).mean(axes, keepdims=True)
    root = np.where(variance > 0, np.sqrt(variance + eps / size / size) * size, np.sqrt(eps))
    normal, rstd = deviations * (size / root), 1 / root
    return normal, gradient(normal, rstd, g, axes, centred), np.abs(rstd * g).max()


def assert_close(got, want, dtype, what, scale=None, error=1):
    """Compares within the dtype's error of `scale`: the largest value, unless cancelling terms are larger."""
    scale = np.abs(want).max(initial=0) if scale is None else scale
    least = 1e-140 if dtype == "float64" else 1e-20  # values far below eps 1e-5, after division by the root
    least = least if "gradient" not in what else 0 if dtype == "float64" else 2e-38  # held by the dtype with all digits
    np.testing.assert_allclose(got, want, rtol=CLOSE[dtype], atol=error * CLOSE[dtype] * scale + least, err_msg=what)


def check_rows(op, eps, centred, length, dtype, scale, kind):
    base = KINDS[kind](wave(3, length))
    values = as_dtype(base * (scale / max(1.0, np.abs(base).max()) if scale > 1e37 else scale), dtype)
    g = as_dtype(np.cos(np.arange(values.size)).reshape(values.shape), dtype)
    x = to_yoke(values, dtype, requires_grad=True)
    weight = to_yoke(as_dtype(np.ones(length), dtype), dtype, requires_grad=True)
    out = op(x, length, weight)
    out.backward(to_yoke(g, dtype))
    normal, dx, slope = reference(values.astype(np.float64), g.astype(np.float64), (1,), eps, centred)
    what, error = f"{length} values of {scale} {kind} in {dtype}", 10 if kind == "near" else 1  # error of a mean in float32
    assert_close(to_numpy(out).astype(np.float64), normal, dtype, f"values, {what}", error=error)
    assert_close(to_numpy(x.grad).astype(np.float64), dx, dtype, f"gradient, {what}", slope, error)
    assert_close(to_numpy(weight.grad).astype(np.float64), (g.astype(np.float64) * normal).sum(0), dtype, f"weight, {what}", error=error)


def layer_norm(x, length, weight):
    return yoke.layer_norm(x, [length], weight, None, 1e-5)


def rms_norm(x, length, weight):
    return yoke.rms_norm(x, [length], weight, 1e-5)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_norms_of_rows_are_those_of_float64_at_any_size(norm, dtype, length):
    for scale in SCALES:
        for kind in ("waves", "constant"):
            check_rows(norm, 1e-5, norm is layer_norm, length, dtype, scale, kind)


@pytest.mark.parametrize("length", [5, 700, 9000])
def test_so_is_float64_itself(length):
    for scale in (1e-300, 1e-150, 1e150, 1e160, 1e300):
        for kind in ("waves", "constant"):
            check_rows(layer_norm, 1e-5, True, length, "float64", scale, kind)
            check_rows(rms_norm, 1e-5, False, length, "float64", scale, kind)


@pytest.mark.parametrize("length", [100, 1000, 9000])
def test_a_mean_far_from_0_leaves_small_deviations_what_they_are(length):
    for scale in (1234567.0, 1e18):
        check_rows(layer_norm, 1e-5, True, length, "float32", scale, "near")


@pytest.mark.parametrize("layout", ["planes", "columns"])
@pytest.mark.parametrize("shape", [(2, 8, 3), (2, 8, 20, 21), (3, 64, 5, 7)])
def test_group_norm_is_that_of_float64_at_any_size(shape, layout):
    groups = 4
    for scale in SCALES[:-1] + (3e37,):
        for kind in ("waves", "constant"):
            base = KINDS[kind](wave(*shape)).astype(np.float64)
            values = (base * scale).astype(np.float32)
            g = np.cos(np.arange(values.size)).reshape(shape).astype(np.float32)
            x = yoke.tensor(values).requires_grad_(True)
            lie = x if layout == "planes" else yoke.transpose(yoke.contiguous(yoke.transpose(x, 1, -1)), 1, -1)
            out = yoke.group_norm(lie, groups)
            out.backward(yoke.tensor(g))
            split = (shape[0], groups, -1)
            normal, dx, slope = reference(values.astype(np.float64).reshape(split), g.astype(np.float64).reshape(split), (2,), 1e-5, True)
            what = f"{shape} of {scale} {kind}"
            assert_close(to_numpy(out).astype(np.float64).reshape(split), normal, "float32", f"values, {what}")
            assert_close(to_numpy(x.grad).astype(np.float64).reshape(split), dx, "float32", f"gradient, {what}", slope)


@pytest.mark.parametrize("layout", ["planes", "columns"])
@pytest.mark.parametrize("shape", [(2, 8, 3), (4, 8, 20, 21)])
def test_batch_norm_is_right_at_any_size(shape, layout):
    for scale in SCALES[:-1] + (3e37,):
        for kind in ("waves", "constant"):
            values = (KINDS[kind](wave(*shape)) * scale).astype(np.float32)
            g = np.cos(np.arange(values.size)).reshape(shape).astype(np.float32)
            x = yoke.tensor(values).requires_grad_(True)
            lie = x if layout == "planes" else yoke.transpose(yoke.contiguous(yoke.transpose(x, 1, -1)), 1, -1)
            out = yoke.batch_norm(lie, None, None, None, None, True)
            out.backward(yoke.tensor(g))
            axes = (0, *range(2, len(shape)))
            normal, dx, slope = reference(values.astype(np.float64), g.astype(np.float64), axes, 1e-5, True)
            what = f"{shape} of {scale} {kind}"
            assert_close(to_numpy(out).astype(np.float64), normal, "float32", f"values, {what}")
            assert_close(to_numpy(x.grad).astype(np.float64), dx, "float32", f"gradient, {what}", slope)


@pytest.mark.parametrize("length", [5, 100, 9000])
def test_softmaxes_of_huge_values_are_those_of_float64(length):
    for scale in (1e-38, 1.0, 1e30, 1e38):
        values = (wave(3, length) * scale).astype(np.float32)
        shifted = values.astype(np.float64) - values.max(1, keepdims=True).astype(np.float64)
        logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        g = np.cos(np.arange(values.size)).reshape(values.shape).astype(np.float32)
        for op, want, slope in (
                (yoke.softmax, np.exp(logs), np.exp(logs) * (g - (g * np.exp(logs)).sum(1, keepdims=True))),
                (yoke.log_softmax, logs, g - np.exp(logs) * g.sum(1, keepdims=True, dtype=np.float64))):
            x = yoke.tensor(values).requires_grad_(True)
            out = op(x, 1)
            out.backward(yoke.tensor(g))
            with np.errstate(over="ignore"):
                want = want.astype(np.float32).astype(np.float64)
            np.testing.assert_allclose(to_numpy(out).astype(np.float64), want, rtol=2e-5, atol=2e-6, err_msg=f"{op.__name__} of {scale}")
            np.testing.assert_allclose(to_numpy(x.grad), slope, rtol=1e-4, atol=1e-4, err_msg=f"gradient of {op.__name__} of {scale}")


@pytest.mark.parametrize("isa", instruction_sets.NAMES)
def test_all_of_it_holds_on_every_instruction_set(isa):
    instruction_sets.run(isa, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "not instruction_set")
