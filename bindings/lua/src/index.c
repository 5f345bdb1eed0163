/*
 * Indexing: x.name, x[i], x[tensor], x[{…}] and x:index(…), read and, but for the last, assigned. Items are integers,
 * {first, last, step}, "...", yoke.newaxis, integer tensors, masks and booleans; a table between the brackets
 * holds several of them.
 */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/other_names.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/pressure.h"

enum { kMostItems = 2 * YOKE_MAX_NDIM + 1 };

/* Access to a tensor: a read if `out` is set, else a write of `values`, else a fill with `number`. */
typedef struct Access {
    yoke_tensor *tensor;
    yoke_index items[kMostItems];
    int64_t count;
    yoke_tensor **out;
    yoke_tensor *values;
    yoke_scalar number;
} Access;

static yoke_status attempt(lua_State *L, Binding *b, const Access *access)
{
    const Modes outer = yl_enter(L, b);
    const yoke_index *items = access->items;
    const yoke_status status =
        access->out ? yoke_tensor_index(access->tensor, items, access->count, access->out)
        : access->values
            ? yoke_tensor_index_put(access->tensor, items, access->count, access->values)
            : yoke_tensor_index_fill(access->tensor, items, access->count, &access->number);
    yl_leave(outer);
    return status;
}

/* Runs the access. If memory is short, runs it once more with relief, which may close its tensors. */
static void perform(lua_State *L, Binding *b, Access *access)
{
    yoke_status status = attempt(L, b, access);
    if (status == YOKE_E_OOM) {
        yoke_tensor_retain(access->tensor);
        yoke_tensor_retain(access->values);
        for (int64_t i = 0; i < access->count; ++i) yoke_tensor_retain(access->items[i].tensor);
        lua_State *const outer = yl_begin_relief(L);
        status = attempt(L, b, access);
        yl_end_relief(outer);
        for (int64_t i = 0; i < access->count; ++i) yoke_tensor_release(access->items[i].tensor);
        yoke_tensor_release(access->values);
        yoke_tensor_release(access->tensor);
        access->tensor = NULL; /* may be gone by now */
    }
    yl_check(L, b, status);
}

/* Raises for an index behind the last element, where counting from 1 ends: a loop of the script's, or ipairs(x),
 * which began at the second element, or at none. */
static void refuse_end(lua_State *L, Binding *b, int64_t position, int64_t length)
{
    yl_raise(
        L, b, YOKE_E_INDEX, "index",
        "index %I is out of range for axis 0 of length %I: indices of a tensor count from 0, so that ipairs(x) skips the first element; write for i = 0, #x - 1 do … x[i] … end, or for _, row in ipairs(x:unbind()) do … end",
        (lua_Integer)position, (lua_Integer)length);
}

static void push_item(lua_State *L, Binding *b, int tensor, int64_t position)
{
    const yoke_index item = {YOKE_INDEX_INT, 0, position, 0, 0, NULL};
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *source = yl_tensor_arg(L, b, tensor, "index", "self");
    const int32_t ndim = yoke_tensor_ndim(source);
    const int64_t length = ndim ? yoke_tensor_shape(source)[0] : 0;
    if (ndim && (position == length || (position == 1 && length == 0)))
        refuse_end(L, b, position, length);
    if (ndim == 0 && position == 1)
        yl_raise(
            L, b, YOKE_E_INDEX, "index",
            "a tensor without axes takes no index, as in x[1] or ipairs(x); x:item() gives its value");
    YL_CALL(L, b, source, yoke_tensor_index(source, &item, 1, box));
}

/* Reads an end or the step of a slice: entry `place` of the table at `index`. Returns 0, or the flag if the entry is
 * missing. */
static int32_t slice_part(lua_State *L, Target target, int index, int place, int32_t flag,
                          int64_t *value)
{
    int exact = 0;
    lua_rawgeti(L, index, place);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        return flag;
    }
    if (lua_type(L, -1) == LUA_TNUMBER) *value = lua_tointegerx(L, -1, &exact);
    if (!exact) yl_wrong_type(L, target, -1, "integers in {first, last, step}, or false for none");
    lua_pop(L, 1);
    return 0;
}

static yoke_index read_item(lua_State *L, Target target, int index)
{
    yoke_index item = {YOKE_INDEX_INT, 0, 0, 0, 0, NULL};
    const int type = lua_type(L, index);
    const char *text = type == LUA_TSTRING ? yl_key(L, index) : "";
    if (lua_isinteger(L, index)) {
        item.start = lua_tointeger(L, index);
    } else if (type == LUA_TTABLE) {
        item.kind = YOKE_INDEX_SLICE;
        item.flags = slice_part(L, target, index, 1, YOKE_INDEX_NO_START, &item.start) |
                     slice_part(L, target, index, 2, YOKE_INDEX_NO_STOP, &item.stop) |
                     slice_part(L, target, index, 3, YOKE_INDEX_NO_STEP, &item.step);
    } else if (type == LUA_TBOOLEAN) {
        item.kind = YOKE_INDEX_BOOL;
        item.start = lua_toboolean(L, index);
    } else if (yl_test_tensor(L, target.binding, index)) {
        item.kind = YOKE_INDEX_TENSOR;
        item.tensor = yl_need_tensor(L, target, index);
    } else if (!strcmp(text, "...")) {
        item.kind = YOKE_INDEX_ELLIPSIS;
    } else if (!strcmp(text, "newaxis")) {
        item.kind = YOKE_INDEX_NEW_AXIS;
    } else {
        yl_wrong_type(
            L, target, index,
            "an integer, {first, last, step}, \"...\", yoke.newaxis or a tensor of integers or booleans");
    }
    return item;
}

