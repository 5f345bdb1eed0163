"""Ranks as processes with a card each: values over NCCL, the serving engine, and errors of init."""
import subprocess
import sys

import pytest

from conftest import EMULATED
from nccl_ranks import BEGIN, BUILD, IS_BUILT, OLD, environment, start

pytestmark = pytest.mark.skipif(not (EMULATED and IS_BUILT), reason="no emulated CUDA module, no fake NCCL or no command was built")

REDUCE = "t = ones(); group.all_reduce(t); print(t.tolist())\n"


def fine(said, *outs):
    """Ranks that have ended well and printed this, each or all alike."""
    assert [each.status for each in said] == [0] * len(said), said
    expected = list(outs) if len(outs) == len(said) else list(outs) * len(said)
    assert [each.out for each in said] == expected, said


def refused(said, *words):
    """Checks that all ranks have printed the same error, with these words."""
    assert [each.status for each in said] == [0] * len(said), said
    errors = [[line.split(" ", 2) for line in each.lines] for each in said]
    assert all(errors[0][0][::2] == each[0][::2] for each in errors), said
    for word in words:
        assert word in " ".join(errors[0][0]), (word, said)


# ---- Values ---------------------------------------------------------------------------------------------------------

EVERYTHING = """
import itertools
from nccl_cases import DTYPES, Rank, check
group = yoke.comm.init(timeout=30.)
for dtype, count, strided in itertools.product(DTYPES, (0, 1, 6), (False, True)):
    own, root = Rank(rank, size, card, dtype, count, strided), count % size
    for case in (*own.reductions(root), *own.passing(root)):
        case.call(group)
        check(case, (size, count, strided))
    with yoke.comm.coalesce():
        together = [*own.messages(), *own.passing(root)]
        for case in together: case.call(group)
    for case in together: check(case, (size, count, strided))
    on_host = yoke.ones(3, device="cpu")
    works = [group.all_reduce(on_host, async_op=True), group.all_reduce(t := ones(3), "max", async_op=True)]
    for work in works: work.wait()
    assert on_host.tolist() == [size] * 3 and t.tolist() == [1.] * 3
print("all right")
"""


