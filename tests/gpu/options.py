"""The options of `./dev gpu`: parts, time, folders; and the options refused before any part begins."""

import argparse
import difflib
import math
import pathlib
import re
import sys

import figures
import jobs

ABOUT = ("Builds, tests and measures on this machine's GPU within a time, without a network (docs/gpu.md). Without a GPU and without "
         "options: builds, and tests what needs none.")
BUILD_LEAST, BUILT_LEAST, TESTS_LEAST = 60, 15, 30  # seconds: for a build, an existing build, the shortest test
MINUTES, CARDLESS_MINUTES = 9.5, 90
BENCHES = [name for name, _, _ in figures.BENCHMARKS]
PARTS = ["build", *jobs.GROUPS, "prepare", *BENCHES]
# The three calls on a machine that serves for minutes: is the module right, how fast is it, and all other parts.
SETS = {"proof": ["contract", "compare", "sizes", "memcheck", "prepare"],
        "speed": ["memory", "gemm", "attention", "images", "steps", "profile"]}
SETS["rest"] = [name for name in PARTS[1:] if not any(name in parts for parts in SETS.values())]
NAMES = [*SETS, *PARTS]


def refuse(text):
    """Exit status 2: nothing was begun."""
    print(f"./dev gpu: {text}", file=sys.stderr)
    return 2


def wants(only, part):
    """Tells whether a part is among the wanted parts."""
    return not only or part in only


def alone(only, part):
    return set(only) == {part}


def read_parts(parser, text):
    """Returns the parts of a list of parts and sets."""
    found = []
    for name in text.split(","):
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            parser.error(f'--only names "{name}"{f", nearest is {near[0]}" if near else ""}; there are {", ".join(NAMES)}')
        found += SETS.get(name, [name])
    return found


def read(folder, logs):
    parser = argparse.ArgumentParser(prog="./dev gpu", description=ABOUT)
    parser.add_argument("--minutes", type=float, help=f"for everything; default: {MINUTES:g}, or {CARDLESS_MINUTES:g} with --card, where no card waits")
    parser.add_argument("--only", metavar="PART,…", help="some of " + ", ".join(PARTS) + "; or a set: " + "; ".join(f"{name} is {', '.join(parts)}" for name, parts in SETS.items()))
    parser.add_argument("--results", help="where RESULTS-<gpu>.md is written: benchmarks, or build/gpu with --only or --small")
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=folder / "carry", metavar="FOLDER",
                        help="what earlier calls left and --pack has packed; default: build/carry")
    parser.add_argument("--card", metavar="X.Y", help="with --only build, also where there is no GPU: the compute capability of the card to build for")
    parser.add_argument("--small", action="store_true", help="tiny sizes: whether it works, not how fast it is")
    pack = parser.add_argument_group("for a machine without a network", "these stand before all others, and nothing is run:")
    pack.add_argument("--pack", nargs="?", const=True, metavar="FOLDER",
                      help="fill FOLDER, build/carry unless it is named, with what that machine may lack")
    pack.add_argument("--python", metavar="X.Y", help="the Python of that machine, whose headers are packed; default: this one's")
    options = parser.parse_args()
    if options.pack or options.python:
        parser.error("--pack stands before all others, and none but --python with it: ./dev gpu --pack [FOLDER] [--python X.Y]")
    options.only = read_parts(parser, options.only) if options.only is not None else []
    if options.minutes is None:
        options.minutes = CARDLESS_MINUTES if options.card else MINUTES
    if not math.isfinite(options.minutes) or options.minutes <= 0:
        parser.error(f"--minutes is {options.minutes:g}; it is a number above 0")
    if options.card is not None and not re.fullmatch(r"\d+\.\d+", options.card):
        parser.error(f'--card is "{options.card}"; it is a compute capability like 9.0')
    if options.card is not None and not alone(options.only, "build"):
        parser.error("--card goes with --only build: ./dev gpu --only build --card 9.0; what else there is needs the card itself")
    if options.source != folder / "carry" and not options.source.is_dir():
        parser.error(f"--from names {options.source}, which is no folder")
    options.given = options.results is not None
    options.results = pathlib.Path(options.results or (logs if options.only or options.small else jobs.ROOT / "benchmarks")).resolve()
    options.source = options.source.resolve()
    return options


def least_seconds(options, built):
    """Returns {wanted part: seconds without which it does not begin}, for the build and for the shortest other part."""
    found = {}
    if wants(options.only, "build") or not built:
        found["the build"] = BUILT_LEAST if built else BUILD_LEAST
    shortest = [(TESTS_LEAST, "a test")] * any(wants(options.only, group) for group in jobs.GROUPS)
    shortest += [(least, f"the benchmark {name}") for name, _, least in figures.BENCHMARKS if wants(options.only, name)]
    if shortest:
        seconds, name = min(shortest)
        found[name] = seconds
    return found


def too_short(options, built, ending):
    """Returns why the given time is too short, or ""."""
    least = least_seconds(options, built)
    needed = ending + sum(least.values())
    if 60 * options.minutes >= needed:
        return ""
    told = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in least.items())
    return (f"--minutes {options.minutes:g} is too short for anything: {told} and the end of a run {ending:.0f} s take "
            f"--minutes {math.ceil(needed / 6) / 10:g} at least")
