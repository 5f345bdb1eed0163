"""The command `yoke run`, of YOKE_BUILD_DIR: reports of ranks' failures, fresh starts, and groups of ranks."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from test_command import ROOT, pytestmark  # noqa: F401
from test_run_command import PATIENCE, alone, last, run, shell, start  # noqa: F401

sys.path.insert(0, str(ROOT / "tests" / "python"))
from rank_scripts import free_port  # noqa: E402

@pytest.mark.parametrize("content, cause", [
    ({"message": {"message": "out of data", "extraInfo": {"timestamp": "1700000000"}}}, "out of data"),
    ({"message": "RuntimeError: short"}, "RuntimeError: short")])
def test_the_cause_that_a_rank_told_is_shown(content, cause):
    program = f"[ $RANK = 1 ] || exec sleep 1000; echo '{json.dumps(content)}' > $TORCHELASTIC_ERROR_FILE; exit 4"
    done = shell(program)
    assert done.returncode == 4 and last(done).endswith(f"ended with exit code 4; its error: {cause}"), done


def test_all_are_started_again_when_one_fails(tmp_path):
    program = f"echo x >> {tmp_path}/rank$RANK; echo start $TORCHELASTIC_RESTART_COUNT; " \
              "[ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && exit 5; [ $TORCHELASTIC_RESTART_COUNT = 0 ] && sleep 1000; true"
    done = shell(program, "--restarts", "3")
    assert done.returncode == 0 and "[1] start 1" in done.stdout and "1 of 3" in done.stderr and "exit code 5" in done.stderr, done
    done = shell("exit $((5 + TORCHELASTIC_RESTART_COUNT))", "--restarts", "2", ranks=1)
    assert done.returncode == 7 and done.stderr.count("started again") == 2


def test_what_was_interrupted_is_not_started_again():
    ranks = start("-n", "1", "--restarts", "5", "--", "sh", "-c", "echo ready; exec sleep 1000")
    ranks.stdout.readline()
    ranks.send_signal(signal.SIGTERM)
    out, err = ranks.communicate(timeout=PATIENCE)
    assert ranks.returncode == 143 and "SIGTERM" in err and out == "", (out, err)


GROUP = """
import os, signal, sys, yoke
group = yoke.comm.init(timeout=60.)
t = yoke.full((3,), group.rank + 1.)
group.all_reduce(t)
print(t.tolist(), group.rank, group.size, group.local_rank)
"""


def python(program, *options, ranks=2, **variables):
    return run("-n", str(ranks), *options, "--", sys.executable, "-c", program, **variables)


def test_ranks_are_one_group():
    done = python(GROUP, ranks=3)
    assert done.returncode == 0 and done.stderr == "", done
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] [6.0, 6.0, 6.0] {rank} 3 {rank}" for rank in range(3)]


MPI = "OMPI_COMM_WORLD_RANK={0} OMPI_COMM_WORLD_SIZE={1} PMIX_RANK={0} PMIX_NAMESPACE=7"


def test_a_launcher_that_runs_within_yoke_run_contradicts_it():
    inner = f"{MPI.format(1, 2)} {sys.executable} -c 'import yoke; yoke.comm.init(init_timeout=20.)'; true"
    done = shell(inner, ranks=1)
    assert "RANK says that the rank is 0, but PMIX_RANK says 1; PMIx runs within yoke run" in done.stderr, done


def test_a_launcher_that_has_started_yoke_run_is_not_compared():
    variables = dict(each.split("=") for each in MPI.format(0, 2).split())
    done = python(GROUP, ranks=2, **variables)
    assert done.returncode == 0 and "[1] [3.0, 3.0, 3.0] 1 2 1" in done.stdout.splitlines(), done
    assert "job of 2 ranks by yoke run runs inside a process of Open MPI, which started 2 (OMPI_COMM_WORLD_SIZE)" in done.stderr, done


def test_two_nodes_are_one_group_and_start_again_together():
    program = GROUP + "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n    if group.rank == 3: os._exit(9)\n    group.barrier()\nprint('again')\n"
    port = free_port()
    nodes = [start("-n", "2", "--nnodes", "2", "--node-rank", str(node), "--master", f"127.0.0.1:{port}", "--restarts", "1", "--",
                   sys.executable, "-c", program) for node in range(2)]
    outs = [node.communicate(timeout=PATIENCE) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], outs
    assert "exit code 9" in outs[1][1] and [out.count("again") for out, _ in outs] == [2, 2], outs


def test_a_group_that_fails_tells_its_cause():
    done = python(GROUP + """