@pytest.mark.parametrize("size", [2, 4])
def test_every_collective_gives_what_the_model_gives(tmp_path, size):
    script = tmp_path / "script.py"
    script.write_text(BEGIN + EVERYTHING, encoding="utf-8")
    done = subprocess.run([BUILD / "bin" / "yoke", "run", "-n", str(size), "--", sys.executable, str(script)], capture_output=True,
                          text=True, timeout=120, check=False, env=environment(YOKE_TEST_MEETING=str(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] all right" for rank in range(size)], done


def test_an_older_nccl_without_the_newer_calls_gives_the_same():
    fine(start("group = yoke.comm.init(backend='nccl', timeout=20.)\n" + REDUCE + """
out, part, whole = yoke.zeros(4, device=card), yoke.zeros(2, device=card), yoke.arange(4, dtype="float32", device=card) + 10 * rank
group.all_to_all(out, whole)
print(out.tolist())
group.gather(out if rank == 0 else None, whole[:2], 0)
group.scatter(part, whole if rank == 1 else None, 1)
own = group.empty(2, device=card)
own.fill_(rank + 1.)
group.all_reduce(own)
print(out.tolist() if rank == 0 else None, part.tolist(), own.tolist())
""", 2, YOKE_CUDA_LIB_PATH=str(OLD)), "[2.0, 2.0, 2.0, 2.0]\n[0.0, 1.0, 10.0, 11.0]\n[0.0, 1.0, 10.0, 11.0] [10.0, 11.0] [3.0, 3.0]\n",
         "[2.0, 2.0, 2.0, 2.0]\n[2.0, 3.0, 12.0, 13.0]\nNone [12.0, 13.0] [3.0, 3.0]\n")


@pytest.mark.parametrize("variables", [{"FAKE_NCCL_IN_PROGRESS": "30"}, {"FAKE_NCCL_LATE": "20"}, {"FAKE_NCCL_NO_WINDOWS": "1"}],
                         ids=lambda each: next(iter(each)))
def test_an_nccl_that_takes_its_time_gives_the_same(variables):
    fine(start("group = yoke.comm.init(timeout=20.)\n" + """
t = yoke.arange(6, dtype="float32", device=card) * (rank + 1)
for _ in range(5): group.all_reduce(t, "avg")
with yoke.comm.coalesce():
    group.broadcast(t, 1)
    group.all_gather(out := yoke.zeros(4, device=card), yoke.ones(2, device=card) * rank)
own = group.empty(3, device=card)
own.fill_(2.)
group.all_reduce(own, "prod")
print(t.tolist(), out.tolist(), own.tolist())
""", 2, **variables), "[0.0, 1.5, 3.0, 4.5, 6.0, 7.5] [0.0, 0.0, 1.0, 1.0] [4.0, 4.0, 4.0]\n")


def test_a_call_that_blocks_does_not_hold_the_host_up_and_a_barrier_waits_for_all_before_it():
    fine(start("""group = yoke.comm.init(timeout=20., device=card)
t = ones()
if rank == 1: await_rank("called", 0)  # or rank 0 waits for this one, which waits for rank 0
group.all_reduce(t)
come("called")
u = ones()
work = group.all_reduce(u, async_op=True)
group.barrier()
print(t.tolist(), work.done(), u.tolist())
""", 2), "[2.0, 2.0, 2.0, 2.0] True [2.0, 2.0, 2.0, 2.0]\n")


def test_the_card_may_be_set_before_init_and_behind():
    use = "t = yoke.ones(3); group.all_reduce(t); print(t.device, t.tolist())\n"
    outs = [f"cuda:{rank} [2.0, 2.0, 2.0]\n" for rank in range(2)]
    fine(start("yoke.set_device(card); group = yoke.comm.init(timeout=20.)\n" + use, 2), *outs)
    fine(start("group = yoke.comm.init(timeout=20.); yoke.set_device(group.local_rank)\n" + use, 2), *outs)


def test_messages_before_the_first_collective_are_staged_and_said_to_be_once():
    said = start("""group = yoke.comm.init(timeout=20.)
t = ones() * (rank + 1)
def pass_on():
    group.send(t, 1) if rank == 0 else group.recv(t, 0)
for _ in range(3): pass_on()
print(t.tolist())
group.all_reduce(t)
t *= rank + 1
pass_on()
print(t.tolist())
""", 2)
    fine(said, "[1.0, 1.0, 1.0, 1.0]\n[2.0, 2.0, 2.0, 2.0]\n")
    for rank, each in enumerate(said):
        assert each.error.count("pass through host memory: the call precedes the group's first collective on "
                                f"cuda:{rank}; give init the device") == 1, said
    said = start("""group = yoke.comm.init(timeout=20., device=card)
t = ones() * (rank + 1)
group.send(t, 1) if rank == 0 else group.recv(t, 0)
print(t.tolist())
""", 2)
    fine(said, "[1.0, 1.0, 1.0, 1.0]\n")
    assert all("host's memory" not in each.error for each in said), said


def test_groups_of_split_and_shrink_have_communicators_of_their_own():
    said = start("""group = yoke.comm.init(timeout=20.)
t = ones() * (rank + 1)
group.all_reduce(t)
half = group.split(rank % 2)
half.all_reduce(t)
print(t.tolist()[0])
meet("halves")
del half
if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
try:
    group.all_reduce(t)
    t.tolist()
except yoke.CollectiveError as error:
    print("rank 1 (host" in str(error))
group = group.shrink(5.)
t = ones()
group.all_reduce(t)
print(group.rank, group.size, t.tolist()[0])
group.barrier()
""", 4)
    assert [each.status for each in said] == [0, -9, 0, 0] and said[1].out == "20.0\n", said
    for rank, each in zip((0, 1, 2), (said[0], said[2], said[3])):
        assert each.out == f"20.0\nTrue\n{rank} 3 3.0\n", said


# ---- The serving engine ---------------------------------------------------------------------------------------------

@pytest.fixture
def no_nccl(tmp_path):
    """The environment of a rank whose NCCL cannot be loaded."""
    (tmp_path / "libnccl.so.2").write_text("this is not a library\n", encoding="utf-8")
    return {"YOKE_CUDA_LIB_PATH": str(tmp_path)}


def test_without_nccl_tensors_are_staged_and_why_is_said_once(no_nccl, tmp_path):
    said = start("group = yoke.comm.init(timeout=20.)\n" + REDUCE + REDUCE, 2, environments={1: no_nccl})
    fine(said, 2 * "[2.0, 2.0, 2.0, 2.0]\n")
    for each in said:
        for word in ("pass through host memory: rank 1 (host", "NCCL 2.19 or later cannot be loaded", f"{tmp_path}/libnccl.so.2 (",
                     "pip install nvidia-nccl-cu1"):
            assert each.error.count(word) == 1, (word, said)


def test_a_group_that_wants_nccl_is_refused_on_all_ranks_where_one_has_none(no_nccl, tmp_path):
    init = "told(lambda: yoke.comm.init(backend='nccl', timeout=20.))\n"
    refused(start(init, 2, environments={1: no_nccl}), "DeviceUnavailableError", "the backend 'nccl' cannot serve all ranks: rank 1 (host",
            str(tmp_path), "pip install nvidia-nccl-cu1")
    refused(start(init, 2, environments={1: {"YOKE_PLATFORMS": "cpu"}}), "DeviceUnavailableError", "rank 1 (host", "YOKE_PLATFORMS does not name cuda")


@pytest.mark.parametrize("version, words", [
    ("21805", ["rank 1 (host", "the library is version 2.18.5, but this module needs 2.19 or later"]),
    ("22707", ["rank 0 (host", "and rank 1 (host", "nccl 2.27.7"])])
def test_a_version_that_cannot_serve_is_told(version, words):
    other = {1: {"FAKE_NCCL_VERSION": version}}
    refused(start("told(lambda: yoke.comm.init(backend='nccl', timeout=20.))\n", 2, environments=other), "DeviceUnavailableError", *words)
    said = start("group = yoke.comm.init(timeout=20.)\n" + REDUCE, 2, environments=other)
    fine(said, "[2.0, 2.0, 2.0, 2.0]\n")
    assert all(word in each.error for word in words for each in said), said


def test_a_backend_of_the_host_stages_as_all_ranks_do_where_one_asks_for_it():
    said = start("group = yoke.comm.init(backend='cpu', timeout=20.)\n" + REDUCE, 2)
    fine(said, "[2.0, 2.0, 2.0, 2.0]\n")
    assert all("host's memory" not in each.error for each in said), said  # the script asked for the CPU
    said = start("group = yoke.comm.init(backend='cpu' if rank else None, timeout=20.)\n" + REDUCE, 2)
    fine(said, "[2.0, 2.0, 2.0, 2.0]\n")
    assert all("was made with backend 'cpu'" in each.error for each in said), said
    refused(start("told(lambda: yoke.comm.init(backend='cpu' if rank else 'nccl', timeout=20.))\n", 2), "DeviceUnavailableError",
            "rank 1 (host", "was made with backend 'cpu'")


# ---- Refused arguments ----------------------------------------------------------------------------------------------

def test_two_ranks_on_one_card_are_named_with_the_remedy():
    words = ("ValueError", "ranks 0 and 1 both use the card GPU-", "call set_device(local_rank) first")
    refused(start("told(lambda: yoke.comm.init(timeout=20., device='cuda:0'))\n", 2), *words)
    refused(start("group = yoke.comm.init(timeout=20.)\ncard = 'cuda:1'\ntold(lambda: group.all_reduce(ones()))\n", 2), *words)


def test_a_device_that_only_some_ranks_give_is_refused():
    refused(start("told(lambda: yoke.comm.init(timeout=20., device=card if rank else None))\n", 2), "ValueError",
            "argument 'device' is given on rank 1 (host", "missing on rank 0 (host")


def test_devices_of_unlike_kinds_at_init_are_refused_on_all_ranks():
    refused(start("told(lambda: yoke.comm.init(timeout=20., device=card if rank else 'cpu'))\n", 2), "ValueError",
            "argument 'device' is a device of the kind cpu on rank 0 (host", "of the kind cuda on rank 1 (host")


def test_a_tensor_of_another_card_is_refused_and_the_group_goes_on():
    said = start("group = yoke.comm.init(timeout=20.)\n" + REDUCE + "told(lambda: group.all_reduce(yoke.ones(1, device='cuda:3')))\n" + REDUCE, 2)
    for rank, each in enumerate(said):
        first, error, last = each.lines
        assert first == last == "[2.0, 2.0, 2.0, 2.0]" and error.startswith("ValueError"), said
        assert f"the call is for cuda:3, but since its first collective this group uses cuda:{rank}" in error, said


def test_a_rank_that_brings_a_host_tensor_to_the_making_or_does_not_come_is_named():
    make = "group = yoke.comm.init(timeout=1.)\n"
    refused(start(make + "told(lambda: group.all_reduce(ones() if rank else yoke.ones(4, device='cpu')))\n", 2), "CollectiveError",
            "the place of the tensor, host memory or a device", "rank 0 (host", "rank 1 (host", "4 float32 on a device")
    said = start(make + "if rank == 1: await_rank('told', 0)\ntold(lambda: group.all_reduce(ones()))\ncome('told')\n", 2)
    refused(said, "TimeoutError", "rank 1 (host", "did not arrive at all_reduce of 4 float32 on a device")
    assert float(said[0].out.split()[1]) < 2, said


def test_a_card_without_room_is_a_shortage_of_memory():
    said = start("""group = yoke.comm.init(timeout=20.)
t = ones()
if rank == 1: os.environ["FAKE_CUDA_FAIL"] = "cudaMalloc=2"
def call():
    group.all_reduce(t.to(dtype=yoke.float64).reshape(2, 2).transpose(0, 1))
told(call)
""", 2, YOKE_NO_CACHING="1")
    assert said[1].out.startswith("OutOfMemoryError"), said


