"""The command `yoke run`, of YOKE_BUILD_DIR: ranks as processes, their input and output, and their ends."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from test_command import COMMAND, pytestmark, yoke  # noqa: F401

PATIENCE = 60  # seconds until a test gives up


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("PET_", "TORCHELASTIC_", "OMP_NUM", "YOKE_NUM"))]:
        monkeypatch.delenv(name)


def run(*arguments, **variables):
    return yoke("run", *arguments, variables=variables)


def shell(program, *options, ranks=2, **variables):
    """Ranks that run a line of sh."""
    return run("-n", str(ranks), *options, "--", "sh", "-c", program, **variables)


def start(*arguments, **options):
    return subprocess.Popen([COMMAND, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.01)


def state(process):
    """Returns a letter of ps: R and S run, T is stopped, Z has ended and is not waited for."""
    return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def is_alive(process):
    """Tells whether a process is alive. A zombie has ended, even if no parent has waited for it."""
    try:
        return state(process) not in "ZX"
    except OSError:
        return False


def last(done):
    return done.stderr.splitlines()[-1]


# ---- Environment of ranks --------------------------------------------------------------------------------------------

NAMES = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT"


def told(done, names=NAMES):
    """Returns a dict by rank, of what `env` printed."""
    ranks = {}
    for line in done.stdout.splitlines():
        rank, name, value = re.fullmatch(r"\[(\d+)\] (\w+)=(.*)", line).groups()
        if name in names.split():
            ranks.setdefault(int(rank), {})[name] = value
    return ranks


def env_lines(names):
    return "env | grep -E '^({})='".format("|".join(names.split()))


def test_each_rank_is_told_who_it_is():
    done = shell(env_lines(NAMES), ranks=3)
    ranks = told(done)
    assert done.returncode == 0 and done.stderr == "" and sorted(ranks) == [0, 1, 2], done
    ports = {each.pop("MASTER_PORT") for each in ranks.values()}
    assert len(ports) == 1 and 0 < int(ports.pop()) < 65536
    for rank, variables in ranks.items():
        assert variables == {"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "3",
                             "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "0"}


def test_ranks_of_a_later_node_are_numbered_on():
    done = shell(env_lines(NAMES), "--nnodes", "3", "--node-rank", "2", "--master", "[fe80::1]:29500")
    assert told(done) == {rank: {"RANK": str(rank), "WORLD_SIZE": "6", "LOCAL_RANK": str(rank - 4), "LOCAL_WORLD_SIZE": "2",
                                 "MASTER_ADDR": "fe80::1", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "0"} for rank in (4, 5)}


KUBEFLOW = {"PET_NPROC_PER_NODE": "2", "PET_NNODES": "2", "PET_NODE_RANK": "1", "PET_MASTER_ADDR": "trainer-0", "PET_MASTER_PORT": "29400"}


def test_options_come_from_kubeflow():
    done = run("--", "sh", "-c", env_lines(NAMES), **KUBEFLOW)
    assert done.returncode == 0 and sorted(told(done)) == [2, 3], done
    assert {one["MASTER_ADDR"] + ":" + one["MASTER_PORT"] for one in told(done).values()} == {"trainer-0:29400"}
    assert sorted(told(run("-n", "2", "--nnodes", "2", "--", "sh", "-c", env_lines(NAMES), **KUBEFLOW))) == [2, 3]


@pytest.mark.parametrize("options, words", [
    (["-n", "3"], ["-n is 3", "PET_NPROC_PER_NODE is 2"]), (["--nnodes", "4"], ["--nnodes is 4", "PET_NNODES is 2"]),
    (["--node-rank", "0"], ["--node-rank is 0", "PET_NODE_RANK is 1"]),
    (["--master", "other:29400"], ["--master's host is other", "PET_MASTER_ADDR is trainer-0"]),
    (["--master", "trainer-0:1"], ["--master's port is 1", "PET_MASTER_PORT is 29400"])])
def test_an_option_that_contradicts_kubeflow_is_told_with_both_values(options, words):
    done = run(*options, "--", "true", **KUBEFLOW)
    assert done.returncode == 2 and all(word in done.stderr for word in words), done


@pytest.mark.parametrize("options, variables, words", [
    (["-n", "0"], {}, ["--nproc", "0"]), (["-n", "1025"], {}, ["--nproc", "1025"]), (["-n", "two"], {}, ["--nproc", "two"]),
    ([], {}, ["-n is missing"]), (["-n", "1", "--nnodes", "2", "--node-rank", "0"], {}, ["--nnodes is 2", "--master"]),
    (["-n", "1", "--nnodes", "2", "--node-rank", "2", "--master", "a:1"], {}, ["--node-rank is 2", "--nnodes is 2"]),
    (["-n", "1", "--nnodes", "2", "--master", "a:1"], {}, ["--node-rank is missing"]),
    (["-n", "1", "--master", "nowhere"], {}, ["'master' is 'nowhere'"]), (["-n", "1", "--restarts", "-1"], {}, ["--restarts", "-1"]),
    (["-n", "1", "--grace", "nan"], {}, ["--grace", "nan"]), (["-n", "1", "--grcae", "1"], {}, ["grcae"]),
    ([], {"PET_NPROC_PER_NODE": "auto"}, ["PET_NPROC_PER_NODE is 'auto'", "-n"]),
    (["-n", "1"], {"PET_NNODES": "1:4"}, ["PET_NNODES is '1:4'", "--nnodes"]),
    (["-n", "1"], {"PET_MASTER_ADDR": "x"}, ["PET_MASTER_ADDR is set", "PET_MASTER_PORT is not"])])
def test_wrong_options_are_named_with_their_values(options, variables, words):
    done = run(*options, "--", "true", **variables)
    assert done.returncode == 2 and done.stdout == "" and all(word in done.stderr for word in words), done


def test_a_program_that_cannot_be_started_is_named(tmp_path):
    done = run("-n", "2", "--", "no-such-program", "--option")
    assert done.returncode == 127 and "'no-such-program'" in done.stderr, done
    text = tmp_path / "text"
    text.write_text("no program")
    done = run("-n", "2", "--", str(text))
    assert done.returncode == 126 and f"'{text}'" in done.stderr, done
    assert run("-n", "2").returncode == 2


def test_what_stands_behind_the_program_is_its_own():
    done = run("-n", "1", "--", "sh", "-c", 'printf "%s " "$@"', "name", "-n", "5", "--", "--help")
    assert done.stdout == "[0] -n 5 -- --help \n"


THREADS = "OMP_NUM_THREADS YOKE_NUM_THREADS"


def test_processors_are_shared_out_unless_the_user_has_decided():
    share = str(max(1, len(os.sched_getaffinity(0)) // 2))
    program = "echo ${OMP_NUM_THREADS-none} ${YOKE_NUM_THREADS-none}"
    first = shell(program).stdout.splitlines()[0].split()
    assert first[1] == first[2] and 1 <= int(first[1]) <= int(share)
    assert shell(program, ranks=64).stdout.splitlines()[0].split()[1:] == ["1", "1"]
    assert shell(program, OMP_NUM_THREADS="7").stdout.splitlines()[0].split()[1:] == ["7", "none"]
    assert shell(program, YOKE_NUM_THREADS="5").stdout.splitlines()[0].split()[1:] == [first[1], "5"]


def test_the_port_is_free_for_rank_0_alone():
    program = """
