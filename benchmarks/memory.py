"""Requests for memory: yoke_alloc and yoke_free beside a model of PyTorch's allocator, and malloc of glibc.

    ./dev bench memory [--json FILE] [--rounds N]

The model has PyTorch's policy and the containers that its time goes to (benchmarks/workers/torch_policy.h). Both serve a device without
memory, so that no driver takes time.
"""

import statistics

from bench import BUILT, Report, Worker, ratio, rounds

# Cases, and the most that a pair may take of the model's time.
CASES = {"same": ("4 KiB, given back at once", 0.25), "small": ("to 1 MiB, 2,048 alive", 0.2), "large": ("1 to 64 MiB, 2,048 alive", 0.5),
         "p99-small": ("to 1 MiB, 99 of 100 pairs", 0.6), "p99-large": ("1 to 64 MiB, 99 of 100 pairs", 0.6)}


def main():
    report = Report("memory")
    worker = Worker(BUILT / "memory")
    report.peer("all", worker.about)
    number = report.options.rounds or 15

    def measure(whos, what):
        times = rounds({who: (worker, f"{who} {what}") for who in whos}, number, 0.1)
        for who, seconds in times.items():
            nanoseconds = [1e9 * each for each in seconds]
            report.result(f"{who} {what}", statistics.median(nanoseconds), [min(nanoseconds), max(nanoseconds)], "ns")
        return times

    for what, (text, most) in CASES.items():
        times = measure(("yoke", "torch", "glibc") if what == "same" else ("yoke", "torch"), what)
        pair = {who: f"{1e9 * statistics.median(seconds):.0f} ns" for who, seconds in times.items()}
        report.target(f"{text}: {pair['yoke']}, the model {pair['torch']}", ratio(times, "yoke", "torch"), most, at_most=True, case=what)
        if what == "same":
            report.target(f"{text}: {pair['yoke']}, glibc {pair['glibc']}", ratio(times, "yoke", "glibc"), 2.5, at_most=True, case="same glibc")
    for what, text, most in (("streams", "two threads on two streams, beside one", 2 / 1.6), ("shared", "two threads on one stream, beside one", 2)):
        times = rounds({"one": (worker, "yoke small"), "two": (worker, f"yoke {what}")}, number, 0.1)
        report.target(text, ratio(times, "two", "one"), most, at_most=True, case=what)
    report.finish()


if __name__ == "__main__":
    main()
