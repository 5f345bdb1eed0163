/*
 * Watched signals in a host program with several Lua states: all states and the host program run their callbacks
 * before the host program's own handler gets the signal.
 */
#define _POSIX_C_SOURCE 200809L
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>

#include "yoke/yoke.h"

static int failures;

static void expect(int holds, const char *what)
{
    if (holds) return;
    ++failures;
    fprintf(stderr, "FAILED: %s\n", what);
}

static lua_State *open_state(void)
{
    static const char prepare[] =
        "yoke, saved = require 'yoke', 0\n"
        "handle = yoke.on_preempt(function() saved = saved + 1 end)";
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (luaL_dostring(L, prepare)) expect(0, lua_tostring(L, -1));
    return L;
}

/* Returns how many callbacks a poll of the state runs. */
static lua_Integer poll_in(lua_State *L)
{
    if (luaL_dostring(L, "return yoke.poll()")) expect(0, lua_tostring(L, -1));
    const lua_Integer count = lua_tointeger(L, -1);
    lua_settop(L, 0);
    return count;
}

static volatile sig_atomic_t heard;

static void on_info(int signal, siginfo_t *info, void *context)
{
    (void)context;
    heard += info->si_signo == signal;
}

static void install(void)
{
    struct sigaction action = {0};
    action.sa_sigaction = on_info;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
}

static int is_installed(void)
{
    struct sigaction found;
    sigaction(SIGTERM, NULL, &found);
    return (found.sa_flags & SA_SIGINFO) && found.sa_sigaction == on_info;
}

static void all_states_and_the_host_have_their_turn(void)
{
    lua_State *a = open_state(), *b = open_state();
    expect(yoke_preempt_watch(NULL, 0) == YOKE_OK, "the host watches");
    raise(SIGTERM);
    expect(poll_in(a) == 1 && poll_in(a) == 0 && heard == 0, "the first state saves once");
    expect(yoke_preempted() == SIGTERM && yoke_preempt_resume(0) == YOKE_OK && heard == 0,
           "the host is told, and the signal waits for the second state");
    expect(poll_in(b) == 1 && heard == 1, "the last one gives the signal on");
    raise(SIGTERM);
    expect(yoke_preempt_clear(0) == YOKE_OK && yoke_preempt_unwatch(0) == YOKE_OK,
           "the host has enough");
    expect(poll_in(b) == 1 && heard == 1, "the second state is told again");
    lua_close(a);
    expect(heard == 2, "a state that closes does not keep the signal from the rest");
    raise(SIGTERM);
    expect(heard == 2 && poll_in(b) == 1 && heard == 3, "nor does it keep later ones");
    expect(!is_installed(), "the state that is left watches");
    lua_close(b);
    expect(is_installed(), "the host's handler is back");
}

int main(void)
{
    install();
    all_states_and_the_host_have_their_turn();
    if (!failures) puts("states and their host have their turn");
    return failures != 0;
}
