"""Streams, events and pinned memory, on the device of YOKE_TEST_DEVICE: current streams, waits, and refused calls."""

import ctypes
import gc
import os
import threading

import pytest

import yoke

DEVICE = os.environ.get("YOKE_TEST_DEVICE", "cpu")
on_cuda = pytest.mark.skipif(DEVICE != "cuda", reason="of CUDA alone")
needs_two = pytest.mark.skipif(yoke.device_count(None if DEVICE == "cpu" else DEVICE) < 2, reason="one device")


def numbers(n, start=0.0):
    return [start + i for i in range(n)]


def test_a_stream_is_current_for_a_block_and_a_thread():
    s, t = yoke.Stream(DEVICE), yoke.Stream(DEVICE, priority=1)
    default = yoke.current_stream(DEVICE)
    assert s != t and s != default and s == s and hash(s) == hash(s)
    assert default.handle == 0 and s.handle != 0 and s.device is yoke.device(DEVICE)
    seen = []
    with yoke.stream(s) as entered:
        assert entered is s and yoke.current_stream(DEVICE) == s
        with yoke.stream(t):
            assert yoke.current_stream(DEVICE) == t
        assert yoke.current_stream(DEVICE) == s
        other = threading.Thread(target=lambda: seen.append(yoke.current_stream(DEVICE)))
        other.start()
        other.join()
    assert seen == [default] and yoke.current_stream(DEVICE) == default


def test_a_block_gives_the_stream_back_after_an_error_and_may_be_entered_again():
    s = yoke.Stream(DEVICE)
    block = yoke.stream(s)
    for _ in range(2):
        with pytest.raises(KeyError), block, block:
            raise KeyError
        assert yoke.current_stream(DEVICE) == yoke.wrap_stream(0, DEVICE)


def test_work_on_a_stream_gives_its_values_once_it_was_waited_for():
    s = yoke.Stream(DEVICE)
    x = yoke.arange(1000, dtype="float32", device=DEVICE)
    s.wait_stream(yoke.current_stream(DEVICE))
    with yoke.stream(s):
        y = x * 2
        for _ in range(10):
            y = y + 1
    s.synchronize()
    assert s.query() and y.tolist() == [2.0 * i + 10 for i in range(1000)]


def test_an_event_orders_two_streams():
    a, b = yoke.Stream(DEVICE), yoke.Stream(DEVICE)
    with yoke.stream(a):
        x = yoke.full((512,), 3.0, device=DEVICE)
        ready = a.record_event()
    b.wait_event(ready)
    with yoke.stream(b):
        y = x + x
        assert y[511].item() == 6  # item() waits for the current stream
    later = yoke.Event()
    later.record(b)
    later.wait()
    assert (y * 2).tolist() == [12.0] * 512
    later.synchronize()
    assert later.query()


def test_memory_that_another_stream_uses_may_be_dropped_at_once():
    s = yoke.Stream(DEVICE)
    results = []
    for i in range(50):
        x = yoke.full((700,), float(i), device=DEVICE)
        s.wait_stream(yoke.current_stream(DEVICE))
        with yoke.stream(s):
            results.append(x + 0.5)
        del x  # the memory serves the next round, after s
    s.synchronize()
    assert [r[699].item() for r in results] == [i + 0.5 for i in range(50)]


def test_memory_outlives_its_stream_and_its_thread():
    made = []

    def work():
        s = yoke.Stream(DEVICE)
        with yoke.stream(s):
            made.append(yoke.ones((3000,), device=DEVICE) * 2)
        s.synchronize()

    for _ in range(8):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert [x[2999].item() for x in made] == [2.0] * 8
    before = yoke.memory_allocated(DEVICE)
    made.clear()
    assert yoke.memory_allocated(DEVICE) < before


def test_record_stream_takes_a_stream_of_the_tensors_device():
    x = yoke.ones(10, device=DEVICE)
    x.record_stream(yoke.Stream(DEVICE))
    with pytest.raises(yoke.TypeError, match="stream"):
        x.record_stream(3)


def test_record_use_takes_an_event_of_any_device():
    x, s = yoke.ones(10, device=DEVICE), yoke.Stream(DEVICE)
    x.record_use(yoke.Event())  # never recorded
    event = s.record_event()
    x.record_use(event)
    x.record_use(event)
    yoke.ones(3).record_use(event)
    with pytest.raises(yoke.TypeError, match="event"):
        x.record_use(s)
    event.close()
    with pytest.raises(yoke.ClosedError, match="closed"):
        x.record_use(event)
    before = yoke.memory_allocated(DEVICE)
    del x
    assert yoke.memory_allocated(DEVICE) < before
    assert yoke.ones(10, device=DEVICE).tolist() == [1.0] * 10


