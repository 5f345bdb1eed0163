#include "bindings/lua/src/values/convert.h"

#include <string.h>

/* In the order of ArgType: how the op table spells a type, and what an error calls it. */
static const struct {
    const char *spelled;
    const char *wanted;
} kTypes[kArgTypeCount] = {
    {"tensor", "a tensor"},
    {"tensor?", "a tensor or nil"},
    {"operand", "a tensor or a number"},
    {"tensors", "a list of tensors, {x, y}"},
    {"int", "an integer"},
    {"int?", "an integer or nil"},
    {"ints", "an integer or a list of integers"},
    {"ints?", "an integer, a list of integers or nil"},
    {"float", "a number"},
    {"bool", "a boolean"},
    {"dtype", "the name of a dtype, such as yoke.float32"},
    {"scalar", "a number or a boolean"},
    {"scalar?", "a number, a boolean or nil"},
    {"str", "a string"},
    {"device", yl_device_wanted},
};

ArgType yl_arg_type(const char *text)
{
    /* What an op writes is, to a script, a tensor like any other. */
    if (!strcmp(text, "mut")) return kTensor;
    if (!strcmp(text, "muts")) return kTensors;
    int type = 0;
    while (type < kArgTypeCount && strcmp(text, kTypes[type].spelled)) ++type;
    return (ArgType)type;
}

yoke_dtype yl_need_dtype(lua_State *L, Target target, int index)
{
    if (lua_isnoneornil(L, index)) return YOKE_NONE;
    if (lua_type(L, index) != LUA_TSTRING) yl_wrong_type(L, target, index, kTypes[kDtype].wanted);
    yoke_dtype dtype = YOKE_NONE;
    if (yoke_dtype_from_name(yl_need_text(L, target, index), &dtype))
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call, "argument '%s': %s", target.name,
                 yoke_last_error()->message);
    return dtype;
}

static yoke_arg convert_ints(lua_State *L, Target target, ArgType type, int index, Lists *lists)
{
    yoke_arg value = {YOKE_ARG_INTS, 1, {NULL}};
    const int is_list = lua_type(L, index) == LUA_TTABLE;
    const lua_Unsigned count = is_list ? lua_rawlen(L, index) : 1;
    int64_t *items = lists->items + lists->used;
    if (!is_list && !lua_isinteger(L, index)) yl_wrong_type(L, target, index, kTypes[type].wanted);
    if (is_list && yl_is_keywords(L, index)) yl_wrong_type(L, target, index, kTypes[type].wanted);
    if (count > (lua_Unsigned)(YL_MAX_INTS - lists->used))
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call,
                 "argument '%s' is a list of %I integers; a tensor has at most %d axes",
                 target.name, (lua_Integer)count, YOKE_MAX_NDIM);
    lists->used += (int)count;
    for (lua_Unsigned i = 0; i < count; ++i) {
        if (!is_list) {
            items[i] = lua_tointeger(L, index);
            break;
        }
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        int exact = 0;
        if (lua_type(L, -1) == LUA_TNUMBER) items[i] = lua_tointegerx(L, -1, &exact);
        if (!exact)
            yl_raise(L, target.binding, YOKE_E_TYPE, target.call,
                     "item %I of argument '%s' is %s; it takes integers", (lua_Integer)i + 1,
                     target.name, luaL_tolstring(L, -1, NULL));
        lua_pop(L, 1);
    }
    value.count = (int32_t)count;
    value.v.ints = items;
    return value;
}

