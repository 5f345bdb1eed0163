"""The build for tests and benchmarks: made in build/cuda, or taken over from the call that made it.

On the same machine the folder is still there. Another machine gets build-<arch>.tar.xz, which a call with `--only build` leaves
among the results. The archive is unpacked into build/carried. A mark in the build says which card and tree it serves. If Python
has another version, only the Python extension is built anew, over the carried library.
"""

import ctypes
import functools
import hashlib
import json
import lzma
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile

import carry
import record

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "gpu-build.json"
ESSENTIAL = ["yoke", "_yoke", "yoke_cuda"]
OPTIONAL = [("test_backend_all", "contract suite", "there is no GoogleTest"),
            ("emu_cuda_module", "emulated kernels", "CMake left them out: see the log of configure"),
            ("yoke_lua", "Lua binding", "there is no lua.h"),
            ("yoke_command", "command yoke", "there is no CLI11 or no nlohmann-json")]
# Parts of a build that tests and benchmarks use.
PACKED = ("env", "CMakeCache.txt", "bin/yoke", "lib", "python", "lua", "benchmarks/gpu_call", "benchmarks/gpu_floor",
          "tests/test_backend_all")
SOURCES = ("capi", "core", "kernels", "bindings", "cmake", "tests/backend", "tests/emu", "tests/fakes/cuda", "benchmarks/workers")
COMPILED = {".c", ".cpp", ".cu", ".h", ".inc", ".def", ".map", ".cmake", ".in"}
# Libraries of the C library or the compiler: each machine keeps its own.
TOOLCHAIN = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libgomp|ld-linux-[\w-]+)\.so")
LIBRARIES = {"GLIBC": "libc.so.6", "GLIBCXX": "libstdc++.so.6"}  # libraries of each machine, by the names of their symbols' versions
ELF = b"\x7fELF"
RELIABLE = 15 << 20  # bytes of a file that gets from machine to machine whole


def sources_digest():
    """Returns twelve digits that change with the compiled sources."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in COMPILED or path.name == "CMakeLists.txt":
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def python_tag():
    return f"{sysconfig.get_python_version()} ({sysconfig.get_config_var('EXT_SUFFIX')})"


def serves(built, card):
    """Machine code serves later cards of the same generation too."""
    (major, minor), (card_major, card_minor) = (tuple(map(int, text.split("."))) for text in (built, card))
    return major == card_major and minor <= card_minor


def read_mark(text):
    try:
        mark = json.loads(text)
    except ValueError:
        return {}
    wanted = ("compute capability", "sources", "python", "folder", "processor")
    return mark if isinstance(mark, dict) and all(isinstance(mark.get(name), str) for name in wanted) else {}


def misfit(mark, where, capability, sources):
    """Returns why a build cannot be used here, or ""."""
    if not mark or not re.fullmatch(r"\d+\.\d+", mark["compute capability"]):
        return f"{where} does not say what it was built for"
    if mark["processor"] != platform.machine():
        return f"{where} was built for a processor {mark['processor']}, this machine's is {platform.machine()}"
    for name, wanted in mark.get("needs", {}).items():
        here = provided().get(name, wanted)
        if number(here) < number(wanted):
            return f"{where} needs {name} {wanted}, this machine has {here}: make the build on an older system"
    if not serves(mark["compute capability"], capability):
        return (f"{where} was built for compute capability {mark['compute capability']}, this card has {capability}: "
                f"./dev gpu --only build on a machine with such a card makes one for it")
    if mark["sources"] != sources:
        return f"{where} was built of other sources, {mark['sources']}, than this tree's, {sources}"
    return ""


def number(version):
    return tuple(map(int, version.split(".")))


def highest(content, name):
    """Returns the highest version of a library's symbols that a file names, or ""."""
    found = set(re.findall(rb"\b%s_(\d+(?:\.\d+)+)\0" % name.encode(), content))
    return max((text.decode() for text in found), key=number, default="")


def needs(folder):
    """Returns {"GLIBC": version, "GLIBCXX": version}, which the machine code in a folder wants of the C and C++ libraries."""
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for name in LIBRARIES if content.startswith(ELF) else ():
            versions = filter(None, (highest(content, name), found.get(name)))
            found[name] = max(versions, key=number, default="")
    return {name: version for name, version in found.items() if version}


