"""Cost of a start: `import yoke`, `require "yoke"`, an inventory of 8 cards, and the `yoke` command.

    ./dev bench startup [--json FILE] [--rounds N]

Each measurement is a separate process. The eight cards are those of the scenario 8xH100-nvlink of tests/fakes/edge.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from bench import BUILT, ROOT, Report

sys.path.insert(0, str(ROOT / "tests" / "fakes" / "edge"))

IMPORT = [sys.executable, "-c"]
# Lua prints its own processor seconds, because its interpreter starts in less than a clock tick of the process.
REQUIRE = ["lua5.4", "-e", 'local t = os.clock(); require "yoke"; print(os.clock() - t)']


def with_bytecode(folder):
    """Returns the variables of a Python that keeps its bytecode, like an installed package's."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return dict(kept, PYTHONPYCACHEPREFIX=str(folder))


def cpu_seconds(command, variables):
    """Returns the processor seconds of a process and of its children, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wall_seconds(command, variables):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=variables)
    return time.perf_counter() - start


def told_seconds(command, variables=None):
    """Returns the number printed by the process."""
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout)


def spread(values):
    values = sorted(values)
    quarter = len(values) // 4
    return {"median": statistics.median(values), "low": values[quarter], "high": values[-1 - quarter]}


def machine_of_eight(folder):
    """Returns the variables under which Yoke sees eight cards."""
    import render
    render.render("8xH100-nvlink", pathlib.Path(folder))
    lines = pathlib.Path(folder, "environment").read_text().splitlines()
    return dict(os.environ, **dict(line.split("=", 1) for line in lines if line))


def main():
    report = Report("startup")
    count = report.options.rounds or 21
    milliseconds = {name: [] for name in ("import", "require", "inventory", "devices")}
    with tempfile.TemporaryDirectory() as folder:
        eight = machine_of_eight(folder)
        command = [BUILT.parent / "bin" / "yoke", "devices"]
        python = with_bytecode(pathlib.Path(folder, "bytecode"))
        cpu_seconds([*IMPORT, "import yoke"], python)  # compiles it
        for _ in range(count):
            plain = cpu_seconds([*IMPORT, "pass"], python)
            milliseconds["import"].append(1e3 * (cpu_seconds([*IMPORT, "import yoke"], python) - plain))
            milliseconds["require"].append(1e3 * told_seconds(REQUIRE))
            milliseconds["inventory"].append(1e3 * told_seconds([BUILT / "startup_inventory"], eight))
            milliseconds["devices"].append(1e3 * wall_seconds(command, eight))
    for name, what, wanted in (("import", "import yoke: ms of CPU beyond the interpreter's own", 40),
                               ("require", "require \"yoke\": ms of CPU", 10),
                               ("inventory", "8 cards, first inventory of a process: ms", 5),
                               ("devices", "yoke devices over 8 cards, whole process: ms", 50)):
        report.target(what, spread(milliseconds[name]), wanted, at_most=True)
    report.finish()


if __name__ == "__main__":
    main()
