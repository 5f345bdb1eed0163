/* Statistics of device memory and the cache, under the names of torch.cuda. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/flat.h"
#include "bindings/lua/src/values/handles.h"

typedef yoke_status (*Statistic)(yoke_device *device, int64_t *bytes);

static int push_statistic(lua_State *L, const char *call, Statistic statistic)
{
    Binding *b = yl_binding(L);
    const Target target = {b, call, "device"};
    int64_t bytes = 0;
    yl_arg_count(L, b, call, 0, 1);
    yl_check(L, b, statistic(yl_need_device(L, target, 1), &bytes));
    lua_pushinteger(L, bytes);
    return 1;
}

static int memory_allocated(lua_State *L)
{
    return push_statistic(L, "memory_allocated", yoke_memory_allocated);
}

static int max_memory_allocated(lua_State *L)
{
    return push_statistic(L, "max_memory_allocated", yoke_max_memory_allocated);
}

static int memory_reserved(lua_State *L)
{
    return push_statistic(L, "memory_reserved", yoke_memory_reserved);
}

static int max_memory_reserved(lua_State *L)
{
    return push_statistic(L, "max_memory_reserved", yoke_max_memory_reserved);
}

static yoke_status memory_cached_of(yoke_device *device, int64_t *bytes)
{
    int64_t allocated = 0;
    const yoke_status status = yoke_memory_allocated(device, &allocated);
    if (status || yoke_memory_reserved(device, bytes)) return status ? status : YOKE_E_INTERNAL;
    *bytes -= allocated;
    return YOKE_OK;
}

static int memory_cached(lua_State *L)
{
    return push_statistic(L, "memory_cached", memory_cached_of);
}

static int reset_peak_memory_stats(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "reset_peak_memory_stats", "device"};
    yl_check(L, b, yoke_reset_peak_memory_stats(yl_need_device(L, target, 1)));
    return 0;
}

static int memory_stats(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "memory_stats", "device"};
    yoke_state *stats = NULL;
    yl_arg_count(L, b, "memory_stats", 0, 1);
    yl_check(L, b, yoke_memory_stats(yl_need_device(L, target, 1), &stats));
    yl_push_flat(L, stats);
    return 1;
}

static int reset_accumulated_memory_stats(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "reset_accumulated_memory_stats", "device"};
    yl_check(L, b, yoke_reset_accumulated_memory_stats(yl_need_device(L, target, 1)));
    return 0;
}

static int empty_cache(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "empty_cache", "device"};
    yl_check(L, b, yoke_empty_cache(yl_need_device(L, target, 1)));
    return 0;
}

/* Returns to the script the bytes free on the device and in all. */
static int mem_get_info(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "mem_get_info", "device"};
    int64_t free_bytes = 0, total = 0;
    yoke_device *device = yl_need_device(L, target, 1);
    if (!device) {
        yl_check(L, b, yoke_current_device(&device));
        yoke_device_release(device); /* stays valid: yoke/device.h */
    }
    yl_check(L, b, yoke_device_memory(device, &free_bytes, &total));
    lua_pushinteger(L, free_bytes);
    lua_pushinteger(L, total);
    return 2;
}

static int live_tensor_count(lua_State *L)
{
    lua_pushinteger(L, yoke_live_tensor_count());
    return 1;
}

static int set_caching(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_set_caching(yl_bool_arg(L, b, 1, "set_caching", "enabled")));
    return 0;
}

static int is_caching(lua_State *L)
{
    lua_pushboolean(L, yoke_is_caching() == 1);
    return 1;
}

static int set_alloc_conf(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "set_alloc_conf", 1, 1);
    yl_check(L, b, yoke_set_alloc_conf(yl_string_arg(L, b, 1, "set_alloc_conf", "settings")));
    return 0;
}

static int get_alloc_conf(lua_State *L)
{
    const char *settings = NULL;
    yl_check(L, yl_binding(L), yoke_get_alloc_conf(&settings));
    lua_pushstring(L, settings);
    return 1;
}

void yl_open_memory(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"memory_allocated", memory_allocated},
        {"max_memory_allocated", max_memory_allocated},
        {"memory_reserved", memory_reserved},
        {"max_memory_reserved", max_memory_reserved},
        {"memory_cached", memory_cached},
        {"reset_peak_memory_stats", reset_peak_memory_stats},
        {"memory_stats", memory_stats},
        {"reset_accumulated_memory_stats", reset_accumulated_memory_stats},
        {"mem_get_info", mem_get_info},
        {"live_tensor_count", live_tensor_count},
        {"empty_cache", empty_cache},
        {"set_caching", set_caching},
        {"is_caching", is_caching},
        {"set_alloc_conf", set_alloc_conf},
        {"get_alloc_conf", get_alloc_conf},
        {NULL, NULL}};
    yl_set_functions(L, b, functions);
}
