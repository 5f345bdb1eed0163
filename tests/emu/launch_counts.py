"""Counts the launches of a training step of GPT-2 and of ResNet-50, by op and kernel, on the emulated device. `launch_counts.py BUILD`
compares them with launch_counts.txt and with the totals in docs/gpu-kernels.md; `launch_counts.py BUILD --write` writes both.

Kernels do nothing while launches are recorded (record.h), so whole networks run in seconds. A step has a single text or picture.
A call of a library counts as one launch.
"""
import collections
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE, PAGE = pathlib.Path(__file__).with_suffix(".txt"), ROOT / "docs/gpu-kernels.md"
sys.path[:0] = [str(ROOT / "benchmarks/roofline")]
import launches as recorder  # noqa: E402


def make_gpt2(yoke):
    import gpt
    options = gpt.read_options(["--preset", "gpt2", "--batch", "1"])
    net = gpt.GPT(options.layers, options.width, options.heads, options.context, options.vocabulary, options.tied)
    text = yoke.zeros(2 * options.context, dtype=yoke.int64)
    return gpt.make_step(net, text, options.steps, options.batch, amp="bf16")[0]


def make_resnet50(yoke):
    import resnet
    net = resnet.ResNet(50, 64, 224)
    optimizer, schedule = resnet.descend(net.parameters(), 10)
    pictures, kinds = yoke.zeros((1, resnet.SIDE * resnet.SIDE)), yoke.zeros(1, dtype=yoke.int64)

    def step():
        with yoke.autocast(yoke.bfloat16):
            loss = yoke.cross_entropy(net(pictures), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    return step


STEPS = {"GPT-2": make_gpt2, "ResNet-50": make_resnet50}


def take_steps(name):
    """Leaves the third step in the record: the first two make the optimizer's state and learn what autocast casts."""
    import yoke
    yoke.set_device("cuda:0")
    step = STEPS[name](yoke)
    for _ in range(2):
        step().item()
    os.truncate(os.environ["YOKE_EMU_RECORD"], 0)
    step()


def called(name):
    """Returns the function's own name, of a demangled name with namespaces and types."""
    return re.match(r"(?:void )?(?:\w+::)*(\w+)", name.replace("(anonymous namespace)::", ""))[1]


def count(build, name):
    """Returns pairs of what was launched, and how often, the most frequent first."""
    names = recorder.symbols(build / recorder.MODULE, "--demangle")
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        recorder.run(build, file.name, __file__, "--step", name, YOKE_CUDNN_ENABLED="1")
        lines = recorder.lines(file.name)
    found = collections.Counter(one.get("call") or f"{one['op']}: {called(names[one['kernel']])}" for one in lines)
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))


def written(build):
    """Returns {file: its text by the present counts}."""
    counts = {name: count(build, name) for name in STEPS}
    totals = {name: sum(times for _, times in found) for name, found in counts.items()}
    table = "\n".join(f"{totals[name]:5} launches of a step of {name}\n" + "".join(f"{times:5} {what}\n" for what, times in found)
                      for name, found in counts.items())
    row = f"| now | {' | '.join(str(total) for total in totals.values())} |"
    return {TABLE: table, PAGE: re.sub(r"^\| now \|.*$", row, PAGE.read_text(), count=1, flags=re.M)}


def compare(text, wanted):
    return "".join(line for line in difflib.ndiff(text.splitlines(True), wanted.splitlines(True)) if line[0] != " ")


def main(build, write=False):
    changes = ""
    for file, text in written(pathlib.Path(build)).items():
        if write:
            file.write_text(text)
        else:
            changes += compare(file.read_text(), text)
    if changes:
        sys.exit(f"{changes}The launches of a step have changed. If the change is meant, run: tests/emu/launch_counts.py {build} --write")


if __name__ == "__main__":
    if sys.argv[1] == "--step":
        take_steps(sys.argv[2])
    else:
        main(sys.argv[1], "--write" in sys.argv[2:])
