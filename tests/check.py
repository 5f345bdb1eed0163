#!/usr/bin/env python3
"""The inner loop: builds the targets for the named tests, and runs the tests: `check.py BUILD NAME…`, behind `./dev check`.

A name is a test of CTest's (core/device, ops_sort), a label (lua, core, emu), a test file, an op (cases in Python and Lua), a
source file (tests of its contents), or the name of a .cu file (its ops on the emulated device). `check.py BUILD --needs [CTEST
ARG…]` prints the targets for the tests that ctest would run, a target a line.
"""
import argparse
import concurrent.futures
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
EDGES, EMULATED = "python/test_ops_edges", "emu/ops_edges"  # run as these are
KERNEL = re.compile(r" T (?:yoke_cuda_|yoke::cpu::base::entry::)(\w+)")


def table():
    """Returns {op: family} of the op table, internal ops too."""
    text = (ROOT / "core/ops/ops.def").read_text()
    found = {}
    for family, lines in re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S):
        found |= dict.fromkeys(re.findall(r"^(\w+)\(", lines, re.M), family)
    return found


def public(ops):
    return [op for op in ops if not op.startswith("_")]


def tried_by(named):
    """Returns (ops, families) with tests for these names: for an internal op the public op of the name, else the family."""
    families = table()
    ops, rest = {op for op in public(families) if op in named}, set()
    for op in set(families) & ({f"_{name}" for name in named} | named) - ops:
        inner = op.strip("_").removesuffix("_internal")
        owner = max((o for o in public(families) if f"{inner}_".startswith(f"{o}_")), key=len, default="")
        ops |= {owner} if owner else set()
        rest |= set() if owner else {families[op]}
    return ops, rest


