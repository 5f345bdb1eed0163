"""A script under yoke run, torchrun, mpirun and srun: the ranks compute, and the launcher reports failures.

YOKE_BUILD_DIR names the build under test, YOKE_TORCH_PYTHON a Python with PyTorch.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest
import slurm

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["YOKE_BUILD_DIR"])
TORCH = os.environ.get("YOKE_TORCH_PYTHON", "")
PATIENCE = 180
OWN = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "PMIX_", "OMPI_", "SLURM_", "PET_", "TORCHELASTIC_", "OMP_NUM", "YOKE_NUM")
PROGRAM = sys.executable, str(HERE / "rank.py")


def launched(*command, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN)} | variables
    return subprocess.run([str(each) for each in command], env=environment, capture_output=True, text=True, timeout=PATIENCE)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Launcher:
    """`run(size, *words)` runs `size` ranks. `has_cause`: the launcher prints the ranks' cause of failure."""
    has_cause = True

    def __init__(self, run, has_cause=True):
        self.run, self.has_cause = run, has_cause


def yoke_run(size, *words, options=()):
    return launched(BUILD / "bin" / "yoke", "run", "-n", size, *options, "--", *PROGRAM, *words)


def torchrun(*options):
    def run(size, *words, more=()):
        return launched(TORCH, "-m", "torch.distributed.run", *options, *more, "--nproc-per-node", size, "--no-python", *PROGRAM, *words,
                        OMP_NUM_THREADS="1")
    return run


def torchrun_static(size, *words, more=()):
    return torchrun("--nnodes", "1", "--node-rank", "0", "--master-addr", "127.0.0.1", "--master-port", str(free_port()))(size, *words, more=more)


def torchrun_c10d(size, *words, more=()):
    return torchrun("--nnodes", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "seven")(
        size, *words, more=more)


def mpirun(size, *words):
    return launched("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", size, *PROGRAM, *words)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if slurm.why_not():
        pytest.skip(slurm.why_not())
    with slurm.Cluster(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture(params=["yoke run", "torchrun", "torchrun static", "torchrun c10d", "mpirun", "srun", "srun pmix"])
def launcher(request):
    name = request.param
    if name == "yoke run":
        return Launcher(yoke_run)
    if name.startswith("torchrun"):
        if not TORCH:
            pytest.skip("YOKE_TORCH_PYTHON names no Python with PyTorch")
        return Launcher({"torchrun": torchrun("--standalone"), "torchrun static": torchrun_static, "torchrun c10d": torchrun_c10d}[name])
    if name == "mpirun":
        if not shutil.which("mpirun"):
            pytest.skip("mpirun is not installed")
        return Launcher(mpirun, has_cause=False)
    cluster = request.getfixturevalue("cluster")
    options = ["--mpi=pmix"] if name == "srun pmix" else []
    return Launcher(lambda size, *words: cluster.run("srun", "-n", size, "--overcommit", *options, *PROGRAM, *words), has_cause=False)


def told(folder):
    return {int(path.stem): json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


def record(name, ranks):
    """Keeps the variables of launchers if YOKE_RECORD names a folder. The recorded environments of tests/core/comm come from there."""
    if "YOKE_RECORD" in os.environ:
        pathlib.Path(os.environ["YOKE_RECORD"], name.replace(" ", "-") + ".json").write_text(json.dumps(ranks, indent=1, sort_keys=True))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_are_one_group(launcher, size, tmp_path, request):
    done = launcher.run(size, tmp_path)
    ranks = told(tmp_path)
    assert done.returncode == 0, done
    record(f"{request.node.callspec.params['launcher']} {size}", ranks)
    assert sorted(ranks) == list(range(size)), ranks
    for rank, found in ranks.items():
        assert (found["rank"], found["size"], found["local_rank"]) == (rank, size, rank), found


@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_that_raises_ends_the_job_and_all_are_told(launcher, victim, tmp_path):
    done = launcher.run(3, tmp_path, "fail", victim)
    assert done.returncode != 0 and "RuntimeError: no more data" in done.stdout + done.stderr, done
    for path in tmp_path.glob("*.error"):  # the launcher may have ended the ranks before
        text = path.read_text(encoding="utf-8")
        assert f"rank {victim} (host" in text and "no more data" in text, text
    if launcher.has_cause:
        tail = done.stderr.splitlines()[-1] if launcher.run is yoke_run else done.stderr
        # yoke run prints "rank 2 (process …" if the failing rank's own end came first, "rank 2 (host …" if another
        # rank's error came first.
        assert "no more data" in tail and f"rank {victim} (" in tail, done


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_ends_with_a_code_ends_the_job(launcher, victim, tmp_path):
    done = launcher.run(3, tmp_path, "exit", victim)
    assert done.returncode != 0, done
    for path in tmp_path.glob("*.error"):
        assert f"rank {victim} (host" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("how", ["yoke run", "standalone", "static", "c10d"])
def test_a_job_that_is_started_again_meets_again(how, tmp_path):
    if how != "yoke run" and not TORCH:
        pytest.skip("YOKE_TORCH_PYTHON names no Python with PyTorch")
    if how == "yoke run":
        done = yoke_run(3, tmp_path, "again", options=("--restarts", "1"))
    else:
        run = {"standalone": torchrun("--standalone"), "static": torchrun_static, "c10d": torchrun_c10d}[how]
        done = run(3, tmp_path, "again", more=("--max-restarts", "1"))
    ranks = told(tmp_path)
    assert done.returncode == 0 and sorted(ranks) == [0, 1, 2], done
    assert {found["variables"]["TORCHELASTIC_RESTART_COUNT"] for found in ranks.values()} == {"1"}


def test_a_launcher_within_another_is_the_one_that_counts(cluster, tmp_path):
    done = cluster.run("srun", "-n", "1", "--overcommit", BUILD / "bin" / "yoke", "run", "-n", "2", "--", *PROGRAM, tmp_path)
    assert done.returncode == 0 and sorted(told(tmp_path)) == [0, 1], done


def test_two_jobs_of_one_host_at_once_are_two(launcher, tmp_path):

    folders = [tmp_path / str(job) for job in range(2)]
    for folder in folders:
        folder.mkdir()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in pool.map(lambda folder: launcher.run(2, folder), folders):
            assert done.returncode == 0, done
    assert [sorted(told(folder)) for folder in folders] == [[0, 1], [0, 1]]
