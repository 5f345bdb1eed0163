"""Gain of the allocator's cache: training steps with and without it (YOKE_NO_CACHING=1).

    ./dev bench caching [--json FILE] [--rounds N]

A request without the cache reaches the backend, and its time is the device's: on the processor malloc or mmap and the first touch
of each page.
"""

import statistics
import sys

from bench import WORKERS, Report, Worker, ratio, rounds

# Cases: worker, case.
CASES = {"a step of the MLP, 1 thread": ("mlp_yoke.py", "train off 1"), "a step of the MLP, 2 threads": ("mlp_yoke.py", "train off 2"),
         "a step of the GPT, 1 thread": ("gpt_yoke.py", "train off 1"), "a step of the GPT, 2 threads": ("gpt_yoke.py", "train off 2")}


def main():
    report = Report("caching")
    workers = {(name, off): Worker("env", f"YOKE_NO_CACHING={off}", sys.executable, WORKERS / name) for name in ("mlp_yoke.py", "gpt_yoke.py") for off in (0, 1)}
    report.peer("all", workers["mlp_yoke.py", 0].about)
    print(f"\n{'':32s}{'on':>12s}{'off':>12s}{'off / on':>10s}")
    for text, (name, case) in CASES.items():
        times = rounds({"on": (workers[name, 0], case), "off": (workers[name, 1], case)}, report.options.rounds or 9, 0.4)
        millis = {how: [1e3 * each for each in seconds] for how, seconds in times.items()}
        for how, each in millis.items():
            report.result(f"{text}, {how}", statistics.median(each), [min(each), max(each)], "ms")
        share = ratio(times, "off", "on")["median"]
        print(f"{text:32s}" + "".join(f"{statistics.median(each):9.2f} ms" for each in millis.values()) + f"{share:10.2f}")
    report.finish()


if __name__ == "__main__":
    main()
