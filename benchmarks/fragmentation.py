"""Memory reserved by an allocator beyond the requests: Yoke's beside a model of PyTorch's, over traces of requests.

    ./dev bench fragmentation [--json FILE]

Waste is the peak of reserved bytes less the peak of requested bytes. Programs make the traces (benchmarks/bench/traces.py). The
replay runs on a device without memory: with virtual memory and with plain segments, and on the model with and without expandable
segments. There are no random numbers and no times, so a single round is enough.
"""

import json
import subprocess
import tempfile

from bench import BUILT, Report, traces

KINDS = ("virtual", "plain", "torch", "expandable")


def replay(path, kind):
    return json.loads(subprocess.run([BUILT / "fragmentation", path, kind], check=True, capture_output=True, text=True).stdout)


def main():
    report = Report("fragmentation")
    report.peer("model", "PyTorch's policy and constants: benchmarks/workers/torch_policy.h")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in traces.write_all(folder).items():
            found[name] = {kind: replay(path, kind) for kind in KINDS}
    waste = {name: {kind: each["reserved"] - each["requested"] for kind, each in kinds.items()} for name, kinds in found.items()}
    print(f"\n{'waste, MB':12s}" + "".join(f"{kind:>12s}" for kind in KINDS))
    for name, kinds in waste.items():
        print(f"{name:12s}" + "".join(f"{kinds[kind] / 1e6:12.1f}" for kind in KINDS))
        for kind in KINDS:
            report.result(f"{name} {kind}", kinds[kind] / 1e6, [kinds[kind] / 1e6] * 2, "MB")
    total = {kind: sum(each[kind] for each in waste.values()) for kind in KINDS}

    def target(text, value, most, case):
        report.target(text, {"median": value, "low": value, "high": value}, most, at_most=True, case=case)

    target("virtual in all, of the model's", total["virtual"] / total["torch"], 0.10, "virtual torch")
    target("virtual in all, of the model's with expandable segments", total["virtual"] / total["expandable"], 0.5, "virtual expandable")
    target("plain in all, of the model's", total["plain"] / total["torch"], 0.6, "plain torch")
    for name, kinds in waste.items():
        target(f"{name}: virtual, of the better model's", kinds["virtual"] / min(kinds["torch"], kinds["expandable"]), 1.0, f"{name} virtual")
        target(f"{name}: plain, of the model's", kinds["plain"] / kinds["torch"], 1.02, f"{name} plain")
    calls = found["constant"]["virtual"]["calls"]
    target("calls of the driver after the first quarter of constant shapes", calls[-1] - calls[0], 0, "constant calls")
    report.finish()


if __name__ == "__main__":
    main()
