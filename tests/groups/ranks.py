"""Ranks that obey the commands of a test, as processes of tests/capi/comm_rank.c. Also helpers for other clients of the ranks'
ports.
"""
import dataclasses
import os
import pathlib
import select
import signal
import socket
import subprocess
import time

PATIENCE = 60  # seconds without an answer after which a rank counts as hung
PROGRAM = pathlib.Path(os.environ["YOKE_BUILD_DIR"]) / "tests" / "test_capi_comm_rank"
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # a sanitizer changes memory, so limits and counts fail
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "PMIX_", "OMPI_", "SLURM_", "PET_", "TORCHELASTIC_", "YOKE_COMM_", "JOB_COMPLETION_")


class Port:
    """Port held by a test without listening."""

    def __init__(self):
        self._held = socket.socket(socket.AF_INET6)
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._held.bind(("::", 0))
        self.number = self._held.getsockname()[1]

    def close(self):
        self._held.close()


@dataclasses.dataclass
class Answer:
    status: str  # "ok", "comm", "timeout", "wrong" for a value, "ended" for a rank that has ended
    seconds: float
    text: str


class Rank:
    def __init__(self, number, size, port, prefix=(), host="127.0.0.1", **variables):
        """Starts the process. `prefix` is a command that runs the program; a variable of None is not set."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        own |= {"RANK": number, "WORLD_SIZE": size, "MASTER_ADDR": host, "MASTER_PORT": port} | variables
        environment = {name: str(value) for name, value in own.items() if value is not None}
        self.number, self._read = number, b""
        self.process = subprocess.Popen([*prefix, PROGRAM, "serve"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                        stderr=subprocess.DEVNULL)

    @property
    def name(self):
        """Returns the rank's name in errors."""
        return f"rank {self.number} (host {socket.gethostname()}, process {self.process.pid})"

    def tell(self, command):
        try:
            self.process.stdin.write(command.encode() + b"\n")
        except BrokenPipeError:  # the process has ended; answer() says so
            pass

    def line(self, patience=PATIENCE):
        """Returns the next line; None if the process has ended."""
        end = time.monotonic() + patience
        while b"\n" not in self._read:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{self.name} has not answered for {patience} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace")

    def answer(self, patience=PATIENCE):
        line = self.line(patience)
        if line is None:
            return Answer("ended", 0, "")
        status, seconds, text = line.split(" ", 2)
        return Answer(status, float(seconds), text)

    def ask(self, command, patience=PATIENCE):
        self.tell(command)
        return self.answer(patience)

    def is_silent(self):
        """Returns whether the rank is in a command."""
        return b"\n" not in self._read and not select.select([self.process.stdout], [], [], 0)[0]

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def resources(self):
        """(threads, descriptors, resident KiB, tensors)"""
        self.tell("count")
        return tuple(map(int, self.line().split()))


class Job:
    """Ranks of a group, by number; ended ranks stay in the list."""

    def __init__(self, size, numbers=None, **variables):
        self.size, self.port, self.ranks = size, Port(), {}
        self.variables = variables
        for number in range(size) if numbers is None else numbers:
            self.start(number)

    def start(self, number, **variables):
        self.ranks[number] = Rank(number, self.size, self.port.number, **self.variables | variables)
        return self.ranks[number]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks.values():
            rank.end()
        self.port.close()

    def but(self, *away):
        return [rank for number, rank in self.ranks.items() if number not in away]

    def ask(self, command, away=(), patience=PATIENCE):
        """Returns the answers of all ranks, except those in `away`. A command may be a function of the rank."""
        for rank in self.but(*away):
            rank.tell(command(rank.number) if callable(command) else command)
        return self.answers(away, patience)

    def tell(self, command, away=()):
        for rank in self.but(*away):
            rank.tell(command)

    def answers(self, away=(), patience=PATIENCE):
        return {rank.number: rank.answer(patience) for rank in self.but(*away)}

    def meet(self, timeout=60, init_timeout=60):
        answers = self.ask(f"init env {timeout} {init_timeout}")
        assert all(answer.status == "ok" for answer in answers.values()), answers
        return self


def until(is_so, patience=PATIENCE):
    end = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.01)


def is_stopped(process):
    return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def stop(rank):
    rank.send(signal.SIGSTOP)
    until(lambda: is_stopped(rank.process.pid))


def listening(process):
    """Returns the TCP ports at which a process listens."""
    inodes = set()
    for each in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            inodes.add(os.readlink(each).removeprefix("socket:[").rstrip("]"))
        except OSError:  # closed meanwhile
            pass
    ports = set()
    for table in "tcp", "tcp6":
        for line in pathlib.Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def until_connected(port):
    """Waits until a connection to the port exists on this machine."""
    def is_so():
        for table in "tcp", "tcp6":
            for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "01" and int(fields[2].rsplit(":", 1)[1], 16) == port:
                    return True
        return False
    until(is_so)
