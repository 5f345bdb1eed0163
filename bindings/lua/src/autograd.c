/* Gradients: x:backward(), yoke.grad, and what a leaf remembers. */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/values/convert.h"

/* The arguments of a gradient call as two places: `first` (a weight) and retain_graph, by place or in a
 * table of keywords at `index`, where the weight is called `name`. Leaves them at index and index + 1. */
static void gradient_options(lua_State *L, Binding *b, const char *call, int index,
                             const char *name)
{
    if (lua_type(L, index) == LUA_TTABLE && yl_is_keywords(L, index)) {
        lua_settop(L, index);
        lua_pushnil(L);
        while (lua_next(L, index)) {
            const char *key = yl_key(L, -2);
            const char *const names[] = {name, "retain_graph"};
            if (strcmp(key, name) && strcmp(key, "retain_graph"))
                yl_raise(L, b, YOKE_E_VALUE, call,
                         "there is no argument '%s'%s; it takes %s and retain_graph", key,
                         yl_meant(L, key, names, 2), name);
            lua_pop(L, 1);
        }
        lua_getfield(L, index, name);
        lua_getfield(L, index, "retain_graph");
        lua_remove(L, index);
    }
    lua_settop(L, index + 1);
}

static int backward(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target weight = {b, "backward", "gradient"};
    yl_arg_count(L, b, "backward", 1, 3);
    gradient_options(L, b, "backward", 2, "gradient");
    const int retain = lua_isnil(L, 3) ? 0 : yl_bool_arg(L, b, 3, "backward", "retain_graph");
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "backward", "self");
    yoke_tensor *gradient = lua_isnil(L, 2) ? NULL : yl_need_tensor(L, weight, 2);
    /* No second try after OOM: a walk that stopped halfway has already freed a part of the record. */
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_backward(tensor, gradient, retain);
    yl_leave(outer);
    yl_check(L, b, status);
    return 0;
}

/* The number of tensors at `index`: a tensor stands for a list of one. */
static int64_t list_length(lua_State *L, Binding *b, Target target, int index)
{
    if (yl_test_tensor(L, b, index)) return 1;
    if (lua_type(L, index) != LUA_TTABLE)
        yl_wrong_type(L, target, index, "a tensor or a list of tensors");
    return (int64_t)lua_rawlen(L, index);
}

/* Reads them; with `holes`, false stands for no tensor. */
static void read_list(lua_State *L, Binding *b, Target target, int index, int64_t count, int holes,
                      yoke_tensor **tensors)
{
    const int is_list = !yl_test_tensor(L, b, index);
    for (int64_t i = 0; i < count; ++i) {
        if (is_list)
            lua_rawgeti(L, index, i + 1);
        else
            lua_pushvalue(L, index);
        tensors[i] = holes && !lua_toboolean(L, -1) ? NULL : yl_need_tensor(L, target, -1);
        lua_pop(L, 1);
    }
}

/* yoke.grad(outputs, inputs, grad_outputs, retain_graph): a list of gradients, one for each input. */
static int grad(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target outputs = {b, "grad", "outputs"}, inputs = {b, "grad", "inputs"},
                 weights = {b, "grad", "grad_outputs"};
    yl_arg_count(L, b, "grad", 2, 4);
    gradient_options(L, b, "grad", 3, "grad_outputs");
    const int retain = lua_isnil(L, 4) ? 0 : yl_bool_arg(L, b, 4, "grad", "retain_graph");
    const int64_t count = list_length(L, b, outputs, 1), input_count = list_length(L, b, inputs, 2);
    const int has_weights = !lua_isnil(L, 3);
    if (has_weights && list_length(L, b, weights, 3) != count)
        return yl_raise(L, b, YOKE_E_VALUE, "grad",
                        "%I grad_outputs for %I outputs; give one for each, false for 1",
                        (lua_Integer)list_length(L, b, weights, 3), (lua_Integer)count);
    yoke_tensor **handles =
        lua_newuserdatauv(L, (size_t)(2 * (count + input_count) + 1) * sizeof *handles, 0);
    yoke_tensor **to = handles + count, **from = to + input_count, **grads = from + count;
    lua_createtable(L, (int)input_count, 0);
    for (int64_t i = 0; i < input_count; ++i) {
        yl_new_tensor(L, b);
        lua_rawseti(L, -2, i + 1);
    }
    read_list(L, b, outputs, 1, count, 0, handles);
    read_list(L, b, inputs, 2, input_count, 0, to);
    if (has_weights) read_list(L, b, weights, 3, count, 1, from);
    const Modes outer = yl_enter(L, b);
    const yoke_status status =
        yoke_grad(handles, count, has_weights ? from : NULL, to, input_count, retain, grads);
    yl_leave(outer);
    yl_check(L, b, status);
    for (int64_t i = 0; i < input_count; ++i) {
        lua_rawgeti(L, -1, i + 1);
        *(yoke_tensor **)lua_touserdata(L, -1) = grads[i];
        lua_pop(L, 1);
    }
    return 1;
}

/* yoke.saved_tensors(x): what the tape keeps for the gradient of the op that made x. */
static int saved_tensors(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "saved_tensors", 1, 1);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "saved_tensors", "tensor");
    const int64_t count = yoke_tensor_saved_count(tensor);
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; ++i) {
        yoke_saved saved = {sizeof saved, 0, NULL, NULL, NULL, 0, 0};
        lua_createtable(L, 0, 5);
        yl_check(L, b,
                 yoke_tensor_saved(yl_tensor_arg(L, b, 1, "saved_tensors", "tensor"), i, &saved));
        lua_pushstring(L, saved.op);
        lua_setfield(L, -2, "op");
        lua_pushstring(L, saved.argument);
        lua_setfield(L, -2, "argument");
        lua_pushstring(L, yoke_dtype_name(saved.dtype));
        lua_setfield(L, -2, "dtype");
        lua_pushinteger(L, saved.nbytes);
        lua_setfield(L, -2, "nbytes");
        lua_createtable(L, (int)saved.ndim, 0);
        for (int64_t axis = 0; axis < saved.ndim; ++axis) {
            lua_pushinteger(L, saved.shape[axis]);
            lua_rawseti(L, -2, axis + 1);
        }
        lua_setfield(L, -2, "shape");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* x:requires_grad_(required = true) -> x */
static int requires_grad_(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int required =
        lua_isnoneornil(L, 2) ? 1 : yl_bool_arg(L, b, 2, "requires_grad_", "required");
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "requires_grad_", "self");
    yl_check(L, b, yoke_tensor_set_requires_grad(tensor, required));
    lua_settop(L, 1);
    return 1;
}

static int detach(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "detach", "self");
    YL_CALL(L, b, tensor, yoke_tensor_detach(tensor, box));
    return 1;
}

/* x:zero_grad(set_to_none = true) */
static int zero_grad(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int to_none =
        lua_isnoneornil(L, 2) ? 1 : yl_bool_arg(L, b, 2, "zero_grad", "set_to_none");
    yl_check(L, b, yoke_tensor_zero_grad(yl_tensor_arg(L, b, 1, "zero_grad", "self"), to_none));
    return 0;
}

void yl_open_autograd(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"backward", backward},
                                       {"requires_grad_", requires_grad_},
                                       {"detach", detach},
                                       {"zero_grad", zero_grad},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"grad", grad}, {"saved_tensors", saved_tensors}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_set_tensor_methods(L, b, methods);
}
