"""Attention of 16-bit floats over several tiles of queries and keys, against NumPy's float64: lengths and widths at the ends of
tiles, heads in any memory order, rows without keys, and values that are NaN or infinite.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import yoke
from cases_matmul import np_attention
from op_table import EPSILON, as_dtype, to_numpy, to_yoke, widened

_rng = np.random.default_rng(71)
DTYPES = ["float16", "bfloat16"]


def normal(shape, dtype):
    return widened(as_dtype(_rng.standard_normal(shape), dtype))


@pytest.fixture
def own_kernels():
    """Turns cuDNN off: for a row without keys cuDNN makes NaN, Yoke's own kernels make zeros."""
    with yoke.backends.cudnn.flags(enabled=False):
        yield


def attend(*args, **named):
    return yoke.scaled_dot_product_attention(*args, **named)


def assert_near(got, want, dtype, what=None):
    """Weights and results are rounded to the dtype, all else to float32."""
    np.testing.assert_allclose(to_numpy(got).astype(float), want, rtol=EPSILON[dtype], atol=EPSILON[dtype], err_msg=str(what))


# Queries, keys, width, width of the values.
SIZES = {
    "several tiles": (150, 150, 64, 64), "several tiles of the wide kind": (130, 97, 128, 128), "widths within a tile": (140, 70, 40, 24),
    "widths of two kinds": (33, 65, 64, 128), "the least width": (129, 64, 8, 8), "one key": (131, 1, 64, 64), "one query": (1, 200, 64, 64),
    "fewer keys than queries": (200, 70, 128, 72), "a tile and one": (129, 65, 64, 64), "whole tiles": (256, 128, 64, 64), "no key": (70, 0, 64, 64),
}


