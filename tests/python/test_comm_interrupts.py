"""Waits for other ranks that signals of Python end: Ctrl-C, and any other handler that raises."""
import os
import signal
import subprocess
import sys
import time

import pytest
from rank_scripts import free_port, start

# The handler runs within the wait, because no other call takes so long. yoke.comm is loaded before, because Python
# may lose a handler's error while it compiles a module.
RINGING = """
import yoke.comm
class Rang(Exception): pass
def ring(*_): raise Rang()
signal.signal(signal.SIGALRM, ring)
def rung(call, after=0.3):
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        call()
        print("fine")
    except Rang:
        print("rang")
"""


def one(program, **environment):
    done = subprocess.run([sys.executable, "-c", "import os, signal, threading, yoke\n" + RINGING + program], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines(), done.returncode, done.stderr


def test_one_whose_rank_0_never_comes_hears_ctrl_c():
    out, status, error = one(f"""
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    yoke.comm.init(init_method="tcp://127.0.0.1:{free_port()}", rank=1, world_size=2)
except KeyboardInterrupt as heard:
    print("heard", heard.__context__)
""")
    assert out == ["heard None"] and status == 0, error


def test_rank_0_that_waits_for_others_hears_a_handler():
    out, status, error = one(f"""
rung(lambda: yoke.comm.init(init_method="tcp://127.0.0.1:{free_port()}", rank=0, world_size=2))
rung(lambda: yoke.comm.init(init_method="file:///tmp/yoke-interrupts-{os.getpid()}", rank=0, world_size=2))
group = yoke.comm.init(init_method="tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
print(group.size)
""")
    assert out == ["rang", "rang", "1"] and status == 0, error


# A wait looks for signals only 0.1 s after its begin. If the handler runs earlier, before the wait, the test sees
# "rang" as well.
SOON = 0.02


def waiting(port, after=SOON):
    return f'rung(lambda: yoke.comm.init(init_method="tcp://127.0.0.1:{port}", rank=0, world_size=2), {after})'


def test_a_wait_hears_what_came_before_its_first_look():
    out, status, error = one("\n".join(waiting(free_port()) for _ in range(3)))
    assert out == ["rang"] * 3 and status == 0, error


@pytest.mark.parametrize("call", ["group.all_reduce(yoke.ones(3))", "group.barrier()", "group.split(color=0)", "loss.backward()"])
def test_a_call_of_all_ranks_hears_what_came_before_its_first_look(call):
    outs, statuses, errors = start(RINGING + f"""
layer = yoke.nn.Linear(2, 1)
ddp = yoke.DistributedDataParallel(layer, group)
loss = ddp(yoke.ones(3, 2)).sum()
has_rung = os.path.join(os.environ["YOKE_TEST_MEETING"], "rung")
if rank == 0:
    rung(lambda: {call}, {SOON})
    open(has_rung, "w").close()
else:
    while not os.path.exists(has_rung): time.sleep(0.01)  # it never comes to the call
""", 2)
    assert statuses == [0, 0] and outs == ["rang\n", ""], (outs, errors)


def test_python_says_which_thread_is_the_main_one():
    program = f"""
import os, signal, sys
thread = sys.argv[1] == "thread"
if thread:  # the first that reads the module threading, so that this takes it for the main one, up to Python 3.12
    import _thread, time
    assert "threading" not in sys.modules
    done = []
    def read():
        import yoke
        done.append(yoke)
    _thread.start_new_thread(read, ())
    while not done: time.sleep(0.01)
import yoke
{RINGING}
{waiting(free_port(), 0.3)}
"""
    for way in "thread", "main":
        done = subprocess.run([sys.executable, "-S", "-c", program, way], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "rang\n"), (way, done.stderr)


def test_a_child_forked_by_another_thread_hears_its_signals():
    out, status, error = one(f"""
def fork():
    child = os.fork()
    if child == 0:
        {waiting(free_port(), 0.3)}
        sys.stdout.flush()
        os._exit(0)
    print("child", os.waitpid(child, 0)[1])
import sys
thread = threading.Thread(target=fork)
thread.start()
thread.join()
""")
    assert out == ["rang", "child 0"] and status == 0, error


def test_a_thread_beside_the_main_one_waits_on():
    out, status, error = one(f"""
import time
def wait():
    try:
        yoke.comm.init(init_method="tcp://127.0.0.1:{free_port()}", rank=1, world_size=2, init_timeout=1.)
    except yoke.TimeoutError:
        print("late")
thread = threading.Thread(target=wait)
thread.start()
rung(lambda: time.sleep(30))
thread.join()
""")
    assert out == ["rang", "late"] and status == 0, error


def test_a_handler_may_call_the_library():
    out, status, error = one(f"""
calls = []
def count(*_): calls.append(yoke.ones(3).sum().item())
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    yoke.comm.init(init_method="tcp://127.0.0.1:{free_port()}", rank=1, world_size=2, init_timeout=1.)
except yoke.TimeoutError:
    print(calls)
""")
    assert out == ["[3.0]"] and status == 0, error


def test_who_leaves_init_is_told_to_the_others():
    port = free_port()
    common = {**os.environ, "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    # Rank 1 raises only after it has a connection: rank 0 learns of no rank that leaves before the store exists.
    program = "import os, signal, yoke\n" + RINGING + f"""
def connected():
    rows = [line.split() for line in open("/proc/self/net/tcp").readlines()[1:]]
    return any(row[2].endswith(":{port:04X}") and row[3] == "01" for row in rows)
def ring_once_connected(*_):
    if connected():
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Rang()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
signal.signal(signal.SIGALRM, ring_once_connected)
""" + """
if os.environ["RANK"] == "1":
    rung(yoke.comm.init)
else:
    try:
        yoke.comm.init()
    except yoke.Error as error:
        print(type(error).__name__, error)
"""
    ranks = [subprocess.Popen([sys.executable, "-c", program], env={**common, "RANK": str(rank)}, text=True, stdout=subprocess.PIPE) for rank in (0, 1)]
    told, rang = (each.communicate(timeout=60)[0] for each in ranks)
    assert rang == "rang\n"
    assert told.startswith("CollectiveError ") and "rank 1 (host" in told and "interrupted" in told, told


@pytest.mark.parametrize("call", ["split(0)", "empty((3,))"])
def test_a_call_of_all_ranks_that_one_leaves_ends_for_all(call):
    outs, statuses, errors = start(RINGING + f"""
if rank == 0:
    rung(lambda: group.{call})
    told(lambda: group.barrier())
elif rank == 1:
    told(lambda: group.{call})
else:
    told(lambda: group.monitored_barrier(60.))
""", 3)
    assert statuses == [0, 0, 0], errors
    assert outs[0].splitlines()[0] == "rang"
    for out in outs[0].splitlines()[1], outs[1].strip(), outs[2].strip():
        assert out.startswith("CancelledError ") and "rank 0 (host" in out and "interrupted" in out, outs


def test_a_monitored_barrier_that_one_leaves_is_as_before():
    outs, statuses, errors = start(RINGING + """
if rank == 0:
    rung(lambda: group.monitored_barrier(60.))
    group.send(yoke.ones(1), 1)
else:
    group.recv(yoke.ones(1), 0)
    group.monitored_barrier(60.)
group.barrier()
""", 2)
    assert statuses == [0, 0] and outs == ["rang\n", ""], errors


def test_a_work_goes_on_when_its_wait_ends():
    outs, statuses, errors = start(RINGING + """
t = yoke.ones(1)
if rank == 0:
    work = group.all_reduce(t, async_op=True)
    rung(work.wait)
    print(work.done())
    group.monitored_barrier(60.)
    work.wait()
    print(t.item())
else:
    group.monitored_barrier(60.)
    group.all_reduce(t)
""", 2)
    assert statuses == [0, 0] and outs[0].split() == ["rang", "False", "2.0"], (outs, errors)


def test_a_shrink_that_one_leaves_goes_on_without_it():
    outs, statuses, errors = start(RINGING + """
import time
if rank == 1:
    rung(lambda: group.shrink(timeout=20.))
    told(lambda: group.shrink(timeout=20.))
elif rank == 0:
    time.sleep(1)  # so that rank 1 is in it before
    smaller = group.shrink(timeout=4.)
    print(smaller.size)
    smaller.barrier()
else:
    time.sleep(1)
    smaller = group.shrink(timeout=4.)
    print(smaller.size)
    smaller.barrier()
""", 3)
    assert statuses == [0, 0, 0], errors
    assert [outs[0], outs[2]] == ["2\n", "2\n"], outs
    first, second = outs[1].splitlines()
    assert first == "rang" and second.startswith("StateError ") and "interrupted" in second


def test_spawn_ends_its_ranks_when_a_handler_raises(tmp_path):
    (tmp_path / "endless.py").write_text("""
import time
def wait(): time.sleep(1000)
""")
    out, status, error = one(f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import endless
rung(lambda: yoke.spawn(endless.wait, 2))
""")
    assert out == ["rang"] and status == 0, error


LUA = """
local yoke = require "yoke"
print(pcall(function()
    print "ready"
    io.stdout:flush()
    yoke.comm.init {{ init_method = "tcp://127.0.0.1:{port}", rank = 1, world_size = 2 }}
end))
"""


def test_lua_hears_ctrl_c_within_init():
    waiting = subprocess.Popen(["lua5.4", "-e", LUA.format(port=free_port())], stdout=subprocess.PIPE, text=True)
    assert waiting.stdout.readline() == "ready\n"
    time.sleep(0.2)  # the process waits by then
    waiting.send_signal(signal.SIGINT)
    told = waiting.communicate(timeout=60)[0]
    assert told.startswith("false\t") and "interrupted!" in told, told


LUA_RANK = """
local yoke = require "yoke"
local group = assert(yoke.comm.init {{ timeout = 60.0 }})
local ddp = yoke.DistributedDataParallel(yoke.nn.Linear(2, 1), {{ group = group }})
assert(group:monitored_barrier(60.0))
if group.rank == 0 then
    print(pcall(function()
        print "ready"
        io.stdout:flush()
        {call}
    end))
    io.stdout:flush()
    group:abort "that is enough"
else
    io.read "a"
end
"""


@pytest.mark.parametrize("call", ["group:all_reduce(yoke.ones { 1 })", "group:recv(yoke.ones { 1 }, 1)", "group:barrier()", "group:empty { 3 }",
                                  "yoke.comm.coalesce(function() group:recv(yoke.ones { 1 }, 1); group:recv(yoke.ones { 1 }, 1) end)",
                                  "ddp(yoke.ones { 1, 2 }):sum():backward()"])
def test_lua_hears_ctrl_c_within_what_waits_for_other_ranks(call):
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    first, second = (subprocess.Popen(["lua5.4", "-e", LUA_RANK.format(call=call)], env={**common, "RANK": str(rank)}, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) for rank in (0, 1))
    assert first.stdout.readline() == "ready\n"
    time.sleep(0.2)  # the process waits by then
    first.send_signal(signal.SIGINT)
    told = first.stdout.readline()
    for each in second, first:  # the process of rank 0 leaves last
        each.communicate(timeout=30)
    assert told.startswith("false\t") and "interrupted!" in told, told
