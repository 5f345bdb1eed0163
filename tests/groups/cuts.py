"""Two hosts with a cable between, which is cut: network namespaces of this machine. Needs root."""
import functools
import os
import subprocess

import faults
from ranks import Job, until

WAYS = ("link", "blackhole")  # the cable is pulled; or whatever is sent vanishes, and both ends seem well
ADDRESSES = "10.77.13.1", "10.77.13.2"


@functools.cache
def why_not():
    """Why it cannot be tried here; "" where it can."""
    try:
        tried = subprocess.run(["unshare", "--net", "ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", "eth1"], capture_output=True, text=True)
    except OSError as error:
        return f"no networks can be made: {error}"
    return f"no networks can be made: {tried.stderr.strip()}" if tried.returncode else ""


class Hosts:
    """They go with this process, however it ends: what holds them reads from it."""

    def __init__(self):
        self.holders = [subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for _ in ADDRESSES]
        own = os.readlink("/proc/self/ns/net")
        for holder in self.holders:
            until(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own)  # noqa: B023
        first, second = (str(holder.pid) for holder in self.holders)
        self.on(0, "ip", "link", "add", "name", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        for host, address in enumerate(ADDRESSES):
            self.on(host, "ip", "address", "add", f"{address}/24", "dev", "eth0")
            for device in "lo", "eth0":
                self.on(host, "ip", "link", "set", device, "up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.stdin.close()
            holder.wait()

    def prefix(self, host):
        return "nsenter", "-t", str(self.holders[host].pid), "-n"

    def on(self, host, *command):
        subprocess.run([*self.prefix(host), *command], check=True)

    def cut(self, how):
        if how == "link":
            self.on(0, "ip", "link", "set", "eth0", "down")
            return
        for host, other in enumerate(reversed(ADDRESSES)):  # to a card that nobody has
            self.on(host, "ip", "neighbour", "replace", other, "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")


def on_two_hosts(hosts, size, **variables):
    """Ranks 0, 2, … are on the first host, 1, 3, … on the second one."""
    job = Job(size, numbers=())
    for number in range(size):
        job.start(number, prefix=hosts.prefix(number % 2), host=ADDRESSES[0], **variables)
    return job


def check(job, answers, words):
    """Each rank blames one of the other host."""
    for number, answer in answers.items():
        others = [rank.name for rank in job.ranks.values() if rank.number % 2 != number % 2]
        assert answer.status in ("comm", "timeout") and answer.seconds < faults.SOON, answers
        assert any(name in answer.text for name in others) and any(word in answer.text for word in words), answers


def try_cut(how, when, size=2, by_silence=True, op="all_reduce"):
    timeout, variables = (faults.LONG, {"YOKE_COMM_SILENCE": "1"}) if by_silence else (faults.SHORT, {})
    with Hosts() as hosts, on_two_hosts(hosts, size, **variables) as job:
        if when == "init":
            hosts.cut(how)
            answers = job.ask(f"init env {timeout} 2")
            assert all(answer.status == "timeout" and answer.seconds < faults.SOON for answer in answers.values()), answers
            assert "ranks are missing: 1" in answers[0].text and "did not reach rank 0" in answers[1].text, answers
            return
        job.meet(timeout)
        command = faults.LARGE.format(op=op, root=size - 1)
        if when == "amid":
            job.tell(f"loop {command}")
            until(lambda: all(rank.is_silent() for rank in job.ranks.values()))
        hosts.cut(how)
        if when == "idle":
            job.tell(f"call {command}")
        answers = job.answers()
        job.tell("call barrier")
        check(job, faults.first_failures(answers, job.answers()), ["has not been heard"] if by_silence else ["did not come in time"])
