"""Part of a run on a GPU: a process with all its children, a log, a deadline, and an end.

YOKE_GPU_CLOCK=60 lets a minute pass in a second, for rehearsals (tests/gpu/rehearsal): deadlines and waits use this clock.
"""

import os
import pathlib
import signal
import subprocess
import time

SPEED = float(os.environ.get("YOKE_GPU_CLOCK", "1"))
GRACE = 5.0  # seconds between asking a part to end and killing it, and for its death
ENDING = 2 * GRACE + 2  # time kept for the end of the last part
POLL = 1.0  # between two looks at the figures of a part
MARK = "YOKE_GPU_PART"  # in the environment of a part and of all its children: "RUN:NAME"


def now():
    """Seconds of the clock that budgets are of."""
    return time.monotonic() * SPEED


def wait(process, seconds):
    """Tells whether the process ended within its time."""
    try:
        process.wait(max(0.0, seconds) / SPEED)
    except subprocess.TimeoutExpired:
        return False
    return True


def marked(mark):
    """Returns the processes of a part, including processes outside the part's session."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass  # ended, or another user's
    return found


def signal_all(process, mark, number):
    """Sends a signal to a part's session and to processes that left the session."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass
    for pid in marked(mark):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def stop(process, mark):
    """Ends a part and its children. The first signal is polite, so that ninja ends its compilers. Returns whether all of them are
    gone.
    """
    signal_all(process, mark, signal.SIGTERM)
    wait(process, GRACE)
    return clear(process, mark)


def clear(process, mark):
    """Kills the rest of a part. A process that hangs in the driver may stay: no signal ends such a process, and this call does not
    wait for it.
    """
    until = now() + GRACE
    while marked(mark) or process.poll() is None:
        signal_all(process, mark, signal.SIGKILL)
        if now() > until:
            return False
        time.sleep(0.01)
    return True


class Running:
    """The running parts, so that a signal to the run ends them, too."""

    def __init__(self):
        self.processes, self.halted = {}, ""

    def run(self, mark, command, seconds, log, variables, folder, look=lambda: None):
        """Runs a program; returns (exit status or None if out of time, remarks). look() is called now and then.

        Raises OSError if the program could not be started.
        """
        until = now() + seconds
        with open(log, "wb") as file:
            process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=subprocess.STDOUT, cwd=folder,
                                       stdin=subprocess.DEVNULL, env={**variables, MARK: mark}, start_new_session=True)
        self.processes[mark] = process
        try:
            if self.halted:  # between the last look and the start
                signal_all(process, mark, signal.SIGKILL)
            while not wait(process, min(POLL * max(1.0, SPEED / 20), until - now())):
                look()
                if now() >= until:
                    gone = stop(process, mark)
                    return None, "" if gone else "it cannot be ended: it hangs in the driver"
            clear(process, mark)
            return process.returncode, ""
        finally:
            self.processes.pop(mark, None)

    def halt(self, number, _frame=None):
        """A signal handler: ends everything; no part begins any more."""
        self.halted = f"the run was ended by {signal.Signals(number).name}"
        for mark, process in list(self.processes.items()):
            signal_all(process, mark, signal.SIGKILL)


def ended(status):
    """Returns how a process ended, where that was not well."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
