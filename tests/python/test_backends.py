"""yoke.backends: the permissions of engines are read and written in a single place, and reach the device."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys

import pytest

import yoke
from conftest import DEVICE, EMULATED

FINE = 1 + 2**-12  # TF32, with 10 bits behind the point, makes this 1
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
    """Returns the number of TF32 products of the fake cuBLASLt so far."""
    library, = pathlib.Path(os.environ["YOKE_CUDA_LIB_PATH"]).glob("libcublasLt.so.*")
    return ctypes.CDLL(str(library)).fake_cublaslt_products(77)  # CUBLAS_COMPUTE_32F_FAST_TF32


def in_fresh_python(setting, name="YOKE_ALLOW_TF32", code="import yoke; print(yoke.backends.allow_tf32)"):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, name: setting}, capture_output=True, text=True,
                          timeout=60)


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


@pytest.mark.skipif(not EMULATED, reason="needs the fake cuBLASLt, which reports its arguments")
@pytest.mark.parametrize("a, b, asked", [
    ("float8_e4m3", "float8_e5m2", 1), ("float16", "float8_e4m3", 1), ("bfloat16", "bfloat16", 1),
    ("float32", "float8_e4m3", 0), ("float8_e4m3", "float32", 0), ("float64", "float64", 0)])
def test_scaled_mm_uses_tf32_unasked_where_it_holds_both_matrices_exactly(a, b, asked):
    x, y, scale = yoke.ones((4, 4)).to(dtype=a), yoke.ones((4, 4)).to(dtype=b), yoke.ones(1)
    before = products_in_tf32()
    yoke.scaled_mm(x, y, scale, scale)
    assert products_in_tf32() - before == asked
    yoke.ones((4, 4)) @ yoke.ones((4, 4))
    assert products_in_tf32() - before == asked  # the permission was for the earlier call


@pytest.mark.parametrize("fine", ["x", "y"])
def test_scaled_mm_never_rounds_float32_unasked(fine):
    exact, narrow, scale = yoke.full((1, 1), FINE), yoke.ones((1, 1)).to(dtype="float8_e4m3"), yoke.ones(1)
    x, y = (exact, narrow) if fine == "x" else (narrow, exact)
    assert yoke.scaled_mm(x, y, scale, scale, out_dtype=yoke.float32).item() == FINE


# ---- cuDNN -----------------------------------------------------------------------------------------------------------

cudnn = yoke.backends.cudnn
FAKE_CUDNN = pathlib.Path(os.environ.get("YOKE_CUDA_LIB_PATH", "")) / "libcudnn_graph.so.9"
needs_fake_cudnn = pytest.mark.skipif(not (EMULATED and FAKE_CUDNN.is_file()), reason="needs the fake cuDNN, which reports its arguments")
NAMES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "workspace_limit")


def settings_of_cudnn():
    return {name: getattr(cudnn, name) for name in NAMES}


@pytest.fixture(autouse=True)
def cudnn_as_before():
    with cudnn.flags():
        yield


def graphs_of_cudnn():
    """Returns the number of graphs that the fake cuDNN has run."""
    return sum(map(ctypes.CDLL(str(FAKE_CUDNN)).fake_cudnn_runs, (0, 1)))


def convolved():
    return yoke.conv2d(yoke.ones((1, 2, 4, 4)), yoke.ones((2, 2, 3, 3)), padding=1)[0, 0].tolist()


ONES_CONVOLVED = [[8, 12, 12, 8], [12, 18, 18, 12], [12, 18, 18, 12], [8, 12, 12, 8]]


@pytest.mark.parametrize("name, values", [
    ("enabled", (False, True)), ("benchmark", (True, False)), ("deterministic", (False, True)),
    ("benchmark_limit", (0, 3, 2**31 - 1)), ("workspace_limit", (0, 4096, 2**63 - 1))])
def test_a_setting_of_cudnn_is_kept_and_changes_no_other(name, values):
    others = settings_of_cudnn()
    for value in values:
        setattr(cudnn, name, value)
        assert settings_of_cudnn() == {**others, name: value} and type(getattr(cudnn, name)) is type(value)
        assert f"{name}={value}" in repr(cudnn)


@pytest.mark.parametrize("name, value, error, told", [
    ("enabled", "yes", TypeError, "backends.cudnn.*'enabled'"), ("deterministic", None, TypeError, "deterministic"),
    ("benchmark_limit", 1.5, TypeError, "benchmark_limit"), ("workspace_limit", "256M", TypeError, "workspace_limit"),
    ("benchmark_limit", -1, ValueError, "benchmark_limit is -1.*0 for all"),
    ("benchmark_limit", 2**31, ValueError, "benchmark_limit is 2147483648"),
    ("workspace_limit", -1, ValueError, "workspace_limit is -1.*bytes"), ("enable", True, AttributeError, "enable")])
def test_what_is_no_setting_of_cudnn_is_refused_and_changes_none(name, value, error, told):
    before = settings_of_cudnn()
    with pytest.raises(error, match=told):
        setattr(cudnn, name, value)
    assert settings_of_cudnn() == before
    with pytest.raises(AttributeError):
        yoke.backends.cudnn = None


def test_flags_of_cudnn_hold_for_a_block():
    before = settings_of_cudnn()
    with cudnn.flags(benchmark=True, workspace_limit=0):
        assert settings_of_cudnn() == {**before, "benchmark": True, "workspace_limit": 0}
    assert settings_of_cudnn() == before
    with pytest.raises(ValueError, match="workspace_limit is -1"):
        with cudnn.flags(deterministic=False, workspace_limit=-1):
            pytest.fail("the block is not reached")
    assert settings_of_cudnn() == before
    with pytest.raises(TypeError, match="allow_tf32"):
        cudnn.flags(allow_tf32=True)


@pytest.mark.parametrize("name, setting, told", [
    ("ENABLED", "0", "enabled=False"), ("ENABLED", "1", "enabled=True"), ("ENABLED", "", "enabled=True"),
    ("BENCHMARK", "1", "benchmark=True"), ("BENCHMARK", "", "benchmark=False"), ("BENCHMARK_LIMIT", "0", "benchmark_limit=0"),
    ("BENCHMARK_LIMIT", "", "benchmark_limit=10"), ("DETERMINISTIC", "1", "deterministic=True"),
    ("DETERMINISTIC", "", "deterministic=False"), ("WORKSPACE_LIMIT", "4096", "workspace_limit=4096"),
    ("WORKSPACE_LIMIT", "", "workspace_limit=268435456")])
def test_the_environment_says_what_cudnn_may_do_at_first(name, setting, told):
    done = in_fresh_python(setting, f"YOKE_CUDNN_{name}", "import yoke; print(yoke.backends.cudnn)")
    assert told in re.split(r"[(), \n]+", done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize("name, setting, told", [("ENABLED", "yes", "0 or 1"), ("BENCHMARK_LIMIT", "-1", "a whole number from 0 .all. to"),
                                                 ("WORKSPACE_LIMIT", "256M", "bytes, a whole number from 0")])
def test_a_variable_of_cudnn_that_cannot_be_read_is_named(name, setting, told):
    done = in_fresh_python(setting, f"YOKE_CUDNN_{name}", "import yoke; yoke.ones(1) + 1")
    assert done.returncode != 0
    assert re.search(f"YOKE_CUDNN_{name} is '{setting}'; it must be {told}", done.stderr), done.stderr


@pytest.mark.skipif(yoke.is_available("cuda"), reason="there is a CUDA device")
def test_without_a_cuda_device_that_is_why_there_is_no_cudnn():
    cudnn.enabled = True
    assert cudnn.version() is None and cudnn.why_unavailable() == yoke.why_unavailable("cuda") != ""
    cudnn.enabled = False
    assert cudnn.version() is None and "YOKE_CUDNN_ENABLED=0" in cudnn.why_unavailable()


@needs_fake_cudnn
def test_cudnn_is_found_only_where_it_is_enabled():
    code = """
