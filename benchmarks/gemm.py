"""Matrix products: yoke.matmul beside oneDNN called directly, in one process.

    ./dev bench gemm [--json FILE] [--rounds N]
"""

import statistics

from bench import BUILT, Report, Worker, ratio, rounds

TARGET = 0.97  # share of the direct call's speed


def main():
    report = Report("gemm")
    worker = Worker(BUILT / "gemm")
    report.peer("both", worker.about)
    for threads in (1, 2):
        for dtype in ("f32", "bf16"):
            print(f"\n{dtype}, {threads} thread{'s' if threads > 1 else ''}")
            for size in (256, 512, 1024, 2048):
                where = f"{dtype} {size} {threads}"
                times = rounds({who: (worker, f"{who} {where}") for who in ("yoke", "onednn")},
                               report.options.rounds or 15, 0.05)
                for who, seconds in times.items():
                    speeds = [2e-9 * size**3 / s for s in seconds]
                    report.result(f"{who} {where}", statistics.median(speeds), [min(speeds), max(speeds)], "GFLOP/s")
                speed = {who: 2e-9 * size**3 / statistics.median(seconds) for who, seconds in times.items()}
                report.target(f"{size}: {speed['yoke']:.0f} GFLOP/s, oneDNN {speed['onednn']:.0f}",
                              ratio(times, "onednn", "yoke"), TARGET, at_most=False, case=where)
    report.finish()


if __name__ == "__main__":
    main()
