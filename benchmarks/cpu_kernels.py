"""The CPU kernels over 16 MiB of float32, forward: beside Debian's PyTorch, the newest PyTorch, and a copy in the same run.

Layer norm is measured over 512 MiB too, more than any cache holds: if 16 MiB lie in a cache, a copy shows the cache's speed.

    ./dev bench cpu-kernels [--json FILE] [--rounds N]
"""

import statistics
import sys

from bench import WORKERS, Report, Worker, ratio, rounds, torch_workers

MIB, FAR_MIB = 16, 512  # input size

# {case: (blocks of the input's size read and written, least speed as a multiple of Debian's PyTorch, least part of the
# copy's speed)}
CASES = {
    "gelu": (2, 1.3, None),
    "gelu tanh": (2, None, 0.45),
    "layer_norm": (2, 1.5, 0.8),
    "far layer_norm": (2, 1.5, 0.8),
    "softmax": (2, 1.9, 0.42),
    "cross_entropy": (1, 1.3, None),
    "adamw": (7, 2.1, 0.75),
}


def of_copy(times, copy, ours, blocks):
    """Returns Yoke's speed in bytes a second as a part of the copy's; a copy reads a block and writes a block."""
    got = ratio(times, copy, ours)
    return {key: value * blocks / 2 for key, value in got.items()}


def measure(report, case, threads, workers, copier):
    blocks, debian, copy = CASES[case]
    contestants = {role: (worker, f"{case} {threads}") for role, worker in workers.items()}
    far = case.startswith("far ")
    contestants["copy"] = (copier, f"{'far ' if far else ''}copy {threads}")
    times = rounds(contestants, report.options.rounds or 15, 0.05)
    name = f"{case.removeprefix('far ')}{f' over {FAR_MIB} MiB' if far else ''}, {threads} thread{'s' if threads > 1 else ''}"
    print(f"\n{name}")
    for role, seconds in times.items():
        moved = (2 if role == "copy" else blocks) * (FAR_MIB if far else MIB) * 2**20 / 1e9
        speeds = [moved / s for s in seconds]
        low, high = min(speeds), max(speeds)
        report.result(f"{name}: {role}", statistics.median(speeds), [low, high], "GB/s")
        print(f"  {role:20} {1e3 * statistics.median(seconds):8.3f} ms  {statistics.median(speeds):6.1f} GB/s"
              f"  ({low:.1f} to {high:.1f})")
    for role, least in (("Debian's PyTorch", debian), ("newest PyTorch", 1.0)):
        if role not in times:
            continue
        if least:
            report.target(f"{name}: Yoke / {role}", ratio(times, role, "Yoke"), least, at_most=False)
        else:
            got = ratio(times, role, "Yoke")
            print(f"  {f'{name}: Yoke / {role}':52} {got['median']:6.3f}  ({got['low']:.3f} to {got['high']:.3f})")
    if copy:
        report.target(f"{name}: Yoke / copy", of_copy(times, "copy", "Yoke", blocks), copy, at_most=False)


def main():
    report = Report("cpu-kernels")
    yoke = Worker(sys.executable, WORKERS / "cpu_kernels_yoke.py")
    workers = {"Yoke": yoke, **torch_workers(WORKERS / "cpu_kernels_torch.py")}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    for threads in (1, 2):
        for case in CASES:
            measure(report, case, threads, workers, yoke)
    report.finish()


if __name__ == "__main__":
    main()
