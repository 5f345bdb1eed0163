/* Fields of a device: its name, memory, place, measurements and lease. */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/values/convert.h"

static const YlClass kLease = {"yoke.Lease", "a lease", NULL, NULL, 0};

static yoke_device *self_device(lua_State *L, const char *call)
{
    return yl_need_self(L, &yl_device_class, call);
}

static yoke_card_info measured(lua_State *L, Binding *b, yoke_device *device)
{
    yoke_card_info card = {.struct_size = sizeof card};
    yl_check(L, b, yoke_device_sample(device, &card));
    return card;
}

/* ---- Leases ------------------------------------------------------------------------------------------ */

static void push_lease(lua_State *L, yoke_device *device)
{
    yoke_device **box = yl_push_handle(L, &kLease);
    *box = device; /* devices live as long as the library */
}

/* Implements device:take_lease(): returns the lease, or nil and why not. */
static int device_take_lease(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = self_device(L, "take_lease");
    if (yoke_device_lease(device)) return yl_nil_error(L, b);
    push_lease(L, device);
    return 1;
}

/* Implements lease:release(), and the end of a lease declared <close>. */
static int lease_release(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_device_release_lease(yl_need_self(L, &kLease, "release")));
    return 0;
}

/* ---- Methods ----------------------------------------------------------------------------------------- */

/* Implements device:sample(): returns a table with the measurements known now. */
static int device_sample(lua_State *L)
{
    Binding *b = yl_binding(L);
    const yoke_card_info card = measured(L, b, self_device(L, "sample"));
    lua_createtable(L, 0, 9);
    yl_set_known_number(L, "utilization", card.utilization);
    yl_set_known_integer(L, "memory_used", card.memory_used);
    yl_set_known_integer(L, "memory_free", card.memory_free);
    yl_set_known_integer(L, "memory_total", card.memory_total);
    yl_set_known_number(L, "watts", card.power);
    yl_set_known_number(L, "temperature", card.temperature);
    yl_set_known_number(L, "sm_clock", card.sm_clock);
    yl_set_known_number(L, "memory_clock", card.memory_clock);
    yl_set_known_integer(L, "processes", card.process_count);
    return 1;
}

static int device_tostring(lua_State *L)
{
    lua_pushstring(L, yoke_device_spec(self_device(L, "tostring")));
    return 1;
}

static int device_synchronize(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_device_synchronize(self_device(L, "synchronize")));
    return 0;
}

/* Implements device:supports(dtype, feature = "compute"): returns whether the device supports both together. */
static int device_supports(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = self_device(L, "supports");
    const Target target = {b, "supports", "dtype"};
    const yoke_dtype dtype = yl_need_dtype(L, target, 2);
    const char *feature = "compute";
    int32_t has = 0;
    if (!lua_isnoneornil(L, 3)) feature = yl_string_arg(L, b, 3, "supports", "feature");
    yl_check(L, b, yoke_device_supports(device, dtype, feature, &has));
    lua_pushboolean(L, has);
    return 1;
}

/* ---- Fields ------------------------------------------------------------------------------------------ */

static void push_link(lua_State *L, const yoke_card_info *card)
{
    const int generation =
        card->link_generation_max > 0 ? card->link_generation_max : card->link_generation;
    const int width = card->link_width > 0 ? card->link_width : card->link_width_max;
    if (generation > 0 && width > 0)
        lua_pushfstring(L, "PCIe %d.0 x%d", generation, width);
    else
        lua_pushliteral(L, "");
}

/* Pushes a fact from the backend; returns 0 if `name` is no such fact. */
static int push_identity(lua_State *L, Binding *b, yoke_device *device, const char *name)
{
    int64_t free_bytes = 0, total = 0;
    if (!strcmp(name, "kind") || !strcmp(name, "type")) {
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
    } else {
        return 0;
    }
    return 1;
}

/* Pushes a fact of its card from the inventory; returns 0 if `name` is no such fact. */
static int push_property(lua_State *L, Binding *b, yoke_device *device, const char *name)
{
    yoke_card_info card = {.struct_size = sizeof card};
    yl_check(L, b, yoke_device_card(device, &card));
    if (!strcmp(name, "uuid")) {
        lua_pushstring(L, card.uuid);
    } else if (!strcmp(name, "pci")) {
        lua_pushstring(L, card.pci);
    } else if (!strcmp(name, "multiprocessors")) {
        lua_pushnil(L);
        if (card.multiprocessors >= 0) lua_pushinteger(L, card.multiprocessors);
    } else if (!strcmp(name, "compute_capability")) {
        lua_pushnil(L);
        if (card.cc_major >= 0) lua_pushfstring(L, "%d.%d", card.cc_major, card.cc_minor);
    } else {
        return 0;
    }
    return 1;
}

/* Pushes a current measurement or the lease; returns 0 if `name` is neither. */
static int push_condition(lua_State *L, Binding *b, yoke_device *device, const char *name)
{
    if (!strcmp(name, "lease")) {
        lua_pushnil(L);
        if (yoke_device_is_leased(device)) push_lease(L, device);
    } else if (!strcmp(name, "is_egpu")) {
        lua_pushboolean(L, measured(L, b, device).is_egpu == 1);
    } else if (!strcmp(name, "link")) {
        const yoke_card_info card = measured(L, b, device);
        push_link(L, &card);
    } else {
        return 0;
    }
    return 1;
}

/* Implements device.name and device:name(): pushes a method or a field. Raises for other names. Upvalues: the
 * Binding, the table of methods. */
static int device_index(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = self_device(L, "device");
    const char *name = yl_key(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
    if (push_identity(L, b, device, name) || push_property(L, b, device, name) ||
        push_condition(L, b, device, name))
        return 1;
    return yl_raise(L, b, YOKE_E_VALUE, "device", "a device has no field or method '%s'",
                    yl_show(L, 2));
}

void yl_open_device_fields(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"sample", device_sample},
                                       {"take_lease", device_take_lease},
                                       {"synchronize", device_synchronize},
                                       {"supports", device_supports},
                                       {NULL, NULL}};
    static const luaL_Reg events[] = {
        {"__index", device_index}, {"__tostring", device_tostring}, {NULL, NULL}};
    static const luaL_Reg lease[] = {{"release", lease_release}, {NULL, NULL}};
    static const luaL_Reg end_of_lease[] = {{"__close", lease_release}, {NULL, NULL}};
    yl_open_class(L, b, &yl_device_class, methods, events);
    yl_open_class(L, b, &kLease, lease, end_of_lease);
}
