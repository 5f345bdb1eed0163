"""Builds a changed copy of the tree from the objects of a finished build: only files that a new op changes are compiled.

A file changes if it was edited or includes an edited file. A file also changes if its text, or the text of an included header,
names a declaration of the generated op table: numbers of ops, their count, the tables over them. Any other file would give an
equal object.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from steps import run

LIBRARIES = {"yoke": "lib", "_yoke": "python/yoke", "yoke_lua": "lua/yoke"}  # target: its folder
EMULATED = {"emu_cuda_module": "lib"}
# Files compiled anew for any op, because they contain the levels of kernels, or the folder of the build.
OF_THE_BUILD = ("/cpuid.cpp", "tests/emu/counts.cpp")
TABLE = "core/backend/ops.inc"
OTHER_NAMES = {"kOps", "YOKE_PY_OP", "YOKE_LUA_OP"}  # tables over all ops that are declared elsewhere
# Header with the declaration of a table whose length is the count of ops. Every file includes it; users of the table
# name the table.
DECLARES = "core/ops/op_def.h"


class Tree:
    """Files of a copy of the tree: differences from the original, and names in the text."""

    def __init__(self, source, tree, edited):
        self.source, self.tree, self.edited, self.texts = source, tree, edited, {}
        words = set(re.findall(r"\bYOKE_\w+", self.text(TABLE)))
        self.names = re.compile(r"\b(" + "|".join(sorted(words | OTHER_NAMES)) + r")\b")

    def text(self, path):
        """Without comments."""
        if path not in self.texts:
            self.texts[path] = re.sub(r"//[^\n]*|/\*.*?\*/", "", (self.tree / path).read_text(encoding="utf-8"), flags=re.S)
        return self.texts[path]

    def differs(self, path):
        return not (self.source / path).exists() or (self.source / path).read_bytes() != (self.tree / path).read_bytes()

    def included(self, path):
        for name in re.findall(r'#\s*include\s*[<"]([^">]+)[">]', self.text(path)):
            for folder in ("", "capi/include/", f"{pathlib.PurePath(path).parent}/"):
                if (self.tree / f"{folder}{name}").is_file():
                    yield os.path.normpath(f"{folder}{name}")
                    break

    def all_included(self, path, found):
        """Returns a file and all included files, without the includes of generated headers."""
        if path not in found:
            found.add(path)
            generated = path.endswith((".h", ".inc")) and self.differs(path)
            for name in () if generated else self.included(path):
                self.all_included(name, found)
        return found

    def changes(self, path):
        """Tells whether the object of this source may be another."""
        if self.differs(path) or self.all_included(path, set()) & self.edited:
            return True
        used = {p for p in self.all_included(path, set()) if not self.differs(p) and p != DECLARES}
        tables = {p for p in self.included(path) if p.endswith(".inc") and p != TABLE and self.differs(p)}
        return bool(tables) or any(self.names.search(self.text(p)) for p in used)


def commands(source, finished):
    """Returns {object: (files, arguments)} of a finished build, paths of files relative to the tree; a batch has several files."""
    found = {}
    for entry in json.loads((finished / "compile_commands.json").read_text()):
        arguments, file = shlex.split(entry["command"]), pathlib.Path(entry["file"])
        files = re.findall(r'#include "(.+)"', file.read_text()) if is_batch(file) else [str(file.relative_to(source))]
        found[arguments[arguments.index("-o") + 1]] = (files, arguments)
    return found


def is_batch(file):
    """Tells whether cmake/YokeTogether.cmake made this source."""
    return "together" in pathlib.Path(file).parts


def link_of(finished, target):
    """Returns the arguments that link a target."""
    told = subprocess.run(["ninja", "-C", finished, "-t", "commands", target], check=True, capture_output=True, text=True).stdout
    line = next(line for line in reversed(told.splitlines()) if " -shared " in line)
    return shlex.split(next(part for part in line.split(" && ") if " -shared " in part))


def compile_files(source, finished, tree, folder, files, options):
    """Compiles some files of the copy as the finished build compiles them, the kernels at the base level alone."""
    known = commands(source, finished)
    chosen = [(part, file) for part, (given, _) in known.items() for file in given if file in files and not is_other_level(part)]
    missing = set(files) - {file for _, file in chosen}
    if missing:
        raise SystemExit(f"the build of {finished} compiles no {', '.join(sorted(missing))}")
    compile_parts(chosen, source, finished, tree, folder, options)


def compile_parts(parts, source, finished, tree, folder, options):
    """Compiles (object, file) pairs; without a file the object's own source, which may be a batch."""
    cache, known = [shutil.which("ccache")] if shutil.which("ccache") else [], commands(source, finished)
    environment = {**os.environ, "CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(tree)}

    def compile_one(pair):
        part, file = pair
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        arguments = [moved(argument, source, finished, tree, folder) for argument in known[part][1]]
        given = arguments.index("-c") + 1
        if file:
            arguments[given] = str(tree / file)
        elif is_batch(arguments[given]):
            batch = pathlib.Path(arguments[given])
            batch.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(known[part][1][given], batch)
        run([*cache, *arguments, *options, "-UYOKE_HAS_V3", "-UYOKE_HAS_V4"], cwd=folder, env=environment)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, parts))


