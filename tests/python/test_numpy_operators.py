"""A NumPy array beside a tensor becomes a tensor of its dtype, in operators and comparisons of either order, or a TypeError gives
the remedy.
"""

import operator
import subprocess
import sys
import warnings

import numpy as np
import pytest

import yoke
from yoke import _numpy

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow, "@": operator.matmul}
COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
WHOLE = {"//": operator.floordiv, "%": operator.mod}
BITS = {"<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor}
OPERATORS = {**ARITHMETIC, **COMPARISONS, **WHOLE}
IN_PLACE = {"+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "**=": operator.ipow, "//=": operator.ifloordiv,
            "%=": operator.imod}
WITHOUT = {"divmod": divmod}


def same(got, want):
    assert isinstance(got, yoke.Tensor) and (got.dtype, got.shape) == (want.dtype, want.shape)
    assert str(got.tolist()) == str(want.tolist())  # as text NaN equals NaN


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"])
@pytest.mark.parametrize("sign", [*OPERATORS, *BITS])
def test_an_array_is_a_tensor_of_its_dtype_on_either_side(sign, dtype):
    operate, array = {**OPERATORS, **BITS}[sign], np.array([1, 0, 1], dtype)
    for x in (yoke.tensor([1.0, 2.0, 3.0]), yoke.tensor([1, 2, 1])):
        for call in (lambda y: operate(x, y), lambda y: operate(y, x)):
            try:
                want = call(yoke.tensor(array))
            except yoke.Error as error:  # for example integers to a negative power, an error for arrays too
                with pytest.raises(type(error)):
                    call(array)
                continue
            same(call(array), want)


ARRAYS = [np.array(2.0), np.array(2, "int32"), np.array([[1.0], [2.0]]), np.arange(6.0).reshape(2, 3)[:, ::-1],
          np.arange(6, dtype="float32").reshape(3, 2).T, np.zeros((0, 1), "float32"), np.broadcast_to(np.float32(3), (2, 3))]


@pytest.mark.parametrize("sign", ["+", "==", "!=", "<"])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype} {a.shape}")
def test_any_layout_and_shape_broadcasts(array, sign):
    operate, x = OPERATORS[sign], yoke.tensor([[1.0, 2.0, 3.0]])
    array.flags.writeable = False
    same(operate(x, array), operate(x, yoke.tensor(array)))
    same(operate(array, x), operate(yoke.tensor(array), x))


@pytest.mark.parametrize("sign", [sign for sign in OPERATORS if sign != "@"])
@pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2), np.int64(2), np.uint8(2), np.bool_(True)], ids=lambda s: type(s).__name__)
def test_scalars_are_numbers(sign, scalar):
    operate, x, number = OPERATORS[sign], yoke.tensor([1.0, 2.0, 3.0], dtype=yoke.float16), scalar.item()
    same(operate(x, scalar), operate(x, number))
    same(operate(scalar, x), operate(number, x))


def test_bool_arrays_are_masks():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    x, y = yoke.tensor(a), yoke.tensor(b)
    for operate in (operator.and_, operator.or_, operator.xor):
        same(operate(x, b), operate(x, y))
        same(operate(a, y), operate(x, y))
        for one in (np.array(True), np.bool_(True)):
            same(operate(one, y), operate(True, y))
            same(operate(y, one), operate(y, True))
        same(operate(np.array([1, 2, 3, 4]), x), operate(yoke.tensor([1, 2, 3, 4]), x))
    x &= b
    assert x.tolist() == (a & b).tolist()


@pytest.mark.parametrize("sign", IN_PLACE)
def test_in_place_a_tensor_takes_an_array_and_an_array_a_tensor(sign):
    operate, values, other = IN_PLACE[sign], [1.0, 2.0, 3.0], [2.0, 2.0, 1.0]
    want = operate(np.array(values, "float32"), np.array(other, "float32")).tolist()
    x, address = yoke.tensor(values), None
    address, array = x.data_ptr(), np.array(values, "float32")
    changed = operate(x, np.array(other))
    assert changed is x and x.data_ptr() == address and x.dtype is yoke.float32 and x.tolist() == want
    changed = operate(array, yoke.tensor(other))
    assert changed is array and array.dtype == "float32" and array.tolist() == want


