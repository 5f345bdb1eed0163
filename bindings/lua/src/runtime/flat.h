/* flat.h: dicts of the C API that hold numbers and texts alone, as tables. */
#ifndef YOKE_LUA_RUNTIME_FLAT_H
#define YOKE_LUA_RUNTIME_FLAT_H

#include "bindings/lua/src/runtime/state.h"

#include "yoke/state.h"

/* Pushes the dict as a table and releases the dict. If Lua has no memory for the table, the dict is lost with the
 * error. */
void yl_push_flat(lua_State *L, yoke_state *dict);

#endif /* YOKE_LUA_RUNTIME_FLAT_H */
