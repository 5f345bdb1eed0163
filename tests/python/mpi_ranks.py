"""Ranks as processes of an MPI job: the first lines of each rank, and a start by mpirun."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

MODULE = pathlib.Path(os.environ["YOKE_BUILD_DIR"], "lib", "libyoke_mpi.so")
needs_mpi = pytest.mark.skipif(not (MODULE.is_file() and shutil.which("mpirun")),
                               reason="this build has no MPI module, or there is no mpirun: nothing is tested over MPI")

BEGIN = """
import os, sys, time, yoke
def say(*words): os.write(1, (" ".join(map(str, ("@", rank, *words))) + "\\n").encode())  # whole, among the others'
def told(call):
    try:
        call()
        say("fine")
    except yoke.Error as error:
        say(type(error).__name__, error)
"""
INIT = """
group = yoke.comm.init(backend="mpi", timeout={timeout})
rank, size = group.rank, group.size
"""
# Allows mpirun as root, on fewer processors than ranks, and only on this machine.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader",
            "OMPI_MCA_oob_tcp_if_include": "lo", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def job(program, ranks=2, timeout=60, **environment):
    """Runs a program in a job; what each rank says, by rank, and how mpirun ends."""
    text = BEGIN + INIT.format(timeout=timeout) + program
    done = subprocess.run(["mpirun", "-n", str(ranks), sys.executable, "-c", text], text=True, capture_output=True, timeout=300,
                          env={**os.environ, **OPEN_MPI, **environment}, check=False)
    said = [[] for _ in range(ranks)]
    for line in done.stdout.splitlines():
        if line.startswith("@ "):
            said[int(line.split()[1])].append(line.split(" ", 2)[2])
    return said, done
