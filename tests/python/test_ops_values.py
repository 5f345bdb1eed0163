"""Cases beyond NumPy's finite samples: special values, rounding, promotion, ties, and errors that name both sides."""
import math

import numpy as np
import pytest

import yoke
from op_table import ALL, FLOATS, INTS, NUMPY, dtype_of, name_of, round_bfloat16, to_numpy, to_yoke

NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 1e-40, 88.0, -104.0, 1e30]

# ---- Promotion -------------------------------------------------------------------------------------------------------

ORDER = {"bool": 0, "uint8": 1, "int8": 1, "int32": 2, "int64": 3}


def promoted(a, b):
    """The rule in words: a float wins over integers, the wider of two floats, float16 with bfloat16 gives float32."""
    floats = [d for d in (a, b) if d in FLOATS]
    if floats:
        if set(floats) == {"float16", "bfloat16"}:
            return "float32"
        return min(floats, key=FLOATS.index)
    if {a, b} == {"uint8", "int8"}:
        return "int32"
    return max(a, b, key=ORDER.get)


@pytest.mark.parametrize("a", ALL)
def test_two_tensors_are_promoted_by_the_table(a):
    for b in ALL:
        for op in (yoke.add, yoke.mul):
            got = op(yoke.ones(2, dtype=dtype_of(a)), yoke.ones((), dtype=dtype_of(b)))  # a tensor of no axes is not weak
            assert name_of(got.dtype) == promoted(a, b), (op.__name__, a, b)
        assert name_of(yoke.cat([yoke.ones(1, dtype=dtype_of(a)), yoke.ones(1, dtype=dtype_of(b))]).dtype) == promoted(a, b)
        quotient = yoke.div(yoke.ones(2, dtype=dtype_of(a)), yoke.ones(2, dtype=dtype_of(b)))
        assert name_of(quotient.dtype) == (promoted(a, b) if promoted(a, b) in FLOATS else "float32")


@pytest.mark.parametrize("dtype", ALL)
def test_a_scripts_number_is_weak(dtype):
    x = yoke.ones(2, dtype=dtype_of(dtype))
    assert name_of((x + 1.5).dtype) == (dtype if dtype in FLOATS else "float32")
    assert name_of((x + 2).dtype) == ("int64" if dtype == "bool" else dtype)
    assert name_of((x + True).dtype) == dtype
    assert (x + 2).tolist() == [3, 3] and (2 + x).tolist() == [3, 3]


def test_numbers_alone_are_refused():
    for op in (yoke.add, yoke.sub, yoke.mul, yoke.div):
        with pytest.raises(yoke.TypeError, match=rf"{op.__name__}: both arguments are numbers"):
            op(1, 2)


# ---- Special values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name, reference", [
    ("exp", np.exp), ("log", np.log), ("tanh", np.tanh), ("neg", np.negative),
    ("relu", lambda x: np.where(np.isnan(x), x, np.maximum(x, 0))), ("add", lambda x: x + x[::-1]),
    ("mul", lambda x: x * x[::-1]), ("div", lambda x: x / x[::-1]), ("sub", lambda x: x - x[::-1])])
def test_special_values_come_out_as_in_numpy(name, reference, dtype):
    x = np.array(SPECIAL * 3, dtype)  # long enough for vectors
    args = [to_yoke(x)] + ([to_yoke(x[::-1].copy())] if name in ("add", "mul", "div", "sub") else [])
    with np.errstate(all="ignore"):
        want = reference(x)
    np.testing.assert_allclose(to_numpy(getattr(yoke, name)(*args)), want, rtol=4 * np.finfo(dtype).eps)


