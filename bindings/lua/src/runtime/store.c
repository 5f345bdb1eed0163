#define _POSIX_C_SOURCE 200809L
#include "bindings/lua/src/runtime/store.h"

#include <string.h>
#include <time.h>

static yoke_status ended(const YlStore *store, int arguments)
{
    static const yoke_status ends[] = {YOKE_OK, YOKE_E_TIMEOUT, YOKE_E_COMM};
    lua_State *L = store->L;
    if (lua_pcall(L, arguments, 2, 0) != LUA_OK) { /* no memory */
        lua_pushinteger(L, 2);
        lua_insert(L, -2);
    }
    lua_replace(L, store->text);
    const lua_Integer end = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return ends[end >= 0 && end < 3 ? end : 2];
}

static yoke_status set_in_store(void *user, const char *key, const void *data, int64_t bytes)
{
    const YlStore *store = user;
    lua_pushvalue(store->L, store->set);
    lua_pushstring(store->L, key);
    lua_pushlstring(store->L, data, (size_t)bytes);
    return ended(store, 2);
}

static double monotonic_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Gets a value from the script's store, within `timeout` seconds. If the store does not wait itself, asks again from
 * time to time. */
static yoke_status get_from_store(void *user, const char *key, double timeout, void *data,
                                  int64_t capacity, int64_t *bytes)
{
    const YlStore *store = user;
    const double until = monotonic_seconds() + timeout;
    yoke_status status = YOKE_E_TIMEOUT;
    for (double left = timeout;; left = until - monotonic_seconds()) {
        lua_pushvalue(store->L, store->get);
        lua_pushstring(store->L, key);
        lua_pushnumber(store->L, left > 0 ? left : 0);
        status = ended(store, 2);
        if (status != YOKE_E_TIMEOUT || left <= 0) break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (status != YOKE_OK) return status;
    size_t length = 0;
    const char *text = lua_tolstring(store->L, store->text, &length);
    *bytes = (int64_t)length;
    if (*bytes <= capacity) memcpy(data, text, length);
    return YOKE_OK;
}

static const char *problem_of_store(void *user)
{
    const YlStore *store = user;
    return lua_tostring(store->L, store->text);
}

yoke_store_functions yl_store_functions(YlStore *store)
{
    return (yoke_store_functions){.struct_size = sizeof(yoke_store_functions),
                                  .user = store,
                                  .set = set_in_store,
                                  .get = get_from_store,
                                  .problem = problem_of_store};
}
