"""Files that a single call goes through: trip.py BUILD_DIR SCENE, in a build of the preset `trip` (`./dev trip SCENE`).

Prints the files that the calling thread enters, in order, each with the functions entered there first. Figures follow: the number
of files, the lines of these functions, and the returns: entries of a new function in a file already left. BASELINE has the
figures of the first count.
"""
import bisect
import collections
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BASELINE = HERE / "baseline.json"
sys.path.insert(0, str(ROOT / "tests/static"))


class Recorder:
    """Functions that a call enters: functions of libraries by address, functions of the package by code."""

    def __init__(self):
        self.preloaded = ctypes.CDLL(None)
        self.preloaded.trip_entry.restype = ctypes.c_size_t
        self.codes, self.numbers = [], {}

    def on_event(self, frame, event, _):
        if event != "call" or "/yoke/" not in frame.f_code.co_filename:
            return
        if frame.f_code not in self.numbers:
            self.numbers[frame.f_code] = len(self.codes)
            self.codes.append(frame.f_code)
        self.preloaded.trip_note(ctypes.c_size_t(self.numbers[frame.f_code]))

    def record(self, call):
        """Returns [(file, first line, last line or None, name)] of the functions, in the order of their first entries."""
        sys.setprofile(self.on_event)
        self.preloaded.trip_begin()
        try:
            call()
        finally:
            count = self.preloaded.trip_end()
            sys.setprofile(None)
        entries = [self.preloaded.trip_entry(ctypes.c_size_t(i)) for i in range(count)]
        places = symbols([entry for entry in entries if entry > len(self.codes)])
        return [place for place in (places.get(entry) or self.python(entry) for entry in entries) if place]

    def python(self, number):
        """Returns the place of a package function by number; None if the number is an address."""
        if number > len(self.codes):
            return None
        code = self.codes[number - 1]
        lines = [line for _, _, line in code.co_lines() if line]
        return os.path.realpath(code.co_filename), code.co_firstlineno, max(lines), code.co_name


def symbols(addresses):
    """Returns {address: (file, line, None, name)} of what lies in libraries."""
    maps = []
    for line in open("/proc/self/maps", encoding="utf-8"):
        words = line.split()
        if len(words) == 6 and words[5].startswith("/") and ".so" in words[5]:
            begin, end = (int(word, 16) for word in words[0].split("-"))
            maps.append((begin, end, begin - int(words[2], 16), words[5]))
    by_library = collections.defaultdict(list)
    for address in addresses:
        for begin, end, base, path in maps:
            if begin <= address < end:
                by_library[path].append((address, address - base))
    found = {}
    for path, places in by_library.items():
        told = subprocess.run(["addr2line", "-C", "-f", "-e", path], input="\n".join(hex(offset) for _, offset in places),
                              capture_output=True, text=True, check=True).stdout.splitlines()
        for (address, _), name, place in zip(places, told[::2], told[1::2]):
            file, _, line = place.partition(" ")[0].rpartition(":")
            if line.isdigit():
                found[address] = (file, int(line), None, name.replace("(anonymous namespace)::", "").split("(")[0])
    return found


class Extents:
    """The lines of the function that a line is in."""

    def __init__(self, product):
        self.of_file = collections.defaultdict(list)
        for tag in product.tags:
            if tag["kind"] == "function" and "end" in tag:
                self.of_file[tag["path"]].append((tag["line"], tag["end"]))
        for extents in self.of_file.values():
            extents.sort()

    def around(self, file, line):
        extents = self.of_file[file]
        at = bisect.bisect_right(extents, (line, 1 << 30)) - 1
        while at >= 0 and extents[at][1] < line:
            at -= 1
        return extents[at] if at >= 0 else (line, line)


def in_tree(file):
    """Returns the path in the tree for ./core/x.cpp or an absolute path; None for other files."""
    file = os.path.normpath(file)
    for folder in ("core/", "kernels/", "bindings/", "capi/"):
        at = file.find(f"/{folder}") + 1 if not file.startswith(folder) else 0
        if file[at:].startswith(folder) and (ROOT / file[at:]).is_file():
            return file[at:]
    return None


def short(name):
    """Returns the last word of a function's name; "" of a lambda."""
    while "<" in name and ">" in name:
        name, before = re.sub(r"<[^<>]*>", "", name), name
        if name == before:
            break
    return re.sub(r"\[abi:\w+\]", "", name.rpartition("::")[2]).rpartition(" ")[2] if name.isprintable() else ""


def tell(places):
    """Prints a trip and returns its figures."""
    import check_shape
    extents = Extents(check_shape.Product(ROOT))
    files, left, lines, returns, now = {}, set(), set(), 0, None
    for file, first, last, name in places:
        file = in_tree(file)
        if not file:
            continue
        if file != now:
            returns += file in left
            left.add(now)
            now = file
        files.setdefault(file, []).append(name)
        begin, end = (first, last) if last else extents.around(file, first)
        lines.update((file, line) for line in range(begin, end + 1))
    for file, names in files.items():
        print(f"{file}: {', '.join(dict.fromkeys(filter(None, map(short, names))))}")
    return {"files": len(files), "lines": len(lines), "returns": returns}


def start(build, scene):
    """Runs a scene in a fresh process, with functions that report to the recorder."""
    recorder = f"{build}/recorder.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", recorder, HERE / "recorder.c"], check=True)
    command = [sys.executable, __file__, build, scene]
    if scene == "shrink":
        command = [f"{build}/bin/yoke", "run", "-n", "3", "--", *command]
    return subprocess.run(command, env=os.environ | {"LD_PRELOAD": recorder}).returncode


def go_through(scene):
    import scenes
    recorder = Recorder()
    figures = tell(recorder.record(scenes.SCENES[scene]()))
    before = json.loads(BASELINE.read_text())[scene]
    for figure, number in figures.items():
        print(f"{scene}: {number} {figure}, {number / before[figure]:.2f} of {before[figure]} at first")


def main(build, *scenes):
    if hasattr(ctypes.CDLL(None), "trip_begin"):
        return go_through(*scenes)
    known = json.loads(BASELINE.read_text())
    for scene in scenes:
        if scene not in known:
            sys.exit(f"no scene {scene}; there are {', '.join(known)}")
        if status := start(build, scene):
            sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
