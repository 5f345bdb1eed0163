"""Elementwise ops over rows of every length that maps treat apart (groups of a vector, rows that share a buffer, blocks),
however operands are broadcast and lie in memory: the same bits as over dense copies.
"""
import itertools

import numpy as np
import pytest

import yoke

DTYPES = ["float32", "bfloat16", "float16", "float64", "int64", "int32", "int8", "uint8", "bool"]
LENGTHS = [1, 3, 10, 16, 31, 63, 64, 65, 127, 129, 255, 256, 257, 512, 513, 1025]
ROWS = [1, 2, 7, 70]
_rng = np.random.default_rng(48)


def numbers(shape, dtype):
    return yoke.tensor(_rng.integers(0, 100, shape).astype(np.int64)).to(dtype=getattr(yoke, dtype))


def dense(x):
    return x.to(dtype=x.dtype).contiguous().clone()


# {name: function that makes a view of `rows` x `length` elements, or a tensor that broadcasts to this shape}
OPERANDS = {
    "dense": lambda rows, length, dtype: numbers((rows, length), dtype),
    "a row": lambda rows, length, dtype: numbers((length,), dtype),
    "a column": lambda rows, length, dtype: numbers((rows, 1), dtype),
    "one": lambda rows, length, dtype: numbers((1,), dtype),
    "transposed": lambda rows, length, dtype: numbers((length, rows), dtype).transpose(0, 1),
    "every second": lambda rows, length, dtype: numbers((rows, 2 * length), dtype)[:, ::2],
    "rows apart": lambda rows, length, dtype: numbers((rows, length + 3), dtype)[:, :length],
    "backwards": lambda rows, length, dtype: yoke.flip(numbers((rows, length), dtype), (0, 1)),
}


def bits(x):
    return (x.to(dtype=yoke.float64) if x.dtype not in (yoke.int64, yoke.bool) else x).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_operands_of_any_kind_give_the_bits_of_dense_ones(rows, dtype):
    for length, (left, right) in itertools.product(LENGTHS, itertools.product(OPERANDS, repeat=2)):
        if rows * length > 2000 and (left, right) not in {("dense", "a row"), ("a column", "transposed")}:
            continue
        x, y = OPERANDS[left](rows, length, dtype), OPERANDS[right](rows, length, dtype)
        shape = np.broadcast_shapes(x.shape, y.shape)
        full = [dense(yoke.expand(t, shape)) for t in (x, y)]
        what = f"{left} by {right}, {rows} x {length}"
        for op in (yoke.add, yoke.maximum, yoke.lt):
            assert bits(op(x, y)) == bits(op(*full)), f"{op.__name__}: {what}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", ["every second", "rows apart", "transposed"])
def test_results_are_written_where_they_lie_and_nowhere_else(target, dtype):
    for rows, length in itertools.product(ROWS, LENGTHS[:12]):
        room = numbers((rows, 2 * length + 3), dtype) if target != "transposed" else numbers((length, rows + 3), dtype)
        view = {"every second": lambda t: t[:, :2 * length:2], "rows apart": lambda t: t[:, :length],
                "transposed": lambda t: t[:, :rows].transpose(0, 1)}[target]
        y = OPERANDS["a row"](rows, length, dtype)
        want_room, inside = room.clone(), yoke.add(dense(view(room)), y)
        yoke.copy_(view(want_room), inside)
        yoke.add_(view(room), y)
        assert bits(room) == bits(want_room), f"{target}, {rows} x {length}"


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_of_any_layout_give_the_bits_of_dense_ones(dtype, to):
    for kind, rows, length in itertools.product(OPERANDS, (1, 7), LENGTHS):
        x = OPERANDS[kind](rows, length, dtype)
        assert bits(x.to(dtype=getattr(yoke, to))) == bits(dense(x).to(dtype=getattr(yoke, to))), f"{kind}, {rows} x {length}"
