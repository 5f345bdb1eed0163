"""A single rank through NCCL: making, every collective, works, memory, abort and end, on a card or an emulated card.

./dev gpu runs this file over the true NCCL: a card proves a group of a single rank, and no more.
"""
import functools
import gc
import subprocess
import sys

import pytest

import yoke
from conftest import DEVICE
from nccl_ranks import settles

CARD = f"{DEVICE}:0"


@functools.cache
def lacking():
    """Returns why NCCL does not serve here; "" if NCCL serves. A separate process asks, so this process maps no library."""
    if DEVICE == "cpu":
        return "the host has no NCCL"
    program = "import yoke\ntry: yoke.comm.init('nccl', rank=0, world_size=1)\nexcept yoke.DeviceUnavailableError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def group():
    if lacking():
        pytest.skip(lacking())
    made = yoke.comm.init("nccl", rank=0, world_size=1, timeout=60., device=CARD)
    yield made
    del made
    yoke.comm.finalize()
    gc.collect()


def on_card(values, dtype=yoke.float32):
    return yoke.tensor(values, device="cpu").to(dtype=dtype).to(CARD)


def test_init_with_a_device_makes_the_communicator_at_once(group):
    assert f"nccl: rank 0 of 1 on {CARD}: NCCL 2." in repr(group)


def test_without_a_device_the_first_collective_makes_the_communicator():
    if lacking():
        pytest.skip(lacking())
    late = yoke.comm.init("nccl", rank=0, world_size=1)
    assert "NCCL" not in repr(late)
    t = on_card([1., 2.])
    late.all_reduce(t)
    assert t.tolist() == [1., 2.] and f"on {CARD}: NCCL" in repr(late)
    del late
    yoke.comm.finalize()


@pytest.mark.parametrize("dtype", [yoke.float32, yoke.float64, yoke.float16, yoke.bfloat16, yoke.int32, yoke.int64, yoke.uint8, yoke.bool],
                         ids=str)
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_every_collective_gives_what_one_rank_gives(group, dtype, count):
    values = [i % 2 for i in range(count)]

    def given():
        return on_card(values, dtype)

    is_float = dtype in (yoke.float32, yoke.float64, yoke.float16, yoke.bfloat16)
    for op in ["min", "max"] + ["sum", "prod"] * (dtype != yoke.bool) + ["avg"] * is_float:
        t = given()
        group.all_reduce(t, op)
        u = given()
        group.reduce(u, 0, op)
        out = yoke.full((count,), 7, dtype=dtype, device=CARD) if dtype != yoke.bool else ~given()
        group.reduce_scatter(out, given(), op)
        for each in (t, u, out):
            assert each.tolist() == given().tolist(), op
    t = given()
    group.broadcast(t, 0)
    assert t.tolist() == given().tolist()
    for call in (lambda out: group.all_gather(out, given()), lambda out: group.gather(out, given(), 0),
                 lambda out: group.scatter(out, given(), 0), lambda out: group.all_to_all(out, given())):
        out = yoke.zeros((count,), dtype=dtype, device=CARD)
        call(out)
        assert out.tolist() == given().tolist()
    group.barrier()


def test_a_sum_in_float32_and_min_and_max_of_nan(group):
    t = on_card([1.5, -2.], yoke.bfloat16)
    group.all_reduce(t, reduce_dtype=yoke.float32)
    assert t.tolist() == [1.5, -2.]
    for op in ("min", "max"):
        t = on_card([float("nan"), -0.5, float("-inf")])
        group.all_reduce(t, op)
        first, *others = t.tolist()
        assert first != first and others == [-0.5, float("-inf")], op


def test_tensors_with_strides_pass_in_the_order_of_rows(group):
    t = on_card(list(range(12)), yoke.float32).reshape(3, 4).transpose(0, 1)
    out = yoke.zeros((4, 3), device=CARD).transpose(0, 1).contiguous().transpose(0, 1)
    group.all_gather(out, t)
    group.all_reduce(t)
    assert out.tolist() == t.tolist() == [[i + 4 * j for j in range(3)] for i in range(4)]


def test_works_are_waited_for_by_the_stream_or_by_the_host(group):
    t = yoke.zeros((1 << 16,), device=CARD)
    works = []
    for _ in range(8):
        t.add_(1.)
        works.append(group.all_reduce(t, async_op=True))
        works[-1].wait()
    assert t.sum().item() == 8. * (1 << 16)
    for work in works:
        work.wait(60.)
        assert work.done()


