"""The three calls of `./dev gpu`, rehearsed where there is no GPU: `check_gpu_calls.py SOURCE_DIR BUILD_DIR [--whole]`.

Every part goes wrong once, and calls are cut at ten places: the results of all other parts must be there. --whole: every part goes
wrong alone, in every way.
"""
import concurrent.futures
import itertools
import pathlib
import sys
import time
import unittest

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tests/gpu/rehearsal"))
import stage  # noqa: E402
from stage import MINUTES, OUTCOMES, SPEED  # noqa: E402

CALLS = ("proof", "speed", "rest")
HANGING = ("device against CPU and emulation", "memcheck, part 2", "bench memory", "profile of GPT-2", "test_graph")
AT_ONCE = 4  # rehearsals side by side


def at_once(check, cases):
    """Raises an error with the problems of many rehearsals; check(case) returns a problem or ""."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = list(filter(None, pool.map(check, cases)))
    if wrong:
        raise AssertionError("\n".join(wrong))


def measures(name):
    return name.startswith(("bench ", "profile "))


class Calls(stage.Rehearsal):
    def another(self):
        """Returns a rehearsal with folders of its own."""
        case = Calls()
        case.setUp()
        self.addCleanup(case.doCleanups)
        return case

    def clean(self, only):
        """Returns the parts of a call in which nothing goes wrong."""
        case = self.another()
        status, said, _ = case.call("--only", f"build,{only}", "--results", case.results)
        parts, figures, _ = case.report()
        self.assertEqual((status, {one["status"] for one in parts.values()} - {"skipped"}), (0, {"passed"}), said)
        self.assertEqual(set(figures), {name for name in parts if measures(name)}, said)
        return [name for name, one in parts.items() if one["status"] == "passed" and name != "build, packed"]

    def go_wrong(self, case):
        """Runs a call in which some parts go wrong, {part: fault}; returns the problem of the run, or ""."""
        only, faults = case
        case = self.another()
        status, said, seconds = case.call("--only", f"build,{only}", "--results", case.results,
                                          REHEARSAL_FAULT=";".join(f"{fault}:{part}" for part, fault in faults.items()))
        parts, figures, _ = case.report()
        outcomes = {name: one["status"] for name, one in parts.items()}
        bad = {name: outcome for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")}
        expected = {part: OUTCOMES[fault] for part, fault in faults.items()}
        measured = {name for name in outcomes if measures(name)} - set(faults)
        tails = (case.results / "LOGS-h200.txt").read_text()
        told = {part for part in faults if f"==== {part}, " in tails}
        if (status, bad, told) == (1, expected, set(faults)) and not measured - set(figures) and seconds <= 60 * MINUTES + SPEED:
            return ""
        return f"{only}, {faults}: status {status}, {bad}, logs of {told}, figures of {sorted(figures)}, {seconds:.0f} s\n{said}"

    def test_whichever_parts_go_wrong_the_others_are_told_in_time(self):
        cases, kinds = [], [fault for fault in OUTCOMES if fault != "hang"]
        for only in CALLS:
            names = [name for name in self.clean(only) if name not in ("configure", "build")]
            if "--whole" in sys.argv:
                cases += [(only, {name: fault}) for name in names[::10 if only == "rest" else 1] for fault in OUTCOMES]
            for half in (names[::2], names[1::2]):  # each part goes wrong in one of two calls
                cases.append((only, {name: "hang" if name in HANGING else kind for name, kind in zip(half, itertools.cycle(kinds))}))
        at_once(self.go_wrong, cases)

    def test_without_a_module_nothing_else_is_begun(self):
        for part, fault in ("configure", "crash"), ("build", "fail"):
            faults = f"{fault}:{part}*"
            status, said, _ = self.call("--only", "build,contract", "--results", self.results, REHEARSAL_FAULT=faults)
            outcomes = self.outcomes()
            self.assertEqual((status, outcomes[part], outcomes["everything else"], "contract suite" in outcomes), (1, "failed", "failed", False), said)

    def test_a_build_that_hangs_or_dies_is_made_again_as_far_as_tests_need_it(self):
        for fault in ("hang", "half"):
            status, said, seconds = self.call("--only", "build,contract", "--results", self.results, REHEARSAL_FAULT=f"{fault}:build")
            outcomes = self.outcomes()
            self.assertEqual((status, outcomes["build"], outcomes["build of what tests need"], outcomes["contract suite"]),
                             (1, OUTCOMES[fault], "passed", "passed"), said)
            self.assertLess(seconds, 60 * MINUTES + SPEED)

    # ---- calls that are cut ------------------------------------------------------------------------------------------

    def kill(self, case):
        """Kills a call with all its parts after so many parts are reported; returns the problem of the report, or ""."""
        only, count = case
        case = self.another()
        process = case.start("--only", f"build,{only}", "--results", case.results, REHEARSAL_SECONDS="0.05")
        lines = []
        for line in process.stdout:
            lines.append(line)
            if sum(" passed " in line for line in lines) > count:
                break
        rest = stage.kill(process)
        told = {line[2:36].strip() for line in [*lines, *rest.splitlines()] if line.startswith("  ") and line[37:49].strip() == "passed"}
        parts, figures, _ = case.report(ended=False)
        lacking = (told - set(parts)) | {name for name in told if measures(name) and name not in figures}
        return f"{only}, cut after {count} parts: the report lacks {lacking}\n{''.join(lines)}" if lacking or len(told) <= count else ""

    def test_a_call_that_is_killed_at_ten_places_leaves_every_result_that_was_told(self):
        places = [("proof", count) for count in (2, 5, 9, 12)] + [("speed", count) for count in (3, 6, 9)] + [("rest", count) for count in (4, 30, 60)]
        at_once(self.kill, places)

    def hurry(self, case):
        """Runs a call with too little time; returns the problem of the report, or ""."""
        only, minutes = case
        case = self.another()
        _, said, seconds = case.call("--only", f"build,{only}", "--minutes", minutes, "--results", case.results, REHEARSAL_SECONDS="1")
        parts, figures, _ = case.report()
        passed = {name for name, one in parts.items() if one["status"] == "passed"}
        lacking = {name for name in passed if measures(name)} - set(figures)
        wrong = {one["status"] for one in parts.values()} - {"passed", "skipped", "out of time"}
        missing = set(self.names[only]) - set(parts)
        if lacking or wrong or missing or seconds > 60 * minutes + SPEED:
            return f"{only} in {minutes} minutes: {lacking}, {wrong}, {missing}, {seconds:.0f} s\n{said}"
        return ""

    def test_a_call_whose_time_ends_at_ten_places_tells_of_every_part(self):
        self.names = {only: self.clean(only) for only in ("proof", "speed")}
        places = [("proof", minutes) for minutes in (2, 2.6, 3.3, 4)] + [("speed", minutes) for minutes in (2, 2.7, 3.5, 4.5, 6, 8)]
        at_once(self.hurry, places)

    def test_a_call_goes_on_where_a_killed_call_ended(self):
        process = self.start("--only", "build,contract,memory,gemm", "--results", self.results, REHEARSAL_FAULT="hang:bench gemm", YOKE_GPU_CLOCK="1")
        until = time.monotonic() + 60
        while time.monotonic() < until and "bench memory" not in (self.outcomes(ended=False) if self.results.exists() and
                                                                  (self.results / "RESULTS-h200.json").exists() else ()):
            time.sleep(0.02)
        stage.kill(process)
        status, said, _ = self.call("--only", "gemm", "--results", self.results)
        outcomes = self.outcomes()
        self.assertEqual((status, outcomes["contract suite"], outcomes["bench memory"], outcomes["bench gemm"]), (0, "passed", "passed", "passed"), said)

    # ---- machines that lack something --------------------------------------------------------------------------------

    def test_a_card_in_use_is_told_and_the_rest_is_run(self):
        for use, status in (("4, 0", 0), ("20480, 0", 1), ("4, 97", 1)):
            ended, said, _ = self.call("--only", "build,contract", "--results", self.results, REHEARSAL_BUSY=use)
            parts = self.report()[0]
            self.assertEqual((ended, "the card is idle" in parts, parts["contract suite"]["status"]), (status, bool(status), "passed"), said)
        self.assertIn("somebody else uses the card: 4 MiB of its memory, 97 % busy", parts["the card is idle"]["note"])

    def test_without_leave_to_profile_the_part_says_so(self):
        status, said, _ = self.call("--only", "build,profile", "--results", self.results, REHEARSAL_FAULT="denied:profile of GPT-2")
        parts = self.report()[0]
        self.assertEqual((status, parts["profile of GPT-2"]["status"], parts["profile of ResNet-50"]["status"]), (0, "skipped", "passed"), said)
        self.assertIn("ERR_NVGPUCTRPERM", parts["profile of GPT-2"]["note"])

    def without(self, *modules):
        """Returns a PYTHONPATH that hides these modules, and has plug-ins of pytest."""
        folder = self.folder / "lacking"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text("import importlib.util\nfound = importlib.util.find_spec\nimportlib.util.find_spec = "
                                                 f"lambda name, *more: None if name in {modules} else found(name, *more)\n")
        return f"{folder}:{stage.PLAY}/site"

    def test_a_python_that_lacks_modules_is_told_how_it_gets_them(self):
        status, said, _ = self.call("--only", "build,proof,nccl,steps", "--results", self.results, PYTHONPATH=self.without("pytest", "torch", "xdist", "numpy"))
        notes = {name: one["note"] for name, one in self.report()[0].items() if one["status"] == "skipped"}
        self.assertEqual(status, 0, said)
        for name, module in (("device against CPU and emulation", "numpy"), ("real sizes: rows", "numpy"), ("memcheck, part 1", "numpy"),
                             ("NCCL, one rank a card", "pytest and no numpy"), ("bench steps", "torch")):
            self.assertEqual(notes[name], f"{sys.executable} has no {module}: {sys.executable} -m pip install {module.replace(' and no', '')}")
        self.assertEqual(self.outcomes()["contract suite"], "passed")

    def test_a_disk_that_fills_up_ends_no_run_and_keeps_what_was_written(self):
        self.call("--only", "build,contract", "--results", self.results)
        (self.results / ".RESULTS-h200.json.new").mkdir()  # no file can be written there
        status, said, _ = self.call("--only", "contract,memory", "--results", self.results)
        self.assertEqual((status, said.count("cannot write"), "bench memory" in said), (1, 1, True), said)
        self.assertEqual(self.outcomes(ended=False)["contract suite"], "passed")


if __name__ == "__main__":
    stage.main()
