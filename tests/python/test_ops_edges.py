"""Single pass over the op table at the sizes where kernels' buffers, vectors and tiles end: the part of the sweeps for sanitizers.

Each op is called like its large sample, with an axis of an edge's length and short other axes, then in every layout, with an
expanded axis, and backward. The samples of options follow, once each. test_ops_table.py and the rest sweep dtypes and values;
these files run without sanitizers, and with sanitizers in a soak.
"""
import numpy as np
import pytest

import yoke
from op_cases import CASES
from op_harness import assert_values, expected, inputs_of, invoke, judged_of, map_arrays, result_dtype, tensors_of
from op_samples import Call, call, values
from op_table import LAYOUTS, OPS, to_numpy, to_yoke

EDGES = (511, 512, 513)  # a buffer of 512 elements, of 256 and of 128, vectors of up to 64, a tile: 1 less, all, 1 more
TILE = (31, 32, 33)  # the other sides of a product
PRODUCTS = {"matmul", "linear", "einsum", "outer", "scaled_mm", "scaled_dot_product_attention", "mm", "bmm", "mv", "dot", "addmm", "baddbmm"}
FIXED = {"view", "unflatten", "tile", "pixel_unshuffle"}  # sizes that determine other sizes
TAKES_INDICES = {n for n in CASES if not inputs_of(CASES[n].calls[0])}
SIDES = {"last": -1, "first": 0}
SHORT = 16  # sides up to this one are of the op's own: channels, groups


# Replacements for large samples of several long axes.
SMALLER = {
    "permute": call(values(2, 43, 70), (2, 0, 1)),
    "scaled_dot_product_attention": call(values(130, 40), values(150, 40), values(150, 36), is_causal=True),
    "group_norm": call(values(2, 12, 29), 4, values(12), values(12)),
    "batch_norm": call(values(3, 10, 26), None, None, values(10), values(10), True),
    "batch_norm_add_relu": call(values(3, 10, 26), values(3, 10, 26), None, None, values(10), values(10), True),
}


def sample_of(name):
    return SMALLER.get(name, CASES[name].large)


def arrays_of(sample):
    found = []
    map_arrays(lambda a: found.append(a) or a, sample)
    return found


def resized(sample, side, edge, other=7):
    """Returns the sample with a new length: every length equal to the first array's on that side becomes the edge, the rest is
    short.
    """
    long = arrays_of(sample)[0].shape[SIDES[side]]

    def length(n):
        return edge if n == long else n if n <= SHORT else other

    def number(value):
        if isinstance(value, (tuple, list)) and all(isinstance(v, int) for v in value):
            return type(value)(map(number, value))
        return length(value) if isinstance(value, int) and not isinstance(value, bool) and value > SHORT else value

    def array(a):
        b = np.resize(a, tuple(map(length, a.shape)))
        if a.ndim == 1 and a.size > 1 and np.all(a[1:] >= a[:-1]):
            b = np.sort(b)  # searches need a sorted vector
        return b % 3 if b.dtype.kind == "i" else b
    args, named = map_arrays(array, Call(tuple(map(number, sample.args)), {k: number(v) for k, v in sample.named.items()}))
    return Call(tuple(args), named)


def dtypes_of(name):
    if name in TAKES_INDICES:
        return ["int64"]
    # Products in float64 and int64 run in Yoke's own loops; oneDNN may serve other dtypes.
    own = ["float64", "int64"] if name in PRODUCTS else []
    return [d for d in ("float32", "float16", "bfloat16", "int8", *own) if d in CASES[name].dtypes]


def check(name, sample, dtype, layout, what):
    case = CASES[name]
    if dtype == "int8" and name in PRODUCTS | {"sum", "prod", "cumsum", "scatter_add", "scatter_add_"}:
        return  # NumPy's reference does not wrap
    got = invoke(OPS[name], sample, dtype, layout)
    assert_values(case, got, expected(case, sample, dtype), result_dtype(OPS[name], case, sample, dtype), f"{name}{what} {dtype}")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", [n for n in CASES if n not in FIXED])
def test_an_axis_that_ends_where_buffers_do_has_numpys_values(name, side):
    for edge, other in zip(EDGES, TILE if name in PRODUCTS else (7, 7, 7), strict=True):
        sample = resized(sample_of(name), side, edge, other)
        for dtype in dtypes_of(name):
            check(name, sample, dtype, LAYOUTS["contiguous"], f" of {edge} along the {side} axis")


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n != "contiguous"])
@pytest.mark.parametrize("name", [n for n in CASES if n not in FIXED])
def test_such_an_axis_may_have_any_strides(name, layout):
    sample = resized(sample_of(name), "last", 513)
    for dtype in dtypes_of(name)[:1] + dtypes_of(name)[2:3]:
        check(name, sample, dtype, LAYOUTS[layout], f" of 513, {layout}")


@pytest.mark.parametrize("name", [n for n in CASES if n not in FIXED | TAKES_INDICES and OPS[n].mut_arg < 0])
def test_such_an_axis_may_stand_still(name):
    op, sample = OPS[name], resized(sample_of(name), "first", 513)

    def still(x):
        return yoke.expand(yoke.slice(x, 0, 0, 1), x.shape) if x.ndim else x
    dtype = dtypes_of(name)[0]
    args, named = tensors_of(op, sample, dtype, still)
    copies, named_copies = tensors_of(op, sample, dtype, lambda x: yoke.clone(still(x)))
    got, want = judged_of(op.function(*args, **named)), judged_of(op.function(*copies, **named_copies))
    # A product takes other ways through memory that stands still, and adds in another order.
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", [n for n in CASES if n not in FIXED and OPS[n].differentiable and n != "cast"])
def test_its_gradient_is_that_of_float64(name, side):
    sample, slopes = resized(sample_of(name), side, 513, 33 if name in PRODUCTS else 7), []
    if not inputs_of(sample):
        return
    for dtype in ("float64", dtypes_of(name)[0]):
        leaves = []
        out = invoke(OPS[name], sample, dtype, LAYOUTS["contiguous"], leaves)
        out.backward(to_yoke(np.cos(np.arange(out.numel)).reshape(out.shape).astype(dtype), dtype))
        slopes.append([to_numpy(leaf.grad) for leaf in leaves])
    for double, single in zip(*slopes, strict=True):
        scale = max(1.0, float(np.abs(double).max(initial=0)))
        np.testing.assert_allclose(single, double, rtol=2e-3, atol=2e-4 * scale, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_each_sample_of_options_has_numpys_values(name):
    case, dtype = CASES[name], dtypes_of(name)[0]
    for sample in case.all_calls():
        check(name, sample, dtype, LAYOUTS["contiguous"], f"({sample})")


def test_the_edges_reach_every_op():
    assert {n for n in CASES if n not in FIXED and not any(513 in a.shape for a in arrays_of(resized(sample_of(n), "last", 513)))} == set()
