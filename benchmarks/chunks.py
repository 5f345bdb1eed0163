"""Chunks of virtual memory, mapped in random order and unmapped: time for each of 20,000 beside each of 1,000.

    ./dev bench chunks [--json FILE] [--rounds N]

Chunks are the processor's, and the CUDA module's over the fake driver (tests/fakes/cuda), which keeps as many maps as a large
card has.
"""

import statistics

from bench import BUILT, Report, Worker, ratio

FEW, MANY, MOST = 1000, 20000, 2.0


def main():
    report = Report("chunks")
    fakes = BUILT.parent / "tests/fakes/cuda"
    workers = {"cpu": Worker(BUILT / "chunks"), "fake CUDA": Worker("env", "FAKE_CUDA_MEMORY=65536", f"YOKE_CUDA_LIB_PATH={fakes}/driver", BUILT / "chunks", fakes / "fake")}
    for kind, worker in workers.items():
        report.peer(kind, worker.about)
        times = {count: [worker.measure("map", count) for _ in range(report.options.rounds or 7)] for count in (FEW, MANY)}
        micros = {count: 1e6 * statistics.median(seconds) for count, seconds in times.items()}
        for count, each in micros.items():
            report.result(f"{kind}, {count}", each, [1e6 * min(times[count]), 1e6 * max(times[count])], "us")
        report.target(f"{kind}: one of {MANY} {micros[MANY]:.1f} us, one of {FEW} {micros[FEW]:.1f} us", ratio(times, MANY, FEW), MOST, at_most=True, case=kind)
    report.finish()


if __name__ == "__main__":
    main()
