/* Trees of yoke/state.h, which yoke/state.lua makes of tables and tables of; save, load and load_info; work that goes
 * on, of yoke/work.h. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/runtime/poll.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/handles.h"
#include "bindings/lua/src/values/pressure.h"

#include <stdlib.h>
#include <string.h>

static yoke_state *push_node(lua_State *L, Binding *b)
{
    yoke_state **box = yl_push_state(L);
    yl_check(L, b, yoke_state_create(box));
    return *box;
}

static void set_number(lua_State *L, Binding *b, yoke_state *node)
{
    if (lua_isinteger(L, 1))
        yl_check(L, b, yoke_state_set_int(node, "", lua_tointeger(L, 1)));
    else
        yl_check(L, b, yoke_state_set_float(node, "", lua_tonumber(L, 1)));
}

/* Implements state(value, call, path): returns a node of a plain value or a tensor; nothing for any other value. */
static int state_of_value(lua_State *L)
{
    Binding *b = yl_binding(L);
    size_t length = 0;
    lua_settop(L, 3);
    yoke_state *node = push_node(L, b);
    switch (lua_type(L, 1)) {
        case LUA_TNIL:
            return 1;
        case LUA_TBOOLEAN:
            yl_check(L, b, yoke_state_set_bool(node, "", lua_toboolean(L, 1)));
            return 1;
        case LUA_TNUMBER:
            set_number(L, b, node);
            return 1;
        case LUA_TSTRING: {
            const char *text = lua_tolstring(L, 1, &length);
            if (yoke_state_set_string(node, "", text, (int64_t)length))
                return yl_raise(
                    L, b, YOKE_E_VALUE, luaL_checkstring(L, 2),
                    "%s is a string that is not UTF-8; store bytes in a tensor of dtype uint8",
                    luaL_checkstring(L, 3));
            return 1;
        }
        default:
            break;
    }
    if (!yl_test_tensor(L, b, 1)) return 0;
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, luaL_checkstring(L, 2), luaL_checkstring(L, 3));
    yl_check(L, b, yoke_state_set_tensor(node, "", tensor));
    return 1;
}

/* Implements state_list(is_tuple): returns a node of an empty list. */
static int state_list(lua_State *L)
{
    Binding *b = yl_binding(L);
    lua_settop(L, 1);
    yl_check(L, b, yoke_state_set_list(push_node(L, b), "", lua_toboolean(L, 1)));
    return 1;
}

static int state_dict(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_state_set_dict(push_node(L, b), ""));
    return 1;
}

/* Implements node:append(child): returns false if the tree would be too deep, else true. */
static int append(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *child = yl_need_state(L, b, 2, "append", "value");
    const yoke_status status = yoke_state_append(yl_need_self(L, &yl_state_class, "append"), child);
    if (status != YOKE_E_VALUE) yl_check(L, b, status);
    lua_pushboolean(L, status == YOKE_OK);
    return 1;
}

/* Implements node:put(key, child): returns false if the tree would be too deep, or the key is a string without valid
 * UTF-8; else true. */
static int put(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state_key key = {.struct_size = sizeof key};
    size_t length = 0;
    key.is_int = lua_isinteger(L, 2);
    if (key.is_int)
        key.number = lua_tointeger(L, 2);
    else
        key.text = luaL_checklstring(L, 2, &length);
    key.length = (int64_t)length;
    yoke_state *child = yl_need_state(L, b, 3, "put", "value");
    const yoke_status status = yoke_state_put(yl_need_self(L, &yl_state_class, "put"), &key, child);
    if (status != YOKE_E_VALUE) yl_check(L, b, status);
    lua_pushboolean(L, status == YOKE_OK);
    return 1;
}

static void push_tensor(lua_State *L, Binding *b, yoke_state *node)
{
    yoke_tensor **box = yl_new_tensor(L, b);
    yl_check(L, b, yoke_state_get_tensor(node, "", box));
    yl_count(L, b, *box, NULL);
}

/* Implements node:value(): returns "none", "list", "tuple", "dict"; "tensor", a tensor and its address; or "plain"
 * and the value. */
