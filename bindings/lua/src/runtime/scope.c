/*
 * Scopes of modes: `local _ <close> = yoke.no_grad()`, `yoke.no_grad(fn, ...)`; autocast and stream alike.
 *
 * C knows one grad mode, one autocast region and one stream of a device per thread; here they belong to the
 * coroutine. An open scope is an entry of the Binding's list that names its coroutine. Before a call into C the
 * newest entry of each kind of the running coroutine is put in force, and afterwards what was there before is
 * put back, so that neither another coroutine nor the host program ever sees it. A coroutine without a scope
 * runs in the mode of its host's thread.
 */
#include <stdlib.h>

#include "bindings/lua/src/runtime/scope.h"

struct Scope {
    Scope *newer, *older;
    Binding *binding;
    lua_State *coroutine;
    int32_t grad;          /* the grad mode; -1: another kind of scope */
    yoke_autocast *region; /* NULL: another kind */
    yoke_stream *stream;   /* NULL: another kind */
    yoke_stream *outer;    /* while `stream` is in force: what it replaced, */
    Scope *next_stream;    /* and the scope whose stream was put in force before it */
};

/* The userdata holds a scope of its own memory: one that the debug library robbed of its __gc stays open for
 * good, and the list whole. */
typedef struct ScopeBox {
    Scope *scope; /* NULL when closed */
} ScopeBox;

static const char kScopeName[] = "yoke.Scope";

/* Puts a scope's stream in force unless a newer one of its device is. The newest one's device is the current
 * one. What fails here fails again in the call itself, which says why. */
static void enter_stream(Scope *scope, Modes *outer)
{
    yoke_device *device = yoke_stream_device(scope->stream);
    if (scope->outer) return; /* a finalizer of this coroutine runs within a call */
    for (const Scope *newer = outer->streams; newer; newer = newer->next_stream)
        if (yoke_stream_device(newer->stream) == device) return;
    if (yoke_current_stream(device, &scope->outer)) return;
    if (!outer->streams) {
        if (yoke_current_device(&outer->device)) {
            yoke_stream_release(scope->outer);
            scope->outer = NULL;
            return;
        }
        yoke_device_release(outer->device); /* it lives on: yoke/device.h */
        yoke_set_device(device);
    }
    yoke_set_stream(scope->stream);
    scope->next_stream = outer->streams;
    outer->streams = scope;
}

Modes yl_enter_scopes(lua_State *L, const Binding *b)
{
    Modes outer = {-1, 0, NULL, NULL, NULL};
    for (Scope *scope = b->scopes; scope; scope = scope->older) {
        if (scope->coroutine != L) continue;
        if (scope->grad >= 0 && outer.grad < 0) outer.grad = yoke_set_grad_enabled(scope->grad);
        if (scope->region && !outer.autocast) {
            outer.autocast = 1;
            outer.region = yoke_autocast_swap(scope->region);
        }
        if (scope->stream) enter_stream(scope, &outer);
    }
    return outer;
}

void yl_leave_streams(Modes outer)
{
    for (Scope *scope = outer.streams; scope; scope = scope->next_stream) {
        yoke_set_stream(scope->outer);
        yoke_stream_release(scope->outer);
        scope->outer = NULL;
    }
    yoke_set_device(outer.device);
}

/* Its user value keeps the coroutine alive until the
 * scope is closed or collected, so that no other coroutine can come to lie at the same address. */
Scope *yl_push_scope(lua_State *L, Binding *b)
{
    ScopeBox *box = lua_newuserdatauv(L, sizeof *box, 1);
    box->scope = NULL;
    luaL_setmetatable(L, kScopeName);
    lua_pushthread(L);
    lua_setiuservalue(L, -2, 1);
    Scope *scope = calloc(1, sizeof *scope);
    if (!scope) yl_raise(L, b, YOKE_E_OOM, "scope", "no memory for a scope");
    scope->binding = b;
    scope->coroutine = L;
    scope->grad = -1;
    scope->older = b->scopes;
    if (b->scopes) b->scopes->newer = scope;
    b->scopes = scope;
    box->scope = scope;
    return scope;
}

static void free_scope(Scope *scope)
{
    yoke_autocast_release(scope->region);
    yoke_stream_release(scope->stream);
    free(scope);
}

/* __gc, __close and :close(). */
static int close_scope(lua_State *L)
{
    ScopeBox *box = luaL_checkudata(L, 1, kScopeName);
    Scope *scope = box->scope;
    box->scope = NULL;
    if (!scope || !yl_binding(L)->is_open) return 0; /* yl_close_scopes has freed it */
    if (scope->newer)
        scope->newer->older = scope->older;
    else
        scope->binding->scopes = scope->older;
    if (scope->older) scope->older->newer = scope->newer;
    free_scope(scope);
    return 0;
}

void yl_close_scopes(Binding *b)
{
    while (b->scopes) {
        Scope *scope = b->scopes;
        b->scopes = scope->older;
        free_scope(scope);
    }
}

static int finish_call(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1; /* all but the scope, which closes as this returns */
}

/* The scope on the top, over a function and its arguments: runs it and returns its results; an error or a
 * yield passes through. */
int yl_run_in_scope(lua_State *L)
{
    const int arguments = lua_gettop(L) - 2;
    lua_insert(L, 1);
    lua_toclose(L, 1);
    lua_callk(L, arguments, LUA_MULTRET, 0, finish_call);
    return finish_call(L, LUA_OK, 0);
}

void yl_scope_grad(Scope *scope, int32_t enabled)
{
    scope->grad = enabled;
}

void yl_scope_autocast(Scope *scope, yoke_autocast *region)
{
    scope->region = region;
}

void yl_scope_stream(Scope *scope, yoke_stream *stream)
{
    scope->stream = stream;
}

int yl_has_body(lua_State *L, Binding *b, int index, const char *call)
{
    if (lua_gettop(L) < index) return 0;
    if (lua_type(L, index) != LUA_TFUNCTION)
        yl_raise(L, b, YOKE_E_TYPE, call,
                 "argument 'fn' is a %s; give a function to run, or nothing for a scope to close",
                 luaL_typename(L, index));
    return 1;
}

void yl_open_scope(lua_State *L, Binding *b)
{
    static const luaL_Reg events[] = {
        {"__gc", close_scope}, {"__close", close_scope}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", close_scope}, {NULL, NULL}};
    luaL_newmetatable(L, kScopeName);
    yl_set_functions(L, b, events);
    lua_createtable(L, 0, 1);
    yl_set_functions(L, b, methods);
    lua_setfield(L, -2, "__index");
    yl_protect(L, kScopeName);
    lua_pop(L, 1);
}
