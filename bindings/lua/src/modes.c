/* Modes as scopes: yoke.no_grad, yoke.enable_grad, yoke.autocast, yoke.stream, and what is in force. */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/convert.h"

/* Pushes the field `name` of the options at 1, nil without options; the caller pops it. */
static void push_option(lua_State *L, const char *name)
{
    if (lua_istable(L, 1))
        lua_getfield(L, 1, name);
    else
        lua_pushnil(L);
}

static int32_t flag_option(lua_State *L, Binding *b, const char *name)
{
    push_option(L, name);
    const int32_t flag = lua_isnil(L, -1) ? 1 : yl_bool_arg(L, b, -1, "autocast", name);
    lua_pop(L, 1);
    return flag;
}

/* Returns whether the value at `index` is a device, or begins as a device's spec for which scripts for other
 * libraries ask. */
static int is_device(lua_State *L, int index)
{
    static const char *const kinds[] = {"cuda", "cpu", "gpu", "sim", "auto", "mps", "xpu", "hip"};
    if (yl_test_handle(L, index, &yl_device_class)) return 1;
    if (lua_type(L, index) != LUA_TSTRING) return 0;
    const char *text = lua_tostring(L, index);
    const size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (length == strlen(kinds[i]) && !strncmp(text, kinds[i], length)) return 1;
    return 0;
}

/* Raises if the first argument of `call`, at `index`, is a device, or has the option 'device'. */
static void refuse_device(lua_State *L, Binding *b, int index, const char *call)
{
    luaL_checkstack(L, 1, "no Lua stack for an option");
    if (lua_istable(L, index)) {
        lua_pushliteral(L, "device");
        lua_rawget(L, index);
    } else {
        lua_pushvalue(L, index);
    }
    if (is_device(L, -1))
        yl_raise(
            L, b, YOKE_E_TYPE, call,
            "the first argument is the device '%s'; leave it out, as %s serves every device: %s()",
            yl_show(L, -1), call, call);
    lua_pop(L, 1);
}

/* Implements _refuse_device(call, value), for yoke/scaler.lua. */
static int refuse_device_of(lua_State *L)
{
    const char *call = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    refuse_device(L, yl_binding(L), 2, call);
    return 0;
}

/* Raises for an unknown option name. */
static void check_option_names(lua_State *L, Binding *b)
{
    static const char *const names[] = {"dtype", "enabled", "cache_enabled"};
    if (!lua_istable(L, 1)) return;
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        const char *name = yl_key(L, -2);
        if (yl_find_name(name, names, 3) == 3)
            yl_raise(L, b, YOKE_E_VALUE, "autocast",
                     "there is no option '%s'%s; the options are dtype, enabled and cache_enabled",
                     name, yl_meant(L, name, names, 3));
    }
}

/* Returns the dtype among the options at 1, or in their place. */
static yoke_dtype dtype_option(lua_State *L, Binding *b)
{
    const Target target = {b, "autocast", "dtype"};
    if (lua_istable(L, 1))
        push_option(L, "dtype");
    else
        lua_pushvalue(L, 1);
    const yoke_dtype dtype = yl_need_dtype(L, target, -1);
    lua_pop(L, 1);
    return dtype;
}

/* Implements yoke.autocast([options] [, fn, ...]), options being {dtype =, enabled =, cache_enabled =} or a dtype.
 * Runs fn in the scope and returns its results; without fn, returns the scope. */
static int autocast(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (lua_gettop(L) == 0 || lua_type(L, 1) == LUA_TFUNCTION) {
        lua_pushnil(L);
        lua_insert(L, 1);
    }
    refuse_device(L, b, 1, "autocast");
    const int has_body = yl_has_body(L, b, 2, "autocast");
    check_option_names(L, b);
    const int32_t enabled = flag_option(L, b, "enabled"),
                  cache = flag_option(L, b, "cache_enabled");
    const yoke_dtype dtype = dtype_option(L, b);
    lua_remove(L, 1);
    Scope *scope = yl_push_scope(L, b);
    yoke_autocast *region = NULL;
    const Modes outer = yl_enter(L, b);
    yl_leave_checked(L, b, outer, yoke_autocast_create(enabled, dtype, cache, &region));
    yl_scope_autocast(scope, region);
    return has_body ? yl_run_in_scope(L) : 1;
}

/* Implements yoke.stream(s [, fn, ...]): runs fn with the stream as current stream; without fn, returns a scope. */
static int stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "stream", "stream"};
    yl_need_stream(L, target, 1);
    const int has_body = yl_has_body(L, b, 2, "stream");
    Scope *scope = yl_push_scope(L, b);
    yl_scope_stream(scope, yoke_stream_retain(yl_need_stream(L, target, 1)));
    lua_remove(L, 1);
    return has_body ? yl_run_in_scope(L) : 1;
}

static int get_autocast_dtype(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "get_autocast_dtype", "device"};
    lua_settop(L, 1);
    yoke_device *device = yl_need_device(L, target, 1);
    const Modes outer = yl_enter(L, b);
    const yoke_dtype dtype = yoke_autocast_dtype(device);
    yl_leave(outer);
    lua_pushstring(L, yoke_dtype_name(dtype));
    return 1;
}

static int is_autocast_enabled(lua_State *L)
{
    const Modes outer = yl_enter(L, yl_binding(L));
    lua_pushboolean(L, yoke_is_autocast_enabled());
    yl_leave(outer);
    return 1;
}

/* Opens a scope with the grad mode, and returns it. With a function at 1, runs the function in the scope and returns
 * its results. */
static int open_or_run(lua_State *L, const char *call, int32_t enabled)
{
    Binding *b = yl_binding(L);
    const int has_body = yl_has_body(L, b, 1, call);
    yl_scope_grad(yl_push_scope(L, b), enabled);
    return has_body ? yl_run_in_scope(L) : 1;
}

static int no_grad(lua_State *L)
{
    return open_or_run(L, "no_grad", 0);
}

static int enable_grad(lua_State *L)
{
    return open_or_run(L, "enable_grad", 1);
}

/* Implements _detect_anomaly(mode [, fn, ...]) for yoke/autograd.lua. */
static int detect_anomaly(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int32_t mode = (int32_t)luaL_checkinteger(L, 1);
    lua_remove(L, 1);
    const int has_body = yl_has_body(L, b, 1, "detect_anomaly");
    yl_scope_anomaly(yl_push_scope(L, b), mode);
    return has_body ? yl_run_in_scope(L) : 1;
}

static int is_grad_enabled(lua_State *L)
{
    const Modes outer = yl_enter(L, yl_binding(L));
    lua_pushboolean(L, yoke_is_grad_enabled());
    yl_leave(outer);
    return 1;
}

void yl_open_modes(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"no_grad", no_grad},
                                         {"enable_grad", enable_grad},
                                         {"is_grad_enabled", is_grad_enabled},
                                         {"_detect_anomaly", detect_anomaly},
                                         {"autocast", autocast},
                                         {"_refuse_device", refuse_device_of},
                                         {"stream", stream},
                                         {"is_autocast_enabled", is_autocast_enabled},
                                         {"get_autocast_dtype", get_autocast_dtype},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
}