def test_signed_zeros_survive():
    zeros = to_yoke(np.array([0.0, -0.0]))
    assert np.signbit(to_numpy(yoke.neg(zeros))).tolist() == [True, False]
    assert np.signbit(to_numpy(yoke.tanh(zeros))).tolist() == [False, True]
    assert np.signbit(to_numpy(zeros * -1.0)).tolist() == [True, False]


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_in_amax_argmax_and_everything_it_meets(dtype):
    x = np.array([[1.0, NAN, 3.0], [INF, 2.0, -INF]])
    t = yoke.tensor(x).to(dtype=dtype_of(dtype))
    np.testing.assert_array_equal(to_numpy(yoke.amax(t, axis=1)), [NAN, INF])
    assert yoke.argmax(t, axis=1).tolist() == [1, 0] and yoke.argmax(t).item() == 1
    assert math.isnan(yoke.sum(t).item()) and math.isnan(yoke.mean(t).item())
    assert np.isnan(to_numpy(yoke.softmax(t, 1))[0]).all()


def test_softmax_of_infinities():
    x = to_yoke(np.array([[-INF, 0.0, 0.0], [-INF, -INF, 5.0], [1e4, -1e4, 1e4]]))
    np.testing.assert_allclose(to_numpy(yoke.softmax(x, 1)), [[0, 0.5, 0.5], [0, 0, 1], [0.5, 0, 0.5]])
    logs = to_numpy(yoke.log_softmax(x, 1))
    np.testing.assert_allclose(logs[1], [-INF, -INF, 0])
    assert np.isfinite(logs[2]).all()


def test_a_masked_row_of_softmax_has_a_finite_gradient():
    x = to_yoke(np.array([[-INF, 0.0, 1.0]]), requires_grad=True)
    yoke.sum(yoke.softmax(x, 1) * to_yoke(np.array([[1.0, 2.0, 3.0]]))).backward()
    assert np.isfinite(to_numpy(x.grad)).all() and to_numpy(x.grad)[0, 0] == 0


def test_cross_entropy_of_large_logits_is_finite():
    x = to_yoke(np.array([[1e4, -1e4], [-1e30, 1e30]], np.float32), requires_grad=True)
    loss = yoke.cross_entropy(x, yoke.tensor([0, 1]))
    loss.backward()
    assert loss.item() == 0 and not to_numpy(x.grad).any()


def test_the_mean_over_only_ignored_rows_is_not_a_number_and_the_sum_is_zero():
    x, target = to_yoke(np.ones((2, 3))), yoke.tensor([-100, -100])
    assert math.isnan(yoke.cross_entropy(x, target).item())
    assert yoke.cross_entropy(x, target, reduction="sum").item() == 0
    assert yoke.cross_entropy(x, target, reduction="none").tolist() == [0.0, 0.0]


