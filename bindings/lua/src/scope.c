/*
 * Grad scopes: `local _ <close> = yoke.no_grad()` and `yoke.no_grad(fn, ...)`.
 *
 * C knows one grad mode per thread; here it belongs to the coroutine. An open scope is an entry of the
 * Binding's list that names its coroutine. Before a call into C the newest entry of the running coroutine
 * is put in force, and afterwards what was there before is put back, so that neither another coroutine
 * nor the host program ever sees it. A coroutine without a scope runs in the mode of its host's thread.
 */
#include "bindings/lua/src/binding.h"

struct Scope {
    Scope *newer, *older;
    Binding *binding; /* NULL when closed */
    lua_State *coroutine;
    int32_t enabled;
};

static const char kScopeName[] = "yoke.Scope";

int32_t yl_enter_scopes(lua_State *L, const Binding *b)
{
    for (const Scope *scope = b->scopes; scope; scope = scope->older)
        if (scope->coroutine == L) return yoke_set_grad_enabled(scope->enabled);
    return -1;
}

/* Pushes an open scope of the running coroutine. Its user value keeps the coroutine alive until the
 * scope is closed or collected, so that no other coroutine can come to lie at the same address. */
static void push_scope(lua_State *L, Binding *b, int32_t enabled)
{
    Scope *scope = lua_newuserdatauv(L, sizeof *scope, 1);
    scope->binding = NULL;
    luaL_setmetatable(L, kScopeName);
    lua_pushthread(L);
    lua_setiuservalue(L, -2, 1);
    scope->coroutine = L;
    scope->enabled = enabled;
    scope->newer = NULL;
    scope->older = b->scopes;
    if (b->scopes) b->scopes->newer = scope;
    b->scopes = scope;
    scope->binding = b;
}

/* __gc, __close and :close(). */
static int close_scope(lua_State *L)
{
    Scope *scope = luaL_checkudata(L, 1, kScopeName);
    if (!scope->binding) return 0;
    if (scope->newer)
        scope->newer->older = scope->older;
    else
        scope->binding->scopes = scope->older;
    if (scope->older) scope->older->newer = scope->newer;
    scope->binding = NULL;
    return 0;
}

static int finish_call(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1; /* all but the scope, which closes as this returns */
}

/* With a function, runs it in a scope and returns its results; an error or a yield passes through. */
static int open_or_run(lua_State *L, const char *call, int32_t enabled)
{
    Binding *b = yl_binding(L);
    if (lua_gettop(L) == 0) {
        push_scope(L, b, enabled);
        return 1;
    }
    if (lua_type(L, 1) != LUA_TFUNCTION)
        return yl_raise(
            L, b, YOKE_E_TYPE, call,
            "argument 'fn' is a %s; give a function to run, or nothing for a scope to close",
            luaL_typename(L, 1));
    const int arguments = lua_gettop(L) - 1;
    push_scope(L, b, enabled);
    lua_insert(L, 1);
    lua_toclose(L, 1);
    lua_callk(L, arguments, LUA_MULTRET, 0, finish_call);
    return finish_call(L, LUA_OK, 0);
}

static int no_grad(lua_State *L)
{
    return open_or_run(L, "no_grad", 0);
}

static int enable_grad(lua_State *L)
{
    return open_or_run(L, "enable_grad", 1);
}

static int is_grad_enabled(lua_State *L)
{
    const int32_t outer = yl_enter(L, yl_binding(L));
    lua_pushboolean(L, yoke_is_grad_enabled());
    yl_leave(outer);
    return 1;
}

void yl_open_scope(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"no_grad", no_grad},
                                         {"enable_grad", enable_grad},
                                         {"is_grad_enabled", is_grad_enabled},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
    luaL_newmetatable(L, kScopeName);
    lua_pushcfunction(L, close_scope);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close_scope);
    lua_setfield(L, -2, "__close");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_scope);
    lua_setfield(L, -2, "close");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
