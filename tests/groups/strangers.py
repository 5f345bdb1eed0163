"""Foreign clients at the ports of ranks: the connections must change nothing for the ranks."""
import contextlib
import itertools
import os
import socket
import threading
import time

from ranks import PATIENCE, Job, Rank, listening

HELD = 40  # connections that each lasting client keeps


def true_greeting():
    """Returns the first bytes of a rank to rank 0, sent before the rank knows the server."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(PATIENCE)
        rank = Rank(1, 2, door.getsockname()[1])
        try:
            rank.tell("init env 60 20")
            with door.accept()[0] as guest:
                return guest.recv(1 << 12)
        finally:
            rank.end()


def words(greeting):
    """Yields texts of foreign clients, each time a different text."""
    half = len(greeting) // 2
    known = [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", greeting[:half], greeting[:-1], b"\0" * 48, greeting[:half] + os.urandom(half + 64)]
    for number in itertools.count():
        yield known[number % 8] if number % 8 < len(known) else os.urandom((48, 1 << 20)[number % 8 - len(known)])


class Strangers:
    """Threads that connect to all ports of some processes until the end. The first thread sends a text and goes, the second sends
    byte by byte, the third stays.
    """

    def __init__(self, ranks, greeting):
        self.ranks, self.greeting = ranks, greeting
        self.is_over, self.came = threading.Event(), 0
        self.threads = [threading.Thread(target=each) for each in (self.speak, self.drip, self.stay)]

    def __enter__(self):
        for each in self.threads:
            each.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for each in self.threads:
            each.join()

    def connect(self):
        """Yields a connection to each open port."""
        for rank in list(self.ranks.values()):
            with contextlib.suppress(OSError):  # the process has ended
                for port in listening(rank.process.pid):
                    with contextlib.suppress(OSError):
                        self.came += 1
                        yield socket.create_connection(("127.0.0.1", port), timeout=0.5)

    def speak(self):
        for word in words(self.greeting):
            for guest in self.connect():
                with guest, contextlib.suppress(OSError):
                    guest.sendall(word)
            if self.is_over.wait(0.002):
                return

    def drip(self):
        guests = []
        for byte in itertools.cycle(self.greeting):
            if len(guests) < HELD:
                guests += self.connect()
            for guest in guests:
                with contextlib.suppress(OSError):
                    guest.send(bytes([byte]))
            if self.is_over.wait(0.02):
                break
        for guest in guests:
            guest.close()

    def stay(self):
        guests = []
        while not self.is_over.wait(0.02):
            if len(guests) < HELD:
                guests += self.connect()
        for guest in guests:
            guest.close()


def fine(answers):
    assert all(answer.status == "ok" for answer in answers.values()), answers


def try_all(seconds, shared=0):
    """Tries foreign clients in init with a rank missing, with idle ranks, amid calls, and in shrink."""
    greeting = true_greeting()
    with Job(3, numbers=(0, 1), YOKE_COMM_SHM=shared) as job, Strangers(job.ranks, greeting) as strangers:
        job.tell("init env 60 60")
        strangers_until(strangers, seconds / 4)
        job.start(2).tell("init env 60 60")
        fine(job.answers())
        strangers_until(strangers, seconds / 4)
        end = time.monotonic() + seconds / 2
        while time.monotonic() < end:
            fine(job.ask("call all_reduce 50000"))
            fine(job.ask("call ring 1000"))
        fine(job.ask("shrink 30"))
        fine(job.ask("call all_gather 1000"))
        assert strangers.came > 20, strangers.came


def strangers_until(strangers, seconds):
    """Waits so many seconds, and until at least 5 connections were made."""
    before, end = strangers.came, time.monotonic() + seconds
    while time.monotonic() < end or strangers.came < before + 5:
        time.sleep(0.01)
