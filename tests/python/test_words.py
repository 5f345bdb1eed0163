"""Words of PyTorch missing in a call of Yoke: the error gives the remedy."""

import pytest

import yoke
from yoke import nn, optim

X = yoke.ones((2, 3), requires_grad=True)
NET = nn.Linear(3, 2)
P = [yoke.ones(2, requires_grad=True)]

WORDS = {
    "Event(blocking=True)": (lambda: yoke.Event(blocking=True), "'blocking'; leave it out; a waiting call lets other threads run"),
    "Event(interprocess=True)": (lambda: yoke.Event(True, interprocess=True), "'interprocess'; leave it out"),
    "Stream(priorty=1)": (lambda: yoke.Stream(priorty=1), r"did you mean 'priority'\?: Stream\(device, priority\)"),
    "autocast(cuda)": (lambda: yoke.autocast("cuda"), r"autocast\(\): the first argument is the device 'cuda'; leave it out"),
    "autocast(cuda, dtype)": (lambda: yoke.autocast("cuda", dtype=yoke.float16), "the device 'cuda'; leave it out"),
    "autocast(device)": (lambda: yoke.autocast(yoke.device("cpu")), "the device 'cpu'; leave it out"),
    "autocast(device_type=)": (lambda: yoke.autocast(device_type="cuda", dtype=yoke.float16), "'device_type'; leave it out; an autocast region applies to every device"),
    "GradScaler(cuda)": (lambda: yoke.GradScaler("cuda"), r"GradScaler\(\): the first argument is the device 'cuda'; leave it out"),
    "GradScaler(device=)": (lambda: yoke.GradScaler(device="cuda"), "the device 'cuda'; leave it out"),
    "save(pickle_protocol=)": (lambda: yoke.save("run.pt", {}, pickle_protocol=2), "a safetensors file, not a pickle"),
    "grad(is_grads_batched=)": (lambda: yoke.grad(X.sum(), X, is_grads_batched=True), r"grad\(\): there is no argument 'is_grads_batched'; leave it out; make one call for each gradient"),
    "clip_grad_norm_(foreach=)": (lambda: yoke.clip_grad_norm_(P, 1.0, foreach=True), "'foreach'; leave it out"),
    "clip_grad_norm_(net)": (lambda: yoke.clip_grad_norm_(NET, 1.0), r"write net\.parameters\(\)"),
    "SGD(net)": (lambda: optim.SGD(NET, lr=0.1), r"SGD\(\): .*write net\.parameters\(\)"),
    "Adam(net)": (lambda: optim.Adam(NET), r"Adam\(\): .*write net\.parameters\(\)"),
    "AdamW of groups": (lambda: optim.AdamW([{"params": NET}]), r"AdamW\(\): .*write net\.parameters\(\)"),
    "Adam(amsgrad=)": (lambda: optim.Adam(P, amsgrad=True), r"Adam\(\): there is no argument 'amsgrad'; leave it out"),
    "AdamW(fused=)": (lambda: optim.AdamW(P, fused=True), "'fused'; leave it out; all tensors of a group are updated together"),
    "SGD(maximize=)": (lambda: optim.SGD(P, lr=0.1, maximize=True), "negate the loss"),
    "SGD(dampening=)": (lambda: optim.SGD(P, lr=0.1, dampening=0.1), "does not dampen momentum"),
    "Adam(betas=0.9)": (lambda: optim.Adam(P, betas=0.9), "betas"),
    "Adam(betas=of three)": (lambda: optim.Adam(P, betas=(0.9, 0.99, 0.999)), "betas"),
    "cross_entropy of floats": (lambda: yoke.cross_entropy(yoke.zeros(2, 3), yoke.zeros(2)), r"write cast\(target, int64\)"),
    "nll_loss of floats": (lambda: yoke.nll_loss(yoke.zeros(2, 3), yoke.zeros(2)), r"nll_loss.*write cast\(target, int64\)"),
    "zeros(out=)": (lambda: yoke.zeros(2, out=X), r"out\.copy_\(result\)"),
    "Linear(out=)": (lambda: nn.Linear(3, out=4), r"there is no argument 'out'; did you mean 'out_features'\?"),
    "Conv2d(out=)": (lambda: nn.Conv2d(3, out=4, kernel_size=1), "did you mean 'out_channels'"),
    "grad(out=)": (lambda: yoke.grad(out=X), "did you mean 'outputs'"),
    "load(blocking=)": (lambda: yoke.load("nowhere", blocking=True), "'blocking'; leave it out; a waiting call lets other threads run"),
    "ReLU(inplace=)": (lambda: nn.ReLU(inplace=True), "the name of an op in place ends in _"),
    "zeros(layout=)": (lambda: yoke.zeros(2, layout=None), "all tensors are strided"),
    "Module.to(memory_format=)": (lambda: NET.to(memory_format=None), r"to\(\): there is no argument 'memory_format'; leave it out.*: to\(device=None, dtype=None, non_blocking=False\)"),
    "Module.to(nonblocking=)": (lambda: NET.to("cpu", nonblocking=True), "did you mean 'non_blocking'"),
    "zeros(dtype=cuda)": (lambda: yoke.zeros(2, dtype="cuda"), "argument 'dtype' is 'cuda', which names a device"),
    "checkpoint_sequential(fn=)": (lambda: yoke.checkpoint_sequential(functions=[], segments=1, x=X), "there is no argument 'functions'"),
    "checkpoint(use_reentrant=)": (lambda: yoke.checkpoint(NET, X, use_reentrant=False), r"checkpoint\(\): .*'use_reentrant'; leave it out; a scope runs no code"),
    "tensor.numpy() with grad": (lambda: X.numpy(), r"call \.detach\(\) first"),
}


