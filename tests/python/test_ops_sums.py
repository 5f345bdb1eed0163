"""Long sums of float32: small terms beside a large sum count."""
import numpy as np
import pytest

import yoke
from op_table import to_numpy, to_yoke

LARGE = 2.0**24  # in float32, adding ones does not change this number


def large_and_ones(count):
    """Returns ones with 2^24 among them; rounding may lose at most 64."""
    x = np.ones(count, np.float32)
    x[count // 3] = LARGE
    return x


def check(got, count):
    assert abs(float(to_numpy(got)) - (LARGE + count - 1)) <= 72, float(to_numpy(got)) - LARGE


@pytest.mark.parametrize("count", [3000, 70000])
def test_reductions_count_ones_beside_a_large_number(count):
    x = large_and_ones(count)
    for op in (yoke.sum, lambda t, axis: yoke.mean(t, axis) * count, lambda t, axis: yoke.norm(t, 1.0, axis)):
        check(op(to_yoke(x), 0), count)
        check(op(to_yoke(np.repeat(x[:, None], 5, 1)), 0)[2], count)
        check(op(to_yoke(np.repeat(x[None], 5, 0)), 1)[2], count)
    check(yoke.cumsum(to_yoke(x), 0)[-1], count)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("count", [3000, 70000])
def test_places_that_many_elements_are_added_to_grow_by_each(count, dtype):
    x, index = to_yoke(large_and_ones(count), dtype), to_yoke(np.zeros(count, np.int64))
    close = 2.0**16 if dtype == "bfloat16" else 72
    want = LARGE + count - 1
    sums = [yoke.scatter_add(yoke.zeros(3, dtype=x.dtype), 0, index, x)[0],
            yoke.scatter_add(yoke.zeros((3, 2), dtype=x.dtype), 0, yoke.expand(index.reshape(count, 1), (count, 2)),
                             yoke.expand(x.reshape(count, 1), (count, 2)))[0, 1]]
    table = yoke.zeros((3, 2), dtype=x.dtype).requires_grad_()
    yoke.embedding(index, table).backward(yoke.expand(x.reshape(count, 1), (count, 2)))
    sums.append(table.grad[0, 1])
    rows = yoke.zeros((3, 2), dtype=x.dtype).requires_grad_()
    rows[index].backward(yoke.expand(x.reshape(count, 1), (count, 2)))
    sums.append(rows.grad[0, 1])
    for each in sums:
        assert abs(float(to_numpy(each)) - want) <= close, float(to_numpy(each)) - want


@pytest.mark.parametrize("length, count", [(300_000, 70_000), (90_000, 3000)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_place_of_a_long_tensor_grows_by_each(length, count, dtype):
    index = yoke.expand(yoke.full([1], 7, dtype="int64"), [count])
    tenth = yoke.full([1], 0.1, dtype=dtype)
    want, close = count * tenth.item(), 2.0**-7 if dtype == "bfloat16" else 1e-6
    x, src = yoke.zeros(length, dtype=dtype), yoke.expand(tenth, [count])
    sums = [yoke.scatter_add(x, 0, index, src)[7], yoke.clone(x).scatter_add_(0, index, src)[7]]
    for shape in ([length], [length, 2]):
        for pick in (lambda x: x[index], lambda x: yoke.index_select(x, 0, index)):
            leaf = yoke.zeros(shape, dtype=dtype, requires_grad=True)
            (pick(leaf) * tenth).sum().backward()
            sums.append(leaf.grad.reshape(length, -1)[7, -1])
    for each in sums:
        assert abs(each.item() - want) <= close * want, each.item() / want - 1


def test_places_that_are_all_named_once_or_twice_get_their_own():
    draw = np.random.default_rng(8)
    x = draw.standard_normal((50_000, 2)).astype(np.float32)
    index = draw.permutation(np.repeat(np.arange(50_000), 2))[:20_000]
    src = draw.standard_normal((20_000, 2)).astype(np.float32)
    want = x.astype(np.float64)
    np.add.at(want, index, src)
    got = yoke.scatter_add(to_yoke(x), 0, yoke.expand(to_yoke(index[:, None]), (20_000, 2)), to_yoke(src))
    np.testing.assert_allclose(to_numpy(got), want, rtol=1e-6, atol=1e-6)
    leaf = to_yoke(x, requires_grad=True)
    leaf[to_yoke(index)].backward(to_yoke(src))
    np.testing.assert_allclose(to_numpy(leaf.grad), want - x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_mean_of_a_large_window_counts_each_element(channels_last):
    count = 150 * 140
    x = to_yoke(np.repeat(large_and_ones(count).reshape(1, 1, 150, 140), 3, 1))
    if channels_last:
        x = yoke.permute(yoke.contiguous(yoke.permute(x, (0, 2, 3, 1))), (0, 3, 1, 2))
    for y in (yoke.avg_pool2d(x, (150, 140)), yoke.adaptive_avg_pool2d(x, (1, 1))):
        assert abs(float(to_numpy(y[0, 1, 0, 0])) * count - (LARGE + count - 1)) <= 80


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_maximum_of_many_windows_gets_the_gradient_of_each(channels_last):
    size = 63
    x = np.zeros((1, 2, 2 * size - 1, 2 * size - 1), np.float32)
    x[..., size - 1, size - 1] = 1
    x = to_yoke(x)
    if channels_last:
        x = yoke.permute(yoke.contiguous(yoke.permute(x, (0, 2, 3, 1))), (0, 3, 1, 2))
    x.requires_grad_()
    yoke.max_pool2d(x, size, stride=1).backward(to_yoke(np.repeat(large_and_ones(size**2).reshape(1, 1, size, size), 2, 1)))
    assert abs(x.grad[0, 1, size - 1, size - 1].item() - LARGE - size**2 + 1) <= 3 * size


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_the_mean_of_a_window_near_the_largest_number_is_finite(dtype, channels_last):
    most = 2.0**1023 if dtype == "float64" else 2.0**127
    x = to_yoke(np.full((1, 3, 4, 6), most), dtype)
    if channels_last:
        x = yoke.permute(yoke.contiguous(yoke.permute(x, (0, 2, 3, 1))), (0, 3, 1, 2))
    for y in (yoke.avg_pool2d(x, 2), yoke.adaptive_avg_pool2d(x, (2, 3))):
        assert np.all(to_numpy(y) == most)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("kernel", [1, 17])
def test_small_numbers_keep_their_mean_in_large_windows_and_beside_lost_ones(channels_last, kernel):
    values = [np.inf, 1e-300, 2.3e-308, np.nan, 1.7e308, 3e-308]
    x = np.repeat(np.repeat(np.array(values), 2 * kernel)[None], kernel, 0)
    if channels_last:
        x = to_yoke(np.repeat(np.array(values), 2)[None, None, None] * np.ones((1, kernel, 2 * kernel, 1)), "float64")
        x, want = yoke.permute(x, (0, 3, 1, 2)), np.repeat(values, 2)
    else:
        x, want = to_yoke(x[None, None], "float64"), np.array(values)
    for y in (yoke.avg_pool2d(x, (kernel, 2 * kernel)), yoke.adaptive_avg_pool2d(x, (1, 1 if channels_last else 6))):
        np.testing.assert_allclose(to_numpy(y).ravel(), want, rtol=1e-13)


@pytest.mark.parametrize("rows", [3000, 70000])
def test_the_gradients_of_linear_count_each_row(rows):
    weight, bias = yoke.zeros((2, 3)).requires_grad_(), yoke.zeros(2).requires_grad_()
    x = yoke.ones((rows, 3))
    grad = to_yoke(np.repeat(large_and_ones(rows)[:, None], 2, 1))
    yoke.linear(x, weight, bias).backward(grad)
    assert np.all(np.abs(to_numpy(weight.grad).astype(np.float64) - (LARGE + rows - 1)) <= 400)
    check(bias.grad[1], rows)


def test_the_gradients_of_norms_by_weight_and_bias_count_each_row():
    rows = 9000
    grad = large_and_ones(rows)
    for name, shape in (("layer_norm", (rows, 4)), ("batch_norm", (rows, 4))):
        weight, bias = yoke.ones(4).requires_grad_(), yoke.zeros(4).requires_grad_()
        x = to_yoke(np.random.default_rng(5).standard_normal(shape).astype(np.float32))
        y = yoke.layer_norm(x, (4,), weight, bias) if name == "layer_norm" else yoke.batch_norm(x, None, None, weight, bias, True)
        y.backward(to_yoke(np.repeat(grad[:, None], 4, 1)))
        assert np.all(np.abs(to_numpy(bias.grad).astype(np.float64) - (LARGE + rows - 1)) <= 140), name
