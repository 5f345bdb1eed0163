#include "bindings/lua/src/runtime/class.h"

#include <string.h>

/* Returns the object of the handle at a place. Calls of every type of object write handles, so they are read as
 * bytes. */
static void *object_at(const void *place)
{
    void *object;
    memcpy(&object, place, sizeof object);
    return object;
}

void *yl_push_handle(lua_State *L, const YlClass *class)
{
    const size_t size = class->size ? class->size : sizeof(void *);
    void *place = lua_newuserdatauv(L, size, 0);
    memset(place, 0, size);
    luaL_setmetatable(L, class->name);
    return place;
}

void *yl_test_handle(lua_State *L, int index, const YlClass *class)
{
    const void *place = luaL_testudata(L, index, class->name);
    return place ? object_at(place) : NULL;
}

void *yl_need_handle(lua_State *L, Target target, int index, const YlClass *class)
{
    const void *place = luaL_testudata(L, index, class->name);
    void *object = place ? object_at(place) : NULL;
    if (object) return object;
    if (!place || !class->closed) yl_wrong_type(L, target, index, class->wanted);
    yl_raise(L, target.binding, YOKE_E_CLOSED, target.call, "argument '%s' is %s", target.name,
             class->closed);
    return NULL;
}

void *yl_need_self(lua_State *L, const YlClass *class, const char *call)
{
    const Target self = {yl_binding(L), call, "self"};
    return yl_need_handle(L, self, 1, class);
}

/* Implements __gc, __close and :close(): empties the handle before the release, which may come back here. Upvalues:
 * the class, the Binding. */
static int close_handle(lua_State *L)
{
    const YlClass *class = lua_touserdata(L, lua_upvalueindex(1));
    Binding *b = lua_touserdata(L, lua_upvalueindex(2));
    void *place = yl_need_object(L, b, class->name, "close", class->wanted);
    void *object = object_at(place);
    memset(place, 0, sizeof object);
    if (object) class->release(object);
    return 0;
}

static void set_close(lua_State *L, Binding *b, const YlClass *class, const char *key)
{
    lua_pushlightuserdata(L, (void *)class);
    lua_pushlightuserdata(L, b);
    lua_pushcclosure(L, close_handle, 2);
    lua_setfield(L, -2, key);
}

void yl_open_class(lua_State *L, Binding *b, const YlClass *class, const luaL_Reg *methods,
                   const luaL_Reg *events)
{
    static const luaL_Reg none[] = {{NULL, NULL}};
    luaL_newmetatable(L, class->name);
    if (class->release) set_close(L, b, class, "__gc");
    if (class->closed) set_close(L, b, class, "__close");
    lua_newtable(L);
    yl_set_functions(L, b, methods ? methods : none);
    if (class->closed) set_close(L, b, class, "close");
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_pushlightuserdata(L, b);
    lua_insert(L, -2);
    luaL_setfuncs(L, events ? events : none, 2);
    yl_protect(L, class->name);
    lua_pop(L, 1);
}

void yl_open_registration(lua_State *L, Binding *b, const char *name, const luaL_Reg *methods,
                          const luaL_Reg *events)
{
    luaL_newmetatable(L, name);
    yl_set_functions(L, b, events);
    lua_newtable(L);
    yl_set_functions(L, b, methods);
    lua_setfield(L, -2, "__index");
    yl_protect(L, name);
    lua_pop(L, 1);
}
