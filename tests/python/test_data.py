"""yoke.data: IDX files, good and bad."""

import gzip
import pathlib
import struct

import pytest

import yoke
from yoke.data import read_idx


def idx(code, shape, payload):
    return struct.pack(f">HBB{len(shape)}I", 0, code, len(shape), *shape) + payload


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress], ids=["plain", "gzip"])
def test_idx_files_become_tensors(tmp_path, pack):
    path = tmp_path / "images"
    path.write_bytes(pack(idx(8, (2, 3), bytes(range(6)))))
    for name in (path, str(path), bytes(path)):
        x = read_idx(name)
        assert x.dtype is yoke.uint8 and x.device.kind == "cpu" and x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_big_endian_elements_are_turned(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(idx(0x0C, (2,), struct.pack(">2i", -2, 70000)))
    assert read_idx(path).tolist() == [-2, 70000]
    path.write_bytes(idx(0x0D, (2,), struct.pack(">2f", 1.5, -0.25)))
    assert read_idx(path, device="cpu").tolist() == [1.5, -0.25]


GOOD = idx(8, (4,), b"abcd")


PACKED = gzip.compress(GOOD)


@pytest.mark.parametrize("content, error", [
    (b"", yoke.IOError), (GOOD[:3], yoke.IOError), (GOOD[:6], yoke.IOError), (GOOD[:-1], yoke.IOError),
    (PACKED[:-6], yoke.IOError), (PACKED[:12] + b"damage" + PACKED[18:], yoke.IOError), (GOOD + b"x", yoke.ValueError),
    (b"\1\2\3\4" + GOOD, yoke.ValueError), (idx(0x0B, (1,), b"ab"), yoke.ValueError)], ids=range(9))
def test_damaged_files_are_errors_that_name_the_path(tmp_path, content, error):
    path = tmp_path / "broken-file"
    path.write_bytes(content)
    with pytest.raises(error, match="broken-file") as info:
        read_idx(path)
    assert isinstance(info.value, OSError if error is yoke.IOError else ValueError)


def test_a_missing_file_is_an_io_error_with_the_systems_number():
    with pytest.raises(yoke.IOError, match="no-such-file") as info:
        read_idx("/no-such-file")
    assert info.value.native_code == 2


def test_paths_must_be_paths():
    with pytest.raises(TypeError):
        read_idx(3)
    with pytest.raises(ValueError):
        read_idx("a\0b")


def test_the_real_fashion_mnist_is_read():
    folder = pathlib.Path("/usr/share/datasets/fashion-mnist")
    files = list(folder.glob("*.gz")) if folder.exists() else []
    if not files:
        pytest.skip("the package dataset-fashion-mnist is not installed")
    shapes = {f.name: read_idx(f).shape for f in files}
    assert shapes["train-images-idx3-ubyte.gz"] == (60000, 28, 28) and shapes["t10k-labels-idx1-ubyte.gz"] == (10000,)
