"""all_reduce of float32 between two processes of this machine: Yoke's groups beside raw Gloo and Open MPI.

    ./dev bench comm [--json FILE] [--rounds N]

Yoke runs in three ways: in memory of group.empty, reached by peers without a copy; in ordinary tensors, staged through shared
memory; and over TCP, as between machines. Gloo has only TCP here, Open MPI takes its shared memory. Open MPI binds its ranks
itself. The others are measured twice: with the system's placement, where ranks may share a processor, and with a processor for
each rank, as mpirun and srun place ranks. The last part is the time that the group's layer adds to the engine's call.
"""

import os
import shutil
import statistics

from bench import BUILT, Report, Worker, ratio, rounds

SIZES = {"4 B": 4, "1 MiB": 2**20, "25 MiB": 25 * 2**20}
# (size, measured way, compared way, maximum of the ratio)
TIMES = [("25 MiB", "Yoke, in place", "Gloo", 0.2), ("25 MiB", "Yoke, in place", "Open MPI", 0.5), ("25 MiB", "Yoke, staged", "Gloo", 0.4),
         ("4 B", "Yoke, in place", "Gloo", 0.15), ("4 B", "Yoke, staged", "Gloo", 0.15), ("25 MiB", "Yoke, TCP", "Gloo", 1.05),
         ("1 MiB", "Yoke, TCP", "Gloo", 0.5), ("4 B", "Yoke, TCP", "Gloo", 0.5)]
PROCESSORS = ("25 MiB", "Yoke, TCP", "Gloo", 0.8)
LAYER = {"4 B": (4, 2.0), "64 KiB": (2**16, None), "1 MiB": (2**20, 1.05), "25 MiB": (25 * 2**20, 1.05)}
MPIRUN = ("mpirun", "-np", "2", "--oversubscribe", "--allow-run-as-root")
SECONDS = 0.2  # for each measurement


class Both:
    """A worker whose measurements are asked for the processor seconds of both ranks, too."""

    def __init__(self, worker):
        self.worker, self.cpu = worker, []

    def measure(self, case, count):
        took = self.worker.measure(case, count)
        self.cpu.append(self.worker.measure("cpu 0", 1))
        return took


class Anew:
    """Worker started anew for each measurement, so no side keeps a lucky or unlucky place of its memory."""

    def __init__(self, *command):
        self.command, self.worker = command, Worker(*command)
        self.about = self.worker.about

    def measure(self, case, count):
        if not case.startswith("cpu"):
            self.worker.close()
            self.worker = Worker(*self.command)
            self.worker.measure(case, max(1, count // 10))
        return self.worker.measure(case, count)


def turns(contestants, number):
    """Returns (as bench.rounds: seconds of a repetition, processor seconds of a repetition)."""
    asked = {name: (Both(worker), case) for name, (worker, case) in contestants.items()}
    times = rounds(asked, number, SECONDS)
    return times, {name: worker.cpu[-number:] for name, (worker, _) in asked.items()}


def show(report, title, times, cpu):
    print(f"\n{title}")
    for name, seconds in times.items():
        median, low, high, busy = (1e6 * s for s in (statistics.median(seconds), min(seconds), max(seconds), statistics.median(cpu[name])))
        report.result(f"{title}: {name}", median, [low, high], "us", processors=busy)
        print(f"  {name:20} {median:10.1f} us  ({low:.1f} to {high:.1f})   of processors {busy:.1f}")


def pairs(environment):
    """Returns {name: (worker, how)} of the workers whose ranks are placed by this environment."""
    yoke = Worker("env", environment, BUILT / "comm_yoke")
    found = {"Yoke, in place": (yoke, "in_place"), "Yoke, staged": (yoke, "plain"),
             "Yoke, TCP": (Worker("env", environment, "YOKE_COMM_SHM=0", BUILT / "comm_yoke"), "plain")}
    if is_there("Gloo", BUILT / "comm_gloo"):
        found["Gloo"] = (Worker("env", environment, BUILT / "comm_gloo"), "peer")
    return found


def is_there(name, *needed):
    missing = [part for part in needed if not shutil.which(part)]
    if missing:
        print(f"{name}: not found ({missing[0]}); ./dev bench installs the program on Debian")
    return not missing


def workers(report):
    """Returns {placement: {name: (worker, how)}} of all present contestants. Open MPI places its ranks itself."""
    free, bound = pairs("BENCH_BIND="), pairs("BENCH_BIND=1")
    if is_there("Open MPI", MPIRUN[0], BUILT / "comm_mpi"):
        free["Open MPI"] = bound["Open MPI"] = (Worker(*MPIRUN, BUILT / "comm_mpi"), "peer")
    for name, (worker, _) in free.items():
        report.peer(name, worker.about)
    return {"as the system places ranks": free, "each rank bound to a processor": bound}


def sizes(report, placement, found, number):
    times, cpu = {}, {}
    for size, count in SIZES.items():
        times[size], cpu[size] = turns({name: (worker, f"{how} {count}") for name, (worker, how) in found.items()}, number)
        show(report, f"all_reduce of {size}, {placement}", times[size], cpu[size])
    print(f"\nTime of the slower rank, {placement}")
    for size, one, other, most in TIMES:
        if other in found:
            report.target(f"{size}: {one} / {other}", ratio(times[size], one, other), most, True, placement=placement)
    size, one, other, most = PROCESSORS
    if other in found:
        print(f"Processor seconds of both ranks, {placement}")
        report.target(f"{size}: {one} / {other}", ratio(cpu[size], one, other), most, True, placement=placement)


def layer(report, found, number):
    """Measures the group's layer. The engine's call has a signature, and its check, in any case: the signature is a part of the
    message about joined ranks.
    """
    (worker, how), engine = found["Yoke, in place"], Anew(BUILT / "comm_engine")
    worker = Anew(*worker.command)
    print()
    report.peer("Engine", engine.about)
    got = {}
    for size, (count, _) in LAYER.items():
        asked = {"engine's call": (engine, f"{how} {count}"), "group's call": (worker, f"{how} {count}")}
        times, cpu = turns(asked, number)
        got[size] = ratio(times, "group's call", "engine's call")
        show(report, f"In place, {size}", times, cpu)
    print("\nThe group's layer, signatures made and kept included: group's call / engine's call")
    for size, (_, most) in LAYER.items():
        if most:
            report.target(size, got[size], most, True)
        else:
            print(f"  {size:52} {got[size]['median']:6.3f}  ({got[size]['low']:.3f} to {got[size]['high']:.3f})")


def main():
    report = Report("comm")
    number = report.options.rounds or 15
    found = workers(report)
    for placement, contestants in found.items():
        sizes(report, placement, contestants, number)
    layer(report, next(iter(found.values())), number)
    print(f"{len(os.sched_getaffinity(0))} processors for two ranks")
    report.finish()


if __name__ == "__main__":
    main()
