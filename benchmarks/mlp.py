"""The main job's training loop, in float32 and with bfloat16 autocast: images a second beside its floor, Debian's PyTorch
and the newest one.

    ./dev bench mlp [--json FILE] [--rounds N]
"""

import pathlib
import statistics
import sys

from bench import BUILT, WORKERS, Report, Worker, ratio, rounds, torch_workers

BATCH = 128
FLOOR, DEBIAN, NEWEST = 0.85, 1.5, 1.0  # the least that the ratios may be


def blas():
    """Returns the library with which Debian's PyTorch multiplies."""
    found = pathlib.Path("/usr/lib/x86_64-linux-gnu/libblas.so.3")
    return found.resolve() if found.exists() else "unknown"


def best(times, who):
    """Returns the name of `who` in float32 at the fastest number of threads."""
    plain = (name for name in times if name.startswith(who) and "bf16" not in name)
    return min(plain, key=lambda name: statistics.median(times[name]))


def main():
    report = Report("mlp")
    workers = {"floor": Worker(BUILT / "mlp_floor"), "Yoke": Worker(sys.executable, WORKERS / "mlp_yoke.py")}
    workers |= torch_workers(WORKERS / "mlp_torch.py")
    for role, worker in workers.items():
        note = f", BLAS {blas()}" if role.startswith("Debian") else ""
        report.peer(role, worker.about + note)
    contestants = {f"{role}{', bf16' if amp == 'bf16' else ''}, {threads} thread{'s' if threads > 1 else ''}":
                   (worker, f"{'floor' if role == 'floor' else 'train'} {amp} {threads}")
                   for amp in ("off", "bf16") for threads in (1, 2) for role, worker in workers.items()}
    times = rounds(contestants, report.options.rounds or 15, 0.4)
    print()
    for name, seconds in times.items():
        speeds = [BATCH / s for s in seconds]
        report.result(name, statistics.median(speeds), [min(speeds), max(speeds)], "images/s")
        print(f"  {name:30} {statistics.median(speeds):8.0f} images/s  ({min(speeds):.0f} to {max(speeds):.0f})")
    print()
    for how in ("1 thread", "2 threads", "bf16, 1 thread", "bf16, 2 threads"):
        report.target(f"Yoke / floor, {how}", ratio(times, f"floor, {how}", f"Yoke, {how}"), FLOOR, False)
    if "Debian's PyTorch" in workers:
        ours, theirs = best(times, "Yoke"), best(times, "Debian")
        report.target(f"{ours} / {theirs}", ratio(times, theirs, ours), DEBIAN, False)
    if "newest PyTorch" in workers:
        for how in ("2 threads", "bf16, 2 threads"):
            got = ratio(times, f"newest PyTorch, {how}", f"Yoke, {how}")
            report.target(f"Yoke / newest PyTorch, {how}", got, NEWEST, False)
    report.finish()


if __name__ == "__main__":
    main()
