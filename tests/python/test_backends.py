"""yoke.backends: what the engines may do is read and written in one place, and reaches the device."""
import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

import yoke
from conftest import DEVICE, EMULATED

FINE = 1 + 2**-12  # TF32, which has 10 bits behind the point, makes it 1
ROUNDED = 1.0 if EMULATED else FINE  # a true GPU may round and need not; the CPU never does
IS_SURE = EMULATED or DEVICE == "cpu"


@pytest.fixture(autouse=True)
def not_allowed_before_and_after():
    yoke.backends.allow_tf32 = False
    yield
    yoke.backends.allow_tf32 = False


def product():
    return yoke.full((1, 1), FINE) @ yoke.ones((1, 1))


def products_in_tf32():
    """Those that the fake cuBLASLt was asked for so far."""
    library, = pathlib.Path(os.environ["YOKE_CUDA_LIB_PATH"]).glob("libcublasLt.so.*")
    return ctypes.CDLL(str(library)).fake_cublaslt_products(77)  # CUBLAS_COMPUTE_32F_FAST_TF32


def in_fresh_python(setting):
    return subprocess.run([sys.executable, "-c", "import yoke; print(yoke.backends.allow_tf32)"],
                          env=os.environ | {"YOKE_ALLOW_TF32": setting}, capture_output=True, text=True, timeout=60)


def test_tf32_is_allowed_by_a_setting_that_can_be_read():
    assert yoke.backends.allow_tf32 is False
    yoke.backends.allow_tf32 = True
    assert yoke.backends.allow_tf32 is True
    assert repr(yoke.backends) == "yoke.backends(allow_tf32=True)"


def test_what_is_no_setting_is_refused():
    with pytest.raises(TypeError, match="allow_tf32"):
        yoke.backends.allow_tf32 = 1.5
    assert yoke.backends.allow_tf32 is False
    with pytest.raises(AttributeError, match="allow_tf23"):
        yoke.backends.allow_tf23 = True


@pytest.mark.parametrize("setting, told", [("1", "True"), ("0", "False"), ("", "False")])
def test_the_environment_says_whether_tf32_is_allowed_at_first(setting, told):
    done = in_fresh_python(setting)
    assert done.stdout.strip() == told, done.stderr


def test_an_environment_that_cannot_be_read_is_named():
    done = in_fresh_python("perhaps")
    assert done.returncode != 0 and "YOKE_ALLOW_TF32 is 'perhaps'; it must be 0 or 1" in done.stderr


def test_products_are_rounded_to_tf32_only_while_that_is_allowed():
    for allowed in (False, True, False, True):
        yoke.backends.allow_tf32 = allowed
        if IS_SURE or not allowed:
            assert product().item() == (ROUNDED if allowed else FINE), allowed


def test_a_gradient_is_rounded_where_that_is_allowed_during_backward():
    x, weight = yoke.ones((1, 1), requires_grad=True), yoke.full((1, 1), FINE)
    for allowed in (False, True):
        yoke.backends.allow_tf32 = False
        loss = yoke.sum(x @ weight)
        yoke.backends.allow_tf32 = allowed
        grad, = yoke.grad(loss, [x])
        if IS_SURE or not allowed:
            assert grad.item() == (ROUNDED if allowed else FINE), allowed


@pytest.mark.parametrize("dtype", [yoke.float64, yoke.float16, yoke.bfloat16])
def test_products_of_other_dtypes_stay_as_they_are(dtype):
    yoke.manual_seed(1)
    x, y = yoke.randn((8, 8)).to(dtype), yoke.randn((8, 8)).to(dtype)
    exact = (x @ y).tolist()
    yoke.backends.allow_tf32 = True
    assert (x @ y).tolist() == exact


@pytest.mark.parametrize("allowed", [False, True])
def test_a_graph_keeps_what_was_allowed_at_its_capture(allowed):
    yoke.backends.allow_tf32 = allowed
    x, y, graph = yoke.full((1, 1), FINE), yoke.ones((1, 1)), yoke.Graph()
    with graph.capture():
        out = x @ y
    yoke.backends.allow_tf32 = not allowed
    graph.replay()
    if IS_SURE or not allowed:
        assert out.item() == (ROUNDED if allowed else FINE)


@pytest.mark.skipif(not EMULATED, reason="the fake cuBLASLt tells what it was asked for")
@pytest.mark.parametrize("a, b, asked", [
    ("float8_e4m3", "float8_e5m2", 1), ("float16", "float8_e4m3", 1), ("bfloat16", "bfloat16", 1),
    ("float32", "float8_e4m3", 0), ("float8_e4m3", "float32", 0), ("float64", "float64", 0)])
def test_scaled_mm_uses_tf32_unasked_where_it_holds_both_matrices_exactly(a, b, asked):
    x, y, scale = yoke.ones((4, 4)).to(dtype=a), yoke.ones((4, 4)).to(dtype=b), yoke.ones(1)
    before = products_in_tf32()
    yoke.scaled_mm(x, y, scale, scale)
    assert products_in_tf32() - before == asked
    yoke.ones((4, 4)) @ yoke.ones((4, 4))
    assert products_in_tf32() - before == asked  # it was for that call


@pytest.mark.parametrize("fine", ["x", "y"])
def test_scaled_mm_never_rounds_float32_unasked(fine):
    exact, narrow, scale = yoke.full((1, 1), FINE), yoke.ones((1, 1)).to(dtype="float8_e4m3"), yoke.ones(1)
    x, y = (exact, narrow) if fine == "x" else (narrow, exact)
    assert yoke.scaled_mm(x, y, scale, scale, yoke.float32).item() == FINE
