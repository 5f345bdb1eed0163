/* Choosing devices by what they must be, leases, switching kinds off, and what a device tells of itself. The table forms
 * are made in yoke/select.lua. */
#define _POSIX_C_SOURCE 200809L
#include "bindings/lua/src/convert.h"

#include "yoke/device.h"
#include "yoke/select.h"

#include <string.h>
#include <time.h>

static const char kExplanationName[] = "yoke.explanation";
static const char kLeaseName[] = "yoke.Lease";

static yoke_card_info measured(lua_State *L, Binding *b, yoke_device *device)
{
    yoke_card_info card = {.struct_size = sizeof card};
    yl_check(L, b, yoke_device_sample(device, &card));
    return card;
}

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

static yoke_device *self_device(lua_State *L, Binding *b, const char *call)
{
    yoke_device **box = luaL_testudata(L, 1, "yoke.Device");
    const Target target = {b, call, "self"};
    if (!box || !*box) yl_wrong_type(L, target, 1, "a device");
    return *box;
}

/* device:sample() */
static int device_sample(lua_State *L)
{
    Binding *b = yl_binding(L);
    const yoke_card_info card = measured(L, b, self_device(L, b, "sample"));
    lua_createtable(L, 0, 9);
    yl_set_real(L, "utilization", card.utilization);
    yl_set_int(L, "memory_used", card.memory_used);
    yl_set_int(L, "memory_free", card.memory_free);
    yl_set_int(L, "memory_total", card.memory_total);
    yl_set_real(L, "watts", card.power);
    yl_set_real(L, "temperature", card.temperature);
    yl_set_real(L, "sm_clock", card.sm_clock);
    yl_set_real(L, "memory_clock", card.memory_clock);
    yl_set_int(L, "processes", card.process_count);
    return 1;
}

static void push_lease(lua_State *L, yoke_device *device)
{
    yoke_device **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = device; /* devices live as long as the library */
    luaL_setmetatable(L, kLeaseName);
}

/* device:take_lease(): the lease, or nil and why not. */
static int device_take_lease(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *device = self_device(L, b, "take_lease");
    if (yoke_device_lease(device)) return yl_nil_error(L, b);
    push_lease(L, device);
    return 1;
}

/* lease:release(), and what ends a lease that was declared <close>. */
static int lease_release(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device **box = luaL_testudata(L, 1, kLeaseName);
    const Target target = {b, "release", "self"};
    if (!box) yl_wrong_type(L, target, 1, "a lease");
    yl_check(L, b, yoke_device_release_lease(*box));
    return 0;
}

static void push_method(lua_State *L, Binding *b, lua_CFunction function)
{
    lua_pushlightuserdata(L, b);
    lua_pushcclosure(L, function, 1);
}

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

