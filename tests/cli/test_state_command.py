"""The command `yoke state`: files, sets and checkpoints, whole and damaged."""
import json
import os
import sys

import numpy
import pytest

import yoke as package
from test_command import ROOT, pytestmark, yoke  # noqa: F401

sys.path.insert(0, str(ROOT / "tests" / "python"))
from sets_of_files import file_bytes, write_cache, write_set  # noqa: E402

A, B = numpy.arange(6, dtype="float32").reshape(2, 3), numpy.arange(3, dtype="int16")


def told(path, *options):
    done = yoke("state", path, "--json", *options)
    assert done.stderr == "", done
    return json.loads(done.stdout), done.returncode


def test_a_file(tmp_path):
    path = tmp_path / "one.safetensors"
    path.write_bytes(file_bytes({"a": A, "odd": B, "b": A[0]}, {"who": "me", "format": "pt"}))
    info, code = told(path)
    assert code == 0 and info["totals"] == {"I16": {"tensors": 1, "bytes": 6}, "float32": {"tensors": 2, "bytes": 36}}
    assert {key: value for key, value in info.items() if key not in ("totals", "whole", "verified", "problem")} == \
        package.load_info(path)
    assert info["whole"] is True and info["verified"] is False and info["problem"] is None
    shown = yoke("state", path).stdout
    for part in (str(path), "who = me", "a ", "float32", "2 x 3", "I16", "24", f"{path.stat().st_size} bytes"):
        assert part in shown, (part, shown)
    verified, code = told(path, "--verify")  # an unsupported dtype is no damage
    assert code == 0 and verified["verified"] is True
    assert "whole" in yoke("state", path, "--verify").stdout


def test_a_set_by_index_folder_and_place(tmp_path):
    index = write_set(tmp_path, [{"a": A}, {"b": A}])
    for path in (index, tmp_path, tmp_path / "model.safetensors"):
        info, code = told(path, "--verify")
        assert code == 0 and info["kind"] == "set" and len(info["files"]) == 2 and info["tensors"]["b"]["file"].endswith("2.safetensors")
    assert "a set of 2 files" in yoke("state", tmp_path).stdout and "model-00002-of" in yoke("state", tmp_path, columns=120).stdout


def test_a_cache_of_links_is_read_to_its_end(tmp_path):
    assert told(write_cache(tmp_path, [{"a": A}, {"b": A}]), "--verify")[1] == 0
    (tmp_path / "there").mkdir()
    index = write_set(tmp_path / "there", [{"a": A}, {"b": A}])
    os.symlink(index, tmp_path / "index")
    assert told(tmp_path / "index", "--verify")[1] == 0


@pytest.mark.parametrize("options", [[], ["--verify"]])
def test_what_is_damaged_is_named_and_exits_with_1(options, tmp_path):
    write_set(tmp_path, [{"a": A}, {"b": A}])
    second = tmp_path / "model-00002-of-00002.safetensors"
    os.truncate(second, second.stat().st_size - 1)
    info, code = told(tmp_path, *options)
    assert code == 1 and info["whole"] is False and second.name in info["problem"]
    shown = yoke("state", tmp_path, *options)
    assert shown.returncode == 1 and "damaged" in shown.stdout and second.name in shown.stdout
    os.remove(second)
    assert second.name in told(tmp_path, *options)[0]["problem"]


def test_a_tree_that_is_damaged_is_found_by_reading_it(tmp_path):
    path = tmp_path / "tree.safetensors"
    path.write_bytes(file_bytes({"a": A}, {"yoke.tree": '{"a": {"$tensor": "none"}}', "yoke.format": "1"}))
    assert told(path)[1] == 0
    info, code = told(path, "--verify")
    assert code == 1 and "'none'" in info["problem"] and info["tensors"]["a"]["shape"] == [2, 3]
    assert "damaged" in yoke("state", path, "--verify").stdout


def test_checkpoints(tmp_path):
    folder = tmp_path / "run"
    manager = package.CheckpointManager(folder, keep=5)
    for step in (2, 10, 1):
        manager.save(step, {"x": package.ones((100,)), "n": step}, blocking=True)
    info, code = told(folder, "--verify")
    assert code == 0 and info["kind"] == "checkpoints" and info["latest"] == 1 and info["whole"] is True
    assert [(step["step"], step["commit"], step["tensors"], step["whole"]) for step in info["steps"]] == \
        [(1, 3, 1, True), (2, 1, 1, True), (10, 2, 1, True)]
    shown = yoke("state", folder).stdout
    assert "3 checkpoints, the newest is 1" in shown and "whole by its sizes" in shown
    assert "whole, and its hashes match" in yoke("state", folder, "--verify").stdout
    assert told(folder / "step-10")[0]["kind"] == "file"

    content = bytearray((folder / "step-2" / "state.safetensors").read_bytes())
    content[-1] ^= 1  # visible only in the hash
    (folder / "step-2" / "state.safetensors").write_bytes(content)
    os.remove(folder / "step-10" / "MANIFEST.json")
    info, code = told(folder)
    assert code == 1 and [step["whole"] for step in info["steps"]] == [True, True, False]
    info, code = told(folder, "--verify")
    assert code == 1 and [step["whole"] for step in info["steps"]] == [True, False, False]
    assert "hash" in info["steps"][1]["problem"] and "MANIFEST.json" in info["steps"][2]["problem"]
    shown = yoke("state", folder, "--verify")
    assert shown.returncode == 1 and shown.stdout.count("damaged") >= 2 and "step 2:" in shown.stdout


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    manager = package.CheckpointManager(folder, keep=5)
    for step in (1, 2):
        manager.save(step, {"x": package.ones((100,)), "n": step}, blocking=True)
    return folder


