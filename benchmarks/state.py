"""States of 1 GiB in 200 tensors: cost of a save for a parallel script and for a waiting script, and time of loads.

    ./dev bench state [--json FILE] [--rounds N]

The lower bound, counted. A save in the background copies each byte once in memory: 1 GiB is read, 1 GiB written, into pages of
the previous save, shared between the writer and the script. So the stall is at best half a memcpy if the script steps at once,
and only the call if the writer had the time. Then each byte goes once to the page cache and once to the disk; a blocking save
does only this: 201 calls of write, 128 calls that start the disk on 8 MiB each, an fsync for the rest, a rename, an fsync of the
folder; 6 page faults. A mapped load makes an open, 3 preads of the header, of 19 KiB, and an mmap; 3 faults, and no page of a
tensor. A load into memory reads each byte once, by a pread for 8 MiB of a tensor, into 600 new huge pages. A verified load reads
each byte by 1,025 preads into the same MiB, hashes the bytes, and maps.

Files lie in build/, on its disk, and in /dev/shm if there is space. Each case has one thread; loads into memory have as many
threads as a script without settings. Loads find the file in the page cache.
"""

import pathlib
import shutil
import statistics
import sys
import tempfile

from bench import NEWEST_TORCH, ROOT, WORKERS, Report, Worker, ratio
from bench.state_cases import LARGE

AT_ONCE, LATER, BLOCKING, MAPPED, SIZES, COPIED, VERIFIED = 1.2, 0.15, 1.1, 2e-3, 1.2, 1.3, 2.0
MEMORY = 64 * 2**20
ROOM = 4 * LARGE  # in /dev/shm: it is memory


def turns(contestants, number, count=1):
    """Measures as bench.rounds, with `count` repetitions in each round. The first round does not count, because a save affects the next save."""
    times = {name: [] for name in contestants}
    for i in range(number + 1):
        for name in list(contestants)[:: -1 if i % 2 else 1]:
            worker, case = contestants[name]
            took = worker.measure(case, count)
            if i:
                times[name].append(took)
    return times


def show(report, title, times):
    print(f"\n{title}")
    for name, seconds in times.items():
        low, high = min(seconds), max(seconds)
        report.result(f"{title}: {name}", statistics.median(seconds), [low, high], "s")
        print(f"  {name:52} {statistics.median(seconds) * 1e3:8.2f} ms  ({low * 1e3:.2f} to {high * 1e3:.2f})")


def shown(report, name, times, one, other):
    """Prints and keeps a ratio without a target."""
    got = ratio(times, one, other)
    report.result(name, got["median"], [got["low"], got["high"]], "")
    print(f"  {name:52} {got['median']:6.3f}  ({got['low']:.3f} to {got['high']:.3f})")


