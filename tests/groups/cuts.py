"""Two machines with a cable between. The tests cut the cable."""
import faults
from networks import ADDRESSES, Hosts
from ranks import Job, until

WAYS = ("link", "blackhole")  # the cable is pulled; or whatever is sent vanishes, and both ends seem well


def on_two_hosts(hosts, size, **variables):
    """Ranks 0, 2, … are on the first host, 1, 3, … on the second host."""
    job = Job(size, numbers=())
    for number in range(size):
        job.start(number, prefix=hosts.prefix(number % 2), host=ADDRESSES[0], **variables)
    return job


def check(job, answers, words):
    """Checks that each rank blames a rank of the other machine."""
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
            assert "ranks did not arrive: 1" in answers[0].text and "did not reach rank 0" in answers[1].text, answers
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
        check(job, faults.first_failures(answers, job.answers()), ["sent no heartbeat"] if by_silence else ["did not arrive at"])
