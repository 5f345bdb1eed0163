"""Saved sets of safetensors files: readable by other programs, with the right files on the disk."""
import json
import os
import re
import subprocess
import sys

import numpy
import pytest

import yoke
from sets_of_files import arrays_of, file_bytes, write_set

A = numpy.arange(6, dtype="float32").reshape(2, 3)
STATE = {f"layer.{i}": numpy.arange(1000, dtype="float32") + i for i in range(5)}  # 4,000 bytes each
OURS = re.compile(r"model-([0-9a-f]{8})-(\d{5})-of-(\d{5})\.safetensors")


def tensors_of(arrays):
    return {name: yoke.tensor(array) for name, array in arrays.items()}


def names_in(folder):
    """The index's name, or the file's, and how many files of a set there are, all of one save."""
    names = set(os.listdir(folder))
    shards = [OURS.fullmatch(name) for name in names if OURS.fullmatch(name)]
    assert len({shard[1] for shard in shards}) <= 1 and all(int(shard[3]) == len(shards) for shard in shards)
    assert sorted(int(shard[2]) for shard in shards) == list(range(1, len(shards) + 1))
    return names - {shard[0] for shard in shards}, len(shards)


INDEX = {"model.safetensors.index.json"}


def test_a_set_is_as_others_read_it(tmp_path):
    work = yoke.save(tmp_path / "model.safetensors", tensors_of(STATE), metadata={"who": "me"}, max_shard="8KB")
    assert names_in(tmp_path) == (INDEX, 3)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 20_000, "format": "pt", "who": "me"}
    found = {}
    for file in set(index["weight_map"].values()):
        arrays, metadata = arrays_of(tmp_path / file)
        assert metadata == {"format": "pt"} and sum(array.nbytes for array in arrays.values()) <= 8_000
        assert all(index["weight_map"][name] == file for name in arrays)
        found |= arrays
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in STATE.items()}
    files = [os.path.getsize(tmp_path / name) for name in os.listdir(tmp_path) if OURS.fullmatch(name)]
    assert work.done() and work.progress() == (sum(files), sum(files))


@pytest.mark.parametrize("most, files", [(1, 5), (3_999, 5), (4_000, 5), (7_999, 5), ("8KB", 3), ("8KiB", 3), ("0.012MB", 2),
                                         (19_999, 2), (20_000, 0), ("5GiB", 0), (None, 0)])
def test_a_state_is_cut_where_a_file_would_have_more(most, files, tmp_path):
    yoke.save(tmp_path / "model.safetensors", tensors_of(STATE), max_shard=most)
    assert names_in(tmp_path) == (INDEX if files else {"model.safetensors"}, files)
    assert list(yoke.load(tmp_path / "model.safetensors")) == list(STATE)


def test_a_tree_in_several_files_comes_back(tmp_path):
    shared = yoke.tensor(A)
    state = {"net": tensors_of(STATE), "again": shared, "twice": [shared, (1, 2.0, None)], 3: "three", "nan": float("inf")}
    for blocking in (True, False):
        yoke.save(tmp_path / "model.safetensors", state, {"k": "v"}, blocking=blocking, max_shard=4_000).wait()
        assert names_in(tmp_path) == (INDEX, 6)
        for mmap in (True, False):
            found = yoke.load(tmp_path, mmap=mmap)
            assert list(found) == ["net", "again", "twice", 3, "nan"] and found[3] == "three" and found["nan"] == float("inf")
            assert found["twice"][1] == (1, 2.0, None) and found["again"] is found["twice"][0]
            assert all((found["net"][name].numpy() == array).all() for name, array in STATE.items())
    info = yoke.load_info(tmp_path)
    assert info["has_tree"] and info["metadata"] == {"k": "v"} and len(info["files"]) == 6


def test_a_loaded_set_is_saved_where_it_came_from(tmp_path):
    path = tmp_path / "model.safetensors"
    yoke.save(path, tensors_of(STATE), max_shard=8_000)
    loaded = yoke.load(path)  # pages of files that are removed now
    for most in (4_000, 12_000, None, 8_000):
        yoke.save(path, loaded, max_shard=most)
        assert all((yoke.load(path)[name].numpy() == array).all() for name, array in STATE.items())
        assert len(os.listdir(tmp_path)) == {4_000: 6, 12_000: 3, None: 1, 8_000: 4}[most]
    assert all((loaded[name].numpy() == array).all() for name, array in STATE.items())


