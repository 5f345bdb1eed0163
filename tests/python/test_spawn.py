"""yoke.spawn: functions in separate processes, and how their failures reach the caller."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import yoke


def run(folder, body, *, module="", interrupt=False, **options):
    """Returns the output of a script that defines functions in `body` and spawns in the guarded part of `body`."""
    (folder / "parts.py").write_text("import os, sys, time, yoke\n" + module)
    script = folder / "script.py"
    functions, main = body.split("---\n")
    guarded = "\n".join("    " + line for line in main.splitlines())
    script.write_text(f"import os, sys, time, yoke, parts\n{functions}\nif __name__ == '__main__':\n{guarded}\n")
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, **options)
    if interrupt:
        assert process.stdout.readline() == "[0] ready\n"
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return out, err, process.returncode


def test_a_function_of_the_script_runs_in_ranks_of_one_group(tmp_path):
    out, err, code = run(tmp_path, """
def train(factor, names, *, more=None):
    group = yoke.comm.init()
    t = yoke.full((2,), factor * (group.rank + 1))
    group.all_reduce(t)
    print(t.tolist(), names, __name__, group.rank, group.size, sys.stdin.read() == "")
---
print("before")
yoke.spawn(train, 2, (2.0, {"a": (1, None)}))
print("after")
""", stdin=subprocess.DEVNULL)
    lines = out.splitlines()
    assert code == 0 and err == "" and lines[0] == "before" and lines[-1] == "after", (out, err)
    assert sorted(lines[1:-1]) == [f"[{rank}] [6.0, 6.0] {{'a': (1, None)}} __mp_main__ {rank} 2 True" for rank in range(2)]


def test_a_function_of_a_module_runs_without_the_scripts_guard(tmp_path):
    out, err, code = run(tmp_path, """
---
yoke.spawn(parts.Part.say, 1, ["x"])
yoke.spawn(parts.Part.told, 1)
""", module="class Part:\n    def say(what): print(what, flush=True)\n    @classmethod\n    def told(cls): print(cls.__name__)\n")
    assert (out, err, code) == ("[0] x\n[0] Part\n", "", 0)


def test_the_rank_that_fails_is_named_with_its_traceback_and_the_others_end(tmp_path):
    out, err, code = run(tmp_path, """
def train():
    group = yoke.comm.init()
    if group.rank == 1:
        raise KeyError("no data")
    time.sleep(1000)
---
try:
    yoke.spawn(train, 3)
except yoke.CollectiveError as error:
    print(error)
""")
    assert code == 0 and out.startswith("spawn(): rank 1 (process "), (out, err)
    assert "ended with exit code 1; its error: its script raised KeyError: 'no data'\n\nTraceback" in out, (out, err)
    assert 'script.py", line ' in out and "KeyError: 'no data'" in out and "[1] KeyError: 'no data'" in err


def test_the_cause_of_a_group_and_the_traceback_are_both_told(tmp_path):
    out, _, _ = run(tmp_path, """
def train():
    group = yoke.comm.init()
    group.all_reduce(yoke.ones(1 + group.rank))
---
try:
    yoke.spawn(train, 2)
except yoke.CollectiveError as error:
    print(error)
""")
    first = out.splitlines()[0]
    assert "; its error: all_reduce: ranks do not agree" in first and "in train\n" in out and "yoke.CollectiveError: all_reduce" in out, out


@pytest.mark.parametrize("end, words", [("sys.exit(3)", "exit code 3"), ("os.abort()", "signal 6 (SIGABRT)"), ("sys.exit(0)", None)])
def test_other_ends_are_told_without_a_traceback(tmp_path, end, words):
    out, _, code = run(tmp_path, f"""
def train(): {end}
---
try:
    print(yoke.spawn(train, 1))
except yoke.CollectiveError as error:
    print(error)
""")
    assert code == 0 and (words in out if words else out == "None\n") and "Traceback" not in out, out


def test_an_interrupt_ends_all(tmp_path):
    out, err, code = run(tmp_path, """
def train():
    print("ready", flush=True)
    time.sleep(1000)
---
try:
    yoke.spawn(train, 1)
except KeyboardInterrupt:
    print("heard")
time.sleep(0.01)
""", interrupt=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert code == 0 and "heard" in out, (out, err)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_die_with_a_script_that_is_killed(tmp_path, number):
    (tmp_path / "script.py").write_text("""
