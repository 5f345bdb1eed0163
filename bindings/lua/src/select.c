/* Choice of devices by their properties, holders of leases, switching kinds off. yoke/select.lua makes the table
 * forms. */
#define _POSIX_C_SOURCE 200809L
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/handles.h"

#include "yoke/device.h"
#include "yoke/select.h"

#include <time.h>

/* Releases a handle. The handle exists while its texts are copied, so that an error cannot leak the object. */
static void release_explanation(void *explanation)
{
    yoke_explanation_release(explanation);
}

static const YlClass kExplanation = {"yoke.explanation", "an explanation", NULL,
                                     release_explanation, 0};

#define MOST_DEVICES 256

/* Implements _select(spec[, n]): returns a list of devices, or nil and why not. */
static int select_devices(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *spec = yl_string_arg(L, b, 1, "select", "spec");
    const Target target = {b, "select", "n"};
    const int is_counted = !lua_isnoneornil(L, 2);
    if (is_counted && !lua_isinteger(L, 2)) yl_wrong_type(L, target, 2, "a whole number");
    const lua_Integer n = is_counted ? lua_tointeger(L, 2) : 1;
    yoke_device *devices[MOST_DEVICES];
    int32_t count = 0;
    if (n < 1 || n > MOST_DEVICES)
        return yl_raise(L, b, YOKE_E_VALUE, "select", "argument 'n' is %I; give 1 to %d", n,
                        MOST_DEVICES);
    if (yoke_select(spec, is_counted ? (int32_t)n : 0, devices, MOST_DEVICES, &count))
        return yl_nil_error(L, b);
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_device_release(devices[i]);
        yl_push_device(L, b, devices[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements _pause(seconds): sleeps for at most a second; a signal ends the sleep early. */
static int pause_a_while(lua_State *L)
{
    const lua_Number asked = luaL_checknumber(L, 1);
    const lua_Number seconds = asked > 0.999 ? 0.999 : asked > 0 ? asked : 0;
    const struct timespec length = {0, (long)(seconds * 1e9)};
    nanosleep(&length, NULL);
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

/* Implements yoke.explain(spec): returns every device with its verdict. */
static int explain(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "explain", 0, 1);
    const char *spec = lua_isnoneornil(L, 1) ? NULL : yl_string_arg(L, b, 1, "explain", "spec");
    yoke_explanation **box = yl_push_handle(L, &kExplanation);
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

void yl_open_select(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"_select", select_devices},
                                         {"_pause", pause_a_while},
                                         {"explain", explain},
                                         {"lease_holder", lease_holder},
                                         {"disable", disable},
                                         {"enable", enable},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kExplanation, NULL, NULL);
}
