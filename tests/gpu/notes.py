"""Notes of parts on a GPU: what the output of a part's tools says, in a line."""

import re


def left_out(output):
    """Returns the missing parts of the build, from CMake's output."""
    return "; ".join(line.removeprefix("-- ") for line in output.splitlines() if line.startswith("-- building without"))


def last_line(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def pytest_note(output):
    """Returns pytest's last count, or the progress so far, and the first failed tests."""
    counts = re.findall(r"^=* ?((?:\d+ \w+,? ?)+ in [\d.]+s)", output, re.MULTILINE)
    marks = "".join(re.findall(r"^([.FEsxX]+)(?: *\[.*)?$", output, re.MULTILINE))
    failed = [line.split(" - ")[0].removeprefix("FAILED ").split("::", 1)[-1] for line in output.splitlines()
              if line.startswith(("FAILED ", "ERROR "))]
    so_far = f"until then {marks.count('.')} passed, {marks.count('F') + marks.count('E')} failed" if marks else last_line(output)
    text = counts[-1] if counts else so_far
    return text + (f"; failed: {', '.join(name[:70] for name in failed[:4])}{' …' if len(failed) > 4 else ''}" if failed else "")


def all_skipped(output):
    """Returns why pytest skipped all tests, or ""."""
    reasons = re.findall(r"^SKIPPED \[\d+\] [^:]+:\d+: (.*)$", output, re.MULTILINE)
    return reasons[0] if reasons and re.fullmatch(r"=* ?\d+ skipped in .*", last_line(output)) else ""


def gtest_note(output):
    lines = re.findall(r"\[ *(?:PASSED|FAILED|SKIPPED) *\] .*", output)
    return "; ".join(dict.fromkeys(" ".join(line.split()) for line in lines[-6:]))


def training_note(output):
    return "; ".join(line for line in output.splitlines()
                     if line.startswith(("images/s", "tokens/s", "loss:", "test accuracy", "peak memory")))


def learned(output):
    """Tells whether a training's loss fell."""
    losses = re.search(r"^loss: ([\d.]+|nan|inf) to ([\d.]+|nan|inf)", output, re.MULTILINE)
    return "" if losses and float(losses[2]) < 0.9 * float(losses[1]) else "the loss did not fall"


def sanitizer_note(output):
    """Returns the tool's verdict, and the samples or ops that ran under the tool."""
    found = re.findall(r"========= (ERROR SUMMARY.*|RACECHECK SUMMARY.*)", output)
    ran = re.findall(r"^recorded: .*", output, re.MULTILINE)
    so_far = re.findall(r"^ran \w+$", output, re.MULTILINE)
    return "; ".join([*found[-1:], *(ran[-1:] or [f"until then {len(so_far)} ops"] * bool(so_far))]) or last_line(output)


def left_unprofiled(output):
    """Returns why nothing was profiled, or ""."""
    return last_line(output).removeprefix("nothing is profiled: ") if last_line(output).startswith("nothing is profiled: ") else ""
