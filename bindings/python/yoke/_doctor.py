"""What is wrong with this machine's GPUs, and what to do about it: doctor()."""
from typing import NamedTuple

from yoke import _yoke


class Check(NamedTuple):
    """One question and its answer. `status` is "ok", "warn", "fail" or "skip" (it does not apply here)."""
    id: str
    status: str
    evidence: str
    remedy: str
    url: str
    number: int
    title: str
    card: int


class Report:
    """All checks, always in one order. `exit_code` is 0 when none failed, 1 when one did, 2 when one could not run."""

    def __init__(self, checks, exit_code):
        self.checks = checks
        self.exit_code = exit_code

    def __getitem__(self, id):
        for check in self.checks:
            if id in (check.id, check.number):
                return check
        raise _yoke.ValueError(f"Report: there is no check {id!r}; there are {', '.join(c.id for c in self.checks)}")

    def __repr__(self):
        counts = [(status, sum(c.status == status for c in self.checks)) for status in ("fail", "warn", "ok", "skip")]
        return f"<yoke.Report {', '.join(f'{n} {status}' for status, n in counts)}>"

    def __str__(self):
        lines = []
        for check in self.checks:
            lines.append(f"{check.status:4} {check.number:2} {check.title}: {check.evidence}")
            if check.status in ("warn", "fail"):
                lines += [f"        {line}" for line in [*check.remedy.splitlines(), check.url]]
        return "\n".join(lines)


def doctor(probe=False, redact=False, deadline=0.):
    """Examines the machine and gives a Report; never raises for what is wrong with it.

    With `probe`, checks that run work on a device are made too, each in a child process that is ended after `deadline`
    seconds (0: 10). With `redact`, no text holds names of hosts, users and processes, or UUIDs.
    """
    checks, exit_code = _yoke._doctor(probe, redact, deadline)
    return Report([Check(*check) for check in checks], exit_code)


def doctor_record(folder, probe=False, redact=False):
    """Writes what a report rests on, and the report, into a folder: scenario.json, root/, environment, report.json."""
    _yoke._doctor_record(folder, probe, redact)
