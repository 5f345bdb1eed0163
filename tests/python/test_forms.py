"""Further forms of calls (core/ops/forms.def): values beside NumPy, gradients by differences, results, and refusals."""
import dataclasses

import numpy as np
import pytest

import yoke
from conftest import EMULATED
from op_harness import assert_values, expected, inputs_of, invoke, result_dtype
from op_samples import Case, call, values
from op_table import ALL, FLOATS, LAYOUTS, NUMBERS, OPS, Op, name_of, to_numpy
from test_ops_grad import finite_differences, gradients


@dataclasses.dataclass(frozen=True)
class Form(Op):
    """A form as an op: its samples have all arguments in order, its function makes the call of a script."""

    call: object = None

    @property
    def function(self):
        return self.call


def form(name, function):
    """The form of a call; a sample's arguments stand by place."""
    op = OPS[name]
    return Form(name, op.family, op.arg_names, op.arg_types, op.results, op.mut_arg, 9, function)


def rounded(x, y, mode):
    with np.errstate(all="ignore"):
        return np.trunc(x / y) if mode == "trunc" else np.floor_divide(x, y)


def between(x, low, high):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


PAIRS = [(values(3, 5), values(5)), (values(7), values(7)), (values(2, 1, 4), values(3, 1)), (values(), values()), (values(0, 3), values(3))]
SAME = [(x, y) for x, y in PAIRS if np.broadcast_shapes(x.shape, y.shape) == x.shape]
SCALED = [call(x, y, alpha) for x, y in PAIRS for alpha in (2, -3)] + [call(values(4), 2, 3), call(2, values(4), 3)]



def apart(*shape):
    """Values that differ from those of values() and from whole numbers: bounds have no slope at ties."""
    return values(*shape) + 0.0137


BOUNDS = [call(apart(3, 5), values(5), values(3, 1) + 0.4), call(apart(7), None, values(7)), call(apart(2, 3), values(), None),
          call(apart(6), 0, values(6)), call(apart(6), values(6), 1), call(values(0, 2), values(2), values(2))]
