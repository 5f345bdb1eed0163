"""PyTorch's files and states beside PyTorch itself, both ways: `./dev test --oracle torch`. More trees: YOKE_TREES=10000."""
import argparse
import collections
import io
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import yoke
from test_oracle_torch import oracle  # noqa: F401: a fixture
from yoke import nn, optim
from yoke.compat.torch import states
from yoke.compat.torch.serialization import load, save

pytestmark = [pytest.mark.usefixtures("oracle"), pytest.mark.filterwarnings("ignore")]
TREES = int(os.environ.get("YOKE_TREES", "300"))
NAMES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2")


def to_yoke(state):
    """Returns a state of PyTorch's through a file of PyTorch's."""
    import torch
    file = io.BytesIO()
    torch.save(state, file)
    return load(io.BytesIO(file.getvalue()))


def to_torch(state):
    """Returns a state of Yoke's through a file of Yoke's."""
    import torch
    file = io.BytesIO()
    save(state, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=True)


def bits(x):
    """Returns dtype, shape, bytes and need of a gradient of a tensor of any of the two."""
    if isinstance(x, yoke.Tensor):
        flat = x.detach().contiguous().reshape((-1,)) if x.nelement() else x.detach().reshape((-1,))
        data = memoryview(yoke._yoke._view_storage(flat.clone(), yoke.uint8, (flat.nelement() * flat.dtype.itemsize,), None, 0)).tobytes()
        return x.dtype.name.replace("e4m3", "e4m3fn"), tuple(x.shape), data, x.requires_grad
    import torch
    flat = x.detach().reshape(-1).clone(memory_format=torch.contiguous_format)
    return str(x.dtype)[6:], tuple(x.shape), flat.view(torch.uint8).numpy().tobytes() if x.numel() else b"", x.requires_grad


def plain(value):
    """Returns a tree of any of the two in a form that can be compared: types, values, attributes, bits of tensors."""
    import torch
    if isinstance(value, (yoke.Tensor, torch.Tensor)):
        return "Parameter" if "Parameter" in type(value).__name__ else "tensor", bits(value), {k: plain(v) for k, v in getattr(value, "__dict__", {}).items()}
    if isinstance(value, dict):
        return type(value).__name__, [(key, plain(each)) for key, each in value.items()], [(k, plain(v)) for k, v in getattr(value, "__dict__", {}).items()]
    if isinstance(value, (yoke.dtype, torch.dtype)):
        return "dtype", str(value).rpartition(".")[2].replace("e4m3fn", "e4m3")
    if isinstance(value, (list, tuple)):
        return "tuple" if isinstance(value, tuple) else "list", [plain(each) for each in value]
    if isinstance(value, (yoke.Device, torch.device)):
        return "device", str(value)
    return type(value).__name__, repr(value) if not isinstance(value, set) else sorted(map(repr, value))


