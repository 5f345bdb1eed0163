"""batch_norm_add_relu and add_layer_norm: bits equal to the separate ops, both results, dtypes, memory orders, bad input."""
import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke

_rng = np.random.default_rng(53)
IMAGES = [(4, 8, 7, 5), (2, 70, 3, 3), (1, 6, 5, 4), (9, 5), (3, 4, 1100), (2, 300, 2, 3)]


def normal(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


def nhwc(array):
    """A tensor of the array's shape whose channels are neighbours in memory."""
    last = to_yoke(np.moveaxis(array, 1, -1).copy())
    return yoke.permute(last, (0, last.ndim - 1, *range(1, last.ndim - 1)))


def apart(array):
    """Returns a tensor with a small gap between rows."""
    return to_yoke(np.concatenate([array, array[..., :1]], -1))[..., :-1]


LIE = {"nchw": to_yoke, "nhwc": nhwc, "apart": apart}


def refused(kind, *words):
    return pytest.raises(kind, match="".join(f"(?=.*{w})" for w in words))


def same(got, want):
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == b.dtype and tuple(a.shape) == tuple(b.shape)
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b), err_msg=f"number {i}")


def in_pieces(x, residual, *rest, **named):
    y = yoke.batch_norm(x, *rest, **named)
    return yoke.relu(y if residual is None else y + residual)


