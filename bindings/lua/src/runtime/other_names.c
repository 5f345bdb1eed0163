#include "bindings/lua/src/runtime/other_names.h"

#include <string.h>

#include "bindings/lua/src/runtime/arguments.h"

typedef struct Row {
    const char *other, *own;
    int is_flag;
    const char *calls; /* each between spaces; "" for all calls */
} Row;

static const Row rows[] = {
#define YOKE_OTHER_NAME(other, own, is_flag, calls) {other, own, is_flag, calls},
#include "bindings/lua/src/runtime/other_names.inc"
#undef YOKE_OTHER_NAME
};

/* Name of PyTorch that a place does not have. */
typedef struct Foreign {
    const char *place, *name, *text;
} Foreign;

static const Foreign foreign[] = {
#define YOKE_FOREIGN_NAME(place, name, text) {place, name, text},
#include "bindings/lua/src/runtime/foreign_names.inc"
#undef YOKE_FOREIGN_NAME
};

static int holds_for(const Row *row, const char *call)
{
    const size_t length = strlen(call);
    const char *at = row->calls;
    if (!*at) return 1;
    for (; (at = strstr(at, call)); at += length)
        if (at[-1] == ' ' && at[length] == ' ') return 1;
    return 0;
}

OtherName yl_find_other_name(const char *call, const char *key, const char *const *names, int count)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        if (strcmp(key, rows[i].other) || !holds_for(&rows[i], call)) continue;
        const int place = yl_find_name(rows[i].own, names, count);
        if (place < count) return (OtherName){rows[i].other, place, rows[i].is_flag};
    }
    return (OtherName){NULL, -1, 0};
}

void yl_flag_number(lua_State *L, Binding *b, const char *call, const char *key)
{
    const int number = yl_bool_arg(L, b, lua_gettop(L), call, key);
    lua_pop(L, 1);
    lua_pushinteger(L, number);
}

int yl_raise_both_names(lua_State *L, Binding *b, yoke_status code, const char *call,
                        const char *first, const char *second)
{
    return yl_raise(L, b, code, call,
                    "arguments '%s' and '%s' are the same argument; give one of the two", first,
                    second);
}

/* Returns the other name of the argument at `place` among the keys of the table; its own name without one. */
static const char *other_key(lua_State *L, int index, const char *call, int place,
                             const char *const *names, int count)
{
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const OtherName other = yl_find_other_name(call, yl_key(L, -2), names, count);
        if (other.place == place) return other.other;
    }
    return names[place];
}

/* Puts the value on the top of the stack, with the key `key` of the table at `index`, into its place; pops the value.
 * */
static void put_named(lua_State *L, Binding *b, int index, int base, const char *call,
                      const char *key, const char *const *names, int count, const char *signature)
{
    int place = yl_find_name(key, names, count);
    if (place == count) {
        const OtherName other = yl_find_other_name(call, key, names, count);
        place = other.place;
        if (place < 0) yl_raise_keyword(L, b, call, key, names, count, signature);
        if (other.is_flag) yl_flag_number(L, b, call, key);
    }
    if (!lua_isnil(L, base + place)) {
        const int is_own = !strcmp(key, names[place]); /* the keys of a table have no order */
        yl_raise_both_names(L, b, YOKE_E_VALUE, call, names[place],
                            is_own ? other_key(L, index, call, place, names, count) : key);
    }
    lua_replace(L, base + place);
}

void yl_push_named(lua_State *L, Binding *b, int index, const char *call, const char *const *names,
                   int count, const char *signature)
{
    luaL_checkstack(L, count + 8, call);
    const int base = lua_gettop(L) + 1;
    for (int i = 0; i < count; ++i) lua_pushnil(L);
    lua_pushnil(L);
    while (lua_next(L, index))
        put_named(L, b, index, base, call, yl_key(L, -2), names, count, signature);
}

/* Implements core.other_name(call, key, names): returns the place in `names`, counted from 1, of the argument that
 * `key` means in the call, and whether the argument is a flag; nil for an unknown name. */
static int other_name(lua_State *L)
{
    enum { kMost = 32 };
    const char *names[kMost], *call = luaL_checkstring(L, 1), *key = luaL_checkstring(L, 2);
    int count = 0;
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_checkstack(L, kMost + 4, "no Lua stack for names");
    while (count < kMost && lua_rawgeti(L, 3, count + 1) == LUA_TSTRING)
        names[count++] = lua_tostring(L, -1); /* stays on the stack */
    const OtherName other = yl_find_other_name(call, key, names, count);
    if (other.place < 0) return 0;
    lua_pushinteger(L, other.place + 1);
    lua_pushboolean(L, other.is_flag);
    return 2;
}

const char *yl_foreign_name(const char *place, const char *name)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; ++i)
        if (!strcmp(foreign[i].place, place) && !strcmp(foreign[i].name, name))
            return foreign[i].text;
    return NULL;
}

static int foreign_name(lua_State *L)
{
    lua_pushstring(L, yl_foreign_name(luaL_checkstring(L, 1), luaL_checkstring(L, 2)));
    return 1;
}

void yl_open_other_names(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"other_name", other_name}, {"foreign_name", foreign_name}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
}
