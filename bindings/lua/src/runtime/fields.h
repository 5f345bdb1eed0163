/* fields.h: fields of the table on top of the stack. */
#ifndef YOKE_LUA_RUNTIME_FIELDS_H
#define YOKE_LUA_RUNTIME_FIELDS_H

#include <math.h>

#include "bindings/lua/src/runtime/state.h"

static inline void yl_set_text(lua_State *L, const char *key, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

static inline void yl_set_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

static inline void yl_set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

static inline void yl_set_bool(lua_State *L, const char *key, int value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

/* Sets a field, unless the value is unknown: below 0 or NaN. */
static inline void yl_set_known_integer(lua_State *L, const char *key, int64_t value)
{
    if (value >= 0) yl_set_integer(L, key, value);
}

static inline void yl_set_known_number(lua_State *L, const char *key, double value)
{
    if (!isnan(value)) yl_set_number(L, key, value);
}

static inline void yl_set_known_bool(lua_State *L, const char *key, int32_t value)
{
    if (value >= 0) yl_set_bool(L, key, value);
}

/* Pushes a list of integers. */
static inline void yl_push_integers(lua_State *L, const int64_t *items, int64_t count)
{
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; ++i) {
        lua_pushinteger(L, items[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

#endif /* YOKE_LUA_RUNTIME_FIELDS_H */
