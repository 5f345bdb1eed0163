"""The examples: three programs that train the same network, and the demo that compares them."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = {
    "Python": [sys.executable, str(EXAMPLES / "fashion_mnist.py")],
    "Lua": [shutil.which("lua5.4") or "lua", str(EXAMPLES / "fashion_mnist.lua")],
    "C": [os.path.join(os.environ["YOKE_BUILD_DIR"], "examples", "fashion_mnist")],
}
each_language = pytest.mark.parametrize("language", PROGRAMS)


def run(command, *options):
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_three_languages_give_the_same_losses(threads):
    demo = run([sys.executable, str(EXAMPLES / "demo.py")], "--threads", threads, "--limit", "3000", "--epochs", "1",
               "--accuracy", "0.5")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "identical in all three languages" in demo.stdout


def test_the_demo_fails_when_the_accuracy_is_not_reached():
    demo = run([sys.executable, str(EXAMPLES / "demo.py")], "--threads", "1", "--limit", "128", "--epochs", "1")
    assert demo.returncode == 1
    assert "0.87 is expected" in demo.stdout


@each_language
def test_another_seed_gives_other_losses_and_one_seed_the_same(language):
    def losses(seed):
        done = run(PROGRAMS[language], "--threads", "1", "--limit", "512", "--epochs", "1", "--losses", "--seed", seed)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    assert losses("1") == losses("1") != losses("2")


@each_language
@pytest.mark.parametrize("options, said", [
    (["--data", "/no/such/folder"], "apt-get install dataset-fashion-mnist"),
    (["--device", "abacus"], "'abacus'"),
    (["--epochs", "0"], "at least 1"),
    (["--seed", "x"], "--seed"),
    (["--wheels", "4"], "--"),
])
def test_bad_options_are_told_without_a_stack_trace(language, options, said):
    done = run(PROGRAMS[language], "--limit", "1", *options)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr and "stack traceback" not in done.stderr


@each_language
def test_a_damaged_file_is_named(language, tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip file")
    done = run(PROGRAMS[language], "--data", str(tmp_path))
    assert done.returncode == 1
    assert "train-images-idx3-ubyte.gz" in done.stderr
