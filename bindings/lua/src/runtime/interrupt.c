#include "bindings/lua/src/runtime/interrupt.h"

#include <pthread.h>

#include "yoke/runtime.h"

static __thread YlWait *waiting;

static int32_t has_new_hook(void *user)
{
    (void)user;
    for (int i = 0; waiting && i < 2; ++i) {
        lua_State *const L = waiting->found[i].L;
        if (lua_gethook(L) != waiting->found[i].hook ||
            lua_gethookmask(L) != waiting->found[i].mask ||
            lua_gethookcount(L) != waiting->found[i].count)
            return 1;
    }
    return 0;
}

/* Makes the library ask for new debug hooks during waits. A hook set by a host program since then stays. */
static void set_hook(void)
{
    yoke_set_interrupt_hook(has_new_hook, NULL, NULL);
}

void yl_begin_wait(lua_State *L, YlWait *wait)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_hook);
    wait->outer = waiting;
    wait->found[0].L = L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    wait->found[1].L = lua_tothread(L, -1);
    lua_pop(L, 1);
    for (int i = 0; i < 2; ++i) {
        lua_State *const of = wait->found[i].L;
        wait->found[i].hook = lua_gethook(of);
        wait->found[i].mask = lua_gethookmask(of);
        wait->found[i].count = lua_gethookcount(of);
    }
    waiting = wait;
}

void yl_end_wait(const YlWait *wait)
{
    waiting = wait->outer;
}

static int do_nothing(lua_State *L)
{
    (void)L;
    return 0;
}

void yl_let_hook_run(lua_State *L)
{
    lua_pushcfunction(L, do_nothing);
    lua_call(L, 0, 0);
}