def test_an_array_takes_in_place_what_numpy_would_take():
    array = np.ones((2, 3), "float32")
    array += yoke.tensor([1.0, 2.0, 3.0], dtype=yoke.bfloat16)
    array[0] *= yoke.tensor(2.0, dtype=yoke.float64)
    assert array.tolist() == [[4, 6, 8], [2, 3, 4]]
    shared = np.arange(3.0)
    shared -= yoke.from_dlpack(shared)[::1]
    assert shared.tolist() == [0, 0, 0]
    whole = np.ones(3, "int64")
    with pytest.raises(TypeError, match="float32"):
        whole += yoke.ones(3)
    with pytest.raises(ValueError, match=r"\(2,3\).*\(3,\)"):
        whole += yoke.ones((2, 3), dtype=yoke.int64)
    with pytest.raises(yoke.TypeError, match=r"x\.detach\(\)"):
        array += yoke.ones(3, requires_grad=True)
    assert array.tolist() == [[4, 6, 8], [2, 3, 4]] and whole.tolist() == [1, 1, 1]


def test_gradients_flow_to_the_tensor():
    x = yoke.tensor([1.0, 2.0], requires_grad=True)
    array = np.array([3.0, 4.0], "float32")
    (array * x + x * array - array / x).sum().backward()
    assert x.grad.tolist() == [9.0, 9.0]


@pytest.mark.filterwarnings("ignore:elementwise comparison failed")
@pytest.mark.parametrize("array, remedy", [
    (np.ones(2, "uint16"), r'astype\("int64"\)'), (np.ones(2, "int16"), r'astype\("int64"\)'), (np.ones(2, "longdouble"), r'astype\("float64"\)'),
    (np.ones(2, "complex64"), r"x\.real"), (np.array([1, None]), r'astype\("float32"\)'), (np.array(["a", "b"]), r'astype\("float32"\)'),
    (np.ones(2, ">f4"), r'astype\("float32"\)'), (np.ones(2, ">i8"), r'astype\("int64"\)'), (np.ones(2, "M8[s]"), r'astype\("int64"\)'),
    (np.ones(2, [("a", "f4")]), r'x\["field"\]'), (np.ma.masked_equal([1.0, 2.0], 2), r"numpy\.asarray\(x\)"),
    (np.asmatrix([[1.0, 2.0]]), r"numpy\.asarray\(x\)"), (np.complex64(1), r"x\.real"), (np.str_("a"), "astype"),
], ids=lambda v: f"{type(v).__name__} {v.dtype}" if hasattr(v, "dtype") else None)
@pytest.mark.parametrize("sign", [*OPERATORS, "&"])
def test_an_array_without_a_counterpart_is_refused_with_what_to_write(sign, array, remedy):
    operate = OPERATORS.get(sign, operator.and_)
    x = yoke.ones(2, dtype=yoke.bool) if sign == "&" else yoke.ones(2)
    with pytest.raises(yoke.TypeError, match=remedy):
        operate(x, array)
    if type(array) in (np.ndarray, np.ma.MaskedArray) and not (array.dtype.names and sign in ("==", "!=")):  # NumPy itself refuses these
        with pytest.raises(yoke.TypeError, match=remedy):
            operate(array, x)


def test_an_array_to_the_power_of_a_whole_number_has_its_values():
    """NumPy reads a 0-dim tensor of integers as a number, and keeps the array."""
    assert (np.array([2, 3]) ** yoke.tensor(2)).tolist() == [4, 9]
    same(np.array([2.0, 3.0]) ** yoke.tensor([2]), yoke.tensor([4.0, 9.0], dtype=yoke.float64))


