"""Every differentiable op: gradients against finite differences in float64, in any layout and floating dtype."""
import numpy as np
import pytest

import yoke
from op_cases import CASES
from op_samples import call, values
from op_harness import inputs_of, invoke, judged_of, tensors_of
from op_table import EPSILON, FLOATS, LAYOUTS, OPS, as_dtype, name_of, to_numpy, to_yoke

NAMES = [n for n in CASES if OPS[n].differentiable and inputs_of(CASES[n].calls[0])]
SAMPLES = [pytest.param(n, i, id=f"{n}({c})") for n in NAMES for i, c in enumerate(CASES[n].all_calls()) if inputs_of(c)]
STEP = 1e-6
_rng = np.random.default_rng(7)


def without_mask(name, sample):
    """Makes cast cast to float64, because cast cannot show a difference below its result's precision."""
    return call(sample.args[0], "float64") if name == "cast" else sample


def gradients(op, sample, dtype, layout=LAYOUTS["contiguous"], upstream=None, upstream_layout=LAYOUTS["contiguous"]):
    """(gradients of the value inputs, the upstream gradient as NumPy array)."""
    leaves = []
    out = invoke(op, sample, dtype, layout, leaves)
    if upstream is None:
        upstream = _rng.uniform(-1, 1, out.shape)
    weights = to_yoke(as_dtype(upstream, name_of(out.dtype)), name_of(out.dtype))
    out.backward(upstream_layout(weights))
    return [leaf.grad for leaf in leaves], upstream


def finite_differences(op, sample, upstream):
    """Returns d(sum(out * upstream)) / d(input) for every element of every value input, by central differences.

    The differences run on the CPU for every device: test_ops_table.py checks values of a device, and an emulated device takes
    hundreds of times as long.
    """
    inputs, found = inputs_of(sample), []

    def weighed():
        with yoke.no_grad():
            return float(np.sum(to_numpy(invoke(op, sample, "float64", lambda x: x.cpu())) * upstream))
    for x in inputs:
        slope = np.zeros(x.shape)
        for at in np.ndindex(*x.shape):
            kept = x[at]
            x[at] = kept + STEP
            above = weighed()
            x[at] = kept - STEP
            slope[at] = (above - weighed()) / (2 * STEP)
            x[at] = kept
        found.append(slope)
    return found


@pytest.mark.parametrize("name, i", SAMPLES)
def test_the_gradient_is_that_of_finite_differences(name, i):
    sample = without_mask(name, CASES[name].all_calls()[i])
    got, upstream = gradients(OPS[name], sample, "float64")
    for k, (grad, slope) in enumerate(zip(got, finite_differences(OPS[name], sample, upstream), strict=True)):
        assert grad is not None, f"value input {k} has no gradient"
        assert name_of(grad.dtype) == "float64" and tuple(grad.shape) == slope.shape
        np.testing.assert_allclose(to_numpy(grad), slope, rtol=2e-6, atol=2e-8, err_msg=f"value input {k}")


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n != "contiguous"])
@pytest.mark.parametrize("name", [n for n in NAMES if n != "view"])
def test_strides_of_inputs_and_upstream_do_not_change_the_gradient(name, layout):
    for sample in CASES[name].all_calls():
        want, upstream = gradients(OPS[name], sample, "float64")
        for on_inputs in (True, False):
            plain = LAYOUTS["contiguous"]
            got, _ = gradients(OPS[name], sample, "float64", LAYOUTS[layout] if on_inputs else plain, upstream,
                               plain if on_inputs else LAYOUTS[layout])
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-13, atol=1e-13, err_msg=f"{name}({sample})")