@pytest.mark.parametrize("causal", [False, True], ids=["plain", "causal"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_of_any_number_have_the_values_of_the_definition(dtype, size, causal):
    queries, keys, width, value_width = SIZES[size]
    q, k, v = (normal((2, *shape), dtype) for shape in ((queries, width), (keys, width), (keys, value_width)))
    v[:, :, 0] = np.arange(keys) % 7  # shows a missing or an extra key
    assert_near(attend(*(to_yoke(x, dtype) for x in (q, k, v)), is_causal=causal), np_attention(q, k, v, is_causal=causal), dtype)


def np_gradients(q, k, v, upstream, causal):
    scale, allowed = q.shape[-1] ** -0.5, np.tri(q.shape[-2], k.shape[-2], dtype=bool) | (not causal)
    scores = np.where(allowed, q @ k.swapaxes(-1, -2) * scale, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    slopes = upstream @ v.swapaxes(-1, -2)
    slopes = weights * (slopes - (weights * slopes).sum(-1, keepdims=True)) * scale
    return slopes @ k, slopes.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ upstream


def assert_gradients_near(tensors, want, dtype):
    for tensor, gradient, name in zip(tensors, want, ("query", "key", "value"), strict=True):
        np.testing.assert_allclose(to_numpy(tensor.grad).astype(float), gradient, rtol=2 * EPSILON[dtype],
                                   atol=EPSILON[dtype] * np.abs(gradient).max(initial=0.01), err_msg=name)


@pytest.mark.parametrize("causal", [False, True], ids=["plain", "causal"])
@pytest.mark.parametrize("size", SIZES)
def test_gradients_over_tiles_of_any_number_are_those_of_the_definition(size, causal):
    queries, keys, width, value_width = SIZES[size]
    dtype = DTYPES[causal]
    q, k, v, g = (normal((2, *shape), dtype) for shape in ((queries, width), (keys, width), (keys, value_width), (queries, value_width)))
    tensors = [to_yoke(x, dtype, True) for x in (q, k, v)]
    attend(*tensors, is_causal=causal).backward(to_yoke(g, dtype))
    assert_gradients_near(tensors, np_gradients(q, k, v, g, causal), dtype)


def test_float16_has_no_gradient_of_a_score_beyond_its_range():
    q, k, v, g = (normal((1, length, 128), "float16") / 128 for length in (70, 2, 2, 70))
    v[0, 0], v[0, 1], g[:] = 30, -30, 60  # half of the products are 115,200; float16 ends at 65,504
    q, k, v, g = (widened(as_dtype(x, "float16")) for x in (q, k, v, g))
    tensors = [to_yoke(x, "float16", True) for x in (q, k, v)]
    attend(*tensors).backward(to_yoke(g, "float16"))
    assert_gradients_near(tensors, np_gradients(q, k, v, g, False), "float16")


def test_gradients_reach_heads_that_lie_in_any_way():
    q, k, v = (normal((70, 3, 64), "float16") for _ in range(3))
    leaves = [to_yoke(x, "float16", True) for x in (q, k, v)]
    out = attend(*(yoke.transpose(x, 0, 1) for x in leaves), is_causal=True)
    out.sum().backward()  # the gradient of a sum is one number for all: strides of 0
    dense = [x.swapaxes(0, 1) for x in (q, k, v)]
    want = np_gradients(*dense, np.ones_like(dense[0]), True)
    assert_gradients_near(leaves, [x.swapaxes(0, 1) for x in want], "float16")


def test_a_query_that_sees_nothing_passes_no_gradient(own_kernels):
    q, k, v, g = (normal((1, 100, 64), "bfloat16") for _ in range(4))
    k[0, :, 0] = 1 + np.abs(k[0, :, 0])
    q[0, 3, 1:], q[0, 3, 0] = 0, -np.inf
    tensors = [to_yoke(x, "bfloat16", True) for x in (q, k, v)]
    attend(*tensors).backward(to_yoke(g, "bfloat16"))
    others = np.delete(q, 3, 1)
    want = np_gradients(others, k, v, np.delete(g, 3, 1), False)
    got = [to_numpy(x.grad).astype(float) for x in tensors]
    assert not got[0][0, 3].any()
    np.testing.assert_allclose(got[2], want[2], rtol=0.02, atol=EPSILON["bfloat16"] * np.abs(want[2]).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [64, 128])
def test_scores_that_grow_from_tile_to_tile_leave_what_was_summed_before_in_its_place(dtype, width):
    q, k, v = normal((2, 40, width), dtype), normal((2, 300, width), dtype), normal((2, 300, width), dtype)
    for slope in (np.linspace(0, 3, 300), np.linspace(3, 0, 300), np.linspace(-3, 3, 300)):
        steep = widened(as_dtype(k * slope[:, None], dtype))
        assert_near(attend(*(to_yoke(x, dtype) for x in (q, steep, v))), np_attention(q, steep, v), dtype, slope[0])


@pytest.mark.parametrize("scale", [1.0, 0.01, 0.0, -0.125, 30.0])
def test_any_scale_serves(scale):
    q, k, v = (normal((1, 70, 64), "float16") for _ in range(3))
    got = attend(*(to_yoke(x, "float16") for x in (q, k, v)), scale=scale)
    assert_near(got, np_attention(q, k, v, scale=scale), "float16")


def laid_out(how, shape, dtype):
    """Returns a tensor of this shape in the memory order `how`, and its values."""
    heads, length, width = shape
    x = normal(shape, dtype)
    if how == "length before heads":
        return yoke.transpose(to_yoke(np.ascontiguousarray(x.swapaxes(0, 1)), dtype), 0, 1), x
    if how == "every other row":
        return to_yoke(np.repeat(x, 2, 1), dtype)[:, ::2], x
    if how == "off a boundary":
        return to_yoke(np.pad(x, ((0, 0), (0, 0), (1, 7))), dtype)[:, :, 1:width + 1], x
    if how == "columns before rows":
        return yoke.transpose(to_yoke(np.ascontiguousarray(x.swapaxes(1, 2)), dtype), 1, 2), x
    if how == "one head for all":
        x[:] = x[:1]
        return to_yoke(x[:1], dtype).expand(*shape), x
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["length before heads", "every other row", "off a boundary", "columns before rows", "one head for all"])
def test_heads_may_lie_in_any_way(how):
    (q, at_q), (k, at_k), (v, at_v) = (laid_out(how, (3, length, 64), "bfloat16") for length in (70, 90, 90))
    assert_near(attend(q, k, v, is_causal=True), np_attention(at_q, at_k, at_v, is_causal=True), "bfloat16")
    dense = to_yoke(at_q, "bfloat16"), to_yoke(at_k, "bfloat16")
    assert_near(attend(*dense, v), np_attention(at_q, at_k, at_v), "bfloat16")  # only v in this order


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_without_a_finite_score_are_zero_or_nan_as_the_definition_has_them(dtype, own_kernels):
    q, k, v = (normal((1, 100, 64), dtype) for _ in range(3))
    k[0, :, 0] = 1 + np.abs(k[0, :, 0])
    q[0, 3, 1:], q[0, 3, 0] = 0, -np.inf  # sees no key
    q[0, 5, 7] = np.nan
    q[0, 40, 1:], q[0, 40, 0] = 0, np.inf
    with np.errstate(invalid="ignore"):
        want = np_attention(q, k, v)
    assert not want[0, 3].any() and np.isnan(want[0, 5]).all() and np.isnan(want[0, 40]).all()
    assert_near(attend(*(to_yoke(x, dtype) for x in (q, k, v))), want, dtype)


def test_a_key_that_is_no_number_spoils_those_that_see_it_alone():
    q, k, v = (normal((1, 200, 64), "float16") for _ in range(3))
    k[0, 190] = np.nan
    got = to_numpy(attend(*(to_yoke(x, "float16") for x in (q, k, v)), is_causal=True)).astype(float)
    want = np_attention(q, k[:, :190], v[:, :190], is_causal=True)
    assert np.isnan(got[0, 190:]).all()
    np.testing.assert_allclose(got[0, :190], want[0, :190], rtol=EPSILON["float16"], atol=EPSILON["float16"])


# ---- The chosen kernel -----------------------------------------------------------------------------------------------

CALLS = """
import sys
import yoke

def of(*shape, dtype=yoke.bfloat16):
    return yoke.zeros(shape, dtype=dtype, device="cuda:0")

def attend(q, k=None, v=None, **named):
    yoke.scaled_dot_product_attention(q, q if k is None else k, q if v is None else v, **named)

with yoke.no_grad():
    attend(of(2, 70, 64))
    attend(of(2, 70, 128, dtype=yoke.float16), is_causal=True)
    attend(yoke.transpose(of(70, 2, 40), 0, 1))
    attend(of(2, 70, 8), of(2, 3, 8), of(2, 3, 120))
    attend(of(2, 70, 64), dropout_p=0.5)
    attend(of(2, 70, 128), mask=of(70, 70))
    attend(of(2, 70, 64), mask=yoke.ones((2, 1, 70), dtype=yoke.bool, device="cuda:0"))
    attend(of(2, 70, 64), scale=-1.0)
    yoke.erf(of(1))
    attend(of(2, 70, 64, dtype=yoke.float32))
    attend(of(2, 70, 60))
    attend(of(2, 70, 136))
    attend(of(2, 70, 65)[:, :, 1:])
    attend(yoke.transpose(of(2, 64, 70), 1, 2))
    attend(of(2, 70, 64, dtype=yoke.float32), mask=of(70, 70))

yoke.erf(of(1))
for width, named in ((64, {}), (128, {"is_causal": True}), (64, {"dropout_p": 0.5}), (64, {"mask": of(1, 70)}), (60, {})):
    q = of(2, 70, width).requires_grad_(True)
    yoke.scaled_dot_product_attention(q, q, q, **named).backward(of(2, 70, width))
"""


@pytest.mark.skipif("fakes/cuda" not in os.environ.get("YOKE_CUDA_LIB_PATH", ""), reason="no emulated CUDA device")
@pytest.mark.parametrize("capability", ["7.5", "8.0"])
def test_tensor_cores_take_what_they_can(tmp_path, capability):
    root = pathlib.Path(__file__).resolve().parents[2]
    record = tmp_path / "launches"
    environment = os.environ | {"YOKE_EMU_RECORD": str(record), "FAKE_CUDA_DEVICES": capability, "YOKE_CUDNN_ENABLED": "0"}
    subprocess.run([sys.executable, "-c", CALLS], env=environment, check=True)
    sys.path.insert(0, str(root / "benchmarks/roofline"))
    import launches
    library = next(path for folder in os.environ["LD_LIBRARY_PATH"].split(":")
                   if (path := pathlib.Path(folder, "libyoke_cuda.so")).is_file())
    names = launches.symbols(library)
    told = [(one["op"], names[one["kernel"]]) for one in map(json.loads, record.read_text().splitlines())]
    kernels = ["erf" if op == "erf" else "mma" if "by_mma" in name else "plain"
               for op, name in told if op in ("erf", "_attention", "_attention_backward") and "find_dots" not in name]
    best = "plain" if capability == "7.5" else "mma"
    assert kernels == [best] * 8 + ["erf"] + ["plain"] * 6 + ["erf"] + [best] * 12 + ["plain"] * 3
