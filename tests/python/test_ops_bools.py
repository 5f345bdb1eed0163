"""Any byte except 0 is true: for masks of 0 and 255 or other bytes, ops give the results for 0 and 1."""
import numpy as np
import pytest

import instruction_sets
import yoke
from op_cases import CASES
from op_harness import inputs_of, invoke, map_arrays
from op_table import ALL, LAYOUTS, OPS, dtype_of, to_numpy
from test_ops_edges import FIXED, resized, sample_of

TRUE = np.array([1, 255, 2, 128, 127], dtype=np.uint8)
# Ops that compute a bool and so give 0 or 1, beside all ops with a bool result. Ops that move elements keep the
# bytes.
COMPUTE = {"add", "add_", "mul", "mul_", "maximum", "minimum", "amax", "amin", "outer"}


def odd_bytes(truths):
    return np.where(truths, np.resize(TRUE, np.shape(truths)), np.uint8(0)).astype(np.uint8)


def as_found(x):
    """A bool tensor's truths in other bytes; other tensors as they are."""
    return yoke.tensor(odd_bytes(to_numpy(x)).view(np.bool_)) if x.dtype == yoke.bool else x


def bytes_of(x):
    return to_numpy(x).view(np.uint8)


def has_masks(sample):
    found = []
    map_arrays(lambda a: found.append(a.dtype == bool), sample)
    return any(found)


def samples_of(name):
    """(sample, dtype) of the calls in which an op takes a bool."""
    case = CASES[name]
    calls = case.all_calls() + ([resized(sample_of(name), "last", 513)] if name not in FIXED else [])
    for sample in calls:
        if "bool" in case.dtypes and inputs_of(sample):
            yield sample, "bool"
        if has_masks(sample):
            yield sample, "float32"


TAKE_BOOLS = [name for name in CASES if any(True for _ in samples_of(name))]


def assert_alike(name, got, want, what):
    if want.dtype != yoke.bool:
        return np.testing.assert_array_equal(to_numpy(got), to_numpy(want), err_msg=what)
    np.testing.assert_array_equal(bytes_of(got) != 0, bytes_of(want) != 0, err_msg=what)
    if name in COMPUTE or CASES[name].result == "bool":
        assert bytes_of(got).max(initial=0) <= 1, what


def test_masks_come_as_they_are():
    mask = odd_bytes(np.arange(10) % 2 == 0).view(np.bool_)
    np.testing.assert_array_equal(bytes_of(yoke.tensor(mask)), mask.view(np.uint8))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", TAKE_BOOLS)
def test_an_op_takes_any_byte_but_0_for_true(name, layout):
    lay = LAYOUTS[layout]
    for sample, dtype in samples_of(name):
        got = invoke(OPS[name], sample, dtype, lambda x: lay(as_found(x)))
        assert_alike(name, got, invoke(OPS[name], sample, dtype, lay), f"{name}({sample}) of {dtype}")


@pytest.mark.parametrize("name", [n for n in TAKE_BOOLS if OPS[n].differentiable and any(d == "float32" for _, d in samples_of(n))])
def test_so_do_gradients(name):
    for sample, dtype in samples_of(name):
        if dtype != "float32":
            continue
        slopes = []
        for layout in (as_found, LAYOUTS["contiguous"]):
            leaves = []
            invoke(OPS[name], sample, dtype, layout, leaves).sum().backward()
            slopes.append([to_numpy(leaf.grad) for leaf in leaves])
        for got, want in zip(*slopes, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{name}({sample})")


# ---- Ops without a sample, or with another path for longer tensors ---------------------------------------------------


def truths(*shape):
    return np.random.default_rng(4).integers(0, 2, shape).astype(bool)


@pytest.mark.parametrize("shape", [(70_001,), (40, 700), (700, 40), (3, 33, 65)])
def test_reductions_and_scans_of_many_count_each_true_once(shape):
    mask = truths(*shape)
    x = yoke.tensor(odd_bytes(mask).view(np.bool_))
    for axis in [None, *range(len(shape))]:
        assert np.array_equal(to_numpy(yoke.sum(x, axis)), mask.sum(axis))
        assert np.array_equal(to_numpy(yoke.prod(x, axis)), mask.prod(axis))
        for name in ("any", "all"):
            assert np.array_equal(to_numpy(getattr(yoke, name)(x, axis)), getattr(mask, name)(axis))
        assert np.array_equal(to_numpy(yoke.amax(x, axis)), mask.max(axis))
        assert np.array_equal(to_numpy(yoke.amin(x, axis)), mask.min(axis))
        assert np.array_equal(to_numpy(yoke.argmax(x, axis)), mask.argmax(axis))
        assert np.array_equal(to_numpy(yoke.argmin(x, axis)), mask.argmin(axis))
        if axis is not None:
            assert np.array_equal(to_numpy(yoke.cumsum(x, axis)), mask.cumsum(axis))
            assert np.array_equal(to_numpy(yoke.argsort(x, axis)), mask.argsort(axis, kind="stable"))
    assert np.array_equal(to_numpy(yoke.nonzero(x)), np.argwhere(mask))


def test_masks_select_what_they_select():
    mask, values = truths(31, 17), np.arange(31 * 17, dtype=np.float32).reshape(31, 17)
    x, m = yoke.tensor(values), yoke.tensor(odd_bytes(mask).view(np.bool_))
    assert np.array_equal(to_numpy(x[m]), values[mask])
    assert np.array_equal(to_numpy(x[m[:, 0]]), values[mask[:, 0]])
    x[m] = -1.0
    assert np.array_equal(to_numpy(x), np.where(mask, -1, values))
    assert np.array_equal(to_numpy(x[yoke.tensor(odd_bytes(np.array(True)).view(np.bool_))]), np.where(mask, -1, values)[None])


def test_additions_to_bools_that_meet_are_or():
    index = yoke.tensor(np.arange(600) % 3)
    source = yoke.tensor(odd_bytes(np.arange(600) % 3 != 1).view(np.bool_))
    found = yoke.scatter_add(yoke.zeros((3,), dtype=yoke.bool), 0, index, source)
    assert bytes_of(found).tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", [*ALL[:-1], "float8_e4m3", "float8_e5m2"])
def test_casts_give_0_and_1(dtype):
    mask = truths(515)
    numbers = yoke.cast(yoke.tensor(odd_bytes(mask).view(np.bool_)), dtype_of(dtype))
    assert np.array_equal(to_numpy(yoke.cast(numbers, yoke.float32)), mask.astype(np.float32))


def test_attention_takes_the_mask():
    mask = truths(9, 11)
    query, key, value = (yoke.tensor(np.sin(np.arange(n * 8, dtype=np.float32)).reshape(n, 8)) for n in (9, 11, 11))
    results = []
    for m in (mask, odd_bytes(mask).view(np.bool_)):
        q = query.clone().requires_grad_()
        out = yoke.scaled_dot_product_attention(q, key, value, yoke.tensor(m))
        out.sum().backward()
        results.append((to_numpy(out), to_numpy(q.grad)))
    for got, want in zip(*results, strict=True):
        assert np.array_equal(got, want)


def test_scripts_read_true():
    for byte in TRUE:
        x = yoke.tensor(np.array([byte], dtype=np.uint8).view(np.bool_))
        assert x.item() is True and x.tolist() == [True] and bool(x) is True and int(x) == 1 and float(x) == 1.0
        assert repr(x) == repr(yoke.tensor([True]))


@pytest.mark.parametrize("isa", instruction_sets.NAMES)
def test_all_of_it_holds_on_every_instruction_set(isa):
    instruction_sets.run(isa, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "not instruction_set")
