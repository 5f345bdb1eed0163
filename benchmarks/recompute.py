"""Activations that are dropped and recomputed: memory and time of a step relative to a plain step, beside PyTorch's.

    ./dev bench recompute [--json FILE] [--rounds N]

float32, 1 thread, 1,024 tokens, width 512: 16 blocks x + down(gelu(up(x))), and 12 blocks of a GPT (4 x 256 tokens, 8 heads).
Each block is a checkpoint scope. Yoke's memory is the allocator's figure for a step beside weights and gradients, which exist
before. PyTorch's memory is the peak of resident memory of a process that runs only such steps.
"""

import statistics
import sys

from bench import WORKERS, CaseError, Report, Worker, ratio, rounds, torch_workers

# The most that memory and time may be, as shares of the plain step's; a number is the share of a memory budget.
TARGETS = {"MLP": {"full": (0.23, 1.22), "matmul": (0.63, 1.05), "0.5": (0.50, 1.09)},
           "GPT": {"full": (0.20, 1.26), "matmul": (0.68, 1.05), "0.5": (0.50, 1.12)}}
SHARES = ("0.3", "0.5", "0.7", "0.9")


def settle(share):
    """Returns ratio()'s form of a figure that is equal in every run."""
    return {"median": share, "low": share, "high": share}


def measure_times(report, workers):
    contestants = {f"{role}, {model} {policy}": (worker, f"step {model} {policy}")
                   for model, policies in TARGETS.items() for policy in dict.fromkeys(("plain", *policies, *SHARES)) for role, worker in workers.items()
                   if policy not in SHARES or role == "Yoke"}
    for name, (worker, case) in list(contestants.items()):
        try:
            worker.measure(case, 1)
        except CaseError as error:
            print(f"{name}: {error}")
            del contestants[name]
    return rounds(contestants, report.options.rounds or 7, 1.0)


def over_plain(times, role, model, policy):
    """Returns the ratio to a plain step for each round."""
    return [a / b for a, b in zip(times[f"{role}, {model} {policy}"], times[f"{role}, {model} plain"])]


def compare_times(report, times, peers):
    for name, seconds in times.items():
        print(f"  {name:52} {statistics.median(seconds) * 1e3:6.0f} ms a step  ({min(seconds) * 1e3:.0f} to {max(seconds) * 1e3:.0f})")
    for model, policies in TARGETS.items():
        for policy, (_, most) in policies.items():
            report.target(f"time, {model} {policy}", ratio(times, f"Yoke, {model} {policy}", f"Yoke, {model} plain"), most, True)
            for role in peers:
                if f"{role}, {model} {policy}" in times:
                    shares = {who: over_plain(times, who, model, policy) for who in ("Yoke", role)}
                    report.target(f"the same over {role}'s ratio of {statistics.median(shares[role]):.3f}", ratio(shares, "Yoke", role), 1.0, True)


def compare_budgets(report, yoke, times):
    """Checks that budgets are used and kept, and that more memory takes less time."""
    for model in TARGETS:
        plain, before = yoke.measure(f"peak {model} plain", 1), None
        for share in SHARES:
            used = yoke.measure(f"peak {model} {share}", 1) / plain / float(share)
            report.target(f"peak, {model}, of a budget of {share}", settle(used), 1.0, True)
            report.target(f"the same, which is used: {model} {share}", settle(used), 0.9, False)
            time = ratio(times, f"Yoke, {model} {share}", f"Yoke, {model} plain")
            print(f"  time, {model}, at a budget of {share}: {time['median']:.3f}")
            if before:
                report.target(f"over that at the budget before, {model} {share}", settle(time["median"] / before), 1.0, True)
            before = time["median"]


def compare_memory(report, yoke, torch):
    for model, policies in TARGETS.items():
        plain = yoke.measure(f"peak {model} plain", 1)
        for policy, (most, _) in policies.items():
            share = yoke.measure(f"peak {model} {policy}", 1) / plain
            report.target(f"activations, {model} {policy}, of {plain / 2**20:.0f} MiB", settle(share), most, True)
        for role, command in torch.items():
            shown = {policy: resident(command, model, policy) for policy in ("plain", *policies) if policy not in SHARES}
            print(f"  {role}, {model}, peak of resident memory beyond weights and gradients: " +
                  ", ".join(f"{policy} {bytes_ / 2**20:.0f} MiB ({bytes_ / shown['plain']:.2f})"
                            for policy, bytes_ in shown.items() if bytes_))


def resident(command, model, policy):
    """Returns the peak of a separate process, because a peak never falls. None if the case cannot be measured."""
    worker = Worker(*command)
    try:
        return worker.measure(f"peak {model} {policy}", 1)
    except CaseError:
        return None
    finally:
        worker.close()


def main():
    report = Report("recompute")
    yoke = Worker(sys.executable, WORKERS / "recompute_yoke.py")
    # Debian's 1.13 has neither the attention nor the selective policy.
    torch = {role: worker for role, worker in torch_workers(WORKERS / "recompute_torch.py").items() if role == "newest PyTorch"}
    workers = {"Yoke": yoke, **torch}
    for role, worker in workers.items():
        report.peer(role, worker.about)
    times = measure_times(report, workers)
    print()
    compare_times(report, times, list(torch))
    compare_budgets(report, yoke, times)
    compare_memory(report, yoke, {role: worker.command for role, worker in torch.items()})
    report.finish()


if __name__ == "__main__":
    main()
