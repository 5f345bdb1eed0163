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
        program = (sys.executable, WORKERS / "gpu_yoke.py", options.device, *small)
        self.yoke = Contestant(self, "Yoke", *program)
        self.tuned = Contestant(self, "Yoke, tuned", "env", *TUNED, *program)
        self.torch = Contestant(self, "PyTorch", sys.executable, WORKERS / "gpu_torch.py", options.device, *small)

    def save(self):
        """Saves after every case, always a whole file: an interrupted run leaves its results so far."""
        if self.options.json:
            new = pathlib.Path(f"{self.options.json}.new")
            try:
                new.write_text(json.dumps(self.data, indent=1) + "\n")
                new.replace(self.options.json)
            except OSError as error:  # a full disk ends no run; the figures stand in the log
                new.unlink(missing_ok=True)
                print(f"cannot write {new}: {error.strerror}", flush=True)

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


# Settings under which a shape's first calls choose the quickest of several algorithms (docs/settings.md).
TUNED = ("YOKE_CUBLASLT_AUTOTUNE=1", "YOKE_CUDNN_BENCHMARK=1")


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
    for case, blocks, target in [*cases.MEMORY, *((case, blocks, None) for case, blocks in cases.LOOKUPS)]:
        times = bench.compete(case, {"copy": (bench.floor, copy), "Yoke": (bench.yoke, case)})
        if times:
            speed = blocks * bench.sizes.block / sorted(times["Yoke"])[len(times["Yoke"]) // 2] / 1e12
            part = [ratio * blocks / 2 for ratio in ratios(times, "copy", "Yoke")]
            bench.add(group, case, part, target=target, note=f"{speed:.2f} TB/s")


def measure_gemm(bench):
    group = "Matrix products: speed as a part of cuBLASLt's, called directly"
    squares = [(f"gemm {dtype} {16 if bench.options.small else size}", 2 * size**3, cases.GEMM if size >= 2048 else None) for dtype, size in cases.GEMMS]
    weights = [(f"weights bf16 {m} {n} {k}", 2 * m * n * k, cases.GEMM) for m, n, k in cases.weights(bench.sizes)]
    for case, operations, target in weights + squares:
        times = bench.compete(case, {"cuBLASLt": (bench.floor, case), "Yoke": (bench.yoke, case)})
        if times:
            speed = operations / sorted(times["Yoke"])[len(times["Yoke"]) // 2] / 1e12
            bench.add(group, case, ratios(times, "cuBLASLt", "Yoke"), target=target, note=f"{speed:.0f} TFLOP/s")


def measure_attention(bench):
    """Attention by cuDNN and by own kernels, beside cuDNN under PyTorch; the gradient also with equal bits on both sides."""
    group = "Causal attention, bf16: speed as a part of cuDNN's, called by PyTorch"
    for length in cases.LENGTHS:
        for how in ("", " backward", " backward deterministic"):
            case = f"attention {16 if bench.options.small else length}{how}"
            own = case.replace(" backward", " own backward") if how else f"{case} own"
            for name, ours in ((case, case), (own, own)):
                times = bench.compete(name, {"cuDNN": (bench.torch, case), "Yoke": (bench.yoke, ours)})
                if times:
                    bench.add(group, name, ratios(times, "cuDNN", "Yoke"), target=cases.ATTENTION if ours is case else None)


def measure_images(bench):
    """Convolutions of ResNet-50, channels last on both sides."""
    group = "Convolutions, bf16, channels last: speed as a part of PyTorch's"
    for sizes in cases.convolutions(bench.sizes):
        for backward in ("", " backward"):
            case = f"conv bf16 {sizes}{backward}"
            times = bench.compete(case, {"PyTorch": (bench.torch, case), "Yoke": (bench.yoke, case)})
            if times:
                milliseconds = 1e3 * sorted(times["Yoke"])[len(times["Yoke"]) // 2]
                bench.add(group, case, ratios(times, "PyTorch", "Yoke"), note=f"{milliseconds:.3f} ms")


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
    """Measures training steps beside PyTorch's, or beside tuned steps, and their share of the device's peak."""
    group = "Training steps, bf16"
    for net, peer, how in cases.STEPS:
        size, step = getattr(bench.sizes, net), f"step {net} bf16 {how}".strip()
        rivals = {"tuned": (bench.tuned, step), "step": (bench.torch, step), "compiled": (bench.torch, f"compiled {net} bf16 {how}".strip())}
        if peer == "tuned":
            bench.torch.close()  # its memory is needed
        name = ", ".join(filter(None, [cases.NETS[net], how, f"beside {cases.PEERS[peer]}"]))
        times = bench.compete(name, {"peer": rivals[peer], "Yoke": (bench.yoke, step)}, 0.5)
        if times:
            many, unit = (size.batch, "images/s") if net == "resnet" else (size.batch * size.context, "tokens/s")
            bench.add(group, name, ratios(times, "peer", "Yoke"), target=cases.step_target(net, peer, how),
                      note=f"{many / sorted(times['Yoke'])[len(times['Yoke']) // 2]:,.0f} {unit}")
            if (net, peer) == ("gpt2", "compiled"):
                add_peak(bench, group, times["Yoke"], size)
        bench.tuned.close()


def add_peak(bench, group, seconds, size):
    peak = cases.PEAK.get(bench.options.capability)
    if peak:
        parts = [size.batch * size.context / s * cases.flops_of_token(size) / peak for s in seconds]
        bench.add(group, "GPT-2 124M, bf16, part of the peak (MFU)", parts, target=cases.MFU, note=f"of {peak / 1e12:.0f} TFLOP/s")


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


GROUPS = {"memory": measure_memory, "calls": measure_calls, "gemm": measure_gemm, "attention": measure_attention, "images": measure_images,
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
    for contestant in (bench.floor, bench.c, bench.yoke, bench.tuned, bench.torch):
        contestant.close()
    bench.save()
    met, missed, missing = gpu_report.counts(bench.data)
    print(f"\ntargets: {met} met, {missed} missed, {missing} without a figure; load at the end {os.getloadavg()[0]:.2f}")
    return 0 if bench.data["results"] else 1


if __name__ == "__main__":
    sys.exit(main())
