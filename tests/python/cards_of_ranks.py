"""Emulated machines with several equal cards, ranks on them, and small sets of pictures."""
import gzip
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from rank_scripts import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YOKE_BUILD_DIR", "/nowhere"))
DRIVER = BUILD / "tests" / "fakes" / "cuda" / "driver"
MODULE = BUILD / "tests" / "emu" / "lib"
NVML = BUILD / "tests" / "fakes" / "edge" / "libnvidia-ml.so.1"
RUN = BUILD / "bin" / "yoke"
IS_BUILT = (MODULE / "libyoke_cuda.so").is_file() and NVML.is_file() and RUN.is_file()
OTHERS = ("CUDA_", "YOKE_", "OMPI_", "PMIX_", "SLURM_", "PET_", "TORCHELASTIC_", "MASTER_")
RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")


def machine(folder, cards, nvml=True, changes=None, own=None, **variables):
    """Returns the environment of a process on a machine with `cards` cards.

    `changes` has changes of single cards by number, `own` replaces keys of the scenario.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scenario = {"about": f"{cards} H100", "extends": "_server", "gpu_defaults": {"model": "H100-SXM", "nvlinks_active": 0},
                "gpus": [{"pci": f"0000:{16 + 8 * card:02x}:00.0"} for card in range(cards)], "gpu_changes": changes or {}, **(own or {})}
    (folder / "machine.json").write_text(json.dumps(scenario), encoding="utf-8")
    subprocess.run([sys.executable, "-B", ROOT / "tests" / "fakes" / "edge" / "render.py", folder / "machine.json", folder,
                    "--nvml", NVML if nvml else "none"], check=True, capture_output=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS) and name not in RANKS}
    lines = (folder / "environment").read_text(encoding="utf-8").splitlines()
    return {**clean, **dict(line.split("=", 1) for line in lines), "YOKE_CUDA_LIB_PATH": str(DRIVER), "YOKE_CUDNN_ENABLED": "0",
            "YOKE_LEASE_DIR": str(folder / "leases"), "YOKE_NUM_THREADS": "1",
            "LD_LIBRARY_PATH": f"{MODULE}:{DRIVER}:{os.environ.get('LD_LIBRARY_PATH', '')}", **variables}


def under_torchrun(environment, ranks, backwards=False):
    """Returns the environment of each rank, as torchrun sets it; `backwards`: rank 0 gets the last local rank."""
    common = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
              "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": 0}
    return [{**environment, **{name: str(value) for name, value in common.items()}, "RANK": str(rank),
             "LOCAL_RANK": str(ranks - 1 - rank if backwards else rank)} for rank in range(ranks)]


def together(command, environments):
    """Returns the standard outputs and errors of a command in each of these environments, by rank."""
    ranks = [subprocess.Popen(list(map(str, command)), env=each, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for each in environments]
    done = [each.communicate(timeout=300) for each in ranks]
    assert [each.returncode for each in ranks] == [0] * len(ranks), done
    return [out for out, _ in done], [error for _, error in done]


def yoke_run(command, environment, ranks):
    """Returns the standard outputs and errors of a command under `yoke run`, by rank."""
    done = subprocess.run([str(word) for word in [RUN, "run", "-n", ranks, "--", *command]], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    def of(rank, text):
        front = f"[{rank}] "
        return "".join(line[len(front):] + "\n" for line in text.splitlines() if line.startswith(front))
    return [of(rank, done.stdout) for rank in range(ranks)], [of(rank, done.stderr) for rank in range(ranks)]


def write_pictures(folder, count):
    """A set of pictures as Fashion-MNIST's files have it."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in "train", "t10k":
        pixels = bytes(i * i % 251 for i in range(count * 784))
        labels = bytes(i % 10 for i in range(count))
        for name, shape, data in (f"{part}-images-idx3", (count, 28, 28), pixels), (f"{part}-labels-idx1", (count,), labels):
            head = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)
            (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(head + data, 1))
    return folder


EXAMPLES = ROOT / "examples"
PROGRAMS = {"Python": [sys.executable, EXAMPLES / "ddp_fashion.py"], "Lua": [shutil.which("lua5.4") or "lua", EXAMPLES / "ddp_fashion.lua"],
            "C": [BUILD / "examples" / "ddp_fashion"]}
