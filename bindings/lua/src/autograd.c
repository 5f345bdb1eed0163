/* Gradients: x:backward(), yoke.grad, and the fields of a leaf. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/code.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/shape.h"
#include "bindings/lua/src/values/tensor.h"

/* Names of arguments of a gradient call that follow the tensors, in their order. */
static const char *const kOfBackward[] = {"gradient", "retain_graph", "create_graph", "inputs"},
                         *const kOfGrad[] = {"grad_outputs", "retain_graph", "create_graph",
                                             "allow_unused"};
enum { kOptions = 4 };

/* Reads the arguments `names` of a gradient call, by place or in a table of keywords at `index`. Leaves them at index
 * and up. */
static void gradient_options(lua_State *L, Binding *b, const char *call, int index,
                             const char *const *names)
{
    if (lua_type(L, index) == LUA_TTABLE && yl_is_keywords(L, index)) {
        lua_settop(L, index);
        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
            const char *key = yl_key(L, -2);
            if (yl_find_name(key, names, kOptions) == kOptions)
                yl_raise(
                    L, b, YOKE_E_VALUE, call,
                    "there is no argument '%s'%s; it takes %s, retain_graph, create_graph and %s",
                    key, yl_meant(L, key, names, kOptions), names[0], names[3]);
        }
        for (int i = 0; i < kOptions; ++i) lua_getfield(L, index, names[i]);
        lua_remove(L, index);
    }
    lua_settop(L, index + kOptions - 1);
}

/* Returns the flag at `index`, 0 for nil. */
static int flag(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    return !lua_isnil(L, index) && yl_bool_arg(L, b, index, call, name);
}

/* Raises for create_graph = true at `index`. */
static void refuse_second_order(lua_State *L, Binding *b, int index, const char *call)
{
    if (flag(L, b, index, call, kOfGrad[2]))
        yl_raise(
            L, b, YOKE_E_UNSUPPORTED, call,
            "argument 'create_graph' is true, but there are no second-order gradients; leave it out, and write the first gradient as ops of the forward if a loss needs it");
}

/* Reads the arguments of backward, (self, …), and returns the gradient or nil, retain_graph, and inputs or nil. */
static int read_backward(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_tensor_arg(L, b, 1, "backward", "self"); /* a missing ':' is reported first */
    yl_arg_count(L, b, "backward", 1, 1 + kOptions);
    gradient_options(L, b, "backward", 2, kOfBackward);
    lua_pushboolean(L, flag(L, b, 3, "backward", "retain_graph"));
    lua_replace(L, 3);
    refuse_second_order(L, b, 4, "backward");
    lua_remove(L, 4);
    yl_tensor_arg(L, b, 1, "backward", "self");
    if (!lua_isnil(L, 2)) yl_need_tensor(L, (Target){b, "backward", "gradient"}, 2);
    return 3;
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

/* Runs backward of a tensor, with its `inputs` or NULL. No second try after OOM: a walk that stopped halfway has
 * already freed a part of the record. */
static yoke_status walk_back(lua_State *L, Binding *b, yoke_tensor *tensor, yoke_tensor *gradient,
                             int retain, yoke_tensor *const *inputs, int64_t input_count,
                             YlWalk *walk)
{
    yoke_tensor_retain(tensor);
    yoke_tensor_retain(gradient);
    for (int64_t i = 0; i < input_count; ++i) yoke_tensor_retain(inputs[i]);
    YlWait wait;
    yl_begin_wait(L, &wait); /* for other ranks */
    lua_State *const relief = yl_begin_relief(L);
    yl_begin_walk(L, walk);
    const Modes outer = yl_enter(L, b);
    const yoke_status status =
        inputs ? yoke_backward_v2(&tensor, 1, &gradient, inputs, input_count, retain)
               : yoke_backward(tensor, gradient, retain);
    yl_leave(outer);
    yl_end_walk(walk);
    yl_end_relief(relief);
    yl_end_wait(&wait);
    for (int64_t i = 0; i < input_count; ++i) yoke_tensor_release(inputs[i]);
    yoke_tensor_release(gradient);
    yoke_tensor_release(tensor);
    return status;
}

/* Implements x:backward(gradient, retain_graph, create_graph, inputs). */
static int backward(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target of_inputs = {b, "backward", "inputs"};
    const int count = lua_gettop(L);
    luaL_checkstack(L, count + 2, "too many arguments");
    lua_pushlightuserdata(L, b);
    lua_pushcclosure(L, read_backward, 1);
    for (int i = 1; i <= count; ++i) lua_pushvalue(L, i);
    if (lua_pcall(L, count, 3, 0) != LUA_OK) return tell_refused(L, b);
    const int read = lua_gettop(L) - 2;
    const int64_t input_count = lua_isnil(L, read + 2) ? 0 : list_length(L, b, of_inputs, read + 2);
    if (!lua_isnil(L, read + 2) && !input_count)
        yl_raise(
            L, b, YOKE_E_VALUE, "backward",
            "argument 'inputs' is empty; give at least one tensor, or leave it out for all leaves");
    yoke_tensor **inputs =
        input_count ? lua_newuserdatauv(L, (size_t)input_count * sizeof *inputs, 0) : NULL;
    read_list(L, b, of_inputs, read + 2, input_count, 0, inputs);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "backward", "self");
    yoke_tensor *gradient = lua_isnil(L, read) ? NULL : *yl_test_tensor(L, b, read);
    YlWalk walk;
    const yoke_status status =
        walk_back(L, b, tensor, gradient, lua_toboolean(L, read + 1), inputs, input_count, &walk);
    yl_check_walk(L, b, &walk, status);
    return 0;
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

/* Fills the list of empty tensors on top of the stack; false takes the place of an absent tensor. */
static void fill(lua_State *L, Binding *b, yoke_tensor *const *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        lua_rawgeti(L, -1, i + 1);
        *yl_test_tensor(L, b, -1) = tensors[i];
        lua_pop(L, 1);
        if (tensors[i]) continue;
        lua_pushboolean(L, 0);
        lua_rawseti(L, -2, i + 1);
    }
}

