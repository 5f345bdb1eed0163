"""Attention of 16-bit floats under masks and dropout, against NumPy's float64: masks of each shape that broadcasts, rows without a
key, dropout's bits beside the CPU's, every kind of width, and many keys.
"""
import numpy as np
import pytest

import yoke
from op_table import EPSILON, as_dtype, to_numpy, to_yoke, widened

DTYPES = ["float16", "bfloat16"]


@pytest.fixture(autouse=True)
def own_kernels():
    """Turns cuDNN off: for a row without keys cuDNN makes NaN, Yoke's own kernels make zeros."""
    with yoke.backends.cudnn.flags(enabled=False):
        yield


def drawn(dtype, lead, queries, keys, width, value_width=None, seed=11):
    """Query, key, value, and the gradient of the result."""
    draw, value_width = np.random.default_rng(seed), value_width or width
    return [widened(as_dtype(draw.standard_normal((*lead, *shape)), dtype))
            for shape in ((queries, width), (keys, width), (keys, value_width), (queries, value_width))]


def definition(q, k, v, g, mask=None, kept=None, dropout=0.0, causal=False, scale=None):
    """The result and the gradients of query, key and value."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    factors = np.ones_like(weights) if kept is None else kept / (1 - dropout)
    slopes = g @ v.swapaxes(-1, -2) * factors
    slopes = weights * (slopes - (weights * slopes).sum(-1, keepdims=True)) * scale
    weights = weights * factors
    return weights @ v, slopes @ k, slopes.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g


def attend(arrays, dtype, mask=None, dropout=0.0, device=None, **named):
    """The result and the three gradients, as the device gives them."""
    leaves = [to_yoke(x, dtype) for x in arrays]
    if device:
        leaves = [x.to(device) for x in leaves]
    leaves = [x.requires_grad_(n < 3) for n, x in enumerate(leaves)]
    if isinstance(mask, np.ndarray):
        mask = to_yoke(mask) if mask.dtype == bool else to_yoke(mask, dtype)
    yoke.manual_seed(5)
    out = yoke.scaled_dot_product_attention(*leaves[:3], mask=mask, dropout_p=dropout, **named)
    out.backward(leaves[3])
    return [to_numpy(x).astype(float) for x in (out, *(leaf.grad for leaf in leaves[:3]))]


def assert_near(got, want, dtype):
    """Weights, gradients of scores and results are rounded to the dtype."""
    for a, b, name in zip(got, want, ("result", "query", "key", "value")):
        most = np.abs(b).max(initial=0.01) * (1 if name == "result" else 2)
        np.testing.assert_allclose(a, b, rtol=2 * EPSILON[dtype], atol=EPSILON[dtype] * most, err_msg=name)


def draws(lead, queries, keys, dropout):
    """The pairs that dropout keeps, by the CPU's dropout over keys and queries in fours."""
    yoke.manual_seed(5)
    padded = -(-queries // 4) * 4
    kept = to_numpy(yoke.dropout(yoke.ones((*lead, keys, padded), device="cpu"), dropout)) != 0
    return kept[..., :queries].swapaxes(-1, -2)


# ---- Masks -----------------------------------------------------------------------------------------------------------

QUERIES, LEAD = 70, (2, 2)
SHAPES = [("Q", "K"), (1, "K"), ("Q", 1), (1, 1), (2, "Q", "K"), (2, 1, "K"), (2, 1, "Q", "K"), (2, 1, 1, "K"), (2, 2, "Q", 1),
          (1, 2, "Q", "K"), (2, 2, "Q", "K")]


def of_shape(kind, shape, keys, dtype="bfloat16", seed=12):
    draw = np.random.default_rng(seed)
    shape = [{"Q": QUERIES, "K": keys}.get(size, size) for size in shape]
    allowed = draw.random(shape) < 0.7
    if kind == "bool":
        return allowed
    return np.where(allowed, widened(as_dtype(draw.uniform(-3, 3, shape), dtype)), -np.inf)


@pytest.mark.parametrize("kind", ["bool", "additive"])
@pytest.mark.parametrize("shape, keys", [(("Q", "K"), 90), *((shape, keys) for shape in SHAPES for keys in (92, 75))], ids=str)
def test_masks_of_each_shape_have_the_values_of_the_definition(shape, keys, kind):
    dtype = DTYPES[kind == "bool"]
    arrays, mask = drawn(dtype, LEAD, QUERIES, keys, 16), of_shape(kind, shape, keys, dtype)
    assert_near(attend(arrays, dtype, mask), definition(*arrays, mask), dtype)


@pytest.mark.parametrize("kind", ["bool", "additive"])
@pytest.mark.parametrize("widths", [(8, 8), (64, 40), (72, 128), (256, 256)], ids=str)
def test_masks_serve_every_width(widths, kind):
    dtype = DTYPES[kind == "bool"]
    arrays, mask = drawn(dtype, (1,), QUERIES, 140, *widths), of_shape(kind, ("Q", "K"), 140, dtype)
    assert_near(attend(arrays, dtype, mask), definition(*arrays, mask), dtype)


@pytest.mark.parametrize("kind", ["bool", "additive"])
@pytest.mark.parametrize("how", ["columns before rows", "off a boundary", "every other key"])
def test_masks_may_lie_in_any_way(how, kind):
    arrays, mask = drawn("bfloat16", (2,), QUERIES, 72, 64), of_shape(kind, ("Q", "K"), 72)
    make = to_yoke if kind == "bool" else lambda x: to_yoke(x, "bfloat16")
    laid = {"columns before rows": lambda: yoke.transpose(make(np.ascontiguousarray(mask.T)), 0, 1),
            "off a boundary": lambda: make(np.pad(mask, ((0, 0), (1, 3))))[:, 1:73],
            "every other key": lambda: make(np.repeat(mask, 2, 1))[:, ::2]}[how]()
    assert_near(attend(arrays, "bfloat16", laid), definition(*arrays, mask), "bfloat16")


@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize("kind", ["bool", "additive"])
def test_rows_that_see_nothing_or_a_single_tile_are_right(kind, width):
    arrays = drawn("float16", (1,), 150, 200, width)
    allowed = np.random.default_rng(13).random((150, 200)) < 0.5
    allowed[[0, 40, 64, 149]] = False
    allowed[3:7, :190] = False  # only the last tile
    allowed[7:11, 20:] = False  # only the first tile
    allowed[:, 33] = False
    mask = allowed if kind == "bool" else np.where(allowed, 0.5, -np.inf)
    got = attend(arrays, "float16", mask)
    assert_near(got, definition(*arrays, mask), "float16")
    assert not got[0][0, [0, 40, 64, 149]].any() and not got[1][0, [0, 40, 64, 149]].any()
    assert not got[2][0, 33].any() and not got[3][0, 33].any()


def test_a_row_of_the_least_number_takes_the_mean_of_the_values():
    arrays = drawn("bfloat16", (1,), 70, 64, 64)
    least = -3.3895313892515355e38
    mask = np.zeros((70, 64))
    mask[5], mask[6, 10:] = least, least
    got = attend(arrays, "bfloat16", mask)
    want = definition(*arrays, mask)
    assert_near(got[:1], want[:1], "bfloat16")
    np.testing.assert_allclose(got[0][0, 5], arrays[2][0].mean(0), atol=0.01)
    assert np.isfinite(got[1]).all() and np.isfinite(got[3]).all()


def test_many_keys_have_the_values_of_the_definition():
    arrays, allowed = drawn("bfloat16", (1,), 5, 20000, 64), np.random.default_rng(14).random((5, 20000)) < 0.6
    allowed[3, :19990] = False
    mask = np.where(allowed, widened(as_dtype(np.linspace(-4, 4, 20000), "bfloat16")), -np.inf)
    assert_near(attend(arrays, "bfloat16", mask), definition(*arrays, mask), "bfloat16")


# ---- Dropout ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p, causal", [(0.3, False), (0.75, True)])
def test_dropout_keeps_the_pairs_that_the_cpu_keeps(p, causal):
    queries, keys, window = 118, 140, 128
    kept = draws((2,), queries, keys, p) & (np.tri(queries, keys, dtype=bool) | (not causal))
    for dtype, width in zip(DTYPES, (64, 128)):
        found = {}
        for first in (0, keys - window):
            arrays = [np.zeros((2, n, width)) for n in (queries, keys)]
            value = np.eye(keys)[:, first:first + window]
            grad = np.eye(queries, window)
            arrays += [np.stack([x, x]) for x in (value, grad)]
            for device in ("cpu", None):
                result, _, _, value_grad = attend(arrays, dtype, None, p, device, is_causal=causal)
                np.testing.assert_array_equal(result != 0, kept[..., first:first + window], f"{device} {dtype}")
                np.testing.assert_array_equal(value_grad[..., :queries] != 0, kept.swapaxes(-1, -2), f"{device} {dtype}")
                found[device] = result
        np.testing.assert_allclose(found[None], found["cpu"], rtol=EPSILON[dtype])


@pytest.mark.parametrize("kind", [None, "bool", "additive", "causal"])
@pytest.mark.parametrize("widths", [(64, 64), (128, 72), (8, 8), (256, 256)], ids=str)
def test_values_and_gradients_under_dropout_are_those_of_the_definition(widths, kind):
    dtype, keys, lead = DTYPES[kind == "bool"], 133, (2,) if max(widths) < 256 else (1,)
    arrays, p = drawn(dtype, lead, QUERIES, keys, *widths), 0.4
    mask = of_shape(kind, (*lead, "Q", "K"), keys, dtype) if kind in ("bool", "additive") else None
    kept, causal = draws(lead, QUERIES, keys, p), kind == "causal"
    want = definition(*arrays, mask, kept, p, causal)
    assert_near(attend(arrays, dtype, mask, p, is_causal=causal), want, dtype)


def test_all_may_be_dropped():
    arrays = drawn("bfloat16", (1,), 40, 70, 64)
    assert not any(x.any() for x in attend(arrays, "bfloat16", None, 1.0))


@pytest.mark.parametrize("scale", [0.0, -0.5, 2.0])
def test_any_scale_serves_under_a_mask(scale):
    arrays, mask = drawn("float16", (2,), QUERIES, 80, 64), of_shape("additive", ("Q", "K"), 80, "float16")
    assert_near(attend(arrays, "float16", mask, scale=scale), definition(*arrays, mask, scale=scale), "float16")