static yoke_arg convert_tensors(lua_State *L, Target target, int index, Lists *lists)
{
    yoke_arg value = {YOKE_ARG_TENSORS, 0, {NULL}};
    if (lua_type(L, index) != LUA_TTABLE) yl_wrong_type(L, target, index, kTypes[kTensors].wanted);
    /* A finalizer may have appended to the list after the room was sized. */
    const lua_Unsigned count = lua_rawlen(L, index);
    if (count > lists->room || count > INT32_MAX)
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call,
                 "argument '%s' has %I items where there is room for %I; a finalizer must not "
                 "append to a list while a call reads it",
                 target.name, (lua_Integer)count, (lua_Integer)lists->room);
    yoke_tensor **tensors = lists->tensors;
    value.count = (int32_t)count;
    for (int32_t i = 0; i < value.count; ++i) {
        lua_rawgeti(L, index, i + 1);
        yoke_tensor **box = yl_test_tensor(L, target.binding, -1);
        if (!box || !*box)
            yl_raise(L, target.binding, box ? YOKE_E_CLOSED : YOKE_E_TYPE, target.call,
                     "item %d of argument '%s' is %s; it takes tensors", i + 1, target.name,
                     box ? "a closed tensor" : luaL_tolstring(L, -1, NULL));
        tensors[i] = *box;
        lua_pop(L, 1);
    }
    value.v.tensors = tensors;
    lists->tensors += count;
    lists->room -= count;
    return value;
}

/* A number or a boolean; in an operand's place only a number, as `true + x` is a slip. */
static int convert_scalar(lua_State *L, int index, yoke_arg *value)
{
    const int type = lua_type(L, index);
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

static int convert_int(lua_State *L, int index, yoke_arg *value)
{
    int exact = 0;
    if (lua_type(L, index) != LUA_TNUMBER) return 0;
    value->kind = YOKE_ARG_INT;
    value->v.i = lua_tointegerx(L, index, &exact);
    return exact;
}

yoke_arg yl_convert(lua_State *L, Target target, ArgType type, int index, Lists *lists)
{
    yoke_arg value = {YOKE_ARG_NONE, 0, {NULL}};
    int served = 0;
    if (lua_isnoneornil(L, index)) return value;
    switch (type) {
        case kOperand:
            if (lua_type(L, index) == LUA_TNUMBER) {
                served = convert_scalar(L, index, &value);
                break;
            }
            if (!yl_test_tensor(L, target.binding, index)) break;
            /* fall through */
        case kTensor:
        case kOptionalTensor:
            value.kind = YOKE_ARG_TENSOR;
            value.v.tensor = yl_need_tensor(L, target, index);
            return value;
        case kTensors:
            return convert_tensors(L, target, index, lists);
        case kInt:
        case kOptionalInt:
            served = convert_int(L, index, &value);
            break;
        case kInts:
        case kOptionalInts:
            return convert_ints(L, target, type, index, lists);
        case kFloat:
            served = lua_type(L, index) == LUA_TNUMBER && convert_scalar(L, index, &value);
            break;
        case kScalar:
        case kOptionalScalar:
            served = convert_scalar(L, index, &value);
            break;
        case kBool:
            served = lua_type(L, index) == LUA_TBOOLEAN && convert_scalar(L, index, &value);
            break;
        case kDtype:
            value.kind = YOKE_ARG_INT;
            value.v.i = yl_need_dtype(L, target, index);
            return value;
        case kString:
            served = lua_type(L, index) == LUA_TSTRING;
            value.kind = YOKE_ARG_STRING;
            value.v.string = served ? yl_need_text(L, target, index) : NULL;
            break;
        case kDevice:
            value.kind = YOKE_ARG_DEVICE;
            value.v.device = yl_need_device(L, target, index);
            return value;
        case kArgTypeCount:
            break;
    }
    if (!served) yl_wrong_type(L, target, index, kTypes[type].wanted);
    return value;
}

yoke_arg yl_tensors_arg(lua_State *L, Target target, int index)
{
    if (lua_type(L, index) != LUA_TTABLE) yl_wrong_type(L, target, index, "a list of tensors");
    Lists lists = {.used = 0};
    lists.room = lua_rawlen(L, index);
    lists.tensors = lua_newuserdatauv(L, (lists.room + 1) * sizeof *lists.tensors, 0);
    return yl_convert(L, target, kTensors, index, &lists);
}
