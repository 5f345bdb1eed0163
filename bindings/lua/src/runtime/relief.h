/* relief.h: actions of a state when a device has no memory left: it collects garbage, and calls on_out_of_memory's
 * functions.
 *
 * Both run Lua code within a call into the library, and this code may close any tensor. So they run only between
 * begin and end, while the call holds references to its arguments. */
#ifndef YOKE_LUA_RUNTIME_RELIEF_H
#define YOKE_LUA_RUNTIME_RELIEF_H

#include "bindings/lua/src/runtime/state.h"

/* Marks the state until yl_end_relief, so that relief may run its Lua code. Returns the state marked before, for
 * yl_end_relief. No code raises between the two. */
lua_State *yl_begin_relief(lua_State *L);
void yl_end_relief(lua_State *outer);

/* Returns the marked state of this thread, or NULL. */
lua_State *yl_relieved(void);

#endif /* YOKE_LUA_RUNTIME_RELIEF_H */
