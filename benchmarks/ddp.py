"""Data parallel on two processes of this machine, each with a thread and a processor of its own, beside the newest PyTorch with
Gloo.

    ./dev bench ddp [--json FILE] [--rounds N]

Efficiency is the images, or tokens, per second of two ranks, divided by twice the number of a single process: 1 if reducing costs
nothing. Further parts: gain of buckets, cost of the module in a single process, memory of a step, begin of the first bucket, gain
on a network of 1 Gbit/s between two network namespaces, and two ranks of different speed.
"""

import statistics
import sys

from bench import NEWEST_TORCH, ROOT, WORKERS, Report, ratio, rounds
from bench.ranks import Pair

sys.path.insert(0, str(ROOT / "tests" / "groups"))
import networks  # noqa: E402

MODELS = {"MLP": (64, 512), "GPT": (4,)}
BUCKETED, ALONE, MEMORY, OVERLAP = 0.85, 1.02, 1.0, 0.5  # the most that the ratios may be
LINK, BF16, POWERSGD = 0.75, 0.6, 0.15
SHARED, LOSSES = 0.9, 0.01
RATE, POWERSGD_4 = "1gbit", "powersgd:rank=4,start=2"
SLOW_CPU = {"YOKE_CPU_ISA": "base", "ONEDNN_MAX_CPU_ISA": "SSE41"}
STEPS = 150  # for the compared losses
SECONDS = 0.5  # for each measurement


def show(report, title, times):
    print(f"\n{title}")
    for name, seconds in times.items():
        median, low, high = (1e3 * s for s in (statistics.median(seconds), min(seconds), max(seconds)))
        report.result(f"{title}: {name}", median, [low, high], "ms")
        print(f"  {name:44} {median:9.2f} ms  ({low:.2f} to {high:.2f})")


def spread(values):
    values = sorted(values)
    quarter = len(values) // 4
    return {"median": statistics.median(values), "low": values[quarter], "high": values[-1 - quarter]}


def sums(times, one, *others):
    """Returns the time of `one` divided by the sum of the times of `others`, as bench.ratio does."""
    return spread([each / sum(rest) for each, *rest in zip(times[one], *(times[name] for name in others))])


# ---- In shared memory ----------------------------------------------------------------------------------------------


def efficiency(times, who):
    return [alone / both for alone, both in zip(times[f"{who}: one process"], times[f"{who}: two ranks"])]


def measure_speed(report, pairs, model, batch, number):
    """Measures the two ranks beside a single process, and alternatives to buckets."""
    contestants = {}
    for who, pair in pairs.items():
        contestants |= {f"{who}: one process": (pair.ranks[0], f"plain {model} {batch}"), f"{who}: two ranks": (pair, f"ddp {model} {batch}"),
                        f"{who}: a bucket a parameter": (pair, f"each {model} {batch}"),
                        f"{who}: a call a parameter, behind backward": (pair, f"behind {model} {batch}")}
    contestants["Yoke: alone in its group"] = (pairs["Yoke"].ranks[0], f"alone {model} {batch}")
    times = rounds(contestants, number, SECONDS)
    show(report, f"{model}, {batch} a rank: a step", times)
    for who in pairs:
        got = spread(efficiency(times, who))
        report.result(f"{model} {batch}: efficiency of {who}", got["median"], [got["low"], got["high"]], "")
        print(f"  efficiency of {who:48} {got['median']:6.3f}  ({got['low']:.3f} to {got['high']:.3f})")
    if "PyTorch" in pairs:
        got = spread([ours / theirs for ours, theirs in zip(efficiency(times, "Yoke"), efficiency(times, "PyTorch"))])
        report.target(f"{model} {batch}: efficiency, Yoke / PyTorch", got, 1.0, False)
    for who in pairs:
        for other in ("a bucket a parameter", "a call a parameter, behind backward"):
            name, got = f"{model} {batch}: buckets / {other}", ratio(times, f"{who}: two ranks", f"{who}: {other}")
            if who == "Yoke":
                report.target(name, got, BUCKETED, True)
            else:
                print(f"  {who + ', ' + name:62} {got['median']:6.3f}  ({got['low']:.3f} to {got['high']:.3f})")
    report.target(f"{model} {batch}: alone in its group / plain", ratio(times, "Yoke: alone in its group", "Yoke: one process"), ALONE, True)


def measure_memory(report, pair, model, batch):
    """Measures memory, equal in every run. Plain steps keep their gradients."""
    plain = pair.ranks[0].measure(f"peak plain {model} {batch}", 1)
    for mib in (4, 25):
        got = pair.measure(f"peak {mib} {model} {batch}", 1)
        print(f"  {model} {batch}: plain {plain / 2**20:.1f} MiB, buckets of {mib} MiB {got / 2**20:.1f} MiB")
        report.target(f"{model} {batch}: peak / (plain + 2 buckets of {mib} MiB)", spread([got / (plain + 2 * mib * 2**20)]), MEMORY, True)