def change_a_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # visible only in the hash
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["step-2", "step-2/", "step-2/state.safetensors"])
def test_a_step_is_compared_with_its_manifest(run, name):
    info, code = told(run / name, "--verify")
    assert code == 0 and (info["step"], info["commit"], info["kind"]) == (2, 2, "file") and info["time"].endswith("Z")
    assert "whole: headers, sizes and all bytes were read, and the hashes of its manifest match" in yoke("state", run / name, "--verify").stdout
    change_a_byte(run / "step-2" / "state.safetensors")
    assert told(run / name)[1] == 0
    info, code = told(run / name, "--verify")
    assert code == 1 and "its manifest says" in info["problem"]
    assert told(run / "step-1", "--verify")[1] == 0
    (run / "step-2" / "MANIFEST.json").write_text("{}")
    assert told(run / name)[1] == 1


def test_a_step_of_another_size_than_its_manifest_says_is_damaged(run):
    package.save(run / "step-2" / "state.safetensors", {"x": package.ones((50,))})
    info, code = told(run / "step-2")
    assert code == 1 and "its manifest says" in info["problem"]


def test_a_step_is_found_from_within_and_behind_a_link(run, monkeypatch, tmp_path):
    change_a_byte(run / "step-2" / "state.safetensors")
    (tmp_path / "best").symlink_to(run / "step-2")
    monkeypatch.chdir(run / "step-2")
    for path in (".", "state.safetensors", tmp_path / "best"):
        assert told(path, "--verify")[1] == 1, path


def test_a_folder_that_no_manager_wrote_is_no_damage(run):
    (run / "step-9").mkdir()
    (run / "step-9" / "notes.txt").write_text("mine")
    info, code = told(run, "--verify")
    assert code == 0 and info["whole"] is True and info["latest"] == 2
    assert [step["whole"] for step in info["steps"]] == [True, True, None]
    shown = yoke("state", run)
    assert shown.returncode == 0 and "2 checkpoints, the newest is 2" in shown.stdout and "foreign" in shown.stdout and "step 9: no CheckpointManager wrote this folder" in shown.stdout


@pytest.mark.parametrize("options", [[], ["--verify"], ["--json"]])
def test_what_is_no_state_exits_with_2_and_says_what_it_is(run, options):
    def refused(path, *words):
        done = yoke("state", path, *options)
        assert done.returncode == 2 and done.stdout == "", done
        assert all(word in done.stderr for word in words), done.stderr

    (run / "empty").mkdir()
    refused(run / "empty", "found: nothing")
    (run / "empty" / "step-1").mkdir()
    refused(run / "empty", "step-1")
    (run / "text").write_text("root:x:0:0:root:/root:/bin/bash\n")
    refused(run / "text", "the file is not a safetensors file")
    (run / "other.json").write_text('{"a": 1}')
    refused(run / "other.json", "no 'weight_map'")
    refused(run / "step-1" / "MANIFEST.json", "the manifest of a CheckpointManager", "name its folder")
    for name in "ab":
        package.save(run / "empty" / f"{name}.safetensors", {})
    refused(run / "empty", "has several states")


def test_it_changes_nothing(tmp_path):
    package.CheckpointManager(tmp_path, keep=1).save(0, {"x": package.ones((3,))}, blocking=True)
    def all_of():
        return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in tmp_path.rglob("*")}
    before = all_of()
    assert told(tmp_path, "--verify")[1] == 0 and all_of() == before


def test_what_cannot_be_read_exits_with_2(tmp_path):
    for arguments in ([], [""], [tmp_path / "none"], [tmp_path / "none", "--json"], [tmp_path, "--fast"], [tmp_path, tmp_path]):
        done = yoke("state", *arguments)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.strip(), (arguments, done)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert yoke("state", pipe).returncode == 2


def test_names_move_no_cursor(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(file_bytes({"a\x1b[2J\n": A}, {"k\r": "v\x07"}))
    shown = yoke("state", path).stdout
    assert "a?[2J?" in shown and "k? = v?" in shown and not any(c in shown for c in "\x1b\r\x07")
    assert "a\x1b[2J\n" in told(path)[0]["tensors"]


def test_many_tensors_take_no_long_time_each(tmp_path):
    """The time of a look-up of each key by all others would be minutes."""
    path = tmp_path / "many.safetensors"
    path.write_bytes(file_bytes({f"layer.{i}.weight": A[0, :1] for i in range(40_000)}))
    assert len(told(path)[0]["tensors"]) == 40_000

