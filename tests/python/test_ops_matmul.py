"""Products and attention: cases beyond the samples, and errors that name the wrong argument."""
import numpy as np
import pytest

import yoke
from op_samples import values
from op_table import EPSILON, FLOATS, to_numpy, to_yoke
from cases_matmul import np_attention

_rng = np.random.default_rng(5)


def randoms(*shape, dtype="float64", requires_grad=False):
    return to_yoke(_rng.standard_normal(shape).astype("float32"), dtype, requires_grad)


def attend(*args, **named):
    return yoke.scaled_dot_product_attention(*args, **named)


# ---- linear ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_fused_activation_has_the_bits_of_the_op_after_the_product(activation, dtype):
    separate = {"relu": yoke.relu, "silu": yoke.silu, "gelu": yoke.gelu, "gelu_tanh": lambda x: yoke.gelu(x, "tanh")}
    x, weight, bias = randoms(40, 30, dtype=dtype), randoms(50, 30, dtype=dtype), randoms(50, dtype=dtype)
    want = separate[activation](yoke.linear(x, weight, bias))
    with yoke.no_grad():
        assert to_numpy(yoke.linear(x, weight, bias, activation)).tobytes() == to_numpy(want).tobytes()
    got = yoke.linear(x.requires_grad_(True), weight, bias, activation)
    assert to_numpy(got).tobytes() == to_numpy(want).tobytes()


@pytest.mark.parametrize("activation", ["none", "gelu"])
@pytest.mark.parametrize("shape, taken", [((4, 6, 3, 8), (slice(None), slice(0, 4))), ((4, 6, 3, 8), (slice(None), slice(0, 1))),
                                          ((3, 5, 8), (slice(None), slice(1, 2))), ((2, 4, 6, 3, 8), (slice(None), slice(1, 3)))])
def test_linear_of_rows_that_lie_apart_has_the_values_of_dense_ones(shape, taken, activation):
    x, weight, bias = randoms(*shape, dtype="float32")[taken], randoms(7, 8, dtype="float32"), randoms(7, dtype="float32")
    got, want = (to_numpy(yoke.linear(each, weight, bias, activation)) for each in (x, yoke.tensor(to_numpy(x).copy())))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("activation, kept", [("none", 0), ("relu", 1), ("gelu", 2)])
def test_linear_keeps_what_its_activation_is_applied_to_only_where_a_gradient_wants_it(activation, kept):
    weight = randoms(512, 16, dtype="float32")
    x = randoms(512, 16, dtype="float32")
    for wants in (False, True):
        weight.requires_grad_(wants)
        before = yoke.memory_allocated()
        y = yoke.linear(x, weight, activation=activation)
        assert round((yoke.memory_allocated() - before) / (1 << 20)) == (2 if kept == 2 and wants else 1)
        del y


def test_nan_passes_through_a_fused_relu():
    y = yoke.linear(yoke.full((20, 20), float("nan")), yoke.ones((20, 20)), activation="relu")
    assert np.isnan(to_numpy(y)).all()


# ---- batches ---------------------------------------------------------------------------------------------------------

ALL = (slice(None),)
APART = (slice(None), slice(None, None, 2))
# Shapes of x and y and the parts used of both: more than 16 products along each of two axes.
MANY_BATCHES = {
    "either broadcasts along its own axis": ((20, 1, 3, 4), (1, 18, 4, 5), ALL, ALL),
    "one matrix for each of the other's, which lie apart": ((18, 3, 4), (20, 36, 4, 5), ALL, APART),
    "a vector for all, whose matrices lie apart": ((4,), (20, 36, 4, 5), ALL, APART),
    "matrices that lie apart, with a vector for all": ((20, 36, 3, 4), (4,), APART, ALL),
    "three axes, of which the middle one broadcasts": ((17, 1, 17, 2, 3), (17, 17, 17, 3, 2), ALL, ALL),
}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("what", MANY_BATCHES)
def test_products_of_many_batches_that_broadcast_are_numpys(what, dtype):
    x_shape, y_shape, of_x, of_y = MANY_BATCHES[what]
    rng = np.random.default_rng(len(what))
    x, y = (np.rint(4 * rng.standard_normal(shape)).astype(dtype) for shape in (x_shape, y_shape))
    np.testing.assert_array_equal(to_numpy(yoke.matmul(to_yoke(x)[of_x], to_yoke(y)[of_y])), x[of_x] @ y[of_y])


# ---- einsum ----------------------------------------------------------------------------------------------------------