def test_memory_outlives_the_event_that_guards_it():
    """A stream reads a tensor that is dropped at once; the event is recorded again on another stream meanwhile."""
    reader, other, event = yoke.Stream(DEVICE), yoke.Stream(DEVICE), yoke.Event()
    results = []
    for i in range(30):
        x = yoke.full((900,), float(i), device=DEVICE)
        reader.wait_stream(yoke.current_stream(DEVICE))
        with yoke.stream(reader):
            results.append(x * 2)
            event.record(reader)
        x.record_use(event)
        if i % 3 == 0:
            event.record(other)
        del x
        yoke.full((900,), -1.0, device=DEVICE)
    reader.synchronize()
    assert [r[899].item() for r in results] == [2.0 * i for i in range(30)]


def test_backward_runs_on_the_stream_of_its_caller():
    s = yoke.Stream(DEVICE)
    with yoke.stream(s):
        x = yoke.ones((8, 8), device=DEVICE, requires_grad=True)
        (x * x).backward(yoke.ones((8, 8), device=DEVICE))
    s.synchronize()
    assert x.grad.tolist() == [[2.0] * 8] * 8


def test_events_keep_the_time_if_asked():
    first, last, plain = yoke.Event(timing=True), yoke.Event(timing=True), yoke.Event()
    s = yoke.current_stream(DEVICE)
    assert plain.query() and first.query()  # never recorded counts as reached
    plain.synchronize()
    with pytest.raises(yoke.StateError, match="never recorded"):
        first.elapsed_time(last)
    s.record_event(first)
    yoke.ones((100, 100), device=DEVICE) * 2
    s.record_event(last)
    last.synchronize()
    assert 0 <= first.elapsed_time(last) < 60_000
    s.record_event(plain)
    with pytest.raises(yoke.ValueError, match="timing"):
        first.elapsed_time(plain)


def test_what_is_closed_or_no_stream_is_refused_by_name():
    s, e = yoke.Stream(DEVICE), yoke.Event()
    s.close()
    e.close()
    s.close()
    for call in (s.synchronize, s.query, lambda: s.handle, lambda: s.device, s.record_event, lambda: yoke.set_stream(s),
                 e.query, e.synchronize, e.record, lambda: yoke.current_stream(DEVICE).wait_event(e)):
        with pytest.raises(yoke.ClosedError, match="closed"):
            call()
    assert "closed" in repr(s)
    with pytest.raises(yoke.TypeError, match="Stream"):
        yoke.stream(7)
    with pytest.raises(yoke.TypeError, match="Event"):
        yoke.Stream(DEVICE).wait_event(None)
    with pytest.raises(yoke.ValueError, match="priority"):
        yoke.Stream(DEVICE, priority=1 << 40)
    with pytest.raises(yoke.ValueError, match="no streams to wrap"):
        yoke.wrap_stream(0x1234, "cpu")


def test_a_wrapped_stream_is_the_same_stream_and_outlives_its_wrapper():
    s = yoke.Stream(DEVICE)
    if DEVICE == "cpu":
        return
    again = yoke.wrap_stream(s.handle, DEVICE)
    assert again == s and again.handle == s.handle
    with yoke.stream(again):
        x = yoke.ones(100, device=DEVICE) + 1
    again.close()
    s.synchronize()
    assert x.tolist() == [2.0] * 100


@on_cuda
def test_the_default_stream_has_two_names_and_that_of_each_thread_is_refused():
    default = yoke.wrap_stream(0, DEVICE)
    assert yoke.wrap_stream(1, DEVICE) == default and yoke.wrap_stream(1, DEVICE).handle == 0  # cudaStreamLegacy
    with pytest.raises(yoke.ValueError, match="wrap_stream: argument 'native' is 2, cudaStreamPerThread.* a different stream in each thread"):
        yoke.wrap_stream(2, DEVICE)


def test_pinned_memory_is_host_memory_that_keeps_its_values():
    x = yoke.tensor(numbers(10), device="cpu")
    p = x.pin_memory()
    assert p.is_pinned() and not x.is_pinned() and p.pin_memory() is p
    assert p.device.kind == "cpu" and p.tolist() == numbers(10) and p.data_ptr() != x.data_ptr()
    q = p[2:5]
    assert q.is_pinned()
    w = yoke.ones(3, device="cpu", requires_grad=True)
    w.pin_memory().backward(yoke.ones(3, device="cpu"))
    assert w.grad.tolist() == [1.0] * 3
    if DEVICE != "cpu":
        with pytest.raises(yoke.ValueError, match="cpu"):
            yoke.ones(3, device=DEVICE).pin_memory()


@pytest.mark.parametrize("pinned", [True, False])
def test_copies_that_nobody_waits_for_hold_what_they_were_given(pinned):
    s = yoke.Stream(DEVICE)
    with yoke.stream(s):
        made = []
        for i in range(20):
            x = yoke.full((333,), float(i), device="cpu")
            x = x.pin_memory() if pinned else x
            y = x.to(DEVICE, non_blocking=True)
            if not pinned and DEVICE != "cpu":
                x.fill_(-1.0)  # was copied aside
            made.append(y)
        back = [(y + 1).to("cpu", non_blocking=True) for y in made]
        half = made[3].to("cpu", dtype="float64", non_blocking=True)
    s.synchronize()
    assert [b[332].item() for b in back] == [i + 1.0 for i in range(20)]
    assert half.dtype is yoke.float64 and half[0].item() == 3
    assert DEVICE == "cpu" or back[0].is_pinned()