static int value(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *node = yl_need_self(L, &yl_state_class, "value");
    int32_t truth = 0;
    int64_t whole = 0, length = 0;
    double number = 0;
    const char *text = NULL;
    const int32_t kind = yoke_state_kind(node, "");
    lua_pushstring(L, kind == YOKE_STATE_NONE     ? "none"
                      : kind == YOKE_STATE_TENSOR ? "tensor"
                      : kind == YOKE_STATE_DICT   ? "dict"
                      : kind != YOKE_STATE_LIST   ? "plain"
                      : yoke_state_is_tuple(node) ? "tuple"
                                                  : "list");
    switch (kind) {
        case YOKE_STATE_BOOL:
            yl_check(L, b, yoke_state_get_bool(node, "", &truth));
            lua_pushboolean(L, truth);
            return 2;
        case YOKE_STATE_INT:
            yl_check(L, b, yoke_state_get_int(node, "", &whole));
            lua_pushinteger(L, whole);
            return 2;
        case YOKE_STATE_FLOAT:
            yl_check(L, b, yoke_state_get_float(node, "", &number));
            lua_pushnumber(L, number);
            return 2;
        case YOKE_STATE_STRING:
            yl_check(L, b, yoke_state_get_string(node, "", &text, &length));
            lua_pushlstring(L, text, (size_t)length);
            return 2;
        case YOKE_STATE_TENSOR:
            push_tensor(L, b, node);
            lua_pushlightuserdata(L, *yl_test_tensor(L, b, -1));
            return 3;
        default:
            return 1;
    }
}

/* Implements #node: returns the number of entries. */
static int count(lua_State *L)
{
    lua_pushinteger(L, yoke_state_count(yl_need_self(L, &yl_state_class, "count")));
    return 1;
}

