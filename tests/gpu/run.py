"""What `./dev gpu` does where there is a GPU: builds, tests and measures in one go, within a time, without a network.

    ./dev gpu [--minutes 9.5] [--only build,tests,bench] [--results FOLDER]

Every part has its own time and may fail without ending the rest; after each of them the report is written anew, so that a
run that is cut short leaves what it has. Logs of the parts stand in build/gpu. The exit status is 1 where a part failed.
"""

import argparse
import concurrent.futures
import datetime
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import jobs

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from bench import gpu_report  # noqa: E402

BUILD, LOGS = ROOT / "build" / "cuda", ROOT / "build" / "gpu"
BENCH_SECONDS = 170  # kept free for the benchmarks
BUILD_SECONDS = 330
AT_ONCE = 6  # tests side by side; most are processes of several


def ask(*command):
    """The first line that a command prints, or ""."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0].strip() if done.returncode == 0 and done.stdout.strip() else ""


def find_gpu():
    """(name, compute capability, driver) of the first GPU, or None."""
    line = ask("nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader")
    parts = [part.strip() for part in line.split(",")]
    return tuple(parts) if len(parts) == 3 and re.fullmatch(r"\d+\.\d+", parts[1]) else None


def wheel_folders(kind, name):
    """Folders of NVIDIA's wheels for this Python that have a file of that name in their include or lib."""
    found = [path.parent for folder in sys.path for path in sorted(pathlib.Path(folder).glob(f"nvidia/*/{kind}/{name}"))]
    return list(dict.fromkeys(map(str, found)))


