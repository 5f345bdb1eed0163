/* store.h: a store of the script's, by which the ranks of one init find each other. */
#ifndef YOKE_LUA_RUNTIME_STORE_H
#define YOKE_LUA_RUNTIME_STORE_H

#include "yoke/comm.h"

#include <lua.h>

/* The host's store of one init: two closures of yoke/comm.lua, called in its thread, which raise nothing. They give how
 * a call ended, and the value or what is wrong. */
typedef struct YlStore {
    lua_State *L;
    int set, get, text; /* places on the stack; the last one keeps what was given */
} YlStore;

/* Borrow it, for one call of yoke_comm_init. */
yoke_store_functions yl_store_functions(YlStore *store);

#endif /* YOKE_LUA_RUNTIME_STORE_H */