SPLITS = ("trunc", "floor")
CASES = {
    "add": (lambda x, y, alpha: yoke.add(x, y, alpha=alpha), Case(lambda x, y, a: x + a * y, SCALED, dtypes=NUMBERS, absolute=True)),
    "add_": (lambda x, y, alpha: x.add_(y, alpha=alpha),
             Case(lambda x, y, a: x + a * y, [call(x, y, 2) for x, y in SAME], dtypes=NUMBERS, absolute=True)),
    "sub": (lambda x, y, alpha: yoke.sub(x, y, alpha=alpha), Case(lambda x, y, a: x - a * y, SCALED, dtypes=NUMBERS, absolute=True)),
    "sub_": (lambda x, y, alpha: x.sub_(y, alpha=alpha),
             Case(lambda x, y, a: x - a * y, [call(x, y, 2) for x, y in SAME], dtypes=NUMBERS, absolute=True)),
    "div": (lambda x, y, mode: yoke.div(x, y, rounding_mode=mode),
            Case(rounded, [call(values(3, 5), 3 * values(5, low=0.6), mode) for mode in SPLITS] + [call(values(4), 2, "floor")], dtypes=NUMBERS)),
    "div_": (lambda x, y, mode: x.div_(y, rounding_mode=mode), Case(rounded, [call(values(3, 5), 2, mode) for mode in SPLITS], dtypes=NUMBERS)),
    "clamp": (yoke.clamp, Case(between, BOUNDS, dtypes=NUMBERS)),
    "clamp_": (yoke.clamp_, Case(between, BOUNDS[:1] + BOUNDS[3:5], dtypes=NUMBERS)),
    "max": (yoke.max, Case(np.max, [call(values(3, 5)), call(values())])),
    "min": (yoke.min, Case(np.min, [call(values(3, 5)), call(values())])),
    "median": (yoke.median, Case(lambda x: np.sort(x, axis=None)[(x.size - 1) // 2], [call(values(3, 5)), call(values(4)), call(values())],
                                 dtypes=NUMBERS)),
    "maximum": (yoke.max, Case(np.maximum, [call(x, y) for x, y in PAIRS])),
    "minimum": (yoke.min, Case(np.minimum, [call(x, y) for x, y in PAIRS])),
}
SAMPLES = [pytest.param(name, each, id=f"{name}({each})") for name, (_, case) in CASES.items() for each in case.calls]
# On the emulated device, which takes a hundred times as long: a dtype of each kind, and few elements for differences.
FEW_DTYPES, MOST_VALUES = ("float32", "bfloat16", "int32", "uint8", "bool"), 12


def is_small(sample):
    return sum(np.size(each) for each in sample.args if isinstance(each, np.ndarray)) <= MOST_VALUES


@pytest.mark.parametrize("name, sample", SAMPLES)
def test_the_value_is_numpys_in_every_dtype_and_layout(name, sample):
    function, case = CASES[name]
    op = form(name, function)
    for dtype in [each for each in case.dtypes if not EMULATED or each in FEW_DTYPES]:
        want = expected(case, sample, dtype)
        for layout in LAYOUTS.values():
            if name.startswith("div") and dtype not in FLOATS and any(isinstance(a, np.ndarray) and not a.astype(int).all() for a in sample.args[1:2]):
                continue  # integers have no infinity
            got = invoke(op, sample, dtype, layout)
            assert_values(case, got, want, result_dtype(op, case, sample, dtype), f"{name}({sample}) {dtype}")


@pytest.mark.parametrize("name, sample", [each for each in SAMPLES if not each.values[0].startswith("div") and
                                          (not EMULATED or is_small(each.values[1]))])
def test_the_gradient_is_that_of_finite_differences(name, sample):
    op = form(name, CASES[name][0])
    got, upstream = gradients(op, sample, "float64")
    assert len(got) == len(inputs_of(sample))
    for grad, slope in zip(got, finite_differences(op, sample, upstream), strict=True):
        np.testing.assert_allclose(to_numpy(grad), slope, rtol=2e-6, atol=2e-8)


def test_a_rounded_quotient_has_no_slope():
    x, y = yoke.tensor([5.0, -3.0], requires_grad=True), yoke.tensor([2.0, 2.0], requires_grad=True)
    x.div(y, rounding_mode="trunc").sum().backward()
    assert x.grad.tolist() == [0, 0] and y.grad.tolist() == [0, 0]


def test_forms_by_other_names_and_as_methods():
    x, y = yoke.tensor([1.0, -2.0, 3.0]), yoke.tensor([2.0, 2.0, 2.0])
    assert x.add(other=y, alpha=2).tolist() == yoke.add(input=x, other=y, alpha=2).tolist() == [5, 2, 7]
    assert x.div(y, rounding_mode=None).tolist() == [0.5, -1, 1.5] and x.clone().div_(2, rounding_mode=None).tolist() == [0.5, -1, 1.5]
    assert x.clamp(max=y).tolist() == [1, -2, 2] and x.clamp(0, 2).tolist() == [1, 0, 2]
    assert x.max(other=y).tolist() == x.max(y).tolist() == [2, 2, 3] and yoke.max(input=x).item() == 3
    pair = x.max(dim=0)
    assert pair.values.item() == 3 and pair.indices.item() == 2 and x.min(0, keepdim=True).values.tolist() == [-2]
    assert x.median().item() == 1 and x.median(0).indices.item() == 0


def test_parts_between_indices():
    x = yoke.arange(6)
    for parts in (x.tensor_split([1, 3]), x.tensor_split((1, 3), 0), x.tensor_split(indices_or_sections=[1, 3], dim=0), x.tensor_split(indices=[1, 3])):
        assert [p.tolist() for p in parts] == [[0], [1, 2], [3, 4, 5]]
    assert [p.tolist() for p in x.tensor_split(2)] == [[0, 1, 2], [3, 4, 5]]


def test_places_and_truths():
    x = yoke.tensor([[0.0, 1.0], [2.0, 0.0]])
    for places in (yoke.where(x > 0), yoke.where(condition=x > 0), x.nonzero(as_tuple=True)):
        assert [p.tolist() for p in places] == [[0, 1], [1, 0]]
    assert x.nonzero(as_tuple=False).tolist() == x.nonzero().tolist() == [[0, 1], [1, 0]]
    assert yoke.equal(x, x) is True and x.equal(x + 1) is False
    assert x.allclose(x + 1e-9) is True and yoke.allclose(input=x, other=x + 1, rtol=0) is False


def test_a_number_beside_tensors_takes_the_dtype_of_x():
    for dtype in ALL[:-1]:
        x = yoke.tensor([1, 5]).to(getattr(yoke, dtype))
        assert name_of(x.clamp(x, 3).dtype) == dtype
    assert yoke.tensor([1, 5]).clamp(yoke.tensor([2]), 3.5).tolist() == [2, 3.5]


def test_new_tensors_and_modules_follow_a_tensor():
    x = yoke.zeros(2, dtype=yoke.float64)
    assert yoke.nn.Linear(2, 1).to(x).weight.dtype is yoke.float64 and yoke.nn.Linear(2, 1).to(other=x).bias.dtype is yoke.float64


X, Y = yoke.tensor([1.0, -2.0]), yoke.tensor([2.0, 2.0])


@pytest.mark.parametrize("make, kind, told", [
    (lambda: X.add(Y, alhpa=2), yoke.TypeError, r"add\(\): there is no argument 'alhpa'; did you mean 'alpha'\?: add\(x, y, \*, alpha=1\)"),
    (lambda: X.add(Y, 2), yoke.TypeError, r"add\(\): takes at most 2 arguments but 3 were given: add\(x, y, \*, alpha=1\)"),
    (lambda: X.add(Y, y=Y, alpha=2), yoke.TypeError, "argument 'y' is given twice"),
    (lambda: X.add(Y, other=Y, alpha=2), yoke.TypeError, "arguments 'y' and 'other' are the same argument"),
    (lambda: X.add(alpha=2), yoke.TypeError, "argument 'y' is missing"),
    (lambda: X.sub(Y, alpha="2"), yoke.TypeError, r"sub\(\): argument 'alpha' must be a number, not str"),
    (lambda: X.add_(Y, alpha=None), yoke.TypeError, r"add_\(\): argument 'alpha' must be a number, not NoneType"),
    (lambda: yoke.tensor([1]).add(1, alpha=0.5), yoke.TypeError, "add: argument 'alpha' is 0.5, and the tensors are int64 together"),
    (lambda: (X > 0).sub(X > 0, alpha=2), yoke.TypeError, "sub: bool tensors do not support sub"),
    (lambda: X.div(Y, rounding_mode="up"), yoke.ValueError, "div: argument 'rounding_mode' is \"up\"; it takes \"trunc\" or \"floor\""),
    (lambda: X.div(Y, rounding_mode=2), yoke.TypeError, r"div\(\): argument 'rounding_mode' must be a str, not int"),
    (lambda: X.clamp(Y, "a"), yoke.TypeError, r"clamp\(\): argument 'max' must be a tensor or a number, not str"),
    (lambda: X.clamp(yoke.ones(3)), yoke.ValueError, "clamp"),
    (lambda: yoke.tensor([1], dtype=yoke.int8).clamp(yoke.tensor([2], dtype=yoke.int8), 300), yoke.ValueError,
     r"clamp\(\): argument 'max' is 300, which does not fit into int8; give a smaller number"),
    (lambda: X.max((0, 1)), yoke.TypeError, r"max\(\): argument 'axis' must be an integer, not tuple"),
    (lambda: X.max(Y, keepdim=True), yoke.TypeError, r"max\(\): there is no argument 'keepdim'; the arguments are: max\(x, y\)"),
    (lambda: X.max(0, other=Y), yoke.TypeError, "arguments 'y' and 'other' are the same argument"),
    (lambda: X.max(keepdim=True), yoke.TypeError, r"max\(\): argument 'axis' is missing"),
    (lambda: X.median(keepdim=True), yoke.TypeError, r"median\(\): argument 'axis' is missing"),
    (lambda: X.tensor_split([1, "a"]), yoke.TypeError, r"tensor_split\(\): argument 'sections' has a str at position 1"),
    (lambda: X.new_zeros(nonsense=1), yoke.TypeError, r"new_zeros\(\): there is no argument 'nonsense'"),
    (lambda: X.new_full((2,)), yoke.TypeError, r"new_full\(\): argument 'value' is missing: new_full\("),
    (lambda: X.repeat(), yoke.TypeError, r"repeat\(\): argument 'reps' is missing: repeat\(x, reps\)"),
    (lambda: yoke.allclose(X, "a"), yoke.TypeError, r"allclose\(\): argument 'y' must be a tensor or a number, not str"),
])
def test_refusals_name_the_call_the_argument_and_what_is_allowed(make, kind, told):
    with pytest.raises(kind, match=told):
        make()