import subprocess, time, yoke
def train():
    helper = subprocess.Popen(["sleep", "1000"])
    print(helper.pid, flush=True)
    time.sleep(1000)
if __name__ == "__main__":
    yoke.spawn(train, 1)
""")
    (tmp_path / "left").mkdir()
    process = subprocess.Popen([sys.executable, str(tmp_path / "script.py")], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path / "left")})
    stat = pathlib.Path(f"/proc/{process.stdout.readline().split()[1]}/stat")
    assert stat.exists()
    process.send_signal(number)
    assert process.wait(timeout=60) == -number
    end = time.monotonic() + 60
    while stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
        assert time.monotonic() < end
        time.sleep(0.01)
    while os.listdir(tmp_path / "left"):  # the launcher's files go with the process beside it
        assert time.monotonic() < end, os.listdir(tmp_path / "left")
        time.sleep(0.01)
    process.stdout.close()


@pytest.mark.parametrize("size", [0, 1, 3 << 20])
def test_each_rank_reads_the_whole_input(size, capfd):
    assert yoke._yoke._run(["wc", "-c"], 3, bytes(size)) == (0, "", "")
    assert sorted(capfd.readouterr().out.splitlines()) == [f"[{rank}] {size}" for rank in range(3)]


def test_a_script_without_a_guard_is_told_so(tmp_path):
    (tmp_path / "script.py").write_text("import yoke\ndef f(): pass\nyoke.spawn(f, 1)\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "bootstrapping phase" in done.stderr


def at_the_top():
    pass


def refused(call, kind, *words):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_what_other_processes_cannot_have_is_refused(tmp_path):
    def inner():
        pass
    refused(lambda: yoke.spawn(lambda: 1, 1), ValueError, "'fn'", "<lambda>")
    refused(lambda: yoke.spawn(inner, 1), ValueError, "'fn'", "inner")
    refused(lambda: yoke.spawn(3, 1), TypeError, "'fn' is 3")
    refused(lambda: yoke.spawn(at_the_top, 0), ValueError, "'n' is 0", "1 to 1024")
    refused(lambda: yoke.spawn(at_the_top, 1025), ValueError, "'n' is 1025")
    refused(lambda: yoke.spawn(at_the_top, "2"), TypeError, "'n'")
    refused(lambda: yoke.spawn(at_the_top, 1, (inner,)), TypeError, "'args' cannot be pickled", "inner")
    session = "import yoke\ndef f(): pass\nyoke.spawn(f, 1)\n"
    done = subprocess.run([sys.executable, "-"], input=session, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 1 and "interactive session" in done.stderr
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("end, words", [("sys.exit('no data in /x')", "no data in /x"), ("raise SystemExit(['a', 1])", "['a', 1]"),
                                        ("sys.exit('lone \\ud800')", r"lone \ud800")])
def test_the_text_of_an_exit_reaches_the_caller(tmp_path, end, words):
    out, err, code = run(tmp_path, f"""
def train(): {end}
---
try:
    yoke.spawn(train, 2)
except yoke.CollectiveError as error:
    print(error)
""")
    assert code == 0 and "ended with exit code 1" in out and out.endswith(f"\n\n{words}\n") and "Traceback" not in out, (out, err)


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("raises, words", [("raise Outcome('reason 4711')", "Outcome: reason 4711"),
                                           ("raise KeyboardInterrupt('reason %d' % 4711)", "KeyboardInterrupt: reason 4711"),
                                           ("raise RuntimeError('reason %d \\ud800' % 4711)", r"RuntimeError: reason 4711 \ud800"),
                                           ("raise ValueError('reason \\0 %d' % 4711)", r"ValueError: reason \x00 4711")])
def test_whatever_a_rank_raises_comes_with_its_traceback(tmp_path, joins, raises, words):
    out, err, code = run(tmp_path, f"""
class Outcome(BaseException): pass
def train():
    if {joins}: yoke.comm.init().barrier()
    {raises}
---
try:
    yoke.spawn(train, 2)
except yoke.CollectiveError as error:
    print(error)
""")
    assert code == 0 and "in train\n" in out and words in out and "UnicodeEncodeError" not in out + err, (out, err)
