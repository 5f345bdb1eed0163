"""Groups whose ranks find each other in a store of the program: accepted stores, and errors of init() if the store fails."""
import datetime
import os
import subprocess
import sys
import threading
import time

import pytest

import yoke


class Table:
    """Like torch's HashStore: get() waits, and gives bytes."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.values[key] = value.encode() if isinstance(value, str) else value
            self.changed.notify_all()

    def wait(self, keys, timeout=datetime.timedelta(seconds=300)):
        with self.changed:
            if not self.changed.wait_for(lambda: all(key in self.values for key in keys), timeout.total_seconds()):
                raise RuntimeError("wait timeout")

    def get(self, key):
        self.wait([key])
        return self.values[key]


class Early(Table):
    """Store like torch's HashStore, which counts whole milliseconds: a wait ends before its time."""

    def wait(self, keys, timeout=datetime.timedelta(seconds=300)):
        super().wait(keys, timeout - datetime.timedelta(milliseconds=2))


class Poll(Table):
    """Store without a wait, with values as str."""
    wait = None

    def get(self, key):
        value = self.values.get(key)
        return None if value is None else value.decode()


FOLDER = """
import os, sys, threading, time, yoke
class Folder:
    def __init__(self, path):
        self.path, self.thread = path, threading.get_ident()
    def place(self, key):
        assert self.thread == threading.get_ident() and key.startswith("yoke/"), "called elsewhere, or later"
        return os.path.join(self.path, key.replace("/", "_"))
    def set(self, key, value):
        with open(self.place(key) + ".new", "w") as file: file.write(value)
        os.rename(self.place(key) + ".new", self.place(key))
    def get(self, key):
        try: return open(self.place(key), "rb").read()
        except FileNotFoundError: return None
class Waiting(Folder):
    def wait(self, keys, timeout):
        until = time.monotonic() + timeout.total_seconds()
        while Folder.get(self, keys[0]) is None:
            if time.monotonic() > until: raise RuntimeError("wait timeout")
            time.sleep(0.01)
    def get(self, key):
        return open(self.place(key)).read()
for _ in range(2):
    store = (Waiting if sys.argv[2] == "2" else Folder)(sys.argv[1])
    group = yoke.comm.init(store=store, rank=int(sys.argv[2]), world_size=3, timeout=60.)
    store.thread = None
    t = yoke.full((3,), group.rank + 1.)
    group.all_reduce(t)
    half = group.split(0)
    group.barrier()
    print(t.tolist(), half.size)
"""

LUA = """
local yoke = require "yoke"
local path, rank = arg[1], tonumber(arg[2])
local Folder = {}
Folder.__index = Folder
function Folder:place(key) return path .. "/" .. key:gsub("/", "_") end
function Folder:set(key, value)
    local file = assert(io.open(self:place(key) .. ".new", "w"))
    file:write(value)
    file:close()
    assert(os.rename(self:place(key) .. ".new", self:place(key)))
end
function Folder:get(key, timeout)
    assert(timeout <= 300)
    local file = io.open(self:place(key))
    local value = file and file:read "a"
    if file then file:close() end
    return value
end
for _ = 1, 2 do
    local group = assert(yoke.comm.init { store = setmetatable({}, Folder), rank = rank, world_size = 3, timeout = 60.0 })
    local t = yoke.full({ 3 }, group.rank + 1.0)
    assert(group:all_reduce(t))
    local half = assert(group:split(0))
    assert(group:barrier())
    local all = t:tolist()
    print(("[%.1f, %.1f, %.1f] %d"):format(all[1], all[2], all[3], half.size))
end
"""


def test_processes_in_two_languages_meet_in_a_folder_again_and_again(tmp_path):
    (tmp_path / "rank.py").write_text(FOLDER)
    (tmp_path / "rank.lua").write_text(LUA)
    (tmp_path / "store").mkdir()
    for _ in range(2):  # keys of the first job are passed over
        commands = [[sys.executable, tmp_path / "rank.py"], ["lua5.4", tmp_path / "rank.lua"], [sys.executable, tmp_path / "rank.py"]]
        ranks = [subprocess.Popen([*command, tmp_path / "store", str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for rank, command in enumerate(commands)]
        done = [rank.communicate(timeout=120) for rank in ranks]
        assert done == [("[6.0, 6.0, 6.0] 3\n" * 2, "")] * 3, done


def test_what_a_store_raises_is_the_error_of_init_and_its_cause():
    class Broken(Table):
        def set(self, key, value):
            raise OSError("the disk is full")

        def get(self, key):
            raise KeyError(key)
        wait = None
    told = []
    for rank in range(2):
        with pytest.raises(yoke.CollectiveError) as raised:
            yoke.comm.init(store=Broken(), rank=rank, world_size=2, init_timeout=20.)
        told.append(raised.value)
    assert str(told[0]).startswith("comm.init: the store's set('yoke/") and "OSError: the disk is full" in str(told[0])
    assert str(told[1]).startswith("comm.init: the store's get('yoke/") and "KeyError" in str(told[1])
    assert isinstance(told[0].__cause__, OSError) and isinstance(told[1].__cause__, KeyError)


@pytest.mark.parametrize("kind", [Table, Poll, Early])
def test_a_rank_zero_that_does_not_come_is_a_timeout(kind):
    start = time.monotonic()
    with pytest.raises(yoke.TimeoutError, match="no address of rank 0 in the given store within 0.3 s"):
        yoke.comm.init(store=kind(), rank=1, world_size=2, init_timeout=0.3)
    assert time.monotonic() - start < 60


def test_a_value_of_another_type_is_refused():
    class Numbers(Table):
        wait = None

        def get(self, key):
            return 7
    with pytest.raises(yoke.CollectiveError, match="returned 7; it must return bytes or a str"):
        yoke.comm.init(store=Numbers(), rank=1, world_size=2, init_timeout=20.)
    foreign = Poll()
    foreign.get = lambda key: "a piano"
    with pytest.raises(yoke.CollectiveError, match="'a piano'.*its own store"):
        yoke.comm.init(store=foreign, rank=1, world_size=2, init_timeout=20.)


def test_what_is_no_store_is_a_type_error():
    for wrong in (7, {"a": 1}):
        with pytest.raises(yoke.Error, match="argument 'store' is .* method set"):
            yoke.comm.init(store=wrong, rank=0, world_size=2)


def test_an_interrupt_within_the_store_is_one():
    class Interrupted(Table):
        wait = None

        def get(self, key):
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        yoke.comm.init(store=Interrupted(), rank=1, world_size=2, init_timeout=20.)


def test_a_lua_store_that_fails_is_the_error_of_init():
    program = """
local yoke = require "yoke"
local function init(store) return select(2, yoke.comm.init { store = store, rank = 1, world_size = 2, init_timeout = 0.3 }) end
local function set() end
print(init { set = set, get = function() error("the disk is full", 0) end })
print(init { set = set, get = function() return nil, "no such table" end })
print(init { set = set, get = function() return 7 end })
print(init { set = set, get = function() end })
print(select(2, pcall(init, { get = set })))
print(select(2, yoke.comm.init { store = { get = set, set = function() return nil, "read only" end }, rank = 0, world_size = 2 }))
"""
    done = subprocess.run(["lua5.4", "-e", program], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 6, done
    for line, told in zip(lines, ["failed: the disk is full", "failed: no such table", "get() returned 7; it must be a string",
                                  "no address of rank 0", "does not have the method set", "the store's set('yoke/start0/rank0') failed: read only"]):
        assert told in line, (line, told)
