"""index_select: rows by number, from any strides, with a gradient that adds up repeated rows."""

import numpy as np
import pytest

import yoke

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_selects_what_numpy_takes(dtype, axis):
    x = (np.arange(2 * 5 * 3).reshape(2, 5, 3) % 7).astype(dtype)
    index = [1, 0, 1]
    given = yoke.tensor(x.tolist(), dtype=getattr(yoke, dtype))
    got = yoke.index_select(given, axis, yoke.tensor(index))
    np.testing.assert_array_equal(got.numpy(), np.take(x, index, axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_takes_any_strides_of_x_and_of_the_index(axis):
    x = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
    view = yoke.from_dlpack(x).to(yoke.current_device())[::-1, 1::2].transpose(0, 2)
    index = yoke.tensor([2, 9, 1, 9], dtype=yoke.int32)[::2]
    want = np.take(x[::-1, 1::2].transpose(2, 1, 0), [2, 1], axis)
    np.testing.assert_array_equal(yoke.index_select(view, axis, index).numpy(), want)


def test_gives_an_empty_result_for_an_empty_index_or_tensor():
    none = yoke.zeros((0,), dtype=yoke.int64)
    assert yoke.index_select(yoke.ones((3, 2)), 0, none).shape == (0, 2)
    assert yoke.index_select(yoke.ones((3, 0)), 0, yoke.tensor([2, 2])).shape == (2, 0)


@pytest.mark.parametrize("dtype", [yoke.float64, yoke.float32, yoke.float16, yoke.bfloat16])
def test_gradients_of_parts_named_twice_add_up(dtype):
    x = yoke.ones((4, 3), dtype=dtype).requires_grad_(True)
    weights = yoke.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=dtype)
    (x.index_select(0, yoke.tensor([3, 1, 3])) * weights).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [4, 5, 6], [0, 0, 0], [8, 10, 12]]


def test_halves_are_added_up_in_float32_and_rounded_once():
    x = yoke.zeros((1,), dtype=yoke.bfloat16).requires_grad_(True)
    x.index_select(0, yoke.zeros((1000,), dtype=yoke.int64)).sum().backward()
    assert x.grad.item() == 1000  # bfloat16 alone would stop at 256


def test_the_gradient_of_a_sum_arrives_with_strides_of_zero():
    x = yoke.zeros((3, 5)).requires_grad_(True)
    x.index_select(1, yoke.tensor([4, 0, 4])).sum().backward()
    assert x.grad.tolist() == [[1, 0, 0, 0, 2]] * 3


@pytest.mark.parametrize("index, said", [([0, 3], "index[1] is 3"), ([-1], "index[0] is -1")])
def test_a_position_out_of_range_is_an_index_error_that_names_both(index, said):
    with pytest.raises(yoke.IndexError) as error:
        yoke.index_select(yoke.zeros((3, 2)), 0, yoke.tensor(index))
    assert said in str(error.value) and "length 3" in str(error.value)


def test_a_wrong_dtype_shape_or_axis_is_refused():
    x, index = yoke.zeros((3, 2)), yoke.tensor([0])
    with pytest.raises(TypeError, match="'index' is float32"):
        yoke.index_select(x, 0, yoke.zeros((1,)))
    with pytest.raises(ValueError, match="one axis"):
        yoke.index_select(x, 0, yoke.tensor([[0]]))
    with pytest.raises(IndexError):
        yoke.index_select(x, 2, index)
    with pytest.raises(IndexError, match="argument .x. has no axes"):
        yoke.index_select(yoke.tensor(1.0), 0, index)
    with pytest.raises(IndexError, match="empty"):
        yoke.index_select(yoke.zeros((0, 2)), 0, index)


@pytest.mark.skipif(not yoke.is_available("cuda"), reason="of work that a device does late")
def test_a_wrong_index_found_by_a_free_is_told_by_the_next_wait():
    device = yoke.device("cuda")
    caching = yoke.is_caching()
    yoke.set_caching(False)  # each free waits for the device
    try:
        rows = yoke.index_select(yoke.zeros((4,), device=device), 0, yoke.tensor([9], device=device))
        rows.close()
        with pytest.raises(yoke.IndexError, match="9"):
            yoke.synchronize(device)
        yoke.synchronize(device)  # the error is raised once
    finally:
        yoke.set_caching(caching)
