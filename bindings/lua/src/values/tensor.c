/*
 * The tensor userdata, a TensorBox. Its metatable looks every name up (index.c) in the table of methods. An op or
 * another function stands there as a function. A field (tensor_fields.c) stands there as the light userdata that reads
 * the field.
 */
#include "bindings/lua/src/values/tensor.h"

static const char kTensorName[] = "yoke.Tensor";

yoke_tensor **yl_new_tensor(lua_State *L, Binding *b)
{
    TensorBox *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->tensor = NULL;
    box->owner = b;
    lua_rawgeti(L, LUA_REGISTRYINDEX, yl_tensor_state(b)->metatable_ref);
    lua_setmetatable(L, -2);
    return &box->tensor;
}

yoke_tensor *yl_need_tensor(lua_State *L, Target target, int index)
{
    yoke_tensor **box = yl_test_tensor(L, target.binding, index);
    if (!box) yl_wrong_type(L, target, index, "a tensor");
    if (!*box)
        yl_raise(L, target.binding, YOKE_E_CLOSED, target.call,
                 "argument '%s' is a closed tensor; a tensor cannot be used after close()",
                 target.name);
    return *box;
}

yoke_tensor *yl_tensor_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const Target target = {b, call, name};
    return yl_need_tensor(L, target, index);
}

/* Implements __gc. Scripts can get it from the debug library, so any value may come. */
static int tensor_gc(lua_State *L)
{
    yoke_tensor **box = yl_test_tensor(L, yl_binding(L), 1);
    if (!box) return 0;
    yoke_tensor *tensor = *box;
    *box = NULL;
    yoke_tensor_release(tensor);
    return 0;
}

/* Implements __close and :close(). The second time, and before __gc, there is nothing left to do. */
static int tensor_close(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor **box = yl_test_tensor(L, b, 1);
    const Target target = {b, "close", "self"};
    if (!box) return yl_wrong_type(L, target, 1, "a tensor");
    yoke_tensor *tensor = *box;
    *box = NULL;
    yoke_tensor_release(tensor);
    return 0;
}

void yl_set_tensor_methods(lua_State *L, Binding *b, const luaL_Reg *methods)
{
    lua_getfield(L, -1, "tensor_methods");
    yl_set_functions(L, b, methods);
    lua_pop(L, 1);
}

void yl_set_tensor_events(lua_State *L, Binding *b, const luaL_Reg *events)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, yl_tensor_state(b)->metatable_ref);
    lua_pushlightuserdata(L, b);
    lua_getfield(L, -2, "methods");
    luaL_setfuncs(L, events, 2);
    lua_pop(L, 1);
}

void yl_open_tensor(lua_State *L, Binding *b)
{
    static const luaL_Reg events[] = {{"__gc", tensor_gc}, {"__close", tensor_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", tensor_close}, {NULL, NULL}};
    luaL_newmetatable(L, kTensorName);
    yl_set_functions(L, b, events);
    yl_protect(L, kTensorName);
    lua_newtable(L);
    yl_set_functions(L, b, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "methods");
    lua_setfield(L, -3, "tensor_methods");
    yl_tensor_state(b)->metatable_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
