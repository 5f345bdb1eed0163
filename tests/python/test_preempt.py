"""on_preempt: calls at a signal, their order, and the later fate of the signal."""

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import yoke

USR1, USR2 = signal.SIGUSR1, signal.SIGUSR2


@pytest.fixture
def told():
    """Yields the log of calls: the former handlers of USR1 and USR2 add their names."""
    log = []
    before = {each: signal.signal(each, lambda number, frame: log.append(signal.Signals(number).name)) for each in (USR1, USR2)}
    yield log
    for each, handler in before.items():
        signal.signal(each, handler)


def run(program, *arguments, **options):
    """Runs a script in a separate process, which may die."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, **options)


# ---- Calls at a signal -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("signals", ["USR1", "SIGUSR1", USR1, ["USR1"], ("USR1", USR2), {USR1}, iter(["SIGUSR1"])])
def test_the_function_runs_and_then_the_former_handler(told, signals):
    former = signal.getsignal(USR1)
    handle = yoke.on_preempt(lambda: told.append("fn"), signals)
    signal.raise_signal(USR1)
    assert told == ["fn", "SIGUSR1"]
    signal.raise_signal(USR1)
    assert told == ["fn", "SIGUSR1"] * 2
    handle.remove()
    handle.remove()
    assert signal.getsignal(USR1) is former
    signal.raise_signal(USR1)
    assert told == ["fn", "SIGUSR1"] * 2 + ["SIGUSR1"]


def test_the_former_handler_gets_the_frame_that_was_interrupted(told):
    frames = []
    signal.signal(USR1, lambda number, frame: frames.append(frame))
    with yoke.on_preempt(lambda: None, "USR1"):
        signal.raise_signal(USR1)
    assert frames == [sys._getframe()]


def test_all_functions_run_the_newest_first(told):
    with yoke.on_preempt(lambda: told.append("first"), USR1):
        with yoke.on_preempt(lambda: told.append("second"), [USR1, USR2]):
            signal.raise_signal(USR1)
            signal.raise_signal(USR2)
        signal.raise_signal(USR1)
    signal.raise_signal(USR1)
    assert told == ["second", "first", "SIGUSR1", "second", "SIGUSR2", "first", "SIGUSR1", "SIGUSR1"]


def test_a_function_may_remove_itself(told):
    def once():
        told.append("fn")
        handle.remove()
    handle = yoke.on_preempt(once, USR1)
    signal.raise_signal(USR1)
    signal.raise_signal(USR1)
    assert told == ["fn", "SIGUSR1", "SIGUSR1"]


def test_an_ignored_signal_is_ignored_again(told):
    signal.signal(USR1, signal.SIG_IGN)
    with yoke.on_preempt(lambda: told.append("fn"), USR1):
        signal.raise_signal(USR1)
        signal.raise_signal(USR1)
        assert told == ["fn", "fn"]
    assert signal.getsignal(USR1) is signal.SIG_IGN


def test_a_handler_in_c_gets_the_signal(told, tmp_path):
    signal.signal(USR1, signal.SIG_DFL)
    with open(tmp_path / "stack", "w") as file:
        faulthandler.register(USR1, file)
        try:
            with yoke.on_preempt(lambda: told.append("fn"), USR1):
                signal.raise_signal(USR1)
            stack = (tmp_path / "stack").read_text()
            assert told == ["fn"] and stack.count("most recent call first") == 1
            signal.raise_signal(USR1)
            assert (tmp_path / "stack").read_text().count("most recent call first") == 2
        finally:
            faulthandler.unregister(USR1)


def test_term_ends_the_process_with_its_own_status():
    done = run("""
        import os, signal, yoke
        yoke.on_preempt(lambda: print("saved", flush=True))
        os.kill(os.getpid(), signal.SIGTERM)
        print("went on")
    """)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "saved\n"), done.stderr


def test_interrupt_is_still_keyboard_interrupt(told):
    yoke.on_preempt(lambda: told.append("fn"), "INT")
    for wanted in (["fn"], ["fn"]):  # a handler that has raised has the signal from then on
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert told == wanted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---- Errors ------------------------------------------------------------------------------------------------------

def test_what_a_function_raises_comes_out_in_place_of_the_former_handler(told):
    def fail():
        told.append("fails")
        raise OSError("no space left")
    with yoke.on_preempt(lambda: told.append("older"), USR1):
        yoke.on_preempt(fail, USR1)
        with pytest.raises(OSError, match="no space"):
            signal.raise_signal(USR1)
        assert told == ["fails", "older"]
        signal.raise_signal(USR1)
        assert told == ["fails", "older", "older", "SIGUSR1"]  # the failed registration has ended


def test_of_two_that_raise_both_are_told(told):
    def fail(error):
        raise error
    yoke.on_preempt(lambda: fail(KeyError("older")), USR1)
    yoke.on_preempt(lambda: fail(OSError("newer")), USR1)
    with pytest.raises(KeyError) as raised:
        signal.raise_signal(USR1)
    assert isinstance(raised.value.__context__, OSError)
    assert told == []


def test_a_function_may_end_the_script_its_own_way():
    done = run("""
        import atexit, signal, sys, yoke
        atexit.register(print, "at exit")
        yoke.on_preempt(lambda: sys.exit(85))
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            print("finally")
    """)
    assert (done.returncode, done.stdout) == (85, "finally\nat exit\n"), done.stderr


# ---- More signals meanwhile --------------------------------------------------------------------------------------

def test_the_same_signal_counts_once_until_the_former_handler_had_it(told):
    def save():
        os.kill(os.getpid(), USR1)
        told.append("begins")
        signal.raise_signal(USR1)
        told.append("ends")
    with yoke.on_preempt(save, USR1):
        signal.raise_signal(USR1)
    assert told == ["begins", "ends", "SIGUSR1"]


def test_another_watched_signal_waits_for_the_function(told):
    def save():
        told.append("begins")
        signal.raise_signal(USR2)
        signal.raise_signal(USR2)
        told.append("ends")
    with yoke.on_preempt(save, USR1), yoke.on_preempt(lambda: told.append("other"), USR2):
        signal.raise_signal(USR1)
    assert told == ["begins", "ends", "SIGUSR1", "other", "SIGUSR2"]


def test_a_second_term_does_not_end_a_save():
    done = run("""
        import os, signal, yoke
        def save():
            os.kill(os.getpid(), signal.SIGTERM)
            print("saved", flush=True)
        yoke.on_preempt(save)
        os.kill(os.getpid(), signal.SIGTERM)
        print("went on")
    """)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "saved\n"), done.stderr


HOLD = r"""
/* The first file that is synced waits until somebody opens the pipe. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int fsync(int file)
{
    static int count;
    if (count++ == 0) close(open(getenv("HELD_BY"), O_RDONLY));
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
"""


@pytest.fixture
def held(tmp_path):
    """Returns the environment of a script whose first save ends when a process opens ./pipe for writing."""
    (tmp_path / "hold.c").write_text(HOLD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "hold.so", tmp_path / "hold.c", "-ldl"], check=True)
    os.mkfifo(tmp_path / "pipe")
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(tmp_path / "hold.so")]))
    return {**os.environ, "LD_PRELOAD": preload, "HELD_BY": str(tmp_path / "pipe")}


def test_a_wait_for_a_save_is_where_the_function_runs(tmp_path, held):
    done = run("""
        import os, signal, sys, threading, yoke
        def release():
            assert not work.done()
            assert threading.current_thread() is threading.main_thread()
            os.close(os.open("pipe", os.O_WRONLY))  # lets the save go on, and so the wait end
            print("fn", flush=True)
        def send():
            with turn:
                os.kill(os.getpid(), signal.SIGTERM)
        yoke.on_preempt(release)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        sys.setswitchinterval(1000)  # the other thread runs when this one waits in C, not before
        turn = threading.Lock()
        turn.acquire()
        thread = threading.Thread(target=send)
        thread.start()
        work = yoke.save("state", {"x": yoke.ones(8)}, blocking=False)
        turn.release()
        work.wait()
        print("went on")
    """, cwd=tmp_path, env=held)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "fn\n"), done.stderr


def test_a_wait_in_lua_is_where_the_function_runs(tmp_path, held):
    lua = shutil.which("lua5.4")
    if lua is None:
        pytest.skip("lua5.4 is not installed")
    (tmp_path / "run.lua").write_text("""
        local yoke = require "yoke"
        local work
        yoke.on_preempt(function()
            assert(not work:done())
            io.open("pipe", "w"):close()
            print("fn")
        end, { signals = "USR1" })
        work = assert(yoke.save("state", { x = yoke.ones(8) }, { blocking = false }))
        os.execute("kill -USR1 $PPID")
        print(work:wait())
    """)
    ignoring = f"trap '' USR1; exec {lua} run.lua"
    done = subprocess.run(["sh", "-c", ignoring], capture_output=True, text=True, timeout=300, cwd=tmp_path, env=held)
    assert (done.returncode, done.stdout) == (0, "fn\ntrue\n"), done.stderr


# ---- Other handlers ----------------------------------------------------------------------------------------------

def test_a_handler_that_was_installed_later_stays_and_may_call_ours(told):
    handle = yoke.on_preempt(lambda: told.append("fn"), USR1)
    ours = signal.getsignal(USR1)

    def above(number, frame):
        told.append("above")
        ours(number, frame)
    signal.signal(USR1, above)
    signal.raise_signal(USR1)
    handle.remove()
    assert signal.getsignal(USR1) is above
    signal.raise_signal(USR1)
    assert told == ["above", "fn", "SIGUSR1", "above", "SIGUSR1"]
    told.clear()
    with yoke.on_preempt(lambda: told.append("again"), USR1):
        signal.raise_signal(USR1)  # without going round in a circle
        assert told == ["again", "above"]
    signal.signal(USR1, ours)
    told.clear()
    signal.raise_signal(USR1)
    assert "again" not in told


def test_a_forked_child_has_the_former_handlers():
    done = run("""
        import multiprocessing, os, signal, yoke
        yoke.on_preempt(lambda: print("saved", flush=True))
        def status_of(body):
            child = os.fork()
            if child == 0:
                body()
                os._exit(0)
            return os.waitpid(child, 0)[1]
        assert status_of(lambda: os.kill(os.getpid(), signal.SIGTERM)) == signal.SIGTERM
        def register():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            yoke.on_preempt(lambda: os._exit(7))
            os.kill(os.getpid(), signal.SIGTERM)
        assert os.waitstatus_to_exitcode(status_of(register)) == 7
        worker = multiprocessing.get_context("fork").Process(target=signal.pause)
        worker.start()
        worker.terminate()
        worker.join()
        assert worker.exitcode == -signal.SIGTERM
        os.kill(os.getpid(), signal.SIGTERM)
    """)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "saved\n"), done.stderr


def test_a_signal_to_a_child_that_was_just_made_is_not_lost():
    done = run("""
        import os, signal, yoke
        # Before the package hears of the fork: hooks in a child run in the order in which they were registered.
        os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
        yoke.on_preempt(print)
        child = os.fork()
        if child == 0:
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """)
    assert (done.returncode, done.stdout) == (0, f"{signal.SIGTERM.value}\n"), done.stderr


def in_thread(fn, name="worker"):
    caught = []

    def body():
        try:
            fn()
        except Exception as error:
            caught.append(error)
    thread = threading.Thread(target=body, name=name)
    thread.start()
    thread.join()
    return caught


def test_a_thread_is_told_where_to_register():
    error, = in_thread(lambda: yoke.on_preempt(print))
    assert isinstance(error, yoke.StateError)
    assert "on_preempt(): called in thread 'worker'" in str(error) and "main thread; call it there" in str(error)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_thread_may_send_the_signal_and_remove_the_registration(told):
    handle = yoke.on_preempt(lambda: told.append(threading.current_thread() is threading.main_thread()), USR1)
    assert in_thread(lambda: os.kill(os.getpid(), USR1)) == []
    assert told == [True, "SIGUSR1"]
    assert in_thread(handle.remove) == []
    signal.raise_signal(USR1)
    assert told == [True, "SIGUSR1", "SIGUSR1"]
    yoke.on_preempt(lambda: None, USR1).remove()
    assert signal.getsignal(USR1).__module__ == __name__  # the former handler is back


# ---- Refused calls -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, kind, message", [
    ((5,), yoke.TypeError, "on_preempt(): argument 'fn' is 5; a function without arguments is needed"),
    ((print, "TREM"), yoke.ValueError, "on_preempt: 'TREM' is not a signal that asks a program to end; use one of TERM, INT, HUP"),
    ((print, ["TERM", "KILL"]), yoke.ValueError, "can catch signal 'KILL'; use one of TERM"),
    ((print, signal.SIGSEGV), yoke.ValueError, "on_preempt: signal 'SIGSEGV' reports a fault"),
    ((print, ()), yoke.ValueError, "on_preempt(): argument 'signals' names no signal"),
    ((print, 15), yoke.TypeError, "on_preempt(): argument 'signals' is 15; a sequence of names such as 'TERM' is needed"),
    ((print, [15]), yoke.TypeError, "on_preempt(): argument 'signals' has an item that is 15"),
    ((print, ["TERM", None]), yoke.TypeError, "on_preempt(): argument 'signals' has an item that is None"),
])
def test_what_does_not_serve_is_refused_and_nothing_is_changed(arguments, kind, message):
    with pytest.raises(kind) as raised:
        yoke.on_preempt(*arguments)
    assert message in str(raised.value)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
