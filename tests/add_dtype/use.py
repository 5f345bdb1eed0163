"""Uses the added dtypes from Python: made, cast, moved, printed, read, indexed, pickled, exchanged; their values by a table made here."""
import itertools
import math
import os
import pickle
import tempfile

import yoke

DEVICE = os.environ["YOKE_DEVICE"]
E3M4, I16 = yoke.float8_e3m4, yoke.int16


def decoded(bits):
    """Returns the number for a byte of float8_e3m4: bias 3, infinity as in IEEE 754."""
    sign, exponent, fraction = -1.0 if bits & 0x80 else 1.0, bits >> 4 & 7, bits & 15
    if exponent == 7:
        return math.nan if fraction else sign * math.inf
    return sign * (math.ldexp(16 + fraction, exponent - 7) if exponent else math.ldexp(fraction, -6))


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def on(tensor):
    return tensor.to(device=DEVICE)


assert (E3M4.name, E3M4.itemsize, E3M4.is_floating_point) == ("float8_e3m4", 1, True)
assert (I16.name, I16.itemsize, I16.is_floating_point) == ("int16", 2, False)
assert yoke.dtype("e3m4") is E3M4 and yoke.dtype("i16") is I16

# Tries every number, the midpoints, and numbers beyond the last, from each wider float.
numbers = [decoded(bits) for bits in range(256)]
assert all(map(same, on(yoke.tensor(numbers, dtype=E3M4)).tolist(), numbers))
finite = sorted({x for x in numbers if math.isfinite(x)})
between = {(a + b) / 2: (a, b) for a, b in itertools.pairwise(finite)}
even = {x: bits % 2 == 0 for bits, x in enumerate(numbers) if math.isfinite(x)}
for wide in (yoke.float64, yoke.float32):
    halves = on(yoke.tensor(list(between), dtype=wide)).to(dtype=E3M4).tolist()
    for (middle, (a, b)), got in zip(between.items(), halves):
        assert got in (a, b) and even[got], (wide, middle, got)
    assert on(yoke.tensor([15.5, 15.74, 15.75, 100.0, -1e30], dtype=wide)).to(dtype=E3M4).tolist() == [15.5, 15.5, math.inf, math.inf, -math.inf]
for script in (15.74, 0.1, -3.3):
    assert yoke.full((1,), script, dtype=E3M4, device=DEVICE).tolist() == on(yoke.tensor([script], dtype=yoke.float64)).to(dtype=E3M4).tolist()

# Integers wrap from integers, and stop at the ends from floats.
assert on(yoke.tensor([-32768, 32767, 7], dtype=I16)).tolist() == [-32768, 32767, 7]
assert on(yoke.tensor([40000, -40000], dtype=yoke.int64)).to(dtype=I16).tolist() == [40000 - 65536, 65536 - 40000]
assert on(yoke.tensor([1e9, -1e9, 2.7], dtype=yoke.float32)).to(dtype=I16).tolist() == [32767, -32768, 2]
assert on(yoke.tensor([300, -2], dtype=I16)).to(dtype=yoke.float32).tolist() == [300.0, -2.0]
assert on(yoke.tensor([1.5, -0.25], dtype=E3M4)).to(dtype=I16).tolist() == [1, 0]
for wrong in ([40000], [-32769]):
    try:
        yoke.tensor(wrong, dtype=I16)
    except yoke.ValueError as error:
        assert "out of the range" in str(error), error
    else:
        raise AssertionError("a number that int16 does not hold was taken")

x = on(yoke.tensor([[1.5, -2.25], [0.125, 4.0]], dtype=E3M4))
assert "1.5" in repr(x) and "float8_e3m4" in repr(x), repr(x)
assert x[1].tolist() == [0.125, 4.0] and x.T.contiguous().tolist() == [[1.5, 0.125], [-2.25, 4.0]]
assert yoke.cat([x, x]).shape == (4, 2) and x[0, 1].item() == -2.25
assert pickle.loads(pickle.dumps(x.cpu())).tolist() == x.tolist()
assert yoke.from_dlpack(x.cpu()).dtype is E3M4
n = on(yoke.tensor([[1, 2], [3, 4]], dtype=I16))
assert "int16" in repr(n) and n[1].tolist() == [3, 4] and yoke.from_dlpack(n.cpu()).dtype is I16
assert memoryview(n.cpu()).format == "h" and yoke.tensor(memoryview(n.cpu())).dtype is I16
assert n.cpu().numpy().dtype == "int16"

# A file supports the dtype with a name in the format. The other dtype is refused, with its place.
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "file")
    yoke.save(path, {"n": n, "turned": [n.T, 3]})
    assert b'"dtype":"I16","shape":[2,2]' in open(path, "rb").read() and yoke.load_info(path)["tensors"]["n"]["dtype"] == "int16"
    for options in ({}, {"mmap": False}, {"device": DEVICE}, {"dtype": yoke.float16}):
        back = yoke.load(path, **options)
        assert back["n"].dtype is I16 and back["n"].tolist() == [[1, 2], [3, 4]] and back["turned"][0].tolist() == [[1, 3], [2, 4]]
    try:
        yoke.save(path, {"n": n, "net": [x]})
    except yoke.TypeError as error:
        assert "'net.0' is float8_e3m4, which the format does not have" in str(error), error
    else:
        raise AssertionError("a dtype was saved for which the format has no name")
    assert yoke.load(path)["turned"][1] == 3
try:
    x + x
except yoke.TypeError as error:
    assert "float8_e3m4" in str(error), error
else:
    raise AssertionError("what is stored alone was added")