def with_gradients(op, upstream, *leaves):
    """Returns the results of op, and the gradients of its leaves."""
    leaves = [None if leaf is None else leaf.detach().requires_grad_() for leaf in leaves]
    results = op(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum(yoke.sum(y * g.to(y.dtype)) for y, g in zip(results, upstream, strict=True) if g is not None)
    loss.backward()
    return [*results, *(leaf.grad for leaf in leaves if leaf is not None)]


# ---- batch_norm_add_relu ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluated"])
@pytest.mark.parametrize("adds", [True, False], ids=["residual", "alone"])
@pytest.mark.parametrize("lies", LIE)
@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_float32_has_the_bits_of_the_three_ops_and_of_their_gradients(shape, lies, adds, training):
    channels = shape[1]
    x, residual, upstream = normal(*shape) + 1, normal(*shape), LIE[lies](normal(*shape))
    weight, bias = to_yoke(normal(channels)), to_yoke(normal(channels))

    def run(op):
        mean, variance = to_yoke(np.full(channels, 0.3), "float32"), to_yoke(np.full(channels, 2.0), "float32")
        leaves = [LIE[lies](x), LIE[lies](residual) if adds else None, weight, bias]
        found = with_gradients(lambda x, r, w, b: op(x, r, mean, variance, w, b, training), [upstream], *leaves)
        return [*found, mean, variance]
    same(run(yoke.batch_norm_add_relu), run(in_pieces))


def turned(array):
    """Returns a tensor with the last two axes swapped in memory."""
    return to_yoke(np.swapaxes(array, -1, -2).copy()).transpose(-1, -2)


@pytest.mark.parametrize("comes", [*LIE.values(), turned, lambda array: to_yoke(array[..., :1]).expand(array.shape)],
                         ids=[*LIE, "turned", "spread"])
@pytest.mark.parametrize("lies", [*LIE.values(), turned], ids=[*LIE, "turned"])
def test_whatever_order_a_gradient_comes_in_the_bits_are_those_of_the_three_ops(lies, comes):
    shape = (4, 16, 9, 11)
    x, residual, upstream = normal(*shape), normal(*shape), normal(*shape)

    def run(op):
        leaves = [t.detach().requires_grad_() for t in (lies(x), lies(residual), to_yoke(np.full(16, 2, np.float32)), to_yoke(np.zeros(16, np.float32)))]
        op(*leaves[:2], None, None, *leaves[2:], True).backward(comes(upstream))
        return [leaf.grad for leaf in leaves]
    same(run(yoke.batch_norm_add_relu), run(in_pieces))


def test_only_what_wants_a_gradient_gets_one():
    x, residual, w, b = normal(3, 5, 4), normal(3, 5, 4), normal(5), normal(5)

    def run(op, which):
        leaves = [to_yoke(a, requires_grad=i in which) for i, a in enumerate((x, residual, w, b))]
        op(leaves[0], leaves[1], None, None, *leaves[2:], True).backward(to_yoke(residual))
        assert [leaf.grad is not None for leaf in leaves] == [i in which for i in range(4)]
        return [leaf.grad for leaf in leaves if leaf.grad is not None]
    for which in ([0], [1], [2], [3], [0, 1], [1, 3], [1, 2], [0, 3]):
        same(run(yoke.batch_norm_add_relu, which), run(in_pieces, which))


def test_where_nothing_comes_through_the_gradient_is_zero_and_nan_comes_through():
    x = to_yoke(np.array([[[1.0, -1.0, 2.0, -2.0]]]), requires_grad=True)
    residual = to_yoke(np.array([[[-9.0, -9.0, -9.0, np.nan]]]), requires_grad=True)
    out = yoke.batch_norm_add_relu(x, residual, training=True)
    np.testing.assert_array_equal(to_numpy(out), [[[0, 0, 0, np.nan]]])
    out.backward(yoke.ones_like(out))
    np.testing.assert_array_equal(to_numpy(residual.grad), [[[0, 0, 0, 1]]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("lies", LIE)
def test_halves_round_once_and_their_parameters_may_be_float32(dtype, lies):
    x, residual, upstream = normal(4, 40, 3, 5), normal(4, 40, 3, 5), normal(4, 40, 3, 5)
    wide = [to_yoke(normal(40)), to_yoke(normal(40))]

    def run(dtype, *parameters):
        leaves = [LIE[lies](a).to(dtype).to("float32" if dtype == "float32" else dtype) for a in (x, residual)]
        return with_gradients(lambda x, r, w, b: yoke.batch_norm_add_relu(x, r, None, None, w, b, True),
                              [to_yoke(upstream)], *leaves, *parameters)
    got, want = run(dtype, *wide), run("float32", *wide)
    assert [a.dtype for a in got[:3]] == [getattr(yoke, dtype)] * 3 and got[3].dtype == yoke.float32
    error = 2.0**-9 if dtype == "float16" else 2.0**-6
    for a, b in zip(got[:1], want[:1], strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=error, atol=4 * error)
    # The mask lets gradient bits through unchanged.
    mask = to_numpy(got[0]) > 0
    np.testing.assert_array_equal(to_numpy(got[2]), np.where(mask, to_numpy(to_yoke(upstream, dtype)), 0))


def test_an_image_keeps_its_order():
    image = nhwc(normal(3, 8, 7, 5)).requires_grad_()
    residual = nhwc(normal(3, 8, 7, 5)).requires_grad_()
    out = yoke.batch_norm_add_relu(image, residual, training=True)
    out.backward(yoke.ones_like(out))
    strides = (8 * 35, 1, 5 * 8, 8)
    assert [tuple(t.strides) for t in (out, image.grad, residual.grad)] == [strides] * 3


def test_bad_input_names_the_op_the_argument_and_both_values():
    x = yoke.ones((2, 3, 4))
    with refused(yoke.ValueError, "batch_norm_add_relu", "'residual'", r"\[2, 3\]", r"\[2, 3, 4\]"):
        yoke.batch_norm_add_relu(x, yoke.ones((2, 3)), training=True)
    with refused(yoke.TypeError, "batch_norm_add_relu", "'residual' is bfloat16", "float32"):
        yoke.batch_norm_add_relu(x, yoke.ones((2, 3, 4), dtype=yoke.bfloat16), training=True)
    with refused(yoke.ValueError, "batch_norm_add_relu", "running_mean", "missing"):
        yoke.batch_norm_add_relu(x)
    with refused(yoke.ValueError, "batch_norm_add_relu", "one value for each channel"):
        yoke.batch_norm_add_relu(yoke.ones((1, 3)), training=True)
    with refused(yoke.ValueError, "batch_norm_add_relu", "'weight'", r"\[4\]", r"\[3\]"):
        yoke.batch_norm_add_relu(x, weight=yoke.ones(4), training=True)


# ---- add_layer_norm --------------------------------------------------------------------------------------------------


def sum_and_norm(x, residual, shape, w, b, eps=1e-5, dtype=None):
    total = x + residual
    y = yoke.layer_norm(total, shape, w, b, eps)
    return total, y if dtype is None else y.to(dtype)


ROWS = [((6, 8), 1), ((3, 5, 83), 1), ((2, 3, 4), 2), ((40, 300), 1), ((5,), 1), ((2, 5000), 1), ((0, 4), 1), ((300, 64), 1)]


@pytest.mark.parametrize("affine", [True, False], ids=["affine", "plain"])
@pytest.mark.parametrize("used", ["both", "sum", "norm"])
@pytest.mark.parametrize("shape, axes", ROWS, ids=str)
def test_float32_has_the_bits_of_the_sum_and_its_norm_and_of_their_gradients(shape, axes, used, affine):
    x, residual, upstream = normal(*shape), normal(*shape) + 1, [to_yoke(normal(*shape)), to_yoke(normal(*shape))]
    upstream = [g if used in ("both", name) else None for g, name in zip(upstream, ("sum", "norm"), strict=True)]
    parameters = [to_yoke(normal(*shape[-axes:])) if affine and used != "sum" else None for _ in range(2)]

    def run(op):
        return with_gradients(lambda x, r, w, b: op(x, r, shape[-axes:], w, b, 1e-3), upstream, to_yoke(x), to_yoke(residual),
                              *parameters)
    same(run(yoke.add_layer_norm), run(sum_and_norm))


@pytest.mark.parametrize("lies", ["transposed", "apart", "backwards"])
def test_rows_may_lie_anyhow(lies):
    def laid(array):
        if lies == "transposed":
            return yoke.transpose(to_yoke(array.T.copy()), 0, 1)
        return apart(array) if lies == "apart" else yoke.flip(to_yoke(array[::-1].copy()), [0])
    x, residual, w, b, g = normal(37, 24), normal(37, 24), to_yoke(normal(24)), to_yoke(normal(24)), to_yoke(normal(37, 24))
    found = [with_gradients(lambda x, r, w, b: op(x, r, (24,), w, b), [g, g], laid(x), laid(residual), w, b)
             for op in (yoke.add_layer_norm, sum_and_norm)]
    for a, c in zip(*found, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(c), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_a_half_is_added_to_float32_and_the_norm_given_in_a_half_without_a_cast_apart(half):
    x, residual = to_yoke(normal(33, 48), half), to_yoke(normal(33, 48))
    w, b, g = to_yoke(normal(48)), to_yoke(normal(48)), [to_yoke(normal(33, 48)), to_yoke(normal(33, 48), half)]

    def run(op):
        return with_gradients(lambda x, r, w, b: op(x, r, (48,), w, b, dtype=getattr(yoke, half)), g, x, residual, w, b)
    got = run(yoke.add_layer_norm)
    names = ["float32", half, half, "float32", "float32", "float32"]
    assert [t.dtype for t in got] == [getattr(yoke, name) for name in names]
    same(got, run(sum_and_norm))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_tensors_of_one_dtype_have_a_sum_and_a_norm_of_that(dtype):
    x, residual, w = (to_yoke(normal(*shape), dtype) for shape in ((9, 40), (9, 40), (40,)))
    g = [to_yoke(normal(9, 40), dtype)] * 2
    found = [with_gradients(lambda x, r, w: op(x, r, (40,), w, None), g, x, residual, w) for op in (yoke.add_layer_norm, sum_and_norm)]
    same(found[0][:2], found[1][:2])
    error = {"float16": 2.0**-8, "bfloat16": 2.0**-5, "float64": 1e-14}[dtype]
    for a, b in zip(*found, strict=True):
        assert a.dtype == getattr(yoke, dtype)
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=error, atol=4 * error)


def test_two_halves_that_differ_add_up_in_float32():
    total, y = yoke.add_layer_norm(to_yoke(normal(3, 8), "float16"), to_yoke(normal(3, 8), "bfloat16"), (8,))
    assert total.dtype == y.dtype == yoke.float32


def test_gradients_of_both_results_are_those_of_differences():
    x, residual, w, b = (_rng.standard_normal(s) for s in ((4, 5), (4, 5), (5,), (5,)))
    up = [_rng.standard_normal((4, 5)) for _ in range(2)]

    def value(*arrays):
        results = yoke.add_layer_norm(*(to_yoke(a, "float64") for a in arrays[:2]), (5,), *(to_yoke(a, "float64") for a in arrays[2:]))
        return sum(float((to_numpy(y) * g).sum()) for y, g in zip(results, up, strict=True))
    arrays = [x, residual, w, b]
    found = with_gradients(lambda x, r, w, b: yoke.add_layer_norm(x, r, (5,), w, b), [to_yoke(g, "float64") for g in up],
                           *(to_yoke(a, "float64") for a in arrays))[2:]
    for which, grad in enumerate(found):
        for place in np.ndindex(arrays[which].shape):
            moved = []
            for step in (1e-6, -1e-6):
                changed = [a.copy() for a in arrays]
                changed[which][place] += step
                moved.append(value(*changed))
            np.testing.assert_allclose(to_numpy(grad)[place], (moved[0] - moved[1]) / 2e-6, rtol=1e-6, atol=1e-8)


def test_bad_sums_name_the_argument_and_both_values():
    x = yoke.ones((2, 4))
    with refused(yoke.ValueError, "add_layer_norm", "'residual'", r"\[4\]", r"\[2, 4\]"):
        yoke.add_layer_norm(x, yoke.ones(4), (4,))
    with refused(yoke.TypeError, "add_layer_norm", "float32", "float64"):
        yoke.add_layer_norm(x, yoke.ones((2, 4), dtype=yoke.float64), (4,))
    with refused(yoke.TypeError, "add_layer_norm", "'residual'", "int64"):
        yoke.add_layer_norm(x, yoke.ones((2, 4), dtype=yoke.int64), (4,))
    with refused(yoke.TypeError, "add_layer_norm", "'dtype' is float64", "float32"):
        yoke.add_layer_norm(x, x, (4,), dtype=yoke.float64)
    with refused(yoke.TypeError, "add_layer_norm", "float32", "'weight' is bfloat16"):
        yoke.add_layer_norm(x, x, (4,), yoke.ones(4, dtype=yoke.bfloat16))
    with refused(yoke.ValueError, "add_layer_norm", "'bias'", r"\[3\]", r"\[4\]"):
        yoke.add_layer_norm(x, x, (4,), None, yoke.ones(3))
    with refused(yoke.ValueError, "add_layer_norm", "normalized_shape", r"\[3\]"):
        yoke.add_layer_norm(x, x, (3,))


@pytest.mark.parametrize("dtype, error", [("float64", 1e-12), ("float32", 2e-5), ("float16", 2e-2), ("bfloat16", 1e-1)])
@pytest.mark.parametrize("channels", [4, 21, 64, 83])
def test_any_number_of_channels_side_by_side_has_the_results_of_planes(channels, dtype, error):
    # 252 rows of channels: whole blocks and a part of a block; whole vectors, and single columns beside them.
    arrays = [normal(4, channels, 7, 9) for _ in range(3)]
    values = [np.asarray(to_numpy(to_yoke(a, dtype)), np.float64) for a in arrays]

    def found(lay, dtype):
        x, residual, upstream = (lay(a).to(dtype) for a in values)
        leaves = [x.requires_grad_(), residual.requires_grad_(), *(yoke.ones(channels, dtype=yoke.float64).to(dtype).requires_grad_() for _ in range(2))]
        out = yoke.batch_norm_add_relu(x, residual, None, None, *leaves[2:], True)
        out.backward(upstream)
        return [to_numpy(t.detach().to("float64")) for t in (out, *(leaf.grad for leaf in leaves))]

    for name, ours, theirs in zip(("out", "x", "residual", "weight", "bias"), found(nhwc, dtype), found(to_yoke, "float64")):
        assert np.abs(ours - theirs).max() <= error * np.abs(theirs).max(), name
