"""yoke.save and yoke.load beside an independent reader and writer of safetensors (stored_files.py): every dtype, shape and layout,
names, metadata, what is asked for.
"""
import json
import os
import random

import numpy as np
import pytest

import yoke
from op_table import LAYOUTS
from stored_files import BITS, NAMES, STRANGE, Stored, bytes_of, read, stored_of, tensor_of, write

SHAPES = [(), (0,), (1,), (3, 0, 5), (2, 3), (5, 1, 3), (1,) * 16, (2,) * 10]


def some(dtype, shape, seed=0):
    """Returns random bits of a dtype, NaNs of every kind among them; for bool also bytes beyond 1, which are true."""
    draw = random.Random(f"{dtype} {shape} {seed}")
    return Stored(dtype, shape, draw.randbytes(bytes_of(dtype, shape)))


def bits(stored):
    return stored.dtype, stored.shape, stored.data


def loaded_bits(state):
    return {name: bits(stored_of(x)) for name, x in state.items()}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", NAMES)
def test_what_another_writer_wrote_is_loaded(tmp_path, dtype, mmap):
    there = {f"{i}": some(dtype, shape) for i, shape in enumerate(SHAPES)}
    path = write(tmp_path / "theirs", there)
    state = yoke.load(path, mmap=mmap)
    assert loaded_bits(state) == {name: bits(x) for name, x in there.items()}
    assert all(x.dtype.name == NAMES[dtype] and not x.requires_grad and x.device.kind == "cpu" for x in state.values())
    state["4"].fill_(0)  # the tensor belongs to the script
    assert bits(read(path)[0]["4"]) == bits(there["4"])


