#!/usr/bin/env python3
"""Random programs of ops beside a plain reference: `random_programs.py [--programs N] [--seed S] [--language python|lua]`.

Views and writes through them, broadcasting, promotion, reductions, indexing; under autocast, recorded for gradients (compared
with differences), captured and replayed. If a program differs from the reference, the report has the seed and the program is
shrunk to a few lines. `--only S` runs a single seed and shows the program.
"""
import argparse
import copy
import dataclasses
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hosts  # noqa: E402
import program as programs  # noqa: E402
from ops import OPS  # noqa: E402
from program import Wrong, variables  # noqa: E402


def wrong_of(program, host):
    """Returns the defect of a program, or None; and whether the program was compared to its end."""
    try:
        observed = host.run(program)
        if program.mode == "graph":
            programs.check_graph(program, observed)
            return None, True
        programs.check(program, observed)
        held = not observed.refused
        if program.mode == "autograd" and program.weights and held:
            held = programs.check_gradients(program, observed.gradients)
        return None, held
    except Wrong as wrong:
        return str(wrong), True
    except Exception as error:  # an error that no program may meet
        return f"{type(error).__name__}: {error}", True


def without(program, i):
    """Returns the program without a step, and without steps that take the result."""
    gone, steps = set(), []
    for k, step in enumerate(program.steps):
        if k == i or gone & {v.number for v in variables(step.args)}:
            if OPS[step.name].kind != "inplace":
                gone.add(step.out)
        else:
            steps.append(step)
    weights = [(n, w) for n, w in program.weights if n not in gone]
    return dataclasses.replace(program, steps=steps, weights=weights)


def used(program):
    """Returns the program without unused inputs."""
    taken = {v.number for step in program.steps for v in variables(step.args)} | {n for n, _ in program.weights}
    return dataclasses.replace(program, inputs={n: x for n, x in program.inputs.items() if n in taken})


def shrink(program, host):
    """Returns the least program that is wrong as well."""
    again = True
    while again:
        again = False
        for i in range(len(program.steps) - 1, -1, -1):
            if i < len(program.steps):
                fewer = without(program, i)
                if wrong_of(fewer, host)[0]:
                    program, again = fewer, True
        for n in range(len(program.weights)):
            fewer = dataclasses.replace(program, weights=program.weights[:n] + program.weights[n + 1:])
            if n < len(program.weights) and wrong_of(fewer, host)[0]:
                program, again = fewer, True
    smaller = used(program)
    return smaller if wrong_of(smaller, host)[0] else program


def report(program, host, said):
    least = shrink(copy.deepcopy(program), host)
    print(f"random_programs: seed {program.seed} ({program.mode}): {said}\n  {len(least.steps)} of {len(program.steps)} steps are enough:")
    print(host.render(least), f"\n  {wrong_of(least, host)[0]}", flush=True)


def run_jobs(options):
    """Each job has a run of neighbouring seeds."""
    share = -(-options.programs // options.jobs)
    starts = range(options.seed, options.seed + options.programs, share)
    commands = [[sys.executable, "-B", __file__, "--language", options.language, "--seed", str(seed),
                 "--programs", str(min(share, options.seed + options.programs - seed))] for seed in starts]
    jobs = [subprocess.Popen(command) for command in commands]
    return 1 if any([job.wait() for job in jobs]) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--language", choices=("python", "lua"), default="python")
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with its share of the programs")
    parser.add_argument("--plant", choices=OPS, help="an op that the reference takes for another, to see that it is found")
    options = parser.parse_args()
    if options.plant:
        right = OPS[options.plant].compute
        OPS[options.plant].compute = lambda *args: (lambda array, dtype, scale: (array * 1.01, dtype, scale))(*right(*args))
    if options.jobs > 1:
        return run_jobs(options)
    host = hosts.Python() if options.language == "python" else __import__("lua_host").Lua()
    seeds = range(options.seed, options.seed + options.programs) if options.only is None else [options.only]
    started, failed, held, steps = time.monotonic(), 0, 0, 0
    for seed in seeds:
        program = programs.make(seed)
        if options.only is not None:
            print(host.render(program))
        said, whole = wrong_of(program, host)
        held += whole
        steps += len(program.steps)
        if said:
            failed += 1
            report(program, host, said)
            if failed == (1 if options.plant else 20):
                break
    print(f"{len(seeds)} programs of {steps} steps in {options.language} from seed {seeds[0]}, {held} of them held to their end, "
          f"in {time.monotonic() - started:.0f} s: {'FAILED' if failed else 'nothing found'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
