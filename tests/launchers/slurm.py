"""A Slurm of this machine alone, in a folder of its own, without munge: `with Cluster(folder) as cluster: cluster.run("srun", …)`."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

PATIENCE = 60
CONF = """
ClusterName=yoke
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
"""


def why_not():
    missing = [name for name in ("slurmctld", "slurmd", "srun") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} not installed"
    return "" if os.geteuid() == 0 else "slurmd wants root"


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder, self.daemons = pathlib.Path(folder), []
        for name in "state", "spool":
            (self.folder / name).mkdir()
        controller, daemon = free_ports(2)
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], controller=controller, daemon=daemon, folder=self.folder,
                                         processors=os.cpu_count()))
        self.environment = os.environ | {"SLURM_CONF": str(self.conf)}

    def __enter__(self):
        try:
            for command in ("slurmctld", "-D", "-f", str(self.conf)), ("slurmd", "-D", "-f", str(self.conf)):
                log = open(self.folder / f"{command[0]}.out", "w", encoding="utf-8")
                self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment))
                log.close()
            self.wait_for_node()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_for_node(self):
        end = time.monotonic() + PATIENCE
        while True:
            seen = self.run("sinfo", "-h", "-o", "%T")
            if seen.stdout.strip() == "idle":
                return
            dead = [each.args[0] for each in self.daemons if each.poll() is not None]
            if dead or time.monotonic() > end:
                logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))
                raise RuntimeError(f"Slurm does not start ({dead} ended; sinfo said {seen.stdout} {seen.stderr}):\n{logs}")
            time.sleep(0.1)

    def stop(self):
        for each in reversed(self.daemons):  # the node before the controller
            each.terminate()
        for each in self.daemons:
            try:
                each.wait(timeout=15)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    def run(self, *command, timeout=120, **variables):
        return subprocess.run([str(each) for each in command], env=self.environment | variables, capture_output=True, text=True, timeout=timeout)