@pytest.mark.parametrize("dtype", NAMES)
def test_what_is_saved_another_reader_reads(tmp_path, dtype):
    there = {f"{i}": some(dtype, shape) for i, shape in enumerate(SHAPES)}
    work = yoke.save(tmp_path / "ours", {name: tensor_of(x) for name, x in there.items()})
    found, metadata = read(tmp_path / "ours")
    assert {name: bits(x) for name, x in found.items()} == {name: bits(x) for name, x in there.items()}
    assert metadata == {"format": "pt"}
    size = os.path.getsize(tmp_path / "ours")
    assert work.done() and work.progress() == (size, size) and work.wait() is None
    assert os.listdir(tmp_path) == ["ours"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_what_does_not_lie_row_major_is_saved_so(tmp_path, dtype, layout):
    x = LAYOUTS[layout](yoke.arange(60).reshape(3, 4, 5).to(dtype=getattr(yoke, dtype)))
    yoke.save(tmp_path / "file", {"x": x, "none": x[1:1], "wide": x[:1, :1].expand(7, 4, 5)})
    found = read(tmp_path / "file")[0]
    assert bits(found["x"]) == bits(stored_of(x)) and found["none"].shape == (0, 4, 5)
    assert bits(found["wide"]) == bits(stored_of(x[:1, :1].clone().expand(7, 4, 5)))


@pytest.mark.parametrize("make", [lambda wide: wide.T, lambda wide: wide[:, ::2], lambda wide: wide[::-1, 1:],
                                  lambda wide: wide.reshape(1, 1, -1)[..., ::2], lambda wide: wide[:1].expand(3, wide.shape[1]),
                                  lambda wide: wide.reshape(wide.shape[0], -1, 4)[:, :, 1]],
                         ids=["turned", "every other", "backwards", "one row", "expanded", "a column"])
def test_what_is_larger_than_a_chunk_is_written_in_several(tmp_path, make):
    """Chunks of 16 MiB, along the first axis, and within a row where that alone is larger."""
    source = np.arange(5 * 2_000_000, dtype=np.int64).reshape(5, 2_000_000)
    x, wanted = make(yoke.tensor(source)), make_of_numpy(make, source)
    yoke.save(tmp_path / "file", {"x": x})
    back = yoke.load(tmp_path / "file")["x"]
    assert x.nbytes > 16 << 20 and np.array_equal(back.numpy(), wanted)


class _Array(np.ndarray):
    def expand(self, *shape):
        return np.broadcast_to(self, shape)


def make_of_numpy(make, source):
    return np.asarray(make(source.view(_Array)))


def test_the_order_and_alignment_of_what_is_written(tmp_path):
    order = list(NAMES)
    there = {f"{name} {i}": some(dtype, (i + 1,)) for i in (1, 0) for name, dtype in zip("zbkacmyxlno", reversed(order))}
    yoke.save(tmp_path / "file", {name: tensor_of(x) for name, x in there.items()}, metadata={"who": "me"})
    found, metadata = read(tmp_path / "file")
    assert [(order.index(x.dtype), name) for name, x in found.items()] == sorted((order.index(x.dtype), name) for name, x in there.items())
    assert min(x.begin for x in found.values()) % 64 == 0 and metadata == {"who": "me", "format": "pt"}
    assert all(x.begin % (BITS[x.dtype] // 8) == 0 for x in found.values())


def test_what_is_not_aligned_is_copied(tmp_path):
    there = {"a": some("U8", (3,)), "b": some("F32", (5,)), "c": some("I64", (2,)), "d": some("BF16", (3,))}
    for pad in range(8):
        path = write(tmp_path / f"{pad}", there, pad=pad)
        for mmap in (True, False):
            assert loaded_bits(yoke.load(path, mmap=mmap)) == {name: bits(x) for name, x in there.items()}


NASTY = ["", " ", ".", "..", "a.b", "a/b", "a~b", '"', "\\", "\\u0041", "ü", "𝄞", "\t\n\r\x00\x01\x1f\x7f", "\u2028\ufeff\ufffd\uffff",
         "$tensor", "{", "__metadata", "format", "yoke.tree", "x" * 70_000, "0", "-1", "dtype"]


def test_names_of_any_kind_go_both_ways(tmp_path):
    there = {name: some("I32", (i,)) for i, name in enumerate(NASTY)}
    wanted = {name: bits(x) for name, x in there.items()}
    assert loaded_bits(yoke.load(write(tmp_path / "theirs", there))) == wanted
    yoke.save(tmp_path / "ours", {name: tensor_of(x) for name, x in there.items()})
    found, metadata = read(tmp_path / "ours")
    assert {name: bits(x) for name, x in found.items()} == wanted and metadata == {"format": "pt"}
    assert loaded_bits(yoke.load(tmp_path / "ours")) == wanted
    assert set(yoke.load_info(tmp_path / "ours")["tensors"]) == set(there)


def test_names_that_no_file_can_have_are_refused(tmp_path):
    x = yoke.ones(2)
    with pytest.raises(yoke.ValueError, match="__metadata__"):
        yoke.save(tmp_path / "file", {"__metadata__": x})
    with pytest.raises(yoke.ValueError, match=r"state\['a'\].*surrogates"):
        yoke.save(tmp_path / "file", {"a": {"\ud800": x}})
    assert os.listdir(tmp_path) == []


def test_metadata_goes_both_ways(tmp_path):
    texts = {"": "", "format": "mine", "ü𝄞\n": '"\\ \x00\x1f', "json": json.dumps({"a": [1]}), "long": "x" * 100_000}
    yoke.save(tmp_path / "ours", {"x": yoke.ones(1)}, metadata=texts)
    assert read(tmp_path / "ours")[1] == texts
    assert yoke.load_info(tmp_path / "ours")["metadata"] == texts
    path = write(tmp_path / "theirs", {"x": some("U8", (1,))}, metadata=texts)
    assert yoke.load_info(path)["metadata"] == texts and list(yoke.load(path)) == ["x"]
    yoke.save(tmp_path / "tree", {"epoch": 3}, metadata=texts)
    kept = read(tmp_path / "tree")[1]
    assert {key: text for key, text in kept.items() if not key.startswith("yoke.")} == texts
    assert yoke.load_info(tmp_path / "tree")["metadata"] == texts and yoke.load(tmp_path / "tree") == {"epoch": 3}


@pytest.mark.parametrize("metadata, error, words", [
    ({"yoke.tree": "x"}, yoke.ValueError, "'yoke.tree'"), ({"yoke.": ""}, yoke.ValueError, "'yoke.'"), ({"a": 1}, yoke.TypeError, "'a'"),
    ({1: "a"}, yoke.TypeError, "'1'"), ({"a": None}, yoke.TypeError, "none"), ("text", yoke.TypeError, "'metadata' is a string"),
    ({"\ud800": "a"}, yoke.ValueError, "metadata.*surrogates"), ({"a": "\ud800"}, yoke.ValueError, r"metadata\['a'\].*surrogates"),
    ({"a": {"b": "c"}}, yoke.TypeError, "a dict"), ([("a", "b")], yoke.TypeError, "a list")], ids=repr)
def test_metadata_that_is_none_is_refused(tmp_path, metadata, error, words):
    with pytest.raises(error, match=words):
        yoke.save(tmp_path / "file", {"x": yoke.ones(1)}, metadata=metadata)
    assert os.listdir(tmp_path) == []


def test_a_tensor_under_two_names_is_stored_once_and_is_one_again(tmp_path):
    x = yoke.arange(6).reshape(2, 3)
    yoke.save(tmp_path / "file", {"a": x, "b": x, "net": {"tied": x, "turned": x.T, "alias": x[:]}, "other": x.clone()})
    found = read(tmp_path / "file")[0]
    assert set(found) == {"a", "net.turned", "other"}
    back = yoke.load(tmp_path / "file")
    assert back["a"] is back["b"] is back["net"]["tied"] is back["net"]["alias"] and back["other"] is not back["a"]
    assert back["net"]["turned"].tolist() == x.T.tolist() and back["net"]["turned"].shape == (3, 2)


def test_names_say_which_tensors_are_loaded(tmp_path):
    there = {name: some("F32", (2,)) for name in ("net.0.weight", "net.0.bias", "net.10.weight", "head", "ü")}
    for path in (write(tmp_path / "plain", there), tmp_path / "tree"):
        if path.name == "tree":
            yoke.save(path, {"step": 3, "net": [{"weight": yoke.ones(1), "bias": yoke.ones(1)}, {}], "head": yoke.ones(1), "ü": yoke.ones(1)})
        names = set(read(path)[0])
        assert set(yoke.load(path, names="net.0.")) == {"net.0.weight", "net.0.bias"}
        assert set(yoke.load(path, names="")) == names and yoke.load(path, names="nowhere") == {}
        asked = []
        assert set(yoke.load(path, names=lambda name: asked.append(name) or name.endswith("weight"))) == {n for n in names if n.endswith("weight")}
        assert sorted(asked) == sorted(names)
        with pytest.raises(ZeroDivisionError):
            yoke.load(path, names=lambda name: 1 / 0)
        for wrong in (3, ["head"], b"head"):
            with pytest.raises(yoke.TypeError, match="names.*a prefix or a function"):
                yoke.load(path, names=wrong)


def test_no_function_is_asked_about_a_name_that_it_cannot_be_told(tmp_path):
    path = write(tmp_path / "file", {"a\x00b": some("U8", (1,)), "a": some("U8", (2,))})
    with pytest.raises(yoke.CheckpointError, match=r"the name of tensor 'a\?b' has a NUL"):
        yoke.load(path, names=lambda name: name == "a")
    assert set(yoke.load(path, names="a")) == {"a", "a\x00b"}


@pytest.mark.parametrize("mmap", [True, False])
def test_dtype_casts_what_floats(tmp_path, mmap):
    there = {"f64": some("F64", (3,)), "f16": Stored("F16", (2,), b"\x00\x3c\x00\xc0"), "e4m3": Stored("F8_E4M3", (1,), b"\x38"),
             "i64": some("I64", (3,)), "u8": some("U8", (3,)), "bool": Stored("BOOL", (2,), b"\x01\x00"), "none": some("F32", (0, 2))}
    path = write(tmp_path / "file", there)
    back = yoke.load(path, dtype=yoke.bfloat16, mmap=mmap)
    assert {name: x.dtype for name, x in back.items()} == {
        "f64": yoke.bfloat16, "f16": yoke.bfloat16, "e4m3": yoke.bfloat16, "i64": yoke.int64, "u8": yoke.uint8, "bool": yoke.bool,
        "none": yoke.bfloat16}
    assert back["f16"].tolist() == [1.0, -2.0] and back["e4m3"].tolist() == [1.0]
    assert {bits(stored_of(back[name])) for name in ("i64", "u8", "bool")} == {bits(there[name]) for name in ("i64", "u8", "bool")}
    same = yoke.load(path, dtype="float16", mmap=mmap)
    assert bits(stored_of(same["f16"])) == bits(there["f16"])
    tree = tmp_path / "tree"
    x = yoke.ones(2)
    yoke.save(tree, {"a": x, "b": x, "number": 1.5, "whole": yoke.ones(1, dtype=yoke.int32)})
    narrow = yoke.load(tree, dtype="float64")
    assert narrow["a"] is narrow["b"] and narrow["a"].dtype == yoke.float64 and narrow["whole"].dtype == yoke.int32 and narrow["number"] == 1.5
    for wrong in (yoke.int64, "bool"):
        with pytest.raises(yoke.TypeError, match="'dtype' is (int64|bool)"):
            yoke.load(path, dtype=wrong)


def test_a_device_may_be_named(tmp_path):
    path = write(tmp_path / "file", {"x": some("F32", (3,))})
    assert all(yoke.load(path, device=device)["x"].device.kind == "cpu" for device in (None, "cpu", yoke.device("cpu")))
    with pytest.raises(yoke.ValueError, match="tpu"):
        yoke.load(path, device="tpu")


@pytest.mark.parametrize("dtype", STRANGE)
def test_a_dtype_that_yoke_has_not_is_listed_and_refused_by_its_tensor(tmp_path, dtype):
    there = {"ours": some("F32", (3,)), "a.theirs": some(dtype, (2, 4)), "none": some(dtype, (0,))}
    path = write(tmp_path / "file", there)
    info = yoke.load_info(path)["tensors"]
    found = read(path)[0]
    assert info["a.theirs"] == {"dtype": dtype, "shape": [2, 4], "bytes": len(there["a.theirs"].data), "offset": found["a.theirs"].begin}
    assert info["ours"]["dtype"] == "float32"
    for names in (None, "a.", "none"):
        with pytest.raises(yoke.CheckpointError, match=rf"{path}: tensor '(a.theirs|none)' is {dtype}, a dtype that Yoke does not have"):
            yoke.load(path, names=names)
    assert loaded_bits(yoke.load(path, names="ours")) == {"ours": bits(there["ours"])}


def test_load_info_tells_what_is_there(tmp_path):
    there = {"a": some("F8_E5M2", (2, 3)), "b": some("I64", ())}
    path = write(tmp_path / "file", there, metadata={"who": "me", "yoke.other": "hidden"}, pad=3)
    found, size = read(path)[0], os.path.getsize(path)
    assert yoke.load_info(path) == {
        "path": str(path), "kind": "file", "files": {"file": size}, "bytes": size, "header_bytes": size - 8 - 6 - 8, "metadata": {"who": "me"}, "has_tree": False,
        "tensors": {"a": {"dtype": "float8_e5m2", "shape": [2, 3], "bytes": 6, "offset": found["a"].begin},
                    "b": {"dtype": "int64", "shape": [], "bytes": 8, "offset": found["b"].begin}}}
    yoke.save(path, [1])
    assert yoke.load_info(path)["has_tree"] and yoke.load_info(path)["tensors"] == {}


def test_paths_of_every_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("plain", tmp_path / "a path", os.fsencode(tmp_path / "bytes"), b"\xff\xfe", tmp_path / "ü𝄞\n'"):
        yoke.save(path, {"x": yoke.arange(3)})
        assert yoke.load(path)["x"].tolist() == [0, 1, 2]
        assert os.fsencode(yoke.load_info(path)["path"]) == os.fsencode(path)
    assert list(yoke.load_info(b"\xff\xfe")["files"]) == [r"\xff\xfe"]
    for wrong in (None, 3, ["a"]):
        for call in (lambda: yoke.save(wrong, {}), lambda: yoke.load(wrong), lambda: yoke.load_info(wrong)):
            with pytest.raises(TypeError, match="PathLike"):
                call()
    for call in (lambda: yoke.save("a\0b", {}), lambda: yoke.load("a\0b")):
        with pytest.raises(yoke.ValueError, match="path"):
            call()


def test_empty_states(tmp_path):
    yoke.save(tmp_path / "ours", {})
    assert read(tmp_path / "ours") == ({}, {"format": "pt"}) and yoke.load(tmp_path / "ours") == {}
    assert yoke.load(write(tmp_path / "theirs", {})) == {} and os.path.getsize(tmp_path / "theirs") == 10


def test_tensors_that_record_and_views_of_them_are_saved(tmp_path):
    weight = yoke.nn.Parameter(yoke.arange(6.0).reshape(2, 3))
    yoke.save(tmp_path / "file", {"weight": weight, "turned": weight.T, "product": weight * 2})
    back = yoke.load(tmp_path / "file")
    assert back["product"].tolist() == (weight * 2).tolist() and not back["weight"].requires_grad
    with yoke.autocast(dtype=yoke.bfloat16):
        yoke.save(tmp_path / "file", {"turned": weight.T})
        assert yoke.load(tmp_path / "file", dtype=yoke.float64)["turned"].dtype == yoke.float64
    assert weight.grad is None


def test_a_graph_is_not_captured_over_a_file(tmp_path):
    """At a capture no value is computed; only a replay computes. So a save would write arbitrary memory."""
    x = yoke.arange(6).reshape(2, 3)
    yoke.save(tmp_path / "file", {"x": x})
    with yoke.Graph().capture():
        y = x + 1
        for state in ({"y": y}, {"turned": x.T}):
            with pytest.raises(yoke.StateError, match="save: a graph is being captured"):
                yoke.save(tmp_path / "file", state)
        with pytest.raises(yoke.StateError, match="load: a graph is being captured"):
            yoke.load(tmp_path / "file", dtype="float64")
        assert yoke.load_info(tmp_path / "file")["has_tree"] is False
    del y
    assert yoke.load(tmp_path / "file")["x"].tolist() == x.tolist()


def test_closed_tensors_are_refused_by_their_place(tmp_path):
    x = yoke.ones(2)
    x.close()
    with pytest.raises(yoke.ClosedError, match=r"state\['net'\]\[0\]"):
        yoke.save(tmp_path / "file", {"net": [x]})
    assert os.listdir(tmp_path) == []
