"""Cost of mixed precision beside the work itself: autocast's calls, its share of a GPT step, the scaler's share of a step.

./dev bench amp [--json FILE] [--rounds N]
"""

import statistics
import sys

from bench import WORKERS, Report, Worker, ratio, rounds, torch_workers

CASES = ["mm", "mm, weight"]
CALL, LOGIC, SCALER = 0.35, 0.01, {"GPT": 0.02, "main job": 0.05}  # the most that the ratios may be


def share(parts, whole):
    parts = sorted(part / whole for part in parts)
    quarter = len(parts) // 4
    return {"median": statistics.median(parts), "low": parts[quarter], "high": parts[-1 - quarter]}


def measure_calls(report, workers, number):
    for case in CASES:
        times = rounds({role: (worker, case) for role, worker in workers.items()}, number, 0.02)
        report.calls(case, times)
        for role in list(workers)[1:]:
            report.target(f"{case}: Yoke / {role}", ratio(times, "Yoke", role), CALL, at_most=True)


def measure_logic(report, yoke, number):
    """Measures a step's calls in float64, never cast by autocast, in a net so small that only calls count."""
    times = rounds({"inside": (yoke, "logic inside"), "outside": (yoke, "logic outside")}, number, 0.1)
    step = statistics.median(yoke.measure("step GPT", 2) for _ in range(5))
    logic = [max(a - b, 0.0) for a, b in zip(times["inside"], times["outside"])]
    print(f"\nshares of a step (GPT: {1e3 * step:.1f} ms)")
    print(f"  autocast's own logic: {1e6 * statistics.median(logic):.1f} us in a forward pass of GPT")
    report.target("autocast's own logic / step of GPT, bf16", share(logic, step), LOGIC, at_most=True)


def measure_scaler(report, yoke, number):
    for job, most in SCALER.items():
        times = rounds({"scaler": (yoke, f"scaler {job}"), "step": (yoke, f"step {job}")}, number, 0.2)
        print(f"  {job}: scaler {1e3 * statistics.median(times['scaler']):.3f} ms,"
              f" step {1e3 * statistics.median(times['step']):.2f} ms")
        report.target(f"scaler / step of {job}, bf16", ratio(times, "scaler", "step"), most, at_most=True)


def main():
    report = Report("amp")
    yoke = Worker(sys.executable, WORKERS / "amp_yoke.py")
    workers = {"Yoke": yoke, **torch_workers(WORKERS / "amp_torch.py")}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    number = report.options.rounds or 15
    measure_calls(report, workers, number)
    measure_logic(report, yoke, number)
    measure_scaler(report, yoke, number)
    report.finish()


if __name__ == "__main__":
    main()