/* Implements yoke.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused): returns a list of
 * gradients, one for each input; false for an unused input. */
static int grad(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target outputs = {b, "grad", "outputs"}, inputs = {b, "grad", "inputs"},
                 weights = {b, "grad", "grad_outputs"};
    yl_arg_count(L, b, "grad", 2, 2 + kOptions);
    gradient_options(L, b, "grad", 3, kOfGrad);
    const int retain = flag(L, b, 4, "grad", "retain_graph");
    const int allow_unused = flag(L, b, 6, "grad", "allow_unused");
    refuse_second_order(L, b, 5, "grad");
    const int64_t count = list_length(L, b, outputs, 1), input_count = list_length(L, b, inputs, 2);
    const int64_t weight_count = lua_isnil(L, 3) ? 0 : list_length(L, b, weights, 3);
    if (!lua_isnil(L, 3) && weight_count != count)
        return yl_raise(
            L, b, YOKE_E_VALUE, "grad",
            "argument 'grad_outputs' has %I items for %I outputs; give an item for each output, false for a gradient of 1",
            (lua_Integer)weight_count, (lua_Integer)count);
    yoke_tensor **handles =
        lua_newuserdatauv(L, (size_t)(2 * (count + input_count) + 1) * sizeof *handles, 0);
    yoke_tensor **to = handles + count, **from = to + input_count, **grads = from + weight_count;
    const int64_t given = count + input_count + weight_count;
    push_empty(L, b, input_count);
    read_list(L, b, outputs, 1, count, 0, handles);
    read_list(L, b, inputs, 2, input_count, 0, to);
    read_list(L, b, weights, 3, weight_count, 1, from);
    YlWalk walk;
    for (int64_t i = 0; i < given; ++i) yoke_tensor_retain(handles[i]); /* hooks may close them */
    yl_begin_walk(L, &walk);
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_grad_v2(handles, count, lua_isnil(L, 3) ? NULL : from, to,
                                            input_count, retain, allow_unused, grads);
    yl_leave(outer);
    yl_end_walk(&walk);
    for (int64_t i = 0; i < given; ++i) yoke_tensor_release(handles[i]);
    yl_check_walk(L, b, &walk, status);
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