def moved(argument, source, finished, tree, folder):
    """Returns an argument of the finished build, with the copy's folders; the build may lie inside of the tree."""
    return str(folder).join(part.replace(str(source), str(tree)) for part in argument.split(str(finished)))


def is_other_level(path):
    """Kernels of the base level are enough here."""
    return re.search(r"yoke_cpu_v\d+\.dir/", path)


def build(source, finished, tree, folder, edited, emulated, whole=False):
    """Builds in `folder`, without optimizing; with `whole` nothing of the finished build is used."""
    libraries = LIBRARIES | (EMULATED if emulated else {})
    shutil.rmtree(folder, ignore_errors=True)
    changed, known = Tree(source, tree, edited), commands(source, finished)
    links = {target: link_of(finished, target) for target in libraries}
    linked = {part for link in links.values() for part in link if part.endswith(".o") and not is_other_level(part)}
    anew = sorted(part for part in linked
                  if whole or any(file.endswith(OF_THE_BUILD) or changed.changes(file) for file in known[part][0]))
    compile_parts([(part, None) for part in anew], source, finished, tree, folder, ["-O0", "-g0"])
    for target, place in libraries.items():
        arguments = [part if part.endswith(".o") else moved(part, source, finished, tree, folder) for part in links[target]]
        link(folder, finished, arguments, place, anew)
    for language in ("python", "lua"):
        shutil.copytree(tree / f"bindings/{language}/yoke", folder / language / "yoke", dirs_exist_ok=True)
    (folder / "env").write_text(f"#!/bin/sh\nexport PYTHONPATH={folder}/python LUA_PATH=\"{folder}/lua/?.lua;{folder}/lua/?/init.lua\""
                                f" LUA_CPATH=\"{folder}/lua/?.so\"\nexec \"$@\"\n")
    (folder / "env").chmod(0o755)
    print(f"compiled anew: {len(anew)} of {len(linked)} objects")


def link(folder, finished, arguments, place, anew):
    """Links a library at its place under `folder`, and makes the links for its other names."""
    (folder / place).mkdir(parents=True, exist_ok=True)
    output = arguments.index("-o") + 1
    changed = []
    for part in arguments:
        if part.endswith(".o"):
            part = "" if is_other_level(part) else part if part in anew else str(finished / part)
        changed.append(part)
    name = pathlib.Path(arguments[output]).name
    changed[output] = f"{place}/{name}"
    run([part for part in changed if part], cwd=folder)
    if ".so." in name:
        for short in (name.split(".so")[0] + ".so.0", name.split(".so")[0] + ".so"):
            (folder / place / short).symlink_to(name)
