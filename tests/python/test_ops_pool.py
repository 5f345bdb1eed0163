"""Pooling: cases beyond the samples, and errors that name the wrong argument."""
import itertools
import sys

import numpy as np
import pytest

import instruction_sets
import yoke
from cases_pool import _windows, np_adaptive_avg_pool2d, np_avg_pool2d, np_max_pool2d
from op_table import FLOATS, to_numpy, to_yoke
from test_ops_conv import HUGE, nhwc, ones

_rng = np.random.default_rng(12)
INF, NAN = float("inf"), float("nan")


def randoms(*shape):
    return _rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def slope(op, x, upstream, layout=lambda x: x):
    """(result, gradient) of a call."""
    leaf = x.detach().requires_grad_(True)
    out = op(layout(leaf))
    out.backward(upstream)
    return out.detach(), leaf.grad


def windows(size, kernel, stride=None, padding=0, dilation=1, rounds_up=False):
    """Returns the positions of each window of an axis, and its count with padding."""
    return [(taps, end - first) for first, taps, end in _windows(size, kernel, stride or kernel, padding, dilation, rounds_up)]


def shares(size, count):
    return [(range(o * size // count, -(-(o + 1) * size // count)), None) for o in range(count)]


def np_slope(x, upstream, down, across, divisor=None, counts=True, choose=None):
    """The gradient of the mean of each window, or of what choose(x of the window [N, C, taps]) picks."""
    grad = np.zeros_like(x)
    for (i, (rows, high)), (j, (columns, wide)) in itertools.product(enumerate(down), enumerate(across)):
        taps = np.array([(y, z) for y in rows for z in columns])
        if choose:
            y, z = np.moveaxis(taps[choose(x[:, :, taps[:, 0], taps[:, 1]])], -1, 0)
            np.add.at(grad, (*np.ogrid[:x.shape[0], :x.shape[1]], y, z), upstream[:, :, i, j])
        else:
            counted = divisor or (high * wide if high and counts else len(taps))
            grad[:, :, taps[:, 0], taps[:, 1]] += upstream[:, :, i, j, None] / counted
    return grad


# Channels, rows and places around the sizes of lanes; windows that overlap, leave pixels out or hang over ends.
MAX = {"usual": ((2, 5, 9, 8), 3, 2, 1, 1), "apart": ((1, 3, 11, 12), 2, 5, 1, 1), "dilated": ((1, 4, 12, 13), 3, 2, 1, 3), "many channels": ((1, 300, 5, 4), 2, 1, 1, 1),
       "long rows": ((1, 2, 4, 530), 3, 1, 1, 1), "long rows, strided": ((1, 2, 3, 600), 3, 2, 1, 1), "places of four bytes": ((1, 2, 21, 20), 17, 1, 8, 1),
       "beyond x": ((2, 5, 2, 3), 4, 3, 0, 1, True), "dilated beyond x": ((1, 3, 5, 4), 3, 9, 1, 4, True), "a row beyond x": ((1, 2, 1, 530), 600, 301, 200, 1, True)}
MEANS = {"usual": ((2, 5, 9, 8), (3, 2, 1)), "not counting": ((2, 5, 9, 8), (3, 2, 1, True, False)), "apart": ((1, 3, 11, 12), (2, 5, 1)),
         "many channels": ((1, 300, 5, 4), (2, 1, 1)), "long rows": ((1, 2, 4, 530), (3, 1, 1)), "divided": ((1, 2, 6, 7), (3, 1, 0, False, True, 4)),
         "beyond x": ((2, 5, 2, 3), (4, 3, 0, True)), "beyond x, not counting": ((2, 5, 2, 3), (5, 4, 1, True, False)), "a row beyond x": ((1, 2, 1, 530), (600, 301, 200, True))}
SHARES = {"to one": ((2, 3, 5, 7), 1), "uneven": ((2, 3, 7, 9), (3, 4)), "to more": ((1, 2, 3, 5), (7, 6)), "many channels": ((1, 300, 5, 4), 2), "long rows": ((1, 2, 3, 530), (2, 270))}
NEAR = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1e-2}


def check(op, reference, gradient, shape, dtype):
    x = np.asarray(to_numpy(to_yoke(_rng.permutation(np.linspace(-2, 2, int(np.prod(shape)))).reshape(shape), "float16")), np.float64)
    if dtype == "bfloat16":
        x = np.asarray(to_numpy(to_yoke(x, dtype)), np.float64)
    want = reference(x)
    upstream = np.asarray(to_numpy(to_yoke(randoms(*want.shape), dtype)), np.float64)
    of_x = gradient(x, upstream)
    for layout in (lambda t: t, nhwc):
        for got, wanted in zip(slope(op, to_yoke(x, dtype), to_yoke(upstream, dtype), layout), (want, of_x)):
            np.testing.assert_allclose(to_numpy(got).astype(np.float64), wanted, rtol=NEAR[dtype], atol=NEAR[dtype] * np.abs(wanted).max())


def check_all(dtype):
    def first_maximum(seen):
        return seen.argmax(-1)

    for shape, numbers in ((shape, numbers) for shape, *numbers in MAX.values()):
        check(lambda x: yoke.max_pool2d(x, *numbers), lambda x: np_max_pool2d(x, *numbers),
              lambda x, g: np_slope(x, g, *(windows(n, *numbers) for n in shape[2:]), choose=first_maximum), shape, dtype)
    for shape, numbers in MEANS.values():
        rounds_up, counts, divisor = (*numbers[3:], *(False, True, None)[len(numbers) - 3:])
        check(lambda x: yoke.avg_pool2d(x, *numbers), lambda x: np_avg_pool2d(x, *numbers),
              lambda x, g: np_slope(x, g, *(windows(n, *numbers[:3], 1, rounds_up) for n in shape[2:]), divisor, counts), shape, dtype)
    for shape, size in SHARES.values():
        sizes = (size, size) if isinstance(size, int) else size
        check(lambda x: yoke.adaptive_avg_pool2d(x, size), lambda x: np_adaptive_avg_pool2d(x, size),
              lambda x, g: np_slope(x, g, *(shares(n, count) for n, count in zip(shape[2:], sizes))), shape, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_and_gradients_are_numpys_in_either_order(dtype):
    check_all(dtype)


@pytest.mark.parametrize("isa", instruction_sets.NAMES)
def test_values_and_gradients_on_every_instruction_set(isa):
    instruction_sets.run(isa, __file__)


@pytest.mark.parametrize("shape, window", [((2, 600, 9, 7), (3, 2, 1)), ((1, 256, 8, 7), (3, 2, 1)), ((1, 64, 12, 11), (5, 2, 2)),
                                           ((2, 64, 14, 15), (7, 2, 3)), ((1, 5, 40, 37), (17, 3, 4)), ((2, 3, 30, 31), (9, 1, 4, 2)),
                                           ((2, 70, 12, 11), ((2, 5), (1, 2), (1, 2), (3, 1))), ((1, 300, 20, 20), (9, 4, 0)),
                                           ((1, 64, 8, 16), ((3, 2), (1, 2))),  # tiles of as many pixels as the threads hold in whole turns
                                           ((1, 32, 24, 23), ((9, 5), (1, 2), 0, (1, 2)))])  # tiles of as many windows as shared memory has room for
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_maxima_of_many_channels_and_of_large_windows_are_the_same_in_either_order(dtype, shape, window):
    values = np.round(np.random.default_rng(3).standard_normal(shape) * 4)
    values[0, 1, 2, 3] = NAN
    x = to_yoke(values, dtype)
    grad = to_yoke(np.random.default_rng(4).integers(-3, 4, yoke.max_pool2d(x, *window).shape).astype(np.float64), dtype)
    found = [slope(lambda x: yoke.max_pool2d(x, *window), x, grad, layout) for layout in (lambda t: t, nhwc)]
    for a, b in zip(*found):
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))


@pytest.mark.parametrize("layout", [lambda t: t, nhwc])
def test_results_and_gradients_keep_the_order_of_x(layout):
    x = layout(yoke.randn((2, 3, 6, 8)))
    for op in (lambda x: yoke.max_pool2d(x, 2), lambda x: yoke.avg_pool2d(x, 2), lambda x: yoke.adaptive_avg_pool2d(x, 3)):
        leaf = x.detach().requires_grad_(True)
        out = op(leaf)
        out.sum().backward()
        assert (out.strides[1] == 1) == (leaf.grad.strides[1] == 1) == (x.strides[1] == 1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", [lambda t: t, nhwc])
def test_the_first_maximum_wins_and_the_first_that_is_not_a_number(dtype, layout):
    values = np.array([[1, 5, 5], [5, NAN, 0], [NAN, 2, 2], [-INF, -INF, -INF], [-INF, 3, NAN]])
    x = to_yoke(np.stack([values, values], 0)[None], dtype)
    out, grad = slope(lambda x: yoke.max_pool2d(x, (1, 3)), x, yoke.ones((1, 2, 5, 1), dtype=x.dtype), layout)
    for c in (0, 1):
        np.testing.assert_array_equal(to_numpy(out)[0, c, :, 0].astype(np.float64), [5, NAN, NAN, -INF, NAN])
        np.testing.assert_array_equal(to_numpy(grad)[0, c].astype(np.float64), [[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_a_window_of_padding_alone_has_no_maximum_and_no_gradient():
    out, grad = slope(lambda x: yoke.max_pool2d(x, 2, 1, 1, 3), yoke.ones((1, 1, 2, 2)), yoke.ones((1, 1, 1, 1)))
    assert out.tolist() == [[[[-INF]]]] and not to_numpy(grad).any()


@pytest.mark.parametrize("kernel, bytes_each", [(2, 1), (16, 1), (17, 4)])
def test_a_maximum_keeps_a_byte_and_four_where_windows_are_large(kernel, bytes_each):
    x = yoke.ones((1, 8, 64, 64))
    before = yoke.memory_allocated()
    out = yoke.max_pool2d(x, kernel, 1)
    assert yoke.memory_allocated() - before == pytest.approx(out.nbytes, abs=8192)
    del out
    out = yoke.max_pool2d(x.requires_grad_(True), kernel, 1)
    assert yoke.memory_allocated() - before == pytest.approx(out.nbytes * (4 + bytes_each) / 4, abs=8192)


def test_windows_far_beyond_x_take_no_time():
    assert yoke.avg_pool2d(yoke.ones((1, 1, 3, 3)), 2**40, 1, 2**39, count_include_pad=False).tolist() == [[[[1.0] * 4] * 4]]
    tenths = yoke.full((1, 1, 128, 128), 0.1)
    np.testing.assert_allclose(yoke.avg_pool2d(tenths, 2**40, count_include_pad=False, padding=2**39, stride=2**40).numpy(), 0.1, rtol=2e-7)
    assert yoke.max_pool2d(yoke.ones((1, 1, 2, 3)), (1, 2**30), 1, (0, 2**29)).tolist() == [[[[1.0] * 4] * 2]]


def test_numbers_of_any_size_that_fit_are_taken():
    values = randoms(1, 2, 6, 5)
    for layout in (lambda t: t, nhwc):
        x = layout(to_yoke(values, "float32"))
        for window, narrow in ((dict(stride=HUGE), dict(stride=6)), (dict(stride=(1, HUGE)), dict(stride=(1, 5)))):
            for pool in (yoke.max_pool2d, yoke.avg_pool2d):
                got, want = (leaf.detach().requires_grad_(True) for leaf in (x, x))
                for leaf, numbers in ((got, window), (want, narrow)):
                    pool(leaf, 3, padding=1, **numbers).sum().backward()
                np.testing.assert_array_equal(to_numpy(got.grad), to_numpy(want.grad))
        assert to_numpy(yoke.max_pool2d(x, 1, stride=1, dilation=HUGE)).tolist() == to_numpy(x).tolist()


ERRORS = {
    "an x of two axes": (lambda: yoke.max_pool2d(ones(4, 5), 2), r"max_pool2d: argument 'x' has shape \[4, 5\]; it must be \[N, C, H, W\], or \[C, H, W\]"),
    "an x of no pixels": (lambda: yoke.avg_pool2d(ones(1, 2, 0, 3), 2, padding=1), r"avg_pool2d: argument 'x' has shape \[1, 2, 0, 3\]; its height and width must"),
    "no kernel": (lambda: yoke.max_pool2d(ones(1, 2, 3, 3), 0), r"max_pool2d: argument 'kernel_size' is \[0\]; it must be at least 1"),
    "three numbers": (lambda: yoke.avg_pool2d(ones(1, 2, 3, 3), (1, 2, 3)), "avg_pool2d: argument 'kernel_size' has 3 numbers; give one, or two"),
    "stride": (lambda: yoke.max_pool2d(ones(1, 2, 3, 3), 2, 0), r"max_pool2d: argument 'stride' is \[0\]; it must be at least 1"),
    "dilation": (lambda: yoke.max_pool2d(ones(1, 2, 3, 3), 2, 1, 0, 0), r"max_pool2d: argument 'dilation' is \[0\]; it must be at least 1"),
    "padding": (lambda: yoke.max_pool2d(ones(1, 2, 3, 3), (2, 3), 1, (1, 2)), r"max_pool2d: argument 'padding' is \[1, 2\]; .* 'kernel_size', \[2, 3\]"),
    "padding below 0": (lambda: yoke.avg_pool2d(ones(1, 2, 3, 3), 2, 1, -1), r"avg_pool2d: argument 'padding' is \[-1\]; it must be at least 0"),
    "a window beyond x": (lambda: yoke.max_pool2d(ones(1, 2, 3, 4), (2, 5), 1, (0, 0), (2, 1)),
                          r"max_pool2d: argument 'kernel_size' is \[2, 5\], a window of \[3, 5\] with dilation \[2, 1\], but 'x' of shape \[1, 2, 3, 4\] with padding \[0, 0\] has only \[3, 4\]"),
    "a window that hangs over by a stride": (lambda: yoke.avg_pool2d(ones(1, 2, 3, 4), (2, 7), (1, 3), 0, True),
                                             r"a window of \[2, 7\] .*, but 'x' of shape \[1, 2, 3, 4\] with padding \[0, 0\] has only \[3, 4\], which ceil_mode may exceed by less than the stride, \[1, 3\]; use a smaller"),
    "sizes that overflow": (lambda: yoke.avg_pool2d(ones(1, 2, 3, 3), 2**63 - 1, 1, 2**62 - 1), "avg_pool2d: argument 'x' has shape .* beyond 64 bits; use smaller numbers"),
    "dilation that overflows": (lambda: yoke.max_pool2d(ones(1, 2, 3, 3), 3, 1, 0, 2**62), "max_pool2d: argument 'x' has shape .* beyond 64 bits"),
    "places beyond 32 bits": (lambda: yoke.max_pool2d(ones(1, 2, 3, 3), 2**16, 1, 2**15), r"max_pool2d: argument 'kernel_size' is \[65536, 65536\]; a window must have at most 2147483647"),
    "a divisor": (lambda: yoke.avg_pool2d(ones(1, 2, 3, 3), 2, divisor_override=0), "avg_pool2d: argument 'divisor_override' is 0; it must be at least 1"),
    "no output": (lambda: yoke.adaptive_avg_pool2d(ones(1, 2, 3, 3), (0, 1)), r"adaptive_avg_pool2d: argument 'output_size' is \[0, 1\]; it must be at least 1"),
    "an output that overflows": (lambda: yoke.adaptive_avg_pool2d(ones(1, 2, 3, 3), 2**40), r"adaptive_avg_pool2d: shape \[1, 2, 1099511627776, 1099511627776\] has more elements"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_does_not_fit_is_told_with_both_values(name):
    run, message = ERRORS[name]
    with pytest.raises(yoke.ValueError, match=message):
        run()


@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
def test_integers_are_refused(op):
    with pytest.raises(yoke.TypeError, match=f"{op}: argument 'x' is int32"):
        getattr(yoke, op)(yoke.ones((1, 2, 3, 3), dtype=yoke.int32), 1)


if __name__ == "__main__":
    for kind in FLOATS:
        check_all(kind)
    sys.exit(0)
