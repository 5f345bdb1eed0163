/* Devices: choosing one, asking why one cannot be used, and what it is. */
#include "bindings/lua/src/convert.h"

#include <string.h>

static const char kDeviceName[] = "yoke.Device";

/* One device is one userdata in a state, so that two can be compared with ==. */
void yl_push_device(lua_State *L, Binding *b, yoke_device *device)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->device_cache_ref);
    yoke_device **box = lua_rawgetp(L, -1, device) == LUA_TNIL ? NULL : lua_touserdata(L, -1);
    if (!box || !*box) { /* the one that is kept may have been finalized by hand */
        lua_pop(L, 1);
        box = lua_newuserdatauv(L, sizeof *box, 0);
        *box = NULL;
        luaL_setmetatable(L, kDeviceName);
        *box = yoke_device_retain(device);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, device);
    }
    lua_remove(L, -2);
}

static yoke_device *need_device(lua_State *L, Binding *b, const char *call)
{
    yoke_device **box = luaL_testudata(L, 1, kDeviceName);
    const Target target = {b, call, "self"};
    if (!box || !*box) yl_wrong_type(L, target, 1, "a device");
    return *box;
}

static int device_gc(lua_State *L)
{
    yoke_device **box = luaL_checkudata(L, 1, kDeviceName);
    yoke_device *device = *box;
    *box = NULL;
    yoke_device_release(device);
    return 0;
}

static int device_tostring(lua_State *L)
{
    lua_pushstring(L, yoke_device_spec(need_device(L, yl_binding(L), "tostring")));
    return 1;
}

static int device_synchronize(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_device_synchronize(need_device(L, b, "synchronize")));
    return 0;
}

/* device:supports(dtype, feature) */
static int device_supports(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = need_device(L, b, "supports");
    const Target target = {b, "supports", "dtype"};
    const yoke_dtype dtype = yl_need_dtype(L, target, 2);
    const char *feature = "compute";
    int32_t has = 0;
    if (!lua_isnoneornil(L, 3)) feature = yl_string_arg(L, b, 3, "supports", "feature");
    yl_check(L, b, yoke_device_supports(device, dtype, feature, &has));
    lua_pushboolean(L, has);
    return 1;
}

static int device_index(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = need_device(L, b, "device");
    const char *name = yl_key(L, 2);
    int64_t free_bytes = 0, total = 0;
    if (!strcmp(name, "kind")) {
        lua_pushstring(L, yoke_device_kind(device));
    } else if (!strcmp(name, "index")) {
        lua_pushinteger(L, yoke_device_index(device));
    } else if (!strcmp(name, "spec")) {
        lua_pushstring(L, yoke_device_spec(device));
    } else if (!strcmp(name, "name")) {
        lua_pushstring(L, yoke_device_name(device));
    } else if (!strcmp(name, "free_memory") || !strcmp(name, "total_memory")) {
        yl_check(L, b, yoke_device_memory(device, &free_bytes, &total));
        lua_pushinteger(L, *name == 'f' ? free_bytes : total);
    } else if (!strcmp(name, "synchronize") || !strcmp(name, "supports")) {
        lua_pushlightuserdata(L, b);
        lua_pushcclosure(L, name[1] == 'y' ? device_synchronize : device_supports, 1);
    } else if (!yl_push_device_field(L, b, device, name)) {
        return yl_raise(L, b, YOKE_E_VALUE, "device", "a device has no field or method '%s'",
                        yl_show(L, 2));
    }
    return 1;
}

/* yoke.device(spec): the device, or nil and why not. */
static int device_open(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "device", 0, 1);
    yoke_device *device = NULL;
    const int type = lua_type(L, 1);
    if (type <= LUA_TNIL || type == LUA_TSTRING) {
        const Target target = {b, "device", "spec"};
        if (yoke_device_open(type == LUA_TSTRING ? yl_need_text(L, target, 1) : NULL, &device))
            return yl_nil_error(L, b);
        yoke_device_release(device); /* it lives on: yoke/device.h */
    } else if (lua_isinteger(L, 1)) {
        yoke_device *current = NULL;
        const lua_Integer index = lua_tointeger(L, 1);
        if (yoke_current_device(&current)) return yl_nil_error(L, b);
        const char *kind = yoke_device_kind(current);
        yoke_device_release(current);
        if (yoke_device_get(kind, index > INT32_MAX || index < 0 ? -1 : (int32_t)index, &device))
            return yl_nil_error(L, b);
        yoke_device_release(device);
    } else {
        const Target target = {b, "device", "spec"};
        device = yl_need_device(L, target, 1);
    }
    yl_push_device(L, b, device);
    return 1;
}

