"""Examples that are killed or asked to end go on in another language from their saved state, as if undisturbed.

Signals come at certain points: just before or after the folder of a step gets its name, or amid a step stopped by a full pipe.
YOKE_SOAK tries more points, in every order of the languages.
"""
import fcntl
import itertools
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

import state_run
import yoke

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
BUILD = pathlib.Path(os.environ["YOKE_BUILD_DIR"])
LUA = shutil.which("lua5.4") or shutil.which("lua")
SIGNALS = BUILD / "tests" / "hostile" / "libsignal_at_step.so"
PICTURES = {"Python": [sys.executable, EXAMPLES / "fashion_mnist.py"], "Lua": [LUA, EXAMPLES / "fashion_mnist.lua"],
            "C": [BUILD / "examples" / "fashion_mnist"]}
GPT = {"Python": [sys.executable, EXAMPLES / "gpt.py"], "Lua": [LUA, EXAMPLES / "gpt.lua"]}
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # slow as well: skips cases whose lines other cases run
EACH = [(PICTURES, "C"), (GPT, "Lua")] if SANITIZED else [(programs, language) for programs in (PICTURES, GPT) for language in programs]
each_program = pytest.mark.parametrize("programs, language", EACH, ids=lambda value: "gpt" if value is GPT else "pictures" if value is PICTURES else value)
once = pytest.mark.skipif(SANITIZED, reason="another case runs the same lines")
soak = pytest.mark.skipif("YOKE_SOAK" not in os.environ, reason="./dev soak runs it")
pytestmark = pytest.mark.skipif(not LUA or not SIGNALS.exists(), reason="there is no Lua, or nothing that sends signals")

# Two epochs of 15 steps; under a sanitizer six of 2.
STEPS, LIMIT, EPOCHS = (12, 256, 6) if SANITIZED else (30, 1920, 2)
KILLS = [("after", 5), ("before", 10), ("after", 10)] if SANITIZED else [("before", 10), ("after", 15), ("before", 25)]
OPTIONS = {id(PICTURES): ["--limit", LIMIT, "--epochs", EPOCHS],
           id(GPT): ["--steps", STEPS, "--layers", 2, "--width", 32, "--heads", 2, "--context", 16, "--batch", 4, "--sample", 20, "--top-k", 5]}


def environment(signal_at):
    """Returns an environment in which a signal comes at "before step-5", or after it."""
    preloaded = [*os.environ.get("LD_PRELOAD", "").split(), str(SIGNALS)]
    return os.environ | {"YOKE_TEST_SIGNAL": signal_at, "LD_PRELOAD": " ".join(preloaded)}


def run(programs, language, *options, signal_at=None):
    command = [*programs[language], "--threads", 1, "--losses", *OPTIONS[id(programs)], *options]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=300,
                          env=environment(signal_at) if signal_at else None)


def outcome(done):
    """Returns the losses that a program prints, and the text."""
    assert done.returncode == 0, done.stdout + done.stderr
    losses = done.stdout.split("losses: ")[1].split("\n")[0]
    return [float.fromhex(loss) for loss in losses.split()], done.stdout.partition("text: ")[2]


def newest(folder):
    return yoke.CheckpointManager(folder).latest()


def content(folder):
    """All that the newest state holds, a line a node."""
    return state_run.shown(yoke.CheckpointManager(folder).load())


def end_by(number, programs, language, folder, moment, step, *options):
    """Runs a program that saves every fifth step, until a signal ends it during such a save."""
    done = run(programs, language, "--save", folder, "--every", 5, *options, signal_at=f"{number} {moment} step-{step}")
    assert done.returncode == -number, done.stdout + done.stderr


