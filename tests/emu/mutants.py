#!/usr/bin/env python3
"""Would the tests notice a wrong kernel?  mutants.py BUILD [--all | --sample N] [--seed S] [--jobs J] [FILE…]

Makes mutants of kernels/cuda/*.cu and *.cuh: a barrier left out, a comparison shifted, two strides exchanged, a "+ 1"
dropped. Each is compiled alone into a copy of the emulated module, and the Python tests of the ops in that file run on
it until one fails. Mutants that change nothing are listed in equivalent_mutants.txt, each with its reason.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels/cuda"
TESTS = [*sorted((ROOT / "tests/python").glob("test_ops_*.py")),
         *(ROOT / f"tests/python/test_{name}.py" for name in ("index_select", "optim", "grad_scaler"))]
SHIFTED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "==": "!=", "!=": "=="}
TEST_SECONDS = 600


class Mutant:
    def __init__(self, path, number, line, changed, what):
        self.path, self.number, self.line, self.changed, self.what = path, number, line, changed, what

    def __str__(self):
        return f"{self.path.relative_to(ROOT)}:{self.number}: {self.what}: {self.line.strip()}"

    def text(self):
        lines = self.path.read_text().splitlines(keepends=True)
        lines[self.number - 1] = self.changed
        return "".join(lines)


def changes_of(line):
    """(what, the changed line), of every change that this line allows."""
    code = line.split("//")[0]
    for found in re.finditer(r"__sync(threads|warp)\([^;]*\);", code):
        yield f"no {found[0][:-1]}", line[:found.start()] + ";" + line[found.end():]
    for found in re.finditer(r" (<=|>=|==|!=|<|>) ", code):
        yield f"{found[1]} as {SHIFTED[found[1]]}", line[:found.start(1)] + SHIFTED[found[1]] + line[found.end(1):]
    for found in re.finditer(r" [+-] 1\b(?![.\d])", code):
        yield f"no{found[0]}", line[:found.start()] + line[found.end():]
    steps = list(dict.fromkeys(re.findall(r"\b\w*(?:stride|step)s?\w*\b(?!\()", code)))
    if len(steps) == 2:
        exchanged = re.sub(rf"\b({steps[0]}|{steps[1]})\b", lambda m: steps[1 - steps.index(m[0])], code)
        if "(" in code or "=" in code:
            yield f"{steps[0]} and {steps[1]} exchanged", exchanged + line[len(code):]


def mutants_of(path):
    for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        if not line.lstrip().startswith(("#", "//", "template", "static_assert")):
            for what, changed in changes_of(line):
                yield Mutant(path, number, line, changed, what)


def equivalents():
    """{(file, line without blanks around it, change)}: "file | change | line | reason"."""
    known = set()
    for line in (ROOT / "tests/emu/equivalent_mutants.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, what, code, reason = (part.strip() for part in line.split(" | ", 3))
            assert reason, line
            known.add((file, what, code))
    return known


class Module:
    """How the emulated module of a build is compiled, linked and run."""

    def __init__(self, build):
        self.build = build
        self.compile = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            arguments = shlex.split(entry["command"])
            output = arguments[arguments.index("-o") + 1]
            if "emu_cuda_module.dir" in output and entry["file"].endswith(".cu"):
                self.compile[pathlib.Path(entry["file"]).name] = arguments
        told = subprocess.run(["ninja", "-C", build, "-t", "commands", "emu_cuda_module"], capture_output=True, text=True,
                              check=True).stdout
        link = next(line for line in told.splitlines()[::-1] if "libyoke_cuda.so" in line and "emu_cuda_module" in line)
        self.link = shlex.split(next(part for part in link.split(" && ") if "libyoke_cuda.so" in part))
        if self.link[0] == ":":
            self.link = self.link[1:]

    def files_for(self, path):
        """The .cu files that show a change of `path`: itself, or for a header the smallest few that include it."""
        if path.suffix == ".cu":
            return [path.name] if path.name in self.compile else []
        users = [name for name in self.compile if self.includes(KERNELS / name, path.name)]
        return sorted(users, key=lambda name: (KERNELS / name).stat().st_size)[:2]

    def includes(self, path, header, seen=()):
        for found in re.findall(r'#include "kernels/cuda/(\w+\.cuh)"', path.read_text()):
            if found == header or (found not in seen and self.includes(KERNELS / found, header, (*seen, found))):
                return True
        return False

    def ops_of(self, names):
        """The ops whose kernels these files hold, by the symbols in their objects."""
        ops = set()
        for name in names:
            arguments = self.compile[name]
            told = subprocess.run(["nm", "--defined-only", self.build / arguments[arguments.index("-o") + 1]],
                                  capture_output=True, text=True, check=True).stdout
            ops |= {op.lstrip("_").removesuffix("_backward") for op in re.findall(r" T yoke_cuda_(\w+)", told)}
        return sorted(ops)

    def build_mutant(self, mutant, names, folder):
        """False if it does not compile."""
        overlay = folder / "kernels/cuda"
        overlay.mkdir(parents=True)
        (overlay / mutant.path.name).write_text(mutant.text())
        link = [folder / "libyoke_cuda.so" if a.endswith("libyoke_cuda.so") and "-soname" not in a else a for a in self.link]
        for name in names:
            arguments = list(self.compile[name])
            old = arguments[arguments.index("-o") + 1]
            new = str(folder / (name + ".o"))
            source = str(overlay / name) if name == mutant.path.name else arguments[-1]
            arguments = [new if a == old else a for a in arguments[:-1]] + [source]
            arguments = [a for a in arguments if a != "-Werror"]
            first = next(i for i, a in enumerate(arguments) if a.startswith("-I"))
            arguments.insert(first, f"-I{folder}")
            if subprocess.run(arguments, cwd=self.build, capture_output=True).returncode:
                return False
            link = [new if a == old else a for a in link]
        subprocess.run(link, cwd=self.build, check=True, capture_output=True)
        for library in (self.build / "tests/emu/lib").glob("libyoke.so.*"):
            shutil.copy(library, folder)
        return True

    def passes(self, folder, ops):
        driver = self.build / "tests/fakes/cuda/driver"
        environment = dict(os.environ, YOKE_TEST_DEVICE="cuda", YOKE_CUDA_LIB_PATH=str(driver),
                           LD_LIBRARY_PATH=f"{folder}:{driver}", OMP_WAIT_POLICY="passive")
        command = [self.build / "env", sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider",
                   *([] if not ops else ["-k", " or ".join(ops)]), *TESTS]
        try:
            return subprocess.run(command, cwd=ROOT, env=environment, timeout=TEST_SECONDS, capture_output=True).returncode == 0
        except subprocess.TimeoutExpired:
            return False  # it hangs: that is noticed


def judge(module, mutant):
    names = module.files_for(mutant.path)
    if not names:
        return "not built"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if not module.build_mutant(mutant, names, folder):
            return "does not compile"
        return "survived" if module.passes(folder, module.ops_of(names)) else "caught"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="only name them")
    options = parser.parse_args()
    known = equivalents()
    paths = [p for p in sorted([*KERNELS.glob("*.cu"), *KERNELS.glob("*.cuh")])
             if not options.files or p.name in options.files]
    mutants = [m for p in paths for m in mutants_of(p)
               if (p.name, m.what, m.line.strip()) not in known]
    print(f"{len(mutants)} mutants of {len(paths)} files; seed {options.seed}")
    if not options.all and len(mutants) > options.sample:
        mutants = random.Random(options.seed).sample(mutants, options.sample)
    if options.list:
        print(*mutants, sep="\n")
        return 0
    module = Module(options.build.resolve())
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(judge, module, m): m for m in mutants}
        for done in concurrent.futures.as_completed(waiting):
            verdicts.append(done.result())
            print(f"{verdicts[-1]:16} {waiting[done]}", flush=True)
    for verdict in sorted(set(verdicts)):
        print(f"{verdicts.count(verdict):5d} {verdict}")
    return 1 if "survived" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
