"""Reductions beyond the table's samples: ties, zeros, infinities, NaN, no elements, and numbers hard to add."""
import math

import numpy as np
import pytest

import yoke
from op_table import EPSILON, FLOATS, to_numpy, to_yoke

NAN, INF = math.nan, math.inf


def gradient(function, values, dtype=np.float64):
    x = to_yoke(np.array(values, dtype), requires_grad=True)
    out = function(x)
    out.backward(yoke.ones_like(out))
    return to_numpy(x.grad)


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_nothing_has_no_extreme_and_the_error_names_op_axis_and_shape(name):
    with pytest.raises(yoke.ValueError, match=rf"{name}: axis 1 of shape \[2, 0\] is empty.*(larg|small)est element"):
        getattr(yoke, name)(yoke.ones((2, 0)), axis=1)
    with pytest.raises(yoke.ValueError, match=rf"{name}: .*\[0, 3\]"):
        getattr(yoke, name)(yoke.ones((0, 3)))


@pytest.mark.parametrize("p", [INF, -INF, -1.0])
def test_norms_without_an_identity_refuse_nothing(p):
    with pytest.raises(yoke.ValueError, match=rf"norm: axis 0 of shape \[0, 3\] is empty.*order {p:g}"):
        yoke.norm(yoke.ones((0, 3)), p, 0)


def test_reductions_with_an_identity_give_it_for_nothing():
    x = yoke.ones((2, 0))
    for name, identity in {"sum": 0, "prod": 1, "all": True, "any": False, "norm": 0, "logsumexp": -INF}.items():
        assert getattr(yoke, name)(x, axis=1).tolist() == [identity] * 2, name
        assert getattr(yoke, name)(x).item() == identity, name
    assert all(math.isnan(v) for name in ("mean", "var", "std") for v in getattr(yoke, name)(x, axis=1).tolist())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_in_amin_and_norms_and_counts_as_true(dtype, axis):
    values = np.ones((70, 90), np.float32)
    values[(33, 5) if axis else (5, 33)] = NAN
    x = yoke.tensor(values).to(dtype=getattr(yoke, dtype))
    place = 33 if axis else 33
    for result in (yoke.amin(x, axis=axis), yoke.norm(x, INF, axis), yoke.norm(x, -INF, axis), yoke.norm(x, 2, axis),
                   yoke.var(x, axis), yoke.logsumexp(x, axis), yoke.prod(x, axis)):
        assert np.flatnonzero(np.isnan(to_numpy(result))).tolist() == [place]
    assert yoke.argmin(x, axis=axis).tolist()[place] == 5
    assert yoke.all(x, axis=axis).tolist() == [True] * (70 if axis else 90)


def test_the_first_of_equal_smallest_elements_is_argmins():
    x = np.zeros(200_000, np.float32) + 3
    x[[70_001, 150_000]] = -1
    assert yoke.argmin(yoke.tensor(x)).item() == 70_001
    x[180_000] = NAN
    assert yoke.argmin(yoke.tensor(x)).item() == 180_000
    assert yoke.argmin(yoke.tensor([[2, 1, 1], [0, 0, 0]]), axis=1).tolist() == [1, 0]


def test_zero_and_minus_zero_are_false_and_all_else_is_true():
    x = yoke.tensor([[0.0, -0.0, 0.0], [1e-40, -INF, NAN], [0.0, 1.0, -0.0]])
    assert yoke.any(x, axis=1).tolist() == [False, True, True]
    assert yoke.all(x, axis=1).tolist() == [False, True, False]
    assert yoke.any(x, axis=0).tolist() == [True, True, True]


@pytest.mark.parametrize("values, want", [
    ([2, 3, 4], [12, 8, 6]), ([2, 0, 4], [0, 8, 0]), ([0, 0, 4], [0, 0, 0]), ([0], [1]),
    ([-1, INF], [INF, -1]),
])
def test_the_gradient_of_prod_is_right_among_zeros(values, want):
    got = gradient(yoke.prod, values)
    if INF in values:
        assert got[0] == INF  # infinity over infinity is lost
    else:
        assert got.tolist() == want


