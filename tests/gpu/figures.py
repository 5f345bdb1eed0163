"""Measurements of a run on a GPU, as jobs that run one after another, alone on the device."""

import os
import shutil

from jobs import LIMIT, ROOT, Job, lacks
from notes import last_line, left_unprofiled

# Groups of benchmarks/gpu.py, the most important first: (name, most seconds, fewest seconds for a useful result).
BENCHMARKS = (("memory", 110, 40), ("gemm", 100, 30), ("attention", 90, 25), ("images", 90, 25), ("steps", 220, 60),
              ("profile", 120, 30), ("calls", 40, 15), ("main", 70, 30), ("graphs", 60, 20), ("mixed", 60, 25))
BY_TORCH = ("attention", "images", "main", "steps")  # PyTorch is the only peer here
COMPILED = ("steps", "main")  # before these groups torch.compile has compiled once
PROFILED = (("gpt2", "GPT-2"), ("resnet", "ResNet-50"))
MARK = "torch-compiled"  # file beside the logs: torch.compile has left its cache on this machine


def prepare_job(setting):
    return Job("torch.compile, once", "prepare", setting.run("benchmarks/workers/gpu_torch.py", "cuda", "--prepare", *["--small"] * setting.small), 240,
               last_line, {"PYTHONPATH": str(ROOT / "benchmarks")}, lacks(setting.python, "torch"), least=20)


def profile_jobs(setting, seconds, least):
    """Yields a step of each net under Nsight Compute."""
    tool = shutil.which("ncu", path=setting.variables["PATH"]) or ""
    for net, name in PROFILED:
        file = setting.logs / f"profile-{net}.json"
        yield Job(f"profile of {name}", "profile", setting.run("tests/gpu/ncu.py", net, "--ncu", tool, "--json", file, "--keep", setting.results,
                                                               *["--small"] * setting.small), seconds, last_line,
                  {"PYTHONPATH": os.pathsep.join([str(ROOT / "examples"), str(ROOT / "benchmarks")])},
                  lacking="" if tool else "there is no ncu (Nsight Compute)", least=least, figures=file, skipped=left_unprofiled)


def measurements(setting):
    """Yields a process for each group, so a hang or crash in a group does not affect the other groups."""
    for name, seconds, least in BENCHMARKS:
        if name == "profile":
            yield from profile_jobs(setting, seconds, least)
            continue
        file = setting.logs / f"bench-{name}.json"
        yield Job(f"bench {name}", name, setting.run("benchmarks/gpu.py", "--only", name, "--json", file, "--capability", setting.capability,
                                                     "--card", setting.card, "--seconds", LIMIT, *["--small"] * setting.small),
                  seconds, last_line, lacking=lacks(setting.python, "torch") if name in BY_TORCH else "", least=least, figures=file)
