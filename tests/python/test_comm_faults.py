"""Faults of ranks, a case of each kind: every living rank raises the right error in time. ./dev soak groups tries every pair.

The ranks are programs of YOKE_BUILD_DIR.
"""
import json
import pathlib
import signal
import socket
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "groups"))
import cuts  # noqa: E402
import cycles  # noqa: E402
import faults  # noqa: E402
import networks  # noqa: E402
import strangers  # noqa: E402
from ranks import SANITIZED, Job, Rank, stop, until_connected  # noqa: E402

LATE = 1  # seconds, for deadlines that run out
IN_TIME = faults.SOON


@pytest.mark.parametrize("kind", faults.DIFFERENT)
def test_calls_that_do_not_fit_are_shown_to_all(kind):
    faults.try_difference(kind, other=1, shared=0 if kind == "order" else 1)


@pytest.mark.parametrize("fault, op, victim, when, shared", [
    ("killed", "all_reduce", 0, "amid", 1), ("killed", "broadcast", 0, "amid", 1), ("killed", "all_to_all", 1, "waiting", 0), ("killed", "reduce", 2, "idle", 1),
    ("stopped", "broadcast", 1, "waiting", 1), ("silent", "gather", 2, "amid", 0), ("silent", "barrier", 0, "idle", 1), ("silent", "ring", 1, "waiting", 1),
    ("exits", "scatter", 1, "idle", 1), ("leaves", "ring", 1, "waiting", 0),
    ("raises", "reduce_scatter", 1, "waiting", 1), ("memory", "all_gather", 2, "waiting", 1), ("memory", "all_reduce", 0, "idle", 0)])
def test_a_rank_that_fails_is_named_on_all_others(fault, op, victim, when, shared):
    if fault == "memory" and SANITIZED:
        pytest.skip("a sanitizer ends a process that has no memory")
    faults.try_fault(faults.FAULTS[fault], op, victim, when, shared=shared)


@pytest.mark.parametrize("op", ["reduce_scatter", "all_to_all", "all_gather"])
def test_sizes_that_do_not_divide_are_refused_and_the_group_goes_on(op):
    with Job(3).meet() as job:
        answers = job.ask(f"ragged {op}")
        assert {answer.status for answer in answers.values()} == {"value"} and op in answers[0].text and "7" in answers[0].text, answers
        assert {answer.status for answer in job.ask("call all_reduce 5 int64 max").values()} == {"ok"}


def test_a_rank_is_told_that_the_one_it_waits_for_gave_up_though_rank_0_has_left():
    with Job(3).meet() as job:
        assert job.ranks[0].ask("leave").status == "ok"
        job.ranks[0].end()
        job.ranks[1].tell("call send 4 float32 sum 2")  # rank 1 receives from rank 2
        answer = job.ranks[2].ask("call send 4 float32 sum 0")
        assert answer.status == "comm" and f"recv: {job.ranks[0].name} has left the group" in answer.text, answer
        told = job.ranks[1].answer()
        assert told.status == "comm" and told.seconds < IN_TIME, told
        for part in (f"{job.ranks[0].name}, which keeps the store of the job, has left", f"the connection to {job.ranks[2].name} ended", "recv of 4 float32 from rank 2"):
            assert part in told.text, told


# ---- At init -------------------------------------------------------------------------------------------------------

def all_told(answers, statuses, *words):
    for answer in answers.values():
        assert answer.status in statuses and answer.seconds < IN_TIME, answers
        for word in words:
            assert word in answer.text, (word, answers)


def test_a_rank_that_is_missing_is_named():
    with Job(3, numbers=(0, 2)) as job:
        all_told(job.ask(f"init env 60 {LATE}"), ["timeout"], "1 of 3 ranks did not arrive: 1;", job.ranks[0].name, job.ranks[2].name)


def test_a_rank_that_is_there_twice_is_named():
    with Job(3, numbers=(0, 1)) as job:
        job.ranks["twin"] = twin = Rank(1, 3, job.port.number)
        for rank in job.ranks.values():
            rank.tell("init env")
        answers = [rank.answer() for rank in job.ranks.values()]
        all_told(dict(enumerate(answers)), ["comm"], "two processes have rank 1", f"process {twin.process.pid}", f"process {job.ranks[1].process.pid}")


def test_a_rank_that_is_not_below_the_size_is_named():
    with Job(2) as job:
        job.ranks[1].end()
        job.start(1, RANK=5)
        answers = job.ask("init env")
        assert (answers[0].status, answers[1].status) == ("comm", "value"), answers
        all_told(answers, ["comm", "value"], "the rank is 5 (RANK), and the size 2 (WORLD_SIZE)", "0 to 1")
        assert job.ranks[1].name.replace("rank 1", "rank 5") in answers[0].text, answers


def test_a_port_that_another_program_has_is_named():
    with Job(2) as job, socket.create_server(("", job.port.number), family=socket.AF_INET6, dualstack_ipv6=True) as taken:
        del taken
        answers = job.ask(f"init env 60 {LATE}")
        assert answers[0].status == "comm" and answers[1].status == "timeout", answers
        all_told(answers, ["comm", "timeout"], str(job.port.number), "another program")
        assert "Address already in use" in answers[0].text


def test_a_host_that_nobody_knows_and_an_interface_that_is_absent_are_named():
    with Job(2) as job:
        job.ranks[1].end()
        job.start(1, host="nosuchhost.invalid")
        all_told({1: job.ranks[1].ask(f"init env 60 {LATE}")}, ["timeout"], "'nosuchhost.invalid'", "MASTER_ADDR")
    with Job(2) as job:
        job.ranks[1].end()
        job.start(1, YOKE_SOCKET_IFNAME="nosuch0")
        answers = job.ask("init env")
        assert (answers[0].status, answers[1].status) == ("comm", "value"), answers
        all_told(answers, ["comm", "value"], "YOKE_SOCKET_IFNAME is 'nosuch0'")
        assert job.ranks[1].name in answers[0].text