class Bench:
    def __init__(self, report, folders):
        self.report, self.number = report, report.options.rounds or 11
        self.tmpfs = "tmpfs" in folders
        self.floor = Worker(sys.executable, WORKERS / "state_floor.py", *folders.values())
        self.yoke = Worker(sys.executable, WORKERS / "state_yoke.py", *folders.values())
        self.torch = None  # Debian's has no async_save
        if NEWEST_TORCH.exists():
            self.torch = Worker(NEWEST_TORCH, "-W", "ignore", WORKERS / "state_torch.py", *folders.values())
        else:
            print(f"newest PyTorch: not found ({NEWEST_TORCH}); see benchmarks/README.md")
        for role, worker in (("floor", self.floor), ("Yoke", self.yoke), ("PyTorch", self.torch)):
            if worker:
                report.peer(role, worker.about)

    def peers(self, case):
        """Returns {name: (worker, case)} of PyTorch, if PyTorch is there."""
        return {name: (self.torch, found) for name, found in case.items() if self.torch}

    def stalls(self):
        copy = statistics.median(self.floor.measure("copy", 1) for _ in range(5))
        for title, seconds in (("a step that follows at once", 0), ("a step behind two memcpy of products", 2 * copy)):
            asked = {"memcpy": (self.floor, "copy"), "Yoke": (self.yoke, f"stall {seconds}")}
            if seconds:
                asked["Yoke, tensors that are not saved"] = (self.yoke, f"beside {seconds}")
                asked["Yoke, the products"] = (self.yoke, f"slowed {seconds}")
            else:
                asked["Yoke, first save"] = (self.yoke, "first")
                asked["memcpy into new memory"] = (self.floor, "copy fresh")
            kinds = {"async_save": "default", "async_save, stager kept": "kept", "async_save, staged in a thread": "async"}
            peers = self.peers({name: f"stall {kind} {seconds}" for name, kind in kinds.items()})
            times = turns(asked | peers, self.number)
            show(self.report, f"Stall, {title}", times)
            self.compare_stalls(times, list(peers), bool(seconds))

    def compare_stalls(self, times, peers, is_later):
        target = self.report.target
        if is_later:
            # Memory traffic of the writer slows any step; the difference is this step's wait for copies.
            times["waited"] = [a - b for a, b in zip(times["Yoke"], times["Yoke, tensors that are not saved"])]
            target("call and waits for copies / memcpy", ratio(times, "waited", "memcpy"), LATER, True)
            shown(self.report, "with all that the step was slowed / memcpy", times, "Yoke", "memcpy")
        else:
            target("stall / memcpy", ratio(times, "Yoke", "memcpy"), AT_ONCE, True)
            shown(self.report, "first save / memcpy into new memory", times, "Yoke, first save", "memcpy into new memory")
        for peer in peers:
            if "thread" in peer:  # its documentation reserves this for CUDA, and there is no CUDA here
                shown(self.report, f"stall / {peer}", times, "Yoke", peer)
            else:
                target(f"stall / {peer}", ratio(times, "Yoke", peer), 1.0, True)

    def saves(self):
        asked = {"write and fsync": (self.floor, "save disk"), "Yoke": (self.yoke, "save disk"),
                 "over a former: write and fsync": (self.floor, "over disk"), "over a former: Yoke": (self.yoke, "over disk"),
                 "CheckpointManager": (self.yoke, "kept disk")}
        if self.tmpfs:
            asked |= {"tmpfs: write and fsync": (self.floor, "save tmpfs"), "tmpfs: Yoke": (self.yoke, "save tmpfs")}
        asked |= self.peers({"torch.save and fsync": "save torch", "safetensors and fsync": "save safetensors"})
        times = turns(asked, self.number)
        show(self.report, "Blocking save", times)
        self.report.target("Yoke / write and fsync", ratio(times, "Yoke", "write and fsync"), BLOCKING, True)
        if self.tmpfs:
            self.report.target("the same in tmpfs", ratio(times, "tmpfs: Yoke", "tmpfs: write and fsync"), BLOCKING, True)
        shown(self.report, "the same over a former file, which Yoke keeps", times, "over a former: Yoke", "over a former: write and fsync")
        shown(self.report, "CheckpointManager, with hash / write and fsync", times, "CheckpointManager", "write and fsync")

    def memory(self):
        peak = self.yoke.measure("peak", 1) / MEMORY
        self.report.target("memory of a blocking save, of 64 MiB", {"median": peak, "low": peak, "high": peak}, 1.0, True)
        for kind in ("torch", "safetensors") if self.torch else ():
            print(f"  that of {kind}: {self.torch.measure(f'peak {kind}', 1) / 2**20:.1f} MiB")

    def loads(self):
        times = turns({"1 GiB": (self.yoke, "map large"), "1 MiB": (self.yoke, "map small")}, self.number, 50)
        times |= turns(self.peers({"torch.load, mapped": "map torch", "safetensors, mapped": "map safetensors"}), self.number)
        show(self.report, "Load, mapped", times)
        times["2 ms"] = [MAPPED] * self.number
        self.report.target("1 GiB, of 2 ms", ratio(times, "1 GiB", "2 ms"), 1.0, True)
        self.report.target("1 GiB / 1 MiB", ratio(times, "1 GiB", "1 MiB"), SIZES, True)
        asked = {"memcpy into new memory": (self.floor, "copy fresh"), "memcpy": (self.floor, "copy"), "Yoke": (self.yoke, "copy 0"),
                 "Yoke, one thread": (self.yoke, "copy 1"), "CheckpointManager, verified": (self.yoke, "verified")}
        asked |= self.peers({"torch.load": "copy torch", "safetensors, by pread": "copy safetensors"})
        times = turns(asked, self.number)
        show(self.report, "Load into memory, and a verified one, which maps", times)
        self.report.target("Yoke / memcpy into new memory", ratio(times, "Yoke", "memcpy into new memory"), COPIED, True)
        shown(self.report, "the same in one thread", times, "Yoke, one thread", "memcpy into new memory")
        self.report.target("verified / memcpy", ratio(times, "CheckpointManager, verified", "memcpy"), VERIFIED, True)


def folders():
    """Returns the folders of files, by kind."""
    (ROOT / "build").mkdir(exist_ok=True)
    made = {"disk": tempfile.mkdtemp(prefix="bench-state-", dir=ROOT / "build")}
    shared = pathlib.Path("/dev/shm")
    if shared.is_dir() and shutil.disk_usage(shared).free > ROOM:
        made["tmpfs"] = tempfile.mkdtemp(prefix="bench-state-", dir=shared)
    return made


def main():
    report = Report("state")
    made = folders()
    try:
        bench = Bench(report, made)
        bench.stalls()
        bench.saves()
        bench.memory()
        bench.loads()
        report.finish()
    finally:
        for folder in made.values():
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
