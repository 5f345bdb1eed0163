/*
 * The tensor userdata, a TensorBox. Its metatable leads every
 * name to the table of methods, where an op or another function is found as such and a field (fields.c)
 * as the light userdata that reads it.
 */
#include <string.h>

#include "bindings/lua/src/convert.h"

static const char kTensorName[] = "yoke.Tensor";

yoke_tensor **yl_new_tensor(lua_State *L, Binding *b)
{
    TensorBox *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->tensor = NULL;
    box->owner = b;
    lua_rawgeti(L, LUA_REGISTRYINDEX, b->tensor_metatable_ref);
    lua_setmetatable(L, -2);
    return &box->tensor;
}

yoke_tensor *yl_tensor_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const Target target = {b, call, name};
    return yl_need_tensor(L, target, index);
}

/* __gc. The debug library hands it to scripts, so anything may come. */
static int tensor_gc(lua_State *L)
{
    yoke_tensor **box = yl_test_tensor(L, yl_binding(L), 1);
    if (!box) return 0;
    yoke_tensor *tensor = *box;
    *box = NULL;
    yoke_tensor_release(tensor);
    return 0;
}

/* __close and :close(): the second time, and before __gc, there is nothing left to do. */
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

static int is_tensor(lua_State *L)
{
    lua_pushboolean(L, yl_test_tensor(L, yl_binding(L), 1) != NULL);
    return 1;
}

static int tensor_is_closed(lua_State *L)
{
    yoke_tensor **box = yl_test_tensor(L, yl_binding(L), 1);
    lua_pushboolean(L, box && !*box);
    return 1;
}

static int no_such_field(lua_State *L, Binding *b, const char *call)
{
    return yl_raise(L, b, YOKE_E_VALUE, call, "a tensor has no field or method '%s'",
                    yl_show(L, 2));
}

/* x.name, x:name() and x[i], x[tensor], x[{…}]. Upvalues: the Binding, the table of methods. */
static int tensor_index(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (lua_type(L, 2) == LUA_TSTRING) {
        lua_pushvalue(L, 2);
        const int type = lua_rawget(L, lua_upvalueindex(2));
        if (type == LUA_TFUNCTION) return 1;
        if (type != LUA_TLIGHTUSERDATA) return no_such_field(L, b, "tensor");
        const YlField *field = lua_touserdata(L, -1);
        field->push(L, b, yl_tensor_arg(L, b, 1, field->name, "self"));
        return 1;
    }
    if (lua_isinteger(L, 2)) {
        yl_push_item(L, b, 1, lua_tointeger(L, 2));
        return 1;
    }
    yl_push_part(L, b);
    return 1;
}

/* x[i], x[tensor] or x[{…}] = value (a tensor, a number or a boolean), x.grad = tensor or nil, x.requires_grad = boolean. */
static int tensor_newindex(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (lua_type(L, 2) != LUA_TSTRING) {
        yl_assign_part(L, b);
        return 0;
    }
    const char *name = yl_key(L, 2);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, name, "self");
    if (!strcmp(name, "requires_grad")) {
        yl_check(L, b, yoke_tensor_set_requires_grad(tensor, yl_bool_arg(L, b, 3, name, name)));
    } else if (!strcmp(name, "grad")) {
        yoke_tensor *grad = lua_isnil(L, 3) ? NULL : yl_tensor_arg(L, b, 3, name, "grad");
        yl_check(L, b, yoke_tensor_set_grad(tensor, grad));
    } else {
        return yl_raise(L, b, YOKE_E_VALUE, "tensor",
                        "'%s' cannot be set; grad and requires_grad can", name);
    }
    return 0;
}

/* #x is the length of axis 0. */
static int tensor_length(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "#", "self");
    if (yoke_tensor_ndim(tensor) == 0)
        return yl_raise(L, b, YOKE_E_TYPE, "#",
                        "a 0-dim tensor has no length; item() gives its value");
    lua_pushinteger(L, yoke_tensor_shape(tensor)[0]);
    return 1;
}

static int tensor_order(lua_State *L)
{
    return yl_raise(
        L, yl_binding(L), YOKE_E_TYPE, "tensor",
        "<, <=, > and >= make one boolean in Lua and do not compare tensors; "
        "compare elements with yoke.lt(a, b) and its like, single values with a:item() < b:item()");
}

/* Replaced by the formatter in yoke/format.lua, which needs the rest of the module; what it cannot show,
 * a closed tensor, ends here too. */
static int tensor_tostring(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor **box = yl_test_tensor(L, b, 1);
    if (box && !*box) {
        lua_pushliteral(L, "tensor(closed)");
        return 1;
    }
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "tostring", "self");
    if (lua_getfield(L, lua_upvalueindex(2), "__format") == LUA_TFUNCTION) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        return 1;
    }
    lua_pushfstring(L, "tensor(%s)", yoke_dtype_name(yoke_tensor_dtype(tensor)));
    return 1;
}

/* A metamethod with the Binding and, as second upvalue, the table of methods at `methods`. */
static void set_method_event(lua_State *L, Binding *b, const char *event, lua_CFunction function,
                             int methods)
{
    lua_pushlightuserdata(L, b);
    lua_pushvalue(L, methods);
    lua_pushcclosure(L, function, 2);
    lua_setfield(L, -2, event);
}

void yl_open_tensor(lua_State *L, Binding *b)
{
    static const luaL_Reg events[] = {{"__gc", tensor_gc},
                                      {"__close", tensor_close},
                                      {"__len", tensor_length},
                                      {"__newindex", tensor_newindex},
                                      {"__lt", tensor_order},
                                      {"__le", tensor_order},
                                      {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"close", tensor_close}, {"is_closed", tensor_is_closed}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"is_tensor", is_tensor}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    lua_newtable(L);
    yl_set_functions(L, b, methods);
    const int methods_index = lua_gettop(L);

    luaL_newmetatable(L, kTensorName);
    yl_set_functions(L, b, events);
    set_method_event(L, b, "__index", tensor_index, methods_index);
    set_method_event(L, b, "__tostring", tensor_tostring, methods_index);
    yl_protect(L, kTensorName);
    lua_pushvalue(L, methods_index);
    lua_setfield(L, -2, "methods");
    b->tensor_metatable_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_setfield(L, -2, "tensor_methods");
}
