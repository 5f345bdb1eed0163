"""Autocast: every op's class against the lists that PyTorch's CUDA users know, and the rules of regions and kept casts."""
import asyncio
import gc
import pathlib
import re
import threading

import numpy as np
import pytest

import yoke
from op_cases import CASES, CREATION, RANDOM
from op_harness import invoke
from op_table import OPS, name_of

HALVES = ("float16", "bfloat16")

# The lists, as far as Yoke has the ops. An op in no list runs in the dtypes of its arguments.
LOW = {"matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "linear", "einsum", "scaled_dot_product_attention", "conv1d", "conv2d", "conv_transpose2d"}
F32 = {"exp", "log", "reciprocal", "rsqrt", "pow", "softplus", "logsumexp", "layer_norm", "group_norm", "rms_norm",
       "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy_with_logits", "cdist",
       "cosine_similarity", "log1p", "expm1", "log2", "log10", "tan", "asin", "acos", "sinh", "cosh", "erfinv", "logaddexp"}
F32_UNLESS_DTYPE = {"sum", "prod", "cumsum", "cumprod", "softmax", "log_softmax", "norm"}
PROMOTE = {"cat", "stack", "scatter_add"}
REFUSED = {"binary_cross_entropy"}
LISTED = LOW | F32 | F32_UNLESS_DTYPE | PROMOTE | REFUSED


def class_in_reference(name):
    """Returns the class of an op under autocast, according to docs/ops.md."""
    text = (pathlib.Path(__file__).parents[2] / "docs/ops.md").read_text(encoding="utf-8")
    return re.search(rf"### {name}\n.*?Autocast: ([^\n]*)", text, re.S)[1]


def outputs(result):
    return [x for x in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(x, yoke.Tensor)]


def dtypes_of(name, call, dtype, low=None):
    """Returns dtypes of the floating results and of the tape's saved arguments, for inputs of `dtype` with a gradient."""
    with yoke.autocast(low, enabled=low is not None):
        results = outputs(invoke(OPS[name], call, dtype, leaves=[]))
    floating = [name_of(x.dtype) for x in results if "float" in name_of(x.dtype)]
    saved = [name_of(s.dtype) for x in results for s in yoke.saved_tensors(x)
             if s.argument != "out" and "float" in name_of(s.dtype)]  # a result's statistics are float32 in any class
    return floating, saved


def expected_dtype(name, dtype, low):
    if name in LOW and dtype != "float64":
        return low
    if name in F32 | F32_UNLESS_DTYPE and dtype != "float64":
        return "float32"
    return dtype


def samples(name):
    """Returns calls of floating tensors without a dtype argument."""
    case = CASES[name]
    return [c for c in case.calls if "dtype" not in c.named and not any(isinstance(a, str) and a.startswith("float") for a in c.args)]


def test_every_op_of_the_lists_is_an_op():
    assert LISTED - set(OPS) == set()


@pytest.mark.parametrize("low", HALVES)
@pytest.mark.parametrize("name", sorted(LISTED - REFUSED))
def test_an_op_of_a_list_gives_and_saves_the_dtype_of_its_class(name, low):
    assert samples(name), f"{name} has samples"
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        want = expected_dtype(name, dtype, low)
        for call in samples(name):
            floating, saved = dtypes_of(name, call, dtype, low)
            assert set(floating) == {want}, f"{name}({call}) of {dtype}"
            if name in LOW | F32:
                assert set(saved) <= {want}, f"{name}({call}) of {dtype} saves {saved}"


@pytest.mark.parametrize("name", sorted(set(CASES) - LISTED))
def test_an_op_of_no_list_runs_as_it_would_outside(name):
    case = CASES[name]
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        if dtype in case.dtypes:
            for call in case.calls:
                assert dtypes_of(name, call, dtype, "bfloat16") == dtypes_of(name, call, dtype), f"{name}({call}) of {dtype}"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_op_that_is_not_safe_is_refused_with_what_to_use(name):
    with yoke.autocast(), pytest.raises(yoke.UnsupportedError, match=f"{name}.*with_logits"):
        invoke(OPS[name], CASES[name].calls[0], "float32")
    with yoke.autocast(enabled=False):
        invoke(OPS[name], CASES[name].calls[0], "float32")


def test_the_reference_page_tells_each_class():
    told = [(LOW, "runs in the autocast dtype."), (F32, "runs in float32."), (PROMOTE, "runs in the widest dtype of its arguments."),
            (F32_UNLESS_DTYPE, "runs in float32 unless `dtype` is given."), (REFUSED, "is refused.")]
    for name in OPS:
        want = next((text for group, text in told if name in group), "does not change the dtypes.")
        assert class_in_reference(name).startswith(want), name


def test_gradients_come_back_in_the_dtype_of_the_leaf():
    for name in sorted(LISTED - REFUSED):
        for dtype in ("float32", "float16", "float64"):
            leaves = []
            with yoke.autocast("bfloat16"):
                result = outputs(invoke(OPS[name], CASES[name].calls[0], dtype, leaves=leaves))[0]
            yoke.cast(result, yoke.float32).sum().backward()
            assert {name_of(x.grad.dtype) for x in leaves if x.grad is not None} == {dtype}, name


# ---- promotion -------------------------------------------------------------------------------------------------------


def test_promote_takes_the_widest_floating_dtype():
    f32, f16, bf16 = (yoke.ones((2,), dtype=d) for d in ("float32", "float16", "bfloat16"))
    with yoke.autocast("bfloat16"):
        assert yoke.cat([bf16, f32]).dtype == yoke.float32
        assert yoke.cat([bf16, bf16]).dtype == yoke.bfloat16
        assert yoke.stack([f16, bf16]).dtype == yoke.float32
        index = yoke.tensor([0, 1])
        assert yoke.scatter_add(bf16, 0, index, f32).dtype == yoke.float32


def test_integers_and_float64_are_left_alone():
    whole, double = yoke.ones((2, 2), dtype="int32"), yoke.ones((2, 2), dtype="float64")
    with yoke.autocast():
        assert (whole @ whole).dtype == yoke.int32
        assert (double @ double).dtype == yoke.float64
        assert yoke.exp(double).dtype == yoke.float64
        assert yoke.sum(whole).dtype == yoke.int64


def test_a_given_dtype_wins_over_float32():
    x = yoke.ones((3,), dtype="bfloat16")
    with yoke.autocast():
        assert yoke.softmax(x, dtype=yoke.bfloat16).dtype == yoke.bfloat16
        assert yoke.sum(x, dtype=yoke.float64).dtype == yoke.float64


# ---- regions ---------------------------------------------------------------------------------------------------------


def product(x, y):
    return name_of((x @ y).dtype)


def test_regions_nest_and_the_outer_one_comes_back():
    x = yoke.ones((2, 2))
    assert product(x, x) == "float32" and not yoke.is_autocast_enabled()
    with yoke.autocast("float16"):
        assert product(x, x) == "float16" and yoke.get_autocast_dtype() == yoke.float16
        with yoke.autocast("bfloat16"):
            assert product(x, x) == "bfloat16"
        with yoke.autocast(enabled=False):
            assert product(x, x) == "float32" and not yoke.is_autocast_enabled()
            with yoke.autocast():
                assert product(x, x) == "bfloat16"
        assert product(x, x) == "float16"
    assert product(x, x) == "float32" and yoke.get_autocast_dtype() == yoke.bfloat16


def test_an_error_inside_ends_the_region():
    region = yoke.autocast()
    with pytest.raises(yoke.ValueError):
        with region:
            yoke.ones((2, 3)) @ yoke.ones((2, 3))
    assert not yoke.is_autocast_enabled()
    with region, region:
        assert yoke.is_autocast_enabled()
    assert not yoke.is_autocast_enabled()


def test_a_region_decorates_a_function_and_belongs_to_its_thread():
    x = yoke.ones((2, 2))

    @yoke.autocast("float16")
    def forward(a):
        return a @ a

    seen = []
    with yoke.autocast():
        thread = threading.Thread(target=lambda: seen.extend([yoke.is_autocast_enabled(), name_of(forward(x).dtype)]))
        thread.start()
        thread.join()
    assert seen == [False, "float16"]
    with pytest.raises(yoke.TypeError, match="generator"):
        @yoke.autocast()
        def items():
            yield 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "half"])
