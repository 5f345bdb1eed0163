"""The training step of examples/gpt.py beside PyTorch's, in float32 and with bfloat16 autocast; its memory; its scaler.

    ./dev bench gpt [--json FILE] [--rounds N]
"""

import statistics
import sys

from bench import WORKERS, Report, Worker, ratio, rounds, torch_workers

TOKENS = 8 * 256  # in a step
FASTER, ACTIVATIONS, SCALER = 1.1, 0.6, 0.02  # targets of the ratios


def main():
    report = Report("gpt")
    yoke = Worker(sys.executable, WORKERS / "gpt_yoke.py")
    workers = {"Yoke": yoke, **torch_workers(WORKERS / "gpt_torch.py")}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    settings = [(amp, threads, f"{'f32' if amp == 'off' else amp}, {threads} thread{'s' if threads > 1 else ''}")
                for amp in ("off", "bf16") for threads in (1, 2)]
    contestants = {f"{role}, {label}": (worker, f"train {amp} {threads}")
                   for amp, threads, label in settings for role, worker in workers.items()}
    times = rounds(contestants, report.options.rounds or 9, 0.5)
    print()
    for name, seconds in times.items():
        speeds = [TOKENS / s for s in seconds]
        report.result(name, statistics.median(speeds), [min(speeds), max(speeds)], "tokens/s")
        print(f"  {name:36} {statistics.median(speeds):8.0f} tokens/s  ({min(speeds):.0f} to {max(speeds):.0f})")
    print()
    for role in list(workers)[1:]:
        for _, _, label in settings:
            got = ratio(times, f"{role}, {label}", f"Yoke, {label}")
            report.target(f"Yoke / {role}, {label}", got, FASTER, False)
    measure_memory(report, yoke)
    measure_scaler(report, yoke, times)
    report.finish()


def measure_memory(report, yoke):
    """Measures a step's memory beside weights, gradients, state and casts of weights; equal in every run."""
    plain, mixed = (yoke.measure(f"activations {amp} 2", 1) for amp in ("off", "bf16"))
    print(f"  activations: f32 {plain / 2**20:.1f} MiB, bf16 {mixed / 2**20:.1f} MiB")
    share = mixed / plain
    report.target("activations, bf16 / f32", {"median": share, "low": share, "high": share}, ACTIVATIONS, True)


def measure_scaler(report, yoke, times):
    step = min(times["Yoke, bf16, 2 threads"])
    shares = sorted(yoke.measure("scaler bf16 2", 10) / step for _ in range(7))
    report.target("scaler / step, bf16, 2 threads", {"median": shares[3], "low": shares[1], "high": shares[5]}, SCALER, True)


if __name__ == "__main__":
    main()
