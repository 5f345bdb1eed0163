/* Errors for scripts: a table {code, message, device, call, where}; tostring gives the message. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bindings/lua/src/runtime/error.h"
#include "bindings/lua/src/runtime/flat.h"
#include "bindings/lua/src/runtime/interrupt.h"

#include "yoke/memory.h"

/* Returns whether a chunk is a script of the binding. An error's place is the caller of such a script. */
static int is_own_script(const char *source)
{
    static const char *const own[] = {
        "yoke/nn/",          "yoke/backends.lua",     "yoke/own_card.lua",
        "yoke/spawn.lua",    "yoke/checkpoint.lua",   "yoke/comm.lua",
        "yoke/data.lua",     "yoke/format.lua",       "yoke/habits.lua",
        "yoke/init.lua",     "yoke/manager.lua",      "yoke/optim.lua",
        "yoke/options.lua",  "yoke/random.lua",       "yoke/scaler.lua",
        "yoke/select.lua",   "yoke/state.lua",        "yoke/schedule.lua",
        "yoke/timer.lua",    "yoke/tree.lua",         "yoke/parallel.lua",
        "yoke/sampler.lua",  "yoke/carried.lua",      "yoke/types.lua",
        "yoke/cuda.lua",     "yoke/amp.lua",          "yoke/utils.lua",
        "yoke/missing.lua",  "yoke/lr_scheduler.lua", "yoke/autograd.lua",
        "yoke/precision.lua"};
    for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
        if (strstr(source, own[i])) return 1;
    return 0;
}

/* Pushes "script.lua:12: " for the innermost line of the script's own, or "". */
static void push_where(lua_State *L)
{
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); ++level) {
        lua_getinfo(L, "Sl", &frame);
        if (frame.currentline > 0 && !is_own_script(frame.source)) {
            lua_pushfstring(L, "%s:%d: ", frame.short_src, frame.currentline);
            return;
        }
    }
    lua_pushliteral(L, "");
}

/* Fills the table on top of the stack except for the message; takes the message from below the table. */
static void finish_error(lua_State *L, Binding *b, const char *code, const char *device,
                         const char *call)
{
    lua_insert(L, -2);
    lua_setfield(L, -2, "message");
    lua_pushstring(L, code);
    lua_setfield(L, -2, "code");
    lua_pushstring(L, device);
    lua_setfield(L, -2, "device");
    lua_pushstring(L, strncmp(call, "yoke_", 5) ? call : call + 5);
    lua_setfield(L, -2, "call");
    push_where(L);
    lua_setfield(L, -2, "where");
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->error_metatable_ref);
    lua_setmetatable(L, -2);
}

static void push_error(lua_State *L, Binding *b, const yoke_error *error)
{
    /* Copied first: an allocation may run finalizers, which may fail and replace the record. */
    char device[64], call[64];
    const yoke_status status = error->status;
    const int64_t native_code = error->native_code;
    const yoke_error *cause = error->cause;
    snprintf(device, sizeof device, "%s", error->device);
    snprintf(call, sizeof call, "%s", error->call);
    luaL_checkstack(L, 6, "too many causes");
    lua_pushstring(L, error->message);
    lua_createtable(L, 0, 6);
    finish_error(L, b, yoke_status_name(status), device, call);
    if (native_code) {
        lua_pushinteger(L, native_code);
        lua_setfield(L, -2, "native_code");
    }
    if (cause) {
        push_error(L, b, cause);
        lua_setfield(L, -2, "cause");
    }
}

void yl_push_last_error(lua_State *L, Binding *b)
{
    /* First, since finalizers may fail meanwhile and replace the numbers. */
    yoke_state *details = yoke_last_error()->status == YOKE_E_OOM ? yoke_oom_details() : NULL;
    push_error(L, b, yoke_last_error());
    if (!details) return;
    yl_push_flat(L, details);
    lua_setfield(L, -2, "details");
}

int yl_raise_last(lua_State *L, Binding *b)
{
    const int is_cancelled = yoke_last_error()->status == YOKE_E_CANCELLED;
    yl_push_last_error(L, b);
    if (is_cancelled) yl_let_hook_run(L); /* the hook's error has ended the wait */
    return lua_error(L);
}

