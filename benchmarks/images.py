"""Ops after convolutions, on 32 images of 64 channels and 56 x 56 in one thread: beside the newest PyTorch's better order.

Batch norm with a residual and a ReLU, and max pooling of 3 x 3 with stride 2, each forward and backward, in float32 and bfloat16.
Processor time counts, so that other work on the machine disturbs little.

    ./dev bench images [--json FILE] [--rounds N]
"""

import statistics
import sys

from bench import NEWEST_TORCH, WORKERS, Report, Worker, rounds

ORDERS = ("nchw", "nhwc")
# {(what, dtype): least speed as a multiple of PyTorch's}; several parts are added up.
TARGETS = {
    (("norm forward",), "float32"): 1.3, (("norm forward",), "bfloat16"): 1.5,
    (("norm backward",), "float32"): 1.0, (("norm backward",), "bfloat16"): 1.2,
    (("pool forward", "pool backward"), "float32"): 1.2, (("pool forward", "pool backward"), "bfloat16"): 2.0,
}


def best(times, role, parts, dtype):
    """Returns the seconds of the better order, all parts together."""
    return min(sum(statistics.median(times[part, dtype][f"{role} {order}"]) for part in parts) for order in ORDERS)


def main():
    report = Report("images")
    workers = {"Yoke": Worker(sys.executable, WORKERS / "images_yoke.py"),
               "newest PyTorch": Worker(NEWEST_TORCH, WORKERS / "images_torch.py")}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    times = {}
    for part in ("norm forward", "norm backward", "pool forward", "pool backward"):
        for dtype in ("float32", "bfloat16"):
            times[part, dtype] = rounds({f"{role} {order}": (worker, f"{part} {dtype} {order}")
                                         for role, worker in workers.items() for order in ORDERS}, report.options.rounds or 9, 0.05)
            for role, seconds in times[part, dtype].items():
                report.result(f"{part}, {dtype}: {role}", 1e3 * statistics.median(seconds), [1e3 * min(seconds), 1e3 * max(seconds)], "ms")
                print(f"  {part}, {dtype}: {role:22} {1e3 * statistics.median(seconds):8.2f} ms")
    for (parts, dtype), least in TARGETS.items():
        theirs, ours = (best(times, role, parts, dtype) for role in ("newest PyTorch", "Yoke"))
        got = {"median": theirs / ours, "low": theirs / ours, "high": theirs / ours}
        report.target(f"{' and '.join(parts)}, {dtype}: Yoke / newest PyTorch", got, least, at_most=False)
    report.finish()


if __name__ == "__main__":
    main()
