/* Devices: choice of a device, and reasons why a device cannot be used. Fields of a device: device_fields.c. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/values/arg_type.h"
#include "bindings/lua/src/values/handles.h"

/* Opens the device at a place of the current kind, and returns the status. For a place out of range, C gets -1, which
 * no device has. */
static yoke_status device_at(lua_Integer place, yoke_device **device)
{
    yoke_device *current = NULL;
    const yoke_status status = yoke_current_device(&current);
    if (status) return status;
    const char *kind = yoke_device_kind(current);
    yoke_device_release(current); /* stays valid: yoke/device.h */
    return yoke_device_get(kind, place > INT32_MAX || place < 0 ? -1 : (int32_t)place, device);
}

/* Implements yoke.device(spec): returns the device, or nil and why not. */
static int device_open(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "device", "spec"};
    yl_arg_count(L, b, "device", 0, 1);
    yoke_device *device = NULL;
    const int type = lua_type(L, 1);
    if (type <= LUA_TNIL || type == LUA_TSTRING) {
        if (yoke_device_open(type == LUA_TSTRING ? yl_need_text(L, target, 1) : NULL, &device))
            return yl_nil_error(L, b);
        yoke_device_release(device);
    } else if (lua_isinteger(L, 1)) {
        if (device_at(lua_tointeger(L, 1), &device)) return yl_nil_error(L, b);
        yoke_device_release(device);
    } else {
        device = yl_need_device(L, target, 1);
    }
    yl_push_device(L, b, device);
    return 1;
}

/* Returns the kind at 1, or NULL if there is none. */
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
    if (kind && !available) yl_check(L, b, yoke_device_count(kind, &count)); /* is it a kind? */
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
    if (lua_isinteger(L, 1)) { /* an index never means the CPU */
        const lua_Integer index = lua_tointeger(L, 1);
        const int32_t place = index < 0 || index > INT32_MAX ? -1 : (int32_t)index;
        yl_check(L, b, yoke_accelerator_get(place, &device));
        yoke_device_release(device); /* stays valid: yoke/device.h */
    } else {
        device = yl_need_device(L, target, 1);
    }
    if (!device) yl_wrong_type(L, target, 1, yl_arg_types[kDevice].wanted);
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
    yl_set_functions(L, b, functions);
}
