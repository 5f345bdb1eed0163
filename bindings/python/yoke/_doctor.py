"""Problems of this machine's GPUs, and their remedies: doctor()."""
from typing import NamedTuple

from yoke import _yoke
from yoke._named import named


class Check(NamedTuple):
    """Check with its result. `status` is "ok", "warn", "fail" or "skip" (does not apply here)."""
    id: str
    status: str
    evidence: str
    remedy: str
    url: str
    number: int
    title: str
    card: int


class Report:
    """All checks, always in the same order. `exit_code` is 0 if no check failed, 1 if a check failed, 2 if a check could not run."""

    def __init__(self, checks, exit_code):
        self.checks = checks
        self.exit_code = exit_code

    def __getitem__(self, id):
        for check in self.checks:
            if id in (check.id, check.number):
                return check
        raise _yoke.ValueError(f"Report: there is no check {id!r}; the checks are {', '.join(c.id for c in self.checks)}")

    def __repr__(self):
        counts = [(status, sum(c.status == status for c in self.checks)) for status in ("fail", "warn", "ok", "skip")]
        return f"<yoke.Report {', '.join(f'{n} {status}' for status, n in counts)}>"

    def __str__(self):
        lines = []
        for check in self.checks:
            front = f"{check.status:4} {check.number:2} "
            if check.status == "ok":
                lines.append(f"{front}{check.title}: {check.evidence}")
            elif check.status == "skip":
                lines.append(f"{front}{check.title}; not checked: {check.evidence}")
            else:
                lines.append(f"{front}expected: {check.title}; found: {check.evidence}")
                lines += [f"        {line}" for line in [*check.remedy.splitlines(), check.url]]
        return "\n".join(lines)


@named
def doctor(probe=False, redact=False, deadline=0.):
    """Examines the machine and returns a Report; a problem of the machine is no error.

    With `probe`, also checks that run work on a device, each in a child process that is ended after `deadline` seconds (0: 10).
    With `redact`, no text has names of machines, users and processes, or UUIDs.
    """
    checks, exit_code = _yoke._doctor(probe, redact, deadline)
    return Report([Check(*check) for check in checks], exit_code)


@named
def doctor_record(folder, probe=False, redact=False):
    """Writes the report and the facts behind the report into a folder: scenario.json, root/, environment, report.json."""
    _yoke._doctor_record(folder, probe, redact)