class Trees:
    """Random trees of PyTorch's values."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.seen = []

    def tensor(self):
        import torch
        name = self.draw.choice(NAMES)
        shape = [self.draw.randrange(5) for _ in range(self.draw.randrange(4))]
        x = torch.randint(0, 2 if name == "bool" else 100, shape, generator=torch.Generator().manual_seed(self.draw.randrange(1 << 30))).to(getattr(torch, name))
        for _ in range(self.draw.randrange(3)):
            if x.dim() and self.draw.random() < 0.7:
                x = x.transpose(0, -1) if self.draw.random() < 0.5 else x[self.draw.randrange(x.shape[0] + 1):] if self.draw.random() < 0.5 else x[::2]
        if self.draw.random() < 0.1:
            x = x.unsqueeze(0).expand(3, *x.shape)
        if x.is_floating_point() and "float8" not in name and self.draw.random() < 0.3:
            x = torch.nn.Parameter(x, requires_grad=self.draw.random() < 0.7)
            if self.draw.random() < 0.3:
                x.tag = self.draw.choice(["text", 3, [1.5]])
        return x

    def scalar(self):
        draw = self.draw
        return draw.choice([lambda: None, lambda: draw.random() < 0.5, lambda: draw.randrange(-300, 300), lambda: draw.randrange(-2**70, 2**70), draw.random,
                            lambda: "".join(map(chr, draw.choices(range(1, 0x3000), k=draw.randrange(9)))), lambda: bytes(draw.choices(range(256), k=draw.randrange(9))),
                            lambda: bytearray(draw.choices(range(256), k=3)), lambda: complex(draw.random(), -1), lambda: {1, "a", draw.random()}])()

    def other(self):
        import torch
        return self.draw.choice([torch.float16, torch.bool, torch.float8_e4m3fn, torch.device("cpu"), torch.Size([2, 3]), collections.Counter("aab")])

    def tree(self, depth=0):
        draw, kind = self.draw, self.draw.random()
        if self.seen and kind < 0.05:
            return draw.choice(self.seen)
        if depth > 4 or kind < 0.3:
            made = self.tensor() if kind < 0.2 else self.scalar()
        elif kind < 0.33:
            made = self.other()
        else:
            made = self.container(depth)
        self.seen.append(made)
        return made

    def container(self, depth):
        count = self.draw.randrange(5)
        if self.draw.random() < 0.5:
            return self.draw.choice((list, tuple))([self.tree(depth + 1) for _ in range(count)])
        keys = self.draw.sample([1, 2.5, "a", "b.c", None, (1, "x"), -2**40, b"k"], count)
        found = self.draw.choice((dict, collections.OrderedDict))((key, self.tree(depth + 1)) for key in keys)
        if type(found) is collections.OrderedDict and self.draw.random() < 0.5:
            found._metadata = {"": {"version": 1}}
        return found


def test_random_trees_return_with_all_bits():
    for seed in range(TREES):
        theirs = [Trees(seed).tree() for _ in range(1)] + [Trees(seed + 10**6).tensor()]
        ours = to_yoke(theirs)
        assert plain(ours) == plain(theirs), seed
        assert plain(to_torch(ours)) == plain(theirs), seed


def test_shared_memory_and_objects_stay_shared():
    import torch
    base, kept = torch.arange(12.0), [1]
    ours = to_yoke({"a": base, "b": base[3:7].reshape(2, 2), "c": base.reshape(3, 4).t(), "l": kept, "m": [kept]})
    theirs = to_torch(ours)
    for state in (ours, theirs):
        state["a"][4] = -1
        assert state["b"][0, 1].item() == -1 and state["c"][0, 1].item() == -1 and state["l"] is state["m"][0]


def test_classes_that_pytorch_reads_of_trusted_files_go_both_ways():
    import torch
    args = argparse.Namespace(lr=0.1, paths=["a"])
    state = {"args": args, "again": [args], "history": collections.defaultdict(list, {"loss": [1.5, args]}), "array": np.arange(6.0).reshape(2, 3).T}
    file, ours = io.BytesIO(), io.BytesIO()
    torch.save(state, file)
    found = load(io.BytesIO(file.getvalue()), weights_only=False)
    save(found, ours)
    for each in (found, torch.load(io.BytesIO(ours.getvalue()), weights_only=False)):
        assert each["args"] == args and each["again"][0] is each["args"] and each["history"] == state["history"] and each["history"]["x"] == []
        assert each["array"].tolist() == state["array"].tolist()


def test_files_with_and_without_zip64_and_checksums(tmp_path):
    import torch
    from torch.serialization import set_crc32_options
    set_crc32_options(False)
    try:
        torch.save({"x": torch.ones(1000)}, tmp_path / "file.pt")
    finally:
        set_crc32_options(True)
    assert load(tmp_path / "file.pt")["x"].sum().item() == 1000
    save({"x": yoke.ones(1000)}, tmp_path / "ours.pt")
    assert torch.load(tmp_path / "ours.pt", mmap=True, weights_only=True)["x"].sum().item() == 1000
    assert torch.load(tmp_path / "ours.pt", map_location="meta", weights_only=True)["x"].shape == (1000,)


# ---- Modules ---------------------------------------------------------------------------------------------------------

LAYERS = {
    "Linear(5, 3)": (4, 5), "Linear(5, 3, bias=False)": (4, 5), "Conv1d(4, 6, 3, stride=2, padding=1)": (2, 4, 9), "Conv1d(4, 6, 3, dilation=2, groups=2, bias=False)": (2, 4, 9),
    "Conv2d(3, 4, 3)": (2, 3, 6, 7), "Conv2d(4, 4, (3, 1), padding=(1, 0), groups=4)": (2, 4, 5, 5), "ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)": (1, 4, 4, 4),
    "BatchNorm1d(3)": (4, 3), "BatchNorm1d(3, momentum=None)": (4, 3, 5), "BatchNorm1d(3, affine=False)": (4, 3), "BatchNorm1d(3, track_running_stats=False)": (4, 3),
    "BatchNorm2d(3)": (2, 3, 4, 4), "GroupNorm(2, 4)": (2, 4, 5), "GroupNorm(2, 4, affine=False)": (2, 4, 5), "LayerNorm(4)": (2, 4), "LayerNorm((3, 4), bias=False)": (2, 3, 4),
    "LayerNorm(4, elementwise_affine=False)": (2, 4), "RMSNorm(4)": (2, 4), "RMSNorm(4, elementwise_affine=False)": (2, 4), "Embedding(7, 3)": "ids", "Embedding(7, 3, padding_idx=1)": "ids",
    "Sequential(Conv2d(1, 2, 3), BatchNorm2d(2), ReLU(), Flatten(), Linear(8, 3))": (4, 1, 4, 4), "Sequential(Linear(3, 3), Sequential(Linear(3, 2), GELU()))": (4, 3),
    "MultiheadAttention(8, 2, batch_first=True)": (2, 5, 8), "MultiheadAttention(8, 4, bias=False, batch_first=True)": (2, 5, 8)}
LAYERS.update({f"{name}": (2, 2, 4, 4) for name in ("ReLU()", "GELU()", "SiLU()", "Sigmoid()", "Tanh()", "Dropout(0.3)", "Flatten()", "MaxPool2d(2)", "AvgPool2d(2)", "AdaptiveAvgPool2d(1)",
                                                     "Identity()", "Softmax(-1)", "LogSoftmax(-1)")})


def pair_of(text):
    """Returns PyTorch's layer after two steps of training, and Yoke's new layer; None for arguments that Yoke's layer does not have."""
    import torch
    torch.manual_seed(len(text))
    theirs = eval(text, vars(torch.nn))
    shape = LAYERS[text]
    x = torch.randint(0, 7, (3, 4)) if shape == "ids" else torch.randn(shape)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
        for _ in range(2):
            theirs(x, x, x) if "Attention" in text else theirs(x)
    try:
        ours = eval(text.replace(", batch_first=True", ""), vars(nn))
    except yoke.TypeError as error:
        assert "there is no argument" in str(error) or "has no argument" in str(error), error
        ours = None
    return theirs.eval(), ours, x