int yl_nil_error(lua_State *L, Binding *b)
{
    lua_pushnil(L);
    yl_push_last_error(L, b);
    return 2;
}

int yl_raise(lua_State *L, Binding *b, yoke_status code, const char *call, const char *format, ...)
{
    luaL_checkstack(L, 10, "no Lua stack for an error");
    va_list arguments;
    va_start(arguments, format);
    const char *text = lua_pushvfstring(L, format, arguments);
    va_end(arguments);
    lua_pushfstring(L, "%s: %s", call, text);
    lua_createtable(L, 0, 6);
    finish_error(L, b, yoke_status_name(code), "", call);
    return lua_error(L);
}

const char *yl_meant(lua_State *L, const char *key, const char *const *names, int count)
{
    const char *meant = yoke_meant_word(key, names, count);
    const int is_beginning = meant && !strncmp(meant, key, strlen(key));
    const char *advice = is_beginning ? NULL : yoke_word_advice(key);
    luaL_checkstack(L, 4, "no Lua stack for an error");
    if (advice) return lua_pushfstring(L, "; %s", advice);
    return meant ? lua_pushfstring(L, "; did you mean '%s'?", meant) : "";
}

int yl_raise_keyword(lua_State *L, Binding *b, const char *call, const char *key,
                     const char *const *names, int count, const char *signature)
{
    return yl_raise(L, b, YOKE_E_VALUE, call, "there is no argument '%s'%s: %s", key,
                    yl_meant(L, key, names, count), signature);
}

/* Returns "script.lua:12: message": an uncaught error object reads as any other Lua error. */
static int error_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "where");
    lua_getfield(L, 1, "message");
    if (!lua_isstring(L, -2) || !lua_isstring(L, -1)) {
        lua_pushliteral(L, "yoke.Error");
        return 1;
    }
    lua_concat(L, 2);
    return 1;
}

/* Implements core.raise(code, call, message), by which the parts in plain Lua report misuse. */
static int raise(lua_State *L)
{
    const char *code = luaL_checkstring(L, 1), *call = luaL_checkstring(L, 2);
    luaL_checkstring(L, 3);
    lua_pushfstring(L, "%s: ", call);
    lua_pushvalue(L, 3); /* whole: the text may have a NUL */
    lua_concat(L, 2);
    lua_createtable(L, 0, 6);
    finish_error(L, yl_binding(L), code, "", call);
    return lua_error(L);
}

/* Implements core.meant(text, names): returns a hint after an error about an unknown name: "; did you mean 'axis'?",
 * or advice, or "". */
static int meant(lua_State *L)
{
    enum { kMost = 32 };
    const char *names[kMost], *text = luaL_checkstring(L, 1);
    int count = 0;
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checkstack(L, kMost + 2, "no Lua stack for names");
    while (count < kMost && lua_rawgeti(L, 2, count + 1) == LUA_TSTRING)
        names[count++] = lua_tostring(L, -1); /* stays on the stack */
    lua_pushstring(L, yl_meant(L, text, names, count));
    return 1;
}

/* Implements core.nearest(text, names): returns the name that the text probably stands for, or nil. */
static int nearest(lua_State *L)
{
    const char *text = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 2);
    const char **names = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *names, 0);
    lua_Integer used = 0;
    for (lua_Integer i = 1; i <= count; ++i, lua_pop(L, 1)) /* the table holds the strings */
        if (lua_rawgeti(L, 2, i) == LUA_TSTRING) names[used++] = lua_tostring(L, -1);
    lua_pushstring(L, yoke_meant_word(text, names, used));
    return 1;
}

void yl_open_error(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"raise", raise}, {"meant", meant}, {"nearest", nearest}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    luaL_newmetatable(L, "yoke.Error");
    lua_pushcfunction(L, error_tostring);
    lua_setfield(L, -2, "__tostring");
    yl_protect(L, "yoke.Error");
    b->error_metatable_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