@pytest.mark.parametrize("call", WORDS)
def test_the_error_says_what_to_write(call):
    use, told = WORDS[call]
    with pytest.raises(yoke.Error, match=told):
        use()


def test_to_gpu_names_the_kind():
    with pytest.raises(yoke.Error, match="'gpu'.*did you mean 'cuda'"):
        X.to("gpu")
    with pytest.raises(yoke.Error, match="mps"):
        X.to("mps")


def test_an_argument_twice_is_told():
    with pytest.raises(yoke.TypeError, match=r"load\(\): argument 'path' is given twice"):
        yoke.load("nowhere", path="nowhere")


def test_the_devices_of_a_spec_are_all_known_to_be_devices():
    """In yoke.autocast("cpu") and similar calls the word is a kind known to the package."""
    for kind in ("cuda", "cuda:1", "cpu", "gpu", "sim", "auto", "mps", "xpu:0", "hip"):
        with pytest.raises(yoke.TypeError, match="the first argument is the device"):
            yoke.autocast(kind)
        with pytest.raises(yoke.ValueError, match=f"argument 'dtype' is '{kind}', which names a device"):
            yoke.zeros(2, dtype=kind)


# Arguments of PyTorch for which the error has advice.
ADVISED = ["out", "layout", "generator", "memory_format", "blocking", "capturable", "inplace", "reduce", "foreach"]


@pytest.mark.parametrize("word", ADVISED)
def test_a_class_of_the_script_means_its_own_by_a_word_of_pytorch(word):
    class Net(nn.Module):
        def __init__(self, width, depth=1):
            self.width = width

    class Narrow(nn.Linear):
        pass
    with pytest.raises(yoke.TypeError) as told:
        Net(3, **{word: 4})
    assert str(told.value) == f"Net(): there is no argument '{word}'; the arguments are: Net(width, depth=1)"
    with pytest.raises(yoke.TypeError, match="did you mean 'out_features'" if word == "out" else f"'{word}'"):
        Narrow(3, **{word: 4})
