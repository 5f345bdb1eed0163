"""Results for a card so far: the parts that ran, figures and gaps, on disk after each change, over several calls.

RESULTS-<gpu>.json beside the page RESULTS-<gpu>.md holds the data of benchmarks/bench/gpu_report.py. Each part, figure and gap
has a time. If two calls have entries of a common name, the later entry stays. No other entry is dropped.
"""

import datetime
import json
import os
import pathlib
import threading


def replace_file(path, text):
    """Writes a file atomically: a reader, or a kill, finds the old text or the new text, never a part."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
    except OSError:
        new.unlink(missing_ok=True)  # leaves space for a later try, if the disk is full
        raise
    os.replace(new, path)


def stamp():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def key(kind, one):
    return (one.get("group"), one["name"]) if kind == "results" else one["name"]


def well_formed(data):
    lists = ("calls", "parts", "results", "missing")
    return (isinstance(data, dict) and isinstance(data.get("head"), dict) and all(isinstance(data.get(kind), list) for kind in lists)
            and all(isinstance(one, dict) and "when" in one for kind in lists for one in data[kind])
            and all("name" in one for kind in lists[1:] for one in data[kind]))


class Record:
    """Safe from any thread. `render` makes the page of the data."""

    def __init__(self, name, folders, page_folder, head, call, render):
        self.name, self.render, self.lock = name, render, threading.RLock()
        self.files = [pathlib.Path(folder) / f"RESULTS-{name}.json" for folder in dict.fromkeys(map(str, folders))]
        self.page = pathlib.Path(page_folder) / f"RESULTS-{name}.md"
        self.data = {"head": dict(head), "calls": [{"when": stamp(), **call}], "parts": [], "results": [], "missing": []}
        self.seen, self.complained = {}, False

    def take(self, folder):
        """Adds the results of an earlier call from a folder; returns the problem with the file, or ""."""
        file = pathlib.Path(folder) / f"RESULTS-{self.name}.json"
        if not file.exists():
            return ""
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            data = error
        if not well_formed(data):
            if file in self.files:  # this call writes the file anew
                os.replace(file, file.with_name(f"{file.name}.unreadable"))
            return f"{file} is no report of an earlier call: {data if isinstance(data, Exception) else 'entries are missing'}"
        with self.lock:
            calls = {one["when"]: one for one in [*data["calls"], *self.data["calls"]]}
            self.data["calls"] = [calls[when] for when in sorted(calls)]
            self.data["head"] = {**data["head"], **self.data["head"]}
            for kind in ("parts", "results", "missing"):
                for one in data[kind]:
                    self._put(kind, one)
        return ""

    def _put(self, kind, one):
        """The place of an entry is where the first of its name was."""
        entries = self.data[kind]
        for i, old in enumerate(entries):
            if key(kind, old) == key(kind, one):
                if one["when"] >= old["when"]:
                    entries[i] = one
                return
        entries.append(one)

    def part(self, name, status, seconds, note):
        with self.lock:
            self._put("parts", {"name": name, "status": status, "seconds": seconds, "note": note, "when": stamp()})
            self.write()

    def keep_tail(self, name, log, lines):
        """Adds the last lines of a failed part's log to LOGS-<gpu>.txt beside the page. Only this folder may outlive the machine."""
        try:
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            with self.lock, open(self.page.with_name(f"LOGS-{self.name}.txt"), "a", encoding="utf-8") as file:
                file.write("\n".join([f"==== {name}, {stamp()}", *tail, ""]))
        except OSError:
            pass  # the part left no log, or the disk is full

    def drop(self, name):
        """Removes a part of an earlier call whose outcome has changed."""
        with self.lock:
            self.data["parts"] = [one for one in self.data["parts"] if one["name"] != name]

    def figures(self, data):
        """Takes a benchmark's figures so far; again and again, as they come."""
        with self.lock:
            self.data["head"].update(data["head"])
            changed = False
            for kind in ("results", "missing"):
                for one in data[kind]:
                    if self.seen.get((kind, key(kind, one))) == one:
                        continue
                    self.seen[kind, key(kind, one)], changed = dict(one), True
                    self._put(kind, {**one, "when": stamp()})
                    if kind == "results":  # gaps of an earlier call that have results now
                        self.data["missing"] = [old for old in self.data["missing"] if old["name"] != one.get("case")]
            if changed:
                self.write()

    def write(self):
        """Writes the files. A full disk ends no run: the failure is reported once, and the next entry tries again."""
        with self.lock:
            text = json.dumps(self.data, indent=1) + "\n"
            for path, content in [*((file, text) for file in self.files), (self.page, self.render(self.data))]:
                try:
                    replace_file(path, content)
                except OSError as error:
                    if not self.complained:
                        print(f"cannot write {path}: {error.strerror}", flush=True)
                    self.complained = True


def unwritable(folder):
    """Makes a folder if it is missing; returns why the folder cannot be written, or ""."""
    trial = pathlib.Path(folder) / f".trial-{os.getpid()}"
    try:
        trial.parent.mkdir(parents=True, exist_ok=True)
        trial.write_text("")
        trial.unlink()
    except OSError as error:
        return error.strerror
    return ""
