#!/usr/bin/env python3
"""Checks whether the tools of this folder find defects.  finds.py TOOL: random_calls or random_programs.py.

A crash, or a wrong answer, is planted in a function; the tool must report the defect and shrink the calls to a single call.
"""
import re
import subprocess
import sys

PLANTS = {"random_calls": (["--calls", "20000", "--batch", "20000", "--plant", "yoke_relu"], r"1 of \d+ calls are enough:\n(?:.*\n)*?.*yoke_relu\("),
          "random_programs.py": (["--programs", "400", "--plant", "tanh"], r"[12] of \d+ steps are enough:\n(?:.*\n)*?.*yoke\.tanh\(")}


def main(tool):
    options, wanted = PLANTS[tool.rsplit("/", 1)[-1]]
    command = [sys.executable, "-B", tool] if tool.endswith(".py") else [tool]
    done = subprocess.run(command + options, capture_output=True, text=True)
    print(done.stdout[-2000:], done.stderr[-1000:])
    if done.returncode != 1 or "again: " not in done.stdout and "seed " not in done.stdout or not re.search(wanted, done.stdout):
        sys.exit(f"{tool} did not find the planted defect, or did not shrink it")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main(sys.argv[1])
