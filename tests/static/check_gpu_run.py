"""`./dev gpu` rehearsed where there is no GPU: `check_gpu_run.py SOURCE_DIR BUILD_DIR`. Calls, what they carry, and bad input.

check_gpu_calls.py rehearses parts that go wrong and calls that are cut short.
"""
import io
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import unittest

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tests/gpu/rehearsal"))
import stage  # noqa: E402

PLAY = stage.PLAY


class Runs(stage.Rehearsal):
    # ---- a run in one ------------------------------------------------------------------------------------------------

    def test_parts_are_run_in_the_order_of_what_they_tell(self):
        status, said, _ = self.call("--results", self.results)
        self.assertEqual(status, 0, said)
        parts, figures, _ = self.report()
        self.assertEqual({one["status"] for one in parts.values()} - {"skipped"}, {"passed"}, said)
        begun = list(parts)
        self.assertEqual(begun[:2], ["configure", "build"])
        places = [begun.index(name) for name in ("contract suite", "device against CPU and emulation", "real sizes: attention", "memcheck, part 1")]
        self.assertLess(max(places), 14, "what was never run is first")
        self.assertEqual([name for name in begun if name.startswith(("bench ", "profile "))],
                         ["bench memory", "bench gemm", "bench attention", "bench images", "bench steps", "profile of GPT-2", "profile of ResNet-50",
                          "bench calls", "bench main", "bench graphs", "bench mixed"])
        self.assertEqual(len(figures), 11)

    def test_a_part_whose_tests_are_all_skipped_is_told_so_with_the_reason(self):
        status, said, _ = self.call("--only", "nccl", REHEARSAL_FAULT="skip:NCCL*")
        part = self.report(self.folder / "machine/gpu")[0]["NCCL, one rank a card"]
        self.assertEqual((status, part["status"], part["note"]), (0, "skipped", "NCCL cannot be loaded"), said)

    # ---- a run that is cut short -------------------------------------------------------------------------------------

    def cut_short(self, number):
        """Runs until the first parts are done and a part hangs, then sends a signal; returns (process, output)."""
        process = self.start("--only", "build,contract,jobs", "--results", self.results, REHEARSAL_FAULT="hang:contract suite", YOKE_GPU_CLOCK="1")
        until, enough = time.monotonic() + 60, ("GPT, f16", "main job, off")
        while time.monotonic() < until:
            try:
                if set(enough) <= set(self.report(ended=False)[0]):
                    break
            except FileNotFoundError:
                pass
            time.sleep(0.02)
        process.send_signal(number)
        return process, process.communicate()[0]

    def test_a_run_that_is_asked_to_end_ends_its_parts_and_says_so(self):
        process, said = self.cut_short(signal.SIGTERM)
        parts = self.report()[0]
        self.assertEqual((process.returncode, stage.marked(process.pid)), (1, []), said)
        self.assertIn("the run was ended by SIGTERM", parts["contract suite"]["note"])
        self.assertEqual(parts["GPT, f16"]["status"], "passed")

    def test_a_killed_run_leaves_what_was_finished(self):
        process, said = self.cut_short(signal.SIGKILL)
        stage.kill(process)
        parts = self.report(ended=False)[0]
        self.assertEqual((process.returncode, parts["GPT, f16"]["status"]), (-signal.SIGKILL, "passed"), said)
        self.assertIn("| main job, off |", (self.results / "RESULTS-h200.md").read_text())
        self.assertNotIn("contract suite", parts)

    # ---- calls that take over from each other ------------------------------------------------------------------------

    def test_three_calls_on_fresh_machines_take_over_and_write_one_report(self):
        self.packed()
        self.assertTrue((self.results / "build-90.tar.xz").exists() and (self.results / "emulated.npz").exists())
        carried, calls = self.results, ("proof", "speed", "rest")
        for only in calls:
            results = self.folder / f"after-{only}"
            status, said, _ = self.call("--only", only, "--results", results, "--from", carried, machine=only)
            self.assertEqual(status, 0, said)
            self.assertFalse((self.folder / only / "cuda").exists(), "nothing was built")
            for file in ("build-90.tar.xz", "emulated.npz"):
                shutil.copy(carried / file, results)
            carried = results
        self.assertIn(str(self.folder / "proof/carried"), (self.folder / "proof/carried/env").read_text())
        self.assertTrue((self.folder / "proof/carried/python/yoke/data.py").samefile(SOURCE / "bindings/python/yoke/data.py"))
        self.assertIn(f"--carried {self.results}/emulated.npz", (self.folder / "proof/gpu/device-against-CPU-and-emulation.log").read_text())
        parts, figures, data = self.report(carried)
        self.assertEqual(len(figures), 11)
        self.assertLess({"contract suite", "test_ops_grad", "torch.compile, once", "profile of ResNet-50", "bench mixed"}, set(parts))
        self.assertEqual([one["command"].split()[3] for one in data["calls"]], list(calls))

    def test_on_the_same_machine_nothing_is_to_be_carried_and_torch_compiles_once(self):
        for only in ("build", "proof", "speed"):
            status, said, _ = self.call("--only", only)
            self.assertEqual((status, "torch.compile, once" in said), (0, only == "proof"), said)
        self.assertLess({"build", "contract suite", "bench steps"}, set(self.report(self.folder / "machine/gpu")[0]))

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

    def changed(self, change):
        """Packs a build, with another mark in the archive: change(mark) returns the mark."""
        self.packed()
        archive, members = self.results / "build-90.tar.xz", []
        with tarfile.open(archive, "r:xz") as packed:
            for member in packed.getmembers():
                content = packed.extractfile(member).read() if member.isfile() else None
                if member.name == "gpu-build.json":
                    content = json.dumps(change(json.loads(content))).encode()
                    member.size = len(content)
                elif member.name == "python/yoke/_yoke.so":
                    member.name = "python/yoke/_yoke.of-another-python.so"
                members.append((member, content))
        with tarfile.open(archive, "w:xz", preset=1) as packed:
            for member, content in members:
                packed.addfile(member, io.BytesIO(content) if content is not None else None)

    def built_for_another_python(self):
        self.changed(lambda mark: {**mark, "python": "2.7 (.so)"})

    def test_a_build_for_another_machine_is_told_with_both_values(self):
        for name, value, told in (("sources", "0123456789ab", "build-90.tar.xz was built of other sources, 0123456789ab, than this tree's, [0-9a-f]{12}"),
                                  ("processor", "riscv64", "build-90.tar.xz was built for a processor riscv64, this machine's is "),
                                  ("needs", {"GLIBC": "99.1"}, "build-90.tar.xz needs GLIBC 99.1, this machine has [0-9.]+: make the build on an older")):
            self.changed(lambda mark: {**mark, name: value})
            status, said, _ = self.call("--only", "contract", "--from", self.results, machine=name)
            parts = self.report(self.folder / name / "gpu")[0]
            self.assertRegex(parts["build of an earlier call"]["note"], told)
            self.assertEqual((status, parts["build"]["status"], parts["contract suite"]["status"]), (0, "passed", "passed"), said)

    def test_a_build_is_made_where_no_card_is_and_taken_over_where_one_is(self):
        self.built_for_another_python()
        configured = (self.folder / "first/gpu/configure.log").read_text()
        self.assertIn("-DYOKE_CUDA_ARCHS=90 -DYOKE_CPU_ISAS=base;v3;v4 ", configured, "for whatever processor the other machine has")
        status, said, _ = self.call("--only", "proof", "--from", self.results, machine="second")
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
        status, said, _ = self.call("--only", "proof", "--from", self.results, machine="second", REHEARSAL_FAULT="fail:build of the Python*")
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

    # ---- missing packages --------------------------------------------------------------------------------------------

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
                (["--only", "prof"], 'names "prof", nearest is proof; there are proof, speed, rest, build, contract, .* memory, '),
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
    stage.main()
