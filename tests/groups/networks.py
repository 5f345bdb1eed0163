"""Two hosts with a cable between: network namespaces of this machine. Needs root."""
import functools
import os
import subprocess

from ranks import until

ADDRESSES = "10.77.13.1", "10.77.13.2"


@functools.cache
def why_not():
    """Returns why this machine cannot make networks; "" if it can."""
    try:
        tried = subprocess.run(["unshare", "--net", "ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", "eth1"], capture_output=True, text=True)
    except OSError as error:
        return f"no networks can be made: {error}"
    return f"no networks can be made: {tried.stderr.strip()}" if tried.returncode else ""


class Hosts:
    """Network namespaces. Processes that read from this process hold the namespaces, so all end with this process in every case."""

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
        for host, other in enumerate(reversed(ADDRESSES)):  # to the address of no card
            self.on(host, "ip", "neighbour", "replace", other, "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")

    def limit(self, rate):
        """Limits the rate in each direction, in the notation of `tc`: "1gbit"."""
        for host in range(len(ADDRESSES)):
            self.on(host, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