/* Implements node:entry(i): returns key and child; i counts from 0. */
static int entry(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state_key key = {.struct_size = sizeof key};
    yoke_state *node = yl_need_self(L, &yl_state_class, "entry");
    const int64_t index = yl_int_arg(L, b, 2, "entry", "index");
    yoke_state **box = yl_push_state(L);
    yl_check(L, b, yoke_state_entry(node, index, &key, box));
    if (key.is_int)
        lua_pushinteger(L, key.number);
    else
        lua_pushlstring(L, key.text, (size_t)key.length);
    lua_insert(L, -2);
    return 2;
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

/* Returns the text of a number of bytes, with or without a unit; the text stays on the stack. */
static const char *max_shard_arg(lua_State *L, Binding *b, int index)
{
    if (!lua_isinteger(L, index)) return yl_string_arg(L, b, index, "save", "max_shard");
    return luaL_tolstring(L, index, NULL);
}

/* Implements save(path, node, metadata, non_blocking, max_shard): returns the work, or nil and why the state cannot
 * be saved. */
static int save(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *path = yl_string_arg(L, b, 1, "save", "path");
    yoke_save_options options = {.struct_size = sizeof options};
    yoke_state *node = yl_need_state(L, b, 2, "save", "state");
    if (!lua_isnoneornil(L, 3)) options.metadata = yl_need_state(L, b, 3, "save", "metadata");
    options.non_blocking = lua_toboolean(L, 4);
    if (!lua_isnoneornil(L, 5)) options.max_shard = max_shard_arg(L, b, 5);
    yoke_work **box = yl_push_work(L);
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_save(path, node, &options, box);
    yl_leave(outer);
    if (status == YOKE_E_IO) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

/* Names of the wanted tensors, in order, for C to search without a call of Lua. */
typedef struct Names {
    size_t count;
    const char *items[];
} Names;

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int32_t is_wanted(void *user, const char *name)
{
    const Names *names = user;
    return bsearch(&name, names->items, names->count, sizeof *names->items, compare_names) != NULL;
}

/* Returns the sorted names of the list at `index` in memory that it pushes; the list holds the strings. */
static Names *push_names(lua_State *L, int index)
{
    const size_t length = lua_rawlen(L, index);
    Names *names = lua_newuserdatauv(L, sizeof *names + length * sizeof *names->items, 0);
    names->count = length;
    for (size_t i = 0; i < length; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        names->items[i] = luaL_checkstring(L, -1);
    }
    qsort(names->items, length, sizeof *names->items, compare_names);
    return names;
}

/* Implements load(path, device, copy, dtype, prefix, names): returns a node, or nil and why the file cannot be
 * loaded. */
static int load(lua_State *L)
{
    Binding *b = yl_binding(L);
    lua_settop(L, 6);
    yoke_load_options options = {.struct_size = sizeof options};
    const char *path = yl_string_arg(L, b, 1, "load", "path");
    options.device = yl_need_device(L, (Target){b, "load", "device"}, 2);
    options.copy = lua_toboolean(L, 3);
    options.dtype = yl_need_dtype(L, (Target){b, "load", "dtype"}, 4);
    if (!lua_isnil(L, 5)) options.prefix = yl_string_arg(L, b, 5, "load", "names");
    if (!lua_isnil(L, 6)) {
        options.wanted = is_wanted;
        options.user = push_names(L, 6);
    }
    yoke_state **box = yl_push_state(L);
    lua_State *const relief = yl_begin_relief(L);
    const Modes outer = yl_enter(L, b);
    yoke_status status = yoke_load(path, &options, box);
    yl_leave(outer);
    yl_end_relief(relief);
    if (status == YOKE_E_IO || status == YOKE_E_CHECKPOINT) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

static int load_info(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *path = yl_string_arg(L, b, 1, "load_info", "path");
    yoke_state **box = yl_push_state(L);
    const yoke_status status = yoke_load_info(path, box);
    if (status == YOKE_E_IO || status == YOKE_E_CHECKPOINT) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

/* Implements check_schedule(node, groups): raises if the node is no state of a schedule for so many groups. */
static int check_schedule(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *node = yl_need_state(L, b, 1, "load_state_dict", "dict");
    yl_check(L, b, yoke_schedule_check(node, yl_int_arg(L, b, 2, "load_state_dict", "groups")));
    return 0;
}

/* ---- Work ---------------------------------------------------------------------------------------------------- */

/* Waits for the work at 1, runs due callbacks meanwhile, and returns the status. A timeout below 0 means no limit. A
 * callback may close the work. */
static yoke_status wait_polling(lua_State *L, Binding *b, double timeout)
{
    const double slice = 0.1; /* seconds between two checks for due callbacks */
    yoke_status (*const wait)(yoke_work *, double) =
        timeout < 0 ? yoke_work_follow : yoke_work_wait;
    for (;; yl_run_due(L, b), yl_let_hook_run(L)) {
        yoke_work *work = yl_need_self(L, &yl_work_class, "wait");
        const int is_last = timeout >= 0 && timeout <= slice;
        yoke_status status = wait(work, is_last ? timeout : slice);
        /* The work may have ended since, even with a TIMEOUT of its own. */
        if (status == YOKE_E_TIMEOUT && yoke_work_done(work)) return wait(work, 0);
        if (status != YOKE_E_TIMEOUT || is_last) return status;
        if (timeout >= 0) timeout -= slice;
    }
}

/* Implements work:wait([timeout]): returns true, or nil and the work's error, or nil and a timeout if the work goes
 * on. */
static int wait_for_work(lua_State *L)
{
    Binding *b = yl_binding(L);
    double timeout = -1;
    yl_need_self(L, &yl_work_class, "wait");
    if (!lua_isnoneornil(L, 2)) {
        timeout = yl_number_arg(L, b, 2, "wait", "timeout");
        if (!(timeout >= 0))
            return yl_raise(L, b, YOKE_E_VALUE, "wait",
                            "argument 'timeout' is %f; it takes seconds, of at least 0", timeout);
    }
    if (wait_polling(L, b, timeout)) return yl_nil_error(L, b);
    lua_pushboolean(L, 1);
    return 1;
}

static int work_done(lua_State *L)
{
    lua_pushboolean(L, yoke_work_done(yl_need_self(L, &yl_work_class, "done")));
    return 1;
}

/* Implements work:progress(): returns the bytes done, and the bytes in all. */
static int work_progress(lua_State *L)
{
    Binding *b = yl_binding(L);
    int64_t bytes = 0, of = 0;
    yl_check(L, b, yoke_work_progress(yl_need_self(L, &yl_work_class, "progress"), &bytes, &of));
    lua_pushinteger(L, bytes);
    lua_pushinteger(L, of);
    return 2;
}

void yl_open_state(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"state", state_of_value},
                                         {"state_list", state_list},
                                         {"state_dict", state_dict},
                                         {"_save", save},
                                         {"_load", load},
                                         {"_load_info", load_info},
                                         {"_check_schedule", check_schedule},
                                         {NULL, NULL}};
    static const luaL_Reg state_methods[] = {{"append", append}, {"put", put},     {"value", value},
                                             {"count", count},   {"entry", entry}, {NULL, NULL}};
    static const luaL_Reg work_methods[] = {
        {"wait", wait_for_work}, {"done", work_done}, {"progress", work_progress}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &yl_state_class, state_methods, NULL);
    yl_open_class(L, b, &yl_work_class, work_methods, NULL);
}