import os, socket
at = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
with socket.socket() as other:
    try:
        other.bind(at)
        print("taken")
    except OSError:
        print("kept")
with socket.create_server(at):  # which shares it, as servers do
    print("listens")
"""
    done = run("-n", "1", "--", sys.executable, "-c", program)
    assert done.stdout == "[0] kept\n[0] listens\n", done


def test_a_torchrun_around_it_has_no_say():
    done = shell("echo ${TORCHELASTIC_RUN_ID-none} ${TORCHELASTIC_USE_AGENT_STORE-none} $RANK $GROUP_RANK $GROUP_WORLD_SIZE", ranks=1,
                 TORCHELASTIC_RUN_ID="x", TORCHELASTIC_USE_AGENT_STORE="True", RANK="7", GROUP_RANK="7", GROUP_WORLD_SIZE="9")
    assert done.stdout == "[0] none none 0 0 1\n"


# ---- Input and output ------------------------------------------------------------------------------------------------

def test_lines_of_all_ranks_stay_whole_amid_much_output(tmp_path):
    program = """
import os, sys
rank = os.environ["RANK"]
for i in range(4000):
    os.write(1 + i % 2, (f"{i} " + rank * (i * 37 % 900)).encode())  # a line in pieces
    os.write(1 + i % 2, b"\\n")
