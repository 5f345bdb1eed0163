#include "bindings/lua/src/runtime/relief.h"

#include <pthread.h>

#include "yoke/memory.h"

static __thread lua_State *relieved;

static int32_t collect_garbage(void *user, yoke_device *device, int64_t bytes)
{
    lua_State *const L = relieved;
    (void)user, (void)device, (void)bytes;
    if (!L) return 0;
    relieved = NULL; /* calls of finalizers do not belong to the outer call */
    lua_gc(L, LUA_GCCOLLECT);
    relieved = L;
    return 1;
}

/* Registers the garbage collector for relief. If there is no memory for the registration, no garbage is collected. */
static void add_collector(void)
{
    int64_t id = 0;
    yoke_add_garbage_collector(collect_garbage, NULL, NULL, &id);
}

lua_State *yl_begin_relief(lua_State *L)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, add_collector);
    lua_State *const outer = relieved;
    relieved = L;
    return outer;
}

void yl_end_relief(lua_State *outer)
{
    relieved = outer;
}

lua_State *yl_relieved(void)
{
    return relieved;
}