import yoke
def is_mapped():
    return "libcudnn" in open("/proc/self/maps").read()
yoke.conv2d(yoke.ones((1, 2, 4, 4)), yoke.ones((2, 2, 3, 3))).tolist()
print(yoke.backends.cudnn.version(), "YOKE_CUDNN_ENABLED=0" in yoke.backends.cudnn.why_unavailable(), is_mapped())
yoke.backends.cudnn.enabled = True
print(yoke.backends.cudnn.version() >= 90800, yoke.backends.cudnn.why_unavailable(), is_mapped())
"""
    done = in_fresh_python("0", "YOKE_CUDNN_ENABLED", code)
    assert done.stdout.splitlines() == ["None True False", "True None True"], done.stderr


@needs_fake_cudnn
def test_convolutions_go_through_cudnn_only_while_it_is_enabled():
    for enabled in (False, True, False):
        cudnn.enabled = enabled
        before = graphs_of_cudnn()
        assert convolved() == ONES_CONVOLVED and graphs_of_cudnn() - before == enabled


@pytest.mark.parametrize("enabled", [False, True])
def test_a_graph_keeps_what_cudnn_might_do_at_its_capture(enabled):
    x, weight, graph = yoke.ones((1, 2, 4, 4)), yoke.ones((2, 2, 3, 3)), yoke.Graph()
    cudnn.enabled = enabled
    with graph.capture():
        out = yoke.conv2d(x, weight, padding=1)
    cudnn.enabled = not enabled
    graph.replay()
    assert out[0, 0].tolist() == ONES_CONVOLVED