def test_a_forked_child_has_no_streams_but_those_of_the_cpu():
    s = yoke.Stream(DEVICE)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            yoke.Stream("cpu").synchronize()
            if DEVICE != "cpu":
                for call in (s.synchronize, lambda: yoke.Stream(DEVICE), lambda: yoke.set_stream(s)):
                    try:
                        call()
                        os._exit(2)
                    except yoke.ForkedError:
                        pass
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_dlpack_takes_the_streams_of_the_protocol():
    x = yoke.ones(4, device=DEVICE)
    for stream in (None, -1):
        assert yoke.from_dlpack(x.__dlpack__(stream=stream)).tolist() == [1.0] * 4
    if DEVICE == "cpu":
        with pytest.raises(yoke.ValueError, match="no streams"):
            x.__dlpack__(stream=1)
        return
    assert yoke.from_dlpack(x.__dlpack__(stream=1)).tolist() == [1.0] * 4
    for stream in (0, -2):
        with pytest.raises(yoke.ValueError, match="legacy default"):
            x.__dlpack__(stream=stream)


@on_cuda
def test_dlpack_orders_the_consumers_stream_behind_ours():
    ours, theirs = yoke.Stream(), yoke.Stream()
    with yoke.stream(ours):
        x = yoke.full((5000,), 7.0) * 2
        capsule = x.__dlpack__(stream=theirs.handle, max_version=(1, 0))
    with yoke.stream(theirs):
        y = yoke.from_dlpack(capsule) + 1
    theirs.synchronize()
    assert y.tolist() == [15.0] * 5000


class Producer:
    """Array of another library on this device; notes the requested stream."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, **options)


def test_a_producer_is_asked_to_order_itself_behind_our_current_stream():
    producer, s = Producer(yoke.ones(3, device=DEVICE)), yoke.Stream(DEVICE)
    yoke.from_dlpack(producer)
    with yoke.stream(s):
        yoke.from_dlpack(producer)
    assert producer.streams == ([None, None] if DEVICE == "cpu" else [1, s.handle])


def test_the_cuda_array_interface_names_memory_and_stream():
    x = yoke.ones((3, 4), device=DEVICE)
    if DEVICE != "cuda":
        assert not hasattr(x, "__cuda_array_interface__")
        return
    s = yoke.Stream()
    with yoke.stream(s):
        told = x.transpose(0, 1).__cuda_array_interface__
    assert told == {"shape": (4, 3), "typestr": "<f4", "data": (x.data_ptr(), False), "strides": (4, 16), "version": 3,
                    "stream": s.handle}
    told = x.__cuda_array_interface__
    assert told["strides"] is None and told["stream"] == 1
    assert not hasattr(yoke.ones(1, dtype=yoke.bfloat16), "__cuda_array_interface__")
    with pytest.raises(yoke.StateError, match="detach"):
        yoke.ones(1, requires_grad=True).__cuda_array_interface__


@on_cuda
@needs_two
def test_copies_between_two_devices_follow_their_streams():
    first, second = yoke.device("cuda:0"), yoke.device("cuda:1")
    a, b = yoke.Stream(first), yoke.Stream(second)
    results = []
    with yoke.stream(a), yoke.stream(b):
        assert yoke.current_device() is second
        for i in range(20):
            x = yoke.full((900,), float(i), device=first) + 1
            results.append(x.to(second) * 2)
            del x
    b.synchronize()
    assert [r[899].item() for r in results] == [2.0 * i + 2 for i in range(20)]
    assert yoke.current_stream(first).handle == 0
    event = a.record_event()
    b.wait_event(event)
    with pytest.raises(yoke.ValueError, match="cuda:1"):
        event.record(b)
    with pytest.raises(yoke.ValueError, match="cuda:1"):
        results[0].record_stream(a)


@on_cuda
@needs_two
def test_a_block_makes_the_streams_device_current():
    with yoke.stream(yoke.Stream("cuda:1")):
        assert yoke.zeros(3).device is yoke.device("cuda:1")
    assert yoke.current_device() is yoke.device("cuda:0")


def test_raw_blocks_are_ordered_on_the_stream_they_name():
    lib = ctypes.CDLL("libyoke.so.0")
    lib.yoke_alloc.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    lib.yoke_free.argtypes = [ctypes.c_void_p]
    s, place = yoke.Stream(DEVICE), ctypes.c_void_p()
    yoke.set_device(DEVICE)
    assert lib.yoke_alloc(1000, None, s.handle, ctypes.byref(place)) == 0 and place.value
    assert lib.yoke_free(place) == 0