@pytest.mark.parametrize("key", [np.array(1), np.array([1, 0]), np.array([1, 0], "int32"), np.array([1, 0], "uint8"), np.array(True),
                                 np.array([True, False]), np.array([[True, False, True], [False] * 3]), np.int64(1), np.bool_(True),
                                 slice(np.int64(0), np.int32(1)), (np.array([0, 1]), np.array([1, 2])), (slice(None), np.array([2, 0]))], ids=repr)
def test_arrays_index_as_they_index_an_array(key):
    array = np.arange(6.0).reshape(2, 3)
    x = yoke.tensor(array)
    assert (x[key].shape, x[key].tolist()) == (array[key].shape, array[key].tolist())
    for value in (np.float32(7), np.array(8), np.full(x[key].shape, 9, "float16")):
        x[key] = array[key] = value
        assert x.tolist() == array.tolist()


@pytest.mark.parametrize("wrong, remedy", [(np.array([1], "uint16"), r'astype\("int64"\)'), (np.array([1], ">i8"), r'astype\("int64"\)'),
                                           (np.ones(1, ">f8"), r'astype\("float64"\)'), (np.array([1j]), r"\.real"),
                                           (np.ones(1, "longdouble"), r'astype\("float64"\)'), (np.array([1], object), r'astype\("float32"\)')], ids=str)
def test_an_array_that_no_tensor_can_be_made_of_is_refused_with_what_to_write(wrong, remedy):
    x = yoke.zeros(3)
    for use in (lambda: x[wrong], lambda: x.__setitem__(0, wrong), lambda: yoke.tensor(wrong)):
        with pytest.raises(yoke.UnsupportedError, match=remedy):
            use()


@pytest.mark.parametrize("name", WITHOUT)
def test_an_operator_that_tensors_lack_is_refused(name):
    array, x, operate = np.ones(2), yoke.ones(2), WITHOUT[name]
    for call in (lambda: operate(x, array), lambda: operate(array, x), lambda: operate(np.float32(1), x)):
        with pytest.raises(yoke.TypeError, match=r"write (yoke\.\w+, or )?numpy\.\w+ of x\.numpy\(\)"):
            call()


def test_functions_of_numpy_are_refused_by_name():
    x = yoke.ones(2)
    with pytest.raises(yoke.TypeError, match=r"numpy\.exp\(\): .*write yoke\.exp, or numpy\.exp of x\.numpy\(\)"):
        np.exp(x)
    with pytest.raises(yoke.TypeError, match=r"numpy\.add\(\): .*numpy\.add of x\.numpy\(\)"):
        np.add.at(x, [0], 1.0)
    with pytest.raises(yoke.TypeError, match="'out' is a Tensor"):
        np.add(x, 1.0, out=x)
    with pytest.raises(yoke.TypeError, match="numpy"):
        np.add(np.ones(2), 1.0, out=x)
    with pytest.raises(yoke.TypeError, match="a list and a Tensor"):
        np.add([1.0, 2.0], x)


def test_membership_and_search_compare_elements():
    x = yoke.tensor([1.0, 2.0])
    assert np.array(2.0) in x and np.array([5.0]) not in x and np.float32(1) in x
    one = yoke.tensor(3.0)
    assert one in [np.array(3.0)] and [np.array(1.0), np.array(3.0)].index(one) == 1
    for search in (lambda: x in [np.zeros(2)], lambda: [np.zeros(2)].index(x), lambda: x == np.ones(3)):
        with pytest.raises((ValueError, TypeError)):
            search()


class Duck:
    """A tensor of another library."""

    def __init__(self, **methods):
        self.methods = methods

    def __dlpack__(self, **options):
        return yoke.ones(2).__dlpack__(**options)


