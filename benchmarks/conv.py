"""Convolutions: yoke.conv2d and its gradients beside oneDNN called directly, in one process.

    ./dev bench conv [--json FILE] [--rounds N]

32 images in NHWC order; both sides reorder the weight in each call. "together" is the sum of a convolution and its two gradients.
Without instructions for bfloat16 products (x86-64-v3), Yoke's own loops stand beside float32 through oneDNN.
"""

import pathlib
import statistics

from bench import BUILT, EVERY_ISA, Report, Worker, ratio, rounds

TARGET = 0.97  # share of the direct call's speed
HALF_TARGET = 1.7  # bf16 beside f32, of 3x3 together
LOOP_TARGET = 0.8  # share with x86-64-v3
LOOP_ROUNDS = 9  # in each of which a convolution takes a tenth of a second
ROUNDS, ROUND_SECONDS = 25, 0.03  # so short that a neighbour of the machine mostly disturbs both of a pair
KINDS = ("forward", "data", "weight")
# name: (side, channels in, channels out, kernel, groups)
CASES = {"3x3 64x56": (56, 64, 64, 3, 1), "3x3 128x28": (28, 128, 128, 3, 1), "3x3 256x14": (14, 256, 256, 3, 1),
         "3x3 512x7": (7, 512, 512, 3, 1), "1x1 256 to 64x56": (56, 256, 64, 1, 1), "1x1 256 to 1024x14": (14, 256, 1024, 1, 1),
         "depthwise 128x28": (28, 128, 128, 3, 128)}


def work(side, channels, out, kernel, groups):
    """Returns the floating-point operations of a convolution."""
    return 2 * 32 * side * side * out * (channels // groups) * kernel * kernel


def measure(report, worker, threads, dtype):
    """Returns {case of 3x3: seconds of a convolution and its gradients by Yoke, in each round}."""
    together = {}
    for name, sizes in CASES.items():
        for kind in KINDS:
            where = f"{kind} {dtype} {' '.join(map(str, sizes))} {threads}"
            times = rounds({who: (worker, f"{who} {where}") for who in ("yoke", "onednn")}, report.options.rounds or ROUNDS, ROUND_SECONDS)
            for who, seconds in times.items():
                speeds = [1e-9 * work(*sizes) / s for s in seconds]
                report.result(f"{who} {where}", statistics.median(speeds), [min(speeds), max(speeds)], "GFLOP/s")
            speed = {who: 1e-9 * work(*sizes) / statistics.median(seconds) for who, seconds in times.items()}
            report.target(f"{name} {kind}: {speed['yoke']:.0f} GFLOP/s, oneDNN {speed['onednn']:.0f}", ratio(times, "onednn", "yoke"),
                          TARGET, at_most=False, case=where)
            if name.startswith("3x3"):
                together[name] = [a + b for a, b in zip(together.get(name, [0] * len(times["yoke"])), times["yoke"])]
    return together


def measure_loops(report, worker, threads):
    """Measures bf16 beside f32, with the instructions to which the worker is limited."""
    print(f"\nbf16 beside f32, together, x86-64-v3, {threads} thread{'s' if threads > 1 else ''}")
    for name, sizes in CASES.items():
        if not name.startswith("3x3"):
            continue
        each = rounds({(dtype, kind): (worker, f"yoke {kind} {dtype} {' '.join(map(str, sizes))} {threads}")
                       for dtype in ("f32", "bf16") for kind in KINDS}, report.options.rounds or LOOP_ROUNDS, ROUND_SECONDS)
        times = {dtype: [sum(seconds) for seconds in zip(*(each[dtype, kind] for kind in KINDS))] for dtype in ("f32", "bf16")}
        speed = {dtype: 3e-9 * work(*sizes) / statistics.median(seconds) for dtype, seconds in times.items()}
        report.target(f"{name}: {speed['bf16']:.0f} GFLOP/s, f32 {speed['f32']:.0f}", ratio(times, "f32", "bf16"), LOOP_TARGET,
                      at_most=False, case=f"v3 {name} {threads}")


def main():
    report = Report("conv")
    worker = Worker(BUILT / "conv")
    report.peer("both", worker.about)
    for threads in (1, 2):
        sums = {}
        for dtype in ("f32", "bf16"):
            print(f"\n{dtype}, {threads} thread{'s' if threads > 1 else ''}")
            sums[dtype] = measure(report, worker, threads, dtype)
        print(f"\nbf16 beside f32, together, {threads} thread{'s' if threads > 1 else ''}")
        for name, seconds in sums["f32"].items():
            report.target(name, ratio({"f32": seconds, "bf16": sums["bf16"][name]}, "f32", "bf16"), HALF_TARGET, at_most=False)
    if "avx2" in pathlib.Path("/proc/cpuinfo").read_text():
        loops = Worker("env", "YOKE_CPU_ISA=v3", EVERY_ISA / "env", EVERY_ISA / "benchmarks" / "conv")
        for threads in (1, 2):
            measure_loops(report, loops, threads)
    else:
        print("\nx86-64-v3: not measured, because this processor does not support AVX2")
    report.finish()


if __name__ == "__main__":
    main()