@functools.lru_cache(None)
def provided():
    """Returns the same of this machine's libraries, as far as it is known."""
    found = {}
    for name, file in LIBRARIES.items():
        try:
            ctypes.CDLL(file)
            places = re.findall(rf"(/\S*{re.escape(file)}\S*)", pathlib.Path("/proc/self/maps").read_text())
            found[name] = highest(pathlib.Path(places[0]).read_bytes(), name)
        except (OSError, IndexError):
            pass
    return {name: version for name, version in found.items() if version}


class Builds:
    """Builds under a folder, for a card and this tree."""

    def __init__(self, folder, capability, sources):
        self.made, self.carried, self.capability, self.sources = folder / "cuda", folder / "carried", capability, sources
        self.extension = folder / "extension"  # where the Python extension alone is built
        self.reasons = []  # why what was found was not taken

    def _fits(self, text, where):
        problem = misfit(read_mark(text), where, self.capability, self.sources)
        if problem:
            self.reasons.append(problem)
        return not problem

    def likely(self, folders):
        """Tells whether there is any build at all."""
        return (any((build / MARK).exists() for build in (self.made, self.carried))
                or any(path for folder in folders for path in pathlib.Path(folder).glob("build-*.tar.xz*")))

    def find(self, folders):
        """Returns the build to use: this machine's build, else a build carried here in a folder; or None."""
        for build in (self.made, self.carried):
            if (build / MARK).exists() and self._fits((build / MARK).read_text(encoding="utf-8"), str(build)):
                return build
        for folder in map(pathlib.Path, folders):
            for first in sorted(folder.glob("build-*.tar.xz")) + sorted(folder.glob("build-*.tar.xz.00")):
                found = self._unpack(first)
                if found:
                    return found
        return None

    def _unpack(self, first):
        pieces = sorted(first.parent.glob(f"{first.stem}.[0-9][0-9]")) if first.suffix == ".00" else [first]
        new = self.carried.with_name(".carried.new")
        shutil.rmtree(new, ignore_errors=True)
        whole = new.with_name(".carried.tar.xz")
        try:
            whole.parent.mkdir(parents=True, exist_ok=True)
            with open(whole, "wb") as file:
                for piece in pieces:
                    file.write(piece.read_bytes())
            with tarfile.open(whole, "r:xz") as archive:
                if not self._fits(archive.extractfile(archive.next()).read().decode(), first.name):
                    return None
                archive.extractall(new, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            self._settle(new)
        except (OSError, EOFError, lzma.LZMAError, tarfile.TarError, AttributeError, UnicodeDecodeError) as error:
            self.reasons.append(f"{first} cannot be unpacked: {error}")
            return None
        finally:
            whole.unlink(missing_ok=True)
        return self.carried

    def _settle(self, new):
        """Moves an unpacked build to its place, and writes this place into the script `env`."""
        mark = read_mark((new / MARK).read_text(encoding="utf-8"))
        env = new / "env"
        env.write_text(env.read_text(encoding="utf-8").replace(mark["folder"], str(self.carried)), encoding="utf-8")
        for link, target in mark.get("links", {}).items():
            (new / link).parent.mkdir(parents=True, exist_ok=True)
            (new / link).symlink_to(ROOT / target)
        shutil.rmtree(self.carried, ignore_errors=True)
        new.replace(self.carried)

    def mark(self, nvcc):
        """Marks a finished build as whole."""
        record.replace_file(self.made / MARK, json.dumps({
            "compute capability": self.capability, "sources": self.sources, "python": python_tag(), "nvcc": nvcc,
            "processor": platform.machine(), "folder": str(self.made)}) + "\n")

    # ---- the Python extension ----------------------------------------------------------------------------------------

    @staticmethod
    def other_python(build):
        """Returns the Python of a build if it differs from this Python, else ""."""
        made_for = read_mark((build / MARK).read_text(encoding="utf-8"))["python"]
        return made_for if made_for != python_tag() else ""

    def take_extension(self, build):
        """Puts the extension built for this Python in the place of the carried extension."""
        folder = build / "python" / "yoke"
        for old in folder.glob("_yoke*.so"):
            old.unlink()
        for new in (self.extension / "python" / "yoke").glob("_yoke*.so"):
            shutil.copy2(new, folder / new.name)
        mark = json.loads((build / MARK).read_text(encoding="utf-8"))
        record.replace_file(build / MARK, json.dumps({**mark, "python": python_tag()}) + "\n")

    # ---- packing -----------------------------------------------------------------------------------------------------

    def pack(self, folder):
        """Packs the build into a folder, as a single file or as pieces small enough to travel; returns a description."""
        scratch = self.made.with_name(".packing")
        shutil.rmtree(scratch, ignore_errors=True)
        links = {}
        for name in PACKED:
            for path in [self.made / name] if (self.made / name).is_file() else sorted((self.made / name).rglob("*")):
                self._copy(path, scratch, links)
        self._copy_libraries(scratch)
        mark = {**read_mark((self.made / MARK).read_text(encoding="utf-8")), "links": links, "needs": needs(scratch)}
        (scratch / MARK).write_text(json.dumps(mark) + "\n")
        file = pathlib.Path(folder) / f"build-{self.capability.replace('.', '')}.tar.xz"
        for old in file.parent.glob(f"{file.name}*"):
            old.unlink()
        new = file.with_name(f".{file.name}.new")
        with tarfile.open(new, "w:xz", preset=6) as archive:
            archive.add(scratch / MARK, MARK)  # first, readable without the rest
            for path in sorted(scratch.rglob("*")):
                if path.name != MARK and (path.is_symlink() or path.is_file()):
                    archive.add(path, path.relative_to(scratch))
        shutil.rmtree(scratch)
        return split(new, file)

    def _copy(self, path, scratch, links):
        """Copies a file without symbols that only debuggers want. Links into the tree are noted and made anew, where the tree is then."""
        name = path.relative_to(self.made)
        target = scratch / name
        if path.is_dir() or "CMakeFiles" in name.parts or "__pycache__" in name.parts:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            place = pathlib.Path(os.readlink(path))
            if not place.is_absolute():
                target.symlink_to(place)
            elif place.is_relative_to(ROOT):
                links[str(name)] = str(place.relative_to(ROOT))
            return
        shutil.copy2(path, target)
        with open(path, "rb") as file:
            machine_code = file.read(4) == ELF
        if machine_code and shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", target], capture_output=True)

    def _copy_libraries(self, scratch):
        """Copies the libraries linked with libyoke that may be missing on another machine."""
        said = subprocess.run(["ldd", self.made / "lib" / "libyoke.so"], capture_output=True, text=True).stdout
        for place in re.findall(r"=> (\S+) \(", said):
            if not TOOLCHAIN.match(pathlib.Path(place).name):
                (scratch / "lib").mkdir(parents=True, exist_ok=True)
                shutil.copy2(pathlib.Path(place).resolve(), scratch / "lib" / pathlib.Path(place).name)


def split(new, file):
    """Names a finished archive. An archive too large to travel becomes pieces: .00, .01, …"""
    size = new.stat().st_size
    if size <= RELIABLE:
        new.replace(file)
        return f"{file.name}, {size / 2**20:.1f} MiB"
    with open(new, "rb") as whole:
        count = 0
        while piece := whole.read(RELIABLE):
            file.with_name(f"{file.name}.{count:02}").write_bytes(piece)
            count += 1
    new.unlink()
    return f"{file.name}.00 to .{count - 1:02}, {size / 2**20:.1f} MiB"


def python_options(python, pybind11, packages):
    found = {"Python_EXECUTABLE": python, "YOKE_WERROR": "OFF",  # whichever compiler this is
             **carry.python_options(packages)}
    return {**found, "pybind11_DIR": pybind11} if pybind11 else found


def cmake_options(found):
    return [f"-D{name}={value}" for name, value in found.items()]


def options(capability, elsewhere, python, pybind11, packages):
    """Returns CMake's options, with only the targets possible on this machine. `elsewhere`: the build is for another machine's
    processor.
    """
    return cmake_options({
        "YOKE_CUDA": "ON", "YOKE_CUDA_ARCHS": capability.replace(".", ""), "YOKE_CPU_ISAS": "base;v3;v4" if elsewhere else "native",
        "YOKE_ONEDNN": "AUTO", "YOKE_ZLIB": "AUTO", "YOKE_GTEST": "AUTO", "YOKE_LUA": "AUTO",
        **python_options(python, pybind11, packages)})


def extension_options(library, python, pybind11, packages):
    """Returns CMake's options for the Python extension alone, over a libyoke that is there."""
    return cmake_options({
        "YOKE_LIBRARY": library, "YOKE_LUA": "OFF", "YOKE_CLI": "OFF", "YOKE_TESTS": "OFF", "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        **python_options(python, pybind11, packages)})


def known_targets(build):
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], capture_output=True, text=True).stdout
    return {line.split(":")[0] for line in listed.splitlines()}
