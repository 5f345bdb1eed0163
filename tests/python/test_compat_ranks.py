"""torch.distributed, torchrun and torch.multiprocessing.spawn start ranks and join them through Yoke."""

import subprocess
import sys

import pytest

from compat_run import passes, run

TRAIN = """
    import os, sys, torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP

    def main():
        dist.init_process_group("gloo")
        rank, world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        net = DDP(torch.nn.Linear(2, 1, bias=False))
        net(torch.ones(1, 2) * (rank + 1)).sum().backward()
        total = torch.tensor([float(rank)])
        dist.all_reduce(total)
        parts = [torch.zeros(1) for _ in range(world)]
        dist.all_gather(parts, torch.tensor([float(rank)]))
        told = [None] * world
        dist.all_gather_object(told, {"rank": rank})
        data = ["x", 1] if rank == 0 else [None, None]
        dist.broadcast_object_list(data, src=0)
        pair = dist.new_group([0, 1])
        piece = torch.zeros(1)
        dist.scatter(piece, [torch.ones(1), torch.ones(1) * 2] if rank == 0 else None, src=0, group=pair)
        if rank == 0:
            dist.send(torch.ones(1), 1)
            print(net.module.weight.grad.tolist(), total.item(), [each.item() for each in parts], told, data, list(net.state_dict()), dist.get_backend(), sys.argv[1:])
        else:
            got = torch.zeros(1)
            assert dist.recv(got, 0) == 0 and got.item() == 1 and piece.item() == 2
        mine, others = torch.ones(1) * rank, torch.zeros(1)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, others, 1 - rank)]):
            work.wait()
        assert others.item() == 1 - rank
        dist.barrier()
        dist.destroy_process_group()
        assert not dist.is_initialized()
        if "fail" in sys.argv and rank == 1:
            sys.exit(3)

    if __name__ == "__main__":
        main()
"""
LINE = "[[1.5, 1.5]] 1.0 [0.0, 1.0] [{'rank': 0}, {'rank': 1}] ['x', 1] ['module.weight'] gloo ['a']"
LAUNCH = ("-m", "yoke.compat.torch", "-m", "torch.distributed.run")


@pytest.mark.parametrize("options", [("--nproc_per_node=2",), ("--standalone", "--nproc-per-node", "2", "--nnodes=1", "--rdzv_backend=c10d")])
def test_torchrun_starts_ranks(tmp_path, options):
    assert LINE in passes(tmp_path, TRAIN, "a", interpreter=(*LAUNCH, *options))


def test_torchrun_fails_if_a_rank_fails(tmp_path):
    done = run(tmp_path, TRAIN, "fail", interpreter=(*LAUNCH, "--nproc_per_node=2"))
    assert done.returncode == 1 and "torchrun: " in done.stderr


def test_a_script_may_start_torchrun_itself(tmp_path):
    (tmp_path / "train.py").write_text("import os, torch\nprint('rank', os.environ['RANK'], torch.__version__)\n")
    out = passes(tmp_path, "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'torch.distributed.run', '--nproc_per_node=2', 'train.py'], check=True)\n")
    assert "rank 0 2.15.0+yoke" in out and "rank 1 2.15.0+yoke" in out


SPAWN = """
    import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

    def work(rank, world, queue):
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="{port}")
        dist.init_process_group("gloo", rank=rank, world_size=world)
        x = torch.ones(1) * rank
        dist.all_reduce(x, op=dist.ReduceOp.SUM)
        if rank == 0:
            queue.put(x.item())
        dist.destroy_process_group()
        if rank == 1 and len(sys.argv) > 1:
            raise ValueError("no good")

    if __name__ == "__main__":
        queue = mp.get_context("spawn").SimpleQueue()
        try:
            mp.spawn(work, args=(2, queue), nprocs=2, join=True)
        except mp.ProcessRaisedException as error:
            print(error.error_index, str(error).splitlines()[-1])
        print(queue.get())
"""


def test_spawn_runs_a_function_in_ranks(tmp_path, free_port):
    assert passes(tmp_path, SPAWN.format(port=free_port)) == "1.0\n"


def test_spawn_raises_the_error_of_a_rank(tmp_path, free_port):
    assert passes(tmp_path, SPAWN.format(port=free_port), "fail") == "1 ValueError: no good\n1.0\n"


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


@pytest.mark.parametrize("arguments, told", [([], "training_script"), (["--nproc_per_node=0", "x.py"], "'0' is not a number"),
                                             (["--nproc_per_node=gpu", "x.py"], "gpu")])
def test_wrong_options_are_refused(arguments, told):
    done = subprocess.run([sys.executable, *LAUNCH, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and told in done.stderr
