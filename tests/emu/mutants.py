#!/usr/bin/env python3
"""Checks whether the tests notice a wrong kernel.  mutants.py BUILD [--sanitized BUILD] [--all | --sample N] [--seed S] [FILE…]

Makes mutants of kernels/cuda/ops/*.cu and *.cuh: a barrier left out, a comparison shifted, two strides exchanged, a "+ 1"
dropped. All mutants are compiled into one emulated module, which at run time is a single mutant or none. A first run of the
Python tests finds the tests that run each place. Each mutant then runs the tests of its place until a test fails. A build with
AddressSanitizer makes a second module for survivors, because there an overrun shows. A mutant that takes effect during
compilation is compiled alone. Mutants without any effect are listed in equivalent_mutants.txt, each with a reason. The exit
status is 1 if less than 90 % are caught.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "mutation"))
from module import HERE, Module  # noqa: E402
from places import ROOT, equivalents, kernel_files, mutants_of  # noqa: E402

PYTHON = ROOT / "tests/python"
TESTS = [*sorted(PYTHON.glob("test_ops_*.py")),
         *(PYTHON / f"test_{name}.py" for name in
           "autocast grad_scaler graph indexing index_select optim optim_lists".split())]
# Passes as in CMakeLists.txt: first all tests, then with separate memory for every block, under the sanitizers if
# there is such a module, and then some tests on other devices.
WATCHED = dict(YOKE_NO_CACHING="1")
PASSES = [(None, {}), (None, WATCHED)] + [
    ("apart conv index lengths loss matmul norm pointwise random reduce rows sort values".split(),
     dict(YOKE_EMU_THREADS=threads, YOKE_EMU_SEED=seed, FAKE_CUDA_SEED=seed, FAKE_CUDA_MULTIPROCESSORS="1"))
    for seed, threads in (("1", "64"), ("2", "512"))]
LEAST = 90  # % that must be caught
SANITIZED_COST = 10  # times the seconds that a test takes without sanitizers
STATE_BYTES = 4096


class Bench:
    """Runs pytest with the plugin of mutation/mutant_runner.py on a module."""

    def __init__(self, module, variables={}):
        self.build, self.folder, self.variables = module.build, module.folder, variables

    def run(self, tests, library, variables={}, **plan):
        """Returns the lines that the runner printed."""
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            own = pathlib.Path(own)
            (own / "state").write_bytes(bytes(STATE_BYTES))
            (own / "result").touch()
            (own / "plan.json").write_text(json.dumps(dict(plan, state=f"{own}/state", result=f"{own}/result")))
            driver = self.build / "tests/fakes/cuda/driver"
            path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = dict(os.environ, YOKE_TEST_DEVICE="cuda", YOKE_CUDA_LIB_PATH=str(driver), PYTHONPATH=path,
                               YOKE_CUDNN_ENABLED="0", YOKE_MUTANTS=f"{own}/state", YOKE_MUTANTS_PLAN=f"{own}/plan.json", OMP_NUM_THREADS="1",
                               OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **variables, **self.variables)
            command = [self.build / "env", "env", f"LD_LIBRARY_PATH={library}:{driver}", sys.executable, "-m", "pytest",
                       "-q", "--tb=line", "--capture=sys", "-p", "no:cacheprovider", "-p", "mutant_runner", *tests]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
            lines = [json.loads(line) for line in (own / "result").read_text().splitlines()]
            if done.returncode not in (0, 1):  # 1: a test fails, which the lines tell
                raise SystemExit(f"the tests did not run:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
            return lines

    def records(self, tests, jobs):
        """Returns the places that each test runs. For an unchanged test file, earlier results are used."""
        helpers = [p for p in sorted(PYTHON.iterdir()) if p.is_file() and not p.name.startswith("test_")]
        shared = digest([self.folder / "libyoke_cuda.so", self.build / "lib/libyoke.so", *helpers])
        kept = {path: self.folder / f"{path.stem}-{digest([path], shared)}.jsonl" for path in tests}

        def record(path):
            if not kept[path].exists():
                lines = self.run([path], self.folder)
                kept[path].write_text("".join(json.dumps(line) + "\n" for line in lines))
            return [json.loads(line) for line in kept[path].read_text().splitlines()]

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            found = [line for lines in pool.map(record, tests) for line in lines]
        broken = [line["test"] for line in found if not line["passed"]]
        if broken or not found:
            raise SystemExit("These fail without a mutant:\n" + "\n".join(broken))
        return found


def digest(paths, begin=""):
    sum_of = hashlib.sha256(begin.encode())
    for path in paths:
        sum_of.update(path.read_bytes())
    return sum_of.hexdigest()[:16]


def sanitized_bench(build, mutants, jobs):
    """Returns a bench for a module built with AddressSanitizer. The sanitizer's runtime must be preloaded into Python, which is
    built without it.
    """
    module = Module(build)
    module.build_all(mutants, jobs)
    runtime = " ".join(module.file_of_compiler(name) for name in ("libasan.so", "libstdc++.so"))
    return Bench(module, dict(LD_PRELOAD=runtime, ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1"))


class Judge:
    def __init__(self, bench, sanitized, module, mutants, options):
        self.bench, self.sanitized, self.module, self.options = bench, sanitized, module, options
        self.mutants = {m.number: m for m in mutants}
        self.verdicts = {}

    def look(self, records):
        """Sets {place: tests that run the place} and {file: tests that run a place of the file}, each test as [test, seconds]."""
        self.of_place, of_file = collections.defaultdict(list), collections.defaultdict(dict)
        for line in records:
            for number in line["ran"]:
                self.of_place[number].append([line["test"], line["seconds"]])
                if number in self.mutants:
                    of_file[self.mutants[number].path.name][line["test"]] = line["seconds"]
        self.of_file = {name: [list(test) for test in tests.items()] for name, tests in of_file.items()}

    def end(self, mutant, verdict, by=None, **more):
        self.verdicts[mutant.number] = verdict
        print(f"{verdict:16} {mutant}" + (f"  [{by}]" if by else ""), flush=True)

    def meet(self, jobs, library=None):
        """Runs the tests of each job's mutant, in a library of its own or in the common library. Survivors run some of the tests
        again in the next pass.
        """
        for files, variables in PASSES:
            if files:
                names = {f"tests/python/test_{name}.py" for name in ("optim", *(f"ops_{file}" for file in files))}
                jobs = [dict(job, tests=[t for t in job["tests"] if t[0].split("::")[0] in names]) for job in jobs]
            jobs = [job for job in jobs if job["tests"]]
            if not jobs:
                return
            tests = sorted({test.split("::")[0] for job in jobs for test, _ in job["tests"]})
            bench = self.sanitized if variables is WATCHED and self.sanitized and not library else self.bench
            survivors = set()
            seconds = self.options.seconds / (SANITIZED_COST if bench is self.sanitized else 1)
            for line in bench.run(tests, library or bench.folder, variables, jobs=jobs, until=self.until, seconds=seconds):
                mutant = self.mutants[line.pop("number")]
                self.end(mutant, **line)
                if line["verdict"] == "survived":
                    survivors.add(mutant.number)
            jobs = [job for job in jobs if job["number"] in survivors]

    def together(self, mutants):
        """Judges mutants of the common module."""
        self.meet([dict(number=m.number, file=m.path.name, tests=self.of_place[m.number]) for m in mutants])

    def alone(self, mutant):
        users = self.module.users(mutant.path)
        if not users:
            return self.end(mutant, "not built")
        tests = {test: seconds for name in {mutant.path.name, *users} for test, seconds in self.of_file.get(name, [])}
        with tempfile.TemporaryDirectory(dir=self.bench.folder) as folder:
            folder = pathlib.Path(folder)
            if not self.module.build_alone(mutant, folder):
                return self.end(mutant, "does not compile")
            self.verdicts[mutant.number] = "survived"  # unless a test says otherwise
            self.meet([dict(number=mutant.number, file=mutant.path.name, tests=list(tests.items()))], folder)

    def judge(self, chosen):
        self.until = time.time() + 60 * self.options.minutes
        together = [m for m in chosen if m.edit and self.of_place[m.number]]
        jobs = self.options.jobs
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            tasks = [pool.submit(self.together, together[i::jobs]) for i in range(jobs)]
            tasks += [pool.submit(self.alone, m) for m in chosen if m not in together]
            for task in tasks:
                if time.time() > self.until:
                    pool.shutdown(cancel_futures=True)
                    break
                task.result()


def choose(mutants, count, seed):
    """Returns a sample with at least two of every file, in a random order."""
    chance = random.Random(seed)
    order = chance.sample(mutants, len(mutants))
    of_file, first, rest = collections.Counter(), [], []
    for mutant in order:
        (first if of_file[mutant.path] < 2 else rest).append(mutant)
        of_file[mutant.path] += 1
    return first + rest[:max(0, count - len(first))]


def report(judge, mutants):
    count = collections.Counter(judge.verdicts.values())
    caught = count["caught"] + count["too long"]
    survivors = [judge.mutants[n] for n, verdict in sorted(judge.verdicts.items()) if verdict == "survived"]
    if survivors:
        print("Survivors:", *survivors, sep="\n  ")
    files = {judge.mutants[number].path for number in judge.verdicts}
    print(", ".join(f"{number} {verdict}" for verdict, number in count.most_common()),
          f"of {len(judge.verdicts)} mutants in {len(files)} files; {len(mutants)} in all")
    if not caught:
        print("none was caught")
        return 1
    share = 100 * caught / (caught + len(survivors))
    print(f"{share:.1f} % of {caught + len(survivors)} caught")
    return 0 if share >= LEAST else 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sanitized", type=pathlib.Path, help="a build with AddressSanitizer")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--sample", type=int, default=250)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=600, help="judge no longer than that")
    parser.add_argument("--seconds", type=float, default=60, help="of tests that a mutant meets before it has survived")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--tests", nargs="+", help="names of test files: only these, test_NAME.py")
    parser.add_argument("--only", type=int, nargs="+", help="these numbers of --list --all")
    return parser.parse_args()


def main():
    options = parse()
    every = [m for p in kernel_files() for m in mutants_of(p)]
    for number, mutant in enumerate(every, 1):
        mutant.number = number
    known = equivalents()
    stale = known - {m.key() for m in every}
    if stale:
        raise SystemExit("\n".join(["equivalent_mutants.txt names no mutant:", *map(" | ".join, sorted(stale))]))
    mutants = [m for m in every if m.key() not in known and (not options.files or m.path.name in options.files)]
    print(f"{len(mutants)} mutants, {len(every) - len(mutants)} left out; seed {options.seed}", flush=True)
    chosen = choose(mutants, len(mutants) if options.all else options.sample, options.seed)
    if options.only:
        chosen = [m for m in every if m.number in options.only]
    if options.list:
        print(*(f"{m.number}: {m}" for m in sorted(chosen, key=lambda m: m.number)), sep="\n")
        return 0
    module = Module(options.build.resolve())
    module.build_all(every, options.jobs)
    bench = Bench(module)
    sanitized = options.sanitized and sanitized_bench(options.sanitized.resolve(), every, options.jobs)
    judge = Judge(bench, sanitized, module, every, options)
    tests = [p for p in TESTS if not options.tests or p.stem.removeprefix("test_") in options.tests]
    judge.look(bench.records(tests, options.jobs))
    judge.judge(chosen)
    return report(judge, mutants)


if __name__ == "__main__":
    sys.exit(main())
