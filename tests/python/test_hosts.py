"""Python beside other host programs of a process: Lua states that come and go, and the library's shutdown, leave Python's log alone."""

import ctypes
import ctypes.util
import subprocess
import sys
import textwrap

import pytest

LUA = ctypes.util.find_library("lua5.4") or ctypes.util.find_library("lua-5.4") or ctypes.util.find_library("lua")

# Each of these variables was read before its change; a change causes a single warning.
PRELUDE = """
import ctypes, os, sys, warnings
import yoke
warnings.simplefilter("always")

def provoke(variable):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        os.environ[variable] = "11"
        yoke.device("cpu")
        yoke.ones(1) + 1
    return [str(each.message) for each in heard if variable in str(each.message)]

yoke.ones(1) + 1
"""

LUA_STATE = """
lua = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
lua.luaL_newstate.restype = ctypes.c_void_p
lua.lua_tolstring.restype = ctypes.c_char_p

def open_state():
    state = ctypes.c_void_p(lua.luaL_newstate())
    lua.luaL_openlibs(state)
    return state

def run(state, chunk):
    if lua.luaL_loadstring(state, chunk.encode()) or lua.lua_pcallk(state, 0, 1, 0, ctypes.c_ssize_t(0), None):
        raise RuntimeError(lua.lua_tolstring(state, -1, None))
    text = lua.lua_tolstring(state, -1, None)
    lua.lua_settop(state, 0)
    return text
"""


def in_child(*parts):
    script = "".join(textwrap.dedent(part) for part in parts)
    done = subprocess.run([sys.executable, "-c", script, LUA or ""], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.skipif(not LUA, reason="there is no shared Lua library")
def test_a_lua_state_that_closes_leaves_python_its_log():
    in_child(PRELUDE, LUA_STATE, """
        first, second = open_state(), open_state()
        run(first, "heard = 0; require('yoke').set_log_callback(function() heard = heard + 1 end)")
        run(second, "require('yoke')")
        assert len(provoke("YOKE_PLATFORMS")) == 1
        assert run(first, "require('yoke').poll() return tostring(heard)") == b"1"
        lua.lua_close(second)
        assert len(provoke("YOKE_DEVICE")) == 1
        assert run(first, "require('yoke').poll() return tostring(heard)") == b"2"
        lua.lua_close(first)
        assert len(provoke("YOKE_NO_CACHING")) == 1
        """)


@pytest.mark.skipif(not LUA, reason="there is no shared Lua library")
def test_modes_of_a_lua_state_and_of_python_stay_apart():
    in_child(PRELUDE, LUA_STATE, """
        state = open_state()
        run(state, "yoke = require 'yoke'")
        ask = "return tostring(yoke.is_grad_enabled())"
        with yoke.no_grad():
            assert run(state, ask) == b"false"  # without a scope of its own: its host's
            assert run(state, "local _ <close> = yoke.enable_grad() " + ask) == b"true"
            assert not yoke.is_grad_enabled()
        run(state, "scope = yoke.no_grad()")
        assert yoke.is_grad_enabled()
        lua.lua_close(state)
        assert yoke.is_grad_enabled()
        """)


def test_a_shutdown_leaves_python_its_log():
    in_child(PRELUDE, """
        yoke.shutdown()
        assert len(provoke("YOKE_PLATFORMS")) == 1
        """)