def test_einsum_of_one_tensor_is_a_view_where_it_only_moves_axes():
    x = randoms(3, 4)
    assert yoke.shares_memory(x, yoke.einsum("ij->ji", [x]))
    assert yoke.shares_memory(x, yoke.einsum("i...->i...", [x]))


def test_the_gradient_of_a_trace_is_the_identity():
    x = to_yoke(np.full((3, 3), np.inf), requires_grad=True)  # values off the diagonal do not matter
    yoke.einsum("ii", [x]).backward()
    np.testing.assert_array_equal(to_numpy(x.grad), np.eye(3))


# ---- attention -------------------------------------------------------------------------------------------------------

def reference_gradients(arrays, upstream, **named):
    """Returns a number for each input, by finite differences along random directions."""
    step, slopes = 1e-6, []
    for k in range(3):
        direction = _rng.standard_normal(arrays[k].shape)
        ends = []
        for sign in (1, -1):
            moved = [a + sign * step * direction if i == k else a for i, a in enumerate(arrays)]
            ends.append(np.sum(np_attention(*moved, **named) * upstream))
        slopes.append((direction, (ends[0] - ends[1]) / (2 * step)))
    return slopes


SIZES = {
    "one block": ((2, 3, 40, 16), (2, 3, 40, 16)), "odd everywhere": ((1, 2, 131, 17), (1, 2, 77, 17)),
    "several blocks": ((2, 300, 24), (2, 290, 24)), "a width of 256": ((1, 70, 256), (1, 66, 256)),
    "one head of many keys": ((5, 8), (1000, 8)), "many heads": ((40, 20, 8), (40, 20, 8)),
}


