"""Convolution: cases beyond the samples, and errors that name the wrong argument."""
import numpy as np
import pytest

import yoke
from cases_conv import np_conv2d, np_conv_transpose2d
from op_table import EPSILON, to_numpy, to_yoke

_rng = np.random.default_rng(11)


def randoms(*shape):
    return _rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def nhwc(x):
    """Returns the values, laid out in memory as [N, H, W, C]."""
    return yoke.permute(yoke.clone(yoke.permute(x, (0, 2, 3, 1))), (0, 3, 1, 2))


def slopes(op, arrays, upstream, dtype, layout=lambda x: x, **named):
    """(result, gradients) of a call whose tensors are all leaves."""
    leaves = [to_yoke(a, dtype, requires_grad=True) for a in arrays]
    out = op(layout(leaves[0]), *leaves[1:], **named)
    out.backward(to_yoke(upstream, dtype))
    return [to_numpy(t) for t in (out, *(leaf.grad for leaf in leaves))]


def np_slopes(arrays, upstream, stride, padding, dilation, groups):
    """Gradients of conv2d with a bias: by data as the transpose, by weight tap by tap."""
    x, weight, _ = arrays
    strides = stride if isinstance(stride, tuple) else (stride, stride)
    left = tuple((x.shape[2 + axis] + 2 * padding - dilation * (weight.shape[2 + axis] - 1) - 1) % strides[axis] for axis in (0, 1))
    of_x = np_conv_transpose2d(upstream, weight, None, stride, padding, left, groups, dilation)
    of_weight = np.zeros_like(weight)
    for at in np.ndindex(*weight.shape[2:]):
        one = np.zeros((1, 1, *weight.shape[2:]))
        one[(0, 0, *at)] = 1
        seen = np_conv2d(x.reshape(-1, 1, *x.shape[2:]), one, None, stride, padding, dilation)
        seen = seen.reshape(x.shape[0], groups, -1, *upstream.shape[2:])
        split = upstream.reshape(x.shape[0], groups, -1, *upstream.shape[2:])
        of_weight[(..., *at)] = np.einsum("ngchw,ngohw->goc", seen, split).reshape(weight.shape[:2])
    return [of_x, of_weight, upstream.sum((0, 2, 3))]


# Channels, kernels and positions below and beyond what tiles, panels and parts of each backend hold.
SHAPES = {
    "several tiles": ((1, 19, 9, 13), (70, 19, 3, 3), 1, 1, 1, 1), "a depth beyond a tile's": ((1, 150, 4, 5), (9, 150, 2, 1), 1, 0, 1, 1),
    "strided": ((1, 9, 13, 12), (8, 9, 3, 3), 2, 1, 1, 1), "strided beyond the kernel": ((1, 9, 13, 12), (9, 9, 2, 1), 3, 2, 1, 1),
    "dilated and strided": ((1, 8, 17, 16), (8, 8, 3, 2), 4, 3, 6, 1), "grouped": ((1, 24, 6, 7), (36, 8, 3, 2), 1, 1, 1, 3),
    "small groups": ((1, 12, 9, 8), (24, 2, 3, 3), 2, 1, 1, 6), "depthwise": ((2, 260, 5, 4), (260, 1, 3, 3), 1, 1, 1, 260),
    "depthwise, strided": ((3, 5, 17, 15), (5, 1, 3, 3), 2, 1, 2, 5), "many positions": ((3, 2, 22, 19), (10, 2, 2, 2), 1, 0, 1, 1),
    "pointwise": ((2, 66, 7, 6), (33, 66, 1, 1), 1, 0, 1, 1), "two windows a channel": ((1, 70, 5, 6), (140, 1, 2, 2), 1, 1, 1, 70),
    "a weight packed in pieces": ((2, 64, 4, 3), (256, 64, 3, 3), 1, 1, 1, 1),
}


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients_beyond_one_tile_are_numpys(name):
    x_shape, weight_shape, stride, padding, dilation, groups = SHAPES[name]
    arrays = [randoms(*x_shape), randoms(*weight_shape), randoms(weight_shape[0])]
    numbers = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    value = np_conv2d(*arrays, **numbers)
    upstream = randoms(*value.shape)
    want = [value, *np_slopes(arrays, upstream, stride, padding, dilation, groups)]
    for dtype, error in (("float64", 1e-13), ("float32", 2e-6), ("bfloat16", 1e-2), ("float16", 2e-3)):
        narrow = [np.asarray(to_numpy(to_yoke(a, dtype)), np.float64) for a in (*arrays, upstream)]
        if dtype in ("bfloat16", "float16"):
            value = np_conv2d(*narrow[:3], **numbers)
            want = [value, *np_slopes(narrow[:3], narrow[3], stride, padding, dilation, groups)]
        for k, (got, expected) in enumerate(zip(slopes(yoke.conv2d, narrow[:3], narrow[3], dtype, **numbers), want, strict=True)):
            np.testing.assert_allclose(got.astype(np.float64), expected, rtol=error, atol=error * np.abs(expected).max(),
                                       err_msg=f"{dtype}, {('result', 'x', 'weight', 'bias')[k]}")


