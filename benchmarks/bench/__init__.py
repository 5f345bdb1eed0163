"""Common parts of the benchmarks: workers that measure, rounds that interleave the workers, and the report.

A worker is a program in any language that stays alive and measures on request. It reads lines "CASE COUNT" and answers each with
the seconds of one of COUNT repetitions. The end of its input stops the worker. An answer with "!" in front says why a case cannot
be measured. Contestants measure in turn, round after round, so that a disturbance of the machine affects all.
"""

import argparse
import ctypes
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS = ROOT / "benchmarks" / "workers"
BUILT = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", ROOT / "build" / "release")) / "benchmarks"
EVERY_ISA = ROOT / "build" / "release"  # a build with the kernels of every instruction set
NEWEST_TORCH = ROOT / "build" / "torch-venv" / "bin" / "python"
DEBIAN_PYTHON = pathlib.Path("/usr/bin/python3")


class CaseError(RuntimeError):
    """Case that a worker cannot measure; the worker continues with other cases."""


class Worker:
    """Measuring process; the first line is its description."""

    def __init__(self, *command):
        paths = [str(ROOT / "examples"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
        variables = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.pathsep.join(filter(None, paths)))
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(self.command, env=variables, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.about = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self.command)} ended with status {self.process.wait()}")
        return line.strip()

    def measure(self, case, count):
        """Returns the seconds of a repetition."""
        self.ask(case, count)
        return self.answer()

    def ask(self, case, count):
        self.process.stdin.write(f"{case} {count}\n")

    def answer(self):
        answer = self._answer()
        if answer.startswith("!"):
            raise CaseError(answer[1:].strip())
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(about, measure):
    """Runs a worker in Python: measure(case, count) returns the seconds of a repetition, or raises."""
    print(about, flush=True)
    for line in sys.stdin:
        case, count = line.rsplit(" ", 1)
        try:
            answer = repr(measure(case, int(count)))
        except Exception as error:
            traceback.print_exc()
            answer = f"! {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        print(answer, flush=True)


def hold_torch(torch, threads):
    """Keeps PyTorch to so many threads, and the OpenBLAS beneath Debian's, whose own team torch.set_num_threads leaves alone."""
    torch.set_num_threads(threads)
    try:
        openblas = ctypes.CDLL("libopenblas.so.0", mode=os.RTLD_NOLOAD)
    except OSError:
        return  # this PyTorch multiplies without it
    openblas.openblas_set_num_threads(threads)


def rounds(contestants, number, seconds):
    """Returns {name: seconds of one repetition, in each round} for {name: (worker, case)}.

    Each measurement takes about `seconds`. Every other round has the reverse order, so that no worker is always first.
    """
    counts, times = {}, {name: [] for name in contestants}
    for name, (worker, case) in contestants.items():
        count, took = 1, 0.0
        while True:
            took = worker.measure(case, count)
            if took * count >= seconds / 20:
                break
            count *= 4
        counts[name] = max(1, round(seconds / took))
    for i in range(number):
        for name in list(contestants)[:: -1 if i % 2 else 1]:
            worker, case = contestants[name]
            times[name].append(worker.measure(case, counts[name]))
    return times


def ratio(times, one, other):
    """Returns how many times as long `one` took as `other`: the median over rounds, and the middle half of the rounds."""
    pairs = sorted(a / b for a, b in zip(times[one], times[other]))
    quarter = len(pairs) // 4
    return {"median": statistics.median(pairs), "low": pairs[quarter], "high": pairs[-1 - quarter]}


class Report:
    """Prints lines, and keeps their figures for --json."""

    def __init__(self, name):
        parser = argparse.ArgumentParser(description=f"The benchmark {name}.")
        parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
        parser.add_argument("--rounds", type=int, help="rounds of measurements")
        self.options = parser.parse_args()
        self.data = {"benchmark": name, "date": datetime.date.today().isoformat(), "machine": machine(),
                     "load": os.getloadavg(), "peers": {}, "results": []}
        print(f"{self.data['date']}  {self.data['machine']}  load {os.getloadavg()[0]:.2f}")

    def peer(self, role, about):
        self.data["peers"][role] = about
        print(f"{role}: {about}")

    def result(self, name, value, spread, unit, **more):
        """Adds a figure: its median, and the least and most of the rounds."""
        self.data["results"].append({"name": name, "value": value, "spread": spread, "unit": unit, **more})

    def calls(self, case, times):
        """Prints and keeps the cost of a call, in nanoseconds, for each contestant of a case."""
        print(f"\n{case}")
        for name, seconds in times.items():
            nanoseconds = [1e9 * s for s in seconds]
            low, high = min(nanoseconds), max(nanoseconds)
            self.result(f"{case}: {name}", statistics.median(nanoseconds), [low, high], "ns")
            print(f"  {name:20} {statistics.median(nanoseconds):8.0f} ns  ({low:.0f} to {high:.0f})")

    def target(self, name, got, wanted, at_most, **more):
        """Adds a ratio beside its target; `got` as from ratio()."""
        met = got["median"] <= wanted if at_most else got["median"] >= wanted
        self.data["results"].append({"name": name, "ratio": got, "target": wanted, "met": met, **more})
        sign = "<=" if at_most else ">="
        print(f"  {name:52} {got['median']:6.3f}  ({got['low']:.3f} to {got['high']:.3f})   target {sign} {wanted}"
              f"   {'met' if met else 'MISSED'}")

    def finish(self):
        print(f"load at the end {os.getloadavg()[0]:.2f}")
        if self.options.json:
            pathlib.Path(self.options.json).write_text(json.dumps(self.data, indent=1) + "\n")


def machine():
    """Returns the CPU's name from the kernel, and the number of CPUs."""
    model = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(": ", 1)[1]
            break
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, {platform.system()} {platform.release()}"


def torch_workers(script):
    """Returns {role: Worker} of a script for each present PyTorch; prints which is missing."""
    found = {}
    for role, python in (("newest PyTorch", NEWEST_TORCH), ("Debian's PyTorch", DEBIAN_PYTHON)):
        if not python.exists():
            print(f"{role}: not found ({python}); see benchmarks/README.md")
            continue
        try:
            found[role] = Worker(python, script)
        except RuntimeError as error:
            print(f"{role}: {error}")
    return found