def check_killed(programs, languages, folder, kills, *options):
    """Kills a run in each language at its point; the last run ends. Its result equals an undisturbed run, and a run without saves."""
    undisturbed = outcome(run(programs, languages[0], "--save", folder / "undisturbed", *options))
    assert outcome(run(programs, languages[-1], *options)) == undisturbed
    for language, (moment, step) in zip(languages, kills):
        end_by(signal.SIGKILL, programs, language, folder / "killed", moment, step, *options)
        assert newest(folder / "killed") == (step if moment == "after" else step - 5)
    assert outcome(run(programs, languages[-1], "--save", folder / "killed", *options)) == undisturbed
    assert newest(folder / "killed") == newest(folder / "undisturbed") == len(undisturbed[0])
    assert content(folder / "killed") == content(folder / "undisturbed")


# ---- Killed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amp", [pytest.param("off", marks=once), "f16"])
def test_a_run_that_is_killed_thrice_goes_on_in_other_languages(tmp_path, amp):
    check_killed(PICTURES, ["Python", "Lua", "C", "Python"], tmp_path, KILLS, "--amp", amp)


@pytest.mark.parametrize("amp", [pytest.param("off", marks=once), "f16"])
def test_a_gpt_that_is_killed_thrice_goes_on_in_the_other_language(tmp_path, amp):
    check_killed(GPT, ["Python", "Lua", "Python", "Lua"], tmp_path, KILLS, "--amp", amp)


@soak
@pytest.mark.parametrize("amp", ["off", "bf16", "f16"])
@pytest.mark.parametrize("languages", itertools.permutations(PICTURES), ids="-".join)
def test_a_longer_run_goes_on_in_every_order_of_the_languages(tmp_path, languages, amp):
    kills = [("before", 5), ("after", 45), ("after", 50), ("before", 80), ("after", 90)]
    check_killed(PICTURES, [*languages, *languages], tmp_path, kills, "--amp", amp, "--limit", 6000)


# ---- Told to end -----------------------------------------------------------------------------------------------------


@each_program
def test_a_run_that_is_told_to_end_saves_the_step_that_it_is_at(tmp_path, programs, language):
    others = [each for each in programs if each != language] or [language]
    wanted = outcome(run(programs, others[0]))
    end_by(signal.SIGTERM, programs, language, tmp_path / "run", "before", 5)
    step = newest(tmp_path / "run")
    assert 5 <= step <= 11  # the next save, before the tenth step, waits for this save
    done = run(programs, others[-1], "--save", tmp_path / "run")
    assert f"{step} of {STEPS} steps are done" in done.stderr
    assert outcome(done) == wanted


class HeldUp:
    """A gpt whose standard error is a pipe with space for two lines. The program stops amid its third step until the pipe is
    drained.
    """

    two_lines = 2 * len("step 1: loss 5.5569\n")

    def __init__(self, language, folder):
        command = [*GPT[language], "--threads", 1, *OPTIONS[id(GPT)], "--steps", 9, "--save", folder, "--every", 1000]
        self.read, write = os.pipe()
        room = self.two_lines + 10
        size = fcntl.fcntl(write, 1031, 1)  # F_SETPIPE_SZ: a page
        self.filled = os.write(write, b"\n" * (size - room))
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=write)
        os.close(write)

    def wait_for_second_step(self):
        deadline = time.monotonic() + 300
        while self._written() < self.filled + self.two_lines:
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.001)

    def _written(self):
        return struct.unpack("i", fcntl.ioctl(self.read, termios.FIONREAD, b"1234"))[0]

    def drain(self):
        with open(self.read, "rb") as pipe:
            text = pipe.read().decode()
        return self.process.wait(300), text


@pytest.mark.parametrize("language", GPT)
def test_a_signal_amid_a_step_waits_for_its_end(tmp_path, language):
    held = HeldUp(language, tmp_path / "run")
    held.wait_for_second_step()
    held.process.send_signal(signal.SIGTERM)
    status, text = held.drain()
    assert status == -signal.SIGTERM, text
    assert newest(tmp_path / "run") in (2, 3)  # 2 where the signal was quicker than the third step's beginning
    other = next(each for each in GPT if each != language)
    assert outcome(run(GPT, other, "--steps", 9, "--save", tmp_path / "run")) == outcome(run(GPT, other, "--steps", 9))


