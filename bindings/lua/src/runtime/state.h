/*
 * state.h: base of the Lua binding's files, and their rules.
 *
 * The binding is C99 over the public headers alone, in three layers:
 *   runtime/  states, errors, classes of handles, arguments, scopes; without tensors
 *   values/   Lua's view of a tensor, a device, a stream, and conversion of Lua's values to arguments
 *   .         leaves: each adds functions to the module's table, where module.c opens it (leaves.h)
 * A file includes headers of its own layer and of layers below. A leaf includes no other leaf, and calls none.
 *
 * Each lua_State that requires "yoke" has a Binding, a userdata in its registry; every function of the module has the
 * Binding's address as first upvalue. States share only the log (log.c) and the reporter of lines (runtime/script.c).
 *
 * An error is a longjmp. So these rules hold:
 *   - C holds no memory, reference or mode across a call that may raise. Buffers are userdata.
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

/* Function that runs the due callbacks of a kind: poll.h. */
typedef int (*YlDue)(lua_State *L, Binding *b);
enum { kMostDue = 8 };

/* Runtime's record of a state. The layer above begins its own record with this record (values/tensor.h). */
struct Binding {
    int error_metatable_ref;
    int is_open;   /* the state has not been closed */
    Scope *scopes; /* open scopes of all coroutines, newest first */
    YlDue due[kMostDue];
    int due_count;
};

/* Returns the Binding of the running function. */
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

/* Shows scripts the class's name instead of the metatable on top of the stack, so that scripts cannot break C's
 * assumptions. */
static inline void yl_protect(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
}

#endif /* YOKE_LUA_RUNTIME_STATE_H */
