"""Behaviour of a group of four ranks when a rank dies, stops or never arrives: time until all other ranks know, and accuracy of
deadlines.

    ./dev bench faults [--json FILE] [--rounds N]

Ranks are processes of this machine. --rounds is the number of kills in each situation, each rank in turn; a third of the number
is how often each deadline runs out. Times are those of the last living rank.
"""

import os
import random
import re
import signal
import socket
import statistics
import subprocess
import threading
import time

from bench import BUILT, Report

SIZE = 4
SOON = 1.0  # seconds from a death to the last rank's error
DEADLINES = (1, 2, 5)
LONG = 60  # a deadline that no rank may need
SETTLED = 0.2, 0.3  # random seconds until all waiting ranks do wait, out of step with their own checks


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Ranks:
    """Processes of faults_yoke, by rank; `doing` is the task of each except `others`; a rank with None is not started."""

    def __init__(self, doing, others=None, timeout=LONG, init_timeout=LONG):
        url = f"tcp://127.0.0.1:{free_port()}"
        self.processes = {}
        for rank in range(SIZE):
            does = (others or {}).get(rank, doing)
            if does:
                command = [BUILT / "faults_yoke", rank, SIZE, url, timeout, init_timeout, does]
                self.processes[rank] = subprocess.Popen(list(map(str, command)), text=True, bufsize=1, stdin=subprocess.PIPE,
                                                        stdout=subprocess.PIPE)
        self.guard = threading.Timer(LONG, self.kill)

    def __enter__(self):
        self.guard.start()
        return self

    def __exit__(self, *_):
        self.guard.cancel()
        self.kill()
        for process in self.processes.values():
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def kill(self):
        for process in self.processes.values():
            process.kill()

    def lines(self, but=None):
        """Reads the next line of each rank except `but`."""
        found = [process.stdout.readline().rstrip("\n") for rank, process in self.processes.items() if rank != but]
        if not all(found):
            raise RuntimeError(f"a rank ended without a line, or sent no line for {LONG} s; the other ranks sent {found}")
        return found

    def ready(self):
        self.lines()
        time.sleep(random.uniform(*SETTLED))

    def tell(self, word, but):
        for rank, process in self.processes.items():
            if rank != but:
                process.stdin.write(word + "\n")

    def send(self, rank, number):
        """Sends a signal to a rank; returns the time of the call."""
        at = time.monotonic()
        os.kill(self.processes[rank].pid, number)
        return at

    def ended(self, but, status):
        """Returns [(began, ended, message)] of the calls that failed with this status, for each rank except `but`."""
        said = [line.split(" ", 3) for line in self.lines(but)]
        for got, *_, message in said:
            if got != status:
                raise RuntimeError(f"a call ended as {got}, not {status}: {message}")
        return [(float(began), float(ended), message) for _, began, ended, message in said]


def names(rank, calls):
    """Returns the number of errors that name this rank as missing."""
    return sum(bool(re.search(rf"\b(rank|ranks did not arrive:) (\d+, )*{rank}\b", message)) for _, _, message in calls)


