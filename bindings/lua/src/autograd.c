/* Gradients: x:backward(), yoke.grad, and the fields of a leaf. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/shape.h"
#include "bindings/lua/src/values/tensor.h"

/* Reads the arguments of a gradient call: a weight called `name` and retain_graph, by place or in a table of keywords
 * at `index`. Leaves both at index and index + 1. */
static void gradient_options(lua_State *L, Binding *b, const char *call, int index,
                             const char *name)
{
    if (lua_type(L, index) == LUA_TTABLE && yl_is_keywords(L, index)) {
        lua_settop(L, index);
        const char *const names[] = {name, "retain_graph"};
        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
            const char *key = yl_key(L, -2);
            if (yl_find_name(key, names, 2) == 2)
                yl_raise(L, b, YOKE_E_VALUE, call,
                         "there is no argument '%s'%s; it takes %s and retain_graph", key,
                         yl_meant(L, key, names, 2), name);
        }
        lua_getfield(L, index, name);
        lua_getfield(L, index, "retain_graph");
        lua_remove(L, index);
    }
    lua_settop(L, index + 1);
}

/* Reads the arguments of backward, (self, …), and returns the gradient or nil, and retain_graph. */
static int read_backward(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_tensor_arg(L, b, 1, "backward", "self"); /* a missing ':' is reported first */
    yl_arg_count(L, b, "backward", 1, 3);
    gradient_options(L, b, "backward", 2, "gradient");
    lua_pushboolean(L, !lua_isnil(L, 3) && yl_bool_arg(L, b, 3, "backward", "retain_graph"));
    yl_tensor_arg(L, b, 1, "backward", "self");
    if (!lua_isnil(L, 2)) yl_need_tensor(L, (Target){b, "backward", "gradient"}, 2);
    lua_replace(L, 3);
    return 2;
}

/* Notifies other ranks that wait for this rank's backward, and raises the error on top of the stack, which keeps the
 * backward from starting. */
static int tell_refused(lua_State *L, Binding *b)
{
    yoke_tensor **box = yl_test_tensor(L, b, 1);
    if (box && *box) {
        yoke_backward_note_refused(*box, luaL_tolstring(L, -1, NULL));
        lua_pop(L, 1);
    }
    return lua_error(L);
}

static int backward(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int count = lua_gettop(L);
    luaL_checkstack(L, count + 2, "too many arguments");
    lua_pushlightuserdata(L, b);
    lua_pushcclosure(L, read_backward, 1);
    for (int i = 1; i <= count; ++i) lua_pushvalue(L, i);
    if (lua_pcall(L, count, 2, 0) != LUA_OK) return tell_refused(L, b);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "backward", "self");
    yoke_tensor *gradient = lua_isnil(L, -2) ? NULL : *yl_test_tensor(L, b, -2);
    const int retain = lua_toboolean(L, -1);
    /* No second try after OOM: a walk that stopped halfway has already freed a part of the record. */
    yoke_tensor_retain(tensor);
    yoke_tensor_retain(gradient);
    YlWait wait;
    yl_begin_wait(L, &wait); /* for other ranks */
    lua_State *const relief = yl_begin_relief(L);
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_backward(tensor, gradient, retain);
    yl_leave(outer);
    yl_end_relief(relief);
    yl_end_wait(&wait);
    yoke_tensor_release(gradient);
    yoke_tensor_release(tensor);
    yl_check(L, b, status);
    return 0;
}

/* Returns the number of tensors at `index`; a tensor stands for a list of one. Raises for any other value. */
static int64_t list_length(lua_State *L, Binding *b, Target target, int index)
{
    if (yl_test_tensor(L, b, index)) return 1;
    if (lua_type(L, index) != LUA_TTABLE)
        yl_wrong_type(L, target, index, "a tensor or a list of tensors");
    return (int64_t)lua_rawlen(L, index);
}

/* Reads the tensors of a list; with `holes`, false stands for a missing tensor. */
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

