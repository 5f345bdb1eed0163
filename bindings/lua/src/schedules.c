/* Schedules of learning rates as plain functions, schedules.linear(…); yoke/schedule.lua has the script's interface. */
#include "bindings/lua/src/leaves.h"

static int schedule_linear(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_linear(luaL_checknumber(L, 1), luaL_checknumber(L, 2),
                                           luaL_checkinteger(L, 3), luaL_checkinteger(L, 4)));
    return 1;
}

static int schedule_constant(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_constant(luaL_checknumber(L, 1), luaL_checknumber(L, 2),
                                             luaL_checkinteger(L, 3), luaL_checkinteger(L, 4)));
    return 1;
}

static int schedule_cosine(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_cosine(luaL_checknumber(L, 1), luaL_checknumber(L, 2),
                                           luaL_checkinteger(L, 3), luaL_checkinteger(L, 4),
                                           luaL_checkinteger(L, 5)));
    return 1;
}

static int schedule_step(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_step(luaL_checknumber(L, 1), luaL_checkinteger(L, 2),
                                         luaL_checknumber(L, 3), luaL_checkinteger(L, 4)));
    return 1;
}

static int schedule_one_cycle(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_one_cycle(luaL_checknumber(L, 1), luaL_checkinteger(L, 2),
                                              luaL_checknumber(L, 3), luaL_checknumber(L, 4),
                                              luaL_checknumber(L, 5), luaL_checkinteger(L, 6)));
    return 1;
}

void yl_open_schedules(lua_State *L, Binding *b)
{
    static const luaL_Reg schedules[] = {
        {"linear", schedule_linear}, {"constant", schedule_constant},   {"cosine", schedule_cosine},
        {"step", schedule_step},     {"one_cycle", schedule_one_cycle}, {NULL, NULL}};
    lua_newtable(L);
    yl_set_functions(L, b, schedules);
    lua_setfield(L, -2, "schedules");
}
