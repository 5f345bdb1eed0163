"""States with tensors on a device, YOKE_TEST_DEVICE: saved from the device, and loaded to the device."""
import numpy as np
import pytest

import yoke
from conftest import DEVICE
from op_table import LAYOUTS
from stored_files import NAMES, read, stored_of, tensor_of, write
from test_state_files import SHAPES, bits, some
from yoke.compat.torch import serialization as torch_files, states as torch_states


@pytest.mark.parametrize("dtype", NAMES)
def test_every_dtype_goes_to_the_device_and_back(tmp_path, dtype):
    there = {f"{i}": some(dtype, shape) for i, shape in enumerate(SHAPES)}
    wanted = {name: bits(x) for name, x in there.items()}
    for pad in (0, 1):  # where elements are not aligned in the file, too
        path = write(tmp_path / "theirs", there, pad=pad)
        for mmap in (True, False):
            state = yoke.load(path, device=DEVICE, mmap=mmap)
            assert {name: bits(stored_of(x)) for name, x in state.items()} == wanted
            assert {x.device.kind for x in state.values()} == {yoke.device(DEVICE).kind}
    yoke.save(tmp_path / "ours", {name: tensor_of(x).to(device=DEVICE) for name, x in there.items()})
    assert {name: bits(x) for name, x in read(tmp_path / "ours")[0].items()} == wanted


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_saved_row_major(tmp_path, layout):
    x = LAYOUTS[layout](yoke.arange(60, device=DEVICE).reshape(3, 4, 5).to(dtype=yoke.float32))
    yoke.save(tmp_path / "file", {"x": x, "row": x[1], "tied": x})
    state = yoke.load(tmp_path / "file", device=DEVICE)
    assert bits(stored_of(state["x"])) == bits(stored_of(x)) and state["row"].tolist() == x[1].tolist()
    assert state["tied"] is state["x"]


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_larger_than_a_chunk_comes_in_several(tmp_path, turned):
    source = np.arange(5 * 900_000, dtype=np.int32).reshape(5, -1)
    x = yoke.tensor(source).to(device=DEVICE)
    yoke.save(tmp_path / "file", {"x": x.T if turned else x})
    back = yoke.load(tmp_path / "file", device=DEVICE)["x"]
    assert x.nbytes > 16 << 20 and np.array_equal(back.numpy(), source.T if turned else source)


def test_what_was_just_computed_is_what_is_saved(tmp_path):
    x = yoke.ones(1 << 16, device=DEVICE)
    for i in range(20):
        x = x * 1.5 - 0.5
        x.add_(1)
    yoke.save(tmp_path / "file", {"x": x, "turned": x.reshape(2, -1).T})
    wanted = x.clone().cpu()
    x.fill_(0)
    back = yoke.load(tmp_path / "file")
    assert bits(stored_of(back["x"])) == bits(stored_of(wanted))
    assert bits(stored_of(back["turned"])) == bits(stored_of(wanted.reshape(2, -1).T))


def test_dtype_casts_on_the_device(tmp_path):
    yoke.save(tmp_path / "file", {"x": yoke.tensor([1.5, -2.0]), "n": yoke.tensor([1, 2]), "step": 3})
    state = yoke.load(tmp_path / "file", device=DEVICE, dtype=yoke.bfloat16)
    assert state["x"].dtype == yoke.bfloat16 and state["x"].device.kind == yoke.device(DEVICE).kind
    assert state["x"].tolist() == [1.5, -2.0] and state["n"].tolist() == [1, 2] and state["step"] == 3


def test_files_of_pytorch_have_the_device_of_their_tensors(tmp_path):
    x = yoke.arange(12, device=DEVICE).to(dtype=yoke.float32).reshape(3, 4)
    torch_files.save({"x": x, "part": x.t()[1:], "half": yoke.ones(3, dtype=yoke.bfloat16, device=DEVICE), "host": yoke.ones(2, device="cpu")}, tmp_path / "file.pt")
    own = torch_files.load(tmp_path / "file.pt")
    assert own["x"].device == x.device and own["half"].device == x.device and own["host"].device.kind == "cpu"
    assert own["part"].tolist() == x.t()[1:].tolist() and yoke.shares_memory(own["x"], own["part"]) and own["part"].strides == (1, 4)
    for where in ("cpu", {f"{DEVICE}:0": "cpu"}, lambda memory, location: memory):
        on_host = torch_files.load(tmp_path / "file.pt", map_location=where)
        assert {each.device.kind for each in on_host.values()} == {"cpu"} and on_host["x"].tolist() == x.tolist()
    for where in (DEVICE, lambda memory, location: memory.to(device=DEVICE)):
        on_device = torch_files.load(tmp_path / "file.pt", map_location=where, mmap=True)
        assert {each.device for each in on_device.values()} == {x.device} and on_device["half"].tolist() == [1, 1, 1]


def test_states_of_pytorchs_optimizer_go_to_the_parameters_device():
    param = yoke.nn.Parameter(yoke.ones(3, device=DEVICE))
    optimizer = yoke.optim.AdamW([param])
    state = {"step": yoke.tensor(3.0, device="cpu"), "exp_avg": yoke.ones(3, device="cpu"), "exp_avg_sq": yoke.ones(3, device="cpu")}
    group = torch_states.optimizer_to_torch(optimizer)["param_groups"][0]
    torch_states.optimizer_from_torch(optimizer, {"state": {0: state}, "param_groups": [group]})
    found = torch_states.optimizer_to_torch(optimizer)["state"][0]
    assert found["step"].device.kind == "cpu" and found["step"].item() == 3 and found["exp_avg"].device == param.device
