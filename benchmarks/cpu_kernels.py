"""The CPU kernels over 16 MiB, forward: beside Debian's PyTorch, the newest PyTorch, and a copy in the same run.

Seven kernels in float32 first, then a table of elementwise ops, reductions and others in float32 and bfloat16. Layer norm is measured over 512 MiB too, more than any cache holds: if 16 MiB lie in a cache, a copy shows the cache's speed.

    ./dev bench cpu-kernels [--json FILE] [--rounds N]
"""

import statistics
import sys

from bench import WORKERS, Report, Worker, op_cases, ratio, rounds, torch_workers

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


def mean_of(ratios):
    """Returns the geometric mean of ratios."""
    return {key: statistics.geometric_mean(each[key] for each in ratios) for key in ("median", "low", "high")}


def measure_ops(report, workers):
    """Measures the table of ops with one thread, beside the newest PyTorch."""
    peer = "newest PyTorch"
    if peer not in workers:
        return
    got = {}
    print(f"\nops over {op_cases.MIB} MiB, 1 thread: Yoke / {peer}")
    for name, dtype in op_cases.all_cases():
        contestants = {role: (workers[role], f"op {name} {dtype} 1") for role in ("Yoke", peer)}
        times = rounds(contestants, report.options.rounds or 5, 0.03)
        got[name, dtype] = ratio(times, peer, "Yoke")
        report.result(f"{name} {dtype}: Yoke", statistics.median(times["Yoke"]), [min(times["Yoke"]), max(times["Yoke"])], "s",
                      ratio=got[name, dtype])
        print(f"  {f'{name} {dtype}':40} {got[name, dtype]['median']:7.2f}  {1e3 * statistics.median(times['Yoke']):8.2f} ms", flush=True)
    counted = [each for (name, _), each in got.items() if op_cases.counts(name)]
    slowest = min(got, key=lambda case: got[case]["median"])
    report.target(f"mean of {len(counted)} elementwise ops and reductions", mean_of(counted), 1.0, at_most=False)
    report.target(f"slowest op: {' '.join(slowest)}", got[slowest], 0.7, at_most=False)
    for (name, dtype), each in got.items():
        if name.startswith("bilinear"):
            report.target(f"{name} {dtype}", each, 1.0, at_most=False)


def main():
    report = Report("cpu-kernels")
    yoke = Worker(sys.executable, WORKERS / "cpu_kernels_yoke.py")
    workers = {"Yoke": yoke, **torch_workers(WORKERS / "cpu_kernels_torch.py")}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    for threads in (1, 2):
        for case in CASES:
            measure(report, case, threads, workers, yoke)
    measure_ops(report, workers)
    report.finish()


if __name__ == "__main__":
    main()
