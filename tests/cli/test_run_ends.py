"""The command `yoke run` if the command, a rank, or the output's target ends unexpectedly."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from test_command import COMMAND, pytestmark  # noqa: F401
from test_run_command import PATIENCE, alone, is_alive, start, state, until  # noqa: F401


# ---- Groups of ranks -------------------------------------------------------------------------------------------------

def test_what_a_rank_leaves_behind_ends_with_it(tmp_path):
    go = tmp_path / "go"
    ranks = start("-n", "2", "--", "sh", "-c", f"if [ $RANK = 1 ]; then sleep 1000 & echo $!; exit 0; fi; until [ -e {go} ]; do sleep 0.02; done")
    left = ranks.stdout.readline().split()[1]
    try:
        until(lambda: not is_alive(left))
    finally:
        go.write_text("")
        assert ranks.wait(timeout=PATIENCE) == 0
        ranks.communicate()


def test_what_a_rank_leaves_behind_has_a_moment_to_end(tmp_path):
    go = tmp_path / "go"
    helper = f"trap 'echo saved; exit' TERM; echo > {go}; while :; do sleep 0.02; done"
    ranks = start("-n", "1", "--", "sh", "-c", f"sh -c \"{helper}\" & until [ -e {go} ]; do sleep 0.02; done")
    assert ranks.communicate(timeout=PATIENCE)[0] == "[0] saved\n" and ranks.returncode == 0


HAS_NUMBERS = subprocess.run(["unshare", "-rpf", "--mount-proc", "sh", "-c", "echo 100 > /proc/sys/kernel/ns_last_pid"],
                             capture_output=True).returncode == 0


@pytest.mark.skipif(not HAS_NUMBERS, reason="no namespace in which the numbers of processes can be chosen")
@pytest.mark.parametrize("end", ["echo > go; wait $launcher",
                                 'kill -KILL $launcher; wait $launcher; while [ "$(ls -d yoke-run-* 2>&-)" ]; do sleep 0.02; done'],
                         ids=["all ranks end", "the command is killed"])
def test_a_number_that_a_rank_had_is_nobodys_target(tmp_path, end):
    script = f"""