@pytest.mark.parametrize("name", NAMES)
def test_an_expanded_upstream_gradient_serves(name):
    sample = CASES[name].calls[0]
    ones, _ = gradients(OPS[name], sample, "float64", upstream=np.ones(invoke(OPS[name], sample, "float64").shape))
    leaves = []
    out = invoke(OPS[name], sample, "float64", leaves=leaves)
    out.backward(yoke.expand(yoke.ones((), dtype=out.dtype), out.shape))
    for leaf, want in zip(leaves, ones, strict=True):
        np.testing.assert_allclose(to_numpy(leaf.grad), to_numpy(want), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_in_a_narrow_dtype_is_float64s_as_that_dtype_rounds_it(name):
    case = CASES[name]
    for dtype in ("float32", "float16", "bfloat16"):
        for sample in case.calls:
            sample = without_mask(name, sample)
            narrow, upstream = gradients(OPS[name], sample, dtype)
            # Numbers as the narrow dtype rounds them, in float64.
            rounded = [as_dtype(a, dtype).astype(np.float64) for a in inputs_of(sample)]
            kept = [a.copy() for a in inputs_of(sample)]
            for a, b in zip(inputs_of(sample), rounded, strict=True):
                a[...] = b
            out_dtype = "float64" if name == "cast" else dtype
            want, _ = gradients(OPS[name], sample, "float64", upstream=as_dtype(upstream, out_dtype).astype(np.float64))
            for a, b in zip(inputs_of(sample), kept, strict=True):
                a[...] = b
            for a, b in zip(narrow, want, strict=True):
                assert name_of(a.dtype) == dtype
                exact = to_numpy(b)
                error = 16 * EPSILON[dtype]
                np.testing.assert_allclose(to_numpy(a).astype(np.float64), exact, rtol=error,
                                           atol=error * max(1.0, np.abs(exact).max(initial=0)), err_msg=f"{sample} {dtype}")


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_has_the_same_bits_for_any_number_of_threads(name):
    before = yoke.get_num_threads()
    upstream = np.random.default_rng(3).uniform(-1, 1, invoke(OPS[name], CASES[name].large, "float32").shape)
    try:
        bits = []
        for threads in (1, 2, 8, 2):
            yoke.set_num_threads(threads)
            grads, _ = gradients(OPS[name], CASES[name].large, "float32", upstream=upstream)
            bits.append([to_numpy(g).tobytes() for g in grads])
    finally:
        yoke.set_num_threads(before)
    assert all(found == bits[0] for found in bits)


@pytest.mark.parametrize("name", [n for n in CASES if not OPS[n].differentiable])
def test_no_gradient_flows_through_an_op_without_one(name):
    leaves = []
    for sample in CASES[name].calls:
        assert not invoke(OPS[name], sample, "float32", leaves=leaves).requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_only_inputs_that_ask_get_a_gradient(name):
    sample = next((c for c in CASES[name].calls if len(inputs_of(c)) > 1), None)
    if sample is None or name in ("cat", "stack", "einsum"):
        return
    for chosen in range(len(inputs_of(sample))):
        args, named = tensors_of(OPS[name], sample, "float64", lambda x: x)
        floats = [a for a in [*args, *named.values()] if isinstance(a, yoke.Tensor) and name_of(a.dtype) in FLOATS]
        if OPS[name].mut_arg == 0 and chosen == 0:
            continue  # a leaf that requires grad cannot change in place: test_ops_inplace.py
        floats[chosen].requires_grad_(True)
        out = judged_of(OPS[name].function(*args, **named))
        out.backward(yoke.ones_like(out))
        assert [x.grad is not None for x in floats if x.is_leaf] == [x.requires_grad for x in floats if x.is_leaf]


def test_ties_share_the_gradient_of_amax_evenly():
    x = to_yoke(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), requires_grad=True)
    yoke.sum(yoke.amax(x, axis=1)).backward()
    np.testing.assert_allclose(to_numpy(x.grad), [[0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-15)


def test_the_gradient_of_relu_at_zero_and_below_is_zero():
    x = to_yoke(np.array([-1.0, -0.0, 0.0, 2.0]), requires_grad=True)
    yoke.sum(yoke.relu(x)).backward()
    np.testing.assert_array_equal(to_numpy(x.grad), [0, 0, 0, 1])


def test_ignored_rows_of_cross_entropy_have_a_gradient_of_zero():
    x = to_yoke(values(3, 4), requires_grad=True)
    yoke.cross_entropy(x, yoke.tensor([1, -100, 2])).backward()
    grad = to_numpy(x.grad)
    assert not grad[1].any() and grad[0].any()
    np.testing.assert_allclose(grad.sum(1), 0, atol=1e-15)


def test_dropouts_gradient_has_the_mask_of_its_value():
    x = to_yoke(np.ones(10_001, np.float32), requires_grad=True)
    out = yoke.dropout(x, 0.3)
    out.backward(yoke.ones_like(out))
    np.testing.assert_array_equal(to_numpy(x.grad), to_numpy(out))
    assert set(np.unique(to_numpy(out))) == {0.0, np.float32(1 / 0.7)}


def test_mixed_dtypes_give_each_input_a_gradient_of_its_own():
    x = to_yoke(np.ones((2, 3), np.float32), requires_grad=True)
    y = to_yoke(np.ones(3, np.float32), "bfloat16", requires_grad=True)
    out = x * y
    assert out.dtype == yoke.float32
    out.backward(yoke.ones_like(out))
    assert x.grad.dtype == yoke.float32 and y.grad.dtype == yoke.bfloat16
    np.testing.assert_array_equal(to_numpy(y.grad), [2, 2, 2])