def test_the_first_of_equal_maxima_wins():
    for count in (3, 100, 70_001):
        x = np.zeros(count, np.float32)
        x[[count // 3, count - 1]] = 5
        assert yoke.argmax(to_yoke(x)).item() == count // 3
        assert yoke.argmax(to_yoke(x.reshape(1, -1)), axis=1).tolist() == [count // 3]
    assert yoke.argmax(yoke.zeros(70_001)).item() == 0
    assert yoke.argmax(to_yoke(np.full(9, -INF))).item() == 0


# ---- Rounding and wrapping -------------------------------------------------------------------------------------------


def test_casts_between_floats_round_to_nearest_even():
    exact = np.concatenate([np.array(SPECIAL), np.random.default_rng(0).normal(size=5000) * 10.0 ** np.arange(-25, 25).repeat(100),
                            1 + np.arange(64) * 2.0**-12, [65504, 65519.9, 65520, 6e-8, 2.9e-8, 3.4e38, 3.3961776e38]])
    with np.errstate(over="ignore"):
        single = exact.astype(np.float32)
        for source in (single, exact):
            np.testing.assert_array_equal(to_numpy(yoke.cast(to_yoke(source), yoke.float16)), source.astype(np.float16))
        np.testing.assert_array_equal(to_numpy(yoke.cast(to_yoke(exact), yoke.float32)), single)
        np.testing.assert_array_equal(to_numpy(yoke.cast(to_yoke(single), yoke.bfloat16)), round_bfloat16(single))


def test_every_half_survives_a_trip_through_float32():
    bits = np.arange(65536, dtype=np.uint16)
    halves = bits.view(np.float16)
    there = to_numpy(yoke.cast(to_yoke(halves), yoke.float32))
    np.testing.assert_array_equal(there, halves.astype(np.float32))
    np.testing.assert_array_equal(to_numpy(yoke.cast(to_yoke(there), yoke.float16)), halves)
    brains = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(to_numpy(yoke.cast(yoke.cast(to_yoke(brains), yoke.bfloat16), yoke.float32)), brains)


def test_a_cast_to_an_integer_cuts_the_fraction_off():
    x = np.array([1.9, -1.9, 0.5, -0.5, 100.99])
    for dtype in INTS:
        values = np.abs(x) if dtype == "uint8" else x
        np.testing.assert_array_equal(to_numpy(yoke.cast(to_yoke(values), dtype_of(dtype))), np.trunc(values))
    assert yoke.cast(to_yoke(np.array([0.0, -0.0, 0.1, NAN, INF])), yoke.bool).tolist() == [False, False, True, True, True]


def test_integers_wrap_as_numpys_do():
    for dtype, top in (("int8", 127), ("uint8", 255), ("int32", 2**31 - 1), ("int64", 2**63 - 1)):
        x = np.full(40, top, NUMPY[dtype])
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(to_numpy(to_yoke(x) + to_yoke(x)), x + x)
            np.testing.assert_array_equal(to_numpy(to_yoke(x) * to_yoke(x)), x * x)
            np.testing.assert_array_equal(to_numpy(yoke.sub(to_yoke(-x), to_yoke(x))), -x - x)
            np.testing.assert_array_equal(to_numpy(yoke.neg(to_yoke(x + NUMPY[dtype].type(1)))), -(x + NUMPY[dtype].type(1)))


def test_sums_of_small_integers_and_halves_do_not_overflow_on_the_way():
    assert yoke.sum(yoke.full(1000, 127, dtype=yoke.int8)).item() == 127_000
    assert yoke.sum(yoke.ones(1000, dtype=yoke.bool)).item() == 1000
    assert yoke.sum(yoke.ones(4000, dtype=yoke.float16)).item() == 4000  # 2048 + 1 would not grow
    assert yoke.mean(yoke.full(4000, 60000.0, dtype=yoke.float16)).item() == 60000 - 60000 % 32
    assert yoke.sum(yoke.full(4000, 60000.0, dtype=yoke.float16), dtype=yoke.float32).item() == 4000 * 60000


def test_a_long_float_sum_keeps_its_precision():
    x = np.full(1 << 20, 0.1, np.float32)
    np.testing.assert_allclose(yoke.sum(to_yoke(x)).item(), x.astype(np.float64).sum(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_a_dtype_for_the_sum_is_one_from_the_start(dtype):
    x = yoke.tensor([0.5, 0.75, 1.5])
    want = {"int64": 1}.get(dtype, 2.75)
    got = yoke.sum(x, dtype=dtype_of(dtype))
    assert name_of(got.dtype) == dtype and got.item() == want


# ---- Lists and classes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
def test_a_long_list_is_joined_in_its_order_and_what_is_empty_leaves_no_gap(axis):
    parts = [np.full((3, i % 4) if axis else (i % 4, 3), i, np.int32) for i in range(150)]
    np.testing.assert_array_equal(to_numpy(yoke.cat([to_yoke(p) for p in parts], axis)), np.concatenate(parts, axis))


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_classes_are_told_in_either_dtype_of_indices(dtype):
    classes = np.array([[3, 0], [100, 3]], dtype=dtype)
    np.testing.assert_array_equal(to_numpy(yoke.one_hot(to_yoke(classes), 120)), np.eye(120)[classes])


# ---- Errors ----------------------------------------------------------------------------------------------------------

ERRORS = {
    "shapes that do not broadcast": (lambda: yoke.add(yoke.ones((2, 3)), yoke.ones((2, 4))), yoke.ValueError,
                                     r"add: shapes \[2, 3\] and \[2, 4\] do not broadcast: axis 1 has 3 and 4"),
    "columns and rows": (lambda: yoke.matmul(yoke.ones((2, 3)), yoke.ones((4, 2))), yoke.ValueError, r"matmul: .*3 columns.*4 rows"),
    "a product with a scalar": (lambda: yoke.matmul(yoke.ones(()), yoke.ones(3)), yoke.ValueError, "matmul: .*at least one axis"),
    "a product of two dtypes": (lambda: yoke.matmul(yoke.ones((2, 2)), yoke.ones((2, 2), dtype=yoke.float64)), yoke.TypeError,
                                "matmul: argument 'x' is float32 and 'y' is float64"),
    "a weight of another width": (lambda: yoke.linear(yoke.ones((2, 3)), yoke.ones((5, 4))), yoke.ValueError, r"\[2, 3\].*\[5, 4\]"),
    "a bias of another length": (lambda: yoke.linear(yoke.ones((2, 3)), yoke.ones((5, 3)), yoke.ones(4)), yoke.ValueError,
                                 r"'bias' has shape \[4\].*\[5\]"),
    "an axis out of range": (lambda: yoke.sum(yoke.ones((2, 3)), axis=2), yoke.IndexError, "sum: axis 2 is out of range.*2 axes"),
    "an axis twice": (lambda: yoke.sum(yoke.ones((2, 3)), axis=(0, -2)), yoke.ValueError, "sum: axis -2 appears twice"),
    "the largest of nothing": (lambda: yoke.amax(yoke.ones((2, 0)), axis=1), yoke.ValueError, r"amax: axis 1 of shape \[2, 0\]"),
    "the place of the largest of nothing": (lambda: yoke.argmax(yoke.ones(0)), yoke.ValueError, r"argmax: .*\[0\]"),
    "a mean of integers": (lambda: yoke.mean(yoke.ones(3, dtype=yoke.int32)), yoke.TypeError, "mean: .*int32.*dtype=float32"),
    "a reshape that does not fit": (lambda: yoke.reshape(yoke.ones((2, 3)), (4, 2)), yoke.ValueError, r"\[4, 2\].*6 elements"),
    "two sizes left open": (lambda: yoke.reshape(yoke.ones((2, 3)), (-1, -1)), yoke.ValueError, "more than one -1"),
    "an open size of nothing": (lambda: yoke.reshape(yoke.ones((0, 3)), (-1, 0)), yoke.ValueError, r"\[-1, 0\]"),
    "a size below -1": (lambda: yoke.reshape(yoke.ones(6), (-2, 3)), yoke.ValueError, r"'shape' is \[-2, 3\]; each size must be 0 or more"),
    "a view across strides": (lambda: yoke.view(yoke.transpose(yoke.ones((2, 3)), 0, 1), (6,)), yoke.ValueError, "use reshape"),
    "a permutation with a gap": (lambda: yoke.permute(yoke.ones((2, 3)), (0, 0)), yoke.ValueError, r"permute: axes \[0, 0\]"),
    "a permutation too long": (lambda: yoke.permute(yoke.ones((2, 3)), (0, 1) * 20), yoke.ValueError, "."),
    "an expansion of two to three": (lambda: yoke.expand(yoke.ones(2), (3,)), yoke.ValueError, r"\[2\] does not broadcast to \[3\]"),
    "a step of nothing": (lambda: yoke.slice(yoke.ones(3), 0, None, None, 0), yoke.ValueError, "'step' is 0"),
    "a slice of a scalar": (lambda: yoke.slice(yoke.ones(()), 0), yoke.IndexError, "without axes cannot be sliced"),
    "joining nothing": (lambda: yoke.cat([]), yoke.ValueError, "empty list"),
    "joining scalars": (lambda: yoke.cat([yoke.ones(()), yoke.ones(())]), yoke.ValueError, "unsqueeze"),
    "joining other widths": (lambda: yoke.cat([yoke.ones((2, 3)), yoke.ones((2, 4))]), yoke.ValueError,
                             r"tensor 1 has shape \[2, 4\] and tensor 0 \[2, 3\]"),
    "a class that is none": (lambda: yoke.cross_entropy(yoke.ones((2, 3)), yoke.tensor([0, 3])), yoke.IndexError,
                             r"target\[1\] is 3"),
    "classes that are floats": (lambda: yoke.cross_entropy(yoke.ones((2, 3)), yoke.ones(2)), yoke.TypeError,
                                r"'target' is float32 of shape \[2\]; .*write cast\(target, int64\)"),
    "logits of three axes": (lambda: yoke.cross_entropy(yoke.ones((2, 3, 4)), yoke.tensor([0, 1])), yoke.ValueError, r"\[N, C\]"),
    "an unknown reduction": (lambda: yoke.cross_entropy(yoke.ones((1, 2)), yoke.tensor([0]), reduction="max"), yoke.ValueError, '"max"'),
    "too much smoothing": (lambda: yoke.cross_entropy(yoke.ones((1, 2)), yoke.tensor([0]), label_smoothing=2.0),
                           yoke.ValueError, "'label_smoothing' is 2"),
    "a class beyond": (lambda: yoke.one_hot(yoke.tensor([0, 5]), 3), yoke.IndexError, "element 1 of x is 5"),
    "the class behind the last": (lambda: yoke.one_hot(yoke.tensor([0, 3]), 3), yoke.IndexError, "element 1 of x is 3"),
    "a class below": (lambda: yoke.one_hot(yoke.tensor([0, -1])), yoke.IndexError, "element 1 of x is -1"),
    "no classes to count": (lambda: yoke.one_hot(yoke.zeros(0, dtype=yoke.int64)), yoke.ValueError, "give num_classes"),
    "an unknown approximation": (lambda: yoke.gelu(yoke.ones(2), "fast"), yoke.ValueError, '"fast"; it must be "none" or "tanh"'),
    "an index beyond": (lambda: yoke.index_select(yoke.ones((2, 3)), 1, yoke.tensor([0, 3])), yoke.IndexError, r"index\[1\] is 3"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_bad_input_is_named_with_both_values(what):
    call, error, message = ERRORS[what]
    before = yoke.memory_allocated()
    with pytest.raises(error, match=message):
        call()
    assert yoke.memory_allocated() == before, "a failed call leaks nothing"
    assert yoke.add(yoke.ones(2), 1).tolist() == [2.0, 2.0], "and the library goes on"


# ---- Views -----------------------------------------------------------------------------------------------------------


def test_views_share_memory_and_copies_do_not():
    x = yoke.ones((2, 6))
    for view in (yoke.view(x, (3, 4)), yoke.reshape(x, (12,)), yoke.transpose(x, 0, 1), yoke.permute(x, (1, 0)), yoke.expand(x, (3, 2, 6)),
                 yoke.squeeze(x), yoke.unsqueeze(x, 0), yoke.slice(x, 1, 0, 4, 2), yoke.contiguous(x), yoke.cast(x, yoke.float32)):
        assert yoke.shares_memory(x, view)
    turned = yoke.transpose(x, 0, 1)
    for copy in (yoke.clone(x), yoke.reshape(turned, (12,)), yoke.contiguous(turned), yoke.cast(x, yoke.float64), yoke.cat([x])):
        assert not yoke.shares_memory(x, copy)


def test_elementwise_results_keep_the_order_of_axes():
    x = yoke.transpose(yoke.ones((3, 4, 5)), 0, 2)
    for y in (yoke.relu(x), x + x, x * 2, yoke.exp(x), yoke.cast(x, yoke.float64), yoke.softmax(x, 0)):
        assert y.strides == x.strides
    assert yoke.clone(x).is_contiguous()