class Table:
    """A table of another library, which has rows of NumPy's."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


@pytest.mark.parametrize("sign", [*OPERATORS, *IN_PLACE])
@pytest.mark.parametrize("other, remedy", [(Duck(), r"Duck .*yoke\.from_dlpack\(x\)"), (Table(), r"Table .*yoke\.tensor\(numpy\.asarray\(x\)\)")],
                         ids=["dlpack", "array"])
def test_arrays_of_other_libraries_are_refused_and_never_unequal(sign, other, remedy):
    operate, x = {**OPERATORS, **IN_PLACE}[sign], yoke.ones(2)
    with pytest.raises(yoke.TypeError, match=remedy):
        operate(x, other)
    if sign in OPERATORS:
        with pytest.raises(yoke.TypeError, match=remedy):
            operate(other, x)
    with pytest.raises(yoke.TypeError, match=remedy):
        other in x


def test_a_class_that_asks_numpy_for_its_operators_is_asked():
    class Units(Table):
        __array_ufunc__ = None

        def __radd__(self, left):
            return "mine"

        def __eq__(self, other):
            return "mine"

    assert yoke.ones(1) + Units() == "mine" and (yoke.ones(1) == Units()) == "mine"


@pytest.mark.parametrize("kind", ["bool_", "int8", "uint8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"])
def test_a_numpy_scalar_is_a_number_on_either_side(kind):
    t, one = yoke.tensor([1., 2.]), getattr(np, kind)(1)
    tenth = yoke.tensor([0.1])
    assert (np.float64(0.1) == tenth).tolist() == (tenth == np.float64(0.1)).tolist() == [True], "a number is rounded to the tensor's dtype"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for operate in (each for each in OPERATORS.values() if each is not operator.matmul):
            for ours, plain in ((operate(one, t), operate(1, t)), (operate(t, one), operate(t, 1))):
                assert ours.tolist() == plain.tolist() and ours.dtype == plain.dtype, operate
    with pytest.raises(yoke.TypeError, match=r"write x\.real"):
        np.complex64(1) == t


def test_an_op_says_how_an_array_becomes_a_tensor():
    for call in (lambda: yoke.add(yoke.ones(2), np.ones(2)), lambda: yoke.ones(2).matmul(np.ones(2)), lambda: yoke.exp(np.ones(2))):
        with pytest.raises(yoke.TypeError, match=r"not numpy\.ndarray; write yoke\.tensor\(x\)"):
            call()


def test_numpy_is_neither_needed_nor_loaded():
    code = ("import sys, yoke; x = yoke.ones(2); x == None, x == 'a', 2 * x, x == x; x += 1\n"
            "class A:\n  def __array__(self): pass\n"
            "try: x == A()\nexcept TypeError as error: print(error)\n"
            "print(f'{x.sum():.2f}', 'numpy' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[1:] == ["4.00 False"] and "numpy.asarray" in done.stdout, done.stderr


@pytest.mark.skipif(not yoke.is_available("cuda"), reason="there is no GPU")
@pytest.mark.parametrize("sign", OPERATORS)
def test_beside_a_tensor_of_a_device_the_error_says_where_the_array_goes(sign):
    operate, x, array = OPERATORS[sign], yoke.ones(2, device="cuda"), np.ones(2, "float32")
    for call in (lambda: operate(x, array), lambda: operate(array, x)):
        with pytest.raises(yoke.TypeError, match=r'write yoke\.tensor\(x, device="cuda:0"\), or move the tensor by \.cpu\(\)'):
            call()


class Card:
    """Missing device, and a tensor on this device."""

    kind = "cuda"
    device = property(lambda self: self)

    def __str__(self):
        return "cuda:1"


@pytest.mark.parametrize("call, place", [("add", r"add\(\)"), ("&", "&")])
def test_an_array_is_no_operand_on_another_device(call, place):
    with pytest.raises(yoke.TypeError, match=rf'^{place}: the tensor is on cuda:1, .*write yoke\.tensor\(x, device="cuda:1"\), or move the tensor by \.cpu\(\)'):
        _numpy.operand(call, np.ones(2, "float32"), Card())
