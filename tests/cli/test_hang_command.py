"""The command `yoke hang`: dumps of real groups and made-up groups, and files that are no dumps."""
import json
import os

import pytest

import yoke as package
from test_command import pytestmark, yoke  # noqa: F401


def record(sequence, op="barrier", state="done", line=1, **more):
    return {"sequence": sequence, "op": op, "dtype": None, "count": 0, "reduction": None, "peer": None, "state": state, "queued": 1.0,
            "began": 1.0, "ended": 2.0 if state == "done" else None, "file": "t.py", "line": line, "function": "step", **more}


def write(folder, rank, records, size=2, name=None, **more):
    path = folder / (name or f"{rank}.json")
    dump = {"format": 1, "yoke": "0.1.0", "group": "0x7", "rank": rank, "ways": "", "time": "2026-11-25T18:00:00Z", "now": 50.0, "timeout": 600,
            "cause": None, "failed": None, "ranks": [{"host": f"h{i}", "process": 100 + i, "machine": "m"} for i in range(size)],
            "calls": len(records), "sent": [0] * size, "received": [0] * size, "records": records, **more}
    path.write_text(json.dumps(dump))
    return path


def told(*paths):
    done = yoke("hang", "--json", *paths)
    return json.loads(done.stdout), done.returncode


def test_a_hang_is_found_and_exits_with_1(tmp_path):
    write(tmp_path, 0, [record(1), record(2, state="running", line=9)])
    write(tmp_path, 1, [record(1, line=5)])
    found, code = told(tmp_path)
    assert code == 1 and found["hangs"] is True and found["problems"] == []
    assert found == package.comm.hang(tmp_path)
    shown = yoke("hang", tmp_path, columns=100)
    assert shown.returncode == 1 and shown.stderr == ""
    for part in ("group 0x7 of 2 ranks: all dumped ranks have finished call 1", "t.py:9 (step)", "behind", "rank 1 (host h1, process 101)",
                 "has not called it", "t.py:5 (step)", "hang: look at rank 1\n"):
        assert part in shown.stdout, (part, shown.stdout)


def test_what_does_not_hang_exits_with_0(tmp_path):
    group, = package.comm.init_all(["cpu"])
    group.barrier()
    group.dump(tmp_path / "0.json")
    shown = yoke("hang", tmp_path / "0.json")
    assert shown.returncode == 0 and "no hang" in shown.stdout and shown.stderr == ""
    assert told(tmp_path / "0.json")[1] == 0


def test_groups_are_told_apart_and_ranks_without_a_dump_named(tmp_path):
    write(tmp_path, 0, [record(1, state="running")])
    write(tmp_path, 0, [record(1)], size=1, name="other.json", group="0x8")
    found, code = told(tmp_path)
    assert code == 1 and [group["hangs"] for group in found["groups"]] == [True, False]
    shown = yoke("hang", tmp_path).stdout
    assert "no dump of rank 1 (host h1, process 101)" in shown and "group 0x8 of 1 ranks" in shown


def test_an_older_dump_is_left_out(tmp_path):
    write(tmp_path, 0, [record(1)], size=1)
    write(tmp_path, 0, [record(1, state="running")], size=1, name="older.json", now=40.0)
    found, code = told(tmp_path)
    assert code == 0 and found["groups"][0]["older"] == [str(tmp_path / "older.json")]
    assert "older.json" in yoke("hang", tmp_path).stdout


def test_what_is_no_dump_is_named_beside_the_report(tmp_path):
    good = write(tmp_path, 0, [record(1)], size=1)
    bad = tmp_path / "bad.json"
    bad.write_text('{"format": 1')
    done = yoke("hang", good, bad)
    assert done.returncode == 2 and "no hang" in done.stdout and f"{bad}: not a dump of a group" in done.stderr
    stuck = write(tmp_path, 0, [record(1, state="running")])
    done = yoke("hang", stuck, bad)
    assert done.returncode == 1 and str(bad) in done.stderr


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"7", b"\0", b"[" * 1000000, b'{"a":' * 1000000, b'{"format": ' + b"9" * 100000 + b"}",
                                     b'{"format": 1e999}', b'{"format": -1}', b'{"format": 99}', b"\xff\xfe", b'{"format": 1, "yoke": 3}'],
                         ids=range(13))
def test_hostile_files_are_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    done = yoke("hang", path)
    assert done.returncode == 2 and done.stdout == "" and "not a dump of a group" in done.stderr and len(done.stderr) < 1000, done


def test_every_field_of_another_type_is_refused_or_read(tmp_path):
    path = write(tmp_path, 0, [record(1, op="send", peer=1)], sent=[0, 1])
    whole = json.loads(path.read_text())
    values = [None, True, -1, 2**63, 2**64, 1e300, "", "x" * 100000, [], [1], {}, {"a": {"a": {"a": {"a": {"a": {}}}}}}]

    def places(value, way=()):
        yield way
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            yield from places(value[key], way + (key,))

    def replaced(value, way, other):
        if not way:
            return other
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[way[0]] = replaced(value[way[0]], way[1:], other)
        return copy

    read = refused = 0
    for way in places(whole):
        for other in values:
            path.write_text(json.dumps(replaced(whole, way, other)))
            try:
                package.comm.hang(path)
                read += 1
            except package.IOError as error:
                assert "not a dump of a group" in str(error)
                refused += 1
    assert read > 30 and refused > 200


def test_nothing_that_a_dump_says_moves_the_cursor(tmp_path):
    evil = "\x1b[2J\r\n\x07\u009b31m\x7f"
    ranks = [{"host": evil, "process": 1, "machine": evil}, {"host": evil, "process": 2, "machine": ""}]
    write(tmp_path, 0, [record(1, state="running", file=evil, function=evil)], ranks=ranks, ways=evil, yoke=evil, time=evil,
          cause={"status": 5, "name": evil, "text": evil}, failed=3.0)
    (tmp_path / f"{evil}.json").write_text('{"\\u001b[2J": ' + evil)
    for columns in 80, 300:
        done = yoke("hang", tmp_path, columns=columns)
        assert done.returncode == 1
        for text in done.stdout, done.stderr:
            assert not set(text) & set("\x1b\r\x07\u009b\x7f"), repr(text)
    assert "no rank is to blame" not in done.stdout


@pytest.mark.parametrize("path", ["/nowhere", "/dev/zero", "/dev/null", ""])
def test_what_cannot_be_read_is_an_error(path):
    done = yoke("hang", path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.strip()


def test_a_pipe_and_an_empty_folder_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    done = yoke("hang", tmp_path / "pipe.json")
    assert done.returncode == 2 and "regular file" in done.stderr
    (tmp_path / "empty").mkdir()
    assert "has no file" in yoke("hang", tmp_path / "empty").stderr
    assert yoke("hang").returncode == 2


def test_a_file_too_large_for_a_dump_is_not_read(tmp_path):
    with open(tmp_path / "large.json", "wb") as file:
        file.truncate(1 << 40)
    done = yoke("hang", tmp_path / "large.json")
    assert done.returncode == 2 and "1099511627776 bytes" in done.stderr