def test_a_program_in_c_saves_at_the_end_of_the_step_amid_which_the_signal_came(tmp_path):
    done = run(PICTURES, "C", "--save", tmp_path / "run", "--every", 1000, signal_at="15 after step-0")
    assert done.returncode == -signal.SIGTERM and newest(tmp_path / "run") == 1


LOOP = """
package.path = "{examples}/?.lua;" .. package.path
local SavedRun, yoke = require "saved_run", require "yoke"
local saved, part = SavedRun("loop", "{folder}", 1000, {{}}), yoke.zeros {{ 1 }}
local function send() os.execute "kill -TERM $PPID" end
pcall(function()
    for step in saved:steps(9, {{ part = part }}) do
        part:add_(1)
        if step == 2 then {amid} end
        part:add_(1)
    end
end)
{after}
"""


def loop(folder, amid, after=""):
    """Runs a script whose steps add 2 to a part, in two halves."""
    script = LOOP.format(examples=EXAMPLES, folder=folder, amid=amid, after=after)
    return subprocess.run([LUA, "-"], input=script, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("polls", ["yoke.poll()", "yoke.save('{}', {{ 1 }}, {{ blocking = false }}):wait()"])
def test_in_lua_what_polls_amid_a_step_saves_it_at_its_end(tmp_path, polls):
    done = loop(tmp_path / "run", "send() " + polls.format(tmp_path / "other"))
    assert done.returncode == -signal.SIGTERM, done.stderr
    state = yoke.CheckpointManager(tmp_path / "run").load()
    assert state["step"] == 3 and state["part"].tolist() == [6.0]


@pytest.mark.parametrize("amid", ["break", "error 'left'"])
def test_in_lua_a_loop_that_is_left_no_longer_saves(tmp_path, amid):
    done = loop(tmp_path / "run", amid, "send() yoke.poll()")
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert newest(tmp_path / "run") == 0


# ---- Content of the folder -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Returns {programs: (folder of a finished run, its output)}."""
    folders = {}
    for programs in (PICTURES, GPT):
        folder = tmp_path_factory.mktemp("ended")
        folders[id(programs)] = folder, outcome(run(programs, "Lua", "--save", folder, "--every", 10))
    return folders


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@each_program
def test_a_run_at_its_end_is_evaluated_and_not_trained_anew(ended, programs, language):
    folder, wanted = ended[id(programs)]
    before = files_of(folder)
    done = run(programs, language, "--save", folder)
    assert f"{folder}: {STEPS} of {STEPS} steps are done" in done.stderr
    assert outcome(done) == wanted and files_of(folder) == before
    assert "/s: 0\n" in done.stdout


@each_program
def test_a_damaged_state_is_passed_over(ended, tmp_path, programs, language):
    folder, wanted = ended[id(programs)]
    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run" / f"step-{STEPS}" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    done = run(programs, language, "--save", tmp_path / "run")
    assert "skips damaged steps" in done.stderr and f"{(STEPS - 1) // 10 * 10} of {STEPS} steps are done" in done.stderr
    assert outcome(done) == wanted and newest(tmp_path / "run") == STEPS


@each_program
def test_a_run_of_which_no_state_is_whole_is_not_begun_anew_over_it(ended, tmp_path, programs, language):
    shutil.copytree(ended[id(programs)][0], tmp_path / "run")
    for path in tmp_path.glob("run/step-*/MANIFEST.json"):
        os.truncate(path, 10)
    before = files_of(tmp_path)
    done = run(programs, language, "--save", tmp_path / "run")
    assert done.returncode == 1 and "no step in" in done.stderr and "(10, 20, 30)" in done.stderr
    assert done.stdout == "" and files_of(tmp_path) == before


@each_program
def test_a_run_that_was_begun_otherwise_is_told_with_both_values(ended, programs, language):
    folder, _ = ended[id(programs)]
    changed = {"--seed": (0, 7), "--amp": ("off", "bf16")}
    if programs is PICTURES:
        changed |= {"--limit": (LIMIT, 100), "--epochs": (EPOCHS, 3)}
    else:
        changed |= {"--width": (32, 48), "--batch": (4, 2), "--lr": (0.001, 0.5), "--steps": (STEPS, 31)}
    done = run(programs, language, "--save", folder, *(word for name, (_, new) in changed.items() for word in (name, new)))
    assert done.returncode == 1 and done.stdout == "" and f"the run in {folder} was begun with --" in done.stderr
    was, now = done.stderr.split("not with")
    for name, (old, new) in changed.items():
        assert f"{name} {old}" in was and f"{name} {new}" in now
    assert "name another folder with --save" in now


@pytest.mark.parametrize("language", GPT)
def test_a_gpt_goes_on_with_the_same_text_wherever_it_lies(ended, tmp_path, language):
    folder, wanted = ended[id(GPT)]
    text = pathlib.Path("/usr/share/common-licenses/GPL-3").read_bytes()
    (tmp_path / "same").write_bytes(text)
    (tmp_path / "other").write_bytes(text[:-9] + b"?" + text[-8:])
    assert outcome(run(GPT, language, "--save", folder, "--text", tmp_path / "same")) == wanted
    done = run(GPT, language, "--save", folder, "--text", tmp_path / "other")
    assert done.returncode == 1 and f"was begun with --text of {len(text)} bytes with the sum " in done.stderr


@each_program
def test_a_folder_of_another_program_is_left_alone(ended, tmp_path, programs, language):
    folder, _ = ended[id(GPT if programs is PICTURES else PICTURES)]
    done = run(programs, language, "--save", folder)
    assert done.returncode == 1 and f"{folder} holds a run of {'gpt' if programs is PICTURES else 'fashion_mnist'}; name another" in done.stderr
    yoke.CheckpointManager(tmp_path / "run").save(3, [1, 2], blocking=True)
    done = run(programs, language, "--save", tmp_path / "run")
    assert done.returncode == 1 and "run holds a run of another program; name another folder" in done.stderr


@each_program
@pytest.mark.parametrize("options, said", [
    (["--every", "5"], "--every is 5, and there is no folder to save to; give --save FOLDER too"),
    (["--every", str(-2**31)], f"--every is {-2**31}, and there is no folder to save to"),
    (["--save", "/dev/null", "--every", str(-2**31)], f"--every is {-2**31}; it must be at least 1"),
    (["--save", "/dev/null", "--every", "0"], "--every is 0; it must be at least 1"),
    (["--save", "/dev/null", "--every", "often"], "'often'"),
    (["--save", "/dev/null", "--every", "9" * 20], "a whole number of 64 bits"),
    (["--save", "/dev/null/run"], "/dev/null/run': Not a directory"),
    (["--save", ""], "folder"),
])
def test_what_cannot_be_saved_to_is_told_before_the_first_step(programs, language, options, said):
    done = run(programs, language, *options)
    assert done.returncode in (1, 2) and said in done.stderr and done.stdout == ""
    assert "Traceback" not in done.stderr and "stack traceback" not in done.stderr and "step 3:" not in done.stderr


@once
def test_the_demo_saves_each_language_in_a_folder_of_its_own(tmp_path):
    command = [sys.executable, EXAMPLES / "demo.py", "--threads", "1", "--limit", "256", "--epochs", "1", "--accuracy", "0", "--save", tmp_path]
    for _ in range(2):  # the second time all three runs are finished
        demo = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
        assert demo.returncode == 0 and "identical in all three languages" in demo.stdout, demo.stdout + demo.stderr
    assert demo.stderr.count("2 of 2 steps are done") == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "lua", "python"]
