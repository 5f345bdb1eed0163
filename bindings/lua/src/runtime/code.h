/* code.h: functions of the script that the library calls in a backward, and that nodes of the tape hold.
 *
 * The library may release a function in any thread. The state forgets the function in a later call of its own. A
 * function runs only in a walk that its own state has begun, because another state may run in another thread. */
#ifndef YOKE_LUA_RUNTIME_CODE_H
#define YOKE_LUA_RUNTIME_CODE_H

#include "bindings/lua/src/runtime/error.h"

typedef struct YlCode YlCode;

/* Call into the library in which functions of the script may run. */
typedef struct YlWalk {
    struct YlWalk *outer;
    lua_State *L;
    int failed; /* the error of the function is on the top of the stack */
} YlWalk;

/* Begin and end such a call. No code raises between the two. */
void yl_begin_walk(lua_State *L, YlWalk *walk);
void yl_end_walk(const YlWalk *walk);
/* Raises the error of the script's function, or the failure of the call. */
void yl_check_walk(lua_State *L, Binding *b, const YlWalk *walk, yoke_status status);

/* Returns a new record of the function at `index`, to be given to the library as `user`. Raises without memory. */
YlCode *yl_new_code(lua_State *L, Binding *b, int index, const char *call);
/* Gives up a record, in any thread: the `drop` of the library. */
void yl_drop_code(void *code);

/* Calls `run`, a C function of (light userdata `call`), protected. It pushes the script's function by yl_push_code.
 * Returns YOKE_OK, or the status for the library; yl_code_problem then has the text. */
yoke_status yl_run_code(YlCode *code, lua_CFunction run, void *call);
void yl_push_code(lua_State *L, const YlCode *code);
Binding *yl_binding_of_code(const YlCode *code);
const char *yl_code_problem(void *code);

void yl_open_code(lua_State *L, Binding *b);

#endif /* YOKE_LUA_RUNTIME_CODE_H */