@pytest.mark.parametrize("copy_name", ["best.index.json", "best.json", "model.safetensors.index.json.old", "idx.bak", "A.JSON"])
def test_sets_of_others_in_the_folder_are_left_alone(copy_name, tmp_path):
    index = write_set(tmp_path, [{"a": A}, {"b": A}])  # at the place of the next save
    theirs = set(os.listdir(tmp_path)) - INDEX
    kept = {"model-0123abcd-00001-of-00001.bin", "model-0123abcd.safetensors", "other-0123abcd-00001-of-00002.safetensors",
            "model-0123ABCD-00001-of-00002.safetensors", "model-x-0123abcd-00001-of-00002.safetensors"}
    for name in kept:
        (tmp_path / name).write_bytes(file_bytes({"x": A}))
    yoke.save(tmp_path / "model.safetensors", tensors_of(STATE), max_shard=8_000)
    names, shards = names_in(tmp_path)
    assert names == INDEX | theirs | kept and shards == 3
    copy = tmp_path / copy_name
    copy.write_bytes(open(index, "rb").read())  # the copy names the saved files too, so the files stay
    before = {name for name in os.listdir(tmp_path) if OURS.fullmatch(name)}
    yoke.save(tmp_path / "model.safetensors", tensors_of(STATE), max_shard=12_000)
    assert before < set(os.listdir(tmp_path)) and list(yoke.load(copy)) == list(STATE)
    os.remove(copy)
    yoke.save(tmp_path / "model.safetensors", tensors_of(STATE), max_shard=12_000)
    assert names_in(tmp_path) == (INDEX | theirs | kept, 2)


def test_the_set_of_another_program_outlives_a_file_in_its_place(tmp_path):
    index = write_set(tmp_path, [{"a": A}, {"b": A}])
    yoke.save(tmp_path / "model.safetensors", tensors_of(STATE))
    assert list(yoke.load(tmp_path / "model.safetensors")) == list(STATE) and list(yoke.load(tmp_path)) == list(STATE)
    assert list(yoke.load(index)) == ["a", "b"]


def test_what_a_killed_save_left_goes_with_the_next(tmp_path):
    dead = 2 ** 22 - 1  # more than most systems number
    for most in (8_000, None):
        (tmp_path / "model-0123abcd-00001-of-00002.safetensors").write_bytes(b"part")
        (tmp_path / f".model.safetensors.index.json.yoke-{dead}-0123abcd00000000.tmp").write_bytes(b"")
        (tmp_path / "model-4567cdef-00001-of-00002.safetensors").write_bytes(b"part")
        (tmp_path / f".model.safetensors.index.json.yoke-{os.getppid()}-4567cdef00000000.tmp").write_bytes(b"")
        yoke.save(tmp_path / "model.safetensors", tensors_of(STATE), max_shard=most)
        names = set(os.listdir(tmp_path))
        assert "model-0123abcd-00001-of-00002.safetensors" not in names and not any(str(dead) in name for name in names)
        assert "model-4567cdef-00001-of-00002.safetensors" in names, "its writer lives"


def test_permissions_are_those_of_what_was_there(tmp_path):
    path = tmp_path / "model.safetensors"
    yoke.save(path, tensors_of(STATE))
    os.chmod(path, 0o640)
    for most in (8_000, 4_000):
        yoke.save(path, tensors_of(STATE), max_shard=most)
        assert {os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)} == {0o640}


