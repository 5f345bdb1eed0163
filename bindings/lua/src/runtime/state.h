/*
 * state.h: the ground that the files of the Lua binding stand on, and how they stand.
 *
 * The binding is C99 over the public headers alone, in three layers:
 *   runtime/  states, errors, classes of handles, arguments, scopes; nothing of tensors is in it
 *   values/   what Lua holds of a tensor, a device, a stream, and how Lua's values become arguments
 *   .         leaves: each adds functions to the module's table, where module.c opens it (leaves.h)
 * A file includes headers of its own layer and of those below; a leaf includes no other leaf's, and calls none.
 *
 * Each lua_State that requires "yoke" has one Binding, a userdata in its registry; every function of the module
 * carries its address as first upvalue. Nothing but the log (log.c) and who tells lines
 * (runtime/script.c) is shared between states.
 *
 * Rules that keep it safe where an error is a longjmp:
 *   - No memory, reference or mode is held by C across a call that may raise. Buffers are userdata.
 *   - A result's userdata is pushed, empty, before the call that fills it.
 *   - Handles of arguments are read after the last allocation, because an allocation may run the script's
 *     finalizers, and those may close tensors.
 */
#ifndef YOKE_LUA_RUNTIME_STATE_H
#define YOKE_LUA_RUNTIME_STATE_H

#include <lauxlib.h>
#include <lua.h>

#include "yoke/yoke.h"

typedef struct Scope Scope;
typedef struct Binding Binding;

/* Runs what is due of one kind: poll.h. */
typedef int (*YlDue)(lua_State *L, Binding *b);
enum { kMostDue = 8 };

/* Record that the runtime keeps of a state. The layer above begins its own record with it (values/tensor.h). */
struct Binding {
    int error_metatable_ref;
    int is_open;   /* the state has not been closed */
    Scope *scopes; /* that are open in any coroutine, newest first */
    YlDue due[kMostDue];
    int due_count;
};

/* The Binding of the running function. */
static inline Binding *yl_binding(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* Sets functions, each with the Binding as its upvalue, in the table on top of the stack. */
static inline void yl_set_functions(lua_State *L, Binding *b, const luaL_Reg *functions)
{
    lua_pushlightuserdata(L, b);
    luaL_setfuncs(L, functions, 1);
}

/* Scripts get the class's name in place of the metatable on top of the stack, so that they cannot break what C
 * relies on. */
static inline void yl_protect(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
}

#endif /* YOKE_LUA_RUNTIME_STATE_H */