@pytest.mark.parametrize("way", ["pt", "safetensors"])
@pytest.mark.parametrize("text", list(LAYERS))
def test_a_layers_state_goes_both_ways(text, way, tmp_path):
    import torch
    from safetensors.torch import load_file, save_file
    theirs, ours, x = pair_of(text)
    if ours is None:
        pytest.skip("Yoke's layer has no such argument")
    if way == "pt":
        state = to_yoke(theirs.state_dict())
        assert state._metadata.keys() == theirs.state_dict()._metadata.keys()
    else:
        save_file(theirs.state_dict(), tmp_path / "theirs")
        state = yoke.load(tmp_path / "theirs")
    own = states.module_to_torch(ours)
    assert set(own) == set(theirs.state_dict()) and {k: v.shape for k, v in own.items()} == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}
    states.module_from_torch(ours, state) if "Attention" in text else ours.load_state_dict(state)
    with torch.no_grad():
        wanted = theirs(x, x, x)[0] if "Attention" in text else theirs(x)
    got = ours.eval()(to_yoke(x))
    assert yoke.allclose(got, to_yoke(wanted), rtol=1e-4, atol=1e-5)
    fresh = eval(text, vars(torch.nn)).eval()
    if way == "pt":
        back = to_torch(states.module_to_torch(ours))
    else:
        yoke.save(tmp_path / "ours", states.module_to_torch(ours))
        back = load_file(tmp_path / "ours")
    assert not any(fresh.load_state_dict(back))
    assert all(torch.equal(a, b) for a, b in zip(fresh.state_dict().values(), theirs.state_dict().values()))


