/* Arguments and results that calls of groups share. */
#ifndef YOKE_LUA_VALUES_GROUP_H
#define YOKE_LUA_VALUES_GROUP_H

#include "bindings/lua/src/runtime/state.h"

#include "yoke/comm.h"

/* Pushes nil and an error for a failure that the world may cause, and raises any other failure. Returns the number of
 * results; 1 for success. */
int yl_told(lua_State *L, Binding *b, yoke_status status);

int32_t yl_rank_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
/* Returns a number of seconds. Raises unless the number is above 0, because 0 means a default in C. */
double yl_seconds_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);

#endif /* YOKE_LUA_VALUES_GROUP_H */
