"""The emulated CUDA module with mutants: with all mutants at once, or with a single mutant that must be compiled alone."""
import concurrent.futures
import json
import pathlib
import re
import shlex
import shutil
import subprocess

from places import KERNELS, ROOT, with_all

HERE = pathlib.Path(__file__).resolve().parent
IGNORED = {"-Werror", "--coverage", "-fprofile-dir=/counts"}


class Module:
    """How the emulated module of a build is compiled and linked."""

    def __init__(self, build):
        self.build, self.folder = build, build / "mutants"
        self.folder.mkdir(exist_ok=True)
        self.objects = {}  # the arguments that compile a .cu file
        for entry in json.loads((build / "compile_commands.json").read_text()):
            arguments = shlex.split(entry["command"])
            if "emu_cuda_module.dir" in arguments[arguments.index("-o") + 1] and entry["file"].endswith(".cu"):
                self.objects[pathlib.Path(entry["file"]).name] = [a for a in arguments if a not in IGNORED]
        told = subprocess.run(["ninja", "-C", build, "-t", "commands", "emu_cuda_module"], capture_output=True,
                              text=True, check=True).stdout
        link = next(line for line in told.splitlines()[::-1] if "-shared" in line and "emu_cuda_module" in line)
        self.link = shlex.split(next(part for part in link.split(" && ") if "-shared" in part))
        self.ccache = [shutil.which("ccache")] if shutil.which("ccache") else []

    def file_of_compiler(self, name):
        """Returns the path of a library that comes with the compiler."""
        return subprocess.run([self.link[0], f"-print-file-name={name}"], capture_output=True, text=True,
                              check=True).stdout.strip()

    def object_of(self, name):
        arguments = self.objects[name]
        return arguments[arguments.index("-o") + 1]

    def users(self, path):
        """Returns the .cu files that contain a file: the file alone, or all files that include the header."""
        if path.suffix == ".cu":
            return [path.name] if path.name in self.objects else []
        return sorted(name for name in self.objects if includes(KERNELS / name, path.name))

    def compile(self, name, overlay, into, extra=()):
        """Returns the compiler's errors for a .cu file, or None. Sources in `overlay` take precedence over the tree's sources."""
        arguments = list(self.objects[name])
        source = overlay / "kernels/cuda/ops" / name
        arguments[arguments.index("-o") + 1] = str(into / f"{name}.o")
        arguments[-1] = str(source if source.exists() else KERNELS / name)
        first = next(i for i, a in enumerate(arguments) if a.startswith("-I"))
        arguments[first:first] = ["-w", *extra, f"-I{overlay}"]
        done = subprocess.run([*self.ccache, *arguments], cwd=self.build, capture_output=True, text=True)
        return done.stderr if done.returncode else None

    def link_with(self, folder, own=()):
        """Links the module with the objects of `self.folder`, except the objects `own` from `folder`, and copies libyoke beside the
        module.
        """
        objects = [f"{folder}/{name}.o" for name in own]
        # Own objects come first: if several objects hold a function, the linker takes the first object's function.
        objects += [f"{self.folder}/{name}.o" for name in sorted(set(self.objects) - set(own))]
        replaced = {self.object_of(name) for name in self.objects}
        output = self.link.index("-o") + 1
        kept = [f"{folder}/libyoke_cuda.so" if a == self.link[output] else a for a in self.link if a not in replaced]
        first = next(i for i, a in enumerate(kept) if a.endswith(".o"))
        kept[first:first] = [*objects, f"{self.folder}/state.o"]
        subprocess.run(kept, cwd=self.build, check=True, capture_output=True)
        for library in (self.build / "tests/emu/lib").glob("libyoke.so.*"):
            shutil.copy(library, folder)

    def build_all(self, mutants, jobs):
        """Builds a module with every mutant that can be chosen at run time; all other mutants lose their edit."""
        folder, overlay = self.folder, self.folder / "source"
        (overlay / "kernels/cuda/ops").mkdir(parents=True, exist_ok=True)
        state = [*self.ccache, *self.link[:1], "-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}", "-c",
                 HERE / "state.cpp", "-o", folder / "state.o"]
        subprocess.run(state, check=True)
        waiting = sorted(self.objects)
        while waiting:
            for path in {m.path for m in mutants}:
                write_new(overlay / "kernels/cuda/ops" / path.name, with_all(path, mutants))
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                said = list(pool.map(lambda n: self.compile(n, overlay, folder, ["-include", str(HERE / "mutants.h")]),
                                     waiting))
            broken = {(name, int(line)) for text in said if text
                      for name, line in re.findall(r"kernels/cuda/ops/([\w.]+):(\d+):", text)}
            dropped = [m for m in mutants if m.edit and (m.path.name, m.line_number) in broken]
            dropped = [m for m in dropped if "exchanged" in m.what] or dropped  # exchanges fail to compile most often
            if any(said) and not dropped:
                raise SystemExit("does not compile with mutants in it:\n" + next(text for text in said if text))
            for mutant in dropped:
                mutant.edit = None
            waiting = [name for name, text in zip(waiting, said) if text]
        self.link_with(folder)

    def build_alone(self, mutant, folder):
        """Builds a module with this mutant only, in two of the files that contain the place. Returns False if the mutant does not
        compile.
        """
        overlay = folder / "source"
        (overlay / "kernels/cuda/ops").mkdir(parents=True)
        (overlay / "kernels/cuda/ops" / mutant.path.name).write_text(mutant.text())
        names = sorted(self.users(mutant.path), key=lambda name: (KERNELS / name).stat().st_size)[:2]
        if any(self.compile(name, overlay, folder) for name in names):
            return False
        self.link_with(folder, names)
        return True


def write_new(path, text):
    """Writes a file unless the text is unchanged. An unchanged file keeps its time, which ccache compares."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def includes(path, header, seen=()):
    for found in re.findall(r'#include "kernels/cuda/ops/(\w+\.cuh)"', path.read_text()):
        if found == header or (found not in seen and includes(KERNELS / found, header, (*seen, found))):
            return True
    return False
