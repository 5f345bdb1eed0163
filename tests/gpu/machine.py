"""Equipment of this machine for a run on its GPU: the card, the toolkit, libraries from wheels, and the search for them."""

import datetime
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys

import carry

REACTION = 60  # seconds for a tool that only reports
IDLE_MIB, IDLE_PERCENT = 1024, 10  # of a card that nobody uses, which the driver's own memory does not exceed
ROOM_GIB = 2  # for the unpacked build, records and logs


def ask(*command, variables=None):
    """Returns the first line that a command prints, or ""."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=REACTION, env=variables)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0].strip() if done.returncode == 0 and done.stdout.strip() else ""


def find_gpu():
    """Returns (name, compute capability, driver) of the first GPU, or None."""
    line = ask("nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader")
    parts = [part.strip() for part in line.split(",")]
    return tuple(parts) if len(parts) == 3 and re.fullmatch(r"\d+\.\d+", parts[1]) else None


def busy():
    """Returns what somebody else does with the first GPU, or ""."""
    used, percent = (re.findall(r"\d+", ask("nvidia-smi", "--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits")) + ["0", "0"])[:2]
    if int(used) <= IDLE_MIB and int(percent) <= IDLE_PERCENT:
        return ""
    return f"somebody else uses the card: {used} MiB of its memory, {percent} % busy. Figures of this run are disturbed"


def little_room(folder):
    """Returns a text about too little free space on the disk of a folder, or ""."""
    free = shutil.disk_usage(folder).free / 2**30
    return f"{folder} has {free:.1f} GiB of room; a run takes up to {ROOM_GIB} GiB" if free < ROOM_GIB else ""


def find_nvcc():
    return os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def nvcc_version(nvcc):
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout if pathlib.Path(nvcc).exists() else ""
    found = re.search(r"V([\d.]+)", said)
    return found[1] if found else "none"


def wheel_folders(kind, name):
    """Returns folders of NVIDIA's wheels for this Python whose include or lib has a file with this name."""
    found = [path.parent for folder in sys.path for path in sorted(pathlib.Path(folder).glob(f"nvidia/*/{kind}/{name}"))]
    return list(dict.fromkeys(map(str, found)))


def make_variables(nvcc, logs, packages):
    """Returns the environment of every part: wheels replace missing libraries of the CUDA toolkit, carried packages replace the rest."""
    variables = dict(os.environ, CUDACXX=nvcc, PYTHONDONTWRITEBYTECODE="1", OMP_WAIT_POLICY="passive",
                     TORCHINDUCTOR_CACHE_DIR=str(logs / "inductor"), TRITON_CACHE_DIR=str(logs / "triton"))
    tools, path = str(pathlib.Path(sys.executable).parent), variables.get("PATH", "")
    variables["PATH"] = path if tools in path.split(os.pathsep) else os.pathsep.join([tools, path])
    variables.pop("YOKE_DEVICE", None)
    toolkit = pathlib.Path(nvcc).resolve().parents[1]
    headers = [folder for name in ("cublasLt.h", "cudnn.h") for folder in wheel_folders("include", name)
               if not any((base / "include" / name).exists() for base in (toolkit, pathlib.Path("/usr")))]
    libraries = [folder for name in ("libcublasLt.so.*", "libcudnn.so.*", "libnccl.so.*") for folder in wheel_folders("lib", name)]
    for variable, folders in (("C_INCLUDE_PATH", headers), ("CPLUS_INCLUDE_PATH", headers), ("YOKE_CUDA_LIB_PATH", libraries)):
        if folders:
            known = variables.get(variable)
            variables[variable] = ":".join([*([known] if known else []), *dict.fromkeys(folders)])
    return {**variables, **(carry.variables(packages, variables) if packages else {})}


def find_lua(variables, packages):
    """Returns (interpreter or None, further variables for its environment)."""
    lua = next(filter(None, (shutil.which(name, path=variables["PATH"]) for name in ("lua5.4", "lua-5.4", "lua54", "lua"))), None)
    carried = lua and packages and pathlib.Path(lua).is_relative_to(packages)
    more = {"LD_LIBRARY_PATH": os.pathsep.join(carry.libraries(packages))} if carried else {}
    return (lua, more) if lua and ask(lua, "-e", "print(_VERSION)", variables={**variables, **more}) == "Lua 5.4" else (None, {})


def describe(gpu, nvcc):
    """Returns the head of the report."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "none"
    return {"device": gpu[0], "compute capability": gpu[1], "driver": gpu[2], "CUDA toolkit": nvcc_version(nvcc), "PyTorch": torch,
            "date": datetime.date.today().isoformat(), "host": f"{os.cpu_count()} processors"}
