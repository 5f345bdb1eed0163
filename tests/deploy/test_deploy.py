"""examples/deploy: each way starts examples/ddp_fashion.py unchanged, as far as a single machine can test this: ./dev soak deploy.

YOKE_BUILD_DIR names the build, YOKE_TORCH_PYTHON the Python with PyTorch, and YOKE_KUBE_PYTHON the Python with
kubernetes-validate and kubeflow-trainer-api.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import image
import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "launchers"))
import slurm  # noqa: E402
import test_launchers as launchers  # noqa: E402

DEPLOY = ROOT / "examples" / "deploy"
BUILD = pathlib.Path(os.environ["YOKE_BUILD_DIR"])
KUBE = os.environ.get("YOKE_KUBE_PYTHON", "")
SCRIPT = ROOT / "examples" / "ddp_fashion.py"
LITTLE = "--threads", "1", "--limit", "2000", "--epochs", "1", "--losses"
MANIFESTS = sorted(DEPLOY.glob("*.yaml"))
CHECK = """
import json, sys, yaml
print(json.dumps([each for each in yaml.safe_load_all(open(sys.argv[1])) if each]))
"""
TRAINJOB = """
import json, sys
from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob
given = json.load(sys.stdin)
read = json.loads(TrainerV1alpha1TrainJob.from_dict(given).to_json())
assert read == given, (read, given)
"""


def losses(text):
    """Returns the losses from the only rank that prints them, without a launcher's prefix."""
    line, = re.findall(r"losses: (.*)", text)
    return line.split()


@pytest.fixture(scope="module")
def expected():
    done = launchers.launched(BUILD / "bin" / "yoke", "run", "-n", 2, "--", sys.executable, SCRIPT, *LITTLE)
    assert done.returncode == 0, done
    return losses(done.stdout)


# ---- On this host ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not launchers.TORCH, reason="YOKE_TORCH_PYTHON names no Python with PyTorch")
def test_the_script_runs_under_torchrun(expected):
    done = launchers.launched(launchers.TORCH, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "--no-python", sys.executable, SCRIPT, *LITTLE)
    assert done.returncode == 0 and losses(done.stdout) == expected, done


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
def test_the_script_runs_under_mpirun(expected):
    done = launchers.launched("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", 2, sys.executable, SCRIPT, *LITTLE)
    assert done.returncode == 0 and losses(done.stdout) == expected, done


@pytest.mark.skipif(bool(slurm.why_not()), reason=slurm.why_not() or "there is a reason")
def test_the_batch_script_runs_by_sbatch_and_goes_on_from_what_it_saved(expected, tmp_path):
    work, cluster_folder = tmp_path / "submitted", tmp_path / "slurm"
    work.mkdir()
    cluster_folder.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    with slurm.Cluster(cluster_folder) as cluster:
        for part in range(2):  # the second job finds all steps done
            done = cluster.run("env", "-C", work, "sbatch", "--wait", "--nodes", "1", "--ntasks-per-node", "2", "--cpus-per-task", "1", "--overcommit",
                               "--output", work / f"{part}.out", DEPLOY / "slurm.sh", *LITTLE, PATH=path)
            told = (work / f"{part}.out").read_text()
            assert done.returncode == 0 and losses(told) == expected, (done, told)
    assert "16 of 16 steps are done" in told and "1: ranks" not in told
    assert any((work / "ddp_fashion-run").glob("step-*"))


# ---- Kubernetes ------------------------------------------------------------------------------------------------------


