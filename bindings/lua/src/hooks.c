/* Code of the script that backward calls: hooks on gradients, and backward of yoke.autograd.Function. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/code.h"
#include "bindings/lua/src/values/tensor.h"

#include "yoke/autograd.h"

static void release_hook(void *hook)
{
    yoke_hook_release(hook);
}

static const YlClass kHook = {"yoke.Hook", "a handle of a hook", NULL, release_hook, 0};

/* Pushes a tensor that the library lends; nil for NULL. */
static void push_lent(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    if (!tensor) {
        lua_pushnil(L);
        return;
    }
    yoke_tensor **box = yl_new_tensor(L, b);
    *box = yoke_tensor_retain(tensor);
}

/* Returns a new reference to the tensor at `index`; NULL for nil. Raises for any other value. */
static yoke_tensor *given_tensor(lua_State *L, Binding *b, int index, const char *what)
{
    if (lua_isnil(L, index)) return NULL;
    if (!yl_test_tensor(L, b, index))
        yl_wrong_type(L, (Target){b, "backward", what}, index, "a tensor or nil");
    return yoke_tensor_retain(yl_need_tensor(L, (Target){b, "backward", what}, index));
}

/* Calls the function below the `count` arguments on the top without recording. Leaves its results. */
static void call_quietly(lua_State *L, Binding *b, int count, int results)
{
    Scope *const scope = yl_push_scope(L, b);
    yl_scope_grad(scope, 0);
    const int place = lua_gettop(L) - count - 1;
    lua_insert(L, place);
    lua_toclose(L, place);
    lua_call(L, count, results);
}

/* ---- Hooks ---------------------------------------------------------------------------------------------------- */

typedef struct HookCall {
    const YlCode *code;
    yoke_tensor *gradient, **replacement;
} HookCall;

static int call_hook(lua_State *L)
{
    const HookCall *const call = lua_touserdata(L, 1);
    Binding *const b = yl_binding_of_code(call->code);
    yl_push_code(L, call->code);
    push_lent(L, b, call->gradient);
    call_quietly(L, b, 1, 1);
    *call->replacement = given_tensor(L, b, lua_gettop(L), "the hook's result");
    return 0;
}

static yoke_status run_hook(void *code, yoke_tensor *gradient, yoke_tensor **replacement)
{
    HookCall call = {code, gradient, replacement};
    return yl_run_code(code, call_hook, &call);
}

/* Implements x:register_hook(fn): returns a handle with remove(). */
static int register_hook(lua_State *L)
{
    static const char call[] = "register_hook";
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, call, 2, 2);
    yl_tensor_arg(L, b, 1, call, "self");
    if (!lua_isfunction(L, 2)) yl_wrong_type(L, (Target){b, call, "hook"}, 2, "a function");
    yoke_hook **box = yl_push_handle(L, &kHook);
    YlCode *const code = yl_new_code(L, b, 2, call);
    const yoke_gradient_hook hook = {.struct_size = sizeof hook,
                                     .user = code,
                                     .run = run_hook,
                                     .problem = yl_code_problem,
                                     .drop = yl_drop_code};
    yoke_tensor **const self = yl_test_tensor(L, b, 1);
    if (yoke_tensor_add_hook(self ? *self : NULL, &hook, box)) {
        yl_drop_code(code);
        return yl_raise_last(L, b);
    }
    return 1;
}

/* Implements hook:remove(). */
static int remove_hook(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_hook_remove(yl_need_self(L, &kHook, "remove")));
    return 0;
}

/* Implements x:retain_grad(). */
static int retain_grad(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_tensor_retain_grad(yl_tensor_arg(L, b, 1, "retain_grad", "self")));
    return 0;
}

/* ---- Functions ------------------------------------------------------------------------------------------------ */

typedef struct FunctionCall {
    const YlCode *code;
    yoke_tensor *const *saved, *const *gradients;
    int64_t saved_count, gradient_count, input_count;
    yoke_tensor **input_gradients;
} FunctionCall;

/* Calls the script's function with the number of saved tensors, these, and the gradients. It returns a list of
 * gradients, false for none. */
