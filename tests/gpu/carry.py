"""Debian packages that a machine with a GPU may need: `./dev gpu --pack [FOLDER]` downloads them into build/carry where there is a
network. `./dev gpu` unpacks and uses them where there is none. No package is installed.
"""

import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ.get("YOKE_GPU_FOLDER", ROOT / "build"))
CARRY = FOLDER / "carry"
MOST = 64 << 20  # bytes that may be carried, the tree included
TRAVELS = 40 << 20  # bytes of the tree and of a build for another machine

# The only list: (package, purpose). Python's headers serve only a Python of exactly this version.
PACKAGES = [
    ("libgtest-dev", "the contract suite"),
    ("lua5.4", "the examples in Lua"), ("libreadline8", "the same"), ("libtinfo6", "the same"),
    ("liblua5.4-dev", "the Lua binding"),
    ("libdnnl-dev", "products on the CPU by oneDNN"), ("libdnnl2", "the same"),
    ("zlib1g-dev", "data sets that are compressed"), ("zlib1g", "the same"),
    ("nlohmann-json3-dev", "safetensors files: save and load"),
    ("libxxhash-dev", "the hashes of CheckpointManager"),
    ("pybind11-dev", "the Python binding"),
    ("libpython{python}-dev", "Python's headers"),
]


# ---- packing, where there is a network -------------------------------------------------------------------------------


def tree_bytes():
    """Returns the bytes of the tree's files that travel: all files that git does not ignore."""
    said = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True)
    return sum((ROOT / name).lstat().st_size for name in set(said.stdout.decode().split("\0")) if name and (ROOT / name).is_file())


def pack(folder, python):
    """Downloads the packages of the list; returns whether all downloads succeeded."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"./dev gpu --pack: cannot write to {folder} ({error.strerror}): name another folder", file=sys.stderr)
        return False
    if not shutil.which("apt-get"):
        print("./dev gpu --pack: there is no apt-get here: pack on Debian or Ubuntu", file=sys.stderr)
        return False
    lacking = []
    for name, purpose in PACKAGES:
        name = name.format(python=python)
        done = subprocess.run(["apt-get", "download", "-q", name], cwd=folder, capture_output=True, text=True)
        for path in folder.glob(f"{name}_*%3a*.deb"):  # an epoch's colon, in a name that any tool takes
            path.replace(path.with_name(path.name.replace("%3a", "-")))
        found = sorted(folder.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
        for old in found[:-1]:
            old.unlink()
        if done.returncode != 0 or not found:
            said = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            lacking.append(f"{name} ({purpose}): {said[0] if said else 'apt-get left no file'}")
        else:
            print(f"  {found[-1].stat().st_size / 2**20:7.2f} MiB  {found[-1].name}  {purpose}")
    carried = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    whole = carried + tree_bytes()
    print(f"  {carried / 2**20:7.2f} MiB  in {folder}; {whole / 2**20:.1f} MiB with the tree, of {MOST >> 20} that may travel")
    for text in lacking:
        print(f"  lacks {text}", file=sys.stderr)
    if lacking:
        print("  apt-get update may help; what is not needed there may be missing", file=sys.stderr)
    if whole > MOST:
        print(f"  that is too much: take out of {folder} what the machine has", file=sys.stderr)
    return not lacking and whole <= MOST


# ---- taking, where there is none -------------------------------------------------------------------------------------


def unpack(folder, target):
    """Returns (folder of the unpacked packages or None, problem or "")."""
    packages = sorted(folder.glob("*.deb")) if folder.is_dir() else []
    if not packages:
        return None, ""
    wanted = "".join(f"{path.name} {path.stat().st_size}\n" for path in packages)
    listed = target / "unpacked.txt"
    if listed.exists() and listed.read_text() == wanted:
        return target, ""
    if not shutil.which("dpkg"):
        return None, f"there is no dpkg to unpack what {folder} holds"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in packages:
        done = subprocess.run(["dpkg", "-x", path, target], capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(target, ignore_errors=True)
            return None, f"{path} cannot be unpacked: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'dpkg failed'}"
    for path in target.rglob("*"):  # a link to /lib/… means the packages' file there, if they have the file
        place = os.readlink(path) if path.is_symlink() else ""
        if place.startswith("/") and (target / place[1:]).exists():
            path.unlink()
            path.symlink_to(target / place[1:])
    listed.write_text(wanted)
    return target, ""


def libraries(target):
    """Returns the folders in which the packages hold shared libraries."""
    return [str(path) for path in (target / "usr/lib", target / "lib") for path in [*sorted(path.glob("*-linux-gnu*"))] if path.is_dir()]


def variables(target, known):
    """Returns variables with which the packages' headers, libraries and programs are found first, based on the known environment."""
    def before(name, *folders):
        return os.pathsep.join([*map(str, folders), *filter(None, [known.get(name)])])

    headers = [target / "usr/include"]
    return {"CMAKE_PREFIX_PATH": before("CMAKE_PREFIX_PATH", target / "usr"),
            "C_INCLUDE_PATH": before("C_INCLUDE_PATH", *headers), "CPLUS_INCLUDE_PATH": before("CPLUS_INCLUDE_PATH", *headers),
            "PATH": os.pathsep.join([*filter(None, [known.get("PATH")]), str(target / "usr/bin")])}


def python_options(target):
    """Returns CMake's options if this Python has no headers and the packages have headers of its version."""
    if (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists() or target is None:
        return {}
    headers = target / "usr/include" / f"python{sysconfig.get_python_version()}"
    return {"Python_INCLUDE_DIR": str(headers)} if (headers / "Python.h").exists() else {}


def main():
    parser = argparse.ArgumentParser(prog="./dev gpu --pack", description="Packs for a machine without a network.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=CARRY, help="default: build/carry")
    parser.add_argument("--python", default=".".join(platform.python_version_tuple()[:2]), metavar="X.Y",
                        help="the Python of the machine with the GPU")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+\.\d+", options.python):
        parser.error(f'--python is "{options.python}"; it is like 3.12')
    return 0 if pack(options.folder.resolve(), options.python) else 1


if __name__ == "__main__":
    sys.exit(main())
