"""float8: stored, cast and multiplied by scaled_mm; other computing is refused."""
import itertools
import math

import pytest

import yoke
from op_table import dtype_of

E4M3, E5M2 = yoke.float8_e4m3, yoke.float8_e5m2
# {dtype: (bits of fraction, bias of the exponent, largest finite value, what lies beyond)}
FORMATS = {E4M3: (3, 7, 448.0, math.nan), E5M2: (2, 15, 57344.0, math.inf)}


def decoded(bits, dtype):
    """Returns the number for a byte."""
    fraction_bits, bias, largest, _ = FORMATS[dtype]
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, fraction = (bits & 0x7F) >> fraction_bits, bits & (2**fraction_bits - 1)
    if dtype is E4M3 and bits & 0x7F == 0x7F:
        return math.nan
    if dtype is E5M2 and exponent == 31:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - bias - fraction_bits)
    return sign * math.ldexp(2**fraction_bits + fraction, exponent - bias - fraction_bits)


def rounded(value, dtype):
    """The nearest number of the dtype, ties to even."""
    fraction_bits, bias, largest, beyond = FORMATS[dtype]
    if math.isnan(value):
        return value
    if math.isinf(value):
        return math.copysign(beyond, value)
    exponent = max(math.frexp(value)[1] - 1 if value else 1 - bias, 1 - bias)
    step = math.ldexp(1.0, exponent - fraction_bits)
    nearest = round(value / step) * step  # Python rounds halves to even
    return math.copysign(beyond if abs(nearest) > largest else abs(nearest), value)


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def every_byte(dtype):
    """All 256 values, through memory: a uint8 tensor seen by DLPack would be refused, so bytes are cast's own inverse."""
    return [decoded(bits, dtype) for bits in range(256)]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("wide", ["float64", "float32", "float16", "bfloat16"])
def test_every_number_survives_a_trip_through_a_wider_dtype(dtype, wide):
    values = every_byte(dtype)
    there = yoke.tensor(values, dtype=dtype)
    back = there.to(dtype=dtype_of(wide)).to(dtype=dtype).tolist()
    assert all(map(same, there.tolist(), values))
    assert all(map(same, back, values))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("wide", ["float64", "float32"])
def test_casts_round_to_nearest_with_ties_to_even(dtype, wide):
    finite = sorted(v for v in every_byte(dtype) if math.isfinite(v))
    middles = [(a + b) / 2 for a, b in itertools.pairwise(finite)]
    beside = [math.nextafter(m, d * math.inf) for m in middles for d in (1, -1)] if wide == "float64" else []
    edge = [460.0, 464.0, 465.0, 480.0, 61439.0, 61440.0, 1e30, -1e30, math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-30]
    values = middles + beside + edge + [v * 1.03 for v in finite]
    wide_values = yoke.tensor(values, dtype=dtype_of(wide))
    got = wide_values.to(dtype=dtype).tolist()
    expected = [rounded(v, dtype) for v in wide_values.tolist()]
    assert all(map(same, got, expected)), [t for t in zip(values, got, expected) if not same(t[1], t[2])][:5]


@pytest.mark.parametrize("dtype", FORMATS)
def test_integers_and_bools_are_cast_both_ways(dtype):
    assert yoke.tensor([0, 1, -3, 300, 17]).to(dtype=dtype).tolist() == [0, 1, -3, rounded(300.0, dtype), rounded(17.0, dtype)]
    assert yoke.tensor([True, False]).to(dtype=dtype).tolist() == [1, 0]
    assert yoke.tensor([1.5, -2.5, 200.0], dtype=dtype).to(dtype=yoke.int8).tolist() == [1, -2, 127]
    assert yoke.tensor([0.0, 0.25], dtype=dtype).to(dtype=yoke.bool).tolist() == [False, True]