os.write(1, b"no end " + rank.encode())
"""
    with open(tmp_path / "both", "w") as both:
        done = subprocess.run([COMMAND, "run", "-n", "4", "--", sys.executable, "-c", program], stdout=both, stderr=both, timeout=PATIENCE)
    assert done.returncode == 0
    seen = {str(rank): ([], []) for rank in range(4)}
    for line in (tmp_path / "both").read_text().splitlines():
        rank, i, rest = re.fullmatch(r"\[(\d)\] (\d+|no end) ?(.*)", line).groups()
        if i == "no end":
            assert rest == rank
            continue
        assert rest == rank * (int(i) * 37 % 900)
        seen[rank][int(i) % 2].append(int(i))
    assert all(one == [list(range(0, 4000, 2)), list(range(1, 4000, 2))] for one in map(list, seen.values()))


def test_both_streams_stay_apart_and_an_unterminated_line_is_one():
    done = shell("printf out; printf 'err\\nmore' >&2", ranks=1)
    assert (done.stdout, done.stderr) == ("[0] out\n", "[0] err\n[0] more\n")


def test_a_line_is_there_before_the_rank_ends():
    ranks = start("-n", "1", "--", "sh", "-c", "echo ready; read line; echo $line", stdin=subprocess.PIPE)
    assert ranks.stdout.readline() == "[0] ready\n"
    assert ranks.communicate("go\n", timeout=PATIENCE)[0] == "[0] go\n"


def test_rank_0_alone_reads_the_input():
    done = subprocess.run([COMMAND, "run", "-n", "3", "--", "sh", "-c", "cat"], input="a line\n", capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "[0] a line\n")


def test_what_is_typed_at_a_terminal_comes_to_rank_0():
    import pty
    manager, terminal = pty.openpty()
    ranks = start("-n", "2", "--", "sh", "-c", "cat", stdin=terminal, start_new_session=True,
                  preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(terminal)
    os.write(manager, b"typed\n")
    assert ranks.stdout.readline() == "[0] typed\n"
    os.write(manager, b"\x04")  # the end, Ctrl-D
    assert ranks.wait(timeout=PATIENCE) == 0
    os.close(manager)


def test_a_reader_that_has_gone_ends_the_ranks():
    done = subprocess.run(["sh", "-c", f"'{COMMAND}' run -n 2 -- yes | head -n 3"], capture_output=True, text=True, timeout=PATIENCE)
    assert len(done.stdout.splitlines()) == 3 and "SIGPIPE" in done.stderr, done


# ---- The end ---------------------------------------------------------------------------------------------------------

def test_the_first_rank_that_fails_is_named_and_the_others_are_ended():
    done = shell("[ $RANK = 1 ] && exit 7; sleep 1000", ranks=3)
    assert done.returncode == 7 and re.search(r"rank 1 \(process \d+\) ended with exit code 7$", last(done)), done


def test_a_signal_that_ended_a_rank_is_told():
    done = shell("[ $RANK = 0 ] && kill -KILL $$; sleep 1000")
    assert done.returncode == 137 and re.search(r"rank 0 \(process \d+\) ended with signal 9 \(SIGKILL\)$", last(done)), done


def test_a_rank_that_does_not_end_when_asked_is_killed():
    done = shell("trap '' TERM; [ $RANK = 1 ] && exit 3; while :; do sleep 1000; done", "--grace", "0.2")
    assert done.returncode == 3


def test_ranks_may_end_in_their_own_way(tmp_path):
    ready = tmp_path / "ready"
    done = shell(f"if [ $RANK = 1 ]; then until [ -e {ready} ]; do sleep 0.01; done; exit 3; fi; "
                 f"trap 'echo saved; exit 0' TERM; echo > {ready}; while :; do sleep 0.05; done")
    assert done.returncode == 3 and done.stdout == "[0] saved\n"


def test_what_a_rank_leaves_behind_is_ended():
    done = shell("sleep 1000 & echo $!", ranks=2)
    assert done.returncode == 0
    for line in done.stdout.splitlines():
        assert not is_alive(line.split()[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_signals_go_on_to_the_ranks(number):
    name = number.name.removeprefix("SIG")
    ranks = start("-n", "2", "--", "sh", "-c", f"trap 'echo heard {name}; exit 0' {name}; echo ready; while :; do sleep 0.02; done")
    lines = [ranks.stdout.readline() for _ in range(2)]
    assert sorted(lines) == ["[0] ready\n", "[1] ready\n"]
    ranks.send_signal(number)
    out, err = ranks.communicate(timeout=PATIENCE)
    assert sorted(out.splitlines()) == [f"[0] heard {name}", f"[1] heard {name}"] and ranks.returncode == 0, err


def test_a_stop_and_what_ends_it_go_on_to_the_ranks():
    program = """
