import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

import yoke
from conftest import EMULATED

FAKE_CUDNN = pathlib.Path(os.environ.get("YOKE_CUDA_LIB_PATH", "")) / "libcudnn_graph.so.9"
needs_fake_cudnn = pytest.mark.skipif(not (EMULATED and FAKE_CUDNN.is_file()), reason="needs the fake cuDNN, which counts its gradients")
IN_ORDER, ANY_ORDER = 1, 2


@pytest.fixture(autouse=True)
def not_asked_for_before_and_after():
    with yoke.backends.cudnn.flags():
        yoke.use_deterministic_algorithms(False)
        yield
        yoke.use_deterministic_algorithms(False)


def gradients_of_cudnn():
    """Returns the numbers of gradients of attention that the fake cuDNN has run: in order, and in any order."""
    return [ctypes.CDLL(str(FAKE_CUDNN)).fake_cudnn_gradients(order) for order in (IN_ORDER, ANY_ORDER)]


def gradient_of_attention():
    """Returns the bits of the query's gradient. With 32,768 numbers, another order of sums changes some of them."""
    yoke.manual_seed(7)
    query, key, value = (yoke.randn((1, 4, 128, 64)).to(yoke.bfloat16).requires_grad_() for _ in range(3))
    weights = yoke.randn((1, 4, 128, 64)).to(yoke.bfloat16)
    yoke.sum(yoke.scaled_dot_product_attention(query, key, value) * weights).backward()
    return query.grad.to(yoke.float32).tolist()


def test_the_setting_is_kept_and_changes_no_other():
    assert yoke.are_deterministic_algorithms_enabled() is False
    yoke.use_deterministic_algorithms(True)
    assert yoke.are_deterministic_algorithms_enabled() is True
    assert yoke.backends.cudnn.deterministic is False
    yoke.use_deterministic_algorithms(mode=False)
    assert yoke.are_deterministic_algorithms_enabled() is False


@pytest.mark.parametrize("mode", [1.5, None, "yes"])
def test_what_is_no_boolean_is_refused_and_changes_nothing(mode):
    with pytest.raises(TypeError, match="use_deterministic_algorithms.*'mode'"):
        yoke.use_deterministic_algorithms(mode)
    assert yoke.are_deterministic_algorithms_enabled() is False


@pytest.mark.parametrize("setting, told", [("1", "True"), ("0", "False"), ("", "False"), ("perhaps", None)])
def test_the_environment_says_whether_it_is_asked_for_at_first(setting, told):
    done = subprocess.run([sys.executable, "-c", "import yoke; print(yoke.are_deterministic_algorithms_enabled())"],
                          env={**os.environ, "YOKE_DETERMINISTIC_ALGORITHMS": setting}, capture_output=True, text=True, timeout=60)
    if told:
        assert done.stdout.strip() == told, done.stderr
    else:
        assert done.returncode != 0 and "YOKE_DETERMINISTIC_ALGORITHMS is 'perhaps'; it must be 0 or 1" in done.stderr


@needs_fake_cudnn
@pytest.mark.parametrize("asked", ["nothing", "setting", "cudnn"])
def test_a_gradient_of_attention_has_the_same_bits_where_that_is_asked_for(asked):
    yoke.backends.cudnn.enabled = True
    yoke.use_deterministic_algorithms(asked == "setting")
    yoke.backends.cudnn.deterministic = asked == "cudnn"
    gradient_of_attention()  # makes the plans; and no result is compared with a library's first
    before = gradients_of_cudnn()
    first, second = gradient_of_attention(), gradient_of_attention()
    runs = [now - then for now, then in zip(gradients_of_cudnn(), before)]
    assert (first == second) is (asked != "nothing")
    assert runs == ([0, 2] if asked == "nothing" else [2, 0])


def test_a_gradient_on_own_kernels_has_the_same_bits_in_any_case():
    yoke.backends.cudnn.enabled = False
    assert gradient_of_attention() == gradient_of_attention()
