"""The examples of README.md, taken from its text and run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def example(language):
    """The one fenced block of a language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)
    assert len(blocks) == 1, f"README.md has {len(blocks)} examples in {language}"
    return blocks[0]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_python_example_learns_xor():
    assert "[0, 1, 1, 0] True" in run([sys.executable, "-c", example("python")])


def test_the_lua_example_learns_xor():
    lua = shutil.which("lua5.4")
    if lua is None:
        pytest.skip("lua5.4 is not installed")
    assert "0 1 1 0\ttrue" in run([lua, "-"], input=example("lua"))


def test_the_c_example_compiles_against_the_public_headers(tmp_path):
    (tmp_path / "example.c").write_text(example("c"))
    library = Path(os.environ["YOKE_BUILD_DIR"]) / "lib"
    run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "capi/include", tmp_path / "example.c",
         "-o", tmp_path / "example", "-L", library, "-lyoke", f"-Wl,-rpath,{library}"])
    assert "first of 1000 probabilities" in run([tmp_path / "example"])
