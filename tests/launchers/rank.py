"""A rank under any launcher: joins by the environment, computes with the other ranks, and reports.

Usage: `rank.py FOLDER [fail RANK | exit RANK | again]`. The rank writes its numbers and the launcher's variables to
FOLDER/RANK.json. `fail`: rank RANK raises while the other ranks wait. `exit`: rank RANK ends with 3. `again`: the last rank ends
with 3 at the job's first start. A rank with an error writes the error's text to FOLDER/RANK.error.
"""
import json
import os
import pathlib
import sys

import yoke

PREFIXES = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "MASTER_", "PMIX_", "OMPI_", "SLURM_", "PET_", "TORCH", "YOKE_")


def main(folder, what="", which="-1"):
    group = yoke.comm.init(timeout=60.0, init_timeout=60.0)
    rank, size = group.rank, group.size
    total = yoke.full((3,), rank + 1.0)
    group.all_reduce(total)
    every = yoke.zeros((size, 1), dtype=yoke.int64)
    group.all_gather(every, yoke.full((1,), rank).to(dtype=yoke.int64))
    group.barrier()
    assert total.tolist() == [size * (size + 1) / 2] * 3 and every.tolist() == [[each] for each in range(size)]
    variables = {name: value for name, value in sorted(os.environ.items()) if name.startswith(PREFIXES)}
    told = pathlib.Path(folder, f"{rank}.json")
    told.write_text(json.dumps({"rank": rank, "size": size, "local_rank": group.local_rank, "variables": variables}), encoding="utf-8")
    group.barrier()
    if (what == "again" and rank == size - 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0") or (what == "exit" and rank == int(which)):
        os._exit(3)
    try:
        with group:
            if what == "fail" and rank == int(which):
                raise RuntimeError("no more data")
            group.barrier()
    except yoke.Error as error:
        pathlib.Path(folder, f"{rank}.error").write_text(str(error), encoding="utf-8")
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
