"""Files of each language load in each other language, equal, and the run goes on there with the same bits: the same run three times."""
import os
import pathlib
import shutil
import subprocess

import pytest

import state_run
import yoke
from stored_files import packed
from test_state_trees import TREES

HERE = pathlib.Path(__file__).parent
LUA = shutil.which("lua5.4") or shutil.which("lua")
C = pathlib.Path(os.environ["YOKE_BUILD_DIR"]) / "tests" / "test_capi_state_run"
PROGRAMS = {"Lua": [LUA, str(HERE.parent / "lua" / "state_run.lua")], "C": [str(C)]}
LANGUAGES = ["Python", *PROGRAMS]

pytestmark = pytest.mark.skipif(not LUA or not C.exists(), reason="there is no Lua, or no program in C")


def run(language, *arguments):
    if language == "Python":
        state_run.main(*map(str, arguments))
        return None
    done = subprocess.run([*PROGRAMS[language], *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def shown(path):
    return "\n".join(state_run.shown(yoke.load(path))) + "\n"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Returns {language: a file of its run after two steps}."""
    folder = tmp_path_factory.mktemp("begun")
    for language in LANGUAGES:
        run(language, "begin", folder / language, 2)
    return {language: folder / language for language in LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_of_each_language_is_the_same_to_all(begun, language):
    wanted = shown(begun["Python"])
    assert "tuple" in wanted and "bfloat16" in wanted and wanted.count("\n") > 80
    assert shown(begun[language]) == wanted
    for reader in PROGRAMS:
        assert run(reader, "show", begun[language]) == wanted, reader


def test_a_run_goes_on_in_any_language_from_any(tmp_path, begun):
    run("Python", "begin", tmp_path / "undisturbed", 4)
    wanted = shown(tmp_path / "undisturbed")
    for one in LANGUAGES:
        for other in LANGUAGES:
            run(other, "go", begun[one], tmp_path / "file", 2)
            assert shown(tmp_path / "file") == wanted, (one, other)


def test_a_run_goes_on_through_all_languages(tmp_path):
    path = tmp_path / "file"
    run("C", "begin", path, 1)
    for language in ("Lua", "Python", "C", "Python", "Lua"):
        run(language, "go", path, path, 1)
    run("Lua", "begin", tmp_path / "undisturbed", 6)
    assert shown(path) == shown(tmp_path / "undisturbed")


@pytest.mark.parametrize("language", PROGRAMS)
def test_what_another_language_saves_again_is_as_it_was(tmp_path, language):
    x = yoke.arange(6).reshape(2, 3)
    value = {**{name: tree for name, tree in TREES.items() if name != "many"}, "x": x, "tied": (x, [x.T]), 3: yoke.ones(2, dtype=yoke.bool)}
    yoke.save(tmp_path / "one", value)
    run(language, "copy", tmp_path / "one", tmp_path / "other")
    assert shown(tmp_path / "other") == shown(tmp_path / "one")
    for plain in (3, "text", [], (), {}, (1,), x, {"a": x, "b": x + 1}, {1: "a", 2: "b"}, None):
        yoke.save(tmp_path / "one", plain)
        run(language, "copy", tmp_path / "one", tmp_path / "other")
        assert shown(tmp_path / "other") == shown(tmp_path / "one")


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_broken_file_is_told_in_each_language(tmp_path, language):
    path = tmp_path / "file"
    for header, data, says in [("[]", b"", "does not begin with '{'"), ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234",
                                "tensor 'x' takes 8 bytes by shape and dtype (data_offsets 0 to 4)"),
                               ({"x": {"dtype": "U16", "shape": [2], "data_offsets": [0, 4]}}, b"1234", "tensor 'x' is U16, a dtype that Yoke does not have")]:
        path.write_bytes(packed(header, data))
        done = subprocess.run([*PROGRAMS[language], "copy", path, tmp_path / "other"], capture_output=True, text=True, timeout=300)
        assert done.returncode != 0 and f"{path}: " in done.stdout + done.stderr and says in done.stdout + done.stderr
    assert os.listdir(tmp_path) == ["file"]
