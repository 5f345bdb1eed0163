"""Promotion: the dtype of every pair of tensors, and of every tensor with every kind of script scalar.

The rule (docs/design.md): a script's number is weak, a tensor without axes is not; bool gives way to all; integers with
floats give that float; float16 with bfloat16 gives float32; uint8 with int8 gives int32; else the wider one.
"""
import itertools

import numpy as np
import pytest

import yoke
from op_table import ALL, FLOATS, INTS, dtype_of, name_of

# Row with column, written out.
TABLE = """
          float64  float32  float16  bfloat16  int64    int32    int8     uint8    bool
float64   float64  float64  float64  float64   float64  float64  float64  float64  float64
float32   float64  float32  float32  float32   float32  float32  float32  float32  float32
float16   float64  float32  float16  float32   float16  float16  float16  float16  float16
bfloat16  float64  float32  float32  bfloat16  bfloat16 bfloat16 bfloat16 bfloat16 bfloat16
int64     float64  float32  float16  bfloat16  int64    int64    int64    int64    int64
int32     float64  float32  float16  bfloat16  int64    int32    int32    int32    int32
int8      float64  float32  float16  bfloat16  int64    int32    int8     int32    int8
uint8     float64  float32  float16  bfloat16  int64    int32    int32    uint8    uint8
bool      float64  float32  float16  bfloat16  int64    int32    int8     uint8    bool
"""
_rows = [line.split() for line in TABLE.strip().splitlines()]
EXPECTED = {(row[0], column): row[i + 1] for row in _rows[1:] for i, column in enumerate(_rows[0])}
PAIRS = sorted(EXPECTED)
pairs = pytest.mark.parametrize("a, b", PAIRS)
# Dtype of a result with a script scalar, by the scalar's kind.
SCALARS = {True: {d: d for d in ALL},
           2: {**{d: d for d in FLOATS + INTS}, "bool": "int64"},
           2.5: {**{d: d for d in FLOATS}, **{d: "float32" for d in INTS + ("bool",)}}}
scalars = pytest.mark.parametrize("dtype, scalar", list(itertools.product(ALL, SCALARS)))


def ones(name, *shape):
    return yoke.ones(shape, dtype=dtype_of(name))


def floating(name):
    return name if name in FLOATS else "float32"


def test_the_table_has_every_pair_and_is_symmetric():
    assert len(PAIRS) == 81 and {a for a, _ in PAIRS} == set(ALL)
    assert all(EXPECTED[a, b] == EXPECTED[b, a] for a, b in PAIRS)


@pairs
def test_two_tensors_give_the_dtype_of_the_table(a, b):
    x, y, want = ones(a, 3), ones(b, 3), EXPECTED[a, b]
    condition = yoke.tensor([True, False, True])
    assert name_of((x + y).dtype) == want
    assert name_of((x * y).dtype) == want
    assert name_of(yoke.maximum(x, y).dtype) == want
    assert name_of(yoke.where(condition, x, y).dtype) == want
    assert name_of((x / y).dtype) == floating(want)


@pairs
def test_a_tensor_without_axes_is_not_weak(a, b):
    assert name_of((ones(a, 3) + ones(b)).dtype) == EXPECTED[a, b]
    assert name_of((ones(b) + ones(a, 3)).dtype) == EXPECTED[a, b]


@pairs
def test_comparisons_promote_and_give_bool(a, b):
    x = yoke.tensor([0, 1, 1]).to(dtype=dtype_of(a))
    y = yoke.tensor([1, 1, 0]).to(dtype=dtype_of(b))
    for op, want in ((yoke.eq, [0, 1, 0]), (yoke.ne, [1, 0, 1]), (yoke.lt, [1, 0, 0]), (yoke.le, [1, 1, 0]),
                     (yoke.gt, [0, 0, 1]), (yoke.ge, [0, 1, 1]), (yoke.logical_and, [0, 1, 0]), (yoke.logical_xor, [1, 0, 1])):
        got = op(x, y)
        assert got.dtype is yoke.bool and got.tolist() == [bool(w) for w in want], op.__name__


@pairs
def test_values_are_those_of_the_promoted_operands(a, b):
    x = yoke.tensor([1, 0, 1]).to(dtype=dtype_of(a))
    y = yoke.tensor([1, 1, 0]).to(dtype=dtype_of(b))
    want = [True, True, True] if EXPECTED[a, b] == "bool" else [2, 1, 1]
    assert (x + y).tolist() == want
    assert yoke.minimum(x, y).tolist() == [1, 0, 0]


@pairs
def test_in_place_the_dtype_stays_or_the_call_is_refused(a, b):
    x, want = ones(a, 2), EXPECTED[a, b]
    fits = (a in FLOATS) or (want not in FLOATS and (a != "bool" or want == "bool"))
    if fits:
        x += ones(b, 2)
        assert name_of(x.dtype) == a and x.tolist() == [True if a == "bool" else 2] * 2
    else:
        with pytest.raises(yoke.TypeError, match=rf"add_: the result has dtype {want}.*{a}; use add"):
            x += ones(b, 2)
        assert x.tolist() == [1, 1], "a refused call changes nothing"


@pytest.mark.parametrize("a, b", [(a, b) for a, b in PAIRS if a in FLOATS and b in FLOATS])
def test_each_operand_gets_its_gradient_in_its_own_dtype(a, b):
    x, y = ones(a, 2).requires_grad_(True), ones(b, 2).requires_grad_(True)
    (x * y * 3).sum().backward()
    assert name_of(x.grad.dtype) == a and name_of(y.grad.dtype) == b
    assert x.grad.tolist() == y.grad.tolist() == [3, 3]


@scalars
def test_a_script_scalar_is_weak(dtype, scalar):
    x, want = ones(dtype, 2), SCALARS[scalar][dtype]
    condition = yoke.tensor([True, False])
    for got in (x + scalar, scalar + x, yoke.maximum(x, scalar), yoke.maximum(scalar, x), yoke.where(condition, x, scalar),
                yoke.where(condition, scalar, x)):
        assert name_of(got.dtype) == want
    assert name_of((x / scalar).dtype) == name_of((scalar / x).dtype) == floating(want)
    assert (x == scalar).dtype is (scalar < x).dtype is yoke.bool
    assert (x == scalar).tolist() == [scalar == 1] * 2


@scalars
def test_numpys_scalars_are_weak_too(dtype, scalar):
    kind = {bool: np.bool_, int: np.int64, float: np.float64}[type(scalar)]
    assert name_of((ones(dtype, 2) + kind(scalar)).dtype) == SCALARS[scalar][dtype]


def test_two_scalars_in_where_become_what_a_new_tensor_of_them_would():
    condition = yoke.tensor([True, False])
    for x, y, want in ((1.0, 2.0, yoke.float32), (1, 2, yoke.int64), (True, False, yoke.bool), (1, 2.5, yoke.float32),
                       (True, 2, yoke.int64)):
        got = yoke.where(condition, x, y)
        assert got.dtype is want and got.tolist() == [x, y]
