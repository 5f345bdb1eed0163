"""A step of a net under Nsight Compute: `ncu.py NET --ncu PROGRAM --json FILE --keep FOLDER [--small]`.

The kernels of the step, added up by name, become figures of the report; the tool's table goes to FOLDER/profile-NET.csv.gz. Without
leave to read the counters the last line says why nothing is profiled. Clocks stay as they are.
"""

import argparse
import collections
import csv
import gzip
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER = ROOT / "benchmarks" / "workers" / "gpu_yoke.py"
SHOWN = 30  # kernels of the report, the longest first
REFUSED = ("ERR_NVGPUCTRPERM", "LibraryNotLoaded", "Failed to initialize the profiler", "No kernels were profiled")
DURATION, MEMORY, COMPUTE = "Duration", "Memory Throughput", "Compute (SM) Throughput"
UNITS = {"nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1.0, "s": 1.0}


def launches(text):
    """Returns [{"kernel", metric: number}] of ncu's table, a launch each."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found = collections.defaultdict(dict)
    for row in csv.DictReader(lines[first:]):
        metric, value = row.get("Metric Name"), (row.get("Metric Value") or "").replace(",", "")
        if not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", value):
            continue
        launch = found[row["ID"]]
        launch["kernel"] = short(row["Kernel Name"])
        if metric == DURATION:
            launch[metric] = float(value) * UNITS[row["Metric Unit"]]
        elif metric in (MEMORY, COMPUTE) and row["Metric Unit"] == "%":
            launch[metric] = float(value)
    return [launch for launch in found.values() if DURATION in launch]


def short(name):
    """Returns a kernel's name without its parameters."""
    return re.sub(r"^void ", "", name).split("(")[0][:100]


def add_up(found):
    """Returns [(kernel, launches, seconds, share of memory's peak, share of the multiprocessors' peak)], the longest first."""
    kernels = collections.defaultdict(list)
    for launch in found:
        kernels[launch["kernel"]].append(launch)
    rows = []
    for name, many in kernels.items():
        seconds = sum(launch[DURATION] for launch in many)
        shares = [sum(launch.get(metric, 0.0) * launch[DURATION] for launch in many) / 100 for metric in (MEMORY, COMPUTE)]
        rows.append((name, len(many), seconds, *(share / seconds if seconds else 0.0 for share in shares)))
    return sorted(rows, key=lambda row: -row[2])


def figures(net, found):
    """Returns the figures of a step, as benchmarks/bench/gpu_report.py has them."""
    group, rows = f"Kernels of a step of {net}, by ncu", add_up(found)
    whole = sum(row[2] for row in rows)

    def one(name, seconds, note):
        return {"group": group, "name": name, "case": f"profile {net}", "value": seconds, "spread": [seconds, seconds], "unit": "s", "note": note}

    return [one(f"all {len(found)} launches of {net}", whole, f"{len(rows)} kernels"),
            *(one(name, seconds, f"{count} launches, {seconds / whole:.1%} of the time, {memory:.0%} of memory's peak, {compute:.0%} of the multiprocessors'")
              for name, count, seconds, memory, compute in rows[:SHOWN])]


def profile(options):
    """Runs the tool; returns (what it printed, its table)."""
    table = pathlib.Path(options.json).with_suffix(".csv")
    table.unlink(missing_ok=True)
    command = [options.ncu, "--set", "basic", "--csv", "--page", "details", "--log-file", str(table), "--profile-from-start", "off", "--clock-control", "none",
               "--target-processes", "application-only", sys.executable, str(WORKER), options.device, "--profile", options.net, *["--small"] * options.small]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    text = table.read_text(encoding="utf-8", errors="replace") if table.exists() else ""
    return done.returncode, done.stdout, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("net")
    parser.add_argument("--ncu", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", required=True, help="file for the figures")
    parser.add_argument("--keep", required=True, help="folder for the tool's table")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    status, said, text = profile(options)
    print(said, end="")
    found = launches(text)
    if not found:
        print(text[-2000:])
        reason = next((re.sub(r"^==\w+==\s*", "", line) for line in (said + "\n" + text).splitlines() if any(word in line for word in REFUSED)), "")
        print(f"nothing is profiled: {reason}" if reason else f"ncu ended with status {status} and without a table")
        return 0 if reason else 1
    with gzip.open(pathlib.Path(options.keep) / f"profile-{options.net}.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    data = {"head": {}, "results": figures(options.net, found), "missing": []}
    pathlib.Path(options.json).write_text(json.dumps(data, indent=1) + "\n")
    print(f"{len(found)} launches, {data['results'][0]['value'] * 1e3:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
