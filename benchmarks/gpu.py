"""Yoke on a GPU beside the device's own rates, cuBLASLt, cuDNN and PyTorch, in one run.

    ./dev gpu [...]        builds, tests, and runs the groups of this last
    python benchmarks/gpu.py [--device cuda] [--only memory,gemm] [--seconds 150] [--rounds 5] [--small] [--json FILE]

Cases and targets: bench/gpu_cases.py. If a case cannot be measured, the run prints the reason and goes on.
"""

import argparse
import json
import os
import pathlib
import select
import subprocess
import sys
import time

import yoke
from bench import BUILT, WORKERS, CaseError, Worker, gpu_predictions, gpu_report, rounds
from bench import gpu_cases as cases

PATIENCE = 120  # seconds for one answer


class Impatient(Worker):
    """A worker that is ended when an answer takes too long."""

    def _answer(self):
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            self.process.kill()
            raise RuntimeError(f"no answer within {PATIENCE} s")
        return super()._answer()


class Contestant:
    """Worker that is started at its first use, and anew after a failure, because a fault may have damaged its process."""

    def __init__(self, bench, role, *command):
        self.bench, self.role, self.command, self.worker, self.failures = bench, role, command, None, 0

    def measure(self, case, count):
        if self.failures > 2:
            raise CaseError(f"{self.role} could not be started")
        try:
            if self.worker is None:
                self.worker = Impatient(*self.command)
                if self.role not in self.bench.data["head"]:
                    self.bench.data["head"][self.role] = self.worker.about
                    print(f"{self.role}: {self.worker.about}", flush=True)
            seconds = self.worker.measure(case, count)
        except (RuntimeError, OSError, ValueError) as error:
            self.failures += self.worker is None
            self.close()
            raise CaseError(f"{self.role}: {error}") from error
        self.failures = 0
        return seconds

    def close(self):
        if self.worker is not None:
            try:
                self.worker.process.stdin.close()
                self.worker.process.wait(10)
            except (OSError, subprocess.TimeoutExpired):
                self.worker.process.kill()
        self.worker = None


class Bench:
    def __init__(self, options):
        self.options, self.until, self.case = options, time.monotonic() + options.seconds, ""
        shares = {} if options.small else gpu_predictions.of_card(options.card)
        self.predicted = {case: shares[case] for case, *_ in cases.MEMORY if case in shares}  # shares of a copy's measured speed
        self.sizes = cases.sizes(options.small)
        self.data = {"head": {}, "parts": [], "results": [], "missing": []}
        small = ["--small"] * options.small
        self.floor = Contestant(self, "CUDA", BUILT / "gpu_floor", cublaslt())
        self.c = Contestant(self, "Yoke in C", BUILT / "gpu_call", options.device)
        self.yoke = Contestant(self, "Yoke", sys.executable, WORKERS / "gpu_yoke.py", options.device, *small)
        self.torch = Contestant(self, "PyTorch", sys.executable, WORKERS / "gpu_torch.py", options.device, *small)

    def save(self):
        """Saves after every case, always a whole file: an interrupted run leaves its results so far."""
        if self.options.json:
            new = pathlib.Path(f"{self.options.json}.new")
            new.write_text(json.dumps(self.data, indent=1) + "\n")
            new.replace(self.options.json)

    def lacks(self, name, reason):
        self.data["missing"].append({"name": name, "reason": str(reason)})
        print(f"  {name}: {reason}", flush=True)
        self.save()

    def add(self, group, name, values, **more):
        one = {**gpu_report.result(group, name, values, **more), "case": self.case}
        if self.case in self.predicted:
            one["predicted"] = self.predicted[self.case]
        self.data["results"].append(one)
        print(gpu_report.line(one), flush=True)
        self.save()

    def compete(self, name, contestants, seconds=0.05):
        """Returns {role: seconds in each round} for {role: (worker, case)}. If a role cannot measure, prints and keeps the reason
        and returns None.
        """
        self.case = name
        if time.monotonic() > self.until:
            return self.lacks(name, "no time was left")
        try:
            return rounds(contestants, self.options.rounds, 0.0 if self.options.small else seconds)
        except CaseError as error:
            return self.lacks(name, error)


def cublaslt():
    """Returns the library beside PyTorch's other wheels, if present; Yoke finds the same library."""
    for folder in sys.path:
        for found in sorted(pathlib.Path(folder).glob("nvidia/*/lib/libcublasLt.so.*")):
            return found
    return ""


