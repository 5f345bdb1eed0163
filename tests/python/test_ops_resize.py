"""Interpolation beyond the table: memory order, halves, large steps, gradients as transposes, bad input."""
import numpy as np
import pytest

import yoke
from cases_resize import np_interpolate
from op_table import FLOATS, to_numpy, to_yoke

_rng = np.random.default_rng(46)


def refused(kind, *words):
    return pytest.raises(kind, match="".join(f"(?=.*{w})" for w in words))


def drawn(*shape):
    return _rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def nhwc(x):
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


WAYS = [({"size": (9, 14)}, "nearest"), ({"size": (9, 14)}, "bilinear"), ({"size": (3, 4)}, "bilinear"), ({"scale_factor": 2}, "bilinear"),
        ({"size": (9, 14), "align_corners": True}, "bilinear"), ({"size": (1, 1)}, "bilinear"), ({"size": (3, 29)}, "nearest"),
        ({"scale_factor": (0.5, 3)}, "bilinear"), ({"size": (9, 3)}, "nearest-exact")]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("channels", [1, 3, 8, 33])
@pytest.mark.parametrize("named, mode", WAYS)
def test_the_memory_order_stays_and_the_gradient_is_the_transpose(named, mode, channels, dtype):
    x = drawn(2, channels, 6, 7)
    want = np_interpolate(x, mode=mode, **named)
    upstream = drawn(*want.shape)
    slope = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    # The gradient of a linear map: its transpose, from the images of the unit vectors of a plane.
    units = np_interpolate(np.eye(42).reshape(42, 1, 6, 7), mode=mode, **named).reshape(42, -1)
    turned = (upstream.reshape(2, channels, -1) @ units.T).reshape(x.shape)
    for order in (lambda t: t, nhwc):
        leaf = to_yoke(x, dtype, requires_grad=True)
        out = yoke.interpolate(order(leaf), mode=mode, **named)
        assert out.is_contiguous() or (order is nhwc and out.permute(0, 2, 3, 1).is_contiguous())
        np.testing.assert_allclose(to_numpy(out).astype(np.float64), want, rtol=slope, atol=4 * slope)
        out.backward(to_yoke(upstream, dtype))
        np.testing.assert_allclose(to_numpy(leaf.grad).astype(np.float64), turned, rtol=slope, atol=40 * slope)


def test_a_large_step_up_or_down_reads_every_pixel_once():
    x = to_yoke(drawn(1, 2, 2, 3), requires_grad=True)
    yoke.interpolate(x, scale_factor=100, mode="bilinear").sum().backward()
    np.testing.assert_allclose(to_numpy(x.grad).sum(), 2 * 200 * 300)
    y = to_yoke(drawn(1, 1, 300, 500), "float32", requires_grad=True)
    yoke.interpolate(y, (3, 2)).sum().backward()
    assert to_numpy(y.grad).sum() == 6 and set(to_numpy(y.grad).ravel().tolist()) == {0, 1}


def test_the_same_size_is_the_same_image_and_corners_stay_where_they_are_aligned():
    x = to_yoke(drawn(1, 2, 5, 6), "float32")
    for named in ({}, {"mode": "bilinear"}, {"mode": "bilinear", "align_corners": True}):
        np.testing.assert_array_equal(to_numpy(yoke.interpolate(x, (5, 6), **named)), to_numpy(x))
    out = to_numpy(yoke.interpolate(x, (9, 11), mode="bilinear", align_corners=True))
    np.testing.assert_allclose(out[..., ::8, ::10], to_numpy(x)[..., ::4, ::5], rtol=1e-6)
    np.testing.assert_allclose(out[..., ::2, ::2], to_numpy(x), rtol=1e-5, atol=1e-6)


def test_a_scale_is_taken_as_it_is_or_from_the_sizes():
    x = to_yoke(np.arange(5.0).reshape(1, 1, 5), "float64")
    given = yoke.interpolate(x, scale_factor=1.5, mode="linear")
    again = yoke.interpolate(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True)
    assert given.shape == again.shape == (1, 1, 7) and again.tolist() == yoke.interpolate(x, 7, mode="linear").tolist() != given.tolist()