def measure_overlap(report, pair, model, batch, number):
    got = spread([pair.measure(f"overlap {model} {batch}", 1) for _ in range(number)])
    report.target(f"{model} {batch}: of backward, when the first bucket begins", got, OVERLAP, True)


def in_shared_memory(report, number):
    pairs = {"Yoke": Pair(sys.executable, WORKERS / "ddp_yoke.py")}
    if NEWEST_TORCH.exists():
        pairs["PyTorch"] = Pair(NEWEST_TORCH, WORKERS / "ddp_torch.py")
    else:
        print(f"newest PyTorch: not found ({NEWEST_TORCH}); see benchmarks/README.md")
    for who, pair in pairs.items():
        report.peer(who, pair.about)
    for model, batch in [(model, batch) for model, batches in MODELS.items() for batch in batches]:
        measure_speed(report, pairs, model, batch, number)
    print("\nMemory and overlap")
    for model, batches in MODELS.items():
        measure_memory(report, pairs["Yoke"], model, batches[-1])
        measure_overlap(report, pairs["Yoke"], model, batches[-1], number)
    for pair in pairs.values():
        pair.close()


# ---- Over a network --------------------------------------------------------------------------------------------------


def balanced_batch(pair, transfer):
    """Returns the number of rows for which a step takes as long as its gradients' transfer."""
    few, many = (min(pair.measure(f"plain MLP {rows}", 2) for _ in range(3)) for rows in (64, 256))
    return max(64, round(64 + (transfer - few) / (many - few) * 192))


def measure_step(report, pair, number):
    transfer = statistics.median(pair.measure("transfer MLP", 2) for _ in range(3))
    batch = balanced_batch(pair, transfer)
    names = {"compute": f"plain MLP {batch}", "transfer": "transfer MLP", "step": f"slow MLP {batch}",
             "a call a parameter, behind backward": f"behind MLP {batch}"}
    times = rounds({name: (pair, case) for name, case in names.items()}, number, SECONDS)
    show(report, f"At {RATE}, MLP with {batch} a rank, buckets of 4 MiB", times)
    report.target("step / (compute + transfer)", sums(times, "step", "compute", "transfer"), LINK, True)
    report.target("step / a call a parameter, behind backward", ratio(times, "step", "a call a parameter, behind backward"), BUCKETED, True)


def measure_compressions(report, pair, number):
    times = rounds({how: (pair, f"reduce {how}") for how in ("f32", "bf16", POWERSGD_4)}, number, SECONDS)
    show(report, f"At {RATE}, 25 MiB of gradients in matrices of 1024 x 1024: backward", times)
    report.target("bf16 / f32", ratio(times, "bf16", "f32"), BF16, True)
    report.target("PowerSGD of rank 4 / f32", ratio(times, POWERSGD_4, "f32"), POWERSGD, True)


def over_a_network(report, number):
    missing = networks.why_not()
    if missing:
        print(f"\nThe network of {RATE} is not measured: {missing}")
        return
    with networks.Hosts() as hosts:
        hosts.limit(RATE)
        pair = Pair(sys.executable, WORKERS / "ddp_yoke.py", prefixes=(hosts.prefix(0), hosts.prefix(1)), host=networks.ADDRESSES[0])
        measure_step(report, pair, number)
        measure_compressions(report, pair, number)
        pair.close()


# ---- Ranks of unlike speed -------------------------------------------------------------------------------------------


def of_unlike_speed(report, number):
    unlike = Pair(sys.executable, WORKERS / "shares_yoke.py", variables=({}, SLOW_CPU))
    equal = Pair(sys.executable, WORKERS / "shares_yoke.py")
    fast, slow = unlike.ranks
    times = rounds({"the fast rank alone": (fast, "alone 0"), "the slow rank alone": (slow, "alone 0"),
                    "both, by their shares": (unlike, "train shared")}, number, SECONDS)
    show(report, "Two unlike ranks: a step of 1,024 pictures", times)
    got = spread([1 / both / (1 / one + 1 / other) for one, other, both in zip(*times.values())])
    report.target("images/s, both / the sum of each alone", got, SHARED, False)
    losses = [pair.measure(f"loss {how}", STEPS) for pair, how in ((unlike, "shared"), (equal, "equal"))]
    print(f"  loss behind {STEPS} steps: {losses[0]:.5f} by shares, {losses[1]:.5f} on equal ranks")
    report.target("losses apart", spread([abs(losses[0] / losses[1] - 1)]), LOSSES, True)
    unlike.close()
    equal.close()


def main():
    report = Report("ddp")
    number = report.options.rounds or 9
    in_shared_memory(report, number)
    over_a_network(report, number)
    of_unlike_speed(report, number)
    report.finish()


if __name__ == "__main__":
    main()
