/* Inventory of the machine as tables: yoke.inventory(), yoke.topology(), yoke.catalog(). Unknown values are nil. */
#include "bindings/common/inventory_keys.h"
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/fields.h"

static const char kTopologyName[] = "yoke.Topology";

static void set_throttle(lua_State *L, uint64_t bits)
{
    lua_newtable(L);
    for (int i = 0, n = 0; yoke_throttle_names[i].name; ++i)
        if (bits & yoke_throttle_names[i].bit) {
            lua_pushstring(L, yoke_throttle_names[i].name);
            lua_rawseti(L, -2, ++n);
        }
    lua_setfield(L, -2, "throttle");
}

static void push_card(lua_State *L, const yoke_card_info *card)
{
    lua_newtable(L);
    yl_set_text(L, "kind", yoke_card_kind_name(card->kind));
    yl_set_known_bool(L, "usable", !*card->reason);
    if (card->cc_major >= 0) {
        lua_pushfstring(L, "%d.%d", card->cc_major, card->cc_minor);
        lua_setfield(L, -2, "compute_capability");
    }
    set_throttle(L, card->throttle);
#define CARD_TEXT(field) yl_set_text(L, #field, card->field);
#define CARD_INT(field) yl_set_known_integer(L, #field, card->field);
#define CARD_YES(field) yl_set_known_bool(L, #field, card->field);
#define CARD_REAL(field) yl_set_known_number(L, #field, card->field);
#include "bindings/common/inventory_fields.def"
}

/* Releases a snapshot. The snapshot is a handle, so that an error during the making of its tables cannot leak it. */
static void release_inventory(void *inventory)
{
    yoke_inventory_release(inventory);
}

static const YlClass kInventory = {"yoke.Inventory", "an inventory", NULL, release_inventory, 0};

static yoke_inventory *take(lua_State *L, Binding *b)
{
    yoke_inventory **box = yl_push_handle(L, &kInventory);
    yl_check(L, b, yoke_inventory_take(box));
    return *box;
}

static void push_processes(lua_State *L, Binding *b, yoke_inventory *inventory, int32_t card,
                           int32_t count)
{
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_card_process process = {.struct_size = sizeof process};
        yl_check(L, b, yoke_inventory_process(inventory, card, i, &process));
        lua_newtable(L);
#define PROCESS_TEXT(field) yl_set_text(L, #field, process.field);
#define PROCESS_INT(field) yl_set_known_integer(L, #field, process.field);
#define PROCESS_YES(field) yl_set_known_bool(L, #field, process.field);
#include "bindings/common/inventory_fields.def"
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_cards(lua_State *L, Binding *b, yoke_inventory *inventory)
{
    const int32_t count = yoke_inventory_count(inventory);
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_card_info card = {.struct_size = sizeof card};
        yl_check(L, b, yoke_inventory_card(inventory, i, &card));
        push_card(L, &card);
        push_processes(L, b, inventory, i, card.process_count);
        lua_setfield(L, -2, "processes");
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_networks(lua_State *L, Binding *b, yoke_inventory *inventory)
{
    const int32_t count = yoke_inventory_network_count(inventory);
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_network_card network = {.struct_size = sizeof network};
        yl_check(L, b, yoke_inventory_network(inventory, i, -1, &network, NULL));
        lua_newtable(L);
#define NETWORK_TEXT(field) yl_set_text(L, #field, network.field);
#define NETWORK_INT(field) yl_set_known_integer(L, #field, network.field);
#define NETWORK_YES(field) yl_set_known_bool(L, #field, network.field);
#define NETWORK_REAL(field) yl_set_known_number(L, #field, network.field);
#include "bindings/common/inventory_fields.def"
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_links(lua_State *L, Binding *b, yoke_inventory *inventory)
{
    const int32_t count = yoke_inventory_count(inventory);
    lua_createtable(L, count, 0);
    for (int32_t from = 0; from < count; ++from) {
        lua_createtable(L, count, 0);
        for (int32_t to = 0; to < count; ++to) {
            yoke_card_link link = {.struct_size = sizeof link};
            yl_check(L, b, yoke_inventory_link(inventory, from, to, &link));
            lua_newtable(L);
#define LINK_TEXT(field) yl_set_text(L, #field, link.field);
#define LINK_INT(field) yl_set_known_integer(L, #field, link.field);
#define LINK_YES(field) yl_set_known_bool(L, #field, link.field);
#include "bindings/common/inventory_fields.def"
            lua_rawseti(L, -2, to + 1);
        }
        lua_rawseti(L, -2, from + 1);
    }
}

/* Pushes {links =, text =}, printed as its text. */
static void push_topology(lua_State *L, Binding *b, yoke_inventory *inventory)
{
    lua_createtable(L, 0, 2);
    push_links(L, b, inventory);
    lua_setfield(L, -2, "links");
    yl_set_text(L, "text", yoke_inventory_topology(inventory));
    luaL_setmetatable(L, kTopologyName);
}

static int topology_text(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "text");
    return 1;
}

/* Implements yoke.inventory(): returns {cards =, networks =, facts =, topology =}. */
static int take_inventory(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "inventory", 0, 0);
    yoke_inventory *inventory = take(L, b);
    lua_createtable(L, 0, 4);
    push_cards(L, b, inventory);
    lua_setfield(L, -2, "cards");
    push_networks(L, b, inventory);
    lua_setfield(L, -2, "networks");
    push_topology(L, b, inventory);
    lua_setfield(L, -2, "topology");
    lua_newtable(L);
    for (const char *const *key = yoke_fact_keys; *key; ++key) {
        const char *text = "";
        yl_check(L, b, yoke_inventory_fact(inventory, *key, &text));
        yl_set_text(L, *key, text);
    }
    lua_setfield(L, -2, "facts");
    return 1;
}

/* Implements yoke.topology(): returns {links = {{…}}, text =}; print(yoke.topology()) shows the matrix. */
static int topology(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "topology", 0, 0);
    push_topology(L, b, take(L, b));
    return 1;
}

