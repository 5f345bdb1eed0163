"""`./dev gpu` rehearsed where there is no GPU: `check_gpu_run.py SOURCE_DIR BUILD_DIR [--whole]`.

The runner of tests/gpu is driven as it is, with a clock twenty times as fast; at the boundary of its processes stand-ins play the
card's tools, the build and the parts (tests/gpu/rehearsal). --whole: every part goes wrong in every way.
"""
import concurrent.futures
import importlib.util
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

SOURCE = pathlib.Path(sys.argv[1])
PLAY = SOURCE / "tests/gpu/rehearsal"
SPEED, MINUTES = 20, 9.5
OUTCOMES = {"hang": "out of time", "fail": "failed", "crash": "failed", "half": "failed"}
# Parts and their failures in the daily tests, a part of each kind.
DAILY = {"configure": "crash", "build": "half", "contract suite": "hang", "memcheck, part 2": "crash", "main job, off": "half",
         "GPT, bf16": "fail", "device against CPU and emulation": "crash", "test_ops_grad": "half", "gpt.lua, bf16": "fail",
         "racecheck, part 1": "hang", "torch.compile, once": "hang", "bench memory": "hang", "bench gemm": "half",
         "bench steps": "crash", "bench mixed": "fail"}


def marked(pid):
    """Returns processes that a run has left behind."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"\0YOKE_GPU_PART={pid}:".encode() in b"\0" + (folder / "environ").read_bytes():
                found.append(folder.name)
        except OSError:
            pass
    return found


class Rehearsal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results = self.folder / "results"

    def environment(self, machine, **more):
        """Returns the environment of a machine with a card; its build folder is in this test's folder."""
        known = {name: value for name, value in os.environ.items() if not name.startswith(("YOKE_", "LD_", "CMAKE_"))}
        return {**known, "PATH": f"{PLAY}/bin:{os.environ['PATH']}", "CUDACXX": f"{PLAY}/bin/nvcc", "PYTHONPATH": f"{PLAY}/site",
                "YOKE_GPU_CLOCK": str(SPEED), "YOKE_GPU_FOLDER": str(self.folder / machine), **more}

    def start(self, *options, machine="machine", **more):
        command = [sys.executable, "-B", "tests/gpu/run.py", *map(str, options)]
        return subprocess.Popen(command, cwd=SOURCE, env=self.environment(machine, **more), text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def call(self, *options, **more):
        """Runs `./dev gpu`; returns (exit status, output, seconds of the run's clock)."""
        process, begun = self.start(*options, **more), time.monotonic()
        said = process.communicate()[0]
        self.assertEqual(marked(process.pid), [], "it leaves no process behind")
        return process.returncode, said, (time.monotonic() - begun) * SPEED

    def report(self, folder=None, ended=True):
        """Returns the results of a run. During the run, and after a kill, the page may be an entry behind the data."""
        data = json.loads(((folder or self.results) / "RESULTS-h200.json").read_text())
        if ended:
            page = ((folder or self.results) / "RESULTS-h200.md").read_text()
            self.assertEqual([one["name"] for one in [*data["parts"], *data["results"]] if f"| {one['name']} |" not in page], [])
        return {one["name"]: one for one in data["parts"]}, {one["group"]: one for one in data["results"]}, data

    # ---- a run in one ------------------------------------------------------------------------------------------------

    def test_parts_are_run_in_the_order_of_what_they_tell(self):
        status, said, _ = self.call("--results", self.results)
        self.assertEqual(status, 0, said)
        parts, figures, _ = self.report()
        self.assertEqual({one["status"] for one in parts.values()} - {"skipped"}, {"passed"}, said)
        begun = list(parts)
        self.assertEqual(begun[:2], ["configure", "build"])
        places = [begun.index(name) for name in ("contract suite", "NCCL, one rank a card", "memcheck, part 1", "main job, bf16", "GPT, bf16")]
        self.assertLess(max(places), 14, "what was never run is first")
        self.assertEqual([name for name in begun if name.startswith("bench ")][:2], ["bench memory", "bench calls"])
        self.assertEqual(begun[-1], "bench mixed")
        self.assertEqual(len(figures), 8)

    def test_a_part_whose_tests_are_all_skipped_is_told_so_with_the_reason(self):
        status, said, _ = self.call("--only", "nccl", REHEARSAL_FAULT="skip:NCCL*")
        part = self.report(self.folder / "machine/gpu")[0]["NCCL, one rank a card"]
        self.assertEqual((status, part["status"], part["note"]), (0, "skipped", "NCCL cannot be loaded"), said)

    def gone_wrong(self, part, fault):
        """Runs with a failing part; returns the problem of the run, or ""."""
        case = Rehearsal()
        case.setUp()
        status, said, seconds = case.call("--results", case.results, REHEARSAL_FAULT=f"{fault}:{part}")
        parts, figures, _ = case.report()
        case.doCleanups()
        outcomes = {name: one["status"] for name, one in parts.items()}
        bad = {name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")}
        expected = {"configure", "everything else"} if part == "configure" else {part}
        if (status, bad, outcomes.get(part)) != (1, expected, OUTCOMES[fault]) or seconds > 60 * MINUTES + SPEED:
            return f"{fault} in {part}: status {status}, {bad}, {outcomes.get(part)}, {seconds:.0f} s\n{said}"
        of_parts = {name for name in outcomes if name.startswith("bench ")} - {part}
        if of_parts - set(figures) or part != "configure" and (len(of_parts) < 7 or "bench mixed" not in outcomes):
            return f"{fault} in {part}: figures of {sorted(figures)} alone\n{said}"
        return ""

    def test_whichever_part_goes_wrong_the_others_are_told_in_time(self):
        faults = [*DAILY.items(), ("build", "hang")]
        if "--whole" in sys.argv:
            self.call("--results", self.results)
            faults = [(part, fault) for part in self.report()[0] for fault in OUTCOMES]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            wrong = [text for text in pool.map(lambda one: self.gone_wrong(*one), faults) if text]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_benchmarks_have_their_time_where_all_tests_hang(self):
        status, said, seconds = self.call("--results", self.results, REHEARSAL_FAULT="hang:test_*")
        parts, figures, _ = self.report()
        self.assertEqual({one["status"] for name, one in parts.items() if name.startswith("test_")}, {"out of time"}, said)
        self.assertEqual((status, len(figures), parts["contract suite"]["status"]), (1, 8, "passed"), said)
        self.assertLess(seconds, 60 * MINUTES + SPEED)

    # ---- a run that is cut short -------------------------------------------------------------------------------------

    def cut_short(self, number):
        """Runs until the first parts are done and a part hangs, then sends a signal; returns (process, output)."""
        process = self.start("--results", self.results, REHEARSAL_FAULT="hang:contract suite", YOKE_GPU_CLOCK="1")
        until, enough = time.monotonic() + 60, ("GPT, f16", "test_ops_table")
        while time.monotonic() < until:
            try:
                if set(enough) <= set(self.report(ended=False)[0]):
                    break
            except FileNotFoundError:
                pass
            time.sleep(0.02)
        process.send_signal(number)
        said = process.communicate()[0]
        return process, said

    def test_a_run_that_is_asked_to_end_ends_its_parts_and_says_so(self):
        process, said = self.cut_short(signal.SIGTERM)
        parts = self.report()[0]
        self.assertEqual((process.returncode, marked(process.pid)), (1, []), said)
        self.assertIn("the run was ended by SIGTERM", parts["contract suite"]["note"])
        self.assertEqual(parts["test_ops_table"]["status"], "passed")

    def test_a_killed_run_leaves_what_was_finished(self):
        process, said = self.cut_short(signal.SIGKILL)
        for pid in marked(process.pid):
            os.kill(int(pid), signal.SIGKILL)
        parts = self.report(ended=False)[0]
        self.assertEqual((process.returncode, parts["GPT, f16"]["status"]), (-signal.SIGKILL, "passed"), said)
        self.assertIn("| main job, off |", (self.results / "RESULTS-h200.md").read_text())
        self.assertNotIn("contract suite", parts)

    # ---- calls that take over from each other ------------------------------------------------------------------------

    def test_calls_on_fresh_machines_take_over_and_write_one_report(self):
        carried = [self.folder / name for name in ("built", "tested", "measured")]
        status, said, _ = self.call("--only", "build", "--results", carried[0], machine="first")
        self.assertEqual(status, 0, said)
        self.assertTrue((carried[0] / "build-90.tar.xz").exists(), said)
        status, said, _ = self.call("--only", "tests", "--results", carried[1], "--from", carried[0], machine="second")
        self.assertEqual(status, 0, said)
        self.assertFalse((self.folder / "second/cuda").exists(), "nothing was built")
        self.assertIn(str(self.folder / "second/carried"), (self.folder / "second/carried/env").read_text())
        self.assertTrue((self.folder / "second/carried/python/yoke/data.py").samefile(SOURCE / "bindings/python/yoke/data.py"))
        shutil.copy(carried[0] / "build-90.tar.xz", carried[1])
        status, said, _ = self.call("--only", "bench", "--results", carried[2], "--from", carried[1], machine="third")
        self.assertEqual(status, 0, said)
        parts, figures, data = self.report(carried[2])
        self.assertEqual(len(figures), 8)
        self.assertLess({"build", "build, packed", "contract suite", "test_ops_grad", "torch.compile, once", "bench mixed"}, set(parts))
        self.assertEqual([one["command"].split()[3] for one in data["calls"]], ["build", "tests", "bench"])

    def test_on_the_same_machine_nothing_is_to_be_carried(self):
        for only in ("build", "tests", "bench"):
            status, said, _ = self.call("--only", only)
            self.assertEqual(status, 0, said)
        self.assertLess({"build", "contract suite", "bench mixed"}, set(self.report(self.folder / "machine/gpu")[0]))

    def test_a_later_call_replaces_what_it_runs_again_and_nothing_else(self):
        self.call("--only", "build,memory,gemm", REHEARSAL_FAULT="fail:bench memory")
        status, said, _ = self.call("--only", "memory")
        self.assertEqual(status, 0, said)
        parts, figures, _ = self.report(self.folder / "machine/gpu")
        self.assertEqual((parts["bench memory"]["status"], parts["bench gemm"]["status"]), ("passed", "passed"))
        self.assertEqual(set(figures), {"bench memory", "bench gemm"})

    def test_without_a_build_a_call_makes_one(self):
        status, said, _ = self.call("--only", "contract")
        self.assertEqual((status, self.report(self.folder / "machine/gpu")[0]["build"]["status"]), (0, "passed"), said)

    def test_a_build_for_another_card_is_told_with_both_values(self):
        self.call("--only", "build", "--results", self.results, machine="first")
        status, said, _ = self.call("--only", "contract", "--from", self.results, machine="second", REHEARSAL_CARD="8.0")
        parts = self.report(self.folder / "second/gpu")[0]
        self.assertRegex(parts["build of an earlier call"]["note"],
                         "build-90.tar.xz was built for compute capability 9.0, this card has 8.0: ./dev gpu --only build")
        self.assertEqual((status, parts["build"]["status"], parts["contract suite"]["status"]), (0, "passed", "passed"), said)

    def no_card(self):
        """Returns the PATH of a machine whose nvidia-smi finds no card."""
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "bin/nvidia-smi").write_text("#!/bin/sh\necho 'No devices were found'\n")
        (self.folder / "bin/nvidia-smi").chmod(0o755)
        return f"{self.folder}/bin:{PLAY}/bin:{os.environ['PATH']}"

    def built_for_another_python(self):
        """Returns a packed build for compute capability 9.0, made where no card is, by a Python of another version."""
        status, said, _ = self.call("--only", "build", "--card", "9.0", "--results", self.results, machine="first", PATH=self.no_card())
        self.assertEqual(status, 0, said)
        archive, members = self.results / "build-90.tar.xz", []
        with tarfile.open(archive, "r:xz") as packed:
            for member in packed.getmembers():
                content = packed.extractfile(member).read() if member.isfile() else None
                if member.name == "gpu-build.json":
                    content = json.dumps({**json.loads(content), "python": "2.7 (.so)"}).encode()
                    member.size = len(content)
                elif member.name == "python/yoke/_yoke.so":
                    member.name = "python/yoke/_yoke.of-another-python.so"
                members.append((member, content))
        with tarfile.open(archive, "w:xz", preset=1) as packed:
            for member, content in members:
                packed.addfile(member, io.BytesIO(content) if content is not None else None)

    def test_a_build_is_made_where_no_card_is_and_taken_over_where_one_is(self):
        self.built_for_another_python()
        configured = (self.folder / "first/gpu/configure.log").read_text()
        self.assertIn("-DYOKE_CUDA_ARCHS=90 -DYOKE_CPU_ISAS=base;v3;v4 ", configured, "for whatever processor the other machine has")
        status, said, _ = self.call("--only", "tests", "--from", self.results, machine="second")
        self.assertEqual(status, 0, said)
        self.assertFalse((self.folder / "second/cuda").exists(), "the library was not built again")
        parts, extensions = self.report(self.folder / "second/gpu")[0], self.folder / "second/carried/python/yoke"
        self.assertEqual([path.name for path in extensions.glob("_yoke*.so")], ["_yoke.so"])
        self.assertIn("what was carried is for 2.7 (.so)", parts["build of the Python extension"]["note"])
        told = (self.folder / "second/gpu/configure-the-Python-extension.log").read_text()
        self.assertIn(f"-DYOKE_LIBRARY={self.folder}/second/carried/lib/libyoke.so ", told)
        status, said, _ = self.call("--only", "contract", machine="second")
        self.assertEqual((status, said.count("Python extension")), (0, 0), "it is built once")

    def test_where_the_python_extension_cannot_be_built_that_is_told(self):
        self.built_for_another_python()
        status, said, _ = self.call("--only", "tests", "--from", self.results, machine="second", REHEARSAL_FAULT="fail:build of the Python*")
        parts = self.report(self.folder / "second/gpu")[0]
        self.assertEqual((status, parts["build of the Python extension"]["status"], parts["contract suite"]["status"]), (1, "failed", "passed"), said)
        self.assertEqual({part["status"] for part in parts.values() if "the Python extension was not built" in part["note"]}, {"skipped"}, said)

    def test_what_is_half_an_archive_or_half_a_report_is_told(self):
        self.call("--only", "build", "--results", self.results, machine="first")
        for name in ("build-90.tar.xz", "RESULTS-h200.json"):
            whole = (self.results / name).read_bytes()
            (self.results / name).write_bytes(whole[:len(whole) // 2])
        status, said, _ = self.call("--only", "contract", "--from", self.results, machine="second")
        parts = self.report(self.folder / "second/gpu")[0]
        self.assertIn("build-90.tar.xz cannot be unpacked", parts["build of an earlier call"]["note"])
        self.assertIn("RESULTS-h200.json is no report of an earlier call", parts["what was carried here"]["note"])
        self.assertEqual((status, parts["contract suite"]["status"]), (1, "passed"), said)

    # ---- missing packages
    # --------------------------------------------------------------------------------------------

    def carried_package(self):
        """Makes a folder with a package of a header, a library and a link to the library by its installed place."""
        files, carried = self.folder / "files", self.folder / "carried"
        for name, text in {"DEBIAN/control": "Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n",
                           "usr/include/thing.h": "\n", "lib/libthing.so.1": "\n"}.items():
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            (files / name).write_text(text)
        (files / "usr/lib").mkdir()
        (files / "usr/lib/libthing.so").symlink_to("/lib/libthing.so.1")
        carried.mkdir()
        subprocess.run(["dpkg-deb", "-b", files, carried / "thing_1_all.deb"], check=True, capture_output=True)
        return carried

    @unittest.skipUnless(shutil.which("dpkg-deb"), "there is no dpkg-deb")
    def test_packages_that_were_carried_are_where_the_build_looks(self):
        status, said, _ = self.call("--only", "build", "--from", self.carried_package())
        self.assertEqual(status, 0, said)
        logs = self.folder / "machine/gpu"
        self.assertIn(f"searched: {logs}/packages/usr {logs}/packages/usr/include", (logs / "configure.log").read_text())
        self.assertTrue((logs / "packages/usr/lib/libthing.so").samefile(logs / "packages/lib/libthing.so.1"))

    @unittest.skipUnless(shutil.which("dpkg-deb"), "there is no dpkg-deb")
    def test_a_package_that_came_by_halves_is_told(self):
        carried = self.carried_package()
        whole = (carried / "thing_1_all.deb").read_bytes()
        (carried / "thing_1_all.deb").write_bytes(whole[:len(whole) // 2])
        status, said, _ = self.call("--only", "build", "--from", carried)
        self.assertRegex(said, "what was carried here +failed .*thing_1_all.deb cannot be unpacked: ")
        self.assertEqual((status, self.report(self.folder / "machine/gpu")[0]["build"]["status"]), (1, "passed"))

    # ---- bad input ---------------------------------------------------------------------------------------------------

    def test_what_cannot_be_done_is_refused_before_anything_is_begun(self):
        (self.folder / "file").write_text("")
        for options, told in (
                (["--only", "tets"], 'names "tets", nearest is tests; there are build, tests, contract, .* bench, memory, '),
                (["--only", ""], '--only names ""'),
                (["--only", "build,build ing"], '--only names "build ing"'),
                (["--minutes", "0"], "--minutes is 0; it is a number above 0"),
                (["--minutes", "nan"], "--minutes is nan"),
                (["--minutes", "0.5"], "--minutes 0.5 is too short for anything: the build 60 s, the benchmark calls 15 s and the "
                                       "end of a run 12 s take --minutes 1.5 at least"),
                (["--minutes", "1.1", "--only", "build"], "the build 60 s and the end of a run 12 s take --minutes 1.2 at least"),
                (["--only", "build", "--card", "9"], '--card is "9"; it is a compute capability like 9.0'),
                (["--card", "9.0"], "--card goes with --only build"),
                (["--results", self.folder / "file/deeper"], "file/deeper cannot be written .Not a directory.: name another folder"),
                (["--from", self.folder / "none"], "none, which is no folder")):
            status, said, _ = self.call(*options)
            self.assertEqual(status, 2, said)
            self.assertRegex(" ".join(said.split()), told)
            self.assertFalse((self.folder / "machine/cuda").exists())

    def test_where_no_card_is_named_nothing_is_run(self):
        status, said, _ = self.call("--only", "build", PATH=self.no_card())
        self.assertEqual((status, said), (2, "./dev gpu: nvidia-smi names no GPU: nothing is run. --only build --card 9.0 builds "
                                             "for a card of another machine\n"))


if __name__ == "__main__":
    if importlib.util.find_spec("pytest") is None:  # the parts of the tests would be skipped, and so be missing in each report
        sys.exit(f"{sys.executable} has no pytest, which the rehearsal needs: run it by build/venv/bin/python, or pip install pytest")
    unittest.main(argv=[sys.argv[0]])
