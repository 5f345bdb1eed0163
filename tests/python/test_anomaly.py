"""detect_anomaly: the forward op and script line of the first NaN in backward. inference_mode, and words of precision."""
import threading

import pytest

import yoke
from yoke import autograd


def leaf(*values):
    return yoke.tensor(list(values), requires_grad=True)


def nan_in_backward(x):
    return yoke.sqrt(x * 0).sum()  # this line makes the NaN: 0 * inf


LINE = nan_in_backward.__code__.co_firstlineno + 1


def test_the_first_nan_is_told_with_op_argument_and_line():
    x = leaf(1.0, 2.0)
    with autograd.detect_anomaly():
        assert autograd.is_anomaly_enabled() and autograd.is_anomaly_check_nan_enabled()
        loss = nan_in_backward(x)
        with pytest.raises(yoke.StateError, match=rf"backward of mul returned NaN for argument 0 \('x'\), \[2\] float32 on [^;]*; its forward ran at .*test_anomaly.py:{LINE} \(nan_in_backward\)"):
            loss.backward()
    assert not autograd.is_anomaly_enabled()
    nan_in_backward(x).backward()
    assert x.grad.isnan().all().item()


def test_a_large_tensor_and_a_script_function_are_told_too():
    class Bad(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    x = yoke.ones(100000).requires_grad_()
    with autograd.detect_anomaly():
        y = Bad.apply(x)
        with pytest.raises(yoke.StateError, match=r"backward of Bad returned NaN for argument 0 \('input'\).*test_anomaly.py:\d+ \(test_a_large"):
            y.sum().backward()


def test_ops_from_outside_and_errors_of_backward():
    x = leaf(1.0, 2.0)
    loss = nan_in_backward(x)
    with autograd.detect_anomaly():
        with pytest.raises(yoke.StateError, match=r"backward of mul returned NaN.*its forward ran outside detect_anomaly\(\) or any script"):
            loss.backward()
    with autograd.detect_anomaly(check_nan=False):
        assert autograd.is_anomaly_enabled() and not autograd.is_anomaly_check_nan_enabled()
        nan_in_backward(x).backward()
    with autograd.detect_anomaly():
        y = x * 1
        z = y * y
        y.mul_(2)
        with pytest.raises(yoke.StateError, match=r"needs '.*' as it was.*\(forward of mul: at .*test_anomaly.py:\d+"):
            z.sum().backward()


def test_the_mode_belongs_to_the_context_and_may_be_set_at_once():
    seen = []
    with autograd.detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(autograd.is_anomaly_enabled()))
        thread.start()
        thread.join()
        with autograd.set_detect_anomaly(False):
            seen.append(autograd.is_anomaly_enabled())
        seen.append(autograd.is_anomaly_enabled())
    autograd.set_detect_anomaly(True, check_nan=False)
    seen.append((autograd.is_anomaly_enabled(), autograd.is_anomaly_check_nan_enabled()))
    autograd.set_detect_anomaly(False)
    seen.append(autograd.is_anomaly_enabled())

    @autograd.detect_anomaly()
    def inside():
        return autograd.is_anomaly_enabled()

    assert seen == [False, False, True, (True, False), False] and inside() and not autograd.is_anomaly_enabled()
    with pytest.raises(TypeError, match="check_nan"):
        autograd.detect_anomaly(check_nan="yes")


def test_autocast_adds_to_no_gradient_unseen():
    w = yoke.ones((8, 8)).requires_grad_()
    for _ in range(2):
        with autograd.detect_anomaly():
            with yoke.autocast(dtype=yoke.bfloat16):
                loss = yoke.matmul(yoke.ones((8, 8)), w).sum()
            loss.backward()
    assert w.grad[0, 0].item() == 16.0


def test_inference_mode_is_no_grad():
    x = leaf(1.0)
    with yoke.inference_mode():
        y = x * 2
        with yoke.inference_mode(False):
            assert yoke.is_grad_enabled()
    assert not y.requires_grad
    (x * y).sum().backward()
    assert x.grad.tolist() == [2.0]

    @yoke.inference_mode()
    def one():
        return yoke.is_grad_enabled()

    @yoke.inference_mode
    def two():
        return yoke.is_grad_enabled()

    assert not one() and not two() and yoke.is_grad_enabled()
    assert autograd.inference_mode is yoke.inference_mode


def test_words_of_precision_are_the_setting_of_tf32():
    assert yoke.get_float32_matmul_precision() == "highest"
    for word, allowed in (("high", True), ("medium", True), ("highest", False)):
        yoke.set_float32_matmul_precision(word)
        assert yoke.get_float32_matmul_precision() == word and yoke.backends.allow_tf32 is allowed
    yoke.backends.allow_tf32 = True
    assert yoke.get_float32_matmul_precision() == "medium"
    yoke.backends.allow_tf32 = False
    with pytest.raises(yoke.ValueError, match="'precision' is 'low'; it must be"):
        yoke.set_float32_matmul_precision("low")