@pytest.mark.parametrize("dtype", FORMATS)
def test_elements_are_moved_filled_and_shown(dtype):
    x = yoke.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    assert x.dtype is dtype and dtype.itemsize == 1 and dtype.is_floating_point and x.nbytes == 4
    assert yoke.cat([x, x], 1).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert x.transpose(0, 1).contiguous().tolist() == [[1, 3], [2, 4]]
    assert x[1].tolist() == [3, 4] and x.index_select(0, yoke.tensor([1])).tolist() == [[3, 4]]
    assert yoke.full((2,), 3.3, dtype).tolist() == [rounded(3.3, dtype)] * 2
    assert dtype.name in repr(x) and x.clone()[0, 1].item() == 2
    assert yoke.zeros((0, 3), dtype).tolist() == []


def test_a_gradient_flows_back_through_a_cast():
    x = yoke.tensor([1.0, 2.0]).requires_grad_(True)
    (x.to(dtype=E4M3).to(dtype=yoke.float32) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize("call", [lambda x: x + x, lambda x: yoke.exp(x), lambda x: yoke.softmax(x, -1), lambda x: x.sum()])
def test_computing_is_refused_with_what_to_do(call):
    with pytest.raises(yoke.TypeError, match="float8_e4m3.*cast it first"):
        call(yoke.ones((2,), E4M3))


@pytest.mark.parametrize("name, rest", [("conv2d", [yoke.ones((2, 2, 1, 1), E4M3)]), ("conv_transpose2d", [yoke.ones((2, 2, 1, 1), E4M3)]),
                                        ("max_pool2d", [2]), ("avg_pool2d", [2]), ("adaptive_avg_pool2d", [1])])
def test_windows_are_refused_by_the_name_that_was_called(name, rest):
    with pytest.raises(yoke.TypeError, match=f"^{name}: argument 'x' is float8_e4m3.*cast it first"):
        getattr(yoke, name)(yoke.ones((1, 2, 4, 4), E4M3), *rest)


def test_the_wider_dtype_wins_beside_another():
    x = yoke.tensor([1.5], dtype=E5M2)
    assert (x + yoke.ones((1,))).dtype is yoke.float32
    assert (x + yoke.ones((1,), yoke.bfloat16)).dtype is yoke.bfloat16


@pytest.mark.parametrize("a, b", itertools.product(FORMATS, repeat=2))
def test_scaled_mm_multiplies_float8_matrices(a, b):
    yoke.manual_seed(1)
    # Quarters: both formats hold them, and float32 holds their sums exactly in every order.
    x, y = ((yoke.randint(-8, 9, shape) / 4).to(dtype=f) for shape, f in (((5, 7), a), ((7, 3), b)))
    scale_x, scale_y = yoke.tensor([0.5]), yoke.tensor(4.0)
    expected = (x.to(dtype=yoke.float32) @ y.to(dtype=yoke.float32)) * 2
    got = yoke.scaled_mm(x, y, scale_x, scale_y)
    assert got.dtype is yoke.bfloat16 and got.tolist() == expected.to(dtype=yoke.bfloat16).tolist()
    assert yoke.scaled_mm(x, y, scale_x, scale_y, out_dtype=yoke.float32).tolist() == expected.tolist()


@pytest.mark.parametrize("arguments, words", [
    (((2, 3), (2, 3), (1,), (1,)), r"\[m, k\] and \[k, n\]"), (((2, 3), (3, 2), (2,), (1,)), "one number"),
    (((3,), (3, 2), (1,), (1,)), r"\[m, k\]")])
def test_scaled_mm_names_what_is_wrong(arguments, words):
    x, y, a, b = arguments
    with pytest.raises(yoke.ValueError, match=words):
        yoke.scaled_mm(yoke.ones(x, E4M3), yoke.ones(y, E4M3), yoke.ones(a), yoke.ones(b))
    with pytest.raises(yoke.TypeError, match="out_dtype.*int64"):
        yoke.scaled_mm(yoke.ones((1, 1), E4M3), yoke.ones((1, 1), E4M3), yoke.ones(1), yoke.ones(1), out_dtype=yoke.int64)