mkfifo go
'{COMMAND}' run -n 2 -- sh -c 'if [ $RANK = 0 ]; then read line < go; else echo $$ > written; mv written was; fi' &
launcher=$!
until [ -s was ] && [ ! -e /proc/$(cat was) ]; do sleep 0.02; done
was=$(cat was)
echo $((was - 1)) > /proc/sys/kernel/ns_last_pid
setsid sleep 1000 &
other=$!
[ $other = $was ] || exit 1
until [ "$(cut -d ' ' -f 5 /proc/$other/stat)" = $other ]; do sleep 0.02; done
{end}
kill -USR1 $other
wait $other
echo $?
"""
    done = subprocess.run(["unshare", "-rpf", "--kill-child", "--mount-proc", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=PATIENCE, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.stdout == f"{128 + signal.SIGUSR1}\n", done


# ---- Signals ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_stopped_rank_hears_that_it_is_to_end(number):
    name = number.name.removeprefix("SIG")
    ranks = start("-n", "1", "--grace", "1000", "--", "sh", "-c", f"trap 'echo saved; exit 0' {name}; echo $$; while :; do sleep 0.02; done")
    rank = int(ranks.stdout.readline().split()[1])
    os.kill(rank, signal.SIGSTOP)
    until(lambda: state(rank) == "T")
    ranks.send_signal(number)
    assert ranks.communicate(timeout=PATIENCE)[0] == "[0] saved\n" and ranks.returncode == 0


# ---- Output ----------------------------------------------------------------------------------------------------------

def test_a_terminal_that_nobody_reads_holds_up_no_end(tmp_path):
    """The terminal stands for a connection that hangs. Rank 0 writes more than the terminal takes, and less than the command's limit
    for kept output.
    """
    manager, terminal = os.openpty()
    wrote = tmp_path / "wrote"
    rank_0 = f"trap '' TERM; seq 1 60000; echo $$ > {wrote}.part; mv {wrote}.part {wrote}; while :; do sleep 0.02; done"
    ranks = subprocess.Popen([COMMAND, "run", "-n", "2", "--grace", "0.1", "--", "sh", "-c",
                              f"if [ $RANK = 0 ]; then {rank_0}; fi; until [ -e {wrote} ]; do sleep 0.02; done; exit 3"],
                             stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, text=True, start_new_session=True)
    os.close(terminal)
    try:
        until(wrote.exists)
        rank = int(wrote.read_text())
        until(lambda: not is_alive(rank))
        ranks.send_signal(signal.SIGTERM)  # then the command does not wait for the lines either
        assert "exit code 3" in ranks.communicate(timeout=PATIENCE)[1] and ranks.returncode == 3
    finally:
        ranks.kill()
        os.close(manager)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_that_cannot_be_written_is_the_runs_failure_and_no_ranks(tmp_path, stream):
    saved = tmp_path / "saved"
    program = f"trap 'echo more; echo more >&2; echo > {saved}; exit 0' TERM; echo x; echo x >&2; while :; do sleep 0.02; done"
    with open("/dev/full", "w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        ranks = subprocess.Popen([COMMAND, "run", "-n", "1", "--restarts", "1", "--grace", "1000", "--", "sh", "-c", program], text=True, **streams)
        out, err = ranks.communicate(timeout=PATIENCE)
    assert ranks.returncode == 74 and saved.exists()  # the rank got a signal and enough time
    if stream == "stdout":
        assert err.splitlines()[-1] == "yoke: run: standard output cannot be written: No space left on device"


def test_the_last_lines_must_be_written_too():
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, "run", "-n", "1", "--", "echo", "x"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert done.returncode == 74 and done.stderr == "yoke: run: standard output cannot be written: No space left on device\n", done


# ---- Files -----------------------------------------------------------------------------------------------------------

def test_a_relative_folder_for_temporary_files_is_the_same_for_all(tmp_path):
    (tmp_path / "folder").mkdir()
    options = {"cwd": tmp_path, "env": {**os.environ, "TMPDIR": "folder"}}
    told = start("-n", "1", "--", "sh", "-c", "cd /; echo no data > $TORCHELASTIC_ERROR_FILE; exit 4", **options)
    assert told.communicate(timeout=PATIENCE)[1].endswith("exit code 4; its error: no data\n\n")
    assert not list((tmp_path / "folder").iterdir())
    ranks = start("-n", "1", "--", "sh", "-c", "echo ready; exec sleep 1000", **options)
    ranks.stdout.readline()
    ranks.kill()
    until(lambda: not list((tmp_path / "folder").iterdir()))
    ranks.communicate()


# ---- Processes outside the group -------------------------------------------------------------------------------------

def test_what_has_left_the_group_and_writes_for_ever_is_not_waited_for(tmp_path):
    """After the rank's end, the command reads only the pipe's contents: with earlier kept output, less than 8 MiB of lines."""
    go = tmp_path / "go"
    program = f"setsid yes & echo $! >&2; until [ -e {go} ]; do sleep 0.02; done"
    ranks = subprocess.Popen([COMMAND, "run", "-n", "1", "--", "sh", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    writer = int(ranks.stderr.readline().split()[1])
    # So much is written where as much is kept as is ever kept: a line of two bytes gets four in front.
    until(lambda: int(pathlib.Path(f"/proc/{writer}/io").read_text().split()[3]) > 420000)
    go.write_text("")
    size = 0
    while size <= 8 << 20 and (some := ranks.stdout.read1(1 << 16)):
        size += len(some)
    ranks.stdout.close()
    ranks.stderr.close()
    assert size <= 8 << 20 and ranks.wait(timeout=PATIENCE) == 0


# ---- Dumps of the others ---------------------------------------------------------------------------------------------

LOSES_RANK_1 = """
import os, time, yoke
group = yoke.comm.init()
group.barrier()
if group.rank == 1:
    {end}
elif group.rank == 2:
    time.sleep(1000)  # in no call
group.barrier()
"""


def run_with_dumps(folder, ranks, text):
    """Runs a script under `yoke run`; returns the outcome and the folder of dumps."""
    script, dumps = folder / "script.py", folder / "dumps"
    script.write_text(text)
    return subprocess.run([COMMAND, "run", "-n", str(ranks), "--", sys.executable, script], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "YOKE_COMM_DUMP": str(dumps)}), dumps


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)", "raise RuntimeError('lost')"])
def test_the_others_dump_their_calls_before_they_are_ended(tmp_path, end):
    done, dumps = run_with_dumps(tmp_path, 3, LOSES_RANK_1.format(end=end))
    assert done.returncode in (1, 3, 128 + 9) and "rank 1 (process " in done.stderr, done
    assert {path.name.split("-of-")[0] for path in dumps.iterdir()} >= {"rank-0", "rank-2"}, done
    told = subprocess.run([COMMAND, "hang", dumps], capture_output=True, text=True, timeout=PATIENCE)
    assert "rank 1" in told.stdout, told


OUTSIDE_OF_CALLS = """
import os, time, yoke
group = yoke.comm.init()
{split}
group.barrier()
if os.environ["RANK"] == "1":
    time.sleep(0.5)  # until the others have left the barrier
    os._exit(3)