# Layers of torch.nn alone, or with another form in yoke.nn.
MORE = {**LAYERS, "MultiheadAttention(8, 2)": (5, 2, 8), "MultiheadAttention(8, 2, kdim=8, vdim=8, bias=False)": (5, 2, 8), "Bilinear(3, 3, 2)": (4, 3), "PReLU()": (4, 3), "PReLU(3)": (4, 3),
        "Embedding(7, 3, padding_idx=1, max_norm=None)": "ids", "ConvTranspose2d(4, 2, 2, groups=2, bias=False)": (1, 4, 3, 3), "Conv2d(3, 4, 3, padding='same')": (2, 3, 6, 6),
        "InstanceNorm2d(3, affine=True, track_running_stats=True)": (2, 3, 4, 4), "BatchNorm3d(2)": (2, 2, 3, 3, 3), "Conv3d(1, 2, 2)": (1, 1, 3, 3, 3), "ConvTranspose1d(2, 3, 2)": (1, 2, 4),
        "CrossEntropyLoss(weight=torch.ones(3))": (), "NLLLoss(torch.ones(3))": (), "BCEWithLogitsLoss(pos_weight=torch.ones(3))": (), "BCELoss(torch.ones(3))": (),
        "ParameterDict({'a': Parameter(torch.ones(2)), 'b': Parameter(torch.zeros(1))})": (), "Sequential(OrderedDict([('fc', Linear(2, 2)), ('act', ReLU())]))": (3, 2),
        "LSTM(3, 4)": (5, 2, 3), "GRU(3, 4)": (5, 2, 3), "TransformerEncoderLayer(8, 2, 16)": (5, 2, 8), "ParameterList([Parameter(torch.ones(2))])": (), "ModuleDict({'a': Linear(2, 2)})": (),
        "ModuleList([Linear(2, 2)])": (), "EmbeddingBag(7, 3)": "ids"}
NOT_THERE = {"PReLU", "InstanceNorm2d", "BatchNorm3d", "Conv3d", "ConvTranspose1d", "LSTM", "GRU", "TransformerEncoderLayer", "EmbeddingBag"}
CALL = """
def call(torch, layer, text, x):
    if x is None:
        return None
    with torch.no_grad():
        found = layer(x, x, x) if "Attention" in text else layer(x, x) if "Bilinear" in text else layer(x)
    return found[0] if isinstance(found, tuple) else found
"""
SCRIPT = CALL + """
import sys
from collections import OrderedDict
import torch
given = torch.load(sys.argv[1], weights_only=True)
found = {}
for text, one in given.items():
    try:
        layer = eval(text, {**{name: getattr(torch.nn, name) for name in dir(torch.nn)}, "torch": torch, "OrderedDict": OrderedDict})
        missing = layer.load_state_dict(one["state"])
        found[text] = {"names": list(layer.state_dict()), "state": layer.state_dict(), "y": call(torch, layer.eval(), text, one["x"])}
    except (NameError, NotImplementedError) as error:
        found[text] = str(error)
    except Exception as error:
        found[text] = type(error).__name__ + ": " + str(error)
torch.save(found, sys.argv[2])
"""


def test_states_of_layers_in_scripts_go_both_ways(tmp_path):
    """Yoke under PyTorch's names reads PyTorch's states in a script, and PyTorch reads its states; results are equal."""
    import torch
    call = {}
    exec(CALL, call)
    given, layers = {}, {}
    for text, shape in MORE.items():
        torch.manual_seed(len(text))
        layer = layers[text] = eval(text, {**vars(torch.nn), "torch": torch, "OrderedDict": collections.OrderedDict})
        x = torch.randint(0, 7, (3, 4)) if shape == "ids" else None if shape == () else torch.randn(shape)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(torch.randn(parameter.shape) * 0.1)
        call["call"](torch, layer, text, x)  # in training: running statistics
        given[text] = {"state": layer.state_dict(), "x": x}
    torch.save(given, tmp_path / "given.pt")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "yoke.compat.torch", tmp_path / "script.py", tmp_path / "given.pt", tmp_path / "found.pt"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    absent = []
    for text, found in torch.load(tmp_path / "found.pt", weights_only=True).items():
        if isinstance(found, str):
            assert "is not defined" in found, (text, found)
            absent.append(text)
            continue
        assert found["names"] == list(layers[text].state_dict()), text
        fresh = eval(text, {**vars(torch.nn), "torch": torch, "OrderedDict": collections.OrderedDict})
        assert not any(fresh.load_state_dict(found["state"])), text
        wanted = call["call"](torch, layers[text].eval(), text, given[text]["x"])
        assert wanted is None or torch.allclose(found["y"], wanted, rtol=1e-4, atol=1e-5), text
    assert {text.partition("(")[0] for text in absent} <= NOT_THERE


# ---- Optimizers and schedules ----------------------------------------------------------------------------------------

OPTIMIZERS = [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
              ("Adam", {}), ("Adam", {"lr": 0.02, "betas": (0.8, 0.95), "weight_decay": 0.1}), ("Adam", {"eps": 1e-3, "foreach": False}), ("AdamW", {"lr": 0.01}), ("AdamW", {"weight_decay": 0.3})]
OWN = ("lr", "betas", "eps", "momentum", "nesterov", "weight_decay")