def test_another_dtype_than_a_half_is_refused(dtype):
    with pytest.raises(yoke.ValueError, match=dtype):
        yoke.autocast(dtype)


def test_backward_inside_a_region_runs_in_the_dtypes_of_what_was_recorded():
    x = yoke.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = yoke.tensor([[1.0, 0.5], [0.25, 2.0]], requires_grad=True)
    outside = yoke.grad((x @ y).sum(), [x, y])
    with yoke.autocast():
        with yoke.autocast(enabled=False):
            loss = (x @ y).sum()
        inside = yoke.grad(loss, [x, y])
    for a, b in zip(outside, inside):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


# ---- kept casts ------------------------------------------------------------------------------------------------------


WEIGHT = 512
HALF_BYTES = WEIGHT * WEIGHT * 2


def kept_bytes(runs, **options):
    """Returns the memory held by casts after each of `runs` products with the same weight, in sizes of the half weight; also the
    products and the weight.
    """
    x, weight = yoke.ones((1, WEIGHT), dtype="bfloat16"), yoke.ones((WEIGHT, WEIGHT), requires_grad=True)
    gc.collect()
    before, held, products = yoke.memory_allocated(), [], []
    with yoke.autocast("bfloat16", **options):
        for _ in range(runs):
            products.append(x @ weight)
            held.append(round((yoke.memory_allocated() - before) / HALF_BYTES))
    return held, products, weight


