"""Attention with infinity or NaN in forbidden pairs: these pairs have no influence, on the value or on a gradient."""
import numpy as np
import pytest

import yoke
from conftest import EMULATED
from op_table import FLOATS, as_dtype, to_numpy, to_yoke

QUERIES, KEYS = 70, 75
WIDTHS = (5, 16)  # tensor cores serve the second width
BAD = (np.nan, np.inf, -np.inf)
DTYPES = FLOATS if not EMULATED else ("float32", "bfloat16")  # each dtype has its own kernels there
HEADS = 2 if not EMULATED else 1


def operands(width=WIDTHS[0]):
    draw = np.random.default_rng(3)
    return [draw.uniform(-1, 1, (HEADS, n, width)) for n in (QUERIES, KEYS, KEYS)]


def attend(arrays, dtype, mask=None, causal=False, dropout=0.0):
    """Result and gradients, as NumPy arrays."""
    yoke.manual_seed(1)
    leaves = [to_yoke(as_dtype(a, dtype), dtype, requires_grad=True) for a in arrays]
    if mask is not None:
        mask = to_yoke(mask) if mask.dtype == bool else to_yoke(as_dtype(mask, dtype), dtype)
    out = yoke.scaled_dot_product_attention(*leaves, mask=mask, is_causal=causal, dropout_p=dropout)
    weights = np.random.default_rng(4).uniform(-1, 1, out.shape)
    out.backward(to_yoke(as_dtype(weights, dtype), dtype))
    return [to_numpy(out), *(to_numpy(x.grad) for x in leaves)]


def spoiled(arrays, hidden):
    """Copies whose hidden rows of key, of value, or of both hold infinity or NaN, in some places or in all."""
    arrays = [x.copy() for x in arrays]
    for n, row in enumerate(hidden):
        for which in ((1,), (2,), (1, 2))[n % 3]:
            arrays[which][:, row, n % 2::2 - n // 3] = BAD[(n + which) % 3]
    return arrays


def additive(allowed):
    return np.where(allowed, 0.25, -np.inf)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["bool", "additive", "dropout"])
