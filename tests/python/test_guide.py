"""The pages of the guide: every snippet runs, top to bottom, and prints the text behind the line; every name exists."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import documents
import yoke

DOCS = documents.ROOT / "docs"
PAGES = ("guide.md", "memory.md", "checkpoint.md", "state.md", "embedding.md", "cards.md")


def text(page):
    return (DOCS / page).read_text()


def run(command, **options):
    """Returns the output of a snippet, on the CPU and without the caller's settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("YOKE_") or name == "YOKE_BUILD_DIR"}
    env.update(YOKE_DEVICE="cpu", PATH=os.pathsep.join([os.path.dirname(sys.executable), env["PATH"]]))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def holds(script, language, printed):
    assert list(documents.differences(documents.promised(script, language), printed)) == []


def pages_with(language):
    return [page for page in PAGES if language in documents.languages(text(page))]


@pytest.mark.parametrize("page", pages_with("python"))
def test_the_snippets_in_python_print_what_they_say(page, tmp_path):
    script = documents.as_one(text(page), "python")
    (tmp_path / page).write_text(script)  # under the page's name, so that an error tells page and line
    holds(script, "python", run([sys.executable, tmp_path / page]))


@pytest.mark.parametrize("page", pages_with("lua"))
def test_the_snippets_in_lua_print_what_they_say(page, tmp_path):
    lua = shutil.which("lua5.4")
    if lua is None:
        pytest.skip("lua5.4 is not installed")
    script = documents.as_one(text(page), "lua")
    (tmp_path / page).write_text(script)
    holds(script, "lua", run([lua, tmp_path / page]))


@pytest.mark.parametrize("page", pages_with("c"))
def test_the_programs_in_c_print_what_they_say(page, tmp_path):
    for program in documents.blocks(text(page), "c"):
        (tmp_path / "program.c").write_text(program)
        run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", documents.ROOT / "capi/include", tmp_path / "program.c",
             "-o", tmp_path / "program", "-ldl"])
        holds(program, "c", run([tmp_path / "program"]))


@pytest.mark.parametrize("page", pages_with("sh"))
def test_the_commands_run_and_print_what_they_say(page):
    commands = documents.as_one(text(page), "sh")
    if "lua5.4" in commands and shutil.which("lua5.4") is None:
        pytest.skip("lua5.4 is not installed")
    if re.search(r"^yoke ", commands, re.M) and shutil.which("yoke") is None:
        pytest.skip("the command is not built")
    printed = run(["bash", "-eu"], input=commands)
    promises = documents.promised(commands, "sh")
    if promises:
        holds(commands, "sh", printed)
    else:
        assert printed


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_nothing_that_is_not_run(page):
    assert set(documents.languages(text(page))) <= set(documents.PRINTING), page


def test_what_is_printed_without_a_word_or_otherwise_is_noticed():
    script = "print(1)   # 1\nprint(2)   # 3\n"
    promises = documents.promised(script, "python")
    assert promises == ["1", "3"]
    assert list(documents.differences(promises, "1\n3\n")) == []
    assert "the document says '3'" in next(documents.differences(promises, "1\n2\n"))
    assert "3 lines were printed" in next(documents.differences(promises, "1\n3\n4\n"))
    assert list(documents.differences(["[1, …]"], "[1, 2]\n")) == []
    assert list(documents.differences(["[1]"], "1\n")) != []


def test_functions_of_c_that_a_page_names_exist():
    declared = "".join(path.read_text() for path in (documents.ROOT / "capi/include/yoke").glob("*.h"))
    for page in PAGES:
        for name in set(re.findall(r"`(yoke_\w+)`", text(page))):
            assert re.search(rf"\b{name}\b", declared), f"{page} names {name}"


def test_the_page_of_memory_has_every_function_of_memory():
    table = documents.section(DOCS / "memory.md", "Every function")
    wanted = [name for name in dir(yoke) if re.search(r"mem_|memory|_cach|live_|saved", name) and not name.startswith("_")]
    assert len(wanted) >= 13, wanted
    assert [name for name in wanted if f"`{name}(" not in table] == []
    declared = (documents.ROOT / "capi/include/yoke/memory.h").read_text()
    functions = re.findall(r"YOKE_API \w+ (yoke_\w+)\(", declared)
    assert len(functions) >= 10, functions
    assert [name for name in functions if f"`{name}`" not in table] == []


@pytest.mark.parametrize("page", [DOCS / page for page in PAGES] + [documents.ROOT / "README.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)\)", Path(page).read_text())
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