@pytest.mark.parametrize("name", SHAPES)
def test_the_transpose_is_the_gradient_by_data(name):
    x_shape, weight_shape, stride, padding, dilation, groups = SHAPES[name]
    arrays = [randoms(*x_shape), randoms(*weight_shape)]
    numbers = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    upstream = randoms(*np_conv2d(*arrays, **numbers).shape)
    _, of_x, _ = slopes(yoke.conv2d, arrays, upstream, "float32", **numbers)
    more = [(n + 2 * padding - dilation * (k - 1) - 1) % stride for n, k in zip(x_shape[2:], weight_shape[2:])]
    got = yoke.conv_transpose2d(to_yoke(upstream, "float32"), to_yoke(arrays[1], "float32"), output_padding=more, **numbers)
    assert to_numpy(got).tobytes() == of_x.tobytes()


@pytest.mark.parametrize("stride, dilation, more", [(1, 2, 1), (1, 3, (2, 0)), ((2, 1), (5, 3), (4, 2)), ((3, 1), (2, 4), (2, 3))])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_a_transpose_is_lengthened_by_less_than_its_dilation(stride, dilation, more, groups):
    x, weight, bias = randoms(2, 6, 5, 4), randoms(6, 2, 3, 2), randoms(2 * groups)
    numbers = {"stride": stride, "padding": 1, "output_padding": more, "groups": groups, "dilation": dilation}
    want = np_conv_transpose2d(x, weight, bias, **numbers)
    upstream = randoms(*want.shape)
    got, of_x, of_weight, of_bias = slopes(yoke.conv_transpose2d, [x, weight, bias], upstream, "float64", **numbers)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(of_bias, upstream.sum((0, 2, 3)), rtol=1e-12)
    # The op is linear in x and in the weight. So a gradient times any step equals the change by the step.
    for of_one, step_x, step_weight in ((of_x, randoms(*x.shape), weight), (of_weight, x, randoms(*weight.shape))):
        step = step_weight if of_one is of_weight else step_x
        np.testing.assert_allclose((of_one * step).sum(), (upstream * np_conv_transpose2d(step_x, step_weight, None, **numbers)).sum(), rtol=1e-9)


def test_results_lie_nhwc_and_an_x_that_does_is_taken_as_it_lies():
    x, weight = to_yoke(randoms(2, 3, 5, 4), "float32"), to_yoke(randoms(6, 3, 3, 3), "float32", requires_grad=True)
    for op, w in ((yoke.conv2d, weight), (yoke.conv_transpose2d, yoke.transpose(weight, 0, 1))):
        out = op(x, w)
        n, c, h, wide = out.shape
        assert out.strides == (h * wide * c, 1, wide * c, c)
        assert to_numpy(op(nhwc(x), w)).tobytes() == to_numpy(out).tobytes()


