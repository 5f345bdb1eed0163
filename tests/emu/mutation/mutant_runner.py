"""A pytest plugin that runs tests on the module with all mutants: finds the places that a test runs, and the mutants that the tests
notice.

YOKE_MUTANTS_PLAN names a JSON file: {"state": file mapped by the module, "result": file for lines, "jobs": …, "until": time to
stop, "seconds": of tests for a mutant}. Without jobs, every test runs once, and a line has the places and the seconds. A job
{"number", "file", "tests": [[test, seconds]…]} is a forked process with all tests collected. The process is the mutant until a
test fails.
"""
import collections
import ctypes
import json
import mmap
import os
import platform
import random
import signal
import time

HEADER = 4  # bytes of the state before a byte for each place
PLACES = 4092  # kMost of mutants.h
WALL_SECONDS = 1200  # for a process that waits; a computing process has its own clock


def fork():
    """Forks without the handlers of pthread_atfork. The device stays open, since no part of the device lives in threads."""
    call = {"x86_64": (57,), "aarch64": (220, signal.SIGCHLD, 0, 0, 0, 0)}[platform.machine()]
    return ctypes.PyDLL(None).syscall(*call)


class Runner:
    def __init__(self, plan):
        self.plan = plan
        self.file = os.open(plan["state"], os.O_RDWR)
        self.state = mmap.mmap(self.file, HEADER + PLACES)
        self.failed = self.skipped = False
        self.caught_by = collections.defaultdict(collections.Counter)  # file: {test: mutants}

    def choose(self, number):
        self.state[:HEADER] = number.to_bytes(HEADER, "little")

    def tell(self, **what):
        with open(self.plan["result"], "a") as out:
            out.write(json.dumps(what) + "\n")

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed
        self.skipped |= report.skipped

    def pytest_runtestloop(self, session):
        if "jobs" not in self.plan:
            self.record(session)
        else:
            items = {item.nodeid: item for item in session.items}
            for job in self.plan["jobs"]:
                if time.time() > self.plan["until"]:
                    break
                self.judge(job, items)
        return True

    def run(self, item):
        self.failed = self.skipped = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self.failed

    def record(self, session):
        self.choose(0)
        for item in session.items:
            self.state[HEADER:] = bytes(PLACES)
            began = time.process_time()
            passed = self.run(item)
            ran = [i for i, byte in enumerate(self.state[HEADER:]) if byte]
            self.tell(test=item.nodeid, passed=passed, seconds=round(time.process_time() - began, 3),
                      ran=[] if self.skipped else ran)

    def judge(self, job, items):
        caught_by = self.caught_by[job["file"]]
        tests = [(items[test], seconds) for test, seconds in mixed(job["tests"], job["number"]) if test in items]
        tests.sort(key=lambda test: -caught_by[test[0].nodeid])
        began = time.time()
        tests = within(self.plan["seconds"], tests)
        verdict, by = self.run_as(job, tests)
        if by:
            caught_by[by] += 1
        self.tell(number=job["number"], verdict=verdict, by=by, tests=len(tests), seconds=round(time.time() - began, 2))

    def run_as(self, job, tests):
        """Runs tests in a process that is this mutant; returns (verdict, the test that noticed)."""
        told = os.memfd_create("the test that runs")  # a pipe would be full one day, and the child wait for ever
        self.choose(job["number"])
        child = fork()
        if child == 0:
            try:
                self.be_mutant(tests, told)
            finally:
                os._exit(3)
        status, late = wait(child)
        last = os.pread(told, os.fstat(told).st_size, 0).decode() or None
        os.close(told)
        self.choose(0)
        if status == 0:
            return "survived", None
        too_long = late or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
        return "too long" if too_long else "caught", last

    def be_mutant(self, tests, told):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        for item, seconds in tests:
            os.ftruncate(told, 0)
            os.pwrite(told, item.nodeid.replace("\n", " ").encode(), 0)
            signal.setitimer(signal.ITIMER_PROF, 10 * seconds + 10)  # its default action ends the process
            if not self.run(item):
                os._exit(1)
        os._exit(0)


def mixed(tests, seed):
    """Returns the tests mixed: a test of each function, then another of each, and so on. So the most different tests come first."""
    of_function = collections.defaultdict(list)
    for test in random.Random(seed).sample(tests, len(tests)):
        of_function[test[0].split("[")[0]].append(test)
    turns = [(turn, test) for own in of_function.values() for turn, test in enumerate(own)]
    return [test for _, test in sorted(turns, key=lambda turn: turn[0])]


def within(seconds, tests):
    """Returns the first tests, as many as took so many seconds, and at least one."""
    kept = []
    for test in tests:
        seconds -= test[1]
        if seconds < 0 and kept:
            break
        kept.append(test)
    return kept


def wait(child):
    """Returns (status, whether it had to be ended)."""
    end = time.time() + WALL_SECONDS
    while time.time() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status, False
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1], True


def pytest_configure(config):
    with open(os.environ["YOKE_MUTANTS_PLAN"]) as plan:
        config.pluginmanager.register(Runner(json.load(plan)), "yoke-mutants")
