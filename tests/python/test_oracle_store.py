"""Stores of PyTorch that init() is given, a process for each rank: `./dev test --oracle torch`."""
import os
import socket
import subprocess
import sys

import pytest

from test_oracle_torch import oracle  # noqa: F401: a fixture

pytestmark = [pytest.mark.usefixtures("oracle"), pytest.mark.filterwarnings("ignore")]

PROGRAM = """
import datetime, sys, threading, time
import torch.distributed as torch_dist
import yoke
kind, place, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def made(name):
    if kind.endswith("tcp"):
        own = torch_dist.TCPStore("127.0.0.1", int(place), size, rank == 0, timeout=datetime.timedelta(seconds=60))
    else:
        own = torch_dist.FileStore(place, size)
    return torch_dist.PrefixStore(name, own) if kind.startswith("prefixed") else own
"""
MEET = PROGRAM + """
time.sleep(0.3 * (size - 1 - rank))  # rank 0 comes last
store = made("job")
for _ in range(2):  # what the first init has left there is passed over
    group = yoke.comm.init(store=store, rank=rank, world_size=size, timeout=60.)
    t = yoke.full((3,), group.rank + 1.)
    group.all_reduce(t)
    half = group.split(0)
    group.barrier()
    print(t.tolist(), half.size)
    half = None
store.set("mine" + str(rank), "kept")  # the store is the script's as before
store.wait(["mine0"], datetime.timedelta(seconds=30))
group.barrier()
"""
LATE = PROGRAM + """
try:
    store = made("job")
    if rank == 0: store.wait(["end"], datetime.timedelta(seconds=60))
    else:
        yoke.comm.init(store=store, rank=rank, world_size=size, init_timeout=1.5)
except yoke.TimeoutError as error:
    print(error)
    store.set("end", "1")
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(program, kind, tmp_path, size):
    place = str(free_port()) if kind.endswith("tcp") else tmp_path / "file"
    ranks = [subprocess.Popen([sys.executable, "-c", program, kind, place, str(rank), str(size)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=os.environ) for rank in range(size)]
    done = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * size, done
    return [out for out, _ in done]


KINDS = ["tcp", "file", "prefixed tcp", "prefixed file"]


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_meet_by_it_again_and_again(kind, tmp_path):
    assert run(MEET, kind, tmp_path, 3) == ["[6.0, 6.0, 6.0] 3\n" * 2] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_zero_that_does_not_come_is_a_timeout(kind, tmp_path):
    told = run(LATE, kind, tmp_path, 2)[1]
    assert "comm.init: rank 1 (host " in told and "found no address of rank 0 in the given store within 1.5 s" in told, told


def test_a_store_that_ranks_of_one_process_share_is_taken(tmp_path):
    import datetime
    import torch.distributed as torch_dist
    import yoke
    store = torch_dist.HashStore()
    store.set_timeout(datetime.timedelta(seconds=30))
    group = yoke.comm.init(store=torch_dist.PrefixStore("alone", store), rank=0, world_size=1)
    assert group.size == 1
    with pytest.raises(yoke.TimeoutError, match="rank 1 .* within 1 s"):
        yoke.comm.init(store=store, rank=1, world_size=2, init_timeout=1.)
    store.set("yoke/start0/rank0", "nonsense")
    with pytest.raises(yoke.CollectiveError, match="'nonsense'"):
        yoke.comm.init(store=store, rank=1, world_size=2, init_timeout=1.)