def test_lists_of_numbers_are_lists_of_numbers():
    class Index:
        def __index__(self):
            return 2

    wanted = yoke.interpolate(X, (6, 4)).tolist()
    for scale in (2, 2.0, [2], (2, 2.0), [np.float32(2), np.int64(2)], np.array([2, 2]), Index(), range(2, 3)):
        assert yoke.interpolate(X, scale_factor=scale).tolist() == wanted
    for scale, told in (("2", "a number or a sequence of numbers"), (["2", 2], "'scale_factor' has a str at position 0; it takes numbers"),
                        ([2, None], "has a NoneType at position 1"), (X > 0, "has a yoke.Tensor at position 0"), ([2j], "has a complex at position 0")):
        with pytest.raises(yoke.TypeError, match=told):
            yoke.interpolate(X, scale_factor=scale)


def test_a_shuffle_and_back_is_the_image():
    x = to_yoke(drawn(2, 3, 6, 4), "float32", requires_grad=True)
    y = yoke.pixel_unshuffle(x, 2)
    assert y.shape == (2, 12, 3, 2) and yoke.pixel_shuffle(y, 2).tolist() == x.tolist()
    (yoke.pixel_shuffle(y, 2) * 3).sum().backward()
    assert (to_numpy(x.grad) == 3).all()


X = yoke.ones(1, 4, 3, 2)
REFUSED = {
    "size 0": (lambda: yoke.interpolate(X, 0), ["interpolate", "'size' is", "0", "at least 1"]),
    "size below 0": (lambda: yoke.interpolate(X, (2, -1)), ["interpolate", r"'size' is \[2, -1\]", "at least 1"]),
    "numbers of a scale": (lambda: yoke.interpolate(X, scale_factor=(1.0, 2.0, 3.0)), ["interpolate", "'scale_factor' has 3 numbers", "one, or 2"]),
    "no numbers": (lambda: yoke.interpolate(X, scale_factor=()), ["interpolate", "'scale_factor' has 0 numbers", "one, or 2"]),
    "second scale": (lambda: yoke.interpolate(X, scale_factor=(1, -2)), ["interpolate", "'scale_factor' is -2", "at least 1"]),
    "scale of a size": (lambda: yoke.interpolate(X, 2, recompute_scale_factor=True), ["interpolate", "'recompute_scale_factor'", "'size'"]),
    "numbers": (lambda: yoke.interpolate(X, (1, 2, 3)), ["interpolate", "3 numbers", "takes one, or 2"]),
    "both": (lambda: yoke.interpolate(X, 2, 2.0), ["interpolate", "both of", "'size' and 'scale_factor'"]),
    "none": (lambda: yoke.interpolate(X), ["interpolate", "none of", "'size' and 'scale_factor'"]),
    "scale 0": (lambda: yoke.interpolate(X, scale_factor=0), ["interpolate", "'scale_factor' is 0"]),
    "small scale": (lambda: yoke.interpolate(X, scale_factor=0.4), ["interpolate", "'scale_factor' is 0.4", "at least 1"]),
    "nan": (lambda: yoke.interpolate(X, scale_factor=float("nan")), ["interpolate", "'scale_factor' is nan"]),
    "mode": (lambda: yoke.interpolate(X, 2, mode="bicubic"), ["interpolate", "'mode' is .bicubic.", "bilinear"]),
    "mode of a line": (lambda: yoke.interpolate(X[0], 2, mode="bilinear"), ["interpolate", "'mode' is .bilinear.", "linear"]),
    "corners": (lambda: yoke.interpolate(X, 2, align_corners=True), ["interpolate", "'align_corners'", "nearest"]),
    "axes": (lambda: yoke.interpolate(X[0, 0], 2), ["interpolate", r"\[3, 2\]", r"\[N, C, H, W\]"]),
    "no pixels": (lambda: yoke.interpolate(yoke.ones(1, 1, 0, 2), 2), ["interpolate", r"\[1, 1, 0, 2\]"]),
    "large": (lambda: yoke.interpolate(X, 2**40), ["interpolate"]),
    "shuffle": (lambda: yoke.pixel_shuffle(X, 3), ["pixel_shuffle", "'upscale_factor' 3", r"\[1, 4, 3, 2\]"]),
    "unshuffle": (lambda: yoke.pixel_unshuffle(X, 2), ["pixel_unshuffle", "'downscale_factor' 2", r"\[1, 4, 3, 2\]"]),
    "factor": (lambda: yoke.pixel_shuffle(X, 0), ["pixel_shuffle", "'upscale_factor' is 0"]),
    "axes of a shuffle": (lambda: yoke.pixel_shuffle(X[0, 0], 1), ["pixel_shuffle", r"\[3, 2\]"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_name_the_op_the_argument_and_the_values(name):
    call, words = REFUSED[name]
    with refused(yoke.ValueError, *words):
        call()