time.sleep(1000)
"""


@pytest.mark.parametrize("split", ["", "job, group = group, group.split(group.rank // 2, group.rank)"], ids=["job", "part"])
def test_ranks_that_compute_dump_when_another_one_dies(tmp_path, split):
    done, dumps = run_with_dumps(tmp_path, 4, OUTSIDE_OF_CALLS.format(split=split))
    assert done.returncode == 3, done
    told = [json.loads(path.read_text()) for path in dumps.iterdir()]
    writers = {each["ranks"][each["rank"]]["process"] for each in told if len(each["ranks"]) == 4}
    assert len(writers) == 3 and all("died" in each["cause"]["text"] for each in told), told


def test_ranks_that_write_no_dump_are_ended_all_the_same(tmp_path):
    ranks = subprocess.run([COMMAND, "run", "-n", "2", "--", "sh", "-c", "[ $RANK = 0 ] && exit 5; sleep 1000"], capture_output=True, text=True,
                           timeout=PATIENCE, env={**os.environ, "YOKE_COMM_DUMP": str(tmp_path)})
    assert ranks.returncode == 5 and "rank 0 (process " in ranks.stderr, ranks


# ---- The first process of a container --------------------------------------------------------------------------------

HAS_FIRST_PROCESS = subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], capture_output=True).returncode == 0
first_process = pytest.mark.skipif(not HAS_FIRST_PROCESS, reason="no namespace with a first process of its own")
FIRST = ["unshare", "-rpf", "--kill-child", "--mount-proc"]
AS_FIRST = [*FIRST, COMMAND, "run", "-n", "1", "--"]


@first_process
def test_as_the_first_process_it_waits_for_orphans(tmp_path):
    script = tmp_path / "rank.sh"
    script.write_text("(setsid sh -c 'echo $$ > orphan; sleep 0.2' &)\nuntil [ -s orphan ]; do sleep 0.02; done\n"
                      "for i in $(seq 500); do [ -e /proc/$(cat orphan) ] || break; sleep 0.02; done\n"
                      "[ -e /proc/$(cat orphan) ] && cat /proc/$(cat orphan)/stat || echo reaped\nexit 7\n")
    done = subprocess.run([*AS_FIRST, "sh", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (7, "[0] reaped\n"), done


@first_process
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 128 + signal.SIGINT)])
def test_as_the_first_process_it_passes_signals_on(tmp_path, number, code):
    first = subprocess.Popen([*AS_FIRST, "sh", "-c", "echo > there; exec sleep 1000"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until((tmp_path / "there").exists)
    inner = int(pathlib.Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()[0])
    os.kill(inner, number)
    _, told = first.communicate(timeout=PATIENCE)
    assert first.returncode == code and "ended with signal" in told, told


@first_process
def test_as_the_first_process_it_hears_that_its_terminal_hung_up(tmp_path):
    ours, theirs = os.openpty()
    first = subprocess.Popen([*FIRST, "setsid", "-c", *AS_FIRST[len(FIRST):], "sh", "-c", "echo > there; exec sleep 1000"], cwd=tmp_path,
                             stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    until((tmp_path / "there").exists)
    os.close(ours)
    assert first.wait(timeout=PATIENCE) == 128 + signal.SIGHUP


@first_process
def test_as_the_first_process_it_ends_where_ends_of_children_are_ignored():
    words = " ".join(str(word) for word in AS_FIRST[len(FIRST):])
    done = subprocess.run([*FIRST, "sh", "-c", f"trap '' CHLD; exec {words} sh -c 'exit 7'"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 7, done


@first_process
def test_the_child_of_the_first_process_has_the_commands_name():
    done = subprocess.run([*AS_FIRST, "sh", "-c", "cat /proc/$PPID/comm"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "[0] yoke\n", done
