"""Variables of NCCL, Gloo and PyTorch: effects on a group, and messages in Python, Lua and the command."""
import json
import os
import subprocess
import sys

import pytest

from rank_scripts import BEGIN, free_port

FAMILIES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TP_SOCKET", "YOKE_COMM_", "YOKE_LOG", "YOKE_SOCKET")


def alone(**variables):
    """The environment, with these alone of such variables."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(FAMILIES)}, **variables}


LOG = "import logging; logging.basicConfig(level=logging.INFO)\n"


def start(program, *of_ranks):
    """Starts a process for each rank, with variables of its own; returns outputs and errors."""
    common = alone(WORLD_SIZE=str(len(of_ranks)), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    ranks = [subprocess.Popen([sys.executable, "-c", LOG + BEGIN + program], env={**common, "RANK": str(rank), **own}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank, own in enumerate(of_ranks)]
    done = [each.communicate(timeout=120) for each in ranks]
    return [out.strip() for out, _ in done], [error for _, error in done]


REDUCE = """
t = yoke.full((1000,), rank + 1.)
group.all_reduce(t)
print(t.sum().item(), repr(group))
"""


def test_a_rank_that_shares_no_memory_reaches_all_by_tcp_and_the_others_share():
    outs, errors = start(REDUCE, {}, {"NCCL_SHM_DISABLE": "1"}, {})
    assert errors == ["", "", ""]
    for rank, out in enumerate(outs):
        assert out.startswith("6000.0 "), out
        assert ("shared memory with 0, TCP with 2" if rank == 1 else "shared memory with 1, TCP with 1") in out, out


def test_our_own_setting_comes_first():
    outs, errors = start(REDUCE, *[{"NCCL_SHM_DISABLE": "1", "YOKE_COMM_SHM": "1"}] * 2)
    assert errors == ["", ""] and all("shared memory with 1, TCP with 0" in out for out in outs), outs


def test_the_debug_variable_has_the_log_tell_how_ranks_are_joined():
    outs, errors = start(REDUCE, {"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring"}, {})
    assert [out.split()[0] for out in outs] == ["3000.0"] * 2, outs
    assert "INFO:yoke:comm.init: rank 0 of 2" in errors[0] and "shared memory with 1" in errors[0], errors
    assert "RANK and WORLD_SIZE" in errors[0] and "NCCL_ALGO is 'Ring'" in errors[0] and errors[1] == "", errors


@pytest.mark.parametrize("variable, level", [("YOKE_LOG", "info"), ("NCCL_DEBUG", "INFO")])
def test_a_script_without_logging_has_its_log_on_standard_error(variable, level):
    done = subprocess.run([sys.executable, "-c", "import yoke; yoke.comm.init(rank=0, world_size=1)"], capture_output=True, text=True,
                          env=alone(**{variable: level}), timeout=60)
    assert done.returncode == 0 and "yoke: comm.init: rank 0 of 1" in done.stderr, done.stderr


def test_what_cannot_be_read_is_an_error_that_names_it():
    done = subprocess.run([sys.executable, "-c", "import yoke; yoke.comm.init(rank=0, world_size=1)"], capture_output=True, text=True,
                          env=alone(NCCL_SHM_DISABLE="maybe"), timeout=60)
    assert done.returncode == 1 and "NCCL_SHM_DISABLE is 'maybe'; it must be 0 or 1" in done.stderr, done


SET = {"NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1", "TORCH_NCCL_BLOCKING_WAIT": "1", "NCCL_PIANO": "grand", "NCCL_DEBUG": "loud"}
TOLD = [["NCCL_DEBUG", "loud", "unreadable", "YOKE_LOG"], ["NCCL_IB_DISABLE", "1", "passed", ""], ["NCCL_PIANO", "grand", "unknown", ""],
        ["NCCL_SHM_DISABLE", "1", "sets", "YOKE_COMM_SHM=0"], ["TORCH_NCCL_BLOCKING_WAIT", "1", "nothing", ""]]


def test_python_and_lua_tell_the_same():
    program = "import yoke, json; print(json.dumps(yoke.comm.env()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=alone(**SET), timeout=60, check=True)
    told = json.loads(done.stdout)
    assert [each[:4] for each in told] == TOLD and all(each[4] for each in told), told
    program = "for _, v in ipairs(require('yoke').comm.env()) do print(v.name, v.value, v.effect, v.setting, v.text) end"
    done = subprocess.run(["lua5.4", "-e", program], capture_output=True, text=True, env=alone(**SET), timeout=60, check=True)
    assert [line.split("\t") for line in done.stdout.splitlines()] == told, done
