"""Ranks as scripts: the first lines of each rank, and processes for the scripts."""
import os
import socket
import subprocess
import sys
import tempfile


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# All ranks have made the group before a rank ends it; otherwise some errors would be about the making. The ranks
# check this by files, because a rank that has left a call of the group may end it while other ranks are still in the
# call.
BEGIN = """
import os, signal, sys, time, yoke
group = yoke.comm.init(timeout=60.)
rank, size = group.rank, group.size
if "YOKE_TEST_MEETING" in os.environ:
    open(os.path.join(os.environ["YOKE_TEST_MEETING"], str(rank)), "w").close()
    while len(os.listdir(os.environ["YOKE_TEST_MEETING"])) < size: time.sleep(0.002)
def told(call):
    try:
        call()
        print("fine")
    except yoke.Error as error:
        print(type(error).__name__, error)
"""


def start(program, size, **environment):
    """Starts a process for each rank; returns outputs, statuses and errors, by rank."""
    common = {**os.environ, "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **environment}
    with tempfile.TemporaryDirectory() as meeting:
        ranks = [subprocess.Popen([sys.executable, "-c", BEGIN + program], env={**common, "RANK": str(rank), "YOKE_TEST_MEETING": meeting}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(size)]
        done = [each.communicate(timeout=120) for each in ranks]
    return [out for out, _ in done], [each.returncode for each in ranks], [error for _, error in done]
