"""Writes the files of this folder, which PyTorch 2.15.0 with NumPy 2.4.6 has written: `python make.py FOLDER`."""
import collections
import copy
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.optim import lr_scheduler

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
NAMES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2")


def save(name, value, **options):
    torch.save(value, FOLDER / name, **options)


def values():
    """Tensors of every dtype, views, and every kind of plain value."""
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    tagged = nn.Parameter(torch.ones(2))
    tagged.tag = "mine"
    shared = [1, 2]
    ordered = collections.OrderedDict(b=1, a=2)
    ordered._metadata = collections.OrderedDict({"": {"version": 1}})
    return {
        "dtypes": {name: (torch.arange(6) % 5).to(getattr(torch, name)).reshape(2, 3) for name in NAMES},
        "base": base, "turned": base.permute(2, 0, 1)[1:], "part": base[1, 1:, ::2], "row": base[0, 0].expand(3, 4),
        "last": torch.zeros(2, 3, 2, 2).to(memory_format=torch.channels_last), "zero_dim": torch.tensor(3.5), "empty": torch.empty(0, 3),
        "behind": torch.arange(4.0)[4:], "parameter": nn.Parameter(torch.tensor([1.0, 2.0])), "tagged": tagged,
        "frozen": nn.Parameter(torch.ones(1), requires_grad=False), "grad": torch.ones(2, requires_grad=True),
        "storage": torch.tensor([1.0, 2.0]).storage(), "bytes": torch.tensor([1, 2], dtype=torch.uint8).untyped_storage(),
        "plain": [None, True, False, 0, -1, 255, 256, 65536, 2**31, -2**40, 2**70, 1.5, float("inf"), "text", "é\ud800", b"\x00\xff", b"x", bytearray(b"ab"), 1 + 2j],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], "sets": {1, "a"}, "keys": {1: "int", 2.5: "float", None: "none", (1, "a"): "tuple", True: 0},
        "shared": [shared, shared], "ordered": ordered, "counter": collections.Counter("aab"), "dtype": torch.float16,
        "device": torch.device("cpu"), "far": torch.device("cuda", 1), "size": torch.Size([2, 3])}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(self.norm(self.conv(x)).relu().mean((2, 3)))


def checkpoint():
    """A training as scripts save it, and the losses of its next steps."""
    torch.manual_seed(0)
    net = Net()
    x, y = torch.randn(4, 1, 5, 5), torch.tensor([0, 1, 2, 1])
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.item()

    for _ in range(3):
        step()
    saved = copy.deepcopy({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": 3,
                           "scaler": torch.amp.GradScaler("cpu").state_dict(), "rng": torch.get_rng_state()[:16]})
    return {**saved, "x": x, "y": y, "next": [step() for _ in range(4)]}


OPTIMIZERS = {"SGD": {"lr": 0.1}, "SGD momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
              "Adam": {"lr": 0.01, "betas": (0.8, 0.99), "weight_decay": 0.1}, "AdamW": {"lr": 0.01, "eps": 1e-6}}


def optimizers():
    """For each kind two groups with states, and the parameters after three further steps with the gradients 1, 2, 3 times their place."""
    found = {}
    for dtype in ("float32", "bfloat16"):
        for name, options in OPTIMIZERS.items():
            params = [nn.Parameter(torch.tensor([1.0, -2.0, 3.0], dtype=getattr(torch, dtype))), nn.Parameter(torch.tensor([[0.5]], dtype=getattr(torch, dtype)))]
            optimizer = getattr(torch.optim, name.split()[0])([{"params": params[:1]}, {"params": params[1:], "lr": 0.05}], **options)

            def steps(count, params=params, optimizer=optimizer):
                for k in range(1, count + 1):
                    for i, param in enumerate(params):
                        param.grad = torch.full_like(param, k * (i + 1) / 4)
                    optimizer.step()

            steps(2)
            before = copy.deepcopy([[p.detach() for p in params], optimizer.state_dict()])
            steps(3)
            found[f"{name} {dtype}"] = {"kind": name.split()[0], "options": options, "params": before[0], "state": before[1], "after": [p.detach() for p in params]}
    return found


SCHEDULES = {"StepLR": (2, 0.5), "ConstantLR": (0.5, 3), "LinearLR": (0.25, 0.75, 6), "CosineAnnealingLR": (10, 0.01), "OneCycleLR": (0.5, 10)}