def test_what_no_query_may_see_has_no_influence(dtype, kind, width):
    hidden = np.array([0, 7, 31, 63, 64, KEYS - 1])
    allowed = np.random.default_rng(5).random((QUERIES, KEYS)) < 0.7
    allowed[:, hidden], allowed[3] = False, False
    mask = additive(allowed) if kind == "additive" else allowed
    plain = operands(width)
    for x in plain[1:]:
        x[:, hidden] = 0
    dropout = 0.25 if kind == "dropout" else 0.0
    want = attend(plain, dtype, mask, dropout=dropout)
    assert all(np.isfinite(x).all() for x in want)
    for a, b in zip(attend(spoiled(plain, hidden), dtype, mask, dropout=dropout), want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_later_keys_have_no_influence_under_a_causal_mask(dtype, width):
    first = QUERIES  # later than every query
    plain = operands(width)
    for x in plain[1:]:
        x[:, first:] = 0
    want = attend(plain, dtype, causal=True)
    for a, b in zip(attend(spoiled(plain, range(first, KEYS)), dtype, causal=True), want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_key_reaches_the_queries_that_see_it_alone(dtype, bad, width):
    allowed = np.ones((QUERIES, KEYS), bool)
    allowed[:, 66], allowed[5] = False, False
    allowed[5, 66] = True  # query 5 sees that key alone
    plain = operands(width)
    want = attend(plain, dtype, allowed)
    arrays = [x.copy() for x in plain]
    arrays[2][:, 66] = bad
    got = attend(arrays, dtype, allowed)
    assert not np.isfinite(got[0][:, 5]).any()
    for a, b, seen in zip(got, want, (5, 5, 66, 66), strict=True):
        np.testing.assert_array_equal(np.delete(a, seen, 1), np.delete(b, seen, 1))
    arrays = [x.copy() for x in plain]
    arrays[1][:, 66] = np.nan
    for a, b, seen in zip(attend(arrays, dtype, allowed), want, (5, 5, 66, 66), strict=True):
        np.testing.assert_array_equal(np.delete(a, seen, 1), np.delete(b, seen, 1))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_causal_rows_before_a_bad_key_are_right(dtype, width):
    bad_at, plain = 40, operands(width)
    want = attend(plain, dtype, causal=True)
    for which in (1, 2):
        arrays = [x.copy() for x in plain]
        arrays[which][:, bad_at] = np.nan
        got = attend(arrays, dtype, causal=True)
        for i in (0, 1):  # the result, and the gradient of the query
            np.testing.assert_array_equal(got[i][:, :bad_at], want[i][:, :bad_at])
            assert np.isnan(got[i][:, bad_at:]).any(-1).all()
        # Later queries are NaN and see every key except the keys behind all queries.
        for i in (2, 3):
            np.testing.assert_array_equal(got[i][:, QUERIES:], want[i][:, QUERIES:])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_query_that_may_see_nothing_passes_nothing_on(dtype, width):
    allowed = np.ones((QUERIES, KEYS), bool)
    blind = [9, 63, 64]
    allowed[blind] = False
    plain = operands(width)
    plain[0][:, blind] = 0
    want = attend(plain, dtype, allowed)
    arrays = [x.copy() for x in plain]
    for row, bad in zip(blind, BAD):
        arrays[0][:, row] = bad
    for a, b in zip(attend(arrays, dtype, allowed), want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", BAD)
def test_a_mask_that_wants_a_gradient_lets_nothing_through_either(bad):
    draw = np.random.default_rng(6)
    arrays = operands()
    arrays[1][:, 2], arrays[2][:, 2] = bad, bad
    rows = draw.uniform(-1, 1, (QUERIES, KEYS))
    rows[:, 2] = -np.inf
    leaves = [to_yoke(a, requires_grad=True) for a in (*arrays, rows)]
    out = yoke.scaled_dot_product_attention(*leaves[:3], mask=leaves[3])
    out.sum().backward()
    for x in (out, *(leaf.grad for leaf in leaves)):
        assert np.isfinite(to_numpy(x)).all()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dropout, bad", [(0.0, np.nan), (0.0, -np.inf), (0.25, np.inf)])
def test_a_mask_that_wants_a_gradient_hides_what_other_queries_see(dtype, dropout, bad, width):
    allowed = np.tri(QUERIES, KEYS, dtype=bool)
    rows = np.where(allowed, np.random.default_rng(6).uniform(-1, 1, allowed.shape), -np.inf)
    at, found = 40, []
    for spoil in (False, True):
        arrays = operands(width)
        if spoil:
            arrays[2][:, at, 1::2], arrays[1][:, at + 1:] = bad, np.nan
        leaves = [to_yoke(as_dtype(a, dtype), dtype, requires_grad=True) for a in arrays]
        mask = to_yoke(as_dtype(rows, dtype), dtype, requires_grad=True)
        yoke.manual_seed(1)
        out = yoke.scaled_dot_product_attention(*leaves, mask=mask, dropout_p=dropout)
        out.backward(yoke.ones_like(out))
        found.append([to_numpy(x) for x in (out, leaves[0].grad, mask.grad[None])])
    for plain, spoiled_one in zip(*found, strict=True):
        np.testing.assert_array_equal(spoiled_one[:, :at], plain[:, :at])
        assert np.isfinite(plain).all() and (dropout or not np.isfinite(spoiled_one[:, at]).all())


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_the_gradient_of_a_mask_is_that_of_differences(dropout):
    draw = np.random.default_rng(7)
    q, k, v = (to_yoke(draw.uniform(-1, 1, shape), "float64") for shape in ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 3)))
    rows, upstream = draw.uniform(-1, 1, (6, 1, 7)), to_yoke(draw.uniform(-1, 1, (2, 6, 5, 3)), "float64")
    rows[2, :, 3] = -np.inf

    def loss(mask):
        yoke.manual_seed(1)
        return (yoke.scaled_dot_product_attention(q, k, v, mask=mask, dropout_p=dropout, enable_gqa=True) * upstream).sum()

    leaf = to_yoke(rows, "float64", requires_grad=True)
    loss(leaf).backward()
    for at in ((0, 0, 0), (2, 0, 3), (5, 0, 6)):
        step = np.zeros_like(rows)
        step[at] = 1e-5
        want = (loss(to_yoke(rows + step, "float64")).item() - loss(to_yoke(rows - step, "float64")).item()) / 2e-5
        np.testing.assert_allclose(to_numpy(leaf.grad)[at], want, rtol=1e-7, atol=1e-9)


def test_where_nothing_is_forbidden_nan_goes_its_way():
    arrays = operands()
    arrays[2][0, 3, 1] = np.nan
    out = attend(arrays, "float32")[0]
    assert np.isnan(out[0, :, 1]).all() and np.isfinite(np.delete(out[0], 1, -1)).all() and np.isfinite(out[1:]).all()