def test_a_weight_is_cast_once_in_a_region():
    # A product keeps its weight only for a gradient of x, and x requires no gradient here. So the held memory is the
    # cache's.
    held, products, weight = kept_bytes(3)
    assert held == [1, 1, 1]
    yoke.cat(products).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy(), np.full((WEIGHT, WEIGHT), 3.0))


def test_without_the_cache_a_weight_is_cast_for_each_op():
    held, products, weight = kept_bytes(3, cache_enabled=False)
    assert held == [0, 0, 0]
    yoke.cat(products).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy(), np.full((WEIGHT, WEIGHT), 3.0))


def test_a_weight_that_was_changed_is_cast_anew():
    weight = yoke.ones((2, 2), requires_grad=True)
    x = yoke.ones((2, 2))
    with yoke.autocast():
        assert (x @ weight).tolist() == [[2, 2], [2, 2]]
        with yoke.no_grad():
            weight.mul_(3)
        assert (x @ weight).tolist() == [[6, 6], [6, 6]]


def test_a_cast_made_without_the_tape_does_not_cut_the_weight_off():
    weight, x = yoke.ones((2, 2), requires_grad=True), yoke.ones((2, 2))
    with yoke.autocast():
        with yoke.no_grad():
            x @ weight
        (x @ weight).sum().backward()
    assert weight.grad.tolist() == [[2, 2], [2, 2]]


def test_kept_casts_go_with_the_outermost_region():
    weight, x = yoke.ones((256, 256), requires_grad=True), yoke.ones((1, 256))
    gc.collect()
    before = yoke.memory_allocated()
    with yoke.autocast():
        with yoke.autocast():
            yoke.matmul(x, weight).detach()
        inside = yoke.memory_allocated()
        assert inside - before >= 256 * 256 * 2
    assert yoke.memory_allocated() == before


# ---- Memory of the tape ----------------------------------------------------------------------------------------------


