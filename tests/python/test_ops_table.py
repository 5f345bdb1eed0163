"""Every op of the table against NumPy: values in every dtype, layouts, zero sizes, threads, repetition."""
import numpy as np
import pytest

import yoke
from op_cases import CASES, CREATION, LISTS, RANDOM
from op_harness import assert_values, expected, inputs_of, invoke, judged_of, result_dtype, tensors_of
from op_table import ALL, LAYOUTS, OPS, as_dtype, to_numpy, to_yoke

TAKES_VALUES = [name for name in CASES if inputs_of(CASES[name].calls[0])]  # the others take integers alone
SAMPLES = [pytest.param(name, i, id=f"{name}({c})") for name in CASES for i, c in enumerate(CASES[name].all_calls())]


def test_every_op_of_the_table_has_a_case_and_every_case_an_op():
    held = set(CASES) | CREATION | RANDOM | LISTS
    assert set(OPS) - held == set(), "ops without samples in op_cases.py"
    assert held - set(OPS) == set(), "samples in op_cases.py of ops that the table does not have"


def test_every_op_is_a_function_of_the_package():
    assert [name for name in OPS if not callable(getattr(yoke, name, None))] == []


@pytest.mark.parametrize("name, i", SAMPLES)
def test_the_value_is_numpys_in_every_dtype(name, i):
    case = CASES[name]
    call = case.all_calls()[i]
    for dtype in case.dtypes if name in TAKES_VALUES else ("int64",):
        if name == "fill_" and dtype == "uint8" and call.args[1] is True:
            continue
        got = invoke(OPS[name], call, dtype)
        assert_values(case, got, expected(case, call, dtype), result_dtype(OPS[name], case, call, dtype), f"{name}({call}) {dtype}")


@pytest.mark.parametrize("name", [n for n in TAKES_VALUES if set(CASES[n].dtypes) != set(ALL)])
def test_a_dtype_that_an_op_does_not_take_is_a_type_error_that_names_both(name):
    for dtype in set(ALL) - set(CASES[name].dtypes):
        with pytest.raises(yoke.TypeError, match=rf"{name}.*{dtype}"):
            invoke(OPS[name], CASES[name].calls[0], dtype)


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n != "contiguous"])
@pytest.mark.parametrize("name", CASES)
def test_a_tensor_of_any_strides_gives_the_same_values(name, layout):
    if name == "view":
        pytest.skip("view needs strides that allow the shape; test_ops_values.py tests view")
    case = CASES[name]
    for dtype in ("float64", "float32", "bfloat16", "int8"):
        if name in TAKES_VALUES and dtype not in case.dtypes:
            continue
        for call in case.all_calls():
            got = invoke(OPS[name], call, dtype, LAYOUTS[layout])
            what = f"{name}({call}) {dtype} {layout}"
            assert_values(case, got, expected(case, call, dtype), result_dtype(OPS[name], case, call, dtype), what)


@pytest.mark.parametrize("name", CASES)
def test_an_expanded_tensor_gives_the_values_of_its_copy(name):
    op, case = OPS[name], CASES[name]
    if op.mut_arg >= 0 or name in ("view", "cross_entropy", "one_hot", "index_put", "masked_scatter"):
        pytest.skip("the first argument cannot be expanded, or is not the tested argument")

    def expanded(x):
        return x if x.ndim < 1 or x.shape[0] == 0 else yoke.expand(yoke.slice(x, 0, 0, 1), x.shape)
    for call in case.all_calls():
        args, named = tensors_of(op, call, "float64", expanded)
        copies, named_copies = tensors_of(op, call, "float64", lambda x: yoke.clone(expanded(x)))
        got, want = judged_of(op.function(*args, **named)), judged_of(op.function(*copies, **named_copies))
        np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=1e-13, atol=1e-13, err_msg=f"{name}({call})")


@pytest.mark.parametrize("name", CASES)
def test_more_than_64_ki_elements_match_numpy_in_any_layout(name):
    case = CASES[name]
    dtypes = [d for d in ("float32", "bfloat16", "uint8") if d in case.dtypes] if name in TAKES_VALUES else ["int64"]
    for dtype in dtypes:
        if name in ("matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm") and dtype == "uint8":
            continue  # sums of products wrap, as NumPy's int64 reference does not
        want = expected(case, case.large, dtype)
        for layout in (LAYOUTS["contiguous"], LAYOUTS["strided"]) if name != "view" else (LAYOUTS["contiguous"],):
            got = invoke(OPS[name], case.large, dtype, layout)
            assert_values(case, got, want, result_dtype(OPS[name], case, case.large, dtype), f"{name} {dtype} {layout.__name__}")


@pytest.mark.parametrize("name", CASES)
def test_the_same_call_gives_the_same_bits_again(name):
    for dtype in ("float32", "bfloat16"):
        if dtype in CASES[name].dtypes:
            first, second = (to_numpy(invoke(OPS[name], CASES[name].large, dtype)) for _ in range(2))
            assert first.tobytes() == second.tobytes(), dtype


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads_does_not_change_a_bit(name):
    before = yoke.get_num_threads()
    try:
        for dtype in ("float32", "bfloat16"):
            if dtype in CASES[name].dtypes:
                results = []
                for threads in (1, 2, 3, 8):
                    yoke.set_num_threads(threads)
                    results.append(to_numpy(invoke(OPS[name], CASES[name].large, dtype)).tobytes())
                assert len(set(results)) == 1, dtype
    finally:
        yoke.set_num_threads(before)


@pytest.mark.parametrize("name", [n for n in CASES if OPS[n].mut_arg < 0])
def test_an_op_leaves_its_arguments_alone(name):
    for dtype in ("float64", "bfloat16"):
        if dtype not in CASES[name].dtypes:
            continue
        for call in CASES[name].calls:
            args, named = tensors_of(OPS[name], call, dtype, lambda x: x)
            tensors = [t for v in args for t in (v if isinstance(v, list) else [v]) if isinstance(t, yoke.Tensor)]
            before = [to_numpy(t).tobytes() for t in tensors]
            OPS[name].function(*args, **named)
            assert before == [to_numpy(t).tobytes() for t in tensors], f"{name}({call})"


@pytest.mark.parametrize("name", [n for n in OPS if OPS[n].arg_types and OPS[n].arg_types[0] in ("tensor", "mut", "operand")])
def test_an_op_on_a_tensor_is_a_method_of_it_too(name):
    case = CASES.get(name)
    if case is None:
        assert callable(getattr(yoke.Tensor, name))
        return
    call = case.calls[0]
    args, named = tensors_of(OPS[name], call, "float64", lambda x: x)
    got = judged_of(getattr(args[0], name)(*args[1:], **named))
    assert_values(case, got, expected(case, call, "float64"), result_dtype(OPS[name], case, call, "float64"), name)


def test_the_helpers_make_the_layouts_that_they_promise():
    x = to_yoke(as_dtype(np.arange(24.0).reshape(2, 3, 4), "float32"), "float32")
    for name, layout in LAYOUTS.items():
        y = layout(x)
        np.testing.assert_array_equal(to_numpy(y), to_numpy(x), err_msg=name)
        assert y.is_contiguous() == (name == "contiguous"), name
    assert min(LAYOUTS["backwards"](x).strides) < 0
