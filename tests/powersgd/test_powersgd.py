"""PowerSGD on the main job: bytes between two ranks, by their network cards' counters, and the accuracy: ./dev soak powersgd."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "groups"))
import networks  # noqa: E402

SEEDS, EPOCHS = (1, 2, 3), 3
COMPRESSION = "powersgd:rank=4,start=10,rate=2"
FEWER, POINTS = 0.9, 0.5  # least share of saved bytes; most points of accuracy lost, in per cent
PATIENCE = 600


def sent(hosts, host):
    """Returns the bytes sent by a machine's network card."""
    for line in pathlib.Path(f"/proc/{hosts.holders[host].pid}/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "eth0":
            return int(numbers.split()[8])
    raise AssertionError("there is no eth0")


def train(hosts, compression, seed, port):
    """Returns the accuracy in per cent, and the bytes that both have sent."""
    before = sum(sent(hosts, host) for host in range(2))
    ranks = []
    for rank in range(2):
        environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": networks.ADDRESSES[0], "MASTER_PORT": str(port), "YOKE_NUM_THREADS": "1",
                                    "PYTHONPATH": f"{HERE.parents[1] / 'examples'}:{os.environ.get('PYTHONPATH', '')}"}
        ranks.append(subprocess.Popen([*hosts.prefix(rank), sys.executable, HERE / "rank.py", compression, str(seed), str(EPOCHS)], env=environment,
                                      stdout=subprocess.PIPE, text=True))
    told = [each.communicate(timeout=PATIENCE)[0] for each in ranks]
    assert [each.returncode for each in ranks] == [0, 0], told
    return 100 * float(told[0]), sum(sent(hosts, host) for host in range(2)) - before


@pytest.mark.skipif(bool(networks.why_not()), reason=networks.why_not() or "there is a reason")
def test_powersgd_sends_a_tenth_and_learns_as_well():
    lost, fewer = [], []
    with networks.Hosts() as hosts:
        for number, seed in enumerate(SEEDS):
            (plain, all_bytes), (compressed, few_bytes) = (train(hosts, compression, seed, 29500 + 2 * number + which)
                                                           for which, compression in enumerate(("none", COMPRESSION)))
            lost.append(plain - compressed)
            fewer.append(1 - few_bytes / all_bytes)
            print(f"seed {seed}: {plain:.2f} % and {all_bytes / 2**20:.1f} MiB; {COMPRESSION}: {compressed:.2f} % and {few_bytes / 2**20:.1f} MiB")
    print(f"mean of points lost {sum(lost) / len(lost):.2f}; bytes fewer by {100 * min(fewer):.1f} % at least")
    assert all_bytes > 2**30 and min(fewer) >= FEWER and sum(lost) / len(lost) <= POINTS
