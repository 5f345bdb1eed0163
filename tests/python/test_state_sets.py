"""Sets of safetensors files by other writers: loaded sets, and refused sets."""
import json
import os
import subprocess
import sys

import numpy
import pytest

import yoke
from sets_of_files import file_bytes, write_cache, write_set

A = numpy.arange(6, dtype="float32").reshape(2, 3)
B = numpy.array([1.5, -2.0], dtype="float64")
C = numpy.arange(5, dtype="int64")
SHARDS = [{"net.a": A, "net.b": B}, {"c": C}]
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def assert_whole(state):
    assert {name: x.numpy().tolist() for name, x in state.items()} == {"net.a": A.tolist(), "net.b": B.tolist(),
                                                                      "c": C.tolist()}


def write_json(folder, content):
    path = os.path.join(folder, "model.safetensors.index.json")
    with open(path, "w") as out:
        out.write(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_set_is_found_by_index_folder_and_the_file_it_stands_for(tmp_path, monkeypatch):
    index = write_set(tmp_path, SHARDS)
    for path in (index, tmp_path, f"{tmp_path}/", tmp_path / "model.safetensors"):
        assert_whole(yoke.load(path))
        assert yoke.load_info(path)["kind"] == "set" and yoke.load_info(path)["path"] == index
    monkeypatch.chdir(tmp_path)
    for path in (".", "model.safetensors", "model.safetensors.index.json"):
        assert_whole(yoke.load(path))


def test_an_index_is_told_by_its_content(tmp_path):
    index = write_set(tmp_path, SHARDS)
    os.rename(index, tmp_path / "anything")
    assert_whole(yoke.load(tmp_path / "anything"))
    (tmp_path / "x.index.json").write_bytes(file_bytes({"x": A}))
    assert list(yoke.load(tmp_path / "x.index.json")) == ["x"]


def test_every_option_of_load_holds_for_a_set(tmp_path):
    index = write_set(tmp_path, SHARDS)
    assert_whole(yoke.load(index, mmap=False))
    half = yoke.load(index, dtype=yoke.float16)
    assert half["net.a"].dtype == yoke.float16 and half["net.b"].dtype == yoke.float16 and half["c"].dtype == yoke.int64
    assert list(yoke.load(index, names="net.")) == ["net.a", "net.b"]
    assert list(yoke.load(index, names=lambda name: name in ("c", "net.a"))) == ["net.a", "c"]
    assert_whole(yoke.load(index, device=yoke.current_device()))
    loaded = yoke.load(index)
    before = (tmp_path / FIRST).read_bytes()
    loaded["net.a"].fill_(7)
    assert (tmp_path / FIRST).read_bytes() == before, "a mapped tensor is private once it is written"


def test_the_info_of_a_set(tmp_path):
    index = write_set(tmp_path, SHARDS, metadata={"who": "me", "count": 3, "more": {"deep": [1]}})
    info = yoke.load_info(tmp_path)
    assert info["path"] == index and info["kind"] == "set" and info["metadata"] == {"who": "me"}
    assert not info["has_tree"]
    assert info["files"] == {name: os.path.getsize(tmp_path / name) for name in (FIRST, SECOND)}
    assert info["bytes"] == sum(info["files"].values()) + os.path.getsize(index)
    b = info["tensors"]["net.b"]
    assert (b["dtype"], b["shape"], b["bytes"], b["file"]) == ("float64", [2], 16, FIRST)
    assert (tmp_path / FIRST).read_bytes()[b["offset"]:][:16] == B.tobytes()


def test_a_dtype_that_yoke_lacks_is_listed_and_refused_by_tensor(tmp_path):
    write_set(tmp_path, [{"a": A}, {"odd": numpy.arange(3, dtype="int16")}])
    assert yoke.load_info(tmp_path)["tensors"]["odd"]["dtype"] == "I16"
    assert list(yoke.load(tmp_path, names="a")) == ["a"]
    with pytest.raises(yoke.CheckpointError, match=f"{SECOND}.*tensor 'odd' is I16"):
        yoke.load(tmp_path)


def test_a_cache_of_links_loads(tmp_path):
    snapshot = write_cache(tmp_path, SHARDS)
    for path in (snapshot, f"{snapshot}/model.safetensors", f"{snapshot}/model.safetensors.index.json"):
        assert_whole(yoke.load(path))
    os.symlink(snapshot, tmp_path / "latest")
    assert_whole(yoke.load(tmp_path / "latest"))


def test_an_index_that_is_a_link_finds_the_files_beside_what_it_names(tmp_path):
    index = write_set(tmp_path / "there", SHARDS)
    (tmp_path / "here").mkdir()
    os.symlink(index, tmp_path / "here" / "model.safetensors.index.json")
    assert_whole(yoke.load(tmp_path / "here"))
    os.symlink("../there/model.safetensors", tmp_path / "here" / "link")
    assert_whole(yoke.load(tmp_path / "here" / "link"))


def test_a_file_that_no_entry_names_is_not_part_of_the_set(tmp_path):
    write_set(tmp_path, [{"a": A, "extra": B}, {"c": C}], index=lambda content: content["weight_map"].pop("extra"))
    assert list(yoke.load(tmp_path)) == ["a", "c"]
    assert list(yoke.load_info(tmp_path)["tensors"]) == ["a", "c"]


def test_a_backslash_is_a_character(tmp_path):
    (tmp_path / "a\\..\\b").write_bytes(file_bytes({"a": A}))
    index = write_json(tmp_path, {"weight_map": {"a": "a\\..\\b"}})
    assert yoke.load(index)["a"].shape == (2, 3)


def test_files_below_the_folder_belong_to_it(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "..one").write_bytes(file_bytes({"a": A}))
    assert yoke.load(write_json(tmp_path, {"weight_map": {"a": "parts/..one"}}))["a"].shape == (2, 3)


def refused(path, *parts):
    with pytest.raises(yoke.CheckpointError) as error:
        yoke.load(path)
    text = str(error.value)
    assert all(str(part) in text for part in parts), text
    with pytest.raises(yoke.CheckpointError):
        yoke.load_info(path)


def test_a_missing_file_is_named(tmp_path):
    index = write_set(tmp_path, SHARDS)
    os.remove(tmp_path / SECOND)
    refused(tmp_path, index, SECOND, "tensor 'c'", "missing")


def test_a_file_that_lacks_a_tensor_is_named(tmp_path):
    def swap(content):
        content["weight_map"]["net.b"] = SECOND
    index = write_set(tmp_path, SHARDS, index=swap)
    refused(tmp_path, index, "tensor 'net.b'", f"in '{SECOND}', but is not there; the tensor is in {FIRST}")

    def add(content):
        content["weight_map"]["none"] = FIRST
    refused(write_set(tmp_path, SHARDS, index=add), "tensor 'none'", f"in '{FIRST}', but is not there")


def test_a_tensor_in_two_files_is_refused(tmp_path):
    write_set(tmp_path, [{"a": A, "b": B}, {"c": C, "b": B}])
    refused(tmp_path, "tensor 'b'", FIRST, SECOND)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../../x", "/etc/passwd", "a/..", "x\0y"])
def test_names_that_lead_out_are_refused(name, tmp_path):
    (tmp_path / "x").write_bytes(file_bytes({"a": A}))
    (tmp_path / "in").mkdir()
    refused(write_json(tmp_path / "in", {"weight_map": {"a": name}}), "model.safetensors.index.json", "tensor 'a'")


def test_a_link_that_leads_out_is_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(file_bytes({"a": A}))
    folder = tmp_path / "in"
    folder.mkdir()
    os.symlink("../outside", folder / "one")
    refused(write_json(folder, {"weight_map": {"a": "one"}}), "'one'", "tensor 'a'", outside)
    os.symlink("..", folder / "up")
    refused(write_json(folder, {"weight_map": {"a": "up/outside"}}), "'up/outside'", outside)
    (tmp_path / "in-beside").mkdir()  # its name begins with the folder's name
    (tmp_path / "in-beside" / "one").write_bytes(file_bytes({"a": A}))
    os.remove(folder / "one")
    os.symlink("../in-beside/one", folder / "one")
    refused(write_json(folder, {"weight_map": {"a": "one"}}), "in-beside/one")


def test_a_damaged_file_of_a_set_is_named(tmp_path):
    write_set(tmp_path, SHARDS)
    content = (tmp_path / SECOND).read_bytes()
    (tmp_path / SECOND).write_bytes(content[:-1])
    refused(tmp_path, SECOND, "bytes")


@pytest.mark.parametrize("text", ["{", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "b"}',
                                  '{"metadata": [], "weight_map": {}}', '{"weight_map": {"a": "b", "a": "b"}}'])