def test_the_gradient_of_prod_over_an_axis_sees_the_zeros_of_its_own_row():
    x = [[1.0, 2.0, 3.0], [0.0, 5.0, 7.0], [0.0, 0.0, 2.0]]
    assert gradient(lambda t: yoke.prod(t, axis=1), x).tolist() == [[6, 3, 2], [35, 0, 0], [0, 0, 0]]


def test_ties_share_the_gradient_of_amin_and_of_infinite_norms_evenly():
    x = [[1.0, 1.0, 3.0], [-2.0, 2.0, -2.0]]
    np.testing.assert_allclose(gradient(lambda t: yoke.amin(t, axis=1), x), [[0.5, 0.5, 0], [0.5, 0, 0.5]])
    np.testing.assert_allclose(gradient(lambda t: yoke.norm(t, INF, 1), x), [[0, 0, 1], [-1 / 3, 1 / 3, -1 / 3]])
    np.testing.assert_allclose(gradient(lambda t: yoke.norm(t, -INF, 1), x), [[0.5, 0.5, 0], [-1 / 3, 1 / 3, -1 / 3]])


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3.5, INF, -INF])
def test_a_norm_has_the_gradient_zero_at_the_zero_vector(p):
    assert gradient(lambda t: yoke.norm(t, p), [0.0, 0.0]).tolist() == [0, 0]


def test_a_root_of_no_variance_has_the_gradient_zero():
    assert gradient(yoke.std, [0.1, 0.1, 0.1], np.float32).tolist() == [0, 0, 0]


@pytest.mark.parametrize("values, correction, want", [([1.0], 1, NAN), ([1.0, 2.0], 2, INF), ([1.0, 2.0], 3, INF)])
def test_a_variance_with_nothing_left_of_its_count_is_not_a_number_or_infinite(values, correction, want):
    for function in (yoke.var, yoke.std):
        got = function(yoke.tensor(values), correction=correction).item()
        assert got == want or math.isnan(got) and math.isnan(want)
    slope = gradient(lambda t: yoke.var(t, correction=correction), values)
    assert np.isnan(slope).all() if math.isnan(want) else slope.tolist() == [-INF, INF]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_small_variance_about_a_large_mean_is_kept(axis):
    rng = np.random.default_rng(4)
    values = (1e4 + rng.normal(0, 0.05, (3000, 40))).astype(np.float32)
    x = values if axis == 0 else np.ascontiguousarray(values.T)
    exact = np.var(values.astype(np.float64), axis=0, ddof=1)
    np.testing.assert_allclose(to_numpy(yoke.var(yoke.tensor(x), axis)), exact, rtol=2e-6)
    np.testing.assert_allclose(yoke.var(yoke.tensor(x)).item(), np.var(values.astype(np.float64), ddof=1), rtol=2e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_logsumexp_neither_overflows_nor_loses_rows_of_infinities(axis):
    rows = np.array([[1000.0, 1000.0, -INF], [-INF] * 3, [INF, 1.0, -INF], [-1000.0, -1001.0, -1002.0]], np.float32)
    big = np.tile(rows, (1, 700))
    x = yoke.tensor(big if axis else np.ascontiguousarray(big.T))
    want = [1000 + math.log(1400), -INF, INF, -1000 + math.log(700 * (1 + math.exp(-1) + math.exp(-2)))]
    np.testing.assert_allclose(to_numpy(yoke.logsumexp(x, axis)), want, rtol=1e-6)
    grads = gradient(lambda t: yoke.logsumexp(t, 1), rows)
    np.testing.assert_allclose(grads[:2], [[0.5, 0.5, 0], [0, 0, 0]], rtol=1e-12)


def test_an_infinite_element_after_a_thousand_minus_infinities_is_not_lost():
    x = np.full(5000, -INF, np.float32)
    x[4000] = -2000
    assert yoke.logsumexp(yoke.tensor(x)).item() == -2000


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["sum", "norm", "cumsum", "prod"])
def test_halves_are_accumulated_in_float32_and_can_stay_there(name, dtype):
    ones = yoke.ones((4096, 3), dtype=getattr(yoke, dtype))
    wide = getattr(yoke, name)(ones, axis=0, dtype=yoke.float32)
    assert wide.dtype == yoke.float32
    last = to_numpy(wide)[-1] if name == "cumsum" else to_numpy(wide)
    np.testing.assert_array_equal(last, {"sum": 4096, "cumsum": 4096, "norm": 64, "prod": 1}[name])
    narrow = getattr(yoke, name)(ones, axis=0)
    assert narrow.dtype == ones.dtype and to_numpy(narrow).max() == np.max(last)


