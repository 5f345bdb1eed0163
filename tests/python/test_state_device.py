"""States with tensors on a device, YOKE_TEST_DEVICE: saved from the device, and loaded to the device."""
import numpy as np
import pytest

import yoke
from conftest import DEVICE
from op_table import LAYOUTS
from stored_files import NAMES, read, stored_of, tensor_of, write
from test_state_files import SHAPES, bits, some


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
