"""Cost of a call: the addition of two tensors of 8 float32 numbers, beside torch.add called from Python.

./dev bench overhead [--json FILE] [--rounds N]
"""

import sys

from bench import BUILT, WORKERS, Report, Worker, ratio, rounds, torch_workers

# (case of Yoke, case of PyTorch, the most that the ratio may be in C, Python and Lua)
CASES = [
    ("add", "add", {"C": 0.12, "Python": 0.25, "Lua": 0.30}),
    ("operator", "add", {"Python": 0.25, "Lua": 0.30}),
    ("add with grad", "add with grad", {"C": 0.40, "Python": 0.40, "Lua": 0.40}),
    ("forward and backward", "forward and backward", {"C": 0.30, "Python": 0.30, "Lua": 0.30}),
]


SCOPE_NS = 300  # the most that an op in a checkpoint scope may cost more, the scope's own share included


def compare_scopes(report, yoke):
    for language in ("C", "Python"):
        times = rounds({case: (yoke[language], case) for case in ("chain", "chain in a scope")}, report.options.rounds or 21, 0.02)
        report.calls(f"{language}: products in a row", times)
        more = {"more": [1e9 * (b - a) for a, b in zip(times["chain"], times["chain in a scope"])], "ns": [1.0] * len(times["chain"])}
        report.target(f"{language}: ns that an op in a scope costs more", ratio(more, "more", "ns"), SCOPE_NS, at_most=True)


NAME_NS = 10  # the most that an argument under PyTorch's name may cost more than under Yoke's


def compare_names(report, yoke):
    for language in ("Python", "Lua"):
        times = rounds({case: (yoke[language], case) for case in ("sum by axis", "sum by dim")}, report.options.rounds or 21, 0.02)
        report.calls(f"{language}: a sum by name", times)
        more = {"more": [1e9 * (b - a) for a, b in zip(times["sum by axis"], times["sum by dim"])], "ns": [1.0] * len(times["sum by axis"])}
        report.target(f"{language}: ns that dim= costs more than axis=", ratio(more, "more", "ns"), NAME_NS, at_most=True)


# Maximum microseconds of an all_reduce of a card's tensor beyond the same calls of the module's table.
ALL_REDUCE_US = {"C": 3, "Python": 4}


def compare_collectives(report):
    """Measures the code between a script and NCCL: the comparison of calls between ranks, the record and the watch."""
    tests = BUILT.parent / "tests"
    driver = tests / "fakes/cuda/driver"
    if not (driver / "libnccl.so.2").exists():
        return print("no fake NCCL was built: the cost of a card's collective is not measured")
    fakes = ("env", "FAKE_CUDA_DEVICES=9.0", f"YOKE_CUDA_LIB_PATH={driver}", f"LD_LIBRARY_PATH={tests / 'emu/lib'}:{driver}", "YOKE_CUDNN_ENABLED=0")
    program, library = BUILT / "overhead_nccl", tests / "emu/lib"
    workers = {"table": Worker(*fakes, program, "direct", library / "libyoke_cuda.so"), "C": Worker(*fakes, program, "yoke", library / "libyoke.so.0"),
               "Python": Worker(*fakes, sys.executable, WORKERS / "overhead_nccl.py")}
    for role, worker in workers.items():
        report.peer(f"all_reduce: {role}", worker.about)
    times = rounds({role: (worker, "all_reduce") for role, worker in workers.items()}, report.options.rounds or 21, 0.02)
    report.calls("all_reduce of a card's tensor", times)
    for language, most in ALL_REDUCE_US.items():
        more = {"more": [1e6 * (b - a) for a, b in zip(times["table"], times[language])], "us": [1.0] * len(times["table"])}
        report.target(f"{language}: us that an all_reduce costs its caller beyond the table's calls", ratio(more, "more", "us"), most, at_most=True)


def main():
    report = Report("overhead")
    yoke = {"C": Worker(BUILT / "overhead_yoke"), "Python": Worker(sys.executable, WORKERS / "overhead_yoke.py"),
            "Lua": Worker("lua5.4", WORKERS / "overhead_yoke.lua")}
    torch = torch_workers(WORKERS / "overhead_torch.py")
    for role, worker in {**yoke, **torch}.items():
        report.peer(role, worker.about)
    for case, peer_case, targets in CASES:
        contestants = {language: (yoke[language], case) for language in targets}
        contestants |= {role: (worker, peer_case) for role, worker in torch.items()}
        times = rounds(contestants, report.options.rounds or 21, 0.02)
        report.calls(case, times)
        for role in torch:
            for language, wanted in targets.items():
                report.target(f"{case}: {language} / {role}", ratio(times, language, role), wanted, at_most=True)
    compare_scopes(report, yoke)
    compare_names(report, yoke)
    compare_collectives(report)
    report.finish()


if __name__ == "__main__":
    main()