def schedules():
    """For each kind the state after three steps, and the rates of the next five."""
    found = {}
    for name, arguments in SCHEDULES.items():
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
        schedule = getattr(lr_scheduler, name)(optimizer, *arguments, **({"cycle_momentum": False} if name == "OneCycleLR" else {}))
        optimizer.step()
        for _ in range(3):
            schedule.step()
        state, rates = copy.deepcopy([schedule.state_dict(), optimizer.state_dict()]), []
        for _ in range(5):
            rates.append(optimizer.param_groups[0]["lr"])
            schedule.step()
        found[name] = {"arguments": arguments, "state": state[0], "optimizer": state[1], "rates": rates}
    return found


LAYERS = {
    "Linear(3, 2)": (4, 3), "Linear(3, 2, bias=False)": (4, 3), "Conv1d(2, 3, 3)": (1, 2, 5), "Conv2d(2, 4, 3, padding=1, groups=2)": (1, 2, 4, 4),
    "ConvTranspose2d(2, 3, 2, stride=2)": (1, 2, 3, 3), "BatchNorm1d(3)": (4, 3), "BatchNorm2d(2)": (2, 2, 3, 3), "BatchNorm1d(3, affine=False)": (4, 3),
    "BatchNorm1d(3, track_running_stats=False)": (4, 3), "GroupNorm(2, 4)": (2, 4, 3), "LayerNorm(4)": (2, 4), "LayerNorm(4, elementwise_affine=False)": (2, 4),
    "RMSNorm(4)": (2, 4), "Embedding(5, 3)": None, "ReLU()": (3,), "GELU()": (3,), "Dropout(0.5)": (3,), "Flatten()": (2, 3, 2), "MaxPool2d(2)": (1, 1, 4, 4),
    "Sequential(Linear(3, 4), ReLU(), Sequential(BatchNorm1d(4), Linear(4, 2)))": (4, 3), "ModuleList([Linear(2, 2), LayerNorm(2)])": (),
    "ModuleDict({'a': Linear(2, 2)})": (), "MultiheadAttention(4, 2, batch_first=True)": (2, 3, 4)}


def layers():
    """For each layer its state, an input and the output of the layer in evaluation."""
    torch.manual_seed(1)
    found = {}
    for text, shape in LAYERS.items():
        layer = eval(text, vars(nn))
        with torch.no_grad():
            for value in layer.state_dict().values():
                if value.is_floating_point():
                    value.add_(torch.rand(value.shape) * 0.1 + 0.1)
                else:
                    value.add_(3)
        x = torch.tensor([[0, 4, 1]]) if shape is None else torch.randn(shape) if shape != () else None
        layer.eval()
        with torch.no_grad():
            y = None if x is None else layer(x, x, x)[0] if "Attention" in text else layer(x)
        found[text] = {"state": layer.state_dict(), "x": x, "y": y}
    return found


def unlike():
    """Files that Yoke refuses, but that PyTorch writes."""
    save("old.pt", {"a": torch.ones(2)}, _use_new_zipfile_serialization=False)
    save("int16.pt", {"net": {"ids": torch.ones(2, dtype=torch.int16)}})
    save("uint16.pt", [torch.ones(2, dtype=torch.uint16)])
    save("complex.pt", {"spectrum": torch.ones(2, dtype=torch.complex64)})
    save("module.pt", nn.Linear(1, 1))
    save("path.pt", {"args": pathlib.PurePosixPath("x")})
    torch.jit.save(torch.jit.script(nn.ReLU()), FOLDER / "script.pt")


if __name__ == "__main__":
    save("values.pt", values())
    save("checkpoint.pt", checkpoint())
    save("optimizers.pt", optimizers())
    save("schedules.pt", schedules())
    save("layers.pt", layers())
    save("protocol4.pt", values(), pickle_protocol=4)
    save("numpy.pt", {"float": numpy.float64(2.5), "int": numpy.int32(3), "bool": numpy.bool_(True), "array": numpy.arange(6.0).reshape(2, 3).T,
                      "words": numpy.array([1, 2], dtype=numpy.uint16), "dtype": numpy.dtype("float32"), "none": numpy.zeros((0, 2))})
    unlike()