def test_two_jobs_at_one_port_are_two():
    with Job(2).meet() as first:
        with Job(2, numbers=()) as second:
            second.ranks = {number: Rank(number, 2, first.port.number) for number in range(2)}
            answers = second.ask(f"init env 60 {5 if SANITIZED else LATE}")
            all_told(answers, ["comm", "timeout"], "rank 0 of another job", f"process {first.ranks[0].process.pid}")
        assert {answer.status for answer in first.ask("call all_reduce 1000").values()} == {"ok"}


@pytest.mark.parametrize("fault", ["killed", "stopped"])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_fails_while_others_are_awaited_is_named(fault, victim):
    with Job(3, numbers=(0, 1)) as job:
        for rank in job.ranks.values():
            rank.tell(f"init env 60 {2 * LATE}")
        other = job.ranks[1 - victim]
        until_connected(job.port.number)
        if fault == "killed":
            job.ranks[victim].send(signal.SIGKILL)
        else:
            stop(job.ranks[victim])
        job.start(2).tell(f"init env 60 {2 * LATE}")
        answers = {rank.number: rank.answer() for rank in (other, job.ranks[2])}
        all_told(answers, ["comm", "timeout"])
        assert all(answer.seconds < 2 * LATE + 2 for answer in answers.values()), answers  # no rank waits for a goodbye message
        # Rank 0 lists the joined ranks; without rank 0 each rank names the place where it looked.
        named = (f"127.0.0.1:{job.port.number}", "rank 0 (host") if victim == 0 else ("rank 1 (host", "missing: 1")
        assert all(any(name in answer.text for name in named) for answer in answers.values()), answers


@pytest.mark.skipif(SANITIZED, reason="a sanitizer ends a process that has no memory")
def test_a_rank_without_memory_to_begin_with_is_named():
    with Job(3) as job:
        assert job.ranks[1].ask("hog").status == "ok"
        answers = job.ask(f"init env 60 {2 * LATE}")
        all_told(answers, ["oom", "comm", "timeout"])
        assert all("rank 1" in answers[each].text or "ranks did not arrive: 1" in answers[each].text for each in (0, 2)), answers


def test_a_limit_of_files_is_named_where_it_bounds_shared_memory():
    limited = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")  # 4 or 8 KiB; beyond the limit SIGXFSZ ends a program
    with Job(2, numbers=(0,)) as job:
        job.ranks[1] = Rank(1, 2, job.port.number, prefix=limited)
        answers = job.ask("init env 60 30")
        all_told(answers, ["oom"], job.ranks[1].name, "RLIMIT_FSIZE", "ulimit -f", "YOKE_COMM_SHM=0")
    with Job(2, numbers=(), YOKE_COMM_SHM=0) as job:
        job.ranks = {number: Rank(number, 2, job.port.number, prefix=limited, YOKE_COMM_SHM=0) for number in range(2)}
        assert {answer.status for answer in job.meet().ask("call all_reduce 100000").values()} == {"ok"}


# ---- Networks, foreign clients, and leftovers ----------------------------------------------------------------------

@pytest.mark.skipif(bool(networks.why_not()), reason=networks.why_not() or "there is a reason")
@pytest.mark.parametrize("how", cuts.WAYS)
def test_hosts_that_are_cut_off_from_each_other_both_know_it(how):
    cuts.try_cut(how, "amid")


def test_strangers_at_every_port_change_nothing():
    strangers.try_all(seconds=1)


def test_failures_that_are_overcome_leave_nothing(tmp_path):
    cycles.try_cycles(5, tmp_path)


# ---- Reports to the launcher ---------------------------------------------------------------------------------------

def message_of(path):
    return json.loads(path.read_text())["message"]["message"] if path.exists() else None


def test_a_group_that_is_shrunk_for_no_failure_tells_no_cause_and_a_later_one_is_told(tmp_path):
    files = [tmp_path / f"cause{number}" for number in range(2)]
    with Job(2, numbers=()) as job:
        for number in range(2):
            job.start(number, TORCHELASTIC_ERROR_FILE=files[number])
        job.meet()
        assert {answer.status for answer in job.ask("shrink 20").values()} == {"ok"}
        assert [message_of(path) for path in files] == [None, None]
        job.ranks[1].end()
        assert job.ranks[0].ask("call barrier").status == "comm"
        assert "died" in message_of(files[0])
        assert job.ranks[0].ask("shrink 20").status == "ok"
        assert message_of(files[0]) is None  # the group goes on
        assert job.ranks[0].ask("abort enough").status == "ok"
        assert message_of(files[0]).endswith("enough")


def test_a_rank_that_cannot_begin_tells_why(tmp_path):
    path = tmp_path / "cause"
    with Job(2, numbers=(0,)) as job:
        job.ranks[0].end()
        rank = job.start(0, TORCHELASTIC_ERROR_FILE=path)
        assert rank.ask("init env 60 0.2").status == "timeout" and "1 of 2 ranks did not arrive" in message_of(path)
        job.start(1)
        job.meet()
        assert message_of(path) is None  # the group goes on
    with Job(2, numbers=()) as job:
        rank = job.start(0, TORCHELASTIC_ERROR_FILE=path, OMPI_COMM_WORLD_RANK=1)
        assert rank.ask("init env").status == "value" and "OMPI_COMM_WORLD_RANK" in message_of(path)