def ratios(times, other, ours):
    """Returns how many times as fast as `other` `ours` was, in each round."""
    return [a / b for a, b in zip(times[other], times[ours])]


def measure_memory(bench):
    """Kernels that only move bytes, as parts of the copy's speed."""
    mib, group = bench.sizes.block / 2**20, "Memory-bound kernels: speed in bytes, as a part of a device-to-device copy's"
    copy = f"copy {max(1, round(mib))}"
    for case, blocks, target in cases.MEMORY:
        times = bench.compete(case, {"copy": (bench.floor, copy), "Yoke": (bench.yoke, case)})
        if times:
            speed = blocks * bench.sizes.block / sorted(times["Yoke"])[len(times["Yoke"]) // 2] / 1e12
            part = [ratio * blocks / 2 for ratio in ratios(times, "copy", "Yoke")]
            bench.add(group, case, part, target=target, note=f"{speed:.2f} TB/s")


def measure_gemm(bench):
    group = "Matrix products: speed as a part of cuBLASLt's, called directly"
    for dtype, size in cases.GEMMS:
        case = f"gemm {dtype} {16 if bench.options.small else size}"
        times = bench.compete(case, {"cuBLASLt": (bench.floor, case), "Yoke": (bench.yoke, case)})
        if times:
            speed = 2 * size**3 / sorted(times["Yoke"])[len(times["Yoke"]) // 2] / 1e12
            bench.add(group, case, ratios(times, "cuBLASLt", "Yoke"), target=cases.GEMM if size >= 2048 else None,
                      note=f"{speed:.0f} TFLOP/s")


def measure_attention(bench):
    group = "Causal attention, bf16: speed as a part of cuDNN's"
    for length in cases.LENGTHS:
        for backward in ("", " backward"):
            case = f"attention {16 if bench.options.small else length}{backward}"
            times = bench.compete(case, {"cuDNN": (bench.torch, case), "Yoke": (bench.yoke, case)})
            if times:
                bench.add(group, case, ratios(times, "cuDNN", "Yoke"), target=cases.ATTENTION,
                          note="cuDNN called by PyTorch")


def measure_calls(bench):
    """Measures the host seconds of a small op beyond the launch of an empty kernel."""
    group = "Host seconds of a small op"
    for language, worker, target in (("C", bench.c, cases.CALL_C), ("Python", bench.yoke, cases.CALL_PYTHON)):
        times = bench.compete(f"call from {language}", {"launch": (bench.floor, "launch"), "Yoke": (worker, "call")})
        if times:
            bench.add(group, f"empty kernel, beside {language}", times["launch"], unit="s")
            bench.add(group, f"add from {language}", times["Yoke"], unit="s")
            beyond = [ours - bare for ours, bare in zip(times["Yoke"], times["launch"])]
            bench.add(group, f"add from {language} beyond an empty kernel", beyond, unit="s", target=target, at_most=True)
    times = bench.compete("call in PyTorch", {"PyTorch": (bench.torch, "call")})
    if times:
        bench.add(group, "add in PyTorch, from Python", times["PyTorch"], unit="s")


def measure_main_job(bench):
    group = "The main job: the loop of examples/fashion_mnist.py"
    for amp in ("off", "bf16"):
        for peer, case in (("PyTorch, eager", f"mlp {amp}"), ("torch.compile", f"mlp_compiled {amp}")):
            name = f"main job, {'f32' if amp == 'off' else amp}, beside {peer}"
            times = bench.compete(name, {"peer": (bench.torch, case), "Yoke": (bench.yoke, f"mlp {amp}")}, 0.3)
            if times:
                images = 128 / sorted(times["Yoke"])[len(times["Yoke"]) // 2]
                bench.add(group, name, ratios(times, "peer", "Yoke"), target=cases.COMPILED, note=f"{images:,.0f} images/s")


def measure_steps(bench):
    """Measures training steps beside PyTorch's, and their share of the device's peak."""
    group = "Training steps of a GPT"
    for net, compiled in (("gpt", True), ("gpt2", False), ("gpt2", True)):
        size = getattr(bench.sizes, net)
        peer = "torch.compile" if compiled else "PyTorch, eager"
        case = f"{'compiled' if compiled else 'step'} {net} bf16"
        name = f"{'GPT-2 124M' if net == 'gpt2' else 'examples/gpt.py'}, bf16, beside {peer}"
        times = bench.compete(name, {"peer": (bench.torch, case), "Yoke": (bench.yoke, f"step {net} bf16")}, 0.5)
        if times:
            tokens = size.batch * size.context / sorted(times["Yoke"])[len(times["Yoke"]) // 2]
            bench.add(group, name, ratios(times, "peer", "Yoke"), target=cases.COMPILED, note=f"{tokens:,.0f} tokens/s")
            peak = cases.PEAK.get(bench.options.capability)
            if peak and net == "gpt2" and compiled:
                parts = [size.batch * size.context / s * cases.flops_of_token(size) / peak for s in times["Yoke"]]
                bench.add(group, "GPT-2 124M, bf16, part of the peak (MFU)", parts, target=cases.MFU,
                          note=f"of {peak / 1e12:.0f} TFLOP/s")


def measure_mixed(bench):
    group = "Mixed precision, GPT-2 124M"
    bench.torch.close()  # larger activations may need its cache
    name = "bf16 beside TF32"
    times = bench.compete(name, {"TF32": (bench.yoke, "step gpt2 tf32"), "bf16": (bench.yoke, "step gpt2 bf16")}, 0.3)
    if times:
        bench.add(group, f"{name}: speed", ratios(times, "TF32", "bf16"), target=cases.MIXED_SPEED)
    if time.monotonic() > bench.until:
        return
    bench.case = f"{name}: activations"
    try:
        least, most = (bench.yoke.measure(f"activations gpt2 {amp}", 1) for amp in ("bf16", "tf32"))
        bench.add(group, f"{name}: activations", [least / most], target=cases.MIXED_MEMORY, at_most=True,
                  note=gpu_report.number(least, "bytes"))
    except (CaseError, ZeroDivisionError) as error:
        bench.lacks(f"{name}: activations", error)


def measure_graphs(bench):
    group = "A captured step, replayed"
    for net in ("gpt", "gpt2"):
        name = "GPT-2 124M" if net == "gpt2" else "examples/gpt.py"
        host = bench.compete(f"{name}, replay", {"replay": (bench.yoke, f"replay {net} bf16")}, 0.1)
        if not host:
            continue
        bench.add(group, f"{name}: host seconds of a replay", host["replay"], unit="s", target=cases.REPLAY, at_most=True)
        both = {"step": (bench.yoke, f"step {net} bf16"), "graph": (bench.yoke, f"graph {net} bf16")}
        times = bench.compete(f"{name}, replayed", both, 0.3)
        if times:
            bench.add(group, f"{name}: speed beside the step itself", ratios(times, "step", "graph"))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="name of the device in Yoke and PyTorch")
    parser.add_argument("--capability", default="", help="compute capability of the device, from which its peak follows")
    parser.add_argument("--card", default="", help="name of the device as the driver reports, from which predictions follow")
    parser.add_argument("--seconds", type=float, default=150, help="seconds after which no case begins")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of measurements")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to test that all cases work")
    parser.add_argument("--only", help="groups to measure, separated by commas: " + ", ".join(GROUPS))
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
    options = parser.parse_args()
    options.only = options.only.split(",") if options.only else list(GROUPS)
    if unknown := set(options.only) - set(GROUPS):
        parser.error(f"--only has {', '.join(sorted(unknown))}; the groups are {', '.join(GROUPS)}")
    return options


GROUPS = {"memory": measure_memory, "calls": measure_calls, "gemm": measure_gemm, "attention": measure_attention,
          "main": measure_main_job, "steps": measure_steps, "graphs": measure_graphs, "mixed": measure_mixed}


def main():
    options = read_options()
    if options.device.startswith("cuda") and not yoke.is_available("cuda"):
        print(f"nothing is measured: {yoke.why_unavailable('cuda')}")
        return 0
    bench = Bench(options)
    print(f"load {os.getloadavg()[0]:.2f}")
    for name, measure in GROUPS.items():
        if name in options.only:
            print(f"\n{name}", flush=True)
            measure(bench)
    for contestant in (bench.floor, bench.c, bench.yoke, bench.torch):
        contestant.close()
    bench.save()
    met, missed, missing = gpu_report.counts(bench.data)
    print(f"\ntargets: {met} met, {missed} missed, {missing} without a figure; load at the end {os.getloadavg()[0]:.2f}")
    return 0 if bench.data["results"] else 1


if __name__ == "__main__":
    sys.exit(main())
