"""The C, C++ and CUDA sources have the format of clang-format 14: `check_format.py SOURCE_DIR [BUILD_DIR | --mend]`.

Other releases format some lines differently, so without release 14 this check does not compare. `--mend`, used by `./dev format`,
joins texts that are cut in two, wraps comments that are too long, and formats the rest.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import comments
import literals
import tree

RELEASE = "14"
FORMATTED = {".h", ".c", ".cpp", ".cu", ".cuh"}


def clang_format():
    """Returns the program of that release, or None."""
    for name in (f"clang-format-{RELEASE}", "clang-format"):
        if shutil.which(name):
            told = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {RELEASE}\.", told):
                return name
    return None


def sources(root):
    return [path for path in tree.files(root, FORMATTED) if not tree.is_generated(path)]


def mend(root, program):
    for path in tree.files(root):
        if comments.has_comments(path) and not tree.is_generated(path):
            comments.wrap(path)
    for path in tree.files(root, set(literals.LANGUAGE) | {".py"}):
        if literals.checked(path.relative_to(root).as_posix()) and not tree.is_generated(path):
            literals.join(path)
    subprocess.run([program, "-i", *sources(root)], cwd=root, check=True)


def main(root, *options):
    root, program = pathlib.Path(root).resolve(), clang_format()
    if program is None:
        print(f"there is no clang-format {RELEASE}: 1 skipped")
        sys.exit("./dev format needs it" if "--mend" in options else 0)
    if "--mend" in options:
        mend(root, program)
        return
    files = sources(root)
    done = subprocess.run([program, "--dry-run", *files], cwd=root, capture_output=True, text=True)
    places = sorted(set(re.findall(r"^(\S+?:\d+):\d+: warning:", done.stderr, re.M)))
    broken = [f"{place.removeprefix(f'{root}/')} is not formatted; ./dev format mends it" for place in places]
    if done.returncode:
        broken.append(f"{program}: {done.stderr[:500]}")
    tree.report("formatted files", len(files), broken)


if __name__ == "__main__":
    main(*sys.argv[1:])