def steps(params, optimizer, full, count=3):
    for k in range(1, count + 1):
        for i, param in enumerate(params):
            param.grad = full(param, (-1) ** k * k * (i + 1) / 8)
        optimizer.step()


def near(ours, theirs, dtype):
    import torch
    for a, b in zip(ours, theirs):
        assert torch.allclose(to_torch(a.detach()).float(), b.detach().float(), rtol=1e-5 if dtype == "float32" else 2e-2, atol=1e-6 if dtype == "float32" else 2e-2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind, options", OPTIMIZERS, ids=str)
def test_a_training_goes_on_both_ways(kind, options, dtype):
    import torch

    def their_full(param, value):
        return torch.full_like(param, value)

    def our_full(param, value):
        return yoke.full_like(param.detach(), value)

    torch.manual_seed(0)
    theirs = [torch.nn.Parameter(torch.randn(5, 3).to(getattr(torch, dtype))), torch.nn.Parameter(torch.randn(4).to(getattr(torch, dtype)))]
    first = getattr(torch.optim, kind)([{"params": theirs[:1]}, {"params": theirs[1:], "lr": 0.03}], **options)
    steps(theirs, first, their_full)
    ours = [nn.Parameter(to_yoke(each.detach())) for each in theirs]
    second = getattr(optim, kind)([{"params": ours[:1]}, {"params": ours[1:]}], lr=1.0, **{k: v for k, v in options.items() if k in ("momentum",)})
    states.optimizer_from_torch(second, to_yoke(first.state_dict()))
    assert [{name: group[name] for name in OWN if name in group} for group in second.param_groups] == [{name: group[name] for name in OWN if name in group} for group in first.param_groups]
    steps(theirs, first, their_full), steps(ours, second, our_full)
    near(ours, theirs, dtype)
    # And back: PyTorch goes on from Yoke's state.
    third = [torch.nn.Parameter(to_torch(each.detach())) for each in ours]
    last = getattr(torch.optim, kind)([{"params": third[:1]}, {"params": third[1:]}], lr=7.0)
    last.load_state_dict(to_torch(states.optimizer_to_torch(second)))
    assert [set(group) for group in last.param_groups] == [set(group) for group in first.param_groups]
    steps(third, last, their_full), steps(ours, second, our_full)
    near(ours, third, dtype)


SCHEDULES = [("StepLR", (3, 0.5)), ("ConstantLR", (0.25, 5)), ("LinearLR", (0.25, 0.75, 7)), ("CosineAnnealingLR", (12, 0.01)), ("OneCycleLR", (0.5, 14))]


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("name, arguments", SCHEDULES)
def test_schedules_go_on_both_ways(name, arguments, first):
    import torch
    more = {"cycle_momentum": False} if name == "OneCycleLR" else {}

    def made(library, parameter, fresh=arguments):
        optimizer = library.optim.SGD([parameter], lr=0.1)
        schedule = getattr(library.optim.lr_scheduler, name)(optimizer, *fresh, **more)
        optimizer.step()
        return optimizer, schedule

    theirs, schedule = made(torch, torch.nn.Parameter(torch.ones(1)))
    for _ in range(first):
        schedule.step()
    ours, own = made(yoke, nn.Parameter(yoke.ones(1)))
    states.optimizer_from_torch(ours, to_yoke(theirs.state_dict()))
    states.scheduler_from_torch(own, to_yoke(schedule.state_dict()))
    own.step(), schedule.step()
    last, again = made(torch, torch.nn.Parameter(torch.ones(1)))
    last.load_state_dict(to_torch(states.optimizer_to_torch(ours)))
    again.load_state_dict(to_torch(states.scheduler_to_torch(own)))
    for _ in range(6):
        rate = theirs.param_groups[0]["lr"]
        assert ours.param_groups[0]["lr"] == pytest.approx(rate, rel=1e-6) and last.param_groups[0]["lr"] == pytest.approx(rate, rel=1e-6)
        own.step(), schedule.step(), again.step()


def test_a_scaler_goes_on_both_ways():
    import torch
    theirs, ours = torch.amp.GradScaler("cpu", init_scale=128.0, growth_interval=5), yoke.GradScaler(init_scale=2.0)
    ours.load_state_dict(to_yoke(theirs.state_dict()))
    assert ours.get_scale() == 128.0 and ours.state_dict() == theirs.state_dict()
    again = torch.amp.GradScaler("cpu")
    again.load_state_dict(to_torch(ours.state_dict()))
    assert again.state_dict() == theirs.state_dict()