class Bench:
    def __init__(self, report):
        self.report, self.number = report, report.options.rounds or 10

    def show(self, name, values, target, met, named=""):
        """Prints the median and the maximum of measured seconds."""
        median, most = statistics.median(values), max(values)
        self.report.data["results"].append({"name": name, "median": median, "most": most, "least": min(values), "unit": "s",
                                            "target": target, "met": met, "named": named})
        wanted = f"target <= {target:.2f}   {'met' if met else 'MISSED'}" if target else ""
        print(f"  {name:46} median {median:6.3f} s  most {most:6.3f} s   {wanted}   {named}".rstrip())

    def kills(self, name, doing, victim_does, shrinks=False):
        """Kills a rank in a group whose other ranks run `doing`."""
        seconds, calls, whole, named, slowest = [], [], [], 0, (0, 0)
        for i in range(self.number):
            victim = (SIZE - 1 + i) % SIZE
            with Ranks(doing, {victim: victim_does}) as ranks:
                ranks.ready()
                killed = ranks.send(victim, signal.SIGKILL)
                if doing == "idle":
                    ranks.tell("go", victim)
                errors = ranks.ended(victim, "comm")
                seconds.append(max(ended for _, ended, _ in errors) - killed)
                slowest = max(slowest, (seconds[-1], victim))
                named += names(victim, errors)
                if shrinks:
                    ranks.tell("shrink", victim)
                    made = ranks.ended(victim, "ok")
                    calls.append(max(ended - began for began, ended, _ in made))
                    whole.append(max(ended for _, ended, _ in made) - killed)
                    if set(ranks.lines(victim)) != {str(SIZE - 1)}:
                        raise RuntimeError(f"the surviving ranks did not make a group of {SIZE - 1}")
        of = self.number * (SIZE - 1)
        self.show(name, seconds, SOON, max(seconds) <= SOON, f"victim named by {named} of {of}, slowest when it was rank {slowest[1]}")
        return calls, whole

    def deaths(self):
        print(f"\nSeconds from SIGKILL to the error on the last living rank, {self.number} kills each")
        calls, whole = self.kills("while all repeat all_reduce of 25 MiB", "all_reduce", "all_reduce", shrinks=True)
        self.kills("while all others wait in a barrier", "barrier", "away")
        self.kills("while all are idle, then a barrier at once", "idle", "idle")
        print("\nShrinking to the three that live, after a kill in all_reduce")
        self.show("the call, on its slowest rank", calls, None, True)
        self.show("from SIGKILL to the new group", whole, None, True)

    def late(self, name, seconds, run):
        """Measures a deadline: run(seconds) returns the calls that failed at the deadline, and the missing rank."""
        took, named, of = [], 0, 0
        for _ in range(max(1, self.number // 3)):
            errors, missing = run(seconds)
            took.append(max(ended - began for began, ended, _ in errors))
            named += names(missing, errors)
            of += len(errors)
        most = 1.1 * seconds + 0.2
        met = max(took) <= most and min(took) >= seconds
        early = ", TOO EARLY" if min(took) < seconds else ""
        self.show(f"{name}, {seconds} s", took, most, met, f"{max(took) / seconds:.3f} x, named by {named} of {of}{early}")

    def deadlines(self):
        print("\nDeadlines: the longest that a rank was in its call; target 1.1 x + 0.2 s")
        absent, present = (lambda doing: lambda s: away(doing, s)), (lambda doing: lambda s: stopped(doing, s))
        kinds = {"all_reduce, a rank never comes": absent("all_reduce"), "all_reduce, a rank is stopped": present("all_reduce"),
                 "monitored_barrier, a rank never comes": absent("monitored"),
                 "monitored_barrier, a rank is stopped": present("monitored"),
                 "init, the last rank is missing": lambda s: missing(SIZE - 1, s), "init, rank 0 is missing": lambda s: missing(0, s)}
        for name, run in kinds.items():
            for seconds in DEADLINES:
                self.late(name, seconds, run)


def away(doing, seconds):
    victim = SIZE - 1
    with Ranks(doing, {victim: "away"}, timeout=seconds) as ranks:
        ranks.ready()
        return ranks.ended(victim, "timeout"), victim


def stopped(doing, seconds):
    victim = SIZE - 1
    with Ranks(doing, timeout=seconds) as ranks:
        ranks.ready()
        ranks.send(victim, signal.SIGSTOP)
        return ranks.ended(victim, "timeout"), victim


def missing(rank, seconds):
    with Ranks("init", {rank: None}, init_timeout=seconds) as ranks:
        return ranks.ended(None, "timeout"), rank


def main():
    bench = Bench(Report("faults"))
    bench.report.peer("Yoke", f"{SIZE} ranks, {os.cpu_count()} processors")
    bench.deaths()
    bench.deadlines()
    bench.report.finish()


if __name__ == "__main__":
    main()
