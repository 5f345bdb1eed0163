/* `require "yoke.core"`: makes the state's Binding, opens each room, and holds the small argument readers. */
#include "bindings/lua/src/convert.h"

void yl_set_functions(lua_State *L, Binding *b, const luaL_Reg *functions)
{
    lua_pushlightuserdata(L, b);
    luaL_setfuncs(L, functions, 1);
}

void yl_protect(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
}

void yl_arg_count(lua_State *L, Binding *b, const char *call, int least, int most)
{
    const int count = lua_gettop(L);
    if (count < least || count > most)
        yl_raise(L, b, YOKE_E_VALUE, call, "%d arguments; it takes %d to %d", count, least, most);
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

static const char kBindingName[] = "yoke.Binding";

/* The Binding is the first object of the module to get a finalizer, so it is finalized last. */
static int binding_gc(lua_State *L)
{
    Binding *b = luaL_checkudata(L, 1, kBindingName);
    if (b->op_count) {
        yl_close_log(b);
        yl_close_scopes(b); /* of which a script has taken the finalizers */
    }
    b->op_count = 0;
    return 0;
}

/* Pushes nothing; the registry keeps the Binding. */
static Binding *make_binding(lua_State *L)
{
    const int32_t op_count = yoke_op_count();
    Binding *b = lua_newuserdatauv(L, sizeof *b + (size_t)op_count * sizeof *b->ops, 0);
    *b = (Binding){.op_count = 0};
    luaL_newmetatable(L, kBindingName);
    lua_pushcfunction(L, binding_gc);
    lua_setfield(L, -2, "__gc");
    yl_protect(L, kBindingName);
    lua_setmetatable(L, -2);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return b;
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen_yoke_core(lua_State *L);

int luaopen_yoke_core(lua_State *L)
{
    static const char key; /* its address names the module's table in the registry */
    luaL_checkversion(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TTABLE) return 1;
    const int32_t op_count = yoke_op_count();
    Binding *b = make_binding(L);
    lua_newtable(L);
    yl_open_error(L, b);
    yl_open_log(L, b);
    b->op_count = op_count; /* from here on there is something to close */
    yl_open_tensor(L, b);
    yl_open_ops(L, b);
    yl_open_fields(L, b);
    yl_open_index(L, b);
    yl_open_list(L, b);
    yl_open_autograd(L, b);
    yl_open_scope(L, b);
    yl_open_device(L, b);
    yl_open_stream(L, b);
    yl_open_memory(L, b);
    yl_open_runtime(L, b);
    yl_open_optim(L, b);
    yl_open_training(L, b);
    yl_open_graph(L, b);
    yl_open_doctor(L, b);
    yl_open_inventory(L, b);
    yl_open_select(L, b);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    return 1;
}
