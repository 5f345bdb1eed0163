/* relief.h: what a state does when a device has no memory left: it collects garbage, and asks on_out_of_memory's
 * functions.
 *
 * Both run Lua code amid a call into the library, and that code may close any tensor. So they run only between these
 * two, where the call holds references to its arguments. */
#ifndef YOKE_LUA_RUNTIME_RELIEF_H
#define YOKE_LUA_RUNTIME_RELIEF_H

#include "bindings/lua/src/runtime/state.h"

/* Returns the state that was marked before, for yl_end_relief. Nothing is raised between the two. */
lua_State *yl_begin_relief(lua_State *L);
void yl_end_relief(lua_State *outer);

/* The state that is marked in this thread, or NULL. */
lua_State *yl_relieved(void);

#endif /* YOKE_LUA_RUNTIME_RELIEF_H */
