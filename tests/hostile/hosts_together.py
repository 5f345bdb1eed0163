"""Several hosts of the library in one process, at work at once: Python, a Lua state, and C through ctypes."""
import ctypes
import ctypes.util
import random
import threading

import pytest

import yoke

CHUNK = b"""
local yoke = require "yoke"
local net = yoke.nn.Linear(4, 2)
local optimizer = yoke.optim.SGD(net:parameters(), { lr = 0.1 })
for _ = 1, 5 do
    local loss = yoke.mse_loss(net(yoke.ones({ 3, 4 })), yoke.zeros({ 3, 2 }))
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
end
local scope <close> = yoke.no_grad()
assert(yoke.ones({ 2, 3 }):sum():item() == 6)
"""


@pytest.fixture(scope="module")
def lua():
    name = ctypes.util.find_library("lua5.4")
    if not name:
        pytest.skip("there is no shared library of Lua")
    library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)  # modules take the interpreter's symbols from this library
    library.luaL_newstate.restype = ctypes.c_void_p
    library.lua_tolstring.restype = ctypes.c_char_p
    for function in ("luaL_openlibs", "lua_close"):
        getattr(library, function).argtypes = [ctypes.c_void_p]
    library.luaL_loadstring.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.lua_pcallk.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t, ctypes.c_void_p]
    library.lua_tolstring.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    return library


def in_lua(lua, rounds):
    """Makes a Lua state, works and closes the state. Returns None, or the error of the state."""
    state = lua.luaL_newstate()
    lua.luaL_openlibs(state)
    try:
        for _ in range(rounds):
            if lua.luaL_loadstring(state, CHUNK) or lua.lua_pcallk(state, 0, 0, 0, 0, None):
                return (lua.lua_tolstring(state, -1, None) or b"an error object").decode()
    finally:
        lua.lua_close(state)
    return None


def in_c(library, rounds):
    for _ in range(rounds):
        made, total, shape = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_int64 * 2)(2, 3)
        assert library.yoke_ones(shape, ctypes.c_int64(2), 2, None, ctypes.byref(made)) == 0
        assert library.yoke_add(made, made, ctypes.byref(total)) == 0
        library.yoke_tensor_release(made)
        library.yoke_tensor_release(total)


def in_python(rounds):
    for _ in range(rounds):
        x = yoke.ones((2, 3)).requires_grad_(True)
        (x * x).sum().backward()
        assert x.grad.sum().item() == 12 and yoke.is_grad_enabled()


def test_three_hosts_work_side_by_side_in_threads(lua):
    library = ctypes.CDLL("libyoke.so.0")
    wrong = []

    def guarded(body, *args):
        try:
            if said := body(*args):
                wrong.append(said)
        except BaseException as error:  # keeps a thread's exception
            wrong.append(repr(error))

    for _ in range(5):
        threads = [threading.Thread(target=guarded, args=job) for job in
                   ((in_lua, lua, 5), (in_lua, lua, 5), (in_c, library, 500), (in_python, 200), (in_python, 200))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_three_hosts_take_turns_in_one_thread(lua):
    """The modes of a thread belong to the thread, whichever host sets them. So a host leaves the modes unchanged."""
    library = ctypes.CDLL("libyoke.so.0")
    order = [random.Random(seed).choice((0, 1, 2)) for seed in range(60)]
    for host in order:
        said = (lambda: in_lua(lua, 1), lambda: in_c(library, 3), lambda: in_python(2))[host]()
        assert said is None
        assert yoke.is_grad_enabled() and not yoke.is_autocast_enabled()