def stop(process):
    """Ends a part, which is a session of its own, and what it started: first politely, so that ninja ends its compilers."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


class Run:
    def __init__(self, options, gpu):
        self.options, self.gpu, self.lock = options, gpu, threading.Lock()
        self.start = time.monotonic()
        self.end = self.start + 60 * options.minutes
        self.nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        self.variables = self.make_variables()
        self.data = {"head": self.describe(), "parts": [], "results": [], "missing": []}
        self.page = pathlib.Path(options.results) / f"RESULTS-{gpu_report.slug(gpu[0])}.md"

    def make_variables(self):
        """The environment of every part: wheels stand in for what the CUDA toolkit lacks."""
        variables = dict(os.environ, CUDACXX=self.nvcc, PYTHONDONTWRITEBYTECODE="1", OMP_WAIT_POLICY="passive",
                         TORCHINDUCTOR_CACHE_DIR=str(LOGS / "inductor"), TRITON_CACHE_DIR=str(LOGS / "triton"))
        variables["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), variables.get("PATH", "")])
        variables.pop("YOKE_DEVICE", None)
        toolkit = pathlib.Path(self.nvcc).resolve().parents[1]
        headers = [folder for name in ("cublasLt.h", "cudnn.h") for folder in wheel_folders("include", name)
                   if not any((base / "include" / name).exists() for base in (toolkit, pathlib.Path("/usr")))]
        libraries = [folder for name in ("libcublasLt.so.*", "libcudnn.so.*") for folder in wheel_folders("lib", name)]
        for variable, folders in (("C_INCLUDE_PATH", headers), ("CPLUS_INCLUDE_PATH", headers),
                                  ("YOKE_CUDA_LIB_PATH", libraries)):
            if folders:
                known = variables.get(variable)
                variables[variable] = ":".join([*([known] if known else []), *dict.fromkeys(folders)])
        return variables

    def describe(self):
        torch = importlib.metadata.version("torch") if importlib.util.find_spec("torch") else "none"
        nvcc = re.search(r"V([\d.]+)", subprocess.run([self.nvcc, "--version"], capture_output=True, text=True).stdout
                         if pathlib.Path(self.nvcc).exists() else "")
        return {"device": self.gpu[0], "compute capability": self.gpu[1], "driver": self.gpu[2],
                "CUDA toolkit": nvcc[1] if nvcc else "none", "PyTorch": torch,
                "date": datetime.date.today().isoformat(), "host": f"{os.cpu_count()} processors",
                "command": " ".join(["./dev gpu", *sys.argv[1:]])}

    def left(self, kept=0.0):
        return self.end - kept - time.monotonic()

    def wants(self, group):
        return not self.options.only or group in self.options.only.split(",")

    # ---- parts -------------------------------------------------------------------------------------------------------

    def add_part(self, name, status, seconds=0.0, note=""):
        with self.lock:
            self.data["parts"].append({"name": name, "status": status, "seconds": seconds, "note": note})
            print(f"  {name:34} {status:12} {seconds:6.1f} s  {note}".rstrip(), flush=True)
            self.write()
        return status == "passed"

    def write(self):
        self.page.parent.mkdir(parents=True, exist_ok=True)
        self.page.write_text(gpu_report.markdown(self.data))
        (LOGS / "results.json").write_text(json.dumps(self.data, indent=1) + "\n")

    def run(self, name, command, seconds, note=None, variables=None, check=None):
        """Runs one part to its end or its time's; note(output) says more of it, check(output) what is wrong with it all the
        same. Whether it passed."""
        log = LOGS / (re.sub(r"[^\w.-]+", "-", name) + ".log")
        if seconds < 3:
            return self.add_part(name, "out of time", 0.0, "not begun")
        begun = time.monotonic()
        with open(log, "w", encoding="utf-8", errors="replace") as file:
            try:
                process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=subprocess.STDOUT, cwd=ROOT,
                                           stdin=subprocess.DEVNULL, env={**self.variables, **(variables or {})},
                                           start_new_session=True)
            except OSError as error:
                return self.add_part(name, "failed", 0.0, str(error))
            try:
                status = "passed" if process.wait(seconds) == 0 else "failed"
            except subprocess.TimeoutExpired:
                stop(process)
                status = "out of time"
        output = log.read_text(encoding="utf-8", errors="replace")
        text = note(output) if note else ""
        problem = check(output) if check and status == "passed" else ""
        if problem:
            status, text = "failed", f"{problem}; {text}"
        if status == "failed" and not text:
            lines = [line for line in output.splitlines() if line.strip()]
            text = lines[-1][:200] if lines else f"status {process.returncode}"
        return self.add_part(name, status, time.monotonic() - begun, text)

    # ---- the build ---------------------------------------------------------------------------------------------------

    def build(self):
        if not self.configure():
            return False
        listed = subprocess.run(["ninja", "-C", str(BUILD), "-t", "targets", "all"], capture_output=True, text=True).stdout
        known = {line.split(":")[0] for line in listed.splitlines()}
        targets = ["yoke", "_yoke", "yoke_cuda", "benchmarks"]
        for target, what, reason in (("test_backend_all", "contract suite", "there is no GoogleTest"),
                                     ("emu_cuda_module", "emulated kernels", "CMake left them out: see build/gpu/configure.log"),
                                     ("yoke_lua", "Lua binding", "there is no lua.h")):
            if target in known:
                targets.append(target)
            else:
                self.add_part(f"build of the {what}", "skipped", 0.0, reason)
        self.run("build", ["ninja", "-C", BUILD, "-k", "0", "-j", os.cpu_count() or 1, *targets],
                 min(BUILD_SECONDS, self.left(60)))
        return (BUILD / "lib" / "libyoke_cuda.so").exists() and any((BUILD / "python" / "yoke").glob("_yoke*.so"))

    def configure(self):
        """Only what this machine can build: the report names what it lacks."""
        major, minor = self.gpu[1].split(".")
        options = {"Python_EXECUTABLE": sys.executable, "YOKE_CUDA": "ON", "YOKE_CUDA_ARCHS": major + minor,
                   "YOKE_CPU_ISAS": "native", "YOKE_ONEDNN": "AUTO", "YOKE_ZLIB": "AUTO",
                   "YOKE_GTEST": "AUTO", "YOKE_LUA": "AUTO", "YOKE_WERROR": "OFF"}  # whichever compiler this is
        pybind11 = ask(sys.executable, "-m", "pybind11", "--cmakedir")
        if pybind11:
            options["pybind11_DIR"] = pybind11
        command = ["cmake", "--preset", "cuda", *(f"-D{name}={value}" for name, value in options.items())]
        return self.run("configure", command, min(150, self.left()), jobs.left_out)

    # ---- tests and measurements --------------------------------------------------------------------------------------

    def test(self):
        """All tests, side by side: the device and the processors serve several at once."""
        until = self.end - (BENCH_SECONDS if self.wants("bench") else 5)
        chosen = [job for job in jobs.all_jobs(BUILD, LOGS, sys.executable, until - time.monotonic()) if self.wants(job.group)
                  or self.wants("tests")]

        def one(job):
            if job.lacking:
                return self.add_part(job.name, "skipped", 0.0, job.lacking)
            return self.run(job.name, job.command, min(job.seconds, until - time.monotonic()), job.note, job.variables,
                            job.check)

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, chosen))

    def bench(self):
        if not (BUILD / "benchmarks" / "gpu_floor").exists():
            self.data["missing"].append({"name": "everything beside CUDA itself", "reason": "gpu_floor was not built"})
        file = LOGS / "bench.json"
        file.unlink(missing_ok=True)
        command = [BUILD / "env", sys.executable, "benchmarks/gpu.py", "--json", file, "--capability", self.gpu[1],
                   "--seconds", f"{max(10.0, self.left(35)):.0f}"]
        self.run("benchmarks", command, self.left(5))
        if file.exists():
            found = json.loads(file.read_text())
            self.data["head"].update(found["head"])
            self.data["results"] += found["results"]
            self.data["missing"] += found["missing"]

    def go(self):
        LOGS.mkdir(parents=True, exist_ok=True)
        print(f"{self.gpu[0]}, compute capability {self.gpu[1]}, driver {self.gpu[2]}; logs in {LOGS.relative_to(ROOT)}",
              flush=True)
        usable = self.build() if self.wants("build") else (BUILD / "lib" / "libyoke_cuda.so").exists()
        if usable:
            self.test()
            if self.wants("bench"):
                self.bench()
        else:
            self.add_part("everything else", "failed", 0.0, "the build left no CUDA module or no Python package")
        self.write()
        print(f"\n{gpu_report.summary(self.data)}\n  report: {self.page}; {time.monotonic() - self.start:.0f} s in all")
        return 0 if gpu_report.ended_well(self.data) else 1


def main():
    parser = argparse.ArgumentParser(prog="./dev gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=9.5, help="for everything")
    parser.add_argument("--only", help="some of build, contract, ops, compare, jobs, sanitizer, tests (all of these but build) "
                                       "and bench, with commas between")
    parser.add_argument("--results", help="where RESULTS-<gpu>.md is written: benchmarks, or build/gpu with --only")
    options = parser.parse_args()
    options.results = options.results or (LOGS if options.only else ROOT / "benchmarks")
    gpu = find_gpu()
    if gpu is None:
        print("nvidia-smi names no GPU: nothing is run")
        return 1
    if importlib.util.find_spec("pybind11") is None and not shutil.which("pybind11-config"):
        print(f"{sys.executable} has no pybind11: the build may not find it")
    return Run(options, gpu).go()


if __name__ == "__main__":
    sys.exit(main())
