"""Snippets of all pages run and print the text behind the line. documents.py says which, tests/static/check_snippets.py holds the pages to it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cards_of_ranks
import documents
from mpi_ranks import MODULE, OPEN_MPI

sys.path.insert(0, str(documents.ROOT / "tests" / "static"))
import check_snippets  # noqa: E402
import tree  # noqa: E402

SETUPS = documents.ROOT / "tests" / "snippets"
BUILD = Path(os.environ["YOKE_BUILD_DIR"])
LUA = shutil.which("lua5.4")
# Beginning of a script that takes over the names of a setup. The line is the page's title, so no other line moves.
TAKES = {"python": "exec(compile(open({0!r}).read(), {0!r}, 'exec'))", "lua": "dofile({0!r})", "sh": ". {0!r}"}
SUFFIX = {"python": "py", "lua": "lua", "c": "c", "sh": "sh"}


def found():
    """Returns (page, language, options) of all scripts of all pages."""
    pages = [path.relative_to(documents.ROOT).as_posix() for path in tree.files(documents.ROOT, {".md"})]
    return [(page, *script) for page in pages for script in documents.scripts(text(page))]


def text(page):
    return (documents.ROOT / page).read_text(encoding="utf-8")


SCRIPTS = found()
INTERPRETED = [each for each in SCRIPTS if each[1] != "c"]
PROGRAMS_IN_C = [page for page, language, _ in SCRIPTS if language == "c"]


def setup_of(page, language, run):
    """Returns the file that defines names for a script of a page: training.py, or groups.ranks2.py for the mark ranks=2."""
    parts = [Path(page).stem, *run.replace("=", "").split(), SUFFIX[language]]
    return SETUPS / ".".join(parts)


def environment(folder, cards):
    """Returns the variables of a script, without the caller's settings: on the CPU, or on an emulated machine with linked cards."""
    paths = {"PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]), "YOKE_BUILD_DIR": str(BUILD),
             "SETUPS": str(SETUPS), "ROOT": str(documents.ROOT), "YOKE_LEASE_DIR": str(folder / "leases"), "TMPDIR": str(folder)}
    if cards:
        if not cards_of_ranks.IS_BUILT:
            pytest.skip("no emulated CUDA module, no fake NVML or no command was built")
        linked = {"gpu_defaults": {"model": "H100-SXM"}, "nvlink": "all:18"}
        return cards_of_ranks.machine(folder / "machine", cards, own=linked, **paths)
    own = {name: value for name, value in os.environ.items() if not name.startswith("YOKE_")}
    return {**own, "YOKE_DEVICE": "cpu", **paths}


def interpreter(language, commands):
    """Returns the program that runs scripts of a language."""
    if (language == "lua" or "lua5.4" in commands) and LUA is None:
        pytest.skip("lua5.4 is not installed")
    if re.search(r"^yoke ", commands, re.M) and shutil.which("yoke") is None:
        pytest.skip("the command is not built")
    if "fake_nvml" in commands and not cards_of_ranks.NVML.is_file():
        pytest.skip("no fake NVML was built")
    if "check_footprint" in commands and "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sizes are those of libraries without a sanitizer")
    return {"python": [sys.executable], "lua": [LUA], "sh": ["bash", "-eu"]}[language]


def outputs(command, options, folder):
    """Runs a command as the options say. Returns the outputs, one for each rank."""
    variables = environment(folder, options.get("cards"))
    if "ranks" in options:
        if not cards_of_ranks.RUN.is_file():
            pytest.skip("the command is not built")
        command = [cards_of_ranks.RUN, "run", "-n", options["ranks"], "--", *command]
    elif "mpi" in options:
        if not MODULE.is_file() or shutil.which("mpirun") is None:
            pytest.skip("this build has no MPI module, or there is no mpirun")
        command, variables = ["mpirun", "-n", options["mpi"], *command], {**variables, **OPEN_MPI}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, env=variables, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    if "ranks" not in options:
        return [done.stdout]
    fronts = [f"[{rank}] " for rank in range(options["ranks"])]
    return ["".join(line.removeprefix(front) for line in done.stdout.splitlines(True) if line.startswith(front)) for front in fronts]


