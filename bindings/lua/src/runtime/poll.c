#include "bindings/lua/src/runtime/poll.h"

#include <assert.h>

void yl_on_poll(Binding *b, YlDue run)
{
    assert(b->due_count < kMostDue);
    b->due[b->due_count++] = run;
}

lua_Integer yl_run_due(lua_State *L, Binding *b)
{
    lua_Integer count = 0;
    luaL_checkstack(L, LUA_MINSTACK, "no Lua stack for callbacks");
    for (int i = 0; i < b->due_count; ++i) count += b->due[i](L, b);
    return count;
}

/* Implements yoke.poll(): returns the number of callbacks that ran. */
static int poll(lua_State *L)
{
    lua_pushinteger(L, yl_run_due(L, yl_binding(L)));
    return 1;
}

void yl_open_poll(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"poll", poll}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
}