if group.rank == 1:
    group.all_reduce(yoke.ones(2))
else:
    group.barrier()
""")
    assert done.returncode == 1 and "; its error: " in last(done) and "ranks do not agree" in last(done), done


def test_what_a_script_raises_is_its_cause():
    done = python(GROUP + "if group.rank == 1: raise KeyError('no such image')\nsignal.pause()\n")
    assert done.returncode == 1 and "rank 1 (process" in last(done), done
    assert last(done).endswith("ended with exit code 1; its error: its script raised KeyError: 'no such image'"), done


def test_a_killed_rank_counts_before_those_that_miss_it():
    done = python(GROUP + "if group.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ngroup.barrier()\n")
    assert done.returncode == 137 and "rank 1 (process" in last(done), done


def told_by(program, path):
    """Returns a script's exit code, and its message in the file of causes or None."""
    done = subprocess.run([sys.executable, "-c", "import os, signal, sys, yoke\n" + program], env={**os.environ, "TORCHELASTIC_ERROR_FILE": str(path)},
                          timeout=PATIENCE, stderr=subprocess.DEVNULL, check=False)
    return done.returncode, json.loads(path.read_text())["message"] if path.exists() else None


FAILED = """
group, = yoke.comm.init_all(["cpu"])
group.abort('a "first"\\nreason')
try:
    group.barrier()
except yoke.Error as error:
    caught = error
"""


def test_only_the_first_cause_is_written(tmp_path):
    path, before = tmp_path / "cause.json", time.time()
    status, message = told_by(FAILED + "again, = yoke.comm.init_all(['cpu'])\nagain.abort('another')\nsys.exit(1)", path)
    assert status == 1 and message["message"].endswith('a "first"\nreason') and int(message["extraInfo"]["timestamp"]) >= int(before)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("end, status, words", [
    ("pass", 0, None), ("sys.exit(256)", 0, None), ("raise ValueError('bad')", 1, "its script raised ValueError: bad"),
    ("raise caught", 1, 'reason'), ("raise KeyboardInterrupt", -signal.SIGINT, "its script raised KeyboardInterrupt"), ("sys.exit(3)", 3, "reason")])
def test_a_failure_that_was_caught_is_no_cause_of_another_end(end, status, words, tmp_path):
    ended, message = told_by(f"yoke.comm.init(init_method='file://{tmp_path}/meeting', rank=0, world_size=1)\n{FAILED}{end}", tmp_path / "cause.json")
    assert ended == status and (message is None if words is None else message["message"].endswith(words)), (ended, message)


def test_what_init_refused_is_no_cause_of_another_end(tmp_path):
    refused = "try:\n    yoke.comm.init(init_method='nosuch://x', rank=0, world_size=1)\nexcept yoke.ValueError: pass\n"
    assert told_by(refused, tmp_path / "cause.json") == (0, None)
    status, message = told_by(refused + "raise KeyError('x')", tmp_path / "cause.json")
    assert status == 1 and message["message"] == "its script raised KeyError: 'x'", message


@pytest.mark.parametrize("is_used", [False, True])
def test_a_forked_child_writes_no_cause_but_into_a_file_of_its_own(is_used, tmp_path):
    program = f"""
if {is_used}: group, = yoke.comm.init_all(["cpu"])
for own in None, "{tmp_path}/own.json":
    child = os.fork()
    if child == 0:
        if own: os.environ["TORCHELASTIC_ERROR_FILE"] = own
        try:
            yoke.comm.init(init_method='nosuch://x', rank=0, world_size=1)
        except yoke.Error:
            os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
sys.exit(4)
"""
    assert told_by(program, tmp_path / "cause.json") == (4, None)
    assert "nosuch://x" in json.loads((tmp_path / "own.json").read_text())["message"]["message"]


def test_a_folder_of_its_own_that_cannot_be_made_is_told_with_what_to_set():
    done = run("-n", "1", "--", "true", TMPDIR="/nosuch/folder")
    assert done.returncode != 0 and "/nosuch/folder" in done.stderr and "set TMPDIR to a writable folder" in done.stderr, done


def test_ranks_that_differ_in_the_silence_that_they_bear_are_named():
    done = python("import os\nif os.environ['RANK'] == '1': os.environ['YOKE_COMM_SILENCE'] = '7'\n" + GROUP)
    assert done.returncode == 0 and "YOKE_COMM_SILENCE of 30 s, and rank 1 (host" in done.stderr and "of 7 s" in done.stderr, done