/* An optional kind at 1. */
static const char *kind_arg(lua_State *L, Binding *b, const char *call)
{
    return lua_isnoneornil(L, 1) ? NULL : yl_string_arg(L, b, 1, call, "kind");
}

static int device_count(lua_State *L)
{
    Binding *b = yl_binding(L);
    int32_t count = 0;
    yl_check(L, b, yoke_device_count(kind_arg(L, b, "device_count"), &count));
    lua_pushinteger(L, count);
    return 1;
}

/* Appends the devices of a kind to the list on top of the stack. */
static void append_devices(lua_State *L, Binding *b, const char *kind)
{
    int32_t count = 0;
    yl_check(L, b, yoke_device_count(kind, &count));
    for (int32_t i = 0; i < count; ++i) {
        yoke_device *device = NULL;
        yl_check(L, b, yoke_device_get(kind, i, &device));
        yoke_device_release(device);
        yl_push_device(L, b, device);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
}

static int devices(lua_State *L)
{
    static const char *const kinds[] = {"cuda", "cpu"};
    Binding *b = yl_binding(L);
    const char *kind = kind_arg(L, b, "devices");
    lua_newtable(L);
    if (kind) append_devices(L, b, kind);
    for (size_t i = 0; !kind && i < sizeof kinds / sizeof *kinds; ++i)
        append_devices(L, b, kinds[i]);
    return 1;
}

static int is_available(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *kind = kind_arg(L, b, "is_available");
    int32_t count = 0;
    const int available = yoke_is_available(kind);
    if (kind && !available) yl_check(L, b, yoke_device_count(kind, &count)); /* is it one? */
    lua_pushboolean(L, available);
    return 1;
}

static int why_unavailable(lua_State *L)
{
    Binding *b = yl_binding(L);
    lua_pushstring(L, yoke_why_unavailable(yl_string_arg(L, b, 1, "why_unavailable", "kind")));
    return 1;
}

static int set_device(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "set_device", "device"};
    yl_arg_count(L, b, "set_device", 1, 1);
    yoke_device *device = NULL;
    if (lua_isinteger(L, 1)) { /* which never means the CPU */
        const lua_Integer index = lua_tointeger(L, 1);
        const int32_t place = index < 0 || index > INT32_MAX ? -1 : (int32_t)index;
        yl_check(L, b, yoke_accelerator_get(place, &device));
        yoke_device_release(device); /* it lives on: yoke/device.h */
    } else {
        device = yl_need_device(L, target, 1);
    }
    if (!device) yl_wrong_type(L, target, 1, "a device, a spec such as \"cpu\", or an index");
    yl_check(L, b, yoke_set_device(device));
    return 0;
}

static int current_device(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = NULL;
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_current_device(&device);
    yl_leave(outer);
    yl_check(L, b, status);
    yoke_device_release(device);
    yl_push_device(L, b, device);
    return 1;
}

static int synchronize(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "synchronize", "device"};
    yoke_device *device = yl_need_device(L, target, 1);
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_device_synchronize(device);
    yl_leave(outer);
    yl_check(L, b, status);
    return 0;
}

void yl_open_device(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"device", device_open},
                                         {"devices", devices},
                                         {"device_count", device_count},
                                         {"is_available", is_available},
                                         {"why_unavailable", why_unavailable},
                                         {"set_device", set_device},
                                         {"current_device", current_device},
                                         {"synchronize", synchronize},
                                         {NULL, NULL}};
    static const luaL_Reg events[] = {
        {"__index", device_index}, {"__tostring", device_tostring}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    luaL_newmetatable(L, kDeviceName);
    yl_set_functions(L, b, events);
    lua_pushcfunction(L, device_gc);
    lua_setfield(L, -2, "__gc");
    yl_protect(L, kDeviceName);
    lua_pop(L, 1);
    lua_newtable(L);
    b->device_cache_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
