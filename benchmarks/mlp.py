"""The main job's training loop: images a second beside its floor, Debian's PyTorch and the newest one.

    ./dev bench mlp [--json FILE] [--rounds N]
"""

import pathlib
import statistics
import sys

from bench import BUILT, WORKERS, Report, Worker, ratio, rounds, torch_workers

BATCH = 128
FLOOR, DEBIAN, NEWEST = 0.85, 1.5, 1.0  # the least that the ratios may be


def blas():
    """The library that Debian's PyTorch multiplies with."""
    found = pathlib.Path("/usr/lib/x86_64-linux-gnu/libblas.so.3")
    return found.resolve() if found.exists() else "unknown"


def best(times, who):
    """The contestant `who` at the number of threads where it is fastest."""
    return min((name for name in times if name.startswith(who)), key=lambda name: statistics.median(times[name]))


def main():
    report = Report("mlp")
    workers = {"floor": Worker(BUILT / "mlp_floor"), "Yoke": Worker(sys.executable, WORKERS / "mlp_yoke.py")}
    workers |= torch_workers(WORKERS / "mlp_torch.py")
    for role, worker in workers.items():
        note = f", BLAS {blas()}" if role.startswith("Debian") else ""
        report.peer(role, worker.about + note)
    contestants = {f"{role}, {threads} thread{'s' if threads > 1 else ''}":
                   (worker, f"{'floor' if role == 'floor' else 'train'} {threads}")
                   for threads in (1, 2) for role, worker in workers.items()}
    times = rounds(contestants, report.options.rounds or 15, 0.4)
    print()
    for name, seconds in times.items():
        speeds = [BATCH / s for s in seconds]
        report.result(name, statistics.median(speeds), [min(speeds), max(speeds)], "images/s")
        print(f"  {name:30} {statistics.median(speeds):8.0f} images/s  ({min(speeds):.0f} to {max(speeds):.0f})")
    print()
    for threads in ("1 thread", "2 threads"):
        report.target(f"Yoke / floor, {threads}", ratio(times, f"floor, {threads}", f"Yoke, {threads}"), FLOOR, False)
    if "Debian's PyTorch" in workers:
        ours, theirs = best(times, "Yoke"), best(times, "Debian")
        report.target(f"{ours} / {theirs}", ratio(times, theirs, ours), DEBIAN, False)
    if "newest PyTorch" in workers:
        got = ratio(times, "newest PyTorch, 2 threads", "Yoke, 2 threads")
        report.target("Yoke / newest PyTorch, 2 threads", got, NEWEST, False)
    report.finish()


if __name__ == "__main__":
    main()