def test_an_index_that_is_broken_is_refused(text, tmp_path):
    index = write_json(tmp_path, text)
    refused(index, index)
    refused(tmp_path, index)


def test_an_index_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    index = write_json(tmp_path, '{"weight_map": {')
    os.truncate(index, 1 << 40)
    refused(index, "at most 100000000 bytes", 1 << 40)


def test_what_the_system_refuses_is_an_io_error(tmp_path):
    (tmp_path / "one").mkdir()
    with pytest.raises(yoke.IOError, match="one"):
        yoke.load(write_json(tmp_path, {"weight_map": {"a": "one"}}))
    os.symlink("loop", tmp_path / "loop")
    with pytest.raises(yoke.IOError, match="loop"):
        yoke.load(write_json(tmp_path, {"weight_map": {"a": "loop"}}))
    with pytest.raises(yoke.IOError, match="none"):
        yoke.load(tmp_path / "none")
    with pytest.raises(yoke.IOError, match="none"):
        yoke.load(tmp_path / "none" / "model.safetensors")


# ---- Folders --------------------------------------------------------------------------------------------------------

def test_a_folder_with_one_file_is_that_file(tmp_path):
    (tmp_path / "weights.safetensors").write_bytes(file_bytes({"a": A}))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / ".hidden.safetensors").write_bytes(b"")
    assert list(yoke.load(tmp_path)) == ["a"]
    assert yoke.load_info(tmp_path)["kind"] == "file"


