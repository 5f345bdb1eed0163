"""Ops along rows whose lengths change a kernel's path: lengths of vectors, warps, blocks and tiles."""
import subprocess
import sys

import numpy as np
import pytest

import yoke
from op_table import EPSILON, NUMPY, to_numpy, to_yoke

LENGTHS = sorted({2**power + by for power in range(3, 14) for by in (-1, 0, 1)})


def rows_of(length):
    """Returns the number of rows. Some long rows get more rows than a single multiprocessor has blocks: then a block has several
    rows.
    """
    return 9 if length in (2049, 8193) else 3


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def classes_of(x):
    return [row * (x.shape[-1] - 1) // (x.shape[0] - 1) for row in range(x.shape[0])]


# name: the op, and the same in NumPy's float64
OPS = {
    "softmax": (lambda x: yoke.softmax(x, -1), softmax),
    "log_softmax": (lambda x: yoke.log_softmax(x, -1), lambda x: np.log(softmax(x))),
    "layer_norm": (lambda x: yoke.layer_norm(x, [x.shape[-1]], eps=1e-5), normalised),
    "sum": (lambda x: yoke.sum(x, -1), lambda x: x.sum(-1)),
    "amax": (lambda x: yoke.amax(x, -1), lambda x: x.max(-1)),
    "cumsum": (lambda x: yoke.cumsum(x, -1), lambda x: np.cumsum(x, -1)),
    "sort": (lambda x: yoke.sort(x, -1)[0], lambda x: np.sort(x, -1)),
    "cross_entropy": (lambda x: yoke.cross_entropy(x, yoke.tensor(classes_of(x)), reduction="none"),
                      lambda x: -np.log(softmax(x))[range(len(x)), classes_of(x)]),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_of_any_length_match_numpy(name, dtype):
    op, reference = OPS[name]
    for length in LENGTHS:
        x = np.random.default_rng(length).normal(size=(rows_of(length), length)).astype(NUMPY[dtype])
        want = reference(x.astype(np.float64))
        tolerance = EPSILON[dtype] * (4 if dtype == "float16" else 16)
        sums = np.abs(x).sum() if name in ("sum", "cumsum") else 16
        np.testing.assert_allclose(to_numpy(op(to_yoke(x, dtype))), want, rtol=tolerance, atol=tolerance * sums,
                                   err_msg=f"rows of {length}")


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "cross_entropy"])
def test_gradients_of_rows_of_any_length_match_those_of_float64(name):
    for length in LENGTHS:
        values = np.random.default_rng(length).normal(size=(rows_of(length), length))
        slopes = {}
        for dtype in ("float32", "float64"):
            x = to_yoke(values, dtype, requires_grad=True)
            y = OPS[name][0](x)
            yoke.sum(y * to_yoke(np.random.default_rng(0).normal(size=y.shape), dtype)).backward()
            slopes[dtype] = to_numpy(x.grad)
        np.testing.assert_allclose(slopes["float32"], slopes["float64"], rtol=1e-3, atol=1e-5,
                                   err_msg=f"rows of {length}")


def test_gradients_of_the_parameters_of_rows_of_any_length_match_those_of_float64():
    for length in LENGTHS:
        random = np.random.default_rng(length)
        x, weight, upstream = (random.normal(size=size) for size in ((rows_of(length), length), length, (rows_of(length), length)))
        slopes = {}
        for dtype in ("float32", "float64"):
            parameters = [to_yoke(values, dtype, requires_grad=True) for values in (weight, 0 * weight)]
            yoke.layer_norm(to_yoke(x, dtype), [length], *parameters).backward(to_yoke(upstream, dtype))
            slopes[dtype] = [to_numpy(p.grad) for p in parameters]
        for single, double in zip(slopes["float32"], slopes["float64"], strict=True):
            np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-5, err_msg=f"rows of {length}")


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("rows, columns", [(40, 8), (300, 64), (64, 33), (28, 40), (95, 36)])
def test_columns_of_any_step_are_added_up(rows, columns, step):
    x = np.arange(float(rows * columns * step), dtype="float32").reshape(rows, -1) % 61
    strided = to_yoke(x)[:, ::step]
    np.testing.assert_array_equal(to_numpy(yoke.sum(strided, 0)), x[:, ::step].sum(0))
    np.testing.assert_array_equal(to_numpy(yoke.amax(strided, 0)), x[:, ::step].max(0))
    # Rows that begin at odd places of a wider tensor.
    wider = np.concatenate([x, x[:, :1]], 1)
    np.testing.assert_array_equal(to_numpy(yoke.sum(to_yoke(wider)[:, :x.shape[1]], 0)), x.sum(0))


def test_attention_without_width_takes_the_mean_of_the_values():
    value = np.random.default_rng(0).normal(size=(1, 2, 130, 5)).astype("float32")
    nothing = [to_yoke(np.zeros((1, 2, length, 0), "float32")) for length in (70, 130)]
    got = to_numpy(yoke.scaled_dot_product_attention(*nothing, to_yoke(value), scale=1.0))
    np.testing.assert_allclose(got, np.broadcast_to(value.mean(2, keepdims=True), got.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows, columns", [(40, 127), (40, 128), (5, 600), (300, 130)])
def test_an_op_in_place_changes_each_element_of_a_view_once(rows, columns):
    base = np.arange(float(rows * (columns + 3)), dtype="float32").reshape(rows, -1)
    x = to_yoke(base)
    x[:, 1:columns + 1].mul_(2)
    base[:, 1:columns + 1] *= 2
    np.testing.assert_array_equal(to_numpy(x), base)


def test_rows_without_elements_are_not_walked_however_many_there_are():
    """Runs in a separate process, so a timeout can end a walk over the rows."""
    calls = ["yoke.eye(2**40, 0, dtype=yoke.uint8)", "yoke.softmax(x, -1)", "yoke.sort(x, -1)", "yoke.cumsum(x, 1)", "yoke.tril(x)",
             "yoke.flip(x, [0])", "x.transpose(0, 1).clone()", "x.add_(1)", "yoke.matmul(x, yoke.zeros((0, 0)))"]
    body = "import yoke\nx = yoke.zeros((2**40, 0))\n" + "\n".join(calls)
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
