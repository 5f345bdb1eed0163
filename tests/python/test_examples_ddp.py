"""The example of data parallel: in three languages, under `yoke run`, and gone on with by each other."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
BUILD = pathlib.Path(os.environ["YOKE_BUILD_DIR"])
PROGRAMS = {"Python": [sys.executable, EXAMPLES / "ddp_fashion.py"], "Lua": [shutil.which("lua5.4") or "lua", EXAMPLES / "ddp_fashion.lua"],
            "C": [BUILD / "examples" / "ddp_fashion"]}
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # slow as well: C alone, and another language once
ENDED = 10  # steps, of two ranks: 300 pictures each, five batches, twice


def run(language, *options, ranks=2):
    command = [BUILD / "bin" / "yoke", "run", "-n", ranks, "--", *PROGRAMS[language], "--threads", 1, "--limit", 600, "--epochs", 2, *options]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def losses(done):
    assert done.returncode == 0, done.stdout + done.stderr
    line, = (line for line in done.stdout.splitlines() if line.startswith("[0] losses: "))
    return [float.fromhex(loss) for loss in line.split()[2:]]


@pytest.fixture(scope="module")
def undisturbed():
    return losses(run("C", "--losses"))


@pytest.mark.parametrize("language", ["Lua"] if SANITIZED else ["Lua", "Python"])
def test_the_languages_give_the_same_losses(undisturbed, language):
    done = run(language, "--losses")
    assert losses(done) == undisturbed and len(undisturbed) == ENDED and undisturbed[-1] < undisturbed[0]
    assert "[1]" not in done.stdout + done.stderr  # only rank 0 prints


def test_each_language_goes_on_with_what_another_one_has_saved(undisturbed, tmp_path):
    languages = ["C"] if SANITIZED else ["C", "Lua", "Python"]
    run(languages[-1], "--save", tmp_path, "--every", 1)
    for language in languages:
        shutil.rmtree(tmp_path / f"step-{ENDED}")
        done = run(language, "--save", tmp_path, "--every", 1, "--losses")
        assert f"{ENDED - 1} of {ENDED} steps are done" in done.stderr and losses(done) == undisturbed


def test_a_run_of_another_number_of_ranks_is_told(tmp_path):
    assert run("C", "--save", tmp_path).returncode == 0
    done = run("C", "--save", tmp_path, ranks=1)
    assert done.returncode == 1 and "was begun with --ranks 2, not with --ranks 1" in done.stderr
