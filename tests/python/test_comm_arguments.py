"""Wrong arguments of yoke.comm and yoke.spawn: errors of the package's own, with the names of call and argument."""
import math
import threading

import numpy
import pytest

import yoke
from yoke import comm


@pytest.fixture(scope="module")
def group():
    return comm.init_all(["cpu"])[0]


def refused(kind, call, argument, function):
    with pytest.raises(kind) as caught:
        function()
    error = caught.value
    assert isinstance(error, yoke.Error), f"{type(error)}: {error}"
    assert str(error).startswith((f"{call}(): ", f"{call}: ")) and f"'{argument}'" in str(error), error
    assert "incompatible function arguments" not in str(error)
    return str(error)


@pytest.mark.parametrize("name, refuse, waits", [
    ("all_reduce", lambda group: group.all_reduce(T, op="mean"), lambda group: group.barrier()),
    ("broadcast", lambda group: group.broadcast([1.], 0), lambda group: group.barrier()),
    ("barrier", lambda group: group.barrier(async_op=1), lambda group: group.barrier()),
    ("split", lambda group: group.split("x"), lambda group: group.split(0)),
    ("empty", lambda group: group.empty((-1,)), lambda group: group.empty(2)),
    ("send", lambda group: group.send(T, 1 << 40), lambda group: group.recv(T, 1)),
    ("send", lambda group: group.send(None, 0), lambda group: group.recv(T, 1)),
    ("monitored_barrier", lambda group: group.monitored_barrier("5"), lambda group: group.monitored_barrier(0.1)),
    ("monitored_barrier", lambda group: group.monitored_barrier(-1), lambda group: group.monitored_barrier(0.1)),
    ("monitored_barrier", lambda group: group.monitored_barrier(-1), lambda group: group.barrier()),
    ("monitored_barrier", lambda group: group.monitored_barrier(), lambda group: group.monitored_barrier(0.1)),
    ("barrier", lambda group: group.barrier(async_op=1), lambda group: group.monitored_barrier(0.1)),
    ("all_reduce", lambda group: group.all_reduce(), lambda group: group.barrier()),
    ("all_reduce", lambda group: group.all_reduce(T, with_="sum"), lambda group: group.barrier()),
    ("all_reduce", lambda group: group.all_reduce(T, "sum", False, 1), lambda group: group.barrier()),
    ("empty", lambda group: group.empty(), lambda group: group.empty(2)),
    ("split", lambda group: group.split(), lambda group: group.split(0)),
    ("send", lambda group: group.send(T), lambda group: group.recv(T, 1))])
def test_who_waits_in_vain_is_told_what_was_refused(name, refuse, waits):
    first, second = comm.init_all(["cpu"], 2, timeout=0.1)
    with pytest.raises((yoke.Error, TypeError)) as refused_here:
        refuse(second)
    with pytest.raises(yoke.TimeoutError) as caught:
        waits(first)
    assert f"was refused: {refused_here.value}" in str(caught.value) and name in str(refused_here.value), caught.value


def refusing(group, call):
    with pytest.raises((yoke.Error, TypeError)):
        call(group)


@pytest.mark.parametrize("refuse", [
    lambda group: group.shrink(-1), lambda group: group.shrink("5"), lambda group: group.shrink(1., 2.), lambda group: group.shrink(time=1.)])
@pytest.mark.parametrize("is_failed", [False, True])
def test_who_goes_on_without_a_rank_is_told_what_was_refused_there(refuse, is_failed):
    first, second = comm.init_all(["cpu"], 2)
    if is_failed:
        second.abort()
    refusing(second, refuse)
    with pytest.warns(RuntimeWarning, match="the other ranks go on without rank 1 .*, whose call was refused: .*shrink"):
        assert first.shrink(0.1).size == 1


def test_a_refusal_is_forgotten_when_another_call_is_made_instead():
    first, second = comm.init_all(["cpu"], 2)
    refusing(second, lambda group: group.monitored_barrier(-1))
    with pytest.raises(yoke.TimeoutError):
        second.monitored_barrier(0.)
    for call in first.monitored_barrier, first.monitored_barrier:
        with pytest.raises(yoke.TimeoutError) as caught:
            call(0.)
    assert "rank 1" in str(caught.value) and "refused" not in str(caught.value), caught.value


@pytest.mark.parametrize("waits", [lambda group: group.barrier(), lambda group: group.monitored_barrier(0.1)])
def test_a_refused_barrier_is_not_blamed_once_collectives_have_followed(waits):
    first, second = comm.init_all(["cpu"], 2, timeout=0.1)
    refusing(second, lambda group: group.monitored_barrier(-1))
    other = threading.Thread(target=second.barrier)
    other.start()
    first.barrier()
    other.join()
    with pytest.raises(yoke.TimeoutError) as caught:
        waits(first)
    assert "rank 1" in str(caught.value) and "refused" not in str(caught.value), caught.value


T = yoke.ones(2)
WRONG = [
    ("monitored_barrier", "timeout", "5"), ("monitored_barrier", "timeout", None), ("monitored_barrier", "timeout", []),
    ("shrink", "timeout", "5"), ("shrink", "timeout", None),
    ("dump", "path", 5), ("dump", "path", None), ("abort", "reason", 5),
    ("empty", "shape", None), ("empty", "shape", 2.5), ("empty", "shape", "ab"), ("empty", "shape", {2}), ("empty", "shape", (2.5,)),
    ("split", "color", "a"), ("split", "color", 1.5), ("barrier", "async_op", 5.0), ("barrier", "async_op", None)]


