"""Normalisations and embedding beyond the table: running statistics, dtypes, memory orders, bad input."""
import numpy as np
import pytest

import yoke
from cases_norm import np_batch_norm, np_group_norm, np_layer_norm
from op_table import to_numpy, to_yoke

_rng = np.random.default_rng(31)


def normal(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


def refused(kind, *words):
    return pytest.raises(kind, match="".join(f"(?=.*{w})" for w in words))


def nhwc(array):
    """A tensor of NCHW shape whose channels are neighbours in memory."""
    return yoke.permute(to_yoke(np.moveaxis(array, 1, -1).copy()), (0, 3, 1, 2))


def test_batch_norm_moves_the_running_statistics_by_momentum_and_the_unbiased_variance():
    x = normal(6, 3, 4, 5) + 2
    mean, variance = yoke.zeros(3), yoke.ones(3)
    versions = np.zeros(3), np.ones(3)
    for _ in range(3):
        yoke.batch_norm(to_yoke(x), mean, variance, training=True, momentum=0.3)
        versions = (0.7 * versions[0] + 0.3 * x.mean((0, 2, 3)), 0.7 * versions[1] + 0.3 * x.var((0, 2, 3), ddof=1))
    np.testing.assert_allclose(to_numpy(mean), versions[0], rtol=1e-5)
    np.testing.assert_allclose(to_numpy(variance), versions[1], rtol=1e-5)
    assert not mean.requires_grad


def test_batch_norm_without_training_uses_the_running_statistics_and_leaves_them():
    x, mean, variance = normal(4, 3, 5), normal(3), normal(3) ** 2
    kept = to_yoke(mean), to_yoke(variance)
    leaf = to_yoke(x, requires_grad=True)
    out = yoke.batch_norm(leaf, *kept)
    np.testing.assert_allclose(to_numpy(out), np_batch_norm(x, mean, variance), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(to_numpy(kept[0]), mean)
    yoke.sum(out).backward()
    np.testing.assert_allclose(to_numpy(leaf.grad), np.broadcast_to(1 / np.sqrt(variance + 1e-5)[:, None], x.shape), rtol=1e-5)


def test_batch_norm_of_halves_takes_float32_parameters_and_gives_float32_gradients():
    x = to_yoke(normal(8, 4, 6), "bfloat16", requires_grad=True)
    weight, bias = to_yoke(normal(4), requires_grad=True), to_yoke(normal(4), requires_grad=True)
    mean = yoke.zeros(4)
    out = yoke.batch_norm(x, mean, yoke.ones(4), weight, bias, training=True)
    assert out.dtype == yoke.bfloat16 and mean.dtype == yoke.float32
    yoke.sum(out).backward()
    assert (x.grad.dtype, weight.grad.dtype, bias.grad.dtype) == (yoke.bfloat16, yoke.float32, yoke.float32)
    np.testing.assert_allclose(to_numpy(bias.grad), 48, rtol=1e-6)


@pytest.mark.parametrize("op, reference", [("batch_norm", lambda x, w, b: np_batch_norm(x, None, None, w, b, True)),
                                           ("group_norm", lambda x, w, b: np_group_norm(x, 4, w, b))])
def test_an_image_whose_channels_are_neighbours_keeps_its_order_and_gives_the_same_values(op, reference):
    x, weight, bias, upstream = normal(3, 8, 7, 5), normal(8), normal(8), normal(3, 8, 7, 5)

    def run(image, grad):
        image, w, b = image.requires_grad_(), to_yoke(weight, requires_grad=True), to_yoke(bias, requires_grad=True)
        out = yoke.group_norm(image, 4, w, b) if op == "group_norm" else yoke.batch_norm(image, None, None, w, b, True)
        out.backward(grad)
        return out, [image.grad, w.grad, b.grad]
    out, grads = run(nhwc(x), nhwc(upstream))
    assert tuple(out.strides) == (8 * 35, 1, 5 * 8, 8)
    np.testing.assert_allclose(to_numpy(out), reference(x, weight, bias), rtol=1e-4, atol=1e-5)
    for a, b in zip(grads, run(to_yoke(x), to_yoke(upstream))[1], strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shape", [(3, 4, 8), (2, 3, 5, 8)])  # planes, or the rows of one, begin at odd places
@pytest.mark.parametrize("name", ["batch_norm", "group_norm", "evaluated"])
def test_rows_that_lie_a_little_apart_have_the_values_and_gradients_of_dense_ones(name, shape):
    channels = shape[1]
    op = {"batch_norm": lambda x, w, b: yoke.batch_norm(x, None, None, w, b, True),
          "group_norm": lambda x, w, b: yoke.group_norm(x, channels, w, b),
          "evaluated": lambda x, w, b: yoke.batch_norm(x, yoke.zeros(channels), yoke.ones(channels), w, b)}[name]
    wide, grads = normal(*shape[:-1], shape[-1] + 1), normal(*shape[:-1], shape[-1] + 1)
    parameters = normal(channels), normal(channels)

    def run(apart):
        x, grad = (to_yoke(a)[..., :-1] if apart else to_yoke(a[..., :-1].copy()) for a in (wide, grads))
        leaves = [x.requires_grad_(), *(to_yoke(p, requires_grad=True) for p in parameters)]
        out = op(*leaves)
        out.backward(grad)
        return [out, *(leaf.grad for leaf in leaves)]
    for apart, dense in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(to_numpy(apart), to_numpy(dense), rtol=1e-4, atol=1e-5)


def test_a_mean_far_from_zero_costs_no_digits():
    x = (normal(64, 512) + 10_000).astype(np.float32)
    want = np_layer_norm(x.astype(np.float64), (512,))
    np.testing.assert_allclose(to_numpy(yoke.layer_norm(to_yoke(x), (512,))), want, atol=2e-3)
    columns = np_batch_norm(x.astype(np.float64), training=True)
    np.testing.assert_allclose(to_numpy(yoke.batch_norm(to_yoke(x), training=True)), columns, atol=2e-3)


@pytest.mark.parametrize("length", [3, 5, 4101])
def test_values_whose_squares_overflow_have_statistics_at_any_length(length):
    x = normal(1, 2, length) * 1e30
    np.testing.assert_allclose(to_numpy(yoke.group_norm(to_yoke(x), 2)), np_group_norm(x.astype(np.float64), 2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [3, 5, 4101])
def test_equal_values_whose_normal_overflows_have_finite_gradients(length):
    x, g = to_yoke(np.full((1, 2, length), 1e30, np.float32), requires_grad=True), normal(1, 2, length)
    yoke.batch_norm(x, training=True, eps=1e-30).backward(to_yoke(g))
    np.testing.assert_allclose(to_numpy(x.grad) / 1e15, g - g.mean(2, keepdims=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [53, 2049])  # the second is over 8 MiB
def test_a_result_of_many_megabytes_has_the_values_of_a_small_one(rows):
    x, weight, bias = normal(rows, 1027), normal(1027), normal(1027)  # rows off every alignment
    whole = to_numpy(yoke.layer_norm(to_yoke(x), (1027,), to_yoke(weight), to_yoke(bias)))
    part = to_numpy(yoke.layer_norm(to_yoke(x[25:45]), (1027,), to_yoke(weight), to_yoke(bias)))
    np.testing.assert_array_equal(whole[25:45], part)
    np.testing.assert_allclose(whole, np_layer_norm(x.astype(np.float64), (1027,), weight, bias), atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rms_norm_without_eps_takes_the_epsilon_of_its_dtype(dtype):
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}[dtype]
    x = to_yoke(np.full((1, 4), np.sqrt(eps)), dtype)
    np.testing.assert_allclose(to_numpy(yoke.rms_norm(x, (4,))), np.sqrt(0.5), rtol=1e-2)


def test_only_the_bias_may_want_a_gradient():
    x = to_yoke(normal(5, 6, 3))
    for op, size in ((lambda b: yoke.layer_norm(x, (3,), None, b), 3), (lambda b: yoke.group_norm(x, 2, None, b), 6),
                     (lambda b: yoke.batch_norm(x, bias=b, training=True), 6)):
        bias = to_yoke(normal(size), requires_grad=True)
        yoke.sum(op(bias)).backward()
        np.testing.assert_allclose(to_numpy(bias.grad), 90 / size)


def test_the_padding_row_of_an_embedding_gets_no_gradient():
    for padding in (2, -3):
        weight = to_yoke(normal(5, 4), requires_grad=True)
        yoke.sum(yoke.embedding(yoke.tensor([[2, 1], [1, 2]]), weight, padding)).backward()
        np.testing.assert_array_equal(to_numpy(weight.grad)[:, 0], [0, 2, 0, 0, 0])


def test_a_row_that_many_indices_name_adds_up_in_float32():
    weight = to_yoke(np.zeros((3, 2)), "bfloat16", requires_grad=True)
    out = yoke.embedding(yoke.full((5000,), 1, dtype=yoke.int64), weight)
    out.backward(yoke.ones_like(out))
    np.testing.assert_array_equal(to_numpy(weight.grad), [[0, 0], [4992, 4992], [0, 0]])  # 5000 as bfloat16


@pytest.mark.parametrize("index, at, value", [([0, 5], "[1]", "5"), ([[0, 1], [-1, 3]], "[1, 0]", "-1")])
def test_an_index_out_of_range_names_the_op_the_position_the_value_and_the_bound(index, at, value):
    weight = yoke.zeros((5, 3))
    with pytest.raises(yoke.IndexError) as caught:
        yoke.embedding(yoke.tensor(index), weight)
    for word in ("embedding", f"index{at} is {value}", "5 rows"):
        assert word in str(caught.value)
    with refused(yoke.IndexError, "no rows"):
        yoke.embedding(yoke.tensor([0]), yoke.zeros((0, 3)))


def test_bad_arguments_name_the_op_the_argument_and_the_values():
    x, image = yoke.zeros((2, 6)), yoke.zeros((2, 6, 3))
    half = yoke.zeros((2, 6), dtype=yoke.bfloat16)
    with refused(yoke.ValueError, "layer_norm", "normalized_shape", r"\[5\]", r"\[2, 6\]"):
        yoke.layer_norm(x, (5,))
    with refused(yoke.ValueError, "rms_norm", "normalized_shape", r"\[\]"):
        yoke.rms_norm(x, ())
    with refused(yoke.ValueError, "layer_norm", "'weight'", r"\[2\]", r"\[6\]"):
        yoke.layer_norm(x, (6,), yoke.ones(2))
    for op in (lambda w: yoke.layer_norm(half, (6,), w), lambda w: yoke.rms_norm(half, (6,), w), lambda w: yoke.group_norm(half, 2, w)):
        with refused(yoke.TypeError, "norm", "bfloat16", "'weight' is float32"):
            op(yoke.ones(6))
    with refused(yoke.TypeError, "batch_norm", "float32", "'weight' is float64"):
        yoke.batch_norm(x, weight=yoke.ones(6, dtype=yoke.float64), training=True)
    with refused(yoke.ValueError, "group_norm", "num_groups", "4", "6 channels"):
        yoke.group_norm(image, 4)
    with refused(yoke.ValueError, "group_norm", "num_groups", "0"):
        yoke.group_norm(image, 0)
    with refused(yoke.ValueError, "group_norm", r"\[6\]", r"\[N, C"):
        yoke.group_norm(yoke.zeros(6), 2)
    with refused(yoke.ValueError, "batch_norm", r"\[1, 6\]", "one value for each channel"):
        yoke.batch_norm(yoke.zeros((1, 6)), training=True)
    with refused(yoke.ValueError, "batch_norm", "running_mean", "missing"):
        yoke.batch_norm(x)
    with refused(yoke.ValueError, "batch_norm", "running_var", r"\[5\]", r"\[6\]"):
        yoke.batch_norm(x, yoke.zeros(6), yoke.ones(5), training=True)
    with refused(yoke.TypeError, "embedding", "index", "float32"):
        yoke.embedding(x, x)
    with refused(yoke.ValueError, "embedding", "padding_idx", "9", "-2 to 1"):
        yoke.embedding(yoke.tensor([0]), x, 9)