/* Pushes a list of empty tensors. */
static void push_empty(lua_State *L, Binding *b, int64_t count)
{
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; ++i) {
        yl_new_tensor(L, b);
        lua_rawseti(L, -2, i + 1);
    }
}

/* Fills the list of empty tensors on top of the stack. */
static void fill(lua_State *L, Binding *b, yoke_tensor *const *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, i + 1);
        *yl_test_tensor(L, b, -1) = tensors[i];
    }
}

/* Implements yoke.grad(outputs, inputs, grad_outputs, retain_graph): returns a list of gradients, one for each input.
 * */
static int grad(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target outputs = {b, "grad", "outputs"}, inputs = {b, "grad", "inputs"},
                 weights = {b, "grad", "grad_outputs"};
    yl_arg_count(L, b, "grad", 2, 4);
    gradient_options(L, b, "grad", 3, "grad_outputs");
    const int retain = lua_isnil(L, 4) ? 0 : yl_bool_arg(L, b, 4, "grad", "retain_graph");
    const int64_t count = list_length(L, b, outputs, 1), input_count = list_length(L, b, inputs, 2);
    const int64_t weight_count = lua_isnil(L, 3) ? 0 : list_length(L, b, weights, 3);
    if (!lua_isnil(L, 3) && weight_count != count)
        return yl_raise(
            L, b, YOKE_E_VALUE, "grad",
            "argument 'grad_outputs' has %I items for %I outputs; give an item for each output, false for a gradient of 1",
            (lua_Integer)weight_count, (lua_Integer)count);
    yoke_tensor **handles =
        lua_newuserdatauv(L, (size_t)(2 * (count + input_count) + 1) * sizeof *handles, 0);
    yoke_tensor **to = handles + count, **from = to + input_count, **grads = from + count;
    push_empty(L, b, input_count);
    read_list(L, b, outputs, 1, count, 0, handles);
    read_list(L, b, inputs, 2, input_count, 0, to);
    read_list(L, b, weights, 3, weight_count, 1, from);
    const Modes outer = yl_enter(L, b);
    yl_leave_checked(
        L, b, outer,
        yoke_grad(handles, count, lua_isnil(L, 3) ? NULL : from, to, input_count, retain, grads));
    fill(L, b, grads, input_count);
    return 1;
}

/* Pushes the kept tensor at place `i` of the tape entry of the tensor at 1. */
static void push_saved(lua_State *L, Binding *b, int64_t i)
{
    yoke_saved saved = {.struct_size = sizeof saved};
    lua_createtable(L, 0, 6);
    yl_check(L, b, yoke_tensor_saved(yl_tensor_arg(L, b, 1, "saved_tensors", "tensor"), i, &saved));
    int64_t shape[YOKE_MAX_NDIM]; /* copied: a field's allocation may close the tensor */
    for (int64_t axis = 0; axis < saved.ndim; ++axis) shape[axis] = saved.shape[axis];
    yl_set_text(L, "op", saved.op);
    yl_set_text(L, "argument", saved.argument);
    yl_set_text(L, "dtype", yoke_dtype_name(saved.dtype));
    yl_set_integer(L, "nbytes", saved.nbytes);
    lua_pushboolean(L, saved.recomputed);
    lua_setfield(L, -2, "recomputed");
    yl_push_shape(L, shape, saved.ndim);
    lua_setfield(L, -2, "shape");
}

/* Implements yoke.saved_tensors(x): returns a table for each tensor kept by the tape for the gradient of the op that
 * made x. */
static int saved_tensors(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "saved_tensors", 1, 1);
    const int64_t count =
        yoke_tensor_saved_count(yl_tensor_arg(L, b, 1, "saved_tensors", "tensor"));
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; ++i) {
        push_saved(L, b, i);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements x:requires_grad_(required = true): asks for a gradient of x, or no longer, and returns x. */
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
    lua_settop(L, 1); /* the result must not become 'self' */
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "detach", "self");
    YL_CALL(L, b, tensor, yoke_tensor_detach(tensor, box));
    return 1;
}

/* Implements x:zero_grad(set_to_none = true): removes the gradient of x, or sets it to 0. */
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