/* A field of a device that tells what it is or can be chosen by; 0 if there is none of that name. */
int yl_push_device_field(lua_State *L, Binding *b, yoke_device *device, const char *name)
{
    if (push_property(L, b, device, name)) return 1;
    if (!strcmp(name, "sample")) {
        push_method(L, b, device_sample);
    } else if (!strcmp(name, "take_lease")) {
        push_method(L, b, device_take_lease);
    } else if (!strcmp(name, "lease")) {
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

#define MOST_DEVICES 256

/* _select(spec, n): a list of devices, or nil and why not. */
static int select_devices(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *spec = yl_string_arg(L, b, 1, "select", "spec");
    const Target target = {b, "select", "n"};
    if (!lua_isinteger(L, 2)) yl_wrong_type(L, target, 2, "a whole number");
    const lua_Integer n = lua_tointeger(L, 2);
    yoke_device *devices[MOST_DEVICES];
    int32_t count = 0;
    if (n < 1 || n > MOST_DEVICES)
        return yl_raise(L, b, YOKE_E_VALUE, "select", "argument 'n' is %I; give 1 to %d", n,
                        MOST_DEVICES);
    if (yoke_select(spec, (int32_t)n, devices, MOST_DEVICES, &count)) return yl_nil_error(L, b);
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_device_release(devices[i]);
        yl_push_device(L, b, devices[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* _pause(seconds): a sleep of at most a second, which a signal cuts short. */
static int pause_a_while(lua_State *L)
{
    const lua_Number asked = luaL_checknumber(L, 1);
    const lua_Number seconds = asked > 0.999 ? 0.999 : asked > 0 ? asked : 0;
    const struct timespec length = {0, (long)(seconds * 1e9)};
    nanosleep(&length, NULL);
    return 0;
}

/* An explanation is a userdata while its texts are copied, so that an error cannot leak it. */
static int explanation_gc(lua_State *L)
{
    yoke_explanation **box = luaL_checkudata(L, 1, kExplanationName);
    yoke_explanation *explanation = *box;
    *box = NULL;
    yoke_explanation_release(explanation);
    return 0;
}

static void push_candidate(lua_State *L, Binding *b, yoke_explanation *explanation, int32_t index)
{
    yoke_candidate one = {.struct_size = sizeof one};
    yoke_card_info card = {.struct_size = sizeof card};
    yl_check(L, b, yoke_explanation_get(explanation, index, &one));
    lua_createtable(L, 0, 3);
    if (*one.device || one.card < 0) {
        lua_pushstring(L, one.device);
    } else {
        yoke_inventory *inventory = yoke_explanation_inventory(explanation);
        yl_check(L, b, yoke_inventory_card(inventory, one.card, &card));
        lua_pushfstring(L, "%s (%s)", card.name, *card.uuid ? card.uuid : card.pci);
    }
    lua_setfield(L, -2, "device");
    lua_pushboolean(L, one.accepted);
    lua_setfield(L, -2, "accepted");
    lua_pushstring(L, one.reason);
    lua_setfield(L, -2, "reason");
}

/* yoke.explain(spec): every device with its verdict. */
static int explain(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "explain", 0, 1);
    const char *spec = lua_isnoneornil(L, 1) ? NULL : yl_string_arg(L, b, 1, "explain", "spec");
    yoke_explanation **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, kExplanationName);
    yl_check(L, b, yoke_explain(spec, box));
    lua_newtable(L);
    for (int32_t i = 0, n = yoke_explanation_count(*box); i < n; ++i) {
        push_candidate(L, b, *box, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushstring(L, yoke_explanation_problem(*box));
    lua_setfield(L, -2, "problem");
    lua_pushstring(L, yoke_explanation_visible(*box));
    lua_setfield(L, -2, "visible");
    return 1;
}

static int lease_holder(lua_State *L)
{
    Binding *b = yl_binding(L);
    int32_t pid = 0;
    yl_check(L, b, yoke_lease_holder(yl_string_arg(L, b, 1, "lease_holder", "uuid"), &pid));
    lua_pushinteger(L, pid);
    return 1;
}

static int disable(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_disable(yl_string_arg(L, b, 1, "disable", "kind")));
    return 0;
}

static int enable(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_enable(yl_string_arg(L, b, 1, "enable", "kind")));
    return 0;
}

static void make_class(lua_State *L, const char *name)
{
    luaL_newmetatable(L, name);
    yl_protect(L, name);
}

void yl_open_select(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"_select", select_devices},
                                         {"_pause", pause_a_while},
                                         {"explain", explain},
                                         {"lease_holder", lease_holder},
                                         {"disable", disable},
                                         {"enable", enable},
                                         {NULL, NULL}};
    static const luaL_Reg lease[] = {{"release", lease_release}, {NULL, NULL}};
    static const luaL_Reg close[] = {{"__close", lease_release}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    make_class(L, kExplanationName);
    lua_pushcfunction(L, explanation_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    make_class(L, kLeaseName);
    yl_set_functions(L, b, close);
    lua_newtable(L);
    yl_set_functions(L, b, lease);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