class Build:
    """Configured build folder: tests, and the targets for each test."""

    def __init__(self, folder, refresh=True):
        self.folder = folder
        if refresh:
            self.ninja(["build.ninja"])  # a file that was added since is a test too
        told = self.ctest("--show-only=json-v1")
        self.tests = {test["name"]: test for test in json.loads(told)["tests"] if "command" in test}
        lines = (folder / "tests/needs.txt").read_text().splitlines()
        self.needs = {name: targets for name, *targets in map(str.split, lines)}

    def ctest(self, *arguments):
        command = ["ctest", "--test-dir", self.folder, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def kernels_in(self, path):
        """Returns the ops with a kernel in a built object of this file, or for a header, of any file that includes it."""
        told = subprocess.run(["ninja", "-C", self.folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
        objects = [name for name, _, deps in (block.partition(":") for block in told.split("\n\n"))
                   if re.search(rf"[ /]{re.escape(str(path))}$", deps, re.M) and re.search("emu_cuda_module|yoke_cpu_base", name)]
        objects = [name for name in objects if (self.folder / name).exists()]
        told = subprocess.run(["nm", "-C", "--defined-only", *objects], cwd=self.folder, capture_output=True, text=True).stdout
        return set(KERNEL.findall(told)) if objects else set()

    def needs_of(self, names):
        return sorted({target for name in names for target in self.needs.get(name, ())})

    def ninja(self, targets):
        command = ["ninja", "--quiet", "-C", self.folder, "-j", str(os.cpu_count()), *targets]
        return subprocess.run(command, stdout=sys.stderr).returncode == 0

    def like(self, name, tool, arguments):
        """Returns a test's command with other arguments after the tool, and the environment."""
        command = self.tests[name]["command"]
        place = next(i for i, part in enumerate(command) if pathlib.Path(part).name == tool)
        return command[:place + 1] + arguments, os.environ | self.environment(name)

    def environment(self, name):
        variables = next(p["value"] for p in self.tests[name]["properties"] if p["name"] == "ENVIRONMENT")
        return dict(variable.split("=", 1) for variable in variables if variable)


class Plan:
    """Tests to run: tests of CTest, and cases of ops in Python, in Lua and on the emulated device."""

    def __init__(self, build):
        self.build, self.tests, self.ops, self.emulated = build, set(), set(), set()
        self.kernels = []  # files whose ops are known after the build

    def names(self):
        """Returns all that could be asked for."""
        shorts = {short_of(name) for name in self.build.tests}
        labels = {name.split("/")[0] for name in self.build.tests}
        ops = set(public(table())) if EDGES in self.build.tests else set()
        kernels = {path.name for path in (ROOT / "kernels/cuda/ops").glob("*.cu*")} if EMULATED in self.build.tests else set()
        return sorted(shorts | labels | kernels | ops)

    def add(self, name):
        """Adds a name; returns False if the name is unknown."""
        if name.endswith((".cu", ".cuh")):
            return self.add_kernel(pathlib.Path("kernels/cuda/ops", pathlib.Path(name).name))
        if "." in name and (ROOT / name).is_file():
            return self.add_file(pathlib.Path(name))
        found = [test for test in self.build.tests if name in (test, test.split("/")[0])]
        found = found or [test for test in self.build.tests if short_of(test) == name and not test.startswith("emu/")]
        self.tests.update(found)
        if name not in table() or EDGES not in self.build.tests:
            return bool(found)
        ops, families = tried_by({name})
        self.ops |= ops
        self.tests |= {f"python/test_ops_{family}" for family in families} & set(self.build.tests)
        return True

    def add_kernel(self, path):
        known = (ROOT / path).is_file() and (EMULATED if path.suffix in (".cu", ".cuh") else EDGES) in self.build.tests
        self.kernels += [path] if known else []
        return known

    def resolve_kernels(self):
        """Names the ops of the kernels, once these are built."""
        for path in self.kernels:
            ops, families = tried_by(self.build.kernels_in(path))
            label, chosen = ("emu/", self.emulated) if path.suffix in (".cu", ".cuh") else ("python/test_", self.ops)
            chosen |= ops
            self.tests |= {f"{label}{prefix}{family}" for family in families for prefix in ("", "ops_")} & set(self.build.tests)

    def add_file(self, path):
        parts = path.parts
        if parts[0] == "tests":
            label, stem = ("python" if parts[1] == "cli" else parts[1]), path.stem
            folder = parts[2] if len(parts) > 3 else "all"
            found = {f"{label}/{stem}", f"{label}/{folder}", f"emu/{stem.removesuffix('_test')}"} & set(self.build.tests)
        elif path.parts[:3] == ("kernels", "cpu", "simd"):
            return self.add_kernel(path)
        elif path.parts[:2] == ("core", "ops") and self.add_rules(path):
            return True
        else:
            found = self.tests_beside(parts)
        self.tests.update(found)
        return bool(found)

    def add_rules(self, path):
        """Adds the ops whose shape rule or gradient is in a file. For usual rules, these are ops with a rule in the op table."""
        text = (ROOT / path).read_text()
        named = set(re.findall(r"\b(?:infer|vjp|compose)_(\w+)\(", text))
        if re.search(r"\bnamespace yoke::rules\b", text):
            lines = re.findall(r"^(\w+)\(.*\) -> [^|]+ \| ([^|]+) \|", (ROOT / "core/ops/ops.def").read_text(), re.M)
            named |= {op for op, rule in lines if rule not in ("own", "-")}
        ops, _ = tried_by(named)
        self.ops |= ops
        return bool(ops)

    def tests_beside(self, parts):
        """Returns the tests of the folder in tests/ that mirrors a folder of sources."""
        if parts[0] == "core":
            return {f"core/{parts[1]}"} & set(self.build.tests)
        prefix = {"capi": "capi/", "kernels": "kernels/", "examples": "python/test_examples"}.get(parts[0])
        if parts[0] == "bindings":
            prefix = {"lua": "lua/", "python": "python/test_binding", "cli": "python/test_command",
                      "probe": "python/test_doctor_probe"}[parts[1]]
        return {name for name in self.build.tests if prefix and name.startswith(prefix)}

    def targets(self):
        needs = set(self.build.needs_of(self.tests))
        needs |= {"_yoke", "yoke_lua"} if self.ops else set()
        for path in self.kernels:
            needs |= {"_yoke", "emu_cuda_module" if path.suffix in (".cu", ".cuh") else "yoke_lua"}
        return sorted(needs)

    def jobs(self):
        """Yields (name, command, environment) of all runs outside CTest."""
        files = sorted(str(path) for path in (ROOT / "tests/python").glob("test_ops_*.py"))

        def chosen(ops):
            return [f"--op={op}" for op in sorted(ops)]
        quick = ["-q", "-p", "no:cacheprovider", "--tb=short"]
        if self.ops:
            yield "Python", *self.build.like(EDGES, "pytest", [*quick, *chosen(self.ops), *files])
            filters = [part for op in sorted(self.ops) for part in ("--filter", f"^the op {op} does")]
            yield "Lua", *self.build.like("lua/ops_spec", "busted", [*filters, "tests/lua/ops_spec.lua"])
        if self.emulated:
            yield "emulated device", *self.build.like(EMULATED, "pytest", [*quick, *chosen(self.emulated), *files])


def short_of(test):
    """python/test_ops_sort, emu/ops_sort and lua/ops_sort_spec are all called ops_sort."""
    return test.split("/")[-1].removeprefix("test_").removesuffix("_spec")


def run_job(job):
    what, command, environment = job
    started = time.monotonic()
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = re.sub(r"processor time of this shell.*", "", done.stdout, flags=re.S).rstrip()
    print(f"-- {what}, {time.monotonic() - started:.0f} s\n{output}", flush=True)
    return done.returncode == 0


def run(plan):
    """Everything at once, as many as there are processors."""
    good = True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        good = all(list(pool.map(run_job, plan.jobs())))
    if plan.tests:
        pattern = "^(" + "|".join(map(re.escape, sorted(plan.tests))) + ")$"
        command = ["ctest", "--test-dir", plan.build.folder, "-R", pattern, "-j", str(2 * os.cpu_count()), "--output-on-failure"]
        good = subprocess.run(command).returncode == 0 and good
    return good


def refuse(name, known):
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.5) or sorted(n for n in known if name in n)[:5]
    print(f"./dev check: nothing is called \"{name}\"; " +
          (f"the nearest are {', '.join(near)}" if near else "see ctest -N --test-dir build/native"), file=sys.stderr)
    return 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--needs", action="store_true")
    options, names = parser.parse_known_args()
    build = Build(options.build)
    if options.needs:
        chosen = json.loads(build.ctest("--show-only=json-v1", *names))["tests"]
        print("\n".join(build.needs_of(test["name"] for test in chosen)))
        return 0
    plan = Plan(build)
    for name in names:
        if not plan.add(name):
            return refuse(name, plan.names())
    if not build.ninja(plan.targets()):
        return 1
    plan.resolve_kernels()
    return 0 if run(plan) else 1


if __name__ == "__main__":
    sys.exit(main())