static int call_function(lua_State *L)
{
    const FunctionCall *const call = lua_touserdata(L, 1);
    Binding *const b = yl_binding_of_code(call->code);
    luaL_checkstack(L, (int)(call->saved_count + call->gradient_count) + LUA_MINSTACK,
                    "too many tensors");
    yl_push_code(L, call->code);
    lua_pushinteger(L, call->saved_count);
    for (int64_t i = 0; i < call->saved_count; ++i) push_lent(L, b, call->saved[i]);
    for (int64_t i = 0; i < call->gradient_count; ++i) push_lent(L, b, call->gradients[i]);
    call_quietly(L, b, (int)(call->saved_count + call->gradient_count) + 1, 1);
    const int list = lua_gettop(L);
    for (int64_t i = 0; i < call->input_count; ++i, lua_settop(L, list)) {
        lua_rawgeti(L, list, i + 1);
        if (lua_toboolean(L, -1))
            call->input_gradients[i] = given_tensor(L, b, list + 1, "a gradient");
    }
    return 0;
}

static yoke_status run_function(void *code, yoke_tensor *const *saved, int64_t saved_count,
                                yoke_tensor *const *gradients, int64_t gradient_count,
                                yoke_tensor **input_gradients, int64_t input_count)
{
    FunctionCall call = {code,           saved,       gradients,      saved_count,
                         gradient_count, input_count, input_gradients};
    return yl_run_code(code, call_function, &call);
}

/* Reads the tensors of the list at `index`; other values are no tensors. */
static void read_tensors(lua_State *L, Binding *b, int index, int64_t count, yoke_tensor **tensors)
{
    for (int64_t i = 0; i < count; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, index, i + 1);
        tensors[i] = yl_test_tensor(L, b, -1) ? yl_tensor_arg(L, b, -1, "apply", "input") : NULL;
    }
}

/* Implements _record_function(name, run, keeps_null, kinds, outputs, saved, saved_count, inputs, input_count) for
 * yoke/autograd.lua: returns the list of tensors in place of the outputs. */
static int record_function(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t saved_count = luaL_checkinteger(L, 7), input_count = luaL_checkinteger(L, 9);
    const int64_t count = luaL_len(L, 5);
    yoke_tensor **tensors = lua_newuserdatauv(
        L, (size_t)(2 * count + saved_count + input_count + 1) * sizeof *tensors, 0);
    yoke_tensor **recorded = tensors + count, **saved = recorded + count,
                **inputs = saved + saved_count;
    int32_t *kinds = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *kinds, 0);
    for (int64_t i = 0; i < count; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, 4, i + 1);
        kinds[i] = (int32_t)lua_tointeger(L, -1);
    }
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; ++i) {
        yl_new_tensor(L, b);
        lua_rawseti(L, -2, i + 1);
    }
    yoke_function function = {.struct_size = sizeof function,
                              .keeps_null = lua_toboolean(L, 3),
                              .name = luaL_checkstring(L, 1),
                              .run = run_function,
                              .problem = yl_code_problem,
                              .drop = yl_drop_code,
                              .saved = saved,
                              .saved_count = saved_count};
    read_tensors(L, b, 5, count, tensors);
    read_tensors(L, b, 6, saved_count, saved);
    read_tensors(L, b, 8, input_count, inputs);
    YlCode *const code = yl_new_code(L, b, 2, "apply"); /* after the reads, which may raise */
    function.user = code;
    const Modes outer = yl_enter(L, b);
    const yoke_status status =
        yoke_function_record(&function, inputs, input_count, tensors, count, kinds, recorded);
    yl_leave(outer);
    if (status) {
        yl_drop_code(code);
        return yl_raise_last(L, b);
    }
    for (int64_t i = 0; i < count; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, -1, i + 1);
        *yl_test_tensor(L, b, -1) = recorded[i];
    }
    return 1;
}

void yl_open_hooks(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {
        {"register_hook", register_hook}, {"retain_grad", retain_grad}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"_record_function", record_function}, {NULL, NULL}};
    static const luaL_Reg of_hook[] = {{"remove", remove_hook}, {NULL, NULL}};
    yl_open_code(L, b);
    yl_open_class(L, b, &kHook, of_hook, NULL);
    yl_set_functions(L, b, functions);
    yl_set_tensor_methods(L, b, methods);
}
