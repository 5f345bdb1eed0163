#!/usr/bin/env python3
"""Would the tests notice a wrong allocator?  mutants.py FOLDER [--list] [--first N] [--every N] [--only REGEX]

Makes mutants of core/memory and of the streams by which it orders work. Each mutant leaves out a wait, coalescing, search or
count. Statements that call such functions are found in the sources; conditions stand in CONDITIONS. Each mutant is built in
FOLDER, in a separate tree, and meets the C++ tests of core/memory and core/device and the random programs of tests/fuzz/memory.
Mutants without a visible effect stand in EQUIVALENT, each with its reason. The exit status is 1 if less than 95 % are caught.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
LEAST = 95  # % to catch
PROGRAMS = 100
PATIENCE = 240  # seconds
FILES = [*(f"core/memory/{name}.cpp" for name in
           "arena backend_memory block chunks counters device_memory free_runs graph_pool growth guards ladder magazines"
           " memory page_table pinned raw space".split()), "core/memory/magazines.h", "core/memory/settled_frees.h", "core/device/event.cpp", "core/device/stream.cpp"]
# Statement with a single call on a single line.
STATEMENT = re.compile(
    r"^\s+(?:if \([^;{}]*\) )?"
    r"((?:static_cast<void>\()?[\w.:>()\[\]*&-]*"
    r"\b(?:admit\w*|absorb\w*|add_guard|count\w*|drain\w*|drop_reached|empty\w*|erase\w*|fold|forget\w*|gather|give\w*|insert|leave\w*|note\w*"
    r"|order\w*|raise\w*|release\w*|reset\w*|retire\w*|settle\w*|tell_held|tell_wait|unmap|wait\w*)\([^;]*\));$")
# File, text, and replacement.
CONDITIONS = [
    ("arena.cpp", "if (device.host) return UINT64_MAX;", "return UINT64_MAX;"),
    ("arena.cpp", "run.extent->is_range && run.freed_at <= settled", "run.extent->is_range"),
    ("arena.cpp", "space_.is_idle(*extent) && extent->first->freed_at <= settled &&", "space_.is_idle(*extent) &&"),
    ("settled_frees.h", "if (forgets == forgets_) last_", "last_"),
    ("arena.cpp", "settled_.note_waited(mark.clock, mark.forgets)", "settled_.note_waited(clock_, mark.forgets)"),
    ("guards.cpp", "return guards.empty();", "return true;"),
    ("arena.cpp", "block->freed_at = ++clock_;", "block->freed_at = clock_;"),
    ("arena.cpp", "block->freed_behind = lane_fences_.load();", "block->freed_behind = 0;"),
    ("settled_frees.h", "asked_ = clock;", "asked_ = UINT64_MAX;"),
    ("space.cpp", "behind && behind->state == state", "false"),
    ("space.cpp", "before && before->state == state", "false"),
    ("space.cpp", "if (block.freed_behind >= fence) return true;", ""),
    ("space.cpp", "if (gap.bytes < best.bytes) best = gap;", "if (!best.hole) best = gap;"),
    ("space.cpp", "const uint64_t beside = std::max(before, behind);", "const uint64_t beside = before;"),
    ("space.cpp", "if (free_size(growth.gap->before)) claim", "if (false) claim"),
    ("space.cpp", "if (has < size) claim", "if (false) claim"),
    ("space.cpp", "block->freed_at = std::max(block->freed_at, gone->freed_at);", ""),
    ("space.cpp", "block->freed_behind = std::max(block->freed_behind, gone->freed_behind);", ""),
    ("space.cpp", "rest->freed_at = block->freed_at;", ""),
    ("space.cpp", "rest->freed_behind = block->freed_behind;", ""),
    ("free_runs.cpp", "lowest && lowest->size >= size", "false"),
    ("free_runs.cpp", "next_bin(bin + 1)", "-1"),
    ("free_runs.cpp", "if (b->address < a->address)", "if (false)"),
    ("ladder.cpp", "if (try_used() || try_own_magazines()) return block_;", ""),
    ("ladder.cpp", "if (try_used() || try_own", "if (try_own"),
    ("ladder.cpp", "if (try_reached() || try_own", "if (try_own"),
    ("ladder.cpp", "if (try_known()) return block_;", ""),
    ("ladder.cpp", "return try_known() ? block_ : nullptr;", "return nullptr;"),
    ("ladder.cpp", "if (try_waits()) return serves(MemoryEvent::kWait), block_;", ""),
    ("ladder.cpp", "if (press()) return serves(pressed_to_), block_;", ""),
    ("ladder.cpp", "if (ask_host()) return block_;", ""),
    ("ladder.cpp", "arena_ && (block_ = arena_->take_any(size_))", "false"),
    ("ladder.cpp", "if (!is_capturing()) {", "if (false) {"),
    ("ladder.cpp", "memory_.wait_until_settled();\n        if (try_grow() || try_waits()) return true;", "memory_.wait_until_settled();"),
    ("ladder.cpp", "i < kAsks &&", "i < 1 &&"),
    ("ladder.cpp", "ask_for_relief(ReliefKind::kCollector, device, bytes_) && press()", "false"),
    ("growth.cpp", "if (most < unit) return;", "return;"),
    ("growth.cpp", "wanted || is_fixed(*arena)", "wanted"),
    ("growth.cpp", "return arena.pool.present() && !arena.pool->is_gone();", "return false;"),
    ("growth.cpp", "if ((*block = arena.take_any(size))) return YOKE_OK;", ""),
    ("growth.cpp", "if (backend_.exceeds_threshold(left)) give_back_idle();", ""),
    ("growth.cpp", "if (backend_.exceeds_threshold(bytes)) give_back_idle();", ""),
    ("growth.cpp", "if (status == YOKE_E_OOM && bytes > size)", "if (false)"),
    ("growth.cpp", "if (status == YOKE_E_OOM && bytes > least)", "if (false)"),
    ("growth.cpp", "(asks ? arena.admit_reached() : arena.admit_all())", "false"),
    ("growth.cpp", "if (status == YOKE_E_OOM || status == YOKE_E_UNSUPPORTED) {", "if (false) {"),
    ("growth.cpp", "!is_fixed(arena) && arena.mapped == 0;", "!is_fixed(arena);"),
    ("memory.cpp", "if (lane != arena.lane) uses |= lane_bit(lane);", ""),
    ("memory.cpp", "if (each == block->arena->lane) return;", "return;"),
    ("memory.cpp", "&& !uses && block->lane == arena->lane && slot)", "&& block->lane == arena->lane && slot)"),
    ("memory.cpp", "&& !uses && block->lane == arena->lane && slot)", "&& !uses && slot)"),
    ("memory.cpp", "if (!no_caching.is_known_as(false)) memory.give_back_idle();", ""),
    ("magazines.cpp", "while (inside.load(std::memory_order_seq_cst)) sched_yield();", ""),
    ("magazines.h", "if (kept + block->size > kMaxBytes / 2) return false;", ""),
    ("magazines.h", "if (!visit || !allocates) return false;", "if (!visit) return false;"),
    ("magazines.h", "magazine.lane != lane) return nullptr;", "false) return nullptr;"),
    ("counters.cpp", "peak_.raise_to(reached);", ""),
    ("counters.cpp", "lap_peak_ = std::max(lap_peak_, reached.of[kAllPools].bytes);", ""),
    ("counters.cpp", "active_peak_.raise_to(active);", ""),
    ("counters.cpp", "reserved_peak_.raise_to(reserved_);", ""),
    ("event.cpp", "if (fence.use_count() > 1 && event.lane", "if (false && event.lane"),
    ("arena.cpp", "else if (fence->is_behind(**same))", "else if (false)"),
    ("arena.cpp", "else if (fence->is_behind(**same))", "else"),
    ("arena.cpp", "if (std::ranges::any_of(each->fences, has_failed)) kept", "if (false) kept"),
    ("event.cpp", "return lane.open ? make_fence(lane) : lane.behind;", "return lane.behind;"),
    ("stream.cpp", "if (wait_for_whole(device, &status)) return status;", ""),
]
# Reasons by file and text.
EQUIVALENT = {
    "core/memory/page_table.cpp: recent->note(block) -> static_cast<void>(0)": "a walk finds the block as well",
    "core/memory/guards.cpp: wait_for(asked) -> static_cast<void>(0)": "runs for want of host memory alone",
    "core/memory/raw.cpp: empty_cache(nullptr) -> static_cast<void>(0)": "the same",
    "core/memory/device_memory.cpp: give_back(address, bytes) -> static_cast<void>(0)": "the same",
    "core/memory/growth.cpp: backend_.release(pool_of(arena), address, bytes) -> static_cast<void>(0)": "the same",
}


SOURCES = {path: (ROOT / path).read_text() for path in FILES}


class Mutant:
    def __init__(self, path, begin, end, text):
        self.path, self.begin, self.end, self.text = path, begin, end, text

    def source(self):
        whole = SOURCES[self.path]
        return whole[:self.begin] + self.text + whole[self.end:]

    def __str__(self):
        whole = SOURCES[self.path]
        line = whole.count("\n", 0, self.begin) + 1
        return f"{self.path}:{line}: {' '.join(whole[self.begin:self.end].split())} -> {self.text or 'nothing'}"


def statements():
    for path in FILES:
        at = 0
        for line in SOURCES[path].splitlines(keepends=True):
            found = STATEMENT.match(line.rstrip("\n"))
            if found and not line.lstrip().startswith(("return", "//")):
                yield Mutant(path, at + found.start(1), at + found.end(1), "static_cast<void>(0)")
            at += len(line)


def conditions():
    for name, text, instead in CONDITIONS:
        path = next(p for p in FILES if p.endswith(f"/{name}"))
        whole = SOURCES[path]
        if text not in whole:
            raise SystemExit(f"{path} has no '{text}' any more: mend CONDITIONS")
        at = whole.index(text)
        yield Mutant(path, at, at + len(text), instead)


class Bench:
    """A copy of the tree, in which a single file at a time is wrong."""

    def __init__(self, folder):
        self.tree, self.build = folder / "tree", folder / "build"
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in listed.stdout.splitlines():
            source, copy = ROOT / name, self.tree / name
            if source.is_file() and not (copy.exists() and copy.read_bytes() == source.read_bytes()):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
                shutil.copymode(source, copy)
        if not (self.build / "build.ninja").exists():
            subprocess.run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                            "-DYOKE_CUDA=OFF", "-DYOKE_PYTHON=OFF", "-DYOKE_TESTS=ON", "-DYOKE_WERROR=OFF"], check=True, stdout=subprocess.DEVNULL)
        if not self.make():
            raise SystemExit("the tree does not build")

    def make(self):
        done = subprocess.run(["ninja", "-C", self.build, "test_core_memory", "test_core_device", "fuzz_memory"], capture_output=True)
        return done.returncode == 0

    def passes(self):
        tests = self.build / "tests"
        for command in ([tests / "test_core_memory", "--gtest_brief=1"], [tests / "fuzz/fuzz_memory", "--programs", str(PROGRAMS)],
                        [tests / "test_core_device", "--gtest_brief=1"]):
            try:
                done = subprocess.run(["setsid", *command], capture_output=True, timeout=PATIENCE, cwd=self.tree)
            except subprocess.TimeoutExpired:
                return False
            if done.returncode:
                return False
        return True

    def verdict(self, mutant):
        place = self.tree / mutant.path
        place.write_text(mutant.source())
        try:
            if not self.make():
                return "not built"
            return "survived" if self.passes() else "caught"
        finally:
            place.write_text(SOURCES[mutant.path])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="those whose file, line and text match")
    options = parser.parse_args()
    mutants = [*statements(), *conditions()]
    chosen = [(number, mutant) for number, mutant in [*enumerate(mutants)][options.first::options.every]
              if re.search(options.only, str(mutant))]
    if options.list:
        print(*(f"{number}: {mutant}" for number, mutant in enumerate(mutants)), sep="\n")
        return 0
    os.environ["YOKE_NO_CACHING"] = "0"
    bench = Bench(options.folder.resolve())
    if not bench.passes():
        raise SystemExit("the tests fail without a mutant")
    told = {"caught": 0, "survived": 0, "not built": 0}
    for number, mutant in chosen:
        if f"{mutant.path}: {str(mutant).split(': ', 1)[1]}" in EQUIVALENT:
            continue
        start = time.monotonic()
        verdict = bench.verdict(mutant)
        told[verdict] += 1
        print(f"{number}: {verdict}, {time.monotonic() - start:.0f} s: {mutant}", flush=True)
    built = told["caught"] + told["survived"]
    share = 100 * told["caught"] / max(built, 1)
    print(f"{told['caught']} of {built} mutants caught, {share:.1f} %; {told['not built']} not built")
    return share < LEAST


if __name__ == "__main__":
    sys.exit(main())