static void need_room(lua_State *L, Binding *b, lua_Unsigned count)
{
    if (count > kMostItems)
        yl_raise(L, b, YOKE_E_INDEX, "index", "%I items; a tensor has at most %d axes",
                 (lua_Integer)count, YOKE_MAX_NDIM);
}

/* Reads the key between brackets at `index`: an item, or a table of items. Allocates nothing, so no tensor of the key
 * is closed before its use. */
static void read_key(lua_State *L, Binding *b, int index, Access *access)
{
    const Target target = {b, "index", "item"};
    access->count = 1;
    if (lua_type(L, index) != LUA_TTABLE) {
        access->items[0] = read_item(L, target, index);
        return;
    }
    const lua_Unsigned count = lua_rawlen(L, index);
    need_room(L, b, count);
    luaL_checkstack(L, 3, "no Lua stack for an index");
    for (lua_Unsigned i = 0; i < count; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        access->items[i] = read_item(L, target, lua_gettop(L));
    }
    access->count = (int64_t)count;
}

/* Pushes the part of the tensor at 1 given by `access`; its result stands on top already. */
static void read_part(lua_State *L, Binding *b, Access *access)
{
    access->tensor = yl_tensor_arg(L, b, 1, "index", "self");
    perform(L, b, access);
    yl_count(L, b, *access->out, access->tensor);
}

static void push_part(lua_State *L, Binding *b)
{
    Access access = {.out = yl_new_tensor(L, b)};
    read_key(L, b, 2, &access);
    read_part(L, b, &access);
}

static void assign_part(lua_State *L, Binding *b)
{
    const Target value = {b, "index", "value"};
    Access access = {.out = NULL};
    Lists lists = {.used = 0};
    if (lua_isnil(L, 3)) yl_wrong_type(L, value, 3, "a tensor, a number or a boolean");
    const ArgType type = lua_isboolean(L, 3) ? kScalar : kOperand;
    const yoke_arg given = yl_convert(L, value, type, 3, &lists);
    if (given.kind == YOKE_ARG_TENSOR)
        access.values = given.v.tensor;
    else
        access.number = given;
    read_key(L, b, 2, &access);
    access.tensor = yl_tensor_arg(L, b, 1, "index", "self");
    perform(L, b, &access);
}

/* Implements x:index(item, …): returns the part of x given by the items. */
static int index_by_items(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "index", "item"};
    const int count = lua_gettop(L) - 1;
    need_room(L, b, count > 0 ? (lua_Unsigned)count : 0);
    Access access = {.out = yl_new_tensor(L, b), .count = count};
    for (int i = 0; i < count; ++i) access.items[i] = read_item(L, target, i + 2);
    read_part(L, b, &access);
    return 1;
}

/* ---- x.name and x[key] ------------------------------------------------------------------------------ */

static int no_such_field(lua_State *L, Binding *b, const char *call)
{
    const char *name = yl_show(L, 2);
    const char *advice = yl_foreign_name("tensor", name);
    return yl_raise(L, b, YOKE_E_VALUE, call, "a tensor has no field or method '%s'%s%s", name,
                    advice ? "; " : "", advice ? advice : "");
}

/* Implements x.name, x:name() and x[i], x[tensor], x[{…}]. Upvalues: the Binding, the table of methods. */
static int tensor_index(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (lua_type(L, 2) == LUA_TSTRING) {
        lua_pushvalue(L, 2);
        const int type = lua_rawget(L, lua_upvalueindex(2));
        if (type == LUA_TFUNCTION) return 1;
        if (type != LUA_TLIGHTUSERDATA) return no_such_field(L, b, "tensor");
        const YlField *field = lua_touserdata(L, -1);
        field->push(L, b, yl_tensor_arg(L, b, 1, field->name, "self"));
        return 1;
    }
    if (lua_isinteger(L, 2)) {
        push_item(L, b, 1, lua_tointeger(L, 2));
        return 1;
    }
    push_part(L, b);
    return 1;
}

/* Implements x[i], x[tensor] or x[{…}] = value (a tensor, a number or a boolean), x.grad = tensor or nil,
 * x.data = tensor, and x.requires_grad = boolean. Raises for other names. */
static int tensor_newindex(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (lua_type(L, 2) != LUA_TSTRING) {
        assign_part(L, b);
        return 0;
    }
    const char *name = yl_key(L, 2);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, name, "self");
    if (!strcmp(name, "requires_grad")) {
        yl_check(L, b, yoke_tensor_set_requires_grad(tensor, yl_bool_arg(L, b, 3, name, name)));
    } else if (!strcmp(name, "grad")) {
        yoke_tensor *grad = lua_isnil(L, 3) ? NULL : yl_tensor_arg(L, b, 3, name, "grad");
        yl_check(L, b, yoke_tensor_set_grad(tensor, grad));
    } else if (!strcmp(name, "data")) {
        yl_check(L, b, yoke_tensor_set_data(tensor, yl_tensor_arg(L, b, 3, name, "data")));
    } else {
        return yl_raise(L, b, YOKE_E_VALUE, "tensor",
                        "'%s' cannot be set; data, grad and requires_grad can", name);
    }
    return 0;
}

void yl_open_index(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"index", index_by_items}, {NULL, NULL}};
    static const luaL_Reg events[] = {
        {"__index", tensor_index}, {"__newindex", tensor_newindex}, {NULL, NULL}};
    lua_pushliteral(L, "newaxis");
    lua_setfield(L, -2, "newaxis");
    yl_set_tensor_methods(L, b, methods);
    yl_set_tensor_events(L, b, events);
}
