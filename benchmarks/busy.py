"""The main job's training on a shared machine: two cores with two threads, alone, beside a process that burns one of the cores, and
beside another such job; Debian's PyTorch and the newest PyTorch in the same run. Also the cost of a process that has trained and
now waits.

    ./dev bench busy [--json FILE] [--rounds N]
"""

import concurrent.futures
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

from bench import WORKERS, Report, Worker, ratio, rounds, torch_workers

BATCH = 128
KEPT, ALONE, TOGETHER = 0.50, 0.95, 0.80  # the least that the ratios may be
IDLE = 0.002  # the most of a core that waiting may take


class Beside:
    """A worker that measures while another process burns a core."""

    def __init__(self, worker):
        self.worker = worker
        self.burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.burner.send_signal(signal.SIGSTOP)

    def measure(self, case, count):
        self.burner.send_signal(signal.SIGCONT)
        time.sleep(0.02)
        try:
            return self.worker.measure(case, count)
        finally:
            self.burner.send_signal(signal.SIGSTOP)

    def close(self):
        self.burner.kill()
        self.burner.wait()


class Together:
    """Two workers that measure at once: seconds for a step of either."""

    def __init__(self, *workers):
        self.workers = workers

    def measure(self, case, count):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            seconds = list(pool.map(lambda worker: worker.measure(case, count), self.workers))
        return 1 / sum(1 / s for s in seconds)


def idle_share(worker, seconds=2.0):
    """Returns the part of a core used by an idle process."""
    def used():
        tasks = pathlib.Path(f"/proc/{worker.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    time.sleep(0.1)
    start, before = time.perf_counter(), used()
    time.sleep(seconds)
    return (used() - before) / (time.perf_counter() - start)


def contest(role, first, second, beside):
    return {f"{role}, 1 thread": (first, "train off 1"), f"{role}, 2 threads": (first, "train off 2"),
            f"{role}, beside, 1 thread": (beside, "train off 1"), f"{role}, beside, 2 threads": (beside, "train off 2"),
            f"{role}, two jobs": (Together(first, second), "train off 2")}


def main():
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    report = Report("busy")
    pairs = {"Yoke": [Worker(sys.executable, WORKERS / "mlp_yoke.py") for _ in range(2)]}
    for found in (torch_workers(WORKERS / "mlp_torch.py") for _ in range(2)):
        for role, worker in found.items():
            pairs.setdefault(role, []).append(worker)
    contestants, burners = {}, []
    for role, (first, second) in pairs.items():
        report.peer(role, first.about)
        burners.append(Beside(first))
        contestants |= contest(role, first, second, burners[-1])
    times = rounds(contestants, report.options.rounds or 9, 0.5)
    for burner in burners:
        burner.close()
    print()
    for name, seconds in times.items():
        speeds = [BATCH / s for s in seconds]
        report.result(name, statistics.median(speeds), [min(speeds), max(speeds)], "images/s")
        print(f"  {name:40} {statistics.median(speeds):8.0f} images/s  ({min(speeds):.0f} to {max(speeds):.0f})")
    print()
    for role in pairs:
        for name, base, other, wanted in (
                ("beside a burnt core / alone, 2 threads", f"{role}, 2 threads", f"{role}, beside, 2 threads", KEPT),
                ("2 threads / 1 thread, beside a burnt core", f"{role}, beside, 1 thread", f"{role}, beside, 2 threads", ALONE),
                ("two jobs of 2 threads / one", f"{role}, 2 threads", f"{role}, two jobs", TOGETHER)):
            got = ratio(times, base, other)
            if role == "Yoke":
                report.target(name, got, wanted, False)
            else:
                print(f"  {role + ': ' + name:62} {got['median']:6.3f}  ({got['low']:.3f} to {got['high']:.3f})")
    share = idle_share(pairs["Yoke"][0])
    report.target("cores taken by a process that waits", {"median": share, "low": share, "high": share}, IDLE, True)
    report.finish()


if __name__ == "__main__":
    main()
