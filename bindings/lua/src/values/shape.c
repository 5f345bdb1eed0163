#include "bindings/lua/src/values/shape.h"

#include "bindings/lua/src/runtime/fields.h"

static const char kShapeName[] = "yoke.Shape";

void yl_push_shape(lua_State *L, const int64_t *items, int64_t count)
{
    yl_push_integers(L, items, count);
    luaL_setmetatable(L, kShapeName);
}

/* Returns whether two tables, at least one a shape, have the same numbers. */
static int shape_equal(lua_State *L)
{
    int same = lua_istable(L, 1) && lua_istable(L, 2);
    const lua_Integer count = same ? (lua_Integer)lua_rawlen(L, 1) : 0;
    same = same && (lua_Integer)lua_rawlen(L, 2) == count;
    for (lua_Integer i = 1; same && i <= count; ++i, lua_pop(L, 2)) {
        lua_rawgeti(L, 1, i);
        lua_rawgeti(L, 2, i);
        same = lua_rawequal(L, -1, -2);
    }
    lua_pushboolean(L, same);
    return 1;
}

static int shape_tostring(lua_State *L)
{
    luaL_Buffer text;
    luaL_checktype(L, 1, LUA_TTABLE);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    luaL_buffinit(L, &text);
    luaL_addchar(&text, '{');
    for (lua_Integer i = 1; i <= count; ++i) {
        if (i > 1) luaL_addlstring(&text, ", ", 2);
        lua_rawgeti(L, 1, i);
        luaL_tolstring(L, -1, NULL); /* a script may have put in any value */
        lua_remove(L, -2);
        luaL_addvalue(&text);
    }
    luaL_addchar(&text, '}');
    luaL_pushresult(&text);
    return 1;
}

static int shape_concat(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

void yl_open_shape(lua_State *L, Binding *b)
{
    static const luaL_Reg events[] = {{"__eq", shape_equal},
                                      {"__tostring", shape_tostring},
                                      {"__concat", shape_concat},
                                      {NULL, NULL}};
    luaL_newmetatable(L, kShapeName);
    yl_set_functions(L, b, events);
    lua_setfield(L, -2, "shape_class");
}
