"""Modules of PyTorch's names, and errors about names that are not there."""

import subprocess
import sys

import pytest

import yoke
import yoke.nn.functional as F
import yoke.nn.utils as utils
import yoke.optim.lr_scheduler as lr_scheduler
import yoke.utils.checkpoint as checkpoint
from yoke import nn

CUDA = yoke.is_available("cuda")


def test_modules_are_read_at_their_first_use():
    script = """if True:
        import sys, yoke
        names = ["amp", "cuda", "nn", "nn.functional", "nn.utils", "nn.parallel", "optim", "optim.lr_scheduler", "utils", "utils.checkpoint", "cuda.amp"]
        assert not {f"yoke.{name}" for name in names} & set(sys.modules)
        yoke.nn.Linear, yoke.optim.SGD
        assert not {"yoke.nn.functional", "yoke.nn.utils", "yoke.optim.lr_scheduler"} & set(sys.modules)
        for name in names:
            module = yoke
            for part in name.split("."):
                module = getattr(module, part)
            assert module is sys.modules[f"yoke.{name}"]
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- cuda and amp ----------------------------------------------------------------------------------------------------


def test_cuda_tells_of_cuda_devices():
    assert yoke.cuda.is_available() is CUDA and yoke.cuda.device_count() == yoke.device_count("cuda") and yoke.cuda.is_initialized() is CUDA
    assert yoke.cuda.Stream is yoke.Stream and yoke.cuda.Event is yoke.Event and yoke.cuda.OutOfMemoryError is yoke.OutOfMemoryError
    yoke.cuda.init()
    yoke.cuda.empty_cache()
    yoke.cuda.reset_peak_memory_stats()
    if CUDA:
        assert yoke.cuda.get_device_name(0) == yoke.device("cuda:0").name and yoke.cuda.current_device() >= 0
        return
    assert yoke.cuda.memory_allocated() == yoke.cuda.max_memory_reserved() == 0 and yoke.cuda.memory_stats() == {}
    for call in (yoke.cuda.current_device, yoke.cuda.synchronize, yoke.cuda.get_device_properties, lambda: yoke.cuda.set_device(0),
                 lambda: yoke.cuda.FloatTensor(2), lambda: yoke.cuda.get_device_name(1)):
        with pytest.raises(yoke.DeviceUnavailableError, match="cuda"):
            call()


def test_cuda_refuses_other_devices_and_unknown_arguments():
    with pytest.raises(yoke.ValueError, match="'device' is cpu, which is not a CUDA device"):
        yoke.cuda.synchronize("cpu")
    with pytest.raises(yoke.TypeError, match=r"synchronize\(\): there is no argument 'devise'"):
        yoke.cuda.synchronize(devise=0)


def test_the_seeds_are_those_of_all_devices():
    for seed in (yoke.cuda.manual_seed, yoke.cuda.manual_seed_all):
        seed(5)
        first = yoke.rand(3).tolist()
        yoke.manual_seed(5)
        assert yoke.rand(3).tolist() == first
    state = yoke.cuda.get_rng_state()
    first = yoke.rand(3).tolist()
    yoke.cuda.set_rng_state(state)
    assert yoke.rand(3).tolist() == first


def test_autocast_takes_a_kind_of_device_first():
    x = yoke.ones(2, 2, device="cpu")
    with yoke.amp.autocast("cpu", dtype=yoke.bfloat16):
        assert (x @ x).dtype is yoke.bfloat16
    with yoke.amp.autocast(device_type="cpu", enabled=False):
        assert (x @ x).dtype is yoke.float32
    assert yoke.amp.is_autocast_available("cpu")
    with pytest.raises(yoke.TypeError, match="the first argument is yoke.float16; give the kind of device"):
        yoke.amp.autocast(yoke.float16)
    with pytest.raises(yoke.TypeError, match="there is no argument 'dtpe'"):
        yoke.amp.autocast("cpu", dtpe=yoke.float16)


@pytest.mark.skipif(CUDA, reason="there is a CUDA device")
def test_mixed_precision_of_no_device_is_off_and_warns():
    x = yoke.ones(2, 2)
    for make in (lambda: yoke.amp.autocast("cuda"), yoke.cuda.amp.autocast):
        with pytest.warns(RuntimeWarning, match="the device 'cuda' cannot be used, so the call has no effect"):
            region = make()
        with region:
            assert (x @ x).dtype is yoke.float32
    for make in (lambda: yoke.amp.GradScaler("cuda"), yoke.amp.GradScaler, yoke.cuda.amp.GradScaler):
        with pytest.warns(RuntimeWarning, match="GradScaler: the device 'cuda'"):
            assert not make().is_enabled()
    scaler = yoke.amp.GradScaler("cpu", init_scale=4.0)
    assert scaler.is_enabled() and scaler.get_scale() == 4


# ---- nn and optim ----------------------------------------------------------------------------------------------------


def test_functional_has_our_ops_under_pytorchs_names():
    assert F.relu is yoke.relu and F.cross_entropy is yoke.cross_entropy and nn.functional is F
    assert set(dir(F)) >= {"relu", "softmax", "conv2d", "layer_norm"} and "sum" not in dir(F) and all(getattr(F, name) for name in dir(F))


def test_gradients_are_clipped_by_value():
    w, v = yoke.ones(3, requires_grad=True), yoke.ones(2, requires_grad=True)
    (w * yoke.tensor([5.0, -5.0, 0.5])).sum().backward()
    utils.clip_grad_value_([w, v], 2.0)
    assert w.grad.tolist() == [2, -2, 0.5] and v.grad is None and utils.clip_grad_norm_ is yoke.clip_grad_norm_
    with pytest.raises(yoke.ValueError, match="'clip_value' is -1; it must be 0 or more"):
        utils.clip_grad_value_(w, -1)


def test_parameters_become_a_vector_and_back():
    net = nn.Linear(3, 2)
    vector = utils.parameters_to_vector(net.parameters())
    assert vector.shape == (8,) and vector.requires_grad
    utils.vector_to_parameters(yoke.arange(8).float(), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and net.bias.tolist() == [6, 7] and net.weight.is_leaf
    with pytest.raises(yoke.ValueError, match=r"'vec' has shape \(7,\), but the parameters have 8 elements"):
        utils.vector_to_parameters(yoke.ones(7), net.parameters())
    with pytest.raises(yoke.ValueError, match="'parameters' is empty"):
        utils.parameters_to_vector([])
    with pytest.raises(yoke.TypeError, match="'vec' is a list"):
        utils.vector_to_parameters([1], net.parameters())
    assert nn.parallel.DistributedDataParallel is yoke.DistributedDataParallel


RATES = {
    "StepLR": (lambda o: lr_scheduler.StepLR(o, step_size=2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25]),
    "ConstantLR": (lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=2), [0.5, 0.5, 1, 1, 1]),
    "LinearLR": (lambda o: lr_scheduler.LinearLR(o, start_factor=0.5, total_iters=2), [0.5, 0.75, 1, 1, 1]),
    "CosineAnnealingLR": (lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=4, eta_min=0.0), [1, 0.8535533, 0.5, 0.1464466, 0]),
}


@pytest.mark.parametrize("name", RATES)
def test_schedules_have_pytorchs_names_and_arguments(name):
    make, rates = RATES[name]
    w = yoke.ones(1, requires_grad=True)
    optimizer = yoke.optim.SGD([w], lr=1.0)
    schedule, found = make(optimizer), []
    for _ in rates:
        found += schedule.get_last_lr()
        w.grad = yoke.ones(1)
        optimizer.step()
        schedule.step()
    assert found == pytest.approx(rates) and isinstance(schedule, lr_scheduler.LRScheduler)
    again = make(optimizer)
    again.load_state_dict(schedule.state_dict())
    assert again.last_step == len(rates) and type(again).__name__ == name


def test_schedules_refuse_what_they_do_not_have():
    w = yoke.ones(1, requires_grad=True)
    optimizer = yoke.optim.SGD([{"params": [w], "lr": 1.0}, {"params": [yoke.ones(1, requires_grad=True)], "lr": 2.0}], lr=1.0)
    for make, told in ((lambda: lr_scheduler.LinearLR(optimizer), "have the rates .*; they must have the same rate"),
                       (lambda: lr_scheduler.StepLR(optimizer, 2, last_epoch=3), "'last_epoch' is 3; leave it out"),
                       (lambda: lr_scheduler.OneCycleLR(optimizer, 1.0), "'total_steps' is missing"),
                       (lambda: lr_scheduler.OneCycleLR(optimizer, 1.0, 5, anneal_strategy="linear"), "'anneal_strategy'"),
                       (lambda: lr_scheduler.StepLR(3, 2), "optimizer")):
        with pytest.raises(yoke.Error, match=told):
            make()
    assert lr_scheduler.OneCycleLR(optimizer, 1.0, epochs=2, steps_per_epoch=5).total_steps == 10


def test_checkpoints_in_pytorchs_form():
    w = yoke.ones(2, requires_grad=True)
    checkpoint.checkpoint(lambda x, factor: x * x * factor, w, use_reentrant=False, factor=2).sum().backward()
    assert w.grad.tolist() == [4, 4]
    assert checkpoint.checkpoint_sequential(nn.Sequential(nn.Tanh(), nn.ReLU()), 2, input=w, use_reentrant=True).shape == (2,)
    with pytest.raises(yoke.ValueError, match="'preserve_rng_state' is False; leave it out"):
        checkpoint.checkpoint(yoke.relu, w, preserve_rng_state=False)
    with pytest.raises(yoke.TypeError, match="'use_reentrant' is a int"):
        checkpoint.checkpoint(yoke.relu, w, use_reentrant=1)


# ---- Names that are not there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look, told", [
    (lambda: yoke.clip, r"module 'yoke' has no attribute 'clip'; write clamp\(x, min, max\)"),
    (lambda: yoke.fft, "there is no Fourier transform"),
    (lambda: yoke.short, "there is no such integer; write int32 or int64"),
    (lambda: yoke.Linear, "write yoke.nn.Linear"),
    (lambda: yoke.AdamW, "write yoke.optim.AdamW"),
    (lambda: yoke.relo, "did you mean 'relu'"),
    (lambda: nn.LSTM, "there are no recurrent layers"),
    (lambda: nn.relu, "write yoke.relu"),
    (lambda: nn.Linaer, "did you mean 'Linear'"),
    (lambda: yoke.optim.RMSprop, "there are SGD, Adam and AdamW"),
    (lambda: lr_scheduler.LambdaLR, "optimizer.param_groups"),
    (lambda: F.huber_loss, "write smooth_l1_loss"),
    (lambda: yoke.cuda.nvtx, "no ranges for profilers"),
    (lambda: yoke.utils.data, "there is no DataLoader"),
    (lambda: yoke.pi, "write math.pi, math.e, math.inf or math.nan"),
    (lambda: yoke.diff, r"write x\[1:\] - x\[:-1\]"),
    (lambda: yoke.autograd.Variable, "write the tensor itself"),
    (lambda: yoke.amp.custom_fwd, "leave it out"),
    (lambda: nn.utils.spectral_norm, "write a Module"),
    (lambda: nn.init.uniform, "did you mean 'uniform_'"),
    (lambda: nn.parallel.DataParallel, "write DistributedDataParallel"),
    (lambda: yoke.ones(1).diff, r"write x\[1:\] - x\[:-1\]"),
    (lambda: yoke.autograd.gard, "did you mean 'grad'"),
    (lambda: yoke.ones(1).grad_fn, r"'yoke.Tensor' object has no attribute 'grad_fn'; write x.is_leaf"),
    (lambda: yoke.ones(1).clip, r"write x.clamp\(min, max\)"),
])
def test_an_unknown_name_says_what_to_write(look, told):
    with pytest.raises(AttributeError, match=told):
        look()


@pytest.mark.parametrize("line, told", [
    ("from yoke.autograd import Variable", "cannot import name 'Variable' from 'yoke.autograd'; write the tensor itself"),
    ("from yoke import clip", r"cannot import name 'clip' from 'yoke'; write clamp\(x, min, max\)"),
    ("from yoke.nn import LSTM", "there are no recurrent layers"),
    ("from yoke.nn.functional import relo", "did you mean 'relu'"),
    ("from yoke import zzzzzzzz", "cannot import name 'zzzzzzzz' from 'yoke'"),
])
def test_an_import_of_an_unknown_name_says_what_to_write(line, told):
    with pytest.raises(ImportError, match=told):
        exec(line, {})


def test_a_name_that_nobody_knows_is_a_plain_error():
    for module in (yoke, nn, yoke.optim, F, yoke.cuda, yoke.utils, lr_scheduler, yoke.autograd, yoke.amp, nn.init, nn.utils, nn.parallel):
        with pytest.raises(AttributeError, match="has no attribute 'zzzzzzzz'$"):
            module.zzzzzzzz
        assert not hasattr(module, "__zzzz__") and not hasattr(module, "_zzzz")


def test_names_of_pytorch_are_no_attributes_of_tensors():
    x = yoke.ones(1)
    assert not hasattr(x, "clip") and "clip" not in dir(x) and "sum" in dir(x)

    class Named(yoke.Tensor):
        pass
    named = Named(x)
    named.names = ("batch",)  # a script's own attribute has the name
    assert named.names == ("batch",) and "names" in dir(named)
