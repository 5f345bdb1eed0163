"""Softmax and norms of rows of every length and memory order: rows that a block of threads holds at once, rows that a block reads
twice, and rows whose memory neighbours belong to other rows. NumPy's float64 checks all.
"""
import numpy as np
import pytest

import yoke
from cases_norm import np_layer_norm, np_rms_norm
from op_cases import np_log_softmax
from op_table import EPSILON, as_dtype, contiguous, strided, to_numpy, to_yoke, transposed, widened

_rng = np.random.default_rng(47)
# rows, length, dtype: a block of 512 threads holds 16384 elements of a row at most (4096 of float64), and of rows that
# lie off 16-byte boundaries 8192 halves or 4096 float32.
SIZES = [(3, 20_000, "float32"), (18, 4_101, "float32"), (2, 16_400, "float16"), (3, 8_195, "bfloat16"),
         (3, 4_100, "float64"), (2, 9_000, "float32"), (70, 37, "float32"), (33, 5, "float32")]
LAYOUTS = [contiguous, strided, transposed]


def normal(shape, dtype):
    return widened(as_dtype(_rng.standard_normal(shape), dtype))


def assert_near(got, want, dtype, length, what):
    """Each of `length` terms may be rounded once; results are rounded to the dtype."""
    scale = np.max(np.abs(want), initial=0)
    error = 2 * EPSILON[dtype] + 2e-8 * np.sqrt(length)
    np.testing.assert_allclose(to_numpy(got), want, rtol=error, atol=error * scale, err_msg=what)


def softmax_gradient(x, g):
    p = np.exp(np_log_softmax(x))
    return p * (g - np.sum(g * p, -1, keepdims=True))


def log_softmax_gradient(x, g):
    return g - np.exp(np_log_softmax(x)) * np.sum(g, -1, keepdims=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows, length, dtype", SIZES)
def test_softmax_of_rows_of_any_length_is_numpys_and_so_is_its_gradient(rows, length, dtype, layout):
    x, g = normal((rows, length), dtype), normal((rows, length), dtype)
    for op, want, gradient in ((yoke.softmax, np.exp(np_log_softmax(x)), softmax_gradient(x, g)),
                               (yoke.log_softmax, np_log_softmax(x), log_softmax_gradient(x, g))):
        leaf = layout(to_yoke(x, dtype)).requires_grad_(True)
        out = op(leaf, -1)
        assert_near(out, want, dtype, length, op.__name__)
        out.backward(layout(to_yoke(g, dtype)))
        assert_near(leaf.grad, gradient, dtype, length, f"the gradient of {op.__name__}")


def norm_gradients(x, g, weight, eps, centred):
    """Returns the gradients of x, weight and bias."""
    normal = x - x.mean(-1, keepdims=True) if centred else x
    rstd = 1 / np.sqrt(np.mean(normal * normal, -1, keepdims=True) + eps)
    normal, weighted = normal * rstd, g * weight
    dx = weighted - normal * np.mean(weighted * normal, -1, keepdims=True)
    return rstd * (dx - weighted.mean(-1, keepdims=True) if centred else dx), np.sum(g * normal, 0), np.sum(g, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows, length, dtype", SIZES)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms_of_rows_of_any_length_are_numpys_and_so_are_their_gradients(name, rows, length, dtype, layout):
    eps, centred = 1e-3, name == "layer_norm"
    x, g = normal((rows, length), dtype), normal((rows, length), dtype)
    arrays = [normal(length, dtype) for _ in range(2 if centred else 1)]  # weight, and bias
    leaf = layout(to_yoke(x, dtype)).requires_grad_(True)
    parameters = [to_yoke(array, dtype, requires_grad=True) for array in arrays]
    out = getattr(yoke, name)(leaf, (length,), *parameters, eps=eps)
    want = (np_layer_norm if centred else np_rms_norm)(x, (length,), *arrays, eps=eps)
    assert_near(out, want, dtype, length, name)
    out.backward(layout(to_yoke(g, dtype)))
    gradients = norm_gradients(x, g, arrays[0], eps, centred)
    for tensor, gradient, what in zip([leaf, *parameters], gradients, ("x", "weight", "bias")):
        assert_near(tensor.grad, gradient, dtype, length, f"the gradient of {name} by {what}")