def documents(path):
    done = subprocess.run([KUBE, "-c", CHECK, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def validate(document, folder):
    path = pathlib.Path(folder) / "document.json"
    path.write_text(json.dumps(document))
    return subprocess.run([pathlib.Path(KUBE).parent / "kubernetes-validate", "--strict", path], capture_output=True, text=True)


def containers(document):
    """Every container of a document, wherever its pods' template is."""
    if isinstance(document, dict):
        yield from document.get("containers", [])
        document = list(document.values())
    for each in document if isinstance(document, list) else []:
        yield from containers(each)


needs_kube = pytest.mark.skipif(not KUBE, reason="YOKE_KUBE_PYTHON names no Python with kubernetes-validate")


@needs_kube
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_is_what_kubernetes_knows(path, tmp_path):
    for document in documents(path):
        if document["kind"] == "TrainJob":
            subprocess.run([KUBE, "-c", TRAINJOB], input=json.dumps(document), text=True, check=True)
        elif document["kind"] == "PyTorchJob":
            for name, part in document["spec"]["pytorchReplicaSpecs"].items():
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name.lower()}, **part["template"]}
                done = validate(pod, tmp_path)
                assert done.returncode == 0, done
                assert [each["name"] for each in pod["spec"]["containers"]] == ["pytorch"] and set(part) == {"replicas", "restartPolicy", "template"}
        else:
            done = validate(document, tmp_path)
            assert done.returncode == 0 and "passed" in done.stdout + done.stderr, done


@needs_kube
def test_an_unknown_field_is_seen(tmp_path):
    for document in documents(DEPLOY / "job.yaml") + documents(DEPLOY / "trainjob.yaml"):
        document["spec"]["wheels"] = 4
        if document["kind"] == "TrainJob":
            assert subprocess.run([KUBE, "-c", TRAINJOB], input=json.dumps(document), text=True, capture_output=True).returncode != 0
        else:
            assert validate(document, tmp_path).returncode != 0, document


@needs_kube
def test_each_workload_runs_the_script_as_the_image_has_it():
    for path in MANIFESTS:
        for document in documents(path):
            workloads = [document["spec"]["trainer"]] if document["kind"] == "TrainJob" else list(containers(document))
            assert bool(workloads) == (document["kind"] not in ("Service", "PersistentVolumeClaim"))
            for each in workloads:
                command = " ".join(each.get("command", []) + each.get("args", []))
                assert "python3 /opt/examples/ddp_fashion.py" in command and each["image"].startswith("registry.example.org/yoke:"), path


@needs_kube
def test_the_variables_of_an_indexed_job_make_ranks(expected):
    job, = (each for each in documents(DEPLOY / "job.yaml") if each["kind"] == "Job")
    own, = containers(job)
    variables = {each["name"]: each["value"] for each in own["env"]}
    size = int(variables["WORLD_SIZE"])
    assert size == job["spec"]["completions"] == job["spec"]["parallelism"]
    service = next(each for each in documents(DEPLOY / "job.yaml") if each["kind"] == "Service")
    assert variables["MASTER_ADDR"] == f"{job['metadata']['name']}-0.{service['metadata']['name']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(launchers.OWN)}
    environment |= variables | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(launchers.free_port())}
    ranks = [subprocess.Popen([sys.executable, SCRIPT, *LITTLE], env=environment | {"JOB_COMPLETION_INDEX": str(index)}, stdout=subprocess.PIPE, text=True)
             for index in range(size)]
    told = [each.communicate(timeout=launchers.PATIENCE)[0] for each in ranks]
    assert [each.returncode for each in ranks] == [0] * size and f"ranks: {size}" in told[0] and not "".join(told[1:])


# ---- The image -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("debootstrap") or os.geteuid() != 0, reason="it takes debootstrap, and root")
def test_the_image_is_made_and_its_script_runs_as_nobodys_root(tmp_path, expected):
    start = time.monotonic()
    stage = image.build(DEPLOY / "Dockerfile", ROOT, tmp_path)
    print(f"made in {time.monotonic() - start:.0f} s")
    assert stage.user == "1000:1000" and stage.command == ["python3", "/opt/examples/ddp_fashion.py"]
    done = stage.run(f"id -u && yoke run -n 2 -- {' '.join(stage.command)} {' '.join(LITTLE)}", capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("1000\n"), done
    assert losses(done.stdout) == expected