def test_the_index_of_another_program_is_passed_over(tmp_path):
    write_set(tmp_path, SHARDS)
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "pytorch_model.bin"}}')
    assert_whole(yoke.load(tmp_path))


def test_files_that_the_index_names_are_no_states_of_their_own(tmp_path):
    (tmp_path / "left.safetensors").write_bytes(file_bytes({"a": A}))
    (tmp_path / "right.safetensors").write_bytes(file_bytes({"b": B}))
    write_json(tmp_path, {"weight_map": {"a": "left.safetensors", "b": "right.safetensors"}})
    assert list(yoke.load(tmp_path)) == ["a", "b"]


def test_a_folder_that_is_ambiguous_lists_what_it_holds(tmp_path):
    refused(tmp_path, tmp_path, "found: nothing")
    (tmp_path / FIRST).write_bytes(file_bytes({"a": A}))
    refused(tmp_path, tmp_path, f"found: '{FIRST}'")
    (tmp_path / "one.safetensors").write_bytes(file_bytes({"a": A}))
    (tmp_path / "two.safetensors").write_bytes(file_bytes({"a": A}))
    refused(tmp_path, "'one.safetensors', 'two.safetensors'")
    os.remove(tmp_path / "two.safetensors")
    assert list(yoke.load(tmp_path)) == ["a"]
    write_set(tmp_path, SHARDS)
    refused(tmp_path, "'model.safetensors.index.json', 'one.safetensors'")


def test_a_file_comes_before_the_set_that_stands_for_it(tmp_path):
    write_set(tmp_path, SHARDS)
    (tmp_path / "model.safetensors").write_bytes(file_bytes({"a": A}))
    for path in (tmp_path, tmp_path / "model.safetensors"):
        assert list(yoke.load(path)) == ["a"]


# ---- Memory ---------------------------------------------------------------------------------------------------------

@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer keeps freed memory")
def test_an_index_of_many_names_takes_little_memory(tmp_path):
    """Takes at most 8 times its size and 1 MiB, beside the tensors: here there are no tensors."""
    one = tmp_path / "x"
    one.write_bytes(file_bytes({}))
    for place in (lambda i: f'"{i:x}":""', lambda i: f'"{i:x}":"{i:x}"', lambda i: f'"{i:x}":"x"'):
        index = write_json(tmp_path, '{"weight_map":{' + ",".join(map(place, range(400_000))) + "}}")
        script = f"""
import re, yoke
def at(line): return int(re.search(line + r":\\s*(\\d+) kB", open("/proc/self/status").read())[1]) << 10
try: yoke.load_info({str(one)!r}), yoke.load_info({str(one)!r} + "/none")
except IOError: pass
open("/proc/self/clear_refs", "w").write("5")
before = at("VmRSS")
try: yoke.load_info({index!r})
except yoke.CheckpointError: print(at("VmHWM") - before)
"""
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) <= 8 * os.path.getsize(index) + (1 << 20), (int(done.stdout), os.path.getsize(index))