def test_a_call_comes_behind_the_stream_of_its_caller(group):
    side = yoke.Stream(CARD)
    with yoke.stream(side):
        t = yoke.ones((1 << 18,), device=CARD)
        for _ in range(10):
            t.add_(1.)
        group.all_reduce(t)
        assert t.sum().item() == 11. * (1 << 18)


def test_autocast_leaves_a_weight_of_a_collective_until_its_own_use(group):
    weights = [yoke.full((64, 64), 1., device=CARD).requires_grad_(True) for _ in range(3)]

    def use(some):
        for weight in some:
            assert yoke.linear(yoke.ones((1, 64), device=CARD), weight).float().mean().item() == 64
        gc.collect()
        return yoke.memory_allocated(CARD)

    with yoke.autocast("bfloat16"):
        use(weights)
    with yoke.no_grad():
        work = group.all_reduce(weights[1], async_op=True)
    with yoke.autocast("bfloat16"):
        before = yoke.memory_allocated(CARD)
        assert use(weights[:1]) - before == 2 * 64 * 64 * 2
        work.wait()
        assert use(weights) - before == 3 * 64 * 64 * 2


def test_memory_of_the_group_serves_calls_and_outlives_the_group():
    if lacking():
        pytest.skip(lacking())
    made = yoke.comm.init("nccl", rank=0, world_size=1, device=CARD)
    t = made.empty((1 << 20,), device=CARD)
    t.fill_(3.)
    made.all_reduce(t)
    made.all_reduce(t[5:1005], "max")
    assert str(t.device) == CARD and t.sum().item() == 3. * (1 << 20)
    del made
    yoke.comm.finalize()
    gc.collect()
    t.add_(1.)
    assert t.sum().item() == 4. * (1 << 20)


def test_calls_of_one_scope_are_launched_together(group):
    tensors = [on_card([float(i)] * 100) for i in range(5)]
    with yoke.comm.coalesce():
        for t in tensors:
            group.all_reduce(t)
    assert [t[0].item() for t in tensors] == [0., 1., 2., 3., 4.]


def test_parts_and_survivors_have_communicators_of_their_own(group):
    part = group.split(0)
    t = on_card([4.])
    part.all_reduce(t)
    assert t.tolist() == [4.] and "NCCL" in repr(part)
    survivors = group.shrink()
    survivors.all_reduce(t)
    assert t.tolist() == [4.]


def test_asynchronous_calls_that_are_dropped_leave_memory_as_before(group):
    def call():
        group.all_reduce(yoke.ones((1000,), device=CARD), async_op=True)

    before = yoke.memory_allocated(CARD)
    for _ in range(200):
        call()
    group.barrier()
    yoke.synchronize(CARD)
    # Without the allocator's cache a thread of the library frees the tensors, behind the card.
    assert settles(lambda: yoke.memory_allocated(CARD) <= before)


def test_gradients_of_a_module_on_the_card(group):
    net = yoke.nn.Linear(8, 4).to(CARD)
    ddp = yoke.DistributedDataParallel(net, group, device_ids=[0])
    x = yoke.ones((2, 8), device=CARD)
    ddp(x).sum().backward()
    assert net.bias.grad.tolist() == [2.] * 4 and net.weight.grad.tolist() == [[2.] * 8] * 4


def test_an_aborted_group_refuses_and_another_one_is_made(group):
    works = [group.all_reduce(yoke.ones((1 << 16,), device=CARD), async_op=True) for _ in range(4)]
    group.abort("a test asked for it")
    with pytest.raises(yoke.CancelledError, match="a test asked for it"):
        group.all_reduce(yoke.ones(4, device=CARD))
    del works
    other = yoke.comm.init("nccl", rank=0, world_size=1, device=CARD)
    t = on_card([5.])
    other.all_reduce(t)
    assert t.tolist() == [5.]


@pytest.mark.parametrize("end, code", [("", 0), ("sys.exit(3)", 3), ("raise RuntimeError('bad')", 1), ("group.abort()", 0)])
def test_a_process_ends_with_its_own_exit_code(end, code):
    if lacking():
        pytest.skip(lacking())
    program = f"""
import sys, yoke
group = yoke.comm.init("nccl", rank=0, world_size=1, device="{CARD}")
works = [group.all_reduce(yoke.ones((1 << 16,), device="{CARD}"), async_op=True) for _ in range(4)]
{end}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