def holds(script, language, printed):
    """Compares an output with the page, if the page says what is printed. Commands print something in any case."""
    promises = documents.promised(script, language)
    if promises:
        assert list(documents.differences(promises, printed)) == []
    else:
        assert printed or language != "sh"


@pytest.mark.parametrize("page, language, run", INTERPRETED, ids=map(" ".join, INTERPRETED))
def test_snippets_run_and_print_what_they_say(page, language, run, tmp_path):
    script = documents.as_one(text(page), language, run)
    setup = setup_of(page, language, run)
    taking = TAKES[language].format(str(setup)) if setup.exists() else ""
    options = {name: int(number) for name, number in (option.split("=") for option in run.split())}
    path = tmp_path / Path(page).name  # the page's name, so that an error names page and line
    path.write_text(taking + script, encoding="utf-8")
    for printed in outputs([*interpreter(language, script), path], options, tmp_path):
        holds(script, language, printed)


def compiled(program, folder):
    """Compiles a program of C. Returns the path of the program, or None for declarations."""
    (folder / "program.c").write_text(program)
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", documents.ROOT / "capi/include", folder / "program.c"]
    if "main(" not in program:
        outputs([*command, "-fsyntax-only"], {}, folder)
        return None
    libraries = ["-L", BUILD / "lib", "-Wl,--as-needed", "-lyoke", "-ldl", f"-Wl,-rpath,{BUILD / 'lib'}"]
    outputs([*command, "-o", folder / "program", *libraries], {}, folder)
    return folder / "program"


@pytest.mark.parametrize("page", PROGRAMS_IN_C)
def test_programs_in_c_print_what_they_say(page, tmp_path):
    programs = [each.text for each in documents.snippets(text(page)) if each.language == "c" and not each.reason]
    if not any("main(" in program for program in programs):  # a declaration that differs from the header's is an error
        programs = ["#include <yoke/yoke.h>\n" + "".join(programs)]
    for program in programs:
        path = compiled(program, tmp_path)
        if path:
            holds(program, "c", *outputs([path], {}, tmp_path))


def test_every_setup_belongs_to_a_script():
    used = {setup_of(*script) for script in SCRIPTS}
    assert [path.name for path in SETUPS.iterdir() if path not in used and path.name != "train.py"] == []


@pytest.mark.parametrize("page, fault", [
    ("```python\nx\n```\n", None),
    ("<!-- run: ranks=2 cards=2 -->\n```python\nx\n```\n", None),
    ("<!-- not run: needs a card -->\n```sh\n./dev gpu\n```\n", None),
    ("<!-- not run: needs a card -->\n```sh\nls\n```\n", "does not look as if it needs a card"),
    ("<!-- not run: it is late -->\n```sh\nls\n```\n", "is not run for the reason"),
    ("<!-- run: ranks=two -->\n```python\nx\n```\n", "unknown options"),
    ("<!-- run: ranks=2 -->\n\n```python\nx\n```\n", "does not stand in the line before a block"),
    ("<!-- run: ranks=2 -->\n```\nx\n```\n", "has a mark, but no code"),
    ("- item\n\n  ```python\n  x\n  ```\n", "a fence that is indented"),
    ("~~~python\nx\n~~~\n", "a fence that is indented"),
    ("<!-- run: ranks=2 -->\n```c\nx\n```\n", "is in C, which has no options"),
    ("```rust\nx\n```\n", "is in rust, which no test runs"),
    ("<!-- not run: builds the tree -->\n```sh\n./dev fly\n```\n", "./dev fly, which does not exist"),
])
def test_marks_that_are_wrong_are_found(page, fault):
    faults = [words for _, words in check_snippets.faults(page, {"gpu", "build"})]
    assert faults == [] if fault is None else len(faults) == 1 and fault in faults[0], faults


def test_what_is_printed_without_a_word_or_otherwise_is_noticed():
    script = "print(1)   # 1\nprint(2)   # 3\n"
    promises = documents.promised(script, "python")
    assert promises == ["1", "3"]
    assert list(documents.differences(promises, "1\n3\n")) == []
    assert "the document says '3'" in next(documents.differences(promises, "1\n2\n"))
    assert "3 lines were printed" in next(documents.differences(promises, "1\n3\n4\n"))
    assert list(documents.differences(["[1, …]"], "[1, 2]\n")) == []
    assert list(documents.differences(["[1]"], "1\n")) != []
