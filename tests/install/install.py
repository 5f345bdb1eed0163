"""Installs Yoke by the section "Install" of docs/building.md, and runs README's examples on the installation: `install.py HOME`.

HOME is made anew. The commands are unchanged and run in a single shell. The shell's home is HOME, and its environment has no
build of this tree: a fresh virtual environment, a prefix, LuaRocks' tree. The command that installs packages is left out. Then a
CMake project finds the prefix, and the section's last commands must leave no files.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import documents  # noqa: E402

README, BUILDING = ROOT / "README.md", ROOT / "docs/building.md"
# Example of each language: the file expected by the section, and the output.
EXAMPLES = {
    "python": ("line.py", "y = 2.00 x + 1.00"),
    "lua": ("line.lua", "y = 2.00 x + 1.00"),
    "c": ("line.c", "y = 2.00 x + 1.00"),
}
FROM = {  # yoke for scripts and shells
    "venv/": "venv/bin/python -c 'import yoke; print(yoke.__file__)'",
    "venv/bin/yoke": "PATH=\"$HOME/venv/bin:$PATH\" command -v yoke",
    "venv/bin/yoke-probe": "PATH=\"$HOME/venv/bin:$PATH\" command -v yoke-probe",
    ".luarocks/": """eval "$(luarocks --lua-version 5.4 path)" && lua5.4 -e 'print((package.searchpath("yoke.core", package.cpath)))'""",
}


def environment(home):
    """Returns the caller's environment without paths to a build of this tree. Caches stay, so that a second run costs less."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("LUA_", "PYTHON", "LD_", "YOKE_", "VIRTUAL_ENV", "PKG_CONFIG", "CMAKE_"))}
    path = [folder for folder in env["PATH"].split(os.pathsep) if not folder.startswith(str(ROOT))]
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return env | {"HOME": str(home), "PATH": os.pathsep.join(path), "XDG_CACHE_HOME": cache}


def shell(commands, env, folder=ROOT):
    """Runs commands and returns their output, which is also shown at once. The first failing command ends the script."""
    print(f"-- {commands.strip()}", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(["bash", "-eu", "-o", "pipefail", "-c", commands], env=env, cwd=folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    if process.wait():
        sys.exit(f"the commands above ended with status {process.returncode}")
    print(f"-- took {time.monotonic() - start:.0f} s", flush=True)
    return "".join(lines)


def build_with_cmake(home, env, listfile):
    """Builds the example in C, as a CMake project that finds the prefix."""
    project = home / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(listfile)
    shutil.copy(home / "line.c", project)
    return shell("cmake -S . -B out -DCMAKE_PREFIX_PATH=\"$HOME/.local\" && cmake --build out && out/line", env, project)


def left_behind(home):
    """Yields files of Yoke's that an uninstall forgot."""
    for folder in (home / "venv", home / ".local", home / ".luarocks"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and re.search("yoke", str(path.relative_to(home)), re.I):
                yield path
    yield from (ROOT / "bindings").rglob("*.o")
    yield from (ROOT / "yoke").rglob("*")


def main(home):
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    env = environment(home)
    text, section = README.read_text(), documents.section(BUILDING, "Install")
    for language, (name, _) in EXAMPLES.items():
        (home / name).write_text("".join(documents.blocks(text, language)))
    packages, *commands, uninstall = documents.blocks(section, "sh")
    assert packages.startswith("sudo apt-get"), "the section's first commands install packages"
    # All commands share a shell, because a command may need an earlier command's settings. The page shows them
    # separately.
    printed = shell("\n".join(commands), env)
    answer = EXAMPLES["c"][1]
    wrong = [] if printed.count(answer) == len(EXAMPLES) else [f"not every example printed {answer!r}"]
    for folder, command in FROM.items():
        where = shell(command, env, home).strip()
        if not where.startswith(str(home / folder)):
            wrong.append(f"a yoke was found in {where}, not in {home / folder}")
    for program in ("yoke", "yoke-probe"):  # must use the environment's libyoke
        loaded = shell(f"ldd venv/bin/{program} | grep libyoke", env, home)
        if "/site-packages/yoke/lib/libyoke.so" not in loaded:
            wrong.append(f"venv/bin/{program} takes another libyoke: {loaded}")
    no_module = shell("venv/bin/python -c 'import yoke; print(yoke.why_unavailable(\"cuda\"))'", env, home)
    if shutil.which(os.environ.get("CUDACXX", "nvcc")) and "has no cuda module" in no_module:
        wrong.append(f"there is a CUDA toolkit, yet the wheel has no CUDA module: {no_module}")
    (listfile,) = documents.blocks(section, "cmake")
    if EXAMPLES["c"][1] not in build_with_cmake(home, env, listfile):
        wrong.append("the CMake project's program printed nothing")
    shell(uninstall, env)
    wrong += [f"left behind: {path}" for path in left_behind(home)]
    print(*wrong or ["installed, used and removed by the commands of docs/building.md"], sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