import os, signal, time
signal.signal(signal.SIGCONT, lambda *_: print("on", flush=True) or os._exit(0))
print(os.getpid(), flush=True)
time.sleep(1000)
"""
    ranks = start("-n", "1", "--", sys.executable, "-c", program)
    rank = int(ranks.stdout.readline().split()[1])
    try:
        ranks.send_signal(signal.SIGTSTP)
        until(lambda: state(rank) == "T" and state(ranks.pid) == "T")
        ranks.send_signal(signal.SIGCONT)
        assert ranks.communicate(timeout=PATIENCE)[0] == "[0] on\n" and ranks.returncode == 0
    finally:
        ranks.kill()


def test_a_second_interrupt_kills():
    ranks = start("-n", "2", "--grace", "1000", "--", "sh", "-c", "trap 'echo heard' INT; echo ready; while :; do sleep 0.02; done")
    for _ in range(2):
        ranks.stdout.readline()
    ranks.send_signal(signal.SIGINT)
    for _ in range(2):
        assert "heard" in ranks.stdout.readline()
    ranks.send_signal(signal.SIGINT)
    assert ranks.wait(timeout=PATIENCE) == 137
    ranks.communicate()


def test_the_grace_ends_also_what_was_interrupted():
    ranks = start("-n", "1", "--grace", "0.1", "--", "sh", "-c", "trap '' INT; echo ready; while :; do sleep 0.02; done")
    ranks.stdout.readline()
    ranks.send_signal(signal.SIGINT)
    assert ranks.wait(timeout=PATIENCE) == 137
    ranks.communicate()


def test_nothing_is_left_when_the_command_itself_is_killed(tmp_path):
    ranks = start("-n", "2", "--", "sh", "-c", "(trap '' TERM HUP INT; sleep 1000) & sleep 1000 & echo $$ $!; wait",
                  env={**os.environ, "TMPDIR": str(tmp_path)})
    processes = [int(number) for _ in range(2) for number in ranks.stdout.readline().split()[1:]]
    groups = processes[::2]

    def members():
        found = []
        for each in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = each.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] not in "ZX" and int(fields[2]) in groups:
                found.append(each.parent.name)
        return found

    assert all(map(is_alive, processes)) and len(members()) >= 6
    ranks.kill()
    ranks.wait()
    until(lambda: not members())
    until(lambda: not list(tmp_path.iterdir()))
    ranks.communicate()


def test_no_file_is_left_in_the_end(tmp_path):
    assert shell("exit $RANK", TMPDIR=str(tmp_path)).returncode == 1
    assert not list(tmp_path.iterdir())
