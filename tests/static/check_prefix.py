"""The installed product works by itself: `check_prefix.py SOURCE_DIR BUILD_DIR`.

Installs into a fresh prefix, moves the prefix elsewhere, and uses it as a stranger would: C programs built with pkg-config and
with CMake against the installed headers alone, a Lua script through LUA_PATH and LUA_CPATH, a Python import. No path leads to the
build tree, and all programs must print equal lines.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree

EXPECTED = "0 0 2.5\n"
SOURCES = pathlib.Path(__file__).parent / "prefix"


def clean_environment(prefix):
    """Returns the caller's environment without the build tree, plus what a user of the prefix sets."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("LUA_", "PYTHON", "LD_", "YOKE_"))}
    python = next(prefix.glob("lib/python3*/site-packages"))
    return env | {
        "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"),
        "CMAKE_PREFIX_PATH": str(prefix),
        "LUA_PATH": f"{prefix}/share/lua/5.4/?.lua;{prefix}/share/lua/5.4/?/init.lua",
        "LUA_CPATH": f"{prefix}/lib/lua/5.4/?.so",
        "PYTHONPATH": str(python),
    }


def steps(prefix, work):
    """Yields (name, command, whether the output is the answer)."""
    flags = "$(pkg-config --cflags --libs yoke)"
    strict = "-std=c99 -pedantic -Wall -Wextra -Werror"
    yield "build with pkg-config", f"cc {strict} {SOURCES}/linked.c -o {work}/linked {flags}", False
    # Only what was linked by hand needs to be told where the library lies.
    found = f"LD_LIBRARY_PATH={prefix}/lib"
    yield "linked with pkg-config", f"{found} {work}/linked", True
    yield "build by dlopen", (f"cc {strict} {SOURCES}/loaded.c -o {work}/loaded "
                              "$(pkg-config --cflags yoke) -ldl"), False
    yield "loaded by dlopen", f"{found} {work}/loaded", True
    yield "build with CMake", (f"cmake -S {SOURCES} -B {work}/cmake -DCMAKE_BUILD_TYPE=Release && "
                               f"cmake --build {work}/cmake"), False
    yield "linked with CMake", f"{work}/cmake/linked", True
    yield "Lua through LUA_PATH and LUA_CPATH", f"$(command -v lua5.4 || echo lua) {SOURCES}/use.lua", True
    yield "Python import", f"{sys.executable} {SOURCES}/use.py", True


def main(build):
    broken, looked_at = [], 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        installed, prefix = work / "installed", work / "moved"
        subprocess.run(["cmake", "--install", build, "--prefix", str(installed)], check=True,
                       capture_output=True)
        shutil.move(installed, prefix)
        for what, command, is_answer in steps(prefix, work):
            looked_at += 1
            done = subprocess.run(command, shell=True, cwd=work, env=clean_environment(prefix),
                                  capture_output=True, text=True)
            if done.returncode or (is_answer and done.stdout != EXPECTED):
                broken.append(f"{what}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    tree.report("uses of the prefix", looked_at, broken)


if __name__ == "__main__":
    main(sys.argv[2])
