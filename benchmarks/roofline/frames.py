"""Check of every kernel of a module, beyond the kernels of the benchmark's cases: whether its stack frame is larger than excuses.py
allows, and whether a block can be started at all. Only cuobjdump is needed; a kernel that spills has a frame, too.
"""
import functools
import re
import subprocess

import cards
import cubin
from excuses import BLOCKS, FRAMES

MOST_THREADS = 512  # block size of kernels without launch bounds, unless BLOCKS names the kernel; larger blocks have launch bounds
TO_DO = ("give a thread fewer elements, leave it registers by its launch bounds (a last argument of 1 asks for one block alone), index its "
         "arrays by constants; or explain the frame in FRAMES of benchmarks/roofline/excuses.py")
TO_BOUND = "give the kernel launch bounds, or add the threads of its blocks to BLOCKS of benchmarks/roofline/excuses.py"


def without_parameters(text):
    """Returns a name without parameters and namespaces: "f<X<2>>" for "void a::f<a::X<2>>(int)"."""
    text = re.sub(r"\(anonymous namespace\)::|\b\w+::", "", text).removeprefix("void ")
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            return text[:at]
    return text


@functools.cache
def readable(names):
    """Returns {mangled name: name as in excuses.py} for a tuple of names."""
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, map(without_parameters, said.splitlines()), strict=True))


def excused(name, arch):
    """Returns the allowed bytes of the stack frame of a kernel."""
    return FRAMES.get(name, ({}, ""))[0].get(arch, 0)


def allowed(kernel):
    return excused(readable((kernel.name,))[kernel.name], kernel.arch)


def kernels_of(module):
    """Returns {architecture: {mangled name: Kernel}} of the kernels with known predictions."""
    found = {int(arch) for arch in re.findall(r"\.sm_(\d+)\w*\.cubin", cubin.run(cubin.tool("cuobjdump"), "-lelf", module))}
    return {arch: cubin.resources_of(module, arch) for arch in sorted(found) if arch in cards.MULTIPROCESSORS}


def framed(name, arch, kernel):
    if kernel.stack <= excused(name, arch):
        return []
    return [f"{name}, sm_{arch}: a stack frame of {kernel.stack} bytes; {excused(name, arch)} are allowed: {TO_DO}"]


def unlaunchable(name, arch, kernel):
    threads = kernel.most_threads if kernel.is_bounded else BLOCKS.get(name.split("<")[0], MOST_THREADS)
    held, limit = cards.resident(cards.MULTIPROCESSORS[arch], kernel, threads, 0)
    if held:
        return []
    to_do = "" if kernel.is_bounded else f"; {TO_BOUND}"
    return [f"{name}, sm_{arch}: no block of {threads} threads fits a multiprocessor, because of its {limit}{to_do}"]


def stale(arch, largest):
    """Returns unneeded lines of FRAMES, given {name: the largest frame} of an architecture."""
    return [f"{name}, sm_{arch}: remove its line from excuses.py: {'it has no frame' if name in largest else 'there is no such kernel'}"
            for name, (frames, _) in FRAMES.items() if arch in frames and not largest.get(name)]


def judge(kernels):
    """Returns the problems, as lines, of {architecture: {mangled name: Kernel}}."""
    wrong = []
    for arch, found in kernels.items():
        names, largest = readable(tuple(found)), {}
        for mangled, kernel in sorted(found.items()):
            name = names[mangled]
            largest[name] = max(kernel.stack, largest.get(name, 0))
            wrong += framed(name, arch, kernel) + unlaunchable(name, arch, kernel)
        wrong += stale(arch, largest)
    return wrong
