"""`./dev gpu` end to end on the emulated device, in three calls on three machines: `emulated.py [--minutes 60] [--fast 10]`.

The build is real, by cmake, ninja and nvcc, as on a machine without a card. Results that cannot run without a card are exchanged:
the module for the emulated module, and gpu_floor, compute-sanitizer and ncu for stand-ins. The build is marked as a build of
another Python, so the next machine must build the Python extension. Then all parts run again with a fast clock, too fast for most
parts. This run must end in time, and must report every part.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WORK = ROOT / "build" / "rehearsal"
# PyTorch finds no card: a case without another peer has no figures, and its line has the reason.
BY_TORCH = {"torch.compile, once", "bench attention", "bench images", "bench main", "bench steps"}
CALLS = ("proof", "speed", "rest")
DRIVER = WORK / "built" / "cuda" / "tests" / "fakes" / "cuda" / "driver"


def call(machine, *options, clock=1, report="h200", **more):
    """Returns (exit status, {part: outcome}, real seconds) of a call of `./dev gpu` on a machine of its own."""
    folder = WORK / machine
    variables = {**os.environ, "PATH": f"{HERE / 'emulated'}:{os.environ['PATH']}", "YOKE_GPU_CLOCK": str(clock), "YOKE_GPU_FOLDER": str(folder),
                 "YOKE_CUDA_LIB_PATH": str(DRIVER), "LD_LIBRARY_PATH": str(DRIVER), **more}
    results, begun = WORK / f"{machine}-results", time.monotonic()
    command = [sys.executable, "-B", "tests/gpu/run.py", "--results", str(results), *map(str, options)]
    status = subprocess.run(command, cwd=ROOT, env=variables).returncode
    data = json.loads((results / f"RESULTS-{report}{'-small' * ('--small' in options)}.json").read_text())
    return status, {one["name"]: one["status"] for one in data["parts"]}, data, time.monotonic() - begun


def exchange(archive):
    """Puts the emulated module, the stand-in of gpu_floor and another Python's name into a packed build."""
    opened = WORK / "opened"
    shutil.rmtree(opened, ignore_errors=True)
    pieces = sorted(archive.parent.glob(f"{archive.name}.[0-9][0-9]"))
    if pieces:
        archive.write_bytes(b"".join(piece.read_bytes() for piece in pieces))
        for piece in pieces:
            piece.unlink()
    with tarfile.open(archive, "r:xz") as packed:
        names = packed.getnames()
        packed.extractall(opened, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    shutil.copy(WORK / "built/cuda/tests/emu/lib/libyoke_cuda.so", opened / "lib/libyoke_cuda.so")
    shutil.copy(HERE / "emulated/gpu_floor", opened / "benchmarks/gpu_floor")
    mark = opened / "gpu-build.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "python": "2.7 (.so)"}) + "\n")
    with tarfile.open(archive, "w:xz", preset=1) as packed:
        for name in names:
            packed.add(opened / name, name)
    shutil.rmtree(opened)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="for each call with the true clock")
    parser.add_argument("--fast", type=float, default=10, help="how fast the other clock runs")
    parser.add_argument("--again", action="store_true", help="with the build of the last rehearsal")
    options = parser.parse_args()
    for name in (*CALLS, "hurried"):
        for folder in (WORK / name, WORK / f"{name}-results"):
            shutil.rmtree(folder, ignore_errors=True)
    wrong = []

    def judge(what, right):
        if not right:
            wrong.append(what)

    carried = WORK / "built-results"
    if not options.again:
        status, outcomes, data, _ = call("built", "--small", "--only", "build", "--card", "9.0", "--minutes", options.minutes, report="sm-90")
        if status or not {"build, packed", "emulated half of compare", "what travels"} <= set(outcomes):
            print(f"wrong: the build: {outcomes}", file=sys.stderr)
            return 1
    exchange(carried / "build-90.tar.xz")
    every = set()
    for name in CALLS:
        status, outcomes, data, _ = call(name, "--only", name, "--small", "--minutes", options.minutes, "--from", carried)
        bad = {part for part, outcome in outcomes.items() if outcome not in ("passed", "skipped")}
        judge(f"{name}: parts that failed beyond those by PyTorch: {sorted(bad - BY_TORCH)}", not bad - BY_TORCH)
        judge(f"{name}: the Python extension of the machine that takes over", outcomes.get("build of the Python extension") == "passed")
        for file in ("build-90.tar.xz", "emulated.npz"):
            shutil.copy(carried / file, WORK / f"{name}-results")
        carried, every = WORK / f"{name}-results", every | set(outcomes)
    judge("the report of all calls", len(data["calls"]) == len(CALLS) and {"contract suite", "profile of GPT-2", "bench mixed"} <= set(outcomes))
    judge("figures of kernels", sum(one["group"].startswith("Memory-bound") for one in data["results"]) >= 19)

    minutes = 9.5
    status, outcomes, _, seconds = call("hurried", "--minutes", minutes, "--from", WORK / "built-results", clock=options.fast)
    judge(f"the hurried run: {seconds:.0f} s of {60 * minutes / options.fast:.0f}", seconds < 60 * minutes / options.fast + 3)
    judge(f"parts of which the hurried run tells nothing: {sorted(every - set(outcomes))}", every <= set(outcomes))
    for text in wrong:
        print(f"wrong: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
