"""Run of `./dev gpu` on a machine with a GPU: builds, tests and measures within a time, without a network; in one call or several.

    ./dev gpu [--minutes 9.5] [--only build,proof,speed,rest] [--results FOLDER] [--from FOLDER] [--small]
    ./dev gpu --only build --card 9.0    # on a machine without a GPU: the card's machine takes the build over

Every part has a deadline and may fail without ending the other parts. Each result is written to disk at once, so a run that is
cut short keeps its results. Logs of the parts are in build/gpu. The exit status is 1 if a part failed, 2 if no part began.
YOKE_GPU_FOLDER replaces build, in rehearsals.
"""

import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import threading

import build
import carry
import figures
import jobs
import machine
import notes
import options as asked
import parts
import record

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from bench import gpu_report  # noqa: E402

LOGS = carry.FOLDER / "gpu"
BENCH_SECONDS = 200  # kept free for the benchmarks
BUILD_SECONDS = 330
EXTENSION_SECONDS = 120  # for the Python extension alone
PACK_SECONDS = 60  # kept free after a build that travels
AT_ONCE = max(6, (os.cpu_count() or 1) // 2)  # tests side by side; most are processes of several
TAIL = 200  # lines of a failed part's log that go to the results


class Run:
    def __init__(self, options, gpu):
        self.options, self.gpu = options, gpu
        self.end = parts.now() + 60 * options.minutes
        self.running, self.lock, self.failed, self.ran = parts.Running(), threading.Lock(), [], 0
        self.without_python = ""  # why nothing can import yoke
        self.compiled = LOGS / figures.MARK
        self.nvcc = machine.find_nvcc()
        self.packages, lacking = carry.unpack(options.source, LOGS / "packages")
        self.variables = machine.make_variables(self.nvcc, LOGS, self.packages)
        sources = build.sources_digest()
        head = machine.describe(gpu, self.nvcc)
        self.builds = build.Builds(carry.FOLDER, gpu[1], sources)
        head["command"] = " ".join(["./dev gpu", *sys.argv[1:]])
        call = {"command": head["command"], "sources": sources}
        self.record = record.Record(gpu_report.slug(gpu[0]) + "-small" * options.small, [LOGS, *([options.results] if options.given else [])],
                                    options.results, head, call, gpu_report.markdown)
        self.remarks = [text for text in [lacking] if text]
        if options.only:
            folders = dict.fromkeys(map(str, (options.source, LOGS, options.results)))
            self.remarks += [text for text in map(self.record.take, folders) if text]

    def left(self, kept=0.0):
        """Seconds before the end of the last part that a run can still end in time."""
        return self.end - parts.ENDING - kept - parts.now()

    def wants(self, job):
        return asked.wants(self.options.only, job.group)

    # ---- parts -------------------------------------------------------------------------------------------------------

    def add_part(self, name, status, seconds=0.0, note=""):
        with self.lock:
            self.ran += 1
            if status not in ("passed", "skipped"):
                self.failed.append(name)
                self.record.keep_tail(name, log_of(name), TAIL)
            self.record.part(name, status, seconds, note)  # a reported part is on the disk
            print(f"  {name:34} {status:12} {seconds:6.1f} s  {note}".rstrip(), flush=True)
        return status == "passed"

    def run(self, job, seconds=None):
        """Runs a part until it ends or its time is over. Returns whether the part passed."""
        lacking = job.lacking or (self.without_python if sys.executable in job.command and job.group != "build" else "")
        if lacking:
            return self.add_part(job.name, "skipped", 0.0, lacking)
        log, begun, mark = log_of(job.name), parts.now(), f"{os.getpid()}:{job.name}"
        log.unlink(missing_ok=True)  # of an earlier call
        seconds = min(job.seconds, self.left() if seconds is None else seconds)
        if self.running.halted or seconds < job.least:
            return self.add_part(job.name, "out of time", 0.0, f"not begun: {self.running.halted or 'no time was left'}")
        if job.figures:
            job.figures.unlink(missing_ok=True)
        try:
            status, remark = self.running.run(mark, job.limited(seconds), seconds, log, {**self.variables, **job.variables}, ROOT,
                                              lambda: self.take_figures(job))
        except OSError as error:
            return self.add_part(job.name, "failed", 0.0, str(error))
        remarks = [remark, self.take_figures(job), self.running.halted if status else ""]
        outcome, text = judge(job, status, log.read_text(encoding="utf-8", errors="replace"))
        return self.add_part(job.name, outcome, parts.now() - begun, "; ".join(filter(None, [*remarks, text])))

    def take_figures(self, job):
        """Stores the measurements of a part so far; returns the problem with the file, or ""."""
        if job.figures is None or not job.figures.exists():
            return ""
        try:
            self.record.figures(json.loads(job.figures.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"its figures cannot be read: {error}"
        return ""

    # ---- the build ---------------------------------------------------------------------------------------------------

    def find_build(self):
        """Returns the folder of a build for this card and this tree, made now or earlier, or None."""
        wanted = asked.wants(self.options.only, "build")
        found = None if wanted else self.builds.find(dict.fromkeys([str(self.options.source), str(self.options.results)]))
        if self.builds.reasons:
            self.add_part("build of an earlier call", "skipped", 0.0, "; ".join(self.builds.reasons))
        if found:
            other = self.builds.other_python(found)
            if other and not self.make_extension(found, other):
                self.without_python = "the Python extension was not built"  # parts without need of Python still run
            return found
        if not self.make_build():
            return None
        if wanted and self.options.only:
            self.pack()
        if self.options.card:
            self.run(jobs.emulated_half_job(self.setting(self.builds.made)))
            self.weigh()
        return self.builds.made

    def make_build(self):
        """Builds; returns whether the targets for tests were built. Any other target that cannot be built is a failed part."""
        made = self.builds.made
        (made / build.MARK).unlink(missing_ok=True)
        command = ["cmake", "--preset", "cuda", "-B", made, *build.options(self.gpu[1], bool(self.options.card), *self.python())]
        if not self.run(jobs.Job("configure", "build", command, 150, notes.left_out)):
            return False
        known, targets = build.known_targets(made), [*build.ESSENTIAL, "benchmarks"]
        for target, what, reason in build.OPTIONAL:
            if target in known:
                targets.append(target)
            else:
                self.add_part(f"build of the {what}", "skipped", 0.0, reason)
        ninja = ["ninja", "-C", made, "-k", "0", "-j", os.cpu_count() or 1]
        alone = asked.alone(self.options.only, "build")
        whole = self.run(jobs.Job("build", "build", [*ninja, *targets], 3600 if alone else BUILD_SECONDS, notes.last_line),
                         self.left(PACK_SECONDS if alone else asked.TESTS_LEAST))
        if whole or self.run(jobs.Job("build of what tests need", "build", [*ninja, *build.ESSENTIAL], 60, notes.last_line)):
            self.builds.mark(machine.nvcc_version(self.nvcc))
            return True
        return False

    def python(self):
        """Returns what CMake needs to know of Python: (the interpreter, pybind11's folder or "", the carried packages or None)."""
        return sys.executable, machine.ask(sys.executable, "-m", "pybind11", "--cmakedir"), self.packages

    def make_extension(self, carried, other):
        """Builds only the Python extension, because a carried build has the extension of another Python. Returns whether this
        succeeded.
        """
        folder, library = self.builds.extension, carried / "lib" / "libyoke.so"
        command = ["cmake", "-S", ROOT, "-G", "Ninja", "-B", folder, *build.extension_options(library, *self.python())]
        ninja = ["ninja", "-C", folder, "-j", os.cpu_count() or 1, "_yoke"]
        if not (self.run(jobs.Job("configure the Python extension", "build", command, EXTENSION_SECONDS))
                and self.run(jobs.Job("build of the Python extension", "build", ninja, EXTENSION_SECONDS,
                                      lambda _: f"for {build.python_tag()}; what was carried is for {other}"))):
            return False
        self.builds.take_extension(carried)
        return True

    def pack(self):
        """Packs the build for the next call, also on another machine."""
        begun = parts.now()
        try:
            left, status = self.builds.pack(self.options.results), "passed"
        except OSError as error:
            left, status = f"{error.filename}: {error.strerror}", "failed"
        self.add_part("build, packed", status, parts.now() - begun, left)

    def weigh(self):
        """Tells how many bytes travel to the card's machine."""
        found = carry.tree_bytes() + sum(path.stat().st_size for path in [*self.options.results.glob("build-*.tar.xz*"), self.options.results / jobs.KEPT]
                                         if path.exists())
        self.add_part("what travels", "passed" if found <= carry.TRAVELS else "failed", 0.0,
                      f"{found / 2**20:.1f} MiB of {carry.TRAVELS >> 20}: the tree, the build and the emulated half of compare")

    # ---- tests and measurements --------------------------------------------------------------------------------------

    def setting(self, made):
        """Returns the common inputs of jobs over a build."""
        kept = [folder / jobs.KEPT for folder in (self.options.source, self.options.results, LOGS)]
        return jobs.Setting(made, LOGS, sys.executable, self.variables, self.packages, *self.gpu[:2], self.options.small, self.options.results,
                            next((file for file in kept if file.exists()), None), self.builds.sources)

    def prepare(self, job, seconds):
        """Runs torch.compile, whose cache stays on this machine."""
        if self.run(job, seconds) and not job.lacking:
            self.compiled.touch()

    def test(self, setting):
        """All tests, side by side: the device and the processors serve several at once."""
        chosen = [job for job in jobs.tests(setting) if self.wants(job)]
        kept = BENCH_SECONDS if any(asked.wants(self.options.only, name) for name in asked.BENCHES) and chosen else 0.0
        first = figures.prepare_job(setting)
        if asked.wants(self.options.only, first.group) and not self.compiled.exists():
            chosen.append(first)

        def one(job):
            if job is not first:
                self.run(job, self.left(kept))
            elif not kept or self.left(kept) >= job.least:  # else the benchmarks will have to wait for it
                self.prepare(job, self.left(kept))

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            running = [pool.submit(one, job) for job in chosen]
            # Python runs signal handlers only in this thread, and the system may give a signal to another thread
            # without waking this thread.
            while concurrent.futures.wait(running, parts.POLL).not_done:
                pass
            for future in running:
                future.result()

    def bench(self, setting):
        """Runs the groups one after another, alone on the device; each leaves enough time for the shortest run of later groups."""
        chosen = [job for job in figures.measurements(setting) if self.wants(job)]
        if chosen and not (setting.build / "benchmarks" / "gpu_floor").exists():
            self.record.figures({"head": {}, "results": [], "missing": [
                {"name": "everything beside CUDA itself", "reason": "gpu_floor was not built"}]})
        compiled = [i for i, job in enumerate(chosen) if job.group in figures.COMPILED]
        if compiled and not self.compiled.exists():
            chosen.insert(compiled[0], figures.prepare_job(setting))
        for i, job in enumerate(chosen):
            seconds = max(job.least, self.left(sum(later.least for later in chosen[i + 1:]))) if self.left() >= job.least else 0
            (self.prepare if job.group == "prepare" else self.run)(job, seconds)

    def look_around(self):
        """Warns of a card that another program uses, and of a disk with little space. Both spoil a run, but do not end it."""
        for name, problem in (("the card is idle", "" if self.options.card else machine.busy()), ("room on the disk", machine.little_room(LOGS))):
            if problem:
                self.add_part(name, "failed", 0.0, problem)
            else:
                self.record.drop(name)

    def go(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.running.halt)
        start = parts.now()
        print(f"{self.gpu[0]}, compute capability {self.gpu[1]}, driver {self.gpu[2]}; logs in {LOGS}", flush=True)
        if self.remarks:
            self.add_part("what was carried here", "failed", 0.0, "; ".join(self.remarks))
        self.look_around()
        made = self.find_build()
        if made is None:
            self.add_part("everything else", "failed", 0.0, "there is no CUDA module or no Python package to test")
            return self.finish(start)
        self.record.drop("everything else")
        if not asked.alone(self.options.only, "build"):
            setting = self.setting(made)
            self.test(setting)
            self.bench(setting)
        return self.finish(start)

    def finish(self, start):
        self.record.write()
        print(f"\n{gpu_report.summary(self.record.data)}\n  report: {self.record.page}; {parts.now() - start:.0f} s in all")
        return 1 if self.failed or not self.ran or self.record.complained else 0


def log_of(name):
    return LOGS / (re.sub(r"[^\w.-]+", "-", name) + ".log")


def judge(job, status, output):
    """Returns (outcome, note) of a part that ended with a status, or ran out of time."""
    outcome = "passed" if status == 0 else "out of time" if status is None else "failed"
    try:
        text = job.note(output) if job.note else ""
        problem = job.check(output) if job.check and outcome == "passed" else ""
    except Exception as error:  # a part that died may have left any output
        text, problem = "", f"its output cannot be read: {error!r}"
    if problem:
        outcome, text = "failed" if outcome == "passed" else outcome, "; ".join(filter(None, [problem, text]))
    if outcome == "passed" and job.skipped and (reason := job.skipped(output)):
        return "skipped", reason
    if outcome == "failed" and status and (status < 0 or not text):
        text = "; ".join(filter(None, [parts.ended(status), text or notes.last_line(output)[:200]]))
    return outcome, text


def main():
    options = asked.read(carry.FOLDER, LOGS)
    problem = record.unwritable(LOGS) and f"{LOGS} cannot be written ({record.unwritable(LOGS)})"
    reason = record.unwritable(options.results)
    if reason:
        problem = f"--results {options.results} cannot be written ({reason}): name another folder"
    if problem:
        return asked.refuse(problem)
    gpu = (f"sm_{options.card.replace('.', '')}", options.card, "none") if options.card else machine.find_gpu()
    if gpu is None:
        return asked.refuse("nvidia-smi names no GPU: nothing is run. --only build --card 9.0 builds for a card of another machine")
    run = Run(options, gpu)
    problem = asked.too_short(options, run.builds.likely([options.source, options.results]), parts.ENDING)
    if problem:
        return asked.refuse(problem)
    if importlib.util.find_spec("pybind11") is None and not shutil.which("pybind11-config"):
        print(f"{sys.executable} has no pybind11: the build may not find it")
    return run.go()


if __name__ == "__main__":
    sys.exit(main())
