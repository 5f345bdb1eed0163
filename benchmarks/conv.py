"""Convolutions: yoke.conv2d and its gradients beside oneDNN called directly, in one process.

    ./dev bench conv [--json FILE] [--rounds N]

32 images that lie NHWC; the weight is reordered in each call, by both. "together" is the sum of a convolution and its two
gradients.
"""

import statistics

from bench import BUILT, Report, Worker, ratio, rounds

TARGET = 0.97  # of the direct call's speed
HALF_TARGET = 1.7  # bf16 beside f32, of 3x3 together
ROUNDS, ROUND_SECONDS = 25, 0.03  # so short that a neighbour of the machine mostly disturbs both of a pair
KINDS = ("forward", "data", "weight")
# name: (side, channels in, channels out, kernel, groups)
CASES = {"3x3 64x56": (56, 64, 64, 3, 1), "3x3 128x28": (28, 128, 128, 3, 1), "3x3 256x14": (14, 256, 256, 3, 1),
         "3x3 512x7": (7, 512, 512, 3, 1), "1x1 256 to 64x56": (56, 256, 64, 1, 1), "1x1 256 to 1024x14": (14, 256, 1024, 1, 1),
         "depthwise 128x28": (28, 128, 128, 3, 128)}


def work(side, channels, out, kernel, groups):
    """Floating-point operations of one."""
    return 2 * 32 * side * side * out * (channels // groups) * kernel * kernel


def measure(report, worker, threads, dtype):
    """{case of 3x3: seconds of a convolution and its gradients by Yoke, in each round}."""
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
    report.finish()


if __name__ == "__main__":
    main()
