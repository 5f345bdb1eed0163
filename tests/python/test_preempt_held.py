"""Preemption.held(): no function runs amid a block, and no signal is lost that comes there."""

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


def test_a_signal_waits_for_the_end_of_the_block(told):
    with yoke.on_preempt(lambda: told.append("fn"), [USR1, USR2]) as preemption:
        with preemption.held():
            for each in (USR2, USR1, USR2):  # each signal once, in order of arrival
                signal.raise_signal(each)
            told.append("block")
        assert told == ["block", "fn", "SIGUSR2", "fn", "SIGUSR1"]
        signal.raise_signal(USR1)
        assert told[5:] == ["fn", "SIGUSR1"]


def test_it_waits_for_all_blocks_whoever_entered_them(told):
    with yoke.on_preempt(lambda: told.append("one"), USR1) as one, yoke.on_preempt(lambda: told.append("other"), USR2) as other:
        with one.held(), other.held():
            with one.held():
                signal.raise_signal(USR1)
            told.append("inner")
        assert told == ["inner", "one", "SIGUSR1"]


def test_a_block_that_fails_is_not_saved_and_the_signal_not_lost(told):
    with yoke.on_preempt(lambda: told.append("whole"), USR1), yoke.on_preempt(lambda: told.append("half"), USR1) as preemption:
        with pytest.raises(ZeroDivisionError), preemption.held():
            signal.raise_signal(USR1)
            1 / 0
        assert told == ["whole", "SIGUSR1"]  # the registration outside the block runs
        signal.raise_signal(USR1)
        assert told[2:] == ["half", "whole", "SIGUSR1"]


def test_a_function_may_hold_as_well(told):
    def save():
        with preemption.held():
            signal.raise_signal(USR2)
            told.append("fn")
    with yoke.on_preempt(save, [USR1]) as preemption, yoke.on_preempt(lambda: told.append("other"), USR2):
        signal.raise_signal(USR1)
    assert told == ["fn", "SIGUSR1", "other", "SIGUSR2"]


def test_a_child_that_is_forked_amid_a_block_holds_nothing():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import os, signal, yoke
        preemption = yoke.on_preempt(lambda: print("saved", flush=True))
        with preemption.held():
            child = os.fork()
            if child == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            assert os.waitpid(child, 0)[1] == signal.SIGTERM
            other = os.fork()
        if other == 0:
            with yoke.on_preempt(lambda: os._exit(7)):
                os.kill(os.getpid(), signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 7
        with preemption.held():
            os.kill(os.getpid(), signal.SIGTERM)
            print("held", flush=True)
        print("went on")
    """)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "held\nsaved\n"), done.stderr


def test_a_thread_is_told_where_to_hold():
    caught = []

    def hold():
        try:
            with preemption.held():
                pass
        except yoke.StateError as error:
            caught.append(str(error))
    with yoke.on_preempt(print, USR1) as preemption:
        thread = threading.Thread(target=hold, name="worker")
        thread.start()
        thread.join()
    assert "held(): called in thread 'worker'" in caught[0] and "call it there" in caught[0]