def test_behind_a_link_it_is_what_the_link_names(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    link = tmp_path / "here" / "link"
    os.symlink("../there/model.safetensors", link)
    for most in (8_000, None, 4_000):
        yoke.save(link, tensors_of(STATE), max_shard=most)
        assert os.listdir(tmp_path / "here") == ["link"] and list(yoke.load(link)) == list(STATE)
        assert names_in(tmp_path / "there") == ((INDEX, {8_000: 3, 4_000: 5}[most]) if most else ({"model.safetensors"}, 0))
    os.rename(link, tmp_path / "here" / "model.safetensors")
    assert list(yoke.load(tmp_path / "here")) == list(STATE)  # the folder with the link


def test_a_set_may_have_more_files_than_a_process_may_open(tmp_path):
    yoke.save(tmp_path / "model.safetensors", {f"x{i}": yoke.full((10,), i) for i in range(300)}, max_shard=1)
    program = f"""
import resource, yoke
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
for mmap in (True, False):
    state = yoke.load({str(tmp_path)!r}, mmap=mmap)
    assert len(state) == 300 and all(state[f"x{{i}}"].tolist() == [i] * 10 for i in range(300))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_without_an_end_has_an_index_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yoke.save("run", tensors_of(STATE), max_shard=10_000)
    assert "run.index.json" in os.listdir() and list(yoke.load("run")) == list(yoke.load(".")) == list(STATE)
    yoke.save("run", tensors_of(STATE))
    assert os.listdir() == ["run"]


def test_names_with_and_without_the_end_have_a_state_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for most in (None, 8_000, 8_000, 4_000, None, None):
        for path in ("run", "run.safetensors"):
            yoke.save(path, {"path": path, **tensors_of(STATE)}, max_shard=most)
        assert [yoke.load(path)["path"] for path in ("run", "run.safetensors")] == ["run", "run.safetensors"]
    yoke.save("run", tensors_of(STATE), max_shard=8_000)
    assert sorted(os.listdir())[-2:] == ["run.index.json", "run.safetensors"] and len(os.listdir()) == 5
    with pytest.raises(yoke.CheckpointError, match="several states, 'run.index.json', 'run.safetensors'"):
        yoke.load(".")


@pytest.mark.parametrize("most", [0, -1, "", "0", "-5GiB", "5XB", "GiB", "nan", "inf", 10 ** 30])
def test_a_size_that_is_none_is_refused(most, tmp_path):
    with pytest.raises(ValueError, match=f"max_shard' is '{most}'.*5GiB"):
        yoke.save(tmp_path / "x", tensors_of(STATE), max_shard=most)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("most", [True, 5.0, b"5", [5]])
def test_a_size_of_another_type_is_refused(most, tmp_path):
    with pytest.raises(TypeError, match="max_shard"):
        yoke.save(tmp_path / "x", tensors_of(STATE), max_shard=most)


def test_the_path_of_an_index_is_refused(tmp_path):
    for name in ("model.safetensors", "model"):
        with pytest.raises(ValueError, match=f"a set's index.*{name}'"):
            yoke.save(tmp_path / f"{name}.index.json", tensors_of(STATE))
    (tmp_path / "folder").mkdir()
    with pytest.raises(yoke.IOError, match="folder"):
        yoke.save(tmp_path / "folder", tensors_of(STATE), max_shard=8_000)
    with pytest.raises(yoke.IOError, match="none"):
        yoke.save(tmp_path / "none" / "model.safetensors", tensors_of(STATE), max_shard=8_000)
    assert sorted(os.listdir(tmp_path)) == ["folder"]


def test_a_set_is_loaded_while_another_takes_its_place(tmp_path):
    """A reader finds the former or the new set, never a part, because it looks up the names of the set's files again."""
    path = tmp_path / "model.safetensors"
    yoke.save(path, {name: x for name, x in tensors_of(STATE).items()}, max_shard=8_000)
    script = f"""
import sys, yoke
state = {{f"layer.{{i}}": yoke.full((1000,), float(0)) for i in range(5)}}
for round in range(60):
    for x in state.values(): x.fill_(float(round))
    yoke.save({str(path)!r}, state, max_shard=4_000 + 4_000 * (round % 2) if round % 3 else None)
print("done")
"""
    writer = subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, text=True)
    loads = 0
    while writer.poll() is None or loads == 0:
        found = yoke.load(path)
        assert list(found) == list(STATE)
        if found["layer.0"].numpy()[1] != 1:  # the writer's
            assert len({x.numpy()[0].item() for x in found.values()}) == 1
        loads += 1
    assert writer.communicate()[0] == "done\n" and writer.returncode == 0
    assert yoke.load(path)["layer.4"].numpy()[7] == 59