@pytest.mark.parametrize("shape", [(4096, 1024), (1030, 1024), (100_000, 3), (7, 3, 1000), (130, 1025), (5, 4099)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_columns_add_up_exactly_where_every_order_is_exact(shape, dtype):
    whole = np.random.default_rng(1).integers(-3, 4, shape)
    x = yoke.tensor(whole.astype(np.float32)).to(dtype=getattr(yoke, dtype))
    for axis in range(len(shape) - 1):
        np.testing.assert_array_equal(to_numpy(yoke.sum(x, axis, dtype=yoke.float32)), whole.sum(axis))
        np.testing.assert_array_equal(to_numpy(yoke.amin(x, axis)), whole.min(axis))
    np.testing.assert_allclose(to_numpy(yoke.var(x, 0)), whole.var(0, ddof=1), rtol=4 * EPSILON[dtype])


def test_a_long_cumsum_is_exact_to_its_last_element_in_every_dtype():
    n = 200_001
    x = yoke.tensor(np.full(n, 0.1, np.float32))
    want = np.cumsum(np.full(n, np.float64(np.float32(0.1))))
    np.testing.assert_allclose(to_numpy(yoke.cumsum(x, 0)), want, rtol=1e-7)
    assert to_numpy(yoke.cumsum(yoke.ones(n, dtype=yoke.int8), 0))[-1] == n
    assert to_numpy(yoke.cumsum(yoke.ones(n, dtype=yoke.bool), 0))[-1] == n
    grads = gradient(lambda t: yoke.cumsum(t, 0), np.ones(n))
    np.testing.assert_array_equal(grads, np.arange(n, 0, -1))


@pytest.mark.parametrize("name", ["prod", "cumsum"])
def test_a_dtype_that_cannot_hold_a_running_result_is_refused(name):
    axis = {"axis": 0}
    with pytest.raises(yoke.TypeError, match=f"{name}: argument 'dtype' is int32"):
        getattr(yoke, name)(yoke.ones(3), dtype=yoke.int32, **axis)
    assert getattr(yoke, name)(yoke.tensor([1, 2, 3]), dtype=yoke.float64, **axis).dtype == yoke.float64


def test_what_is_not_one_names_the_dtype_and_the_remedy():
    for call, words in ((lambda: yoke.norm(yoke.tensor([1, 2])), "norm: argument 'x' is int64.*dtype=float32"),
                        (lambda: yoke.var(yoke.tensor([1, 2])), "var: argument 'x' is int64.*cast"),
                        (lambda: yoke.norm(yoke.ones(2), dtype=yoke.int64), "norm: argument 'dtype' is int64.*floating")):
        with pytest.raises(yoke.TypeError, match=words):
            call()
    assert yoke.norm(yoke.tensor([3, 4]), dtype=yoke.float32).item() == 5
    with pytest.raises(yoke.ValueError, match="norm: argument 'p' is NaN"):
        yoke.norm(yoke.ones(2), NAN)
