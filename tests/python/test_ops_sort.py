"""sort, argsort and topk: stability, NaN, every dtype and length, both results, and what k may be."""
import math

import numpy as np
import pytest

import yoke
from op_table import ALL, FLOATS, LAYOUTS, to_numpy, to_yoke

LENGTHS = [1, 2, 15, 16, 17, 255, 256, 257, 1000, 5000]


def ties(dtype, *shape):
    """Returns few different values, which show the stability of a sort."""
    whole = np.random.default_rng(len(shape)).integers(0 if dtype in ("uint8", "bool") else -3, 4, shape)
    return whole > 1 if dtype == "bool" else whole.astype("float32" if dtype == "bfloat16" else dtype)


def order(x, axis, descending):
    ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-ranks if descending else ranks, axis=axis, kind="stable")


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_in_every_dtype_and_length(dtype, descending):
    for n in LENGTHS:
        array = ties(dtype, 3, n)
        values, index = yoke.sort(to_yoke(array, dtype), -1, descending)
        want = order(array, -1, descending)
        np.testing.assert_array_equal(to_numpy(index), want)
        np.testing.assert_array_equal(to_numpy(values), np.take_along_axis(array, want, -1))
        np.testing.assert_array_equal(to_numpy(yoke.argsort(to_yoke(array, dtype), -1, descending)), want)
        assert values.dtype == getattr(yoke, dtype) and index.dtype == yoke.int64


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "float64", "float32", "float16"])
def test_the_whole_range_of_a_dtype_sorts(dtype):
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 256, 3000 * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
    array = raw[~np.isnan(raw)] if raw.dtype.kind == "f" else raw
    np.testing.assert_array_equal(to_numpy(yoke.sort(to_yoke(array.copy()))[0]), np.sort(array))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [10, 600])
def test_nan_is_the_largest_and_zeros_of_both_signs_are_equal(dtype, n):
    array = np.zeros(n, np.float32)
    array[[1, 4]] = -0.0
    array[[2, 7]] = math.nan
    array[3], array[5] = math.inf, -math.inf
    zeros = [i for i in range(n) if i not in (2, 3, 5, 7)]
    x = yoke.tensor(array).to(dtype=getattr(yoke, dtype))
    values, index = yoke.sort(x)
    assert index.tolist() == [5, *zeros, 3, 2, 7]
    assert np.signbit(to_numpy(values))[1:6].tolist() == np.signbit(array[zeros[:5]]).tolist()
    assert yoke.argsort(x, descending=True).tolist() == [2, 7, 3, *zeros, 5]
    assert yoke.topk(x, 3)[1].tolist() == [2, 7, 3]
    assert yoke.topk(x, 3, largest=False)[1].tolist() == [5, 0, 1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_both_results_are_numpys_along_any_axis_of_any_layout(axis, layout):
    array = ties("float32", 6, 40, 5)
    x = LAYOUTS[layout](to_yoke(array))
    want = order(array, axis, True)
    values, index = yoke.sort(x, axis, True)
    np.testing.assert_array_equal(to_numpy(index), want)
    np.testing.assert_array_equal(to_numpy(values), np.take_along_axis(array, want, axis))
    values, index = yoke.topk(x, 2, axis)
    np.testing.assert_array_equal(to_numpy(index), np.take(want, [0, 1], axis))
    np.testing.assert_array_equal(to_numpy(values), np.take_along_axis(array, np.take(want, [0, 1], axis), axis))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("largest", [True, False])
def test_topk_takes_the_first_of_equals_however_it_selects(dtype, largest):
    for n in LENGTHS:
        array = ties(dtype, 4, n)
        want = order(array, 1, largest)
        for k in {0, 1, n // 20, n // 3, n}:
            values, index = yoke.topk(to_yoke(array, dtype), k, 1, largest)
            np.testing.assert_array_equal(to_numpy(index), want[:, :k], err_msg=f"{k} of {n}")
            np.testing.assert_array_equal(to_numpy(values), np.take_along_axis(array, want[:, :k], 1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_rows_on_one_side_of_zero_takes_nothing_else(dtype, largest):
    for n in (257, 1000, 5000):
        array = np.random.default_rng(n).permutation(n).reshape(1, n).repeat(3, 0).astype("float64") / (1 if dtype == "int32" else n)
        array = (-1 - array if largest else 1 + array).astype(dtype)
        values, _ = yoke.topk(to_yoke(array), 5, 1, largest)
        np.testing.assert_array_equal(to_numpy(values), (-np.sort(-array, 1) if largest else np.sort(array, 1))[:, :5])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", [1024, 2048, 4096])
def test_rows_of_the_very_length_of_a_tile_sort(n, dtype):
    array = np.random.default_rng(n).permutation(3 * n).reshape(3, n).astype(dtype)
    values, index = yoke.sort(to_yoke(array), -1)
    np.testing.assert_array_equal(to_numpy(values), np.sort(array, -1))
    np.testing.assert_array_equal(to_numpy(index), np.argsort(array, -1))


def test_topk_of_a_rising_row_replaces_all_it_has():
    values, index = yoke.topk(yoke.arange(10_000), 50)
    assert values.tolist() == index.tolist() == list(range(9999, 9949, -1))


def test_the_gradient_goes_back_to_where_the_values_came_from():
    x = to_yoke(np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 4.0]]), requires_grad=True)
    values, _ = yoke.sort(x, 1)
    values.backward(yoke.tensor(np.array([[10.0, 20, 30], [10, 20, 30]])))
    assert x.grad.tolist() == [[30, 10, 20], [20, 30, 10]]
    x.grad = None
    values, _ = x.topk(1, 1)
    values.backward(yoke.tensor(np.array([[7.0], [8.0]])))
    assert x.grad.tolist() == [[7, 0, 0], [8, 0, 0]]


def test_indices_have_no_gradient_and_several_results_come_as_a_tuple():
    x = yoke.ones(3, dtype=yoke.float32).requires_grad_(True)
    results = x.sort()
    assert isinstance(results, tuple) and len(results) == 2
    assert results[0].requires_grad and not results[1].requires_grad


@pytest.mark.parametrize("k, shape", [(-1, (3, 4)), (5, (3, 4)), (2, ()), (1, (3, 0))])
def test_a_k_out_of_range_names_it_the_axis_and_the_shape(k, shape):
    with pytest.raises(yoke.ValueError, match=rf"topk: argument 'k' is {k}; .* \d, the length of axis \d of shape \[.*\]"):
        yoke.topk(yoke.ones(shape), k)


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_an_axis_out_of_range_is_an_index_error(name):
    with pytest.raises(yoke.IndexError, match=f"{name}.*2"):
        getattr(yoke, name)(yoke.ones((3, 4)), 2)


def test_more_rows_than_blocks_are_sorted_and_selected_from():
    x = np.random.default_rng(0).permutation(40 * 1000).reshape(40, 1000).astype("float32")
    np.testing.assert_array_equal(to_numpy(yoke.sort(to_yoke(x), -1)[0]), np.sort(x, -1))
    x = np.random.default_rng(0).permutation(20 * 5000).reshape(20, 5000).astype("float32")
    np.testing.assert_array_equal(to_numpy(yoke.topk(to_yoke(x), 7)[0]), -np.sort(-x, -1)[:, :7])
