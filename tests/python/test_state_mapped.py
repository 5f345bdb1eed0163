"""Loaded tensors as pages of their file: read at the first touch, private once written, whole after any change of the file."""
import os
import resource
import struct
import subprocess
import sys

import numpy as np
import pytest

import yoke
from stored_files import Stored, is_mapped, read, resident, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc/self/smaps")
MANY = 4 << 20  # bytes


def numbers(count=MANY // 4, first=0):
    return np.arange(first, first + count, dtype=np.float32)


def saved(path, **tensors):
    yoke.save(path, {name: yoke.tensor(array) for name, array in tensors.items()})
    return path


@pytest.fixture
def path(tmp_path):
    return saved(tmp_path / "file", x=numbers(), y=numbers(100, first=-50))


def values(path):
    return {name: np.frombuffer(x.data, dtype=np.float32) for name, x in read(path)[0].items()}


def test_tensors_are_pages_of_the_file_or_copies(path):
    x = yoke.load(path)["x"]
    assert is_mapped(x, path) and x.storage_nbytes() == x.nbytes and np.array_equal(x.numpy(), numbers())
    assert not is_mapped(yoke.load(path, mmap=False)["x"], path)
    assert not is_mapped(yoke.load(path, dtype="float64")["x"], path)
    y = yoke.load(path, names="y")["y"]
    del x
    assert is_mapped(y, path) and y.tolist() == numbers(100, first=-50).tolist()


def test_pages_are_read_when_they_are_touched(path):
    x = yoke.load(path)["x"]
    before = resident(x, path)
    assert before <= 64 << 10  # the system may bring in what lies around a page
    assert x[MANY // 8].item() == MANY // 8
    assert before < resident(x, path) <= before + (2 << 20)
    assert x.amax().item() == MANY // 4 - 1
    assert resident(x, path) >= MANY


def test_the_file_is_mapped_as_long_as_one_of_its_tensors_lives(path):
    state = yoke.load(path)
    row = state["x"][7:9]
    del state
    assert is_mapped(row, path) and row.tolist() == [7, 8]
    del row
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        assert str(path) not in maps.read()


def test_no_descriptor_stays_open(path):
    before = set(os.listdir("/proc/self/fd"))
    state = yoke.load(path)
    yoke.load_info(path)
    yoke.save(path, state)
    assert set(os.listdir("/proc/self/fd")) == before


def test_what_is_written_stays_in_this_process(path):
    x, again = yoke.load(path)["x"], yoke.load(path)["x"]
    x.fill_(-1)
    x[3] = 5
    assert x[:5].tolist() == [-1, -1, -1, 5, -1] and again[:3].tolist() == [0, 1, 2]
    assert np.array_equal(values(path)["x"], numbers())
    child = "import sys, yoke; print(yoke.load(sys.argv[1])['x'][:3].tolist())"
    assert subprocess.check_output([sys.executable, "-c", child, path], text=True) == "[0.0, 1.0, 2.0]\n"


def test_a_loaded_state_is_saved_where_it_came_from(path):
    state = yoke.load(path)
    state["y"].fill_(3)
    for _ in range(2):
        yoke.save(path, state)
        assert np.array_equal(values(path)["x"], numbers()) and set(values(path)["y"].tolist()) == {3}
    assert np.array_equal(state["x"].numpy(), numbers())
    turned = {"x": yoke.load(path)["x"].reshape(-1, 4).T}
    yoke.save(path, turned)
    assert np.array_equal(values(path)["x"], numbers().reshape(-1, 4).T.ravel()) and os.listdir(path.parent) == [path.name]


def test_the_file_may_be_replaced_or_removed_meanwhile(path):
    state = yoke.load(path)
    saved(path, x=numbers(10), y=numbers(3))
    new = yoke.load(path)
    os.unlink(path)
    assert state["y"].tolist() == numbers(100, first=-50).tolist() and new["x"].tolist() == list(range(10))
    assert np.array_equal(state["x"].numpy(), numbers())
    yoke.save(path, state)
    assert np.array_equal(values(path)["x"], numbers()) and np.array_equal(values(path)["y"], numbers(100, first=-50))


def test_a_file_behind_a_link_is_the_one_that_is_mapped_and_saved(tmp_path, path):
    link = tmp_path / "latest"
    link.symlink_to("file")
    state = yoke.load(link)
    assert is_mapped(state["x"], path)
    yoke.save(link, {"z": state["y"]})
    assert link.is_symlink() and list(read(path)[0]) == ["z"] and np.array_equal(state["x"].numpy(), numbers())


def test_what_is_computed_in_place_and_trained_is_as_any_tensor(path):
    net = yoke.nn.Linear(2, 2)
    yoke.save(path, net.state_dict())
    fresh = yoke.nn.Linear(2, 2)
    fresh.load_state_dict(yoke.load(path))
    state = yoke.load(path)
    weight = state["weight"].requires_grad_()
    (weight * weight).sum().backward()
    with yoke.no_grad():
        weight -= weight.grad
    assert weight.tolist() == (-net.weight).tolist() and fresh.weight.tolist() == net.weight.tolist()
    assert yoke.load(path)["weight"].tolist() == net.weight.tolist()


def test_misaligned_tensors_are_copies_and_their_neighbours_pages(tmp_path):
    there = {"odd": Stored("U8", (3,), b"abc"), "x": Stored("F32", (2,), struct.pack("<2f", 1.5, -2)),
             "more": Stored("U8", (5,), b"defgh"), "y": Stored("I64", (1,), struct.pack("<q", -7))}
    path = write(tmp_path / "file", there)
    for pad in range(16):
        write(path, there, pad=pad)
        found, state = read(path)[0], yoke.load(path)
        assert {name: is_mapped(x, path) for name, x in state.items()} == {
            name: found[name].begin % x.itemsize == 0 for name, x in state.items()}
        assert state["x"].tolist() == [1.5, -2] and state["y"].tolist() == [-7] and state["more"].tolist() == list(b"defgh")


def test_more_is_mapped_than_the_machine_has_room_for(tmp_path):
    """No memory is set aside for pages that might be written."""
    path, size = tmp_path / "file", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 4 // 4096 * 4096
    header = f'{{"x":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}}}}'.encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    x = yoke.load(path)["x"]
    x[size // 2] = 7
    assert x.numel == size and x[size // 2 - 1:size // 2 + 2].tolist() == [0, 7, 0]


def test_a_limit_on_address_space_is_an_error_that_names_the_file(path):
    child = f"""
import resource, sys, yoke
yoke.load(sys.argv[1])
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {MANY} // 2, used + {MANY} // 2))
try:
    yoke.load(sys.argv[1])
except yoke.IOError as error:
    assert sys.argv[1] in str(error) and error.native_code == 12, error
    print("refused")
"""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer takes all of the address space")
    assert resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY
    assert subprocess.check_output([sys.executable, "-c", child, path], text=True, timeout=120) == "refused\n"
