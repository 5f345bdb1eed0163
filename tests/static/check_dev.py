"""Requests to ./dev and CMake are understood, or refused with advice: `check_dev.py SOURCE_DIR BUILD_DIR`."""
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests"))
import check  # noqa: E402


def isas(asked, processor="x86_64"):
    """Returns (exit status, what CMake said) of YOKE_CPU_ISAS."""
    script = f"""cmake_minimum_required(VERSION 3.25)
set(YOKE_CPU_ISAS {asked})
set(CMAKE_SYSTEM_PROCESSOR {processor})
include({SOURCE}/cmake/YokeIsas.cmake)
yoke_isas(found)
message(STATUS "found ${{found}}")
"""
    path = BUILD / "tests/isas.cmake"
    path.write_text(script)
    done = subprocess.run(["cmake", "-P", path], capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


KNOWN = (75, 80, 86, 89, 90, 100, 103)  # to the nvcc of these tests


def archs(asked, compute_capabilities=None, nvcc=True):
    """Returns (exit status, CMake's output) of YOKE_CUDA_ARCHS, with an nvidia-smi that prints these capabilities, or without
    nvidia-smi.
    """
    with tempfile.TemporaryDirectory() as folder:
        tools = {"nvcc": " ".join(f"compute_{arch}" for arch in KNOWN)} if nvcc else {}
        if compute_capabilities is not None:
            tools["nvidia-smi"] = compute_capabilities
        for name, said in tools.items():
            tool = pathlib.Path(folder, name)
            tool.write_text(f"#!/bin/sh\nprintf '{said}'\n")
            tool.chmod(0o755)
        script = pathlib.Path(folder, "archs.cmake")
        script.write_text(f"""cmake_minimum_required(VERSION 3.25)
set(YOKE_CUDA_ARCHS "{asked}" CACHE STRING "")
include({SOURCE}/cmake/YokeArchs.cmake)
yoke_cuda_archs(found {folder}/nvcc)
message(STATUS "found ${{found}}")
""")
        cmake = shutil.which("cmake")
        done = subprocess.run([cmake, "-P", script], capture_output=True, text=True, env=os.environ | {"PATH": folder})
        return done.returncode, " ".join((done.stdout + done.stderr).split())


def soaked(roofline):
    """Returns (exit status, output) of `./dev soak cuda`. A shell command replaces the reading of machine code."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("dev", "tests/soak.sh"):
            (pathlib.Path(folder) / name).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, pathlib.Path(folder) / name)
        pathlib.Path(folder, "build").mkdir()
        script = f". ./dev help >/dev/null; setup() {{ :; }}; CUDACXX=true; roofline() {{ {roofline}; }}; cmd_soak cuda"
        done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def gpu(*options):
    return subprocess.run([SOURCE / "dev", "gpu", *options], capture_output=True, text=True, env=os.environ | {"YOKE_PYTHON": sys.executable})


def engines(dnnl_major):
    """Returns (exit status, CMake's output) of YokeEngines with a oneDNN of this release."""
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        header = project / "oneapi/dnnl/dnnl_version.h"
        header.parent.mkdir(parents=True)
        header.write_text(f"#define DNNL_VERSION_MAJOR {dnnl_major}\n")
        (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(engines LANGUAGES C)
include({SOURCE}/cmake/YokeEngines.cmake)
message(STATUS "used ${{YOKE_ONEDNN_USED}}")
""")
        done = subprocess.run(["cmake", "-S", folder, "-B", project / "out", "-DYOKE_ZLIB=OFF", f"-DYOKE_DNNL_INCLUDE={folder}",
                               "-DYOKE_DNNL_LIBRARY=/lib/libdnnl.so"], capture_output=True, text=True)
        return done.returncode, " ".join((done.stdout + done.stderr).split())


def wheel(folder):
    """Returns the files of a wheel that has a library and a program, installed by cmake/YokeLayout: (packages, scripts)."""
    project = pathlib.Path(folder)
    (project / "lib.c").write_text("int answer(void) { return 42; }\n")
    (project / "main.c").write_text("int answer(void);\nint main(void) { return answer(); }\n")
    (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(wheel LANGUAGES C)
set(SKBUILD 2)
set(SKBUILD_SCRIPTS_DIR ${{PROJECT_BINARY_DIR}}/scripts)
set(SKBUILD_DATA_DIR ${{PROJECT_BINARY_DIR}}/data)
set(CMAKE_INSTALL_LIBDIR yoke/lib)
include(GNUInstallDirs)
set(PROJECT_SOURCE_DIR {SOURCE})
include({SOURCE}/cmake/YokeLayout.cmake)
add_library(yoke SHARED {project}/lib.c)
add_executable(tool {project}/main.c)
target_link_libraries(tool PRIVATE yoke)
install(TARGETS yoke LIBRARY DESTINATION ${{CMAKE_INSTALL_LIBDIR}})
yoke_install_program(tool)
""")
    for command in (["-S", folder, "-B", project / "out", f"-DPython_EXECUTABLE={sys.executable}"], ["--build", project / "out"],
                    ["--install", project / "out", "--prefix", project / "packages"]):
        subprocess.run(["cmake", *command], check=True, capture_output=True)
    return project / "packages", project / "out" / "scripts"


class Dev(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = check.Build(BUILD, refresh=False)

    def planned(self, name):
        plan = check.Plan(self.build)
        self.assertTrue(plan.add(name), name)
        return plan

    def test_a_program_of_a_wheel_finds_the_library_from_the_environments_bin(self):
        clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}  # the build's own comes first in it
        python = pathlib.Path(sysconfig.get_path("stdlib")).name
        with tempfile.TemporaryDirectory() as folder:
            packages, scripts = wheel(folder)
            for number, place in enumerate([f"lib/{python}/site-packages", f"lib64/{python}/site-packages",
                                            f"lib/{python}/dist-packages", "."]):
                environment = pathlib.Path(folder, f"environment-{number}")
                shutil.copytree(packages, environment / place)
                shutil.copytree(scripts, environment / "bin")
                self.assertEqual(subprocess.run([environment / "bin/tool"], env=clean).returncode, 42, place)

    def test_the_benchmarks_have_built_what_they_use_of_the_tests(self):
        users = [path.name for path in (SOURCE / "benchmarks").glob("*.py") if '"fakes" / "edge"' in path.read_text()]
        self.assertEqual(users, ["startup.py"])
        made = subprocess.run(["ninja", "-C", BUILD, "-t", "inputs", "benchmarks"], check=True, capture_output=True, text=True).stdout
        if "fake_nvml" in (BUILD / "build.ninja").read_text():
            self.assertTrue("fake_nvml.dir/" in made, "no benchmark has the fake NVML built")

    def test_an_unknown_name_is_refused_with_the_nearest(self):
        plan = check.Plan(self.build)
        self.assertFalse(plan.add("sofmax"))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(check.refuse("sofmax", plan.names()), 2)
        self.assertRegex(said.getvalue(), '"sofmax".*nearest are softmax')

    def test_names_of_each_kind_find_their_tests(self):
        self.assertEqual(self.planned("softmax").ops, {"softmax"})
        self.assertEqual(self.planned("core/ops/softmax.cpp").ops, {"softmax", "log_softmax"})
        usual = self.planned("core/ops/rules.cpp").ops  # lines that name a rule of this file
        self.assertEqual(({"add", "eq", "sum"} <= usual, usual & {"where", "cast", "zeros"}), (True, set()))
        self.assertLess({"lua/ops_spec", "lua/nn_spec"}, self.planned("lua").tests)
        self.assertEqual(self.planned("graph").tests, {"python/test_graph", "lua/graph_spec"})
        self.assertEqual(self.planned("tests/python/test_graph.py").tests, {"python/test_graph"})
        self.assertEqual(self.planned("kernels/cpu/simd/softmax.cpp").targets(), ["_yoke", "yoke_lua"])

    def test_what_tests_need_is_known_of_each(self):
        lacking = [name for name in self.build.tests if not self.build.needs.get(name)]
        # Only tests that need headers of CUDA or MPI may be missing.
        self.assertEqual(sorted(set(lacking) - {"fakes/cuda", "backend/mpi"}), [])

    def test_internal_ops_are_tried_by_what_uses_them(self):
        self.assertEqual(check.tried_by({"_softmax_backward", "log_softmax"}), ({"softmax", "log_softmax"}, set()))
        self.assertEqual(check.tried_by({"_adamw"}), (set(), {"optim"}))

    def test_instruction_sets_are_known_by_name(self):
        self.assertEqual(isas("base v4 base"), (0, "-- found base;v4"))
        self.assertEqual(isas("base v4", "aarch64"), (0, "-- found base"))
        for asked, reason in (("base v5", 'names "v5"; there are base, v3, v4'), ("v3", "lacks base")):
            status, said = isas(asked)
            self.assertNotEqual(status, 0)
            self.assertIn(reason, said)

    def test_the_cards_of_this_machine_are_asked_for_once_each(self):
        self.assertIn("found 80;90;100", archs("native", "9.0\\n8.0\\n9.0\\n10.0\\n")[1])
        every_common_one = "found 75-real;80-real;86-real;89-real;90-real;100"
        for said in ("No devices were found\\n", None):
            self.assertTrue(archs("native", said)[1].endswith(every_common_one))

    def test_architectures_are_read_as_cmake_reads_them(self):
        self.assertIn("found 90-real", archs("90-real")[1])
        self.assertIn("found 80-virtual;90a-real;100f", archs("80-virtual;90a-real;100f")[1])
        self.assertIn("found 75-real;80-real;86-real;89-real;90-real;100-real;103", archs("all")[1])
        self.assertIn("found 75-real;80-real;90-real;100", archs("all-major")[1])
        self.assertIn("found 75-real;80-real;86-real;89-real;90-real;100-real;120", archs("all", nvcc=False)[1])
        self.assertIn("found 42", archs("42", nvcc=False)[1])

    def test_what_is_no_architecture_is_told_with_what_is(self):
        for asked, told in {"hopper": "hopper", "80;90-rael": "90-rael", "9.0": "9.0", "80;native": "native", "0": "0",
                            "sm_90": "sm_90"}.items():
            status, said = archs(asked)
            self.assertNotEqual(status, 0, asked)
            self.assertIn(f'has "{told}"; each entry is a number like 86', said)
        status, said = archs("70-real;90")
        self.assertNotEqual(status, 0)
        self.assertIn('has "70-real", for which this nvcc does not compile; it knows 75 80 86 89 90 100 103', said)
        for asked in ("75a", "89a-real", "80;75f", "90f-virtual"):
            status, said = archs(asked)
            self.assertNotEqual(status, 0, asked)
            self.assertIn(f'has "{asked.split(";")[-1]}"; nvcc has "a" (what one architecture alone has) from 90 on and "f" (what a '
                          'family has) from 100 on; each entry is a number like 86', said)
        status, said = archs("")
        self.assertNotEqual(status, 0)
        self.assertIn("YOKE_CUDA_ARCHS is empty; each entry is", said)

    def test_a_part_of_the_soak_that_lacks_a_tool_is_skipped_and_no_failure(self):
        status, said = soaked('echo "nvdisasm is not here: nothing is predicted"; return 77')
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"(?s)nvdisasm is not here.*skipped, for the reasons above: cuda")
        self.assertNotIn("failed", said)
        status, said = soaked("return 1")
        self.assertEqual(status, 1, said)
        self.assertIn("failed: cuda", said)
        status, said = soaked("return 0")
        self.assertEqual((status, "skipped" in said or "failed" in said), (0, False), said)

    def test_the_help_on_gpu_has_all_of_its_options(self):
        told = gpu("--help")
        packs = set(re.findall(r"(--[a-z]+)", gpu("--pack", "--help").stdout)) - {"--help"}
        self.assertEqual(packs, {"--pack", "--python"})
        for option in {"--minutes", "--only", "--results", "--from", "--small"} | packs:
            self.assertRegex(told.stdout, rf"(?m)^  {option}\b", option)
        refused = gpu("--small", "--pack")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--pack stands before all others", refused.stderr)

    def test_a_onednn_of_another_release_is_told_by_its_number(self):
        status, said = engines(2)
        self.assertEqual(status, 0, said)
        self.assertIn("used TRUE", said)
        status, said = engines(3)
        self.assertNotEqual(status, 0)
        self.assertIn("/lib/libdnnl.so is oneDNN 3, whose C interface is another: install oneDNN 2, or configure with "
                      "YOKE_ONEDNN=OFF", said)

    def test_native_asks_for_the_features_that_are_asked_for_at_run_time(self):
        asked = [set(re.findall(r'__builtin_cpu_supports\("(\w+)"\)', (SOURCE / path).read_text()))
                 for path in ("cmake/YokeIsas.cmake", "kernels/cpu/cpuid.cpp")]
        self.assertGreater(len(asked[0]), 5)
        self.assertEqual(*asked)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
