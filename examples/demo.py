"""Trains the same network from Python, Lua and C, one after the other, and compares them.

    ./dev demo [--device auto] [--amp off|bf16|f16] [--threads N] [--seed 0] [--epochs 3] …

All options go to fashion_mnist.py, .lua and .c; of --save FOLDER each gets a folder of its own, FOLDER/python and so
on. Where the device multiplies bfloat16 fast, --amp is bf16 if it is not given. Exits with 1 unless each reaches the
accuracy asked for and all three had the same loss, bit for bit, in every step.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import yoke

HERE = pathlib.Path(__file__).resolve().parent


def programs():
    """Returns the command for each language."""
    lua = shutil.which("lua5.4") or shutil.which("lua") or sys.exit("Lua is missing: apt-get install lua5.4")
    built = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", HERE.parent / "build" / "release"))
    return {
        "Python": [sys.executable, str(HERE / "fashion_mnist.py")],
        "Lua": [lua, str(HERE / "fashion_mnist.lua")],
        "C": [str(built / "examples" / "fashion_mnist")],
    }


def best_amp(device):
    """Returns the mixed precision for a device that gains from it."""
    return "bf16" if yoke.device(device).supports("bfloat16", "tensor_cores") else "off"


def own_folder(folder, language):
    """Returns a folder for each of the three compared runs: in one folder the second run would continue the first, and train
    nothing.
    """
    return ["--save", folder and os.path.join(folder, language.lower())] if folder is not None else []


def train(language, command, options):
    """Returns the lines "name: value" printed by a program, as a dict."""
    print(f"{language}: {' '.join(command)}", flush=True)
    try:
        run = subprocess.run([*command, *options, "--losses"], stdout=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f"{error}; build the program first: ./dev build")
    if run.returncode:
        sys.exit(f"the {language} program failed with status {run.returncode}")
    return dict(line.split(": ", 1) for line in run.stdout.splitlines())


def show(results):
    rows = [["", "images/s", "test accuracy", "peak memory", "loss"]]
    rows += [[language, *(result[name] for name in rows[0][1:])] for language, result in results.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    first = next(iter(results.values()))
    print(f"\nDevice: {first['device']}")
    if first["no GPU"]:
        print(f"No GPU: {first['no GPU']}")


def complaints(results, wanted):
    """Returns the problems of the results, in words."""
    for language, result in results.items():
        if float(result["test accuracy"]) < wanted:
            yield f"{language} reached an accuracy of {result['test accuracy']}; at least {wanted} is expected"
    losses = {language: [float.fromhex(x) for x in result["losses"].split()] for language, result in results.items()}
    (first, expected), *others = losses.items()
    for language, got in others:
        if got != expected:
            step = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
            yield f"{language} and {first} have different losses from step {step} of {len(expected)} on"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--accuracy", type=float, default=0.87, help="smallest allowed test accuracy")
    parser.add_argument("--device", default="auto", help="where to train")
    parser.add_argument("--amp", help="mixed precision; by default bf16 if the device multiplies bfloat16 fast")
    parser.add_argument("--save", metavar="FOLDER", help="folder of the three saved runs, each in a separate folder")
    options, passed_on = parser.parse_known_args()
    try:
        passed_on += ["--device", options.device, "--amp", options.amp or best_amp(options.device)]
    except yoke.Error as error:
        sys.exit(str(error))
    results = {language: train(language, command, passed_on + own_folder(options.save, language))
               for language, command in programs().items()}
    show(results)
    wrong = list(complaints(results, options.accuracy))
    print(*wrong or ["Losses: identical in all three languages, bit for bit"], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