static void set_rates(lua_State *L, const yoke_catalog_card *entry)
{
    yl_set_known_number(L, "f64_rate", entry->f64_rate);
    yl_set_known_number(L, "f32_rate", entry->f32_rate);
    yl_set_known_number(L, "tf32_rate", entry->tf32_rate);
    yl_set_known_number(L, "f16_rate", entry->f16_rate);
    yl_set_known_number(L, "bf16_rate", entry->bf16_rate);
    yl_set_known_number(L, "f8_rate", entry->f8_rate);
    yl_set_known_number(L, "i8_rate", entry->i8_rate);
}

static void push_entry(lua_State *L, const yoke_catalog_card *entry)
{
    lua_newtable(L);
    yl_set_text(L, "name", entry->name);
    yl_set_text(L, "match", entry->match);
    yl_set_text(L, "source", entry->source);
    yl_set_known_integer(L, "memory", entry->memory);
    yl_set_known_number(L, "memory_bandwidth", entry->memory_bandwidth);
    yl_set_known_integer(L, "multiprocessors", entry->multiprocessors);
    lua_pushfstring(L, "%d.%d", entry->cc_major, entry->cc_minor);
    lua_setfield(L, -2, "compute_capability");
    set_rates(L, entry);
    yl_set_known_number(L, "power", entry->power);
    yl_set_known_number(L, "nvlink_bandwidth", entry->nvlink_bandwidth);
    yl_set_known_integer(L, "link_generation", entry->link_generation);
    yl_set_known_integer(L, "link_width", entry->link_width);
}

/* Implements yoke.catalog(): returns the models known to Yoke, with their makers' figures. */
static int catalog(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int32_t count = yoke_catalog_count();
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_catalog_card entry = {.struct_size = sizeof entry};
        yl_check(L, b, yoke_catalog_get(i, &entry));
        push_entry(L, &entry);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements yoke.catalog_find(name, memory): returns the model of a driver's name and total memory, or nil. */
static int catalog_find(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "catalog_find", 1, 2);
    const char *name = yl_string_arg(L, b, 1, "catalog_find", "name");
    const int64_t memory =
        lua_isnoneornil(L, 2) ? 0 : yl_int_arg(L, b, 2, "catalog_find", "memory");
    const int32_t index = yoke_catalog_find(name, memory);
    yoke_catalog_card entry = {.struct_size = sizeof entry};
    if (index < 0) {
        lua_pushnil(L);
        return 1;
    }
    yl_check(L, b, yoke_catalog_get(index, &entry));
    push_entry(L, &entry);
    return 1;
}

void yl_open_inventory(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"inventory", take_inventory},
                                         {"topology", topology},
                                         {"catalog", catalog},
                                         {"catalog_find", catalog_find},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kInventory, NULL, NULL);
    luaL_newmetatable(L, kTopologyName);
    lua_pushcfunction(L, topology_text);
    lua_setfield(L, -2, "__tostring");
    yl_protect(L, kTopologyName);
    lua_pop(L, 1);
}
