"""Faults of a rank of a group, their moments, and the error that every living rank must then raise."""
import os
import signal

from ranks import Job, stop, until

SOON = 20  # seconds, far below the deadline of a call that waits in vain
# Deadlines: LONG is never reached, SHORT is to run out. Many jobs on few processors make ranks late.
LONG, SHORT = 60, 3 if "YOKE_SOAK" in os.environ else 1

# Calls with the last rank as root, if the op has a root. So no rank is root, server and victim in all cases.
SMALL = "{op} 7 float32 sum {root}"
LARGE = "{op} 200000 float32 sum {root}"
OPS = ("barrier", "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "send", "ring")


def told_all_alike(job, answers, victim, status, *words, calls=None):
    """Checks that every living rank soon has the same error with these words.

    With `calls`, the error's text begins with the interrupted call of the rank, which must be in `calls`.
    """
    for answer in answers.values():
        assert answer.status == status and answer.seconds < SOON, answers
        for word in words:
            assert word in answer.text, (word, answers)
    causes = {answer.text for answer in answers.values()}
    if calls is not None:
        assert {text.partition(": ")[0] for text in causes} <= calls, (calls, answers)
        causes = {text.partition(": ")[2] for text in causes}
    # If rank 0 is lost, each rank reports its own observation.
    assert victim == 0 or len(causes) == 1, answers


class Fault:
    """Strikes an idle rank. If `is_sudden`, a rank amid calls can be struck as well."""
    is_sudden = False
    timeout = LONG
    variables = {}
    form = SMALL

    def strike(self, job, victim, call):
        raise NotImplementedError

    def check(self, job, answers, victim, op):
        raise NotImplementedError


class Killed(Fault):
    is_sudden = True

    def strike(self, job, victim, call):
        job.ranks[victim].send(signal.SIGKILL)
        job.ranks[victim].process.wait()

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "comm", job.ranks[victim].name, "died")


class Stopped(Fault):
    is_sudden = True
    timeout = SHORT

    def strike(self, job, victim, call):
        stop(job.ranks[victim])

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "timeout", job.ranks[victim].name, "did not arrive at")


class Silent(Stopped):
    """Stops a rank, as Stopped does, but no deadline runs out."""
    timeout = LONG
    variables = {"YOKE_COMM_SILENCE": str(SHORT)}

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "comm", job.ranks[victim].name, "sent no heartbeat for", "YOKE_COMM_SILENCE",
                       calls={"barrier", *({"send", "recv"} if op in ("send", "ring") else {op})})


class Exits(Fault):
    """Ends the process with a code, as a program does after an exception or without memory."""

    def strike(self, job, victim, call):
        job.ranks[victim].tell("exit 3")
        job.ranks[victim].process.wait()

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "comm", job.ranks[victim].name)


class Leaves(Fault):
    def strike(self, job, victim, call):
        assert job.ranks[victim].ask("leave").status == "ok"

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "comm", job.ranks[victim].name, "left")


class Raises(Fault):
    """Aborts the group, as an exception within `with group` does."""

    def strike(self, job, victim, call):
        assert job.ranks[victim].ask("abort out of data").status == "ok"

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "cancelled", "abort()", job.ranks[victim].name, "out of data")


class OutOfMemory(Fault):
    """Makes a call of the victim fail for lack of memory, while the other ranks wait for the victim."""
    variables = {"YOKE_NO_CACHING": "1"}
    form = LARGE

    def strike(self, job, victim, call):
        rank = job.ranks[victim]
        assert rank.ask("hog").status == "ok"
        own = rank.ask(call.replace("float32", "float32/2"))
        assert own.status == "oom" and rank.name in own.text, own

    def check(self, job, answers, victim, op):
        told_all_alike(job, answers, victim, "oom", job.ranks[victim].name, "no memory")


FAULTS = {"killed": Killed(), "stopped": Stopped(), "silent": Silent(), "exits": Exits(), "leaves": Leaves(), "raises": Raises(),
          "memory": OutOfMemory()}


def first_failures(answers, later):
    """Returns the first failed answer of each rank's two calls. If both calls failed, the texts must be the same."""
    for number, answer in answers.items():
        assert answer.status != "wrong" and (answer.status == "ok" or answer.text == later[number].text), (answers, later)
    return {number: later[number] if answer.status == "ok" else answer for number, answer in answers.items()}


def try_fault(fault, op, victim, when, size=3, shared=1):
    """`when`: "idle", all ranks are; "waiting", the others wait for the victim; "amid", all are at calls."""
    command = fault.form.format(op=op, root=size - 1)
    with Job(size, YOKE_COMM_SHM=shared, **fault.variables).meet(fault.timeout) as job:
        if when == "idle":
            fault.strike(job, victim, f"call {command}")
        if when == "amid":
            job.tell(f"loop {command}")
            until(lambda: all(rank.is_silent() for rank in job.ranks.values()))
        else:
            for each in command, "barrier":  # some ranks of some calls need not wait for the victim
                job.tell(f"call {each}", away={victim})
        if when != "idle":
            fault.strike(job, victim, f"call {command}")
        answers = job.answers({victim})
        if when == "amid":
            job.tell("call barrier", away={victim})
        fault.check(job, first_failures(answers, job.answers({victim})), victim, op)


# ---- Calls that do not fit -----------------------------------------------------------------------------------------

DIFFERENT = {
    "op": ("reduce_scatter 4", "all_gather 4", ("the call", "reduce_scatter of", "all_gather of")),
    "dtype": ("all_reduce 4 float32", "all_reduce 4 int32", ("the dtype", "of 4 float32, sum", "of 4 int32, sum")),
    "count": ("all_reduce 200001", "all_reduce 200000", ("the number of elements", "of 200001 float32", "of 200000 float32")),
    "reduction": ("all_reduce 4 float32 min", "all_reduce 4 float32 max", ("the reduction", ", min", ", max")),
    **{f"root of {op}": (f"{op} 4 float32 sum 0", f"{op} 4 float32 sum 1", ("the root", f"{op} of 4 float32", "root 0", "root 1"))
       for op in ("broadcast", "scatter", "gather", "reduce")},
    "order": ("all_reduce 4; call barrier", "barrier; call all_reduce 4", ("the call", "all_reduce of 4", "barrier")),
}


def try_difference(kind, other, size=3, shared=1):
    """Lets a rank make another call than the other ranks: the call fails on every rank, and so does the next call."""
    usual, unusual, words = DIFFERENT[kind]
    with Job(size, YOKE_COMM_SHM=shared).meet(LONG) as job:
        calls = {number: f"{unusual if number == other else usual}; call barrier".split("; ") for number in job.ranks}
        for number, rank in job.ranks.items():
            for call in calls[number]:
                rank.tell(call if call.startswith("call ") else "call " + call)
        told = {}
        for number, rank in job.ranks.items():
            answers = [rank.answer() for _ in calls[number]]
            assert {answer.status for answer in answers} == {"comm"}, answers
            assert len({answer.text for answer in answers}) == 1, answers
            told[number] = answers[0]
        told_all_alike(job, told, None, "comm", job.ranks[other].name, *words)
