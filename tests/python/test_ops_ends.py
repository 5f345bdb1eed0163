"""Every op with numbers at the ends of each float dtype's range: no infinity, NaN or 0 where the result is a normal number."""
import re

import numpy as np
import pytest

import yoke
from conftest import EMULATED
from op_cases import CASES
from op_ends import calls_of, faults, is_elementwise, rounded, upstream, variants, wide_gradients, wide_value
from op_harness import inputs_of, invoke
from op_table import EPSILON, FLOATS, OPS, name_of, to_numpy
from test_ops_grad import gradients

# Ops that do not meet this: the variants, and the reason.
EXCEPTIONS = {
    "atan2": (r"e-308 in input 0|e\+306 in input 1", "beside pi the difference of two small angles is lost to the reference"),
    **dict.fromkeys(("lerp", "lerp_"), ("", "the difference of two numbers near the largest overflows, as PyTorch defines it")),
    "normalize": ("near max", "the norm of a row is a result of its own on the way, and overflows, as in PyTorch"),
    "binary_cross_entropy": ("", "it holds logarithms above -100, and the slope's divisor above 1e-12, as PyTorch defines it"),
    "scaled_dot_product_attention": (r"e\+(?!.* in input [23])|near max(?!.* in input 3)", "its scores are products of two inputs; where one is infinite the row is NaN, as in softmax. Values are added up over the keys before the division by their weights, so that those near the largest number overflow"),
    "histc": ("", "the place of an element among the bins is rounded, as in PyTorch: an element just below a bound may count above it"),
    "layer_norm": ("near max, of one sign", "the gradient adds up grad times weight over a row, which overflows for weights near the largest number"),
    "rms_norm": ("near max, of one sign", "the same sum"),
    "group_norm": ("near max, of one sign in input 1", "weight over deviation is formed once a channel, and overflows for weights near the largest number"),
}
STEPS = {name + end for name in ("sign", "floor", "ceil", "round", "trunc", "fmod", "remainder", "floor_divide") for end in ("", "_")}  # differences see the steps
NAMES = [n for n in CASES if EXCEPTIONS.get(n, " ")[0] and set(CASES[n].dtypes) & set(FLOATS)]
# An emulated device takes a while for each call; halves are computed alike.
DTYPES = [d for d in FLOATS if not EMULATED or d != "float16"]
CALLS = 1 if EMULATED else 2  # calls that are not elementwise


def all_variants(name):
    """Yields (text, call, dtype, whether elementwise) for every variant of some calls."""
    case = CASES[name]
    for dtype in (d for d in DTYPES if d in case.dtypes):
        for call in calls_of(name, case, CALLS):
            for what, sized in variants(name, call, dtype):
                if name in EXCEPTIONS and re.search(EXCEPTIONS[name][0], what):
                    continue
                yield f"{name}({call}) {dtype} {what}", rounded(sized, dtype), dtype, is_elementwise(name, call)


def told(found):
    return "\n".join(f"{what}: {got:.6g}, right: {want:.6g}" for what, pairs in found for got, want in pairs[:2])


@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_right_wherever_it_is_a_normal_number(name):
    case, found = CASES[name], []
    for what, call, dtype, _ in all_variants(name):
        try:
            got = invoke(OPS[name], call, dtype)
        except yoke.ValueError:
            continue  # refused
        result = name_of(got.dtype)
        if result in EPSILON:
            pairs = faults(to_numpy(got), wide_value(case, call), result, 8 * case.ulps * EPSILON[result], case.absolute)
            found += [(what, pairs)] if pairs else []
    assert not found, told(found)


def right_gradients(name, call, dtype, above, alone):
    """Returns gradients of the wider dtype, or by differences if there is no wider dtype; None if differences take too long, or see
    only steps.
    """
    if dtype != "float64":
        return [to_numpy(g) for g in gradients(OPS[name], call, "float64", upstream=above)[0]]
    if name in STEPS or not alone and sum(a.size for a in inputs_of(call)) > 12:
        return None
    return wide_gradients(CASES[name], call, alone)


def gradient_faults(name, call, dtype, alone):
    """Returns [(which, [(got, right)])] of a call with a finite result: beyond the range a gradient has no meaning."""
    result = invoke(OPS[name], call, dtype)
    out, narrowest = to_numpy(result), max(EPSILON[dtype], EPSILON[name_of(result.dtype)])
    if not np.isfinite(out).any() or not (alone or np.isfinite(out).all()):
        return []
    above, found = upstream(out.shape), []
    want = right_gradients(name, call, dtype, above, alone)
    if want is None:
        return []
    error = max((64 if alone else 256) * narrowest, 2.0**-24)  # 2.0**-24 is the error of differences
    for k, (a, b) in enumerate(zip(gradients(OPS[name], call, dtype, upstream=above)[0], want, strict=True)):
        pairs = faults(to_numpy(a), np.where(np.isfinite(out), b, np.nan) if alone else b, dtype, error, not alone)
        found += [(f"gradient {k}", pairs)] if pairs else []
    return found


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].differentiable])
def test_the_gradient_is_right_wherever_it_is_a_normal_number(name):
    found = []
    for what, call, dtype, alone in all_variants(name):
        try:
            found += [(f"{what}, {which}", pairs) for which, pairs in gradient_faults(name, call, dtype, alone)]
        except yoke.ValueError:
            continue
    assert not found, told(found)


def test_few_ops_are_exceptions():
    assert len(EXCEPTIONS) <= 12 and set(EXCEPTIONS) <= set(CASES)


@pytest.mark.parametrize("dtype, large", [("float64", 1e308), ("float32", 2e38), ("bfloat16", 2e38)])
def test_a_mean_of_squares_has_a_gradient_where_twice_a_difference_overflows(dtype, large):
    """The value overflows by design: for such differences the loss itself overflows."""
    x = yoke.tensor([large] + [1.0] * 7, dtype=getattr(yoke, dtype)).requires_grad_()
    yoke.mse_loss(x, yoke.zeros_like(x)).backward()
    assert x.grad[0].item() == pytest.approx(large / 4, rel=0.01)
