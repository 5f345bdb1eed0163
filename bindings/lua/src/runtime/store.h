/* store.h: a script's store with which the ranks of an init find each other. */
#ifndef YOKE_LUA_RUNTIME_STORE_H
#define YOKE_LUA_RUNTIME_STORE_H

#include "yoke/comm.h"

#include <lua.h>

/* Host program's store for an init: two closures of yoke/comm.lua, called in its thread, which do not raise. Their
 * results are the status of a call, and the value or the problem. */
typedef struct YlStore {
    lua_State *L;
    int set, get, text; /* places on the stack; the last keeps the received value */
} YlStore;

/* Returns functions that borrow `store`, for a call of yoke_comm_init. */
yoke_store_functions yl_store_functions(YlStore *store);

#endif /* YOKE_LUA_RUNTIME_STORE_H */