@pytest.mark.parametrize("lies, copies", [("nhwc", 0), ("row-major", 1)])
def test_an_x_that_does_not_lie_nhwc_is_copied_once_and_that_copy_kept(lies, copies):
    x, weight = to_yoke(randoms(8, 64, 16, 16), "float32"), to_yoke(randoms(1, 64, 1, 1), "float32", requires_grad=True)
    x = nhwc(x) if lies == "nhwc" else x
    before = yoke.memory_allocated()
    out = yoke.conv2d(x, weight)
    assert copies <= (yoke.memory_allocated() - before) / x.nbytes < copies + 0.1
    out.backward(yoke.ones_like(out))
    np.testing.assert_allclose(to_numpy(weight.grad)[0, :, 0, 0], to_numpy(x).sum((0, 2, 3)), rtol=1e-3, atol=1e-3)


def test_the_number_of_threads_changes_no_bit():
    before, found = yoke.get_num_threads(), []
    arrays = {name: [randoms(*x), randoms(*w), randoms(w[0])] for name, (x, w, *_) in SHAPES.items()}
    upstream = {}
    try:
        for threads in (1, 2, 3):
            yoke.set_num_threads(threads)
            found.append([])
            for name, (_, _, stride, padding, dilation, groups) in SHAPES.items():
                numbers = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
                if name not in upstream:
                    upstream[name] = randoms(*np_conv2d(*arrays[name], **numbers).shape)
                found[-1] += [a.tobytes() for a in slopes(yoke.conv2d, arrays[name], upstream[name], "float32", **numbers)]
    finally:
        yoke.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_nothing_to_sum_gives_the_bias_and_a_gradient_of_zero():
    x, weight = yoke.ones((0, 2, 4, 4)).requires_grad_(True), yoke.ones((3, 2, 3, 3)).requires_grad_(True)
    yoke.conv2d(x, weight).sum().backward()
    assert x.grad.shape == (0, 2, 4, 4) and not to_numpy(weight.grad).any()
    got = yoke.conv2d(yoke.ones((1, 2, 0, 3)), yoke.ones((2, 2, 1, 3)), yoke.tensor([3.0, 5.0]), padding=(1, 0))
    assert got.tolist() == [[[[3], [3]], [[5], [5]]]]
    got = yoke.conv_transpose2d(yoke.ones((1, 1, 2, 2)), yoke.ones((1, 1, 1, 1)), yoke.full((1,), 7.0), 3)
    np.testing.assert_array_equal(to_numpy(got)[0, 0], [[8, 7, 7, 8], [7, 7, 7, 7], [7, 7, 7, 7], [8, 7, 7, 8]])


def test_what_is_not_a_number_reaches_only_windows_that_hold_it():
    values = np.ones((1, 2, 6, 6), np.float32)
    values[0, 1, 0, 0] = np.nan
    got = np.isnan(to_numpy(yoke.conv2d(yoke.tensor(values), yoke.ones((9, 2, 3, 3)), padding=1)))
    assert got[0, :, :2, :2].all() and got.sum() == 9 * 4


# ---- Errors ----------------------------------------------------------------------------------------------------------

def ones(*shape, dtype=None):
    return yoke.ones(shape, dtype=dtype)


X, W = (1, 4, 5, 6), (6, 4, 3, 3)
HUGE = 2**63 - 1


def conv(*numbers, x=X, w=W, **named):
    return yoke.conv2d(ones(*x), ones(*w), *numbers, **named)


def transpose(x=X, w=(4, 6, 3, 3), **named):
    return yoke.conv_transpose2d(ones(*x), ones(*w), **named)


