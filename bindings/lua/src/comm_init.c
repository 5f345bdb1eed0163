/* Creation and release of groups, for yoke/comm.lua. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/runtime/store.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/group.h"
#include "bindings/lua/src/values/handles.h"

/* Implements comm_init(backend, init_method, rank, world_size, timeout, init_timeout, set, get, device): returns a
 * group, or nil and an error. */
static int init(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_comm_options options = {.struct_size = sizeof options};
    YlStore store = {L, 7, 8, 10};
    const yoke_store_functions functions = yl_store_functions(&store);
    lua_settop(L, 10);
    if (!lua_isnil(L, store.set)) options.store = &functions;
    if (!lua_isnil(L, 1)) options.backend = yl_string_arg(L, b, 1, "init", "backend");
    options.init_method = yl_string_arg(L, b, 2, "init", "init_method");
    if (lua_isnil(L, 3) != lua_isnil(L, 4))
        yl_raise(L, b, YOKE_E_VALUE, "init",
                 "only one of the options 'rank' and 'world_size' is given; give both, or neither");
    if (!lua_isnil(L, 3)) {
        options.has_rank = 1;
        options.rank = yl_rank_arg(L, b, 3, "init", "rank");
        options.world_size = yl_rank_arg(L, b, 4, "init", "world_size");
    }
    options.timeout = yl_seconds_arg(L, b, 5, "init", "timeout");
    options.init_timeout = yl_seconds_arg(L, b, 6, "init", "init_timeout");
    if (!lua_isnil(L, 9)) options.device = yl_need_device(L, (Target){b, "init", "device"}, 9);
    yoke_group **box = yl_push_handle(L, &yl_group_class);
    YlWait wait;
    yl_begin_wait(L, &wait);
    const yoke_status status = yoke_comm_init(&options, box);
    yl_end_wait(&wait);
    return yl_told(L, b, status);
}

/* Implements comm_init_devices(devices, timeout): returns a list of groups, or nil and an error. */
static int init_devices(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "init_all", "devices"};
    yoke_device *devices[YOKE_MAX_RANKS];
    yoke_group *groups[YOKE_MAX_RANKS];
    const lua_Unsigned count = lua_rawlen(L, 1);
    const double timeout = yl_seconds_arg(L, b, 2, "init_all", "timeout");
    if (count > YOKE_MAX_RANKS)
        yl_raise(L, b, YOKE_E_VALUE, "init_all",
                 "argument 'devices' has %I devices; a process has 1 to %d ranks",
                 (lua_Integer)count, YOKE_MAX_RANKS);
    lua_createtable(L, (int)count, 0);
    for (lua_Unsigned i = 0; i < count; ++i) {
        lua_geti(L, 1, (lua_Integer)i + 1);
        devices[i] = yl_need_device(L, target, lua_gettop(L));
        lua_pop(L, 1);
        (void)yl_push_handle(L, &yl_group_class);
        lua_rawseti(L, 3, (lua_Integer)i + 1);
    }
    YlWait wait;
    yl_begin_wait(L, &wait);
    const yoke_status status = yoke_comm_init_devices(devices, (int32_t)count, timeout, groups);
    yl_end_wait(&wait);
    for (lua_Unsigned i = 0; i < count && status == YOKE_OK; ++i) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        *(yoke_group **)lua_touserdata(L, -1) = groups[i];
        lua_pop(L, 1);
    }
    return yl_told(L, b, status);
}

/* Implements comm_group(): returns the default group, or nil. */
static int default_group(lua_State *L)
{
    const yoke_status status = yoke_comm_group(yl_push_handle(L, &yl_group_class));
    if (status != YOKE_E_STATE) yl_check(L, yl_binding(L), status);
    if (status) lua_pushnil(L);
    return 1;
}

static int finalize(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_comm_finalize());
    return 0;
}

static int note_raised(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_comm_note_raised(luaL_checkstring(L, 1)));
    return 0;
}

void yl_open_comm_init(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"_comm_init", init},
                                         {"_comm_init_devices", init_devices},
                                         {"_comm_group", default_group},
                                         {"_comm_finalize", finalize},
                                         {"_comm_note_raised", note_raised},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
}
