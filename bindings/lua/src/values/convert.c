#include "bindings/lua/src/values/convert.h"

#include <string.h>

yoke_dtype yl_need_dtype(lua_State *L, Target target, int index)
{
    if (lua_isnoneornil(L, index)) return YOKE_NONE;
    if (lua_type(L, index) != LUA_TSTRING)
        yl_wrong_type(L, target, index, yl_arg_types[kDtype].wanted);
    yoke_dtype dtype = YOKE_NONE;
    if (yoke_dtype_from_name(yl_need_text(L, target, index), &dtype)) {
        const size_t before = strlen("dtype_from_name: ") + strlen("argument 'name'"); /* for C */
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call, "argument '%s'%s", target.name,
                 yoke_last_error()->message + before);
    }
    return dtype;
}

/* Convert the value at `index`, which is not nil. Return 0 if no value of this type fits. */

/* Converts a number or a boolean; in an operand's place only a number, as `true + x` is a slip. */
static int to_scalar(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    const int type = lua_type(L, index);
    (void)target, (void)lists;
    if (type == LUA_TBOOLEAN) {
        value->kind = YOKE_ARG_BOOL;
        value->v.i = lua_toboolean(L, index);
    } else if (type != LUA_TNUMBER) {
        return 0;
    } else if (lua_isinteger(L, index)) {
        value->kind = YOKE_ARG_INT;
        value->v.i = lua_tointeger(L, index);
    } else {
        value->kind = YOKE_ARG_FLOAT;
        value->v.f = lua_tonumber(L, index);
    }
    return 1;
}

static int to_float(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    return lua_type(L, index) == LUA_TNUMBER && to_scalar(L, target, index, lists, value);
}

static int to_bool(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    return lua_type(L, index) == LUA_TBOOLEAN && to_scalar(L, target, index, lists, value);
}

static int to_int(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    int exact = 0;
    (void)target, (void)lists;
    if (lua_type(L, index) != LUA_TNUMBER) return 0;
    value->kind = YOKE_ARG_INT;
    value->v.i = lua_tointegerx(L, index, &exact);
    return exact;
}

static int to_tensor(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    (void)lists;
    value->kind = YOKE_ARG_TENSOR;
    value->v.tensor = yl_need_tensor(L, target, index);
    return 1;
}

static int to_operand(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    if (lua_type(L, index) == LUA_TNUMBER) return to_scalar(L, target, index, lists, value);
    return yl_test_tensor(L, target.binding, index) && to_tensor(L, target, index, lists, value);
}

static int to_dtype(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    (void)lists;
    value->kind = YOKE_ARG_INT;
    value->v.i = yl_need_dtype(L, target, index);
    return 1;
}

static int to_string(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    (void)lists;
    if (lua_type(L, index) != LUA_TSTRING) return 0;
    value->kind = YOKE_ARG_STRING;
    value->v.string = yl_need_text(L, target, index);
    return 1;
}

static int to_device(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    (void)lists;
    value->kind = YOKE_ARG_DEVICE;
    value->v.device = yl_need_device(L, target, index);
    return 1;
}

/* Reads a Generator: a table with its memory under "stream", which is false while the thread's stream is in its place.
 * The table keeps the memory. */
static int to_generator(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    (void)target, (void)lists;
    if (lua_type(L, index) != LUA_TTABLE) return 0;
    const int type = lua_getfield(L, index, "stream");
    const int is_memory = type == LUA_TUSERDATA && lua_rawlen(L, -1) == sizeof(yoke_generator);
    if (is_memory) {
        value->kind = YOKE_ARG_GENERATOR;
        value->v.generator = lua_touserdata(L, -1);
    }
    const int is_in_use = type == LUA_TBOOLEAN && !lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is_memory || is_in_use;
}

/* Reads the list of ints at `index` into its place. */
static void read_ints(lua_State *L, Target target, int index, int64_t *items, int count)
{
    for (int i = 0; i < count; ++i, lua_pop(L, 1)) {
        int exact = 0;
        lua_rawgeti(L, index, i + 1);
        if (lua_type(L, -1) == LUA_TNUMBER) items[i] = lua_tointegerx(L, -1, &exact);
        if (!exact)
            yl_raise(L, target.binding, YOKE_E_TYPE, target.call,
                     "item %I of argument '%s' is %s; it takes integers", (lua_Integer)i + 1,
                     target.name, luaL_tolstring(L, -1, NULL));
    }
}