@pytest.mark.parametrize("method, argument, value", WRONG)
def test_a_value_of_another_type_is_told_by_its_argument(group, method, argument, value):
    refused(TypeError, method, argument, lambda: getattr(group, method)(**{argument: value}))


@pytest.mark.parametrize("call, argument, arguments", [
    ("all_reduce", "t", (None,)), ("all_reduce", "async_op", (T, "sum", "yes")), ("reduce", "root", (T, "0")), ("broadcast", "root", (T, None)),
    ("broadcast", "async_op", (T, 0, 1)), ("all_gather", "out", (5, T)), ("gather", "out", (5, T, 0)), ("scatter", "t", (T, [1.0], 0)),
    ("all_to_all", "out", (None, T)), ("send", "dst", (T, "1")), ("recv", "src", (T, 1.5)), ("split", "key", (0, "a"))])
def test_so_is_one_of_a_collective(group, call, argument, arguments):
    refused(TypeError, call, argument, lambda: getattr(group, call)(*arguments))


@pytest.mark.parametrize("op", [["sum"], None, 0, {}, "mean"])
def test_what_is_no_reduction_is_answered_with_those_that_there_are(group, op):
    assert "'avg'" in refused(ValueError, "all_reduce", "op", lambda: group.all_reduce(T, op))


@pytest.mark.parametrize("argument, value, kind", [
    ("timeout", "5", TypeError), ("timeout", None, TypeError), ("timeout", 0, ValueError), ("timeout", math.nan, ValueError),
    ("init_timeout", "5", TypeError), ("init_timeout", None, TypeError), ("init_timeout", -1.5, ValueError),
    ("backend", 5, TypeError), ("init_method", 5, TypeError), ("store", 5, TypeError)])
def test_init_names_what_it_was_given(argument, value, kind):
    told = refused(kind, "init", argument, lambda: comm.init(**{"rank": 0, "world_size": 1, argument: value}))
    assert kind is TypeError or str(value) in told, told


@pytest.mark.parametrize("rank, size, argument, kind", [
    ("0", 1, "rank", TypeError), (0, 1.5, "world_size", TypeError), (2**40, 1, "rank", ValueError), (0, 2**70, "world_size", ValueError)])
def test_init_names_ranks_that_are_none(rank, size, argument, kind):
    refused(kind, "init", argument, lambda: comm.init(rank=rank, world_size=size))


@pytest.mark.parametrize("devices", [5, None, "cpu"])
def test_devices_that_are_no_list(devices):
    assert "['cpu']" in refused(yoke.TypeError, "init_all", "devices", lambda: comm.init_all(devices))


def test_lists_of_devices_that_are_no_ranks():
    assert "0 devices" in refused(yoke.ValueError, "init_all", "devices", lambda: comm.init_all([]))
    assert "cpu" in refused(yoke.ValueError, "init_all", "devices", lambda: comm.init_all(["cpu", "cpu"]))
    assert "leave out 'size'" in refused(yoke.ValueError, "init_all", "size", lambda: comm.init_all(["cuda:0"], size=2))
    with pytest.raises(yoke.DeviceUnavailableError, match="cuda"):
        comm.init_all(["cuda:0"])


@pytest.mark.parametrize("size, timeout, argument, kind", [
    ("2", 1., "size", TypeError), (0, 1., "size", ValueError), (-1, 1., "size", ValueError), (10**6, 1., "size", ValueError),
    (1, "x", "timeout", TypeError), (1, 0., "timeout", ValueError)])
def test_ranks_of_threads(size, timeout, argument, kind):
    refused(kind, "init_all", argument, lambda: comm.init_all(["cpu"], size, timeout))


@pytest.mark.parametrize("paths", [(5,), (["a"],), (None,)])
def test_paths_of_dumps(paths):
    refused(TypeError, "hang", "paths", lambda: comm.hang(*paths))


def test_no_paths_at_all():
    refused(ValueError, "hang", "paths", comm.hang)


@pytest.mark.parametrize("n, args, argument, kind", [
    ("2", (), "n", TypeError), (None, (), "n", TypeError), (2.5, (), "n", TypeError), (0, (), "n", ValueError), (1, 5, "args", TypeError),
    (1, "ab", "args", TypeError)])
def test_spawn(n, args, argument, kind):
    refused(kind, "spawn", argument, lambda: yoke.spawn(math.sqrt, n, args))


@pytest.mark.parametrize("shape, sizes", [(3, (3,)), (numpy.int64(3), (3,)), ([2, 3], (2, 3)), ((), ())])
def test_shapes_may_be_numbers_and_sequences(group, shape, sizes):
    assert group.empty(shape).shape == sizes


def test_names_of_c_stand_in_no_message(group):
    for function in (lambda: group.monitored_barrier(math.nan), comm.hang, lambda: group.broadcast(T, 7), lambda: group.shrink(-1),
                     lambda: comm.coalesce().__exit__(None, None, None), lambda: comm.init_all(["cpu"], 0)):
        with pytest.raises(yoke.Error) as caught:
            function()
        assert not any(name in str(caught.value) for name in ("group_", "comm_", "yoke_")), caught.value
