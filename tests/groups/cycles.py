"""Failure, shrink, init, again and again in the same processes: no thread, descriptor, memory or file is left."""
import os

import faults
from ranks import SANITIZED, Job, Port, Rank, stop

WARM = 3  # cycles until all lasting resources exist
ROOM = 4096  # KiB by which a process may grow in all cycles: memory that the heap keeps


def kill(job, call):
    job.ranks[2].send(9)


def halt(job, call):
    stop(job.ranks[2])


def differ(job, call):
    job.ranks[2].tell("call all_reduce 8 int32 min")


def give_up(job, call):
    job.ranks[2].tell("abort out of data")


KINDS = (kill, differ, give_up, kill, differ, give_up, halt)


def one(job, number, shared):
    """Lets a group of three fail by its last rank, a new process. The other ranks shrink the group and leave."""
    port, how = Port(), KINDS[number % len(KINDS)]
    url = f"tcp://127.0.0.1:{port.number}"
    job.ranks[2] = Rank(2, 3, port.number, YOKE_COMM_SHM=shared)
    try:
        timeout = faults.SHORT if how is halt else faults.LONG
        assert {answer.status for answer in job.ask(f"init {url} {timeout} 60").values()} == {"ok"}
        assert {answer.status for answer in job.ask("call all_reduce 100000").values()} == {"ok"}
        job.tell("call all_reduce 100000", away={2})
        how(job, number)
        failed = job.answers({2})
        assert all(answer.status in ("comm", "timeout", "cancelled") for answer in failed.values()), failed
        if how in (differ, give_up):
            job.ranks[2].end()  # otherwise shrink waits for rank 2
        for command in "shrink 5", "call all_reduce 100000", "leave":
            answers = job.ask(command, {2})
            assert all(answer.status == "ok" for answer in answers.values()), (command, answers)
    finally:
        job.ranks.pop(2).end()
        port.close()


def try_cycles(count, folder, shared=1):
    before = set(os.listdir("/dev/shm"))
    with Job(3, numbers=(0, 1), YOKE_COMM_SHM=shared, TMPDIR=folder) as job:
        first = {}
        for number in range(count):
            one(job, number, shared)
            if number == WARM - 1:
                first = {rank.number: rank.resources() for rank in job.ranks.values()}
        for rank in job.ranks.values():
            now, then = rank.resources(), first[rank.number]
            assert (now[0], now[1], now[3]) == (then[0], then[1], then[3]), (rank.name, then, now)
            assert now[2] <= then[2] + ROOM or SANITIZED, (rank.name, then, now)
    assert not os.listdir(folder)
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "yoke" in name]
