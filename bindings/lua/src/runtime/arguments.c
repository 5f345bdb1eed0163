#include "bindings/lua/src/runtime/arguments.h"

#include <string.h>

/* Pushes and returns the kind of the value at `index` for people: its class if there is a class. */
static const char *describe(lua_State *L, int index)
{
    if (lua_isnone(L, index)) return lua_pushliteral(L, "missing");
    if (lua_isnil(L, index)) return lua_pushliteral(L, "nil");
    if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING)
        return lua_pushfstring(L, "a %s", lua_tostring(L, -1));
    return lua_pushfstring(L, "a %s", luaL_typename(L, index));
}

/* Raises for a method called without ':', as in x.to("cpu"). `class` is the class with its article. */
static int raise_without_colon(lua_State *L, Target target, const char *is, const char *class)
{
    const char *const space = strchr(class, ' ');
    return yl_raise(L, target.binding, YOKE_E_TYPE, target.call,
                    "called without ':', so argument 'self' is %s; write %s:%s(...)", is,
                    space ? space + 1 : class, target.call);
}

int yl_wrong_type(lua_State *L, Target target, int index, const char *wanted)
{
    index = lua_absindex(L, index);
    luaL_checkstack(L, 4, "no Lua stack for an error");
    const char *is = describe(L, index);
    if (index == 1 && !strcmp(target.name, "self"))
        return raise_without_colon(L, target, is, wanted);
    if (lua_type(L, index) == LUA_TNUMBER && !lua_isinteger(L, index))
        return yl_raise(L, target.binding, YOKE_E_TYPE, target.call,
                        "argument '%s' is the number %f; it takes %s", target.name,
                        lua_tonumber(L, index), wanted);
    return yl_raise(L, target.binding, YOKE_E_TYPE, target.call, "argument '%s' is %s; it takes %s",
                    target.name, is, wanted);
}

void *yl_need_object(lua_State *L, Binding *b, const char *class_name, const char *call,
                     const char *wanted)
{
    void *object = luaL_testudata(L, 1, class_name);
    if (!object) yl_wrong_type(L, (Target){b, call, "self"}, 1, wanted);
    return object;
}

const char *yl_show(lua_State *L, int index)
{
    size_t length = 0;
    luaL_Buffer shown;
    index = lua_absindex(L, index);
    luaL_checkstack(L, 8, "no Lua stack for an error");
    if (lua_type(L, index) != LUA_TSTRING) return luaL_tolstring(L, index, NULL);
    const char *text = lua_tolstring(L, index, &length);
    if (!memchr(text, 0, length)) return text;
    luaL_buffinit(L, &shown);
    for (size_t i = 0; i < length; ++i) {
        if (text[i])
            luaL_addchar(&shown, text[i]);
        else
            luaL_addstring(&shown, "\\0");
    }
    luaL_pushresult(&shown);
    return lua_tostring(L, -1);
}

const char *yl_key(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING ? yl_show(L, index) : "(not a string)";
}

const char *yl_need_text(lua_State *L, Target target, int index)
{
    size_t length = 0;
    if (lua_type(L, index) != LUA_TSTRING) yl_wrong_type(L, target, index, "a string");
    const char *text = lua_tolstring(L, index, &length);
    if (memchr(text, 0, length))
        yl_raise(L, target.binding, YOKE_E_VALUE, target.call,
                 "argument '%s' is \"%s\"; a string without NUL is needed", target.name,
                 yl_show(L, index));
    return text;
}

int yl_is_keywords(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (lua_type(L, index) != LUA_TTABLE || lua_rawlen(L, index)) return 0;
    lua_pushnil(L);
    if (!lua_next(L, index)) return 0;
    const int named = lua_type(L, -2) == LUA_TSTRING;
    lua_pop(L, 2);
    return named;
}

void yl_arg_count(lua_State *L, Binding *b, const char *call, int least, int most)
{
    const int count = lua_gettop(L);
    const char *const plural = count == 1 ? "" : "s";
    if (least == most && count != least)
        yl_raise(L, b, YOKE_E_VALUE, call, "%d argument%s; it takes %d", count, plural, least);
    if (count < least || count > most)
        yl_raise(L, b, YOKE_E_VALUE, call, "%d argument%s; it takes %d to %d", count, plural, least,
                 most);
}

const char *yl_string_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const Target target = {b, call, name};
    return yl_need_text(L, target, index);
}

int64_t yl_int_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const Target target = {b, call, name};
    int exact = 0;
    lua_Integer value = 0;
    if (lua_type(L, index) == LUA_TNUMBER) value = lua_tointegerx(L, index, &exact);
    if (!exact) yl_wrong_type(L, target, index, "an integer");
    return value;
}

double yl_number_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const Target target = {b, call, name};
    if (lua_type(L, index) != LUA_TNUMBER) yl_wrong_type(L, target, index, "a number");
    return lua_tonumber(L, index);
}

int yl_bool_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const Target target = {b, call, name};
    if (lua_type(L, index) != LUA_TBOOLEAN) yl_wrong_type(L, target, index, "a boolean");
    return lua_toboolean(L, index);
}

int yl_find_name(const char *key, const char *const *names, int count)
{
    int place = 0;
    while (place < count && strcmp(key, names[place])) ++place;
    return place;
}

void yl_check_keywords(lua_State *L, Binding *b, int index, const char *call,
                       const char *const *names, int count, const char *signature)
{
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        if (yl_find_name(key, names, count) == count)
            yl_raise_keyword(L, b, call, key, names, count, signature);
    }
}

int yl_raise_place(lua_State *L, Binding *b, const char *call, const char *name,
                   const char *signature)
{
    return yl_raise(
        L, b, YOKE_E_TYPE, call,
        "argument '%s' must be given by name, because PyTorch has a different argument in this place; write the name, such as {%s = ...}: %s",
        name, name, signature);
}

void yl_refuse_keys(lua_State *L, Target target, int index)
{
    const lua_Integer length = (lua_Integer)lua_rawlen(L, index);
    if (length == 0) return; /* only keywords, checked elsewhere */
    lua_pushinteger(L, length);
    if (!lua_next(L, index)) return;
    if (lua_type(L, -2) == LUA_TSTRING)
        yl_raise(
            L, target.binding, YOKE_E_VALUE, target.call,
            "argument '%s' is a list with the key '%s'; give keywords in a separate table after the list",
            target.name, yl_key(L, -2));
    lua_pop(L, 2);
}