def test_saved_tensors_tells_op_argument_dtype_shape_and_bytes():
    x, weight = yoke.ones((3, 4)), yoke.ones((5, 4), requires_grad=True)
    with yoke.autocast("bfloat16"):
        y = yoke.linear(x, weight)
    (saved,) = yoke.saved_tensors(y)
    assert (saved.argument, saved.dtype, saved.shape, saved.nbytes) == ("x", yoke.bfloat16, (3, 4), 24)
    y.sum().backward()
    assert yoke.saved_tensors(y) == [] and yoke.saved_tensors(weight) == []


# ---- Regions that end in another order -------------------------------------------------------------------------------


def test_regions_may_end_in_any_order():
    x = yoke.ones((2, 2))
    outer, inner = yoke.autocast("bfloat16"), yoke.autocast("float16")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert product(x, x) == "float16"
    inner.__exit__(None, None, None)
    assert product(x, x) == "float32" and not yoke.is_autocast_enabled()
    with pytest.raises(yoke.StateError, match="this block is not open"):
        inner.__exit__(None, None, None)


def test_tasks_and_generators_that_end_late_leave_nothing_in_force():
    x = yoke.ones((2, 2))

    async def task(dtype, start, end):
        await asyncio.sleep(start)
        with yoke.autocast(dtype):
            await asyncio.sleep(end)
            x @ x

    async def both():
        await asyncio.gather(task("bfloat16", 0, 0.02), task("float16", 0.005, 0.03), task("bfloat16", 0.01, 0.001))

    asyncio.run(both())
    assert product(x, x) == "float32"

    def late():
        with yoke.autocast("bfloat16"):
            yield

    generator = late()
    with yoke.autocast("float16"):
        next(generator)
    gc.collect()
    generator.close()
    assert product(x, x) == "float32" and not yoke.is_autocast_enabled()


def test_one_object_serves_two_threads():
    x, region = yoke.ones((2, 2)), yoke.autocast("float16")
    inside, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with region:
            inside.set()
            leave.wait(10)
            seen.append(product(x, x))
        seen.append(product(x, x))

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with region:
        assert product(x, x) == "float16"
    assert product(x, x) == "float32"
    leave.set()
    thread.join()
    assert seen == ["float16", "float32"]


@pytest.mark.parametrize("cache_enabled", [True, False])
def test_a_weight_serves_several_backward_passes_in_one_region(cache_enabled):
    x, weight = yoke.ones((1, 2)), yoke.ones((2, 2), requires_grad=True)
    with yoke.autocast(cache_enabled=cache_enabled):
        for _ in range(2):
            yoke.linear(x, weight).sum().backward()
        first, second = (x @ weight).sum(), (x @ weight).sum()
    first.backward()
    second.backward()
    assert weight.grad.tolist() == [[4, 4], [4, 4]]


def test_einsum_and_attention_save_what_they_were_cast_to():
    a, b = (yoke.ones((256, 256), requires_grad=True) for _ in range(2))
    half, statistics = 256 * 256 * 2, 4 * 64 * 4  # bytes of a matrix, and of attention's log-sum-exp
    heads = (1, 4, 64, 256)

    def attention():
        return yoke.scaled_dot_product_attention(a.reshape(heads), b.reshape(heads), b.reshape(heads), enable_gqa=True)

    for call, kept in ((lambda: yoke.einsum("ij,jk->ki", [a, b]), 2 * half), (attention, 3 * half + statistics)):
        gc.collect()
        before = yoke.memory_allocated()
        with yoke.autocast("bfloat16", cache_enabled=False):
            y = call()
        assert yoke.memory_allocated() - before == y.storage_nbytes() + kept
        del y


def test_a_write_through_a_round_trip_by_dlpack_is_heard():
    x, w = yoke.ones(4, 4), yoke.nn.Parameter(yoke.ones(4, 4))
    with yoke.autocast("bfloat16"):
        assert (x @ w).float().sum().item() == 64
        with yoke.no_grad():
            yoke.from_dlpack(w.detach()).fill_(9)
        assert (x @ w).float().sum().item() == 576