static int to_ints(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    const int is_list = lua_type(L, index) == LUA_TTABLE;
    const lua_Unsigned count = is_list ? lua_rawlen(L, index) : 1;
    int64_t *items = lists->items + lists->used;
    if (is_list ? yl_is_keywords(L, index) : !lua_isinteger(L, index)) return 0;
    if (is_list) yl_refuse_keys(L, target, lua_absindex(L, index));
    if (count > (lua_Unsigned)(YL_MAX_INTS - lists->used))
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call,
                 "argument '%s' is a list of %I integers; a tensor has at most %d axes",
                 target.name, (lua_Integer)count, YOKE_MAX_NDIM);
    lists->used += (int)count;
    if (is_list)
        read_ints(L, target, index, items, (int)count);
    else
        items[0] = lua_tointeger(L, index);
    *value = (yoke_arg){YOKE_ARG_INTS, (int32_t)count, {.ints = items}};
    return 1;
}

static int to_floats(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    const int is_list = lua_type(L, index) == LUA_TTABLE;
    const lua_Unsigned count = is_list ? lua_rawlen(L, index) : 1;
    if (is_list ? yl_is_keywords(L, index) : lua_type(L, index) != LUA_TNUMBER) return 0;
    if (is_list) yl_refuse_keys(L, target, lua_absindex(L, index));
    if (count > YOKE_MAX_NDIM)
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call,
                 "argument '%s' is a list of %I numbers; a tensor has at most %d axes", target.name,
                 (lua_Integer)count, YOKE_MAX_NDIM);
    for (int i = 0; i < (int)count; ++i, lua_pop(L, is_list)) {
        if (is_list) lua_rawgeti(L, index, i + 1);
        const int at = is_list ? -1 : index;
        if (lua_type(L, at) != LUA_TNUMBER)
            yl_raise(L, target.binding, YOKE_E_TYPE, target.call,
                     "item %d of argument '%s' is %s; it takes numbers", i + 1, target.name,
                     luaL_tolstring(L, at, NULL));
        lists->numbers[i] = lua_tonumber(L, at);
    }
    *value = (yoke_arg){YOKE_ARG_FLOATS, (int32_t)count, {.floats = lists->numbers}};
    return 1;
}

/* Returns the tensor at item `i` of the list at `index`; raises for any other item. */
static yoke_tensor *tensor_at(lua_State *L, Target target, int index, int32_t i)
{
    lua_rawgeti(L, index, i + 1);
    yoke_tensor **box = yl_test_tensor(L, target.binding, -1);
    if (!box || !*box)
        yl_raise(L, target.binding, box ? YOKE_E_CLOSED : YOKE_E_TYPE, target.call,
                 "item %d of argument '%s' is %s; it takes tensors", i + 1, target.name,
                 box ? "a closed tensor" : luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
    return *box;
}

static int to_tensors(lua_State *L, Target target, int index, Lists *lists, yoke_arg *value)
{
    if (lua_type(L, index) != LUA_TTABLE) return 0;
    /* A finalizer may have appended to the list after the memory was sized. */
    const lua_Unsigned count = lua_rawlen(L, index);
    if (count > lists->room || count > INT32_MAX)
        yl_raise(
            L, target.binding, YOKE_E_VALUE, target.call,
            "argument '%s' has %I items, but had %I at the start of the call; a finalizer must not append to a list while a call reads it",
            target.name, (lua_Integer)count, (lua_Integer)lists->room);
    *value = (yoke_arg){YOKE_ARG_TENSORS, (int32_t)count, {.tensors = lists->tensors}};
    for (int32_t i = 0; i < value->count; ++i) lists->tensors[i] = tensor_at(L, target, index, i);
    lists->tensors += count;
    lists->room -= count;
    return 1;
}

/* In the order of ArgType. */
static int (*const kConverters[])(lua_State *L, Target target, int index, Lists *lists,
                                  yoke_arg *value) = {
#define YL_CONVERTER(enumerator, name, convert, ...) convert,
    YL_FOR_EACH_ARG_TYPE(YL_CONVERTER)
#undef YL_CONVERTER
};

yoke_arg yl_convert(lua_State *L, Target target, ArgType type, int index, Lists *lists)
{
    yoke_arg value = {YOKE_ARG_NONE, 0, {NULL}};
    if (!lua_isnoneornil(L, index) && !kConverters[type](L, target, index, lists, &value))
        yl_wrong_type(L, target, index, yl_arg_types[type].wanted);
    return value;
}

yoke_arg yl_tensors_arg(lua_State *L, Target target, int index)
{
    if (lua_type(L, index) != LUA_TTABLE) yl_wrong_type(L, target, index, "a list of tensors");
    if (lua_getfield(L, index, "parameters") == LUA_TFUNCTION)
        yl_raise(L, target.binding, YOKE_E_TYPE, target.call,
                 "argument '%s' is a module; it takes a list of tensors: write net:parameters()",
                 target.name);
    lua_pop(L, 1);
    Lists lists = {.used = 0};
    lists.room = lua_rawlen(L, index);
    lists.tensors = lua_newuserdatauv(L, (lists.room + 1) * sizeof *lists.tensors, 0);
    return yl_convert(L, target, kTensors, index, &lists);
}
