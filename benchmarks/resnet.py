"""Training steps of examples/resnet.py's networks: ResNet-18 on 32 pictures of 28 x 28, widths 32 and 64, float32 and bfloat16,
1 and 2 threads, beside its floor and the newest PyTorch's better order of memory; what its forward keeps in bfloat16; and
ResNet-50 on 8 pictures of 64 x 64 under a memory budget.

    ./dev bench resnet [--json FILE] [--rounds N]
"""

import statistics
import sys

from bench import BUILT, NEWEST_TORCH, ROOT, WORKERS, Report, Worker, ratio, rounds

BATCH = 32
ORDERS = ("nchw", "nhwc")
# {(width, dtype): the least share of the floor's speed, and multiple of PyTorch's}
TARGETS = {(32, "f32"): (0.85, 1.1), (32, "bf16"): (0.78, 1.15), (64, "f32"): (0.90, 1.0), (64, "bf16"): (0.86, 1.0)}
KEPT = 0.55  # maximum for bfloat16, relative to float32
# {width: the share of activations that a budget leaves}; of the example's 16, whose weights, gradients and momenta are
# more than half of the peak, 0.3 is out of reach, and gets the least there is.
BUDGET, BUDGET_WIDTH = "0.5", 64
PEAK, TIME = 0.64, 1.20  # under the budget, relative to a plain step


def convolutions(width):
    """Lists the convolutions of ResNet-18 in forward order, as input of the lower bound; read from the network itself."""
    sys.path.insert(0, str(ROOT / "examples"))
    import resnet
    import yoke

    found = []

    class Told(yoke.nn.Conv2d):
        def forward(self, x):
            out = super().forward(x)
            found.append((x.shape[2], x.shape[1], out.shape[1], self.weight.shape[2], self.stride[0], int(x.requires_grad)))
            return out

    net = resnet.ResNet(18, width, resnet.SIDE)
    for module in net.modules():
        if isinstance(module, yoke.nn.Conv2d):
            module.__class__ = Told
    net(yoke.zeros((1, resnet.SIDE**2)))
    return ",".join(":".join(map(str, sizes)) for sizes in found)


def measure_steps(report, workers, width, dtype, threads):
    """Measures the steps of all contestants, and their ratios."""
    how = f"width {width}, {dtype}, {threads} thread{'s' if threads > 1 else ''}"
    case = f"{'off' if dtype == 'f32' else 'bf16'} {width} {threads}"
    contestants = {"floor": (workers["floor"], f"{dtype} {threads} {convolutions(width)}"), "Yoke": (workers["Yoke"], f"step {case}"),
                   **{f"newest PyTorch, {order}": (workers["newest PyTorch"], f"{order} {case}") for order in ORDERS}}
    times = rounds(contestants, report.options.rounds or 7, 0.5)
    print(f"\n{how}")
    for name, seconds in times.items():
        speeds = [BATCH / s for s in seconds]
        report.result(f"{name}, {how}", statistics.median(speeds), [min(speeds), max(speeds)], "images/s")
        print(f"  {name:24} {statistics.median(speeds):8.0f} images/s  ({min(speeds):.0f} to {max(speeds):.0f})")
    of_floor, of_torch = TARGETS[width, dtype]
    report.target("Yoke / floor", ratio(times, "floor", "Yoke"), of_floor, False, case=how)
    best = min((name for name in times if name.startswith("newest")), key=lambda name: statistics.median(times[name]))
    report.target(f"Yoke / {best}", ratio(times, best, "Yoke"), of_torch, False, case=how)


def settle(share):
    """Returns ratio()'s form of a figure that is equal in every run."""
    return {"median": share, "low": share, "high": share}


def measure_memory(report, yoke):
    plain, mixed = (yoke.measure(f"kept {amp}", 1) for amp in ("off", "bf16"))
    print(f"\nactivations kept for backward, ResNet-18, width 64: f32 {plain / 2**20:.1f} MiB, bf16 {mixed / 2**20:.1f} MiB")
    report.target("activations, bf16 / f32", settle(mixed / plain), KEPT, True)
    measure_budget(report, yoke)


def measure_budget(report, yoke):
    cases = {which: f"{which} {BUDGET_WIDTH}" for which in ("plain", BUDGET)}
    peaks = {which: peak_of(yoke, case) for which, case in cases.items()}
    times = rounds({which: (yoke, f"budget {case}") for which, case in cases.items()}, report.options.rounds or 7, 0.5)
    how = f"ResNet-50, width {BUDGET_WIDTH}, a budget of {BUDGET}"
    print(f"{how}: " + ", ".join(f"{which} {peak / 2**20:.1f} MiB, {1e3 * statistics.median(times[which]):.1f} ms" for which, peak in peaks.items()))
    report.target("total peak / plain", settle(peaks[BUDGET] / peaks["plain"]), PEAK, True, case=how)
    report.target("time / plain", ratio(times, BUDGET, "plain"), TIME, True, case=how)


def peak_of(yoke, case):
    """Returns the peak of a separate process without other allocations."""
    worker = Worker(*yoke.command)
    try:
        return worker.measure(f"peak {case}", 1)
    finally:
        worker.close()


def main():
    report = Report("resnet")
    workers = {"floor": Worker(BUILT / "resnet_floor"), "Yoke": Worker(sys.executable, WORKERS / "resnet_yoke.py"),
               "newest PyTorch": Worker(NEWEST_TORCH, WORKERS / "resnet_torch.py")}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    for width, dtype in TARGETS:
        for threads in (1, 2):
            measure_steps(report, workers, width, dtype, threads)
    measure_memory(report, workers["Yoke"])
    report.finish()


if __name__ == "__main__":
    main()
