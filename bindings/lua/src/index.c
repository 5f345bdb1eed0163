/* Basic indexing: x[i] and x:index(i, {first, last, step}, "...", yoke.newaxis). */
#include <string.h>

#include "bindings/lua/src/convert.h"

void yl_push_item(lua_State *L, Binding *b, int tensor, int64_t position)
{
    const yoke_index item = {YOKE_INDEX_INT, 0, position, 0, 0};
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *source = yl_tensor_arg(L, b, tensor, "index", "self");
    YL_CALL(L, b, source, yoke_tensor_index(source, &item, 1, box));
}

/* One end or the step of a slice: entry `place` of the table at `index`; the flag if it is not there. */
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
    yoke_index item = {YOKE_INDEX_INT, 0, 0, 0, 0};
    const int type = lua_type(L, index);
    const char *text = type == LUA_TSTRING ? lua_tostring(L, index) : "";
    if (lua_isinteger(L, index)) {
        item.start = lua_tointeger(L, index);
    } else if (type == LUA_TTABLE) {
        item.kind = YOKE_INDEX_SLICE;
        item.flags = slice_part(L, target, index, 1, YOKE_INDEX_NO_START, &item.start) |
                     slice_part(L, target, index, 2, YOKE_INDEX_NO_STOP, &item.stop) |
                     slice_part(L, target, index, 3, YOKE_INDEX_NO_STEP, &item.step);
    } else if (!strcmp(text, "...")) {
        item.kind = YOKE_INDEX_ELLIPSIS;
    } else if (!strcmp(text, "newaxis")) {
        item.kind = YOKE_INDEX_NEW_AXIS;
    } else {
        yl_wrong_type(L, target, index, "an integer, {first, last, step}, \"...\" or yoke.newaxis");
    }
    return item;
}

static int tensor_index(lua_State *L)
{
    enum { kMostItems = 2 * YOKE_MAX_NDIM + 1 };
    Binding *b = yl_binding(L);
    const Target target = {b, "index", "item"};
    yoke_index items[kMostItems];
    const int count = lua_gettop(L) - 1;
    if (count > kMostItems)
        return yl_raise(L, b, YOKE_E_INDEX, "index", "%d items; a tensor has at most %d axes",
                        count, YOKE_MAX_NDIM);
    yoke_tensor **box = yl_new_tensor(L, b);
    for (int i = 0; i < count; ++i) items[i] = read_item(L, target, i + 2);
    yoke_tensor *source = yl_tensor_arg(L, b, 1, "index", "self");
    YL_CALL(L, b, source, yoke_tensor_index(source, items, count, box));
    return 1;
}

void yl_open_index(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"index", tensor_index}, {NULL, NULL}};
    lua_pushliteral(L, "newaxis");
    lua_setfield(L, -2, "newaxis");
    lua_getfield(L, -1, "tensor_methods");
    yl_set_functions(L, b, methods);
    lua_pop(L, 1);
}