ERRORS = {
    "an x of two axes": (lambda: conv(x=(4, 5)), r"conv2d: argument 'x' has shape \[4, 5\]; it must be \[N, C, H, W\], or \[C, H, W\]"),
    "a weight of three axes": (lambda: conv(w=(6, 4, 3)), r"conv2d: argument 'weight' has shape \[6, 4, 3\]; it must be \[out, in / groups"),
    "an x of no row": (lambda: yoke.conv1d(ones(4), ones(1, 1, 1)), r"conv1d: argument 'x' has shape \[4\]; it must be \[N, C, L\], or \[C, L\]"),
    "a weight of conv1d": (lambda: yoke.conv1d(ones(1, 4), ones(1, 1)), r"conv1d: argument 'weight' has shape \[1, 1\]; it must be \[out, in / groups, size\]"),
    "channels": (lambda: conv(w=(6, 3, 3, 3)), r"conv2d: argument 'x' of shape \[1, 4, 5, 6\] has 4 channels, but 'weight' of shape \[6, 3, 3, 3\] takes 3 in 1 group"),
    "channels of the transpose": (lambda: transpose(w=(5, 6, 3, 3)), r"conv_transpose2d: argument 'x' .*has 4 channels, but 'weight' .*takes 5 in 1 group"),
    "channels in groups": (lambda: conv(groups=2), r"has 4 channels, but 'weight' of shape \[6, 4, 3, 3\] takes 8 in 2 group"),
    "groups": (lambda: conv(w=(6, 1, 3, 3), groups=4), r"conv2d: argument 'groups' is 4; .* 6 output channels of 'weight' of shape"),
    "groups of the transpose": (lambda: transpose(groups=3), "argument 'groups' is 3; .* 4 input channels"),
    "no groups": (lambda: conv(groups=0), "conv2d: argument 'groups' is 0; it must be at least 1"),
    "a bias": (lambda: yoke.conv2d(ones(*X), ones(*W), ones(4)), r"conv2d: argument 'bias' has shape \[4\]; for a 'weight' of shape \[6, 4, 3, 3\] .* must be \[6\]"),
    "a bias of the transpose": (lambda: yoke.conv_transpose2d(ones(*X), ones(4, 3, 3, 3), ones(3), groups=2), r"must be \[6\]"),
    "a window of nothing": (lambda: conv(w=(6, 4, 0, 3)), r"conv2d: argument 'weight' has shape \[6, 4, 0, 3\]; its window must have at least 1"),
    "stride": (lambda: conv(stride=0), r"conv2d: argument 'stride' is \[0\]; it must be at least 1"),
    "stride of one axis": (lambda: conv(stride=(2, 0)), r"conv2d: argument 'stride' is \[2, 0\]; it must be at least 1"),
    "stride of conv1d": (lambda: yoke.conv1d(ones(1, 4), ones(1, 1, 1), stride=-1), r"conv1d: argument 'stride' is \[-1\]; it must be at least 1"),
    "dilation": (lambda: conv(dilation=-2), r"conv2d: argument 'dilation' is \[-2\]; it must be at least 1"),
    "padding": (lambda: conv(padding=-1), r"conv2d: argument 'padding' is \[-1\]; it must be at least 0"),
    "three numbers": (lambda: conv(padding=(1, 2, 3)), "conv2d: argument 'padding' has 3 numbers; give one, or two for height and width"),
    "no numbers": (lambda: conv(stride=()), "conv2d: argument 'stride' has 0 numbers"),
    "a window beyond x": (lambda: conv(dilation=3, padding=(0, 1)),
                          r"conv2d: argument 'weight' .*dilation \[3, 3\] a window of \[7, 7\], but 'x' .*padding \[0, 1\] has only \[5, 8\]; use a smaller window"),
    "a window beyond a row": (lambda: yoke.conv1d(ones(1, 4), ones(1, 1, 5)), r"conv1d: argument 'weight' .*dilation \[1\] a window of \[5\], but 'x' of shape \[1, 4\] .*has only \[4\]"),
    "output_padding": (lambda: transpose(stride=2, output_padding=(1, 2)), r"conv_transpose2d: argument 'output_padding' is \[1, 2\]; it must be below 'stride' \[2, 2\] or below 'dilation' \[1, 1\], in each axis"),
    "output_padding of one axis": (lambda: transpose(stride=(1, 3), dilation=(2, 1), output_padding=(1, 3)),
                                   r"argument 'output_padding' is \[1, 3\]; it must be below 'stride' \[1, 3\] or below 'dilation' \[2, 1\]"),
    "a transpose of nothing": (lambda: transpose(padding=4), r"conv_transpose2d: argument 'x' has shape \[1, 4, 5, 6\], which with padding \[4, 4\] gives a result of \[-1, 0\]"),
    "a transpose of no row": (lambda: transpose(x=(1, 4, 0, 6)), r"'x' has shape \[1, 4, 0, 6\].*must be at least 1"),
    "padding that overflows": (lambda: conv(padding=HUGE), r"conv2d: argument 'x' has shape \[1, 4, 5, 6\], .*padding \[9223372036854775807, .*beyond 64 bits"),
    "dilation that overflows": (lambda: conv(dilation=HUGE), "conv2d: argument 'x' .* beyond 64 bits"),
    "a result that overflows": (lambda: conv(padding=2**40), r"conv2d: shape \[1, 6, 2199023255555, 2199023255556\] has more elements than memory"),
    "a transpose that overflows": (lambda: transpose(stride=HUGE), "conv_transpose2d: argument 'x' .* beyond 64 bits"),
    "a transpose that is too large": (lambda: transpose(stride=2**40), r"conv_transpose2d: shape \[1, 6, 4398046511107, .*more elements than memory"),
    "groups that overflow": (lambda: yoke.conv2d(ones(1, 4, 5, 6), ones(0, 3, 3, 3), groups=HUGE), "'weight' .*takes more than memory holds in 9223372036854775807 group"),
    "channels that overflow": (lambda: yoke.conv_transpose2d(ones(1, 0, 5, 6), ones(0, 3, 3, 3), groups=HUGE), "conv_transpose2d: argument 'groups' is 9223372036854775807; .*exceed 64 bits"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_does_not_fit_is_told_with_both_values(name):
    run, message = ERRORS[name]
    with pytest.raises(yoke.ValueError, match=message):
        run()


@pytest.mark.parametrize("weight, bias, message", [
    ("float64", "float32", "conv2d: argument 'x' is float32, but 'weight' is float64; cast one of them first"),
    ("float32", "bfloat16", "conv2d: argument 'x' is float32, but 'bias' is bfloat16; cast one of them first")])
def test_dtypes_that_differ_are_a_type_error(weight, bias, message):
    with pytest.raises(yoke.TypeError, match=message):
        yoke.conv2d(ones(*X), ones(*W, dtype=weight), ones(6, dtype=bias))


def test_numbers_of_any_size_that_fit_are_taken():
    assert yoke.conv2d(ones(*X), ones(*W), stride=HUGE).shape == (1, 6, 1, 1)
    assert yoke.conv2d(ones(*X), ones(6, 4, 1, 1), dilation=HUGE).shape == (1, 6, 5, 6)
    x, weight = ones(1, 1, 2, 3).requires_grad_(True), ones(1, 1, 2, 2).requires_grad_(True)
    far = 2**31
    out = yoke.conv2d(x, weight, stride=HUGE - 1, padding=(far, far), dilation=2 * far + 1)
    assert out.shape == (1, 1, 1, 1)
    out.sum().backward()
    assert to_numpy(x.grad).shape == (1, 1, 2, 3) and not to_numpy(x.grad)[0, 0, 0, 1:].any()
    out = yoke.conv2d(ones(1, 3, 2, 3), ones(1, 3, 1, 2), padding=(0, 2**61), stride=(1, 2**62))
    assert out.shape == (1, 1, 2, 2) and not to_numpy(out).any()
    assert yoke.conv_transpose2d(ones(1, 1, 1, 1), ones(1, 1, 1, 1), stride=HUGE, padding=0).shape == (1, 1, 1, 1)


def test_float_results_keep_their_precision():
    x, w = randoms(1, 300, 3, 3), randoms(2, 300, 3, 3)
    exact = np_conv2d(x, w)
    for dtype in ("float64", "float32"):
        got = to_numpy(yoke.conv2d(to_yoke(x, dtype), to_yoke(w, dtype)))
        np.testing.assert_allclose(got, exact, rtol=0, atol=64 * EPSILON[dtype] * np.abs(exact).max())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_bias_is_added_before_the_one_rounding(dtype):
    """256.625 - 256: after two roundings a 16-bit float keeps only 256. Small sizes take Yoke's own loops."""
    for side in (2, 16):
        x, weight, bias = ones(1, 64, side, side, dtype=dtype), np.full((64, 32, 1, 1), 4.0), np.full(32, -256.0)
        weight[0] = 4.625
        for op, operand in ((yoke.conv_transpose2d, weight), (yoke.conv2d, weight.swapaxes(0, 1))):
            out = to_numpy(op(x, to_yoke(operand, dtype), to_yoke(bias, dtype)))
            assert (out.astype(np.float64) == 0.625).all(), op.__name__


def soil():
    """Leaves freed memory with values that show up in any result that reads them."""
    del [yoke.full((2**power,), 3e38) for power in range(8, 22) for _ in range(2)][:]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_places_of_a_window_that_meet_padding_alone_get_no_gradient(dtype):
    for n, channels, out, side, kernel, padding, dilation, groups in [
            (4, 64, 64, (1, 1), (3, 3), 1, 1, 1), (2, 64, 16, (2, 1), (3, 3), 1, 1, 1), (2, 16, 64, (5, 2), (2, 5), 2, 1, 1),
            (3, 16, 16, (3, 1), (3, 3), 2, 2, 1), (3, 24, 24, (4, 1), (4, 3), 1, 1, 3), (2, 4, 8, (6, 1), (2, 3), 1, 1, 1),
            (1, 8, 8, (1, 12), (1, 3), 12, 12, 1)]:
        is_cpu = yoke.device("auto").kind == "cpu"
        if channels > 24 and not is_cpu:  # equal there, and slow under emulation
            continue
        for stride in (1, 2, (1, 3), (3, 2)) if is_cpu else (2,):
            x = yoke.randn((n, channels, *side)).to(dtype)
            weight = yoke.randn((out, channels // groups, *kernel)).to(dtype).requires_grad_(True)
            result = yoke.conv2d(x, weight, None, stride, padding, dilation, groups)
            grad = yoke.randn(result.shape).to(dtype)
            soil()
            result.backward(grad)
            want = np_slopes([to_numpy(t.detach()) for t in (x, weight)] + [None], to_numpy(grad), stride, padding, dilation, groups)[1]
            np.testing.assert_allclose(to_numpy(weight.grad), want, rtol=2e-2, atol=2e-2 * np.abs(want).max())


def test_padding_far_beyond_the_input_takes_no_time_and_memory_of_its_own():
    for dtype in ("f32", "bf16"):
        x = yoke.randn((1, 16, 3, 3)).to(dtype).requires_grad_(True)
        weight = yoke.randn((16, 16, 3, 3)).to(dtype).requires_grad_(True)
        before = yoke.max_memory_allocated()
        out = yoke.conv2d(x, weight, padding=2**24, dilation=2**24)
        out.backward(yoke.ones_like(out))
        assert yoke.max_memory_allocated() - before < 2**20
        centre = to_numpy(weight.detach())[:, :, 1, 1]
        np.testing.assert_allclose(to_numpy(out.detach()), np.einsum("oc,nchw->nohw", centre, to_numpy(x.detach())), rtol=2e-2, atol=1e-1)


@pytest.mark.skipif(yoke.device("auto").kind != "cpu", reason="of the CPU's kernels")
def test_gradients_by_weight_copy_no_more_windows_than_there_is_room_for():
    x = yoke.randn((8, 16, 4096, 1)).to("bf16")
    weight = yoke.randn((16, 16, 63, 1)).to("bf16").requires_grad_(True)
    yoke.conv2d(x, weight, padding=(31, 0)).sum().backward()  # gets the memory that oneDNN needs
    before = yoke.memory_allocated()
    out = yoke.conv2d(x, weight, padding=(31, 0))
    yoke.reset_peak_memory_stats()
    out.sum().backward()
    assert yoke.max_memory_allocated() - before < 2**26


@pytest.mark.parametrize("shape, kernel", [((3, 40, 25, 16), (1, 3)), ((1, 64, 22, 16), (1, 2)), ((1, 64, 23, 26), (1, 3)), ((2, 40, 16, 25), (3, 1))])
def test_windows_that_leave_rows_out_are_convolved_in_halves(shape, kernel):
    x, weight = yoke.randn(shape).to("bf16"), yoke.randn((3, shape[1], *kernel)).to("bf16")
    for stride, dilation in ((2, 1), (1, 2)):
        want = np_conv2d(to_numpy(x), to_numpy(weight), None, stride, 0, dilation)
        np.testing.assert_allclose(to_numpy(yoke.conv2d(x, weight, None, stride, 0, dilation)), want, rtol=2e-2, atol=2e-2 * np.abs(want).max())
