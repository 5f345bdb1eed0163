"""Files of states beside the safetensors package and PyTorch's optimizers, both ways: `./dev test --oracle torch`."""
import pytest

import yoke
from stored_files import NAMES, Stored, read, stored_of, tensor_of
from test_oracle_torch import oracle  # noqa: F401: a fixture
from test_state_broken import CASES, LEGAL
from test_state_files import NASTY, SHAPES, bits, some

pytestmark = [pytest.mark.usefixtures("oracle"), pytest.mark.filterwarnings("ignore")]
TORCH = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}  # PyTorch's different names


def to_torch(stored):
    import torch
    dtype = getattr(torch, TORCH.get(stored.dtype, NAMES[stored.dtype]))
    if not stored.data:
        return torch.empty(stored.shape, dtype=dtype)
    return torch.frombuffer(bytearray(stored.data), dtype=torch.uint8).view(dtype).reshape(stored.shape)


def from_torch(dtype, x):
    import torch
    data = x.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if x.numel() else b""
    return dtype, tuple(x.shape), data


@pytest.mark.parametrize("dtype", NAMES)
def test_the_package_reads_what_yoke_saves(tmp_path, dtype):
    from safetensors import safe_open
    from safetensors.torch import load_file
    there = {f"{i}": some(dtype, shape) for i, shape in enumerate(SHAPES)}
    yoke.save(tmp_path / "file", {name: tensor_of(x) for name, x in there.items()}, metadata={"who": "ü"})
    found = load_file(tmp_path / "file")
    assert {name: from_torch(dtype, x) for name, x in found.items()} == {name: bits(x) for name, x in there.items()}
    with safe_open(tmp_path / "file", framework="pt") as file:
        assert file.metadata() == {"who": "ü", "format": "pt"} and set(file.keys()) == set(there)
    tree = {"net": [tensor_of(there["4"]), {"x": tensor_of(there["5"])}], "epoch": 3}
    yoke.save(tmp_path / "tree", tree)
    found = load_file(tmp_path / "tree")
    assert {name: from_torch(dtype, x) for name, x in found.items()} == {"net.0": bits(there["4"]), "net.1.x": bits(there["5"])}


@pytest.mark.parametrize("dtype", NAMES)
def test_yoke_reads_what_the_package_saves(tmp_path, dtype):
    from safetensors.torch import save_file
    there = {f"{i}": some(dtype, shape) for i, shape in enumerate(SHAPES)}
    if dtype == "BOOL":  # PyTorch stores 0 and 1
        there = {name: Stored(dtype, x.shape, bytes(byte & 1 for byte in x.data)) for name, x in there.items()}
    save_file({name: to_torch(x) for name, x in there.items()}, tmp_path / "file", metadata={"who": "ü"})
    assert yoke.load_info(tmp_path / "file")["metadata"]["who"] == "ü"
    for mmap in (True, False):
        found = yoke.load(tmp_path / "file", mmap=mmap)
        assert {name: bits(stored_of(x)) for name, x in found.items()} == {name: bits(x) for name, x in there.items()}
    assert {name: bits(x) for name, x in read(tmp_path / "file")[0].items()} == {name: bits(x) for name, x in there.items()}


def test_names_of_any_kind_go_both_ways(tmp_path):
    from safetensors.torch import load_file, save_file
    names = [name for name in NASTY if "\x00" not in name]
    there = {name: some("I32", (i,)) for i, name in enumerate(names)}
    yoke.save(tmp_path / "file", {name: tensor_of(x) for name, x in there.items()})
    assert {name: from_torch("I32", x) for name, x in load_file(tmp_path / "file").items()} == {name: bits(x) for name, x in there.items()}
    save_file({name: to_torch(x) for name, x in there.items()}, tmp_path / "file")
    assert {name: bits(stored_of(x)) for name, x in yoke.load(tmp_path / "file").items()} == {name: bits(x) for name, x in there.items()}


# Files that the package accepts nevertheless: the last of two equal keys, a space, and null as metadata.
LENIENT = {"a space before", "metadata that is null", *(case for case in CASES if "twice" in case)}


@pytest.mark.parametrize("case", [case for case in CASES if case not in LENIENT])
def test_the_package_refuses_what_yoke_refuses(tmp_path, case):
    from safetensors import SafetensorError, safe_open
    (tmp_path / "file").write_bytes(CASES[case][0])
    with pytest.raises((SafetensorError, ValueError, OSError)), safe_open(tmp_path / "file", framework="pt"):
        pass


@pytest.mark.parametrize("case", LEGAL)
def test_the_package_reads_what_no_rule_forbids(tmp_path, case):
    from safetensors import safe_open
    content, shapes = LEGAL[case]
    (tmp_path / "file").write_bytes(content)
    with safe_open(tmp_path / "file", framework="pt") as file:
        assert {name: list(file.get_slice(name).get_shape()) for name in file.keys()} == shapes


def as_yoke(value):
    """Returns PyTorch's state for Yoke."""
    import torch
    if isinstance(value, torch.Tensor):
        return yoke.tensor(value.numpy())
    if isinstance(value, dict):
        return {key: as_yoke(each) for key, each in value.items()}
    return [as_yoke(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind, options", [("SGD", dict(lr=0.1, momentum=0.9, nesterov=True)), ("Adam", dict(lr=0.01, betas=(0.8, 0.99))),
                                           ("AdamW", dict(lr=0.01, weight_decay=0.1))])
def test_training_goes_on_from_pytorchs_optimizer_through_a_file(tmp_path, kind, options):
    import torch

    def train(param, optimizer, ones):
        for k in range(1, 4):
            param.grad = ones(3) * k
            optimizer.step()
    theirs = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    first = getattr(torch.optim, kind)([theirs], **options)
    train(theirs, first, torch.ones)
    yoke.save(tmp_path / "file", {"param": yoke.tensor(theirs.detach().numpy()), "optimizer": as_yoke(first.state_dict())})
    state = yoke.load(tmp_path / "file")
    ours = yoke.nn.Parameter(state["param"])
    second = getattr(yoke.optim, kind)([ours], lr=1.0, **({"momentum": 0.5} if kind == "SGD" else {}))
    second.load_state_dict(state["optimizer"])
    train(theirs, first, torch.ones), train(ours, second, yoke.ones)
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-5)


def test_what_both_write_differs_in_no_tensor(tmp_path):
    """Files of both libraries have the same names, dtypes, shapes and data."""
    from safetensors.torch import save_file
    there = {f"{dtype}.{i}": some(dtype, (i + 1, 3)) for dtype in NAMES if dtype != "BOOL" for i in range(2)}
    save_file({name: to_torch(x) for name, x in there.items()}, tmp_path / "theirs", metadata={"format": "pt"})
    yoke.save(tmp_path / "ours", {name: tensor_of(x) for name, x in there.items()})
    theirs, ours = read(tmp_path / "theirs"), read(tmp_path / "ours")
    assert {name: bits(x) for name, x in theirs[0].items()} == {name: bits(x) for name, x in ours[0].items()} and theirs[1] == ours[1]