@pytest.mark.parametrize("named", [{}, {"is_causal": True}, {"mask": "bool"}], ids=["plain", "causal", "mask"])
@pytest.mark.parametrize("size", SIZES)
def test_attention_of_any_length_and_width_has_the_values_and_gradients_of_its_definition(size, named):
    q_shape, k_shape = SIZES[size]
    arrays = [_rng.standard_normal(s) for s in (q_shape, k_shape, k_shape)]
    named = dict(named)
    if "mask" in named:
        named["mask"] = _rng.random((q_shape[-2], k_shape[-2])) > 0.3
        named["mask"][1] = False  # a query without allowed keys
    tensors = [to_yoke(a, requires_grad=True) for a in arrays]
    given = {k: to_yoke(v) if isinstance(v, np.ndarray) else v for k, v in named.items()}
    out = attend(*tensors, **given)
    np.testing.assert_allclose(to_numpy(out), np_attention(*arrays, **named), rtol=1e-11, atol=1e-12)
    upstream = _rng.standard_normal(out.shape)
    out.backward(to_yoke(upstream))
    for x, (direction, slope) in zip(tensors, reference_gradients(arrays, upstream, **named), strict=True):
        np.testing.assert_allclose(np.sum(to_numpy(x.grad) * direction), slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attention_in_a_narrow_dtype_is_float64s_as_that_dtype_rounds_it(dtype):
    wide = [randoms(2, 2, 150, 32, dtype=dtype).to(dtype=yoke.float64).requires_grad_(True) for _ in range(3)]
    narrow = [x.detach().to(dtype=dtype).requires_grad_(True) for x in wide]
    upstream = randoms(2, 2, 150, 32, dtype=dtype)
    want, got = attend(*wide, is_causal=True), attend(*narrow, is_causal=True)
    want.backward(upstream.to(dtype=yoke.float64))
    got.backward(upstream)
    for a, b in [(got, want), *((x.grad, y.grad) for x, y in zip(narrow, wide))]:
        error = (32 if dtype == "float32" else 8) * EPSILON[dtype]  # float32 also rounds every step of sums
        np.testing.assert_allclose(to_numpy(a).astype(float), to_numpy(b), rtol=error, atol=error)


def test_heads_of_packed_projections_are_taken_where_they_lie_and_the_result_lies_like_them():
    packed = randoms(2, 70, 3, 4, 16, dtype="float32")  # [batch, length, (q, k, v), heads, width]
    views = [yoke.transpose(packed[:, :, i], 1, 2) for i in range(3)]
    before = yoke.memory_allocated()
    out = attend(*views, is_causal=True)
    assert yoke.memory_allocated() - before < 2 * out.nbytes  # the result and a row of log-sum-exps, no copies
    dense = attend(*(yoke.clone(v) for v in views), is_causal=True)
    assert to_numpy(out).tobytes() == to_numpy(dense).tobytes()
    assert yoke.transpose(out, 1, 2).is_contiguous()  # heads join without a copy


def test_a_mask_of_numbers_is_added_and_gets_the_gradient_it_asks_for():
    q, k, v = (randoms(2, 6, 4, requires_grad=True) for _ in range(3))
    mask = randoms(6, 6)
    mask[2] = -float("inf")
    plain = attend(q, k, v, mask)
    plain.backward(yoke.ones_like(plain))
    first = [to_numpy(x.grad) for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    learned = attend(q, k, v, mask.requires_grad_(True))
    learned.backward(yoke.ones_like(learned))
    np.testing.assert_allclose(to_numpy(learned), to_numpy(plain), rtol=1e-12, atol=1e-14)
    for x, want in zip((q, k, v), first, strict=True):
        np.testing.assert_allclose(to_numpy(x.grad), want, rtol=1e-10, atol=1e-12)
    assert mask.grad.shape == mask.shape and np.isfinite(to_numpy(mask.grad)).all()
    assert not to_numpy(plain)[:, 2].any() and not to_numpy(mask.grad)[2].any()


def test_masks_in_another_floating_dtype_serve():
    q, k, v = (randoms(3, 4, dtype="bfloat16") for _ in range(3))
    mask = to_yoke(np.array([[0, -np.inf, 0]] * 3, np.float32))
    got = attend(q, k, v, mask)
    assert got.dtype == yoke.bfloat16
    assert to_numpy(got).tobytes() == to_numpy(attend(q, k, v, mask.to(dtype=yoke.bfloat16))).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_mask_in_another_dtype_gets_its_gradient_in_its_own(dtype):
    q, k, v = (randoms(3, 4, dtype="bfloat16") for _ in range(3))
    mask = to_yoke(np.zeros((3, 3))).to(dtype=getattr(yoke, dtype))
    plain = attend(q, k, v, mask)
    learned = attend(q, k, v, mask.requires_grad_(True))
    learned.sum().backward()
    assert learned.dtype == yoke.bfloat16 and mask.grad.dtype == mask.dtype
    np.testing.assert_allclose(to_numpy(learned), to_numpy(plain), rtol=0.03, atol=0.02)


def test_dropout_of_attention_keeps_the_mean_and_draws_its_mask_again_for_the_gradient():
    length = 130
    q, k = yoke.zeros((1, length, 8)), yoke.zeros((1, length, 8))  # every weight is 1 / length
    v = to_yoke(np.eye(length, dtype=np.float32)[None], requires_grad=True)
    yoke.manual_seed(3)
    out = attend(q, k, v, dropout_p=0.25)
    weights = to_numpy(out)[0] * length  # row i: the factors of query i's weights
    np.testing.assert_allclose(np.unique(np.round(weights, 5)), [0, 1 / 0.75], rtol=1e-4)
    assert abs(weights.mean() - 1) < 0.03
    upstream = randoms(1, length, length, dtype="float32")
    out.backward(upstream)
    np.testing.assert_allclose(to_numpy(v.grad)[0], weights.T @ to_numpy(upstream)[0] / length, rtol=1e-3, atol=1e-5)
    yoke.manual_seed(3)
    assert to_numpy(attend(q, k, v, dropout_p=0.25)).tobytes() == to_numpy(out).tobytes()
    assert not to_numpy(attend(q, k, v, dropout_p=1.0)).any()


def test_dropout_of_attention_passes_finite_differences_under_one_seed():
    arrays = [_rng.standard_normal((2, 70, 8)) for _ in range(3)]

    def run(inputs):
        yoke.manual_seed(11)
        return attend(*inputs, is_causal=True, dropout_p=0.5)
    tensors = [to_yoke(a, requires_grad=True) for a in arrays]
    out = run(tensors)
    upstream = _rng.standard_normal(out.shape)
    out.backward(to_yoke(upstream))
    for k, x in enumerate(tensors):
        direction = _rng.standard_normal(arrays[k].shape)
        ends = [np.sum(to_numpy(run([to_yoke(a + s * 1e-6 * direction if i == k else a) for i, a in enumerate(arrays)])) * upstream)
                for s in (1, -1)]
        np.testing.assert_allclose(np.sum(to_numpy(x.grad) * direction), (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5)


def test_the_number_of_threads_changes_no_bit_of_attentions_gradient():
    before = yoke.get_num_threads()
    found = []
    arrays = [_rng.standard_normal((1, 2, 200, 24)).astype(np.float32) for _ in range(3)]
    try:
        for threads in (1, 2, 3):
            yoke.set_num_threads(threads)
            tensors = [to_yoke(a, requires_grad=True) for a in arrays]
            out = attend(*tensors)
            out.backward(yoke.ones_like(out))
            found.append([to_numpy(x.grad).tobytes() for x in tensors])
    finally:
        yoke.set_num_threads(before)
    assert found[0] == found[1] == found[2]


# ---- Errors ----------------------------------------------------------------------------------------------------------

def ones(*shape, dtype=None):
    return yoke.ones(shape, dtype=dtype)


ERRORS = {
    "an activation that is none": (lambda: yoke.linear(ones(2, 3), ones(4, 3), activation="tanh"), yoke.ValueError,
                                   "linear: argument 'activation' is \"tanh\".*\"silu\""),
    "a fused layer of another width": (lambda: yoke.linear(ones(2, 3), ones(5, 4), activation="gelu"), yoke.ValueError,
                                       r"linear: argument 'x' has shape \[2, 3\] and 'weight' \[5, 4\]"),
    "outer of a matrix": (lambda: yoke.outer(ones(2, 3), ones(3)), yoke.ValueError, r"outer: argument 'x' has shape \[2, 3\] and 'y' \[3\]"),
    "einsum of too few tensors": (lambda: yoke.einsum("ij,jk->ik", [ones(2, 3)]), yoke.ValueError,
                                  'einsum: equation "ij,jk->ik": the equation names 2 tensors, but 1 are given'),
    "einsum of nothing": (lambda: yoke.einsum("i", []), yoke.ValueError, "einsum: argument 'tensors' is an empty list"),
    "einsum of sizes that differ": (lambda: yoke.einsum("ij,jk", [ones(2, 3), ones(4, 2)]), yoke.ValueError,
                                    "\"ij,jk\": letter 'j' is 3 in operand 0 and 4 in operand 1"),
    "einsum of a diagonal that is none": (lambda: yoke.einsum("ii", [ones(2, 1)]), yoke.ValueError,
                                          "letter 'i' is 2 in operand 0 and 1 in operand 0"),
    "einsum of other axes": (lambda: yoke.einsum("ijk->i", [ones(2, 3)]), yoke.ValueError,
                             r"\"ijk\" names 3 axes, but operand 0 has shape \[2, 3\]"),
    "einsum of fewer axes than letters": (lambda: yoke.einsum("ij...k", [ones(2, 3)]), yoke.ValueError,
                                          r"names at least 3 axes, but operand 0 has shape \[2, 3\]"),
    "einsum of a digit": (lambda: yoke.einsum("i1", [ones(2, 3)]), yoke.ValueError, "'1' in \"i1\" is not a letter"),
    "einsum of two dots": (lambda: yoke.einsum("i..", [ones(2, 3)]), yoke.ValueError, "'.' in \"i..\" is not a letter"),
    "einsum of two arrows": (lambda: yoke.einsum("ij->i->j", [ones(2, 3)]), yoke.ValueError, "'-' in \"i->j\" is not a letter"),
    "einsum of two ellipses": (lambda: yoke.einsum("...i...", [ones(2, 3)]), yoke.ValueError, "has '...' twice"),
    "einsum to a letter from nowhere": (lambda: yoke.einsum("ij->ik", [ones(2, 3)]), yoke.ValueError,
                                        "letter 'k' of the result is not in any tensor"),
    "einsum to a letter twice": (lambda: yoke.einsum("ij->ii", [ones(2, 3)]), yoke.ValueError, "letter 'i' occurs twice in the result"),
    "einsum without its ellipsis": (lambda: yoke.einsum("...i->i", [ones(2, 3)]), yoke.ValueError, "the result \"i\" has no '...'"),
    "einsum of ellipses that differ": (lambda: yoke.einsum("...i,...i", [ones(2, 3), ones(4, 3)]), yoke.ValueError,
                                       "axis 1 from the end of '...' is 2 in operand 0 and 4 in operand 1"),
    "einsum of two dtypes": (lambda: yoke.einsum("i,i", [ones(2), ones(2, dtype=yoke.float64)]), yoke.TypeError,
                             "einsum: argument 'tensors' has the dtypes float32 and float64"),
    "widths that differ": (lambda: attend(ones(2, 4, 8), ones(2, 4, 6), ones(2, 4, 6)), yoke.ValueError,
                           "'query' has width 8, but 'key' has width 6"),
    "lengths that differ": (lambda: attend(ones(2, 4, 8), ones(2, 4, 8), ones(2, 5, 8)), yoke.ValueError,
                            "'key' has length 4, but 'value' has length 5"),
    "heads that do not divide": (lambda: attend(ones(6, 4, 8), ones(4, 4, 8), ones(4, 4, 8), enable_gqa=True), yoke.ValueError,
                                 "'query' has 6 heads; it must have a multiple of the 4 heads of 'key'"),
    "heads of value that are not key's": (lambda: attend(ones(6, 4, 8), ones(2, 4, 8), ones(3, 4, 8), enable_gqa=True), yoke.ValueError,
                                          "'key' has 2 heads, but 'value' has 3"),
    "groups without heads": (lambda: attend(ones(4, 8), ones(4, 8), ones(4, 8), enable_gqa=True), yoke.ValueError,
                             r"with enable_gqa they must be \[..., heads, length, width\]"),
    "heads that do not broadcast": (lambda: attend(ones(6, 4, 8), ones(2, 4, 8), ones(2, 4, 8)), yoke.ValueError,
                                    "the sizes 6 and 2 .*enable_gqa"),
    "a mask beside causality": (lambda: attend(ones(4, 8), ones(4, 8), ones(4, 8), ones(4, 4), is_causal=True), yoke.ValueError,
                                "'mask' is given and 'is_causal' is true"),
    "a mask of another shape": (lambda: attend(ones(4, 8), ones(3, 8), ones(3, 8), ones(4, 4)), yoke.ValueError,
                                r"'mask' has shape \[4, 4\]; it must broadcast to the shape of the scores, \[4, 3\]"),
    "a mask of one axis": (lambda: attend(ones(4, 8), ones(3, 8), ones(3, 8), ones(3)), yoke.ValueError,
                           r"'mask' has shape \[3\]; it must have two or more axes, .* \[4, 3\]; unsqueeze\(0\)"),
    "a mask of integers": (lambda: attend(ones(4, 8), ones(4, 8), ones(4, 8), ones(4, 4, dtype=yoke.int64)), yoke.TypeError,
                           "'mask' is int64"),
    "dtypes that differ": (lambda: attend(ones(4, 8), ones(4, 8, dtype=yoke.float16), ones(4, 8)), yoke.TypeError,
                           "'query' is float32 and 'key' is float16"),
    "a vector as query": (lambda: attend(ones(8), ones(4, 8), ones(4, 8)), yoke.ValueError, r"'query' has shape \[8\]"),
    "a chance above one": (lambda: attend(ones(4, 8), ones(4, 8), ones(4, 8), dropout_p=1.5), yoke.ValueError, "'dropout_p' is 1.5"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_a_wrong_call_says_what_is_wrong(what):
    wrong, error, message = ERRORS[what]
    with pytest.raises(error, match=message):
        wrong()


def test_attention_without_keys_is_zero_where_the_mask_wants_a_gradient():
    q, k = yoke.ones((1, 2, 4, 4)), yoke.ones((1, 2, 0, 4))
    mask = yoke.zeros((4, 0)).requires_grad_(True)
    y = yoke.scaled_dot_product_attention(q, k, k, mask)
    assert y.shape == (1, 2, 4, 4) and (y == 0).all().item()
    y.sum().backward()


@pytest.mark.parametrize("rows", [1, 3, 16, 17, 33])
def test_halves_of_an_odd_depth_are_multiplied(rows):
    for depth in (33, 63, 95, 127):
        x, y = yoke.randn((rows, depth)).to("bf16"), yoke.randn((depth, 240)).to("bf16")
        want = x.to("f64").numpy() @ y.to("f64").numpy()
        for _ in range(3):
            np.testing.assert_allclose(yoke.matmul(x, y).to("f64").numpy(), want, rtol=2e-2, atol=2e-1)


# A copy of all of b, of all of a, of all matrices of a batch would take 76 to 160 MiB.
@pytest.mark.parametrize("batch, m, n", [(1, 33, 52000), (1, 52000, 33), (130, 400, 70), (2, 300, 52000)])
def test_products_of_an_odd_depth_take_little_memory(batch, m, n):
    depth = 767
    x, y = yoke.randn((batch, m, depth)).to("bf16"), yoke.randn((batch, depth, n)).to("bf16")
    yoke.empty_cache("cpu")
    yoke.reset_peak_memory_stats("cpu")
    before = yoke.memory_allocated("cpu")
    z = yoke.matmul(x, y)
    assert yoke.max_memory_allocated("cpu") - before <= z.nbytes + (66 << 20)
    for some in (slice(None, 40), slice(m // 3, m // 3 + 40), slice(m // 2, m // 2 + 40), slice(-40, None)):
        for at in {0, batch // 2, batch - 1}:
            want = x[at, some].to("f32").numpy() @ y[at].to("f32").numpy()
            np.testing.assert_allclose(z[at, some].to("f32").numpy(), want, rtol=2e-2, atol=5e-1)
