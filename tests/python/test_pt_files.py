"""PyTorch's files of tensors and containers: what PyTorch 2.15 has written (tests/python/pt) is read, and what is written returns."""
import argparse
import collections
import io
import math
import os
import pathlib
import stat
import zipfile

import numpy as np
import pytest

import yoke
from yoke import nn
from yoke.compat.torch.files import archive
from yoke.compat.torch.serialization import load, save

PT = pathlib.Path(__file__).with_name("pt")
DTYPES = {"float64": "float64", "float32": "float32", "float16": "float16", "bfloat16": "bfloat16", "int64": "int64", "int32": "int32", "int8": "int8",
          "uint8": "uint8", "bool": "bool", "float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2"}
BASE = [[[12 * i + 4 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
PLAIN = [None, True, False, 0, -1, 255, 256, 65536, 2**31, -2**40, 2**70, 1.5, math.inf, "text", "é\ud800", b"\x00\xff", b"x", bytearray(b"ab"), 1 + 2j]


def returned(value, **options):
    """Returns the value after a save and a load."""
    file = io.BytesIO()
    save(value, file)
    return load(io.BytesIO(file.getvalue()), **options)


def same(a, b):
    """Returns whether two plain values are equal and have the same types."""
    if type(a) in (list, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def check_values(state):
    """Checks what tests/python/pt/make.py says of values.pt."""
    for name, x in state["dtypes"].items():
        assert x.dtype.name == DTYPES[name] and x.shape == (2, 3) and x.strides == (3, 1)
        assert x.to(dtype=yoke.float32).tolist() == ([[0, 1, 2], [3, 4, 0]] if name != "bool" else [[0, 1, 1], [1, 1, 0]])
    base, turned, part = state["base"], state["turned"], state["part"]
    assert base.tolist() == BASE and turned.shape == (3, 2, 3) and turned.strides == (1, 12, 4) and part.tolist() == [[16, 18], [20, 22]]
    assert all(yoke.shares_memory(base, state[name]) for name in ("turned", "part", "row"))
    assert state["row"].strides == (0, 1) and state["row"].tolist() == [[0, 1, 2, 3]] * 3 and state["last"].strides == (12, 1, 6, 3)
    assert state["zero_dim"].shape == () and state["zero_dim"].item() == 3.5 and state["empty"].shape == (0, 3) and state["behind"].shape == (0,)
    parameter, tagged, frozen = state["parameter"], state["tagged"], state["frozen"]
    assert all(type(each) is nn.Parameter for each in (parameter, tagged, frozen)) and parameter.tolist() == [1, 2]
    assert parameter.requires_grad and tagged.tag == "mine" and not frozen.requires_grad and state["grad"].requires_grad
    assert same(state["plain"], PLAIN) and same(state["tuples"], [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]) and state["sets"] == {1, "a"}
    assert state["keys"] == {1: 0, 2.5: "float", None: "none", (1, "a"): "tuple"} and state["shared"][0] is state["shared"][1]
    assert type(state["ordered"]) is collections.OrderedDict and list(state["ordered"]) == ["b", "a"]
    assert state["ordered"]._metadata == {"": {"version": 1}} and state["counter"] == collections.Counter("aab")
    assert state["dtype"] is yoke.float16 and state["device"] == yoke.device("cpu") and state["size"] == (2, 3)
    assert state["storage"].tolist() == [1, 2] and state["bytes"].dtype is yoke.uint8


@pytest.mark.parametrize("name", ["values.pt", "protocol4.pt"])
@pytest.mark.parametrize("options", [{}, {"map_location": "cpu", "weights_only": False}, {"mmap": True, "weights_only": True}], ids=str)
def test_what_pytorch_has_written_is_read(name, options):
    check_values(load(PT / name, **options))
    if "mmap" not in options:
        with open(PT / name, "rb") as file:
            check_values(load(file, **options))


@pytest.mark.parametrize("way", ["path", "str", "file", "mmap"])
def test_what_is_written_returns(tmp_path, way):
    state, path = load(PT / "values.pt"), tmp_path / "file.pt"
    if way == "file":
        with open(path, "wb") as file:
            save(state, file)
    else:
        save(state, str(path) if way == "str" else path)
    check_values(load(path, mmap=way == "mmap"))
    assert os.listdir(tmp_path) == ["file.pt"]


def test_numbers_and_arrays_of_numpy_are_read_and_written():
    read = load(PT / "numpy.pt")
    for state in (read, returned({name: value for name, value in read.items() if name != "dtype"})):
        assert (state["float"], state["int"], state["bool"]) == (2.5, 3, True)
        assert state["array"].tolist() == np.arange(6.0).reshape(2, 3).T.tolist() and state["array"].flags.f_contiguous and state["array"].flags.writeable
        assert state["words"].dtype == "uint16" and state["words"].tolist() == [1, 2] and state["none"].shape == (0, 2)
    assert read["dtype"] == np.dtype("float32") and type(read["float"]) is np.float64
    assert same(list(returned({np.int64(3): 0})), [3])
    assert type(returned(np.float64(2.5))) is float and type(returned(np.bool_(True))) is bool  # PyTorch reads Python's numbers alone


def test_two_more_classes_of_values_are_read_where_the_script_trusts_the_file():
    args = argparse.Namespace(lr=0.1, paths=["a"], net=yoke.ones(2))
    history = collections.defaultdict(list, {"loss": [1.5], "args": args})
    state = {"args": args, "history": history, "none": collections.defaultdict(None), "sets": collections.defaultdict(set)}
    found = returned(state, weights_only=False)
    assert type(found["args"]) is argparse.Namespace and found["args"].lr == 0.1 and found["args"].paths == ["a"] and found["args"].net.tolist() == [1, 1]
    assert found["history"]["args"] is found["args"] and found["history"]["new"] == [] and found["none"].default_factory is None
    assert found["sets"]["x"] == set()
    for each, name in ((args, "argparse.Namespace"), (history, "collections.defaultdict")):
        for options in ({}, {"weights_only": True}):
            with pytest.raises(yoke.CheckpointError, match=f"the global '{name}', which is not allowed.*With weights_only=False the file can be read"):
                returned(each, **options)


def test_the_archive_is_as_pytorch_writes_it(tmp_path):
    x = yoke.arange(100, dtype=yoke.float32)
    save({"x": x, "y": x[10:20], "z": yoke.ones(3, dtype=yoke.bfloat16)}, tmp_path / "file.pt")
    with zipfile.ZipFile(tmp_path / "file.pt") as file, open(tmp_path / "file.pt", "rb") as raw:
        assert file.testzip() is None
        names = [entry.filename for entry in file.infolist()]
        assert names == [f"archive/{name}" for name in ("data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "version")]
        assert [file.read(f"archive/{name}") for name in (".format_version", ".storage_alignment", "byteorder", "version")] == [b"1", b"64", b"little", b"3\n"]
        assert len(file.read("archive/data/0")) == 400 and len(file.read("archive/data/1")) == 6
        for entry in file.infolist():
            raw.seek(entry.header_offset + 26)
            name, extra = raw.read(2), raw.read(2)
            assert entry.compress_type == 0 and (entry.header_offset + 30 + int.from_bytes(name, "little") + int.from_bytes(extra, "little")) % 64 == 0


def test_only_the_part_of_a_storage_that_is_saved_is_written():
    x = yoke.arange(1000, dtype=yoke.float32)
    file = io.BytesIO()
    save([x[500:510], x[505:520]], file)
    assert len(file.getvalue()) < 3000
    a, b = load(file)
    assert a.tolist() == list(range(500, 510)) and b.tolist() == list(range(505, 520)) and yoke.shares_memory(a, b)
    a[5] = -1
    assert b[0].item() == -1


def test_views_of_other_dtypes_and_turned_axes_return():
    x = yoke.arange(6, dtype=yoke.float32).reshape(2, 3)
    bits = yoke._yoke._view_storage(x, yoke.int32, (6,), None, 0)
    state = returned({"x": x, "bits": bits, "turned": x[::-1], "conv": yoke.conv2d(yoke.ones((1, 2, 4, 4)), yoke.ones((3, 2, 3, 3)))})
    assert state["bits"].dtype is yoke.int32 and yoke.shares_memory(state["x"], state["bits"]) and state["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert state["turned"].tolist() == [[3, 4, 5], [0, 1, 2]] and state["conv"].tolist() == [[[[18.0] * 2] * 2] * 3]


def test_large_entries_stand_in_fields_of_zip64(monkeypatch, tmp_path):
    monkeypatch.setattr(archive, "LARGE", 300)
    save({"x": yoke.arange(1000), "y": yoke.ones(2), "z": yoke.ones(2000)}, tmp_path / "file.pt")
    monkeypatch.undo()
    state = load(tmp_path / "file.pt")
    assert state["x"].tolist() == list(range(1000)) and state["y"].tolist() == [1, 1] and state["z"].sum().item() == 2000
    with zipfile.ZipFile(tmp_path / "file.pt") as file:
        assert file.testzip() is None


def test_many_entries_and_values():
    state = {f"layer.{i}": yoke.full((2,), i) for i in range(700)} | {"list": list(range(70000)), "words": [str(i) for i in range(400)] * 2}
    found = returned(state)
    assert all(found[f"layer.{i}"].tolist() == [i, i] for i in range(700)) and found["list"] == state["list"] and found["words"] == state["words"]


# ---- Devices ---------------------------------------------------------------------------------------------------------


def from_afar():
    """Returns a file of tensors from a device 'gpu', which is not there."""
    file = io.BytesIO()
    save({"x": yoke.ones(3), "y": yoke.ones(2)}, file)
    return file.getvalue().replace(b"X\3\0\0\0cpu", b"X\3\0\0\0gpu")  # the same length, so that nothing moves


def test_map_location_is_a_device_a_dict_or_a_function():
    far = from_afar()
    for where in ("cpu", yoke.device("cpu"), {"gpu": "cpu"}, lambda memory, location: memory, lambda memory, location: "cpu"):
        assert load(io.BytesIO(far), map_location=where)["x"].tolist() == [1, 1, 1]
    asked = []
    load(io.BytesIO(far), map_location=lambda memory, location: asked.append((memory.dtype.name, memory.shape, location)) or "cpu")
    assert asked == [("uint8", (12,), "gpu"), ("uint8", (8,), "gpu")]
    for where in (None, {"cuda:0": "cpu"}, lambda memory, location: None):
        with pytest.raises(yoke.Error, match=r"load\(\): argument 'f' has a tensor from the device 'gpu'.*map_location='cpu'"):
            load(io.BytesIO(far), map_location=where)


# ---- Files -----------------------------------------------------------------------------------------------------------


def test_a_file_takes_its_place_whole(tmp_path):
    path = tmp_path / "file.pt"
    save({"a": 1}, path)
    path.chmod(0o640)
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    save({"a": 2}, link)
    assert load(path) == {"a": 2} and link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(yoke.TypeError):
        save({"a": 3, "b": object()}, path)
    assert load(path) == {"a": 2} and sorted(os.listdir(tmp_path)) == ["file.pt", "link.pt"]
    save({"a": 4}, os.devnull)


class Full(io.RawIOBase):
    """A file without room."""

    def write(self, data):
        raise OSError(28, "No space left on device")


def test_errors_of_files_have_path_and_number(tmp_path):
    for call, path in ((lambda: load(tmp_path / "none.pt"), tmp_path / "none.pt"), (lambda: save({}, tmp_path / "no" / "file.pt"), tmp_path / "no" / "file.pt")):
        with pytest.raises(FileNotFoundError) as told:
            call()
        assert isinstance(told.value, yoke.IOError) and told.value.errno == 2 and str(path) in str(told.value)
        last = str(told.value)
    assert f"there is no folder '{tmp_path / 'no'}'" in last
    with pytest.raises(yoke.IOError, match="directory"):
        load(tmp_path)
    with pytest.raises(yoke.IOError, match="directory"):
        save({}, tmp_path)
    with pytest.raises(OSError, match="No space"):
        save({}, Full())


# ---- Arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, kind, words", [
    (lambda: load(3), yoke.TypeError, ["load(): argument 'f' is 3", "io.BytesIO(data)"]),
    (lambda: load(b"PK"), yoke.TypeError, ["argument 'f'", "io.BytesIO"]),
    (lambda: load(io.StringIO("x")), yoke.TypeError, ["a file of str", "'rb'"]),
    (lambda: load("x", weights_only=1), yoke.TypeError, ["argument 'weights_only' is 1", "bool"]),
    (lambda: load("x", mmap="yes"), yoke.TypeError, ["argument 'mmap' is 'yes'"]),
    (lambda: load(io.BytesIO(), mmap=True), yoke.ValueError, ["argument 'mmap' is True", "path"]),
    (lambda: load("x", pickle_module=io), yoke.ValueError, ["pickle_module"]),
    (lambda: load("x", encoding="latin1"), yoke.TypeError, ["'encoding'"]),
    (lambda: save({}, 3), yoke.TypeError, ["save(): argument 'f' is 3", "torch.save(obj, f)"]),
    (lambda: save("x.pt", {}), yoke.TypeError, ["argument 'f'", "torch.save(obj, f)"]),
    (lambda: save({}, io.BytesIO(), pickle_module=io), yoke.ValueError, ["pickle_module"]),
    (lambda: save({}, io.BytesIO(), _use_new_zipfile_serialization=False), yoke.ValueError, ["_use_new_zipfile_serialization"]),
])
def test_arguments_that_do_not_fit_are_refused(call, kind, words):
    with pytest.raises(kind) as told:
        call()
    assert all(word in str(told.value) for word in words), told.value


class Kept(dict):
    pass


LOOP = []
LOOP.append(LOOP)


@pytest.mark.parametrize("value, kind, words", [
    ({"net": nn.Linear(1, 1)}, yoke.TypeError, ["save(): the value at 'net'", "Linear", "state_dict()"]),
    (nn.Linear(1, 1), yoke.TypeError, ["argument 'obj'", "Linear", "state_dict()"]),
    ({"a": [1, Kept()]}, yoke.TypeError, ["'a.1'", "Kept", "dict(x)"]),
    (frozenset(), yoke.TypeError, ["frozenset", "sets"]),
    ({"f": print}, yoke.TypeError, ["'f'", "builtin"]),
    (collections.defaultdict(lambda: 0), yoke.TypeError, ["defaultdict"]), (argparse.Namespace(net=print), yoke.TypeError, ["'net'", "builtin"]),
    (np.array(["a"]), yoke.TypeError, ["ndarray"]),
    (1 << 3000, yoke.ValueError, ["3001 bits"]), ({"a": {1 << 64: 0}}, yoke.ValueError, ["'a.18446744073709551616'", "64 bits"]), ({1j}, yoke.ValueError, ["type complex"]),
    ({"x": {((1,), 2): 0}}, yoke.ValueError, ["'x.((1,), 2)'", "type tuple"]),
    (LOOP, yoke.ValueError, ["64 levels", "contains itself"]),
], ids=str)
def test_values_that_pytorch_would_not_load_are_refused(value, kind, words):
    with pytest.raises(kind) as told:
        save(value, io.BytesIO())
    assert all(word in str(told.value) for word in words), told.value


def test_yoke_load_names_the_reader(tmp_path):
    for path in (PT / "values.pt", PT / "old.pt"):
        with pytest.raises(yoke.CheckpointError, match=r"yoke\.compat\.torch\.serialization"):
            yoke.load(path)
    state = load(PT / "checkpoint.pt", map_location="cpu")  # as the error says
    yoke.save(tmp_path / "new.safetensors", state)
    found = yoke.load(tmp_path / "new.safetensors")
    assert found["epoch"] == 3 and found["model"]["fc.weight"].tolist() == state["model"]["fc.weight"].tolist()
    assert found["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
