"""New tensors from sizes and numbers against NumPy: values, dtypes, shapes and refusals."""
import numpy as np
import pytest

import yoke
from op_table import ALL, FLOATS, NUMPY, dtype_of, name_of, to_numpy, to_yoke

SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (2, 3, 4)]


def assert_is(got, want, dtype):
    assert name_of(got.dtype) == dtype and tuple(got.shape) == np.shape(want) and got.is_contiguous()
    np.testing.assert_array_equal(to_numpy(got), np.asarray(want).astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_constants_of_every_dtype_and_shape(shape, dtype):
    assert_is(yoke.zeros(shape, dtype=dtype_of(dtype)), np.zeros(shape), dtype)
    assert_is(yoke.ones(shape, dtype=dtype_of(dtype)), np.ones(shape), dtype)
    assert_is(yoke.full(shape, 3, dtype=dtype_of(dtype)), np.full(shape, 3), dtype)
    x = yoke.empty(shape, dtype=dtype_of(dtype))
    assert tuple(x.shape) == shape and name_of(x.dtype) == dtype


def test_large_constants_are_whole():
    for count in (65_537, 1_000_003):
        assert_is(yoke.full(count, 2.5), np.full(count, 2.5), "float32")


def test_defaults_are_float32_and_what_a_number_is():
    assert name_of(yoke.zeros(2).dtype) == name_of(yoke.empty(2).dtype) == name_of(yoke.eye(2).dtype) == "float32"
    assert [name_of(yoke.full(2, v).dtype) for v in (1, 1.0, True)] == ["int64", "float32", "bool"]
    assert [name_of(yoke.arange(v).dtype) for v in (3, 3.0)] == ["int64", "float32"]
    assert name_of(yoke.linspace(0, 1, 3).dtype) == "float32"


@pytest.mark.parametrize("dtype", [None, *ALL])
def test_the_likes_take_shape_dtype_and_device_of_a_tensor(dtype):
    for source in ALL:
        for shape in ((2, 3), (), (0, 4)):
            x = yoke.transpose(yoke.ones(shape, dtype=dtype_of(source)), 0, -1)
            want, named = (dtype, {"dtype": dtype_of(dtype)}) if dtype else (source, {})
            assert_is(yoke.zeros_like(x, **named), np.zeros(tuple(x.shape)), want)
            assert_is(yoke.ones_like(x, **named), np.ones(tuple(x.shape)), want)
            assert_is(yoke.full_like(x, 2, **named), np.full(tuple(x.shape), 2), want)
            like = yoke.empty_like(x, **named)
            assert tuple(like.shape) == tuple(x.shape) and name_of(like.dtype) == want and like.device == x.device
            assert not yoke.shares_memory(like, x) or not x.numel


def test_a_new_tensor_of_a_tensor_with_gradient_has_none():
    x = to_yoke(np.ones(2), requires_grad=True)
    assert not any(f(x).requires_grad for f in (yoke.zeros_like, yoke.ones_like, yoke.empty_like, yoke.randn_like))


@pytest.mark.parametrize("bounds", [(5,), (0,), (2, 9), (2, 9, 3), (9, 2, -3), (0, 10, 20), (5, 5), (-4, 4), (-3,)])
def test_arange_counts_as_numpy_does(bounds):
    if bounds == (-3,):
        pytest.skip("refused: see below")
    assert_is(yoke.arange(*bounds), np.arange(*bounds), "int64")
    assert_is(yoke.arange(*bounds, dtype=yoke.int32), np.arange(*bounds), "int32")


@pytest.mark.parametrize("bounds", [(5.0,), (0.5, 4), (0, 1, 0.1), (1.0, -1.0, -0.25), (0, 1, 0.3)])
def test_arange_of_floats_is_start_plus_i_steps(bounds):
    got = yoke.arange(*bounds, dtype=yoke.float64)
    np.testing.assert_allclose(to_numpy(got), np.arange(*map(float, bounds)), rtol=1e-15, atol=1e-15)
    assert name_of(yoke.arange(*bounds).dtype) == "float32"


def test_arange_counts_exactly_where_doubles_do_not():
    top = 2**63 - 1
    assert yoke.arange(top - 3, top).tolist() == [top - 3, top - 2, top - 1]
    assert yoke.arange(2**53, 2**53 + 5).tolist() == [2**53 + i for i in range(5)]
    assert yoke.arange(-(2**63), -(2**63) + 2).tolist() == [-(2**63), -(2**63) + 1]


@pytest.mark.parametrize("bounds, told", [
    ((2**53 + 1, 2**53), "'step' is 1; it must be below 0 to go from 9007199254740993 to 9007199254740992"),
    ((1000001.0, 1000000.5), r"'step' is 1; it must be below 0 to go from 1000001 to 1000000\.5"), ((0.1, 0.1 + 1e-12, -0.25), r"'step' is -0\.25; it must be above 0 to go from 0\.1 to 0\.1000000000\d+"),
])
def test_arange_tells_bounds_apart(bounds, told):
    with pytest.raises(yoke.ValueError, match=told):
        yoke.arange(*bounds)


@pytest.mark.parametrize("bounds, got", [((0.5, 3.5), [0, 1, 2]), ((0.5, 3.5, 1.5), [0, 2]), ((-0.5, 2.9), [0, 0, 1, 2]),
                                         ((0, 1, 0.5), [0, 0]), ((3.5, 0.5, -1), [3, 2, 1]), ((2.5,), [0, 1, 2])])
def test_arange_of_integers_cuts_each_value(bounds, got):
    assert yoke.arange(*bounds, dtype=yoke.int64).tolist() == got


@pytest.mark.parametrize("bounds", [(0, 5, 0), (5, 0), (0, 5, -1), (0.0, float("inf")), (float("nan"), 1.0), (0, 1, float("nan"))])
def test_arange_that_leads_nowhere_is_refused(bounds):
    with pytest.raises(yoke.ValueError, match="arange: (argument 'step' is .*; it must be (above|below) 0|arguments 'start', 'stop' and 'step' are .*; all three must be finite)"):
        yoke.arange(*bounds)


def test_linspace_has_both_ends():
    for start, stop, steps in ((0, 1, 5), (1.0, -1.0, 7), (0, 1, 1), (0, 1, 0), (3, 3, 4), (0.1, 0.7, 1001)):
        got = yoke.linspace(start, stop, steps, dtype=yoke.float64)
        np.testing.assert_allclose(to_numpy(got), np.linspace(start, stop, steps), rtol=1e-14, atol=1e-15)
        if steps > 1:
            assert got.tolist()[0] == start and got.tolist()[-1] == stop
    for steps in (3, 4, 5, 100):  # the difference of the ends is no number
        got = yoke.linspace(-1.7e308, 1.7e308, steps, dtype=yoke.float64)
        np.testing.assert_allclose(to_numpy(got), np.linspace(-1.0, 1.0, steps) * 1.7e308, rtol=1e-14, atol=1e294)
    assert [v.numel for v in (yoke.linspace(0, 1, 70_001), yoke.linspace(0, 1, 0))] == [70_001, 0]


def test_eye_has_ones_on_its_diagonal():
    for n, m in ((3, None), (3, 5), (5, 3), (0, None), (0, 3), (1, 1)):
        for dtype in ("float32", "int64", "bool"):
            assert_is(yoke.eye(n, m, dtype=dtype_of(dtype)), np.eye(n, m), dtype)


@pytest.mark.parametrize("make", [yoke.empty, yoke.zeros, yoke.ones, yoke.rand, lambda s: yoke.full(s, 1),
                                  lambda s: yoke.randint(0, 5, s)])
def test_sizes_that_cannot_be_are_refused(make):
    with pytest.raises(yoke.ValueError, match=r"argument 'shape' is \[2, -1\]; each size must be 0 or more"):
        make((2, -1))
    with pytest.raises(yoke.ValueError, match="more elements than memory can address"):
        make((2**32, 2**32))
    with pytest.raises(yoke.ValueError, match="17 axes; a tensor has at most 16"):
        make((1,) * 17)
    with pytest.raises(yoke.OutOfMemoryError, match="."):
        make((2**50,))
    assert make((2**50, 0)).numel == 0


@pytest.mark.parametrize("call", [lambda: yoke.linspace(0, 1, -1), lambda: yoke.eye(-1), lambda: yoke.randperm(-1),
                                  lambda: yoke.arange(0, 2**62, 1e-300)])
def test_negative_and_overflowing_counts_are_refused(call):
    with pytest.raises(yoke.ValueError):
        call()


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "int8", "uint8", "bool"])
def test_full_takes_numbers_that_the_dtype_can_hold(dtype):
    assert_is(yoke.full(3, True, dtype=dtype_of(dtype)), np.ones(3), dtype)
    if dtype != "bool":
        assert_is(yoke.full(3, 100.0, dtype=dtype_of(dtype)), np.full(3, 100.0), dtype)


def test_full_of_a_number_without_end_into_integers_is_refused():
    for value in (float("inf"), float("-inf"), float("nan"), 1e30, -1e30):
        for dtype in (yoke.int64, yoke.int32, yoke.int8, yoke.uint8):
            with pytest.raises(yoke.ValueError, match="full: argument 'value' is .*does not fit into u?int"):
                yoke.full(1000, value, dtype=dtype)
