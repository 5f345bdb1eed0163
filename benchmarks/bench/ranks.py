"""Two workers as ranks of a group, each with a processor, as mpirun and srun bind ranks."""

import os
import socket

from . import Worker


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Pair:
    """Seconds of the slower rank. `ranks` are the workers; a rank may also be measured alone."""

    def __init__(self, *command, prefixes=((), ()), host="127.0.0.1", variables=({}, {})):
        """Starts both ranks. `prefixes` and `variables`: each rank's command prefix and environment variables."""
        processors, port = sorted(os.sched_getaffinity(0)), free_port()
        self.ranks = []
        for rank in range(2):
            own = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": host, "MASTER_PORT": port,
                   "OMP_NUM_THREADS": 1, "YOKE_NUM_THREADS": 1} | variables[rank]
            self.ranks.append(Worker(*prefixes[rank], "taskset", "-c", processors[rank % len(processors)], "env",
                                     *(f"{name}={value}" for name, value in own.items()), *command))
        self.about = self.ranks[0].about

    def measure(self, case, count):
        for each in self.ranks:
            each.ask(case, count)
        return max(each.answer() for each in self.ranks)

    def close(self):
        for each in self.ranks:
            each.process.stdin.close()
        for each in self.ranks:
            each.process.wait()
