"""Runs a call of op_cases.py on Yoke and on NumPy, in any dtype and layout, with gradients or without."""
import numpy as np

import yoke
from op_table import EPSILON, NUMPY, as_dtype, dtype_of, name_of, to_numpy, to_yoke, widened


def is_array(value):
    return isinstance(value, np.ndarray)


def is_value(value):
    """A floating array: a tensor in the dtype under test, to which a gradient may flow."""
    return is_array(value) and value.dtype.kind == "f"


def map_arrays(change, call):
    """The arguments of a call with `change` of each array, in lists too."""
    def convert(value):
        if isinstance(value, list) and any(map(is_array, value)):
            return [change(v) for v in value]
        return change(value) if is_array(value) else value
    return [convert(v) for v in call.args], {k: convert(v) for k, v in call.named.items()}


def expected(case, call, dtype):
    """Returns NumPy's result for the samples as the dtype holds them."""
    args, named = map_arrays(lambda a: widened(as_dtype(a, dtype)), call)
    with np.errstate(all="ignore"):
        return np.asarray(case.reference(*args, **named))


def result_dtype(op, case, call, dtype):
    floating = dtype in EPSILON
    if case.result == "argument":
        return call.args[1]
    if case.result == "x":  # whatever numbers stand beside x
        return dtype
    if case.result in ("index", "bool"):
        return {"index": "int64", "bool": "bool"}[case.result]
    if (case.result(call) if callable(case.result) else case.result) == "sum" and not floating:
        return "int64"
    if case.result == "floating" and not floating:
        return "float32"
    scalars = [v for v, kind in zip(call.args, op.arg_types) if kind == "operand" and type(v) in (int, float)]
    if op.mut_arg >= 0:
        return dtype
    if not floating and any(isinstance(v, float) for v in scalars):
        return "float32"  # a script's float makes integers float
    if dtype == "bool" and any(isinstance(v, int) for v in scalars):
        return "int64"
    return dtype


def tensors_of(op, call, dtype, layout, leaves=None):
    """Returns arguments for Yoke. If `leaves` is a list, each value becomes a leaf in the list and requires grad."""
    def tensor(array):
        x = to_yoke(as_dtype(array, dtype), dtype if array.dtype.kind == "f" else None)
        if leaves is not None and array.dtype.kind == "f":
            leaves.append(x.requires_grad_(True))
        return layout(x)
    args, named = map_arrays(tensor, call)
    for i, kind in enumerate(op.arg_types):
        if kind == "dtype" and i < len(args):
            args[i] = dtype_of(args[i])
    # Samples, as their references in NumPy, have all in order; Yoke takes some by name alone.
    return args[:op.places], {**dict(zip(op.arg_names[op.places:], args[op.places:])), **named}


def judged_of(results):
    """Returns the result of an op for a case to judge. Of several results this is the last float, which depends on all arguments;
    tests of the family judge the others. A truth becomes a tensor.
    """
    if isinstance(results, bool):
        return yoke.tensor(results)
    if not isinstance(results, tuple):
        return results
    return next((x for x in reversed(results) if name_of(x.dtype) in EPSILON), results[0])


def invoke(op, call, dtype, layout=lambda x: x, leaves=None):
    """Calls Yoke. An in-place op gets a fresh first argument, so that leaves may require grad."""
    args, named = tensors_of(op, call, dtype, layout, leaves)
    if op.mut_arg >= 0:
        if leaves is not None:
            args[op.mut_arg] = yoke.clone(args[op.mut_arg])
        with_result = args[op.mut_arg]
        result = op.function(*args, **named)
        assert result is with_result, f"{op.name} returns what it has changed"
        return result
    return judged_of(op.function(*args, **named))


def inputs_of(call):
    """The value arrays of a call, in order."""
    found = []
    map_arrays(lambda a: found.append(a) or a, call)
    return [a for a in found if is_value(a)]


def assert_values(case, got, want, dtype, what):
    """`got` holds `want` as `dtype` can: exactly for integers, within the case's error for floats."""
    assert name_of(got.dtype) == dtype, f"{what}: the result is {got.dtype}, not {dtype}"
    assert tuple(got.shape) == want.shape, f"{what}: the result has shape {got.shape}, NumPy's {want.shape}"
    actual = to_numpy(got)
    if dtype not in EPSILON:
        np.testing.assert_array_equal(actual, want.astype(NUMPY[dtype]), err_msg=what)
        return
    error = case.ulps * EPSILON[dtype]
    finite = np.abs(want[np.isfinite(want)])
    scale = max(1.0, float(finite.max(initial=0))) if case.absolute else 0.0
    tiny = float(np.finfo(np.float16 if dtype == "float16" else np.float32).tiny)
    np.testing.assert_allclose(actual.astype(np.float64), want.astype(np.float64), rtol=error, atol=error * scale + tiny,
                               err_msg=what)
