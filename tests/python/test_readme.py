"""Runs the examples of README.md, taken from its text. `./dev soak install` runs the section "Install" of docs/building.md."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import documents

ROOT = documents.ROOT
README = ROOT / "README.md"
BUILDING = ROOT / "docs/building.md"
LINE = "y = 2.00 x + 1.00\n"


def example(language):
    """Returns the only fenced block of a language."""
    blocks = documents.blocks(README.read_text(), language)
    assert len(blocks) == 1, f"README.md has {len(blocks)} examples in {language}"
    return blocks[0]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_python_example_finds_the_line():
    assert run([sys.executable, "-c", example("python")]) == LINE


def test_the_lua_example_finds_the_line():
    lua = shutil.which("lua5.4")
    if lua is None:
        pytest.skip("lua5.4 is not installed")
    assert run([lua, "-"], input=example("lua")) == LINE


def test_the_c_example_compiles_against_the_public_headers(tmp_path):
    (tmp_path / "example.c").write_text(example("c"))
    library = Path(os.environ["YOKE_BUILD_DIR"]) / "lib"
    run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "capi/include", tmp_path / "example.c",
         "-o", tmp_path / "example", "-L", library, "-lyoke", f"-Wl,-rpath,{library}"])
    assert run([tmp_path / "example"]) == LINE


def test_the_packages_to_install_are_those_that_dev_installs():
    installing = documents.blocks(documents.section(BUILDING, "Install"), "sh")[0]
    named = set(re.sub(r"^sudo apt-get install -y|\\\n", " ", installing).split())
    dev = re.search(r"^readonly packages=\((.*?)\)", (ROOT / "dev").read_text(), re.S | re.M)[1].split()
    assert len(named) > 10 and named - {*dev} == {"luarocks"}


def test_the_rockspec_has_every_file_of_the_lua_module():
    rockspec = (ROOT / "yoke-0.1.0-1.rockspec").read_text()
    files = [path.relative_to(ROOT) for pattern in ("src/*.c", "yoke/**/*.lua") for path in (ROOT / "bindings/lua").glob(pattern)]
    editors = {"meta.lua"} | {path.name for path in files if path.name.startswith("api")}  # for editors alone
    wanted = [str(path) for path in files if path.name not in editors]
    assert len(wanted) > 30, wanted
    assert [path for path in wanted if f'"{path}"' not in rockspec] == []


def test_uses_of_dev_that_readme_names_exist():
    commands = set(re.findall(r"\./dev ([a-z]+)", README.read_text()))
    known = set(re.findall(r"^cmd_([a-z]+)\(\)", (ROOT / "dev").read_text(), re.M))
    assert len(commands) > 5 and commands <= known
