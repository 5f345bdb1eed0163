"""The command `yoke comm`, of YOKE_BUILD_DIR."""
import json
import subprocess

import pytest

from test_command import COMMAND, ROOT, pytestmark  # noqa: F401

import sys
sys.path.insert(0, str(ROOT / "tests" / "python"))
from test_comm_env import SET, TOLD, alone  # noqa: E402


def env(*options, **variables):
    return subprocess.run([COMMAND, "comm", "env", *options], capture_output=True, text=True, env=alone(COLUMNS="80", **variables), timeout=60)


def test_each_variable_is_told_with_what_it_does():
    done = env("--json", **SET)
    told = json.loads(done.stdout)["variables"]
    assert [[each["name"], each["value"], each["effect"], each["setting"] or ""] for each in told] == TOLD, told
    assert done.returncode == 1  # a variable cannot be read


def test_the_text_names_the_setting_or_why_it_does_nothing():
    done = env(NCCL_SHM_DISABLE="1", NCCL_IB_HCA="mlx5\n", NCCL_PIANO="x", TORCH_NCCL_PIANO="x")
    assert done.returncode == 0 and done.stderr == "", done
    loud = env(NCCL_DEBUG="loud")
    assert loud.returncode == 1 and "NCCL_DEBUG=loud: invalid\n    the value must be VERSION, " in loud.stdout, loud
    assert "NCCL_SHM_DISABLE=1: sets YOKE_COMM_SHM=0\n" in done.stdout
    assert "NCCL_IB_HCA=mlx5?: only NCCL uses it\n    NCCL reads it; " in done.stdout and "IPoIB" in done.stdout
    assert "NCCL_PIANO=x: unknown\n    unknown variable: NCCL may read it, but Yoke does not\n" in done.stdout
    assert "TORCH_NCCL_PIANO=x: unknown\n    unknown variable: it has no effect\n" in done.stdout


@pytest.mark.parametrize("variables", [{}, {"NCCL_DEBUG": ""}])
def test_nothing_that_is_set_is_said_so(variables):
    done = env(**variables)
    assert done.returncode == 0 and "No variable" in done.stdout


def test_what_decides_instead_is_named():
    done = env(NCCL_SOCKET_IFNAME="ib", YOKE_SOCKET_IFNAME="eth")
    assert "NCCL_SOCKET_IFNAME=ib: no effect on Yoke\n    YOKE_SOCKET_IFNAME has priority. " in done.stdout, done


@pytest.mark.parametrize("text, why", [("a,,b", "it must be like eth,ib"), ("nosuch0", "no network of this host")])
@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"])
def test_networks_that_cannot_be_read_are_told_so_and_why(name, text, why):
    done = env(**{name: text})
    assert done.returncode == 1 and f"{name}={text}: invalid\n" in done.stdout and why in " ".join(done.stdout.split()), done
    told, = json.loads(env("--json", **{name: text}).stdout)["variables"]
    assert told["effect"] == "unreadable" and told["setting"] == "YOKE_SOCKET_IFNAME", told


@pytest.mark.parametrize("name", ["TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_DUMP_ANYTHING"])
def test_variables_of_dumps_name_ours(name):
    done = env(**{name: "1"})
    assert done.returncode == 0 and f"{name}=1: no effect\n" in done.stdout and "YOKE_COMM_DUMP" in done.stdout, done
