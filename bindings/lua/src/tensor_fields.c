/* Fields of a tensor, x.shape, and its small methods: views, placement, identity. */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/pressure.h"
#include "bindings/lua/src/values/shape.h"

/* ---- Fields ------------------------------------------------------------------------------------------ */

static void push_shape(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    int64_t shape[YOKE_MAX_NDIM]; /* copied: the new table's allocation may close the tensor */
    const int64_t ndim = yoke_tensor_ndim(tensor);
    for (int64_t i = 0; i < ndim; ++i) shape[i] = yoke_tensor_shape(tensor)[i];
    yl_push_shape(L, shape, ndim);
}

static void push_strides(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    int64_t strides[YOKE_MAX_NDIM];
    const int64_t ndim = yoke_tensor_ndim(tensor);
    for (int64_t i = 0; i < ndim; ++i) strides[i] = yoke_tensor_strides(tensor)[i];
    yl_push_shape(L, strides, ndim);
}

static void push_dtype(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushstring(L, yoke_dtype_name(yoke_tensor_dtype(tensor)));
}

static void push_device(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    yl_push_device(L, b, yoke_tensor_device(tensor));
}

static void push_ndim(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushinteger(L, yoke_tensor_ndim(tensor));
}

static void push_numel(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushinteger(L, yoke_tensor_numel(tensor));
}

static void push_nbytes(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushinteger(L, yoke_tensor_nbytes(tensor));
}

static void push_itemsize(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushinteger(L, yoke_tensor_itemsize(tensor));
}

static void push_requires_grad(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushboolean(L, yoke_tensor_requires_grad(tensor) == 1);
}

static void push_retains_grad(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushboolean(L, yoke_tensor_retains_grad(tensor) == 1);
}

static void push_is_leaf(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushboolean(L, yoke_tensor_is_leaf(tensor) == 1);
}

static void push_is_cuda(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)b;
    lua_pushboolean(L, !strcmp(yoke_device_kind(yoke_tensor_device(tensor)), "cuda"));
}

/* Pushes the gradient as a new userdata each time, nil if there is no gradient. */
static void push_grad(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    (void)tensor; /* read again after the allocation, which may have closed the tensor */
    yoke_tensor **box = yl_new_tensor(L, b);
    yl_check(L, b, yoke_tensor_grad(yl_tensor_arg(L, b, 1, "grad", "self"), box));
    if (!*box) lua_pushnil(L);
}

/* Pushes x.data: a tensor of the same memory without a record. */
static void push_data(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    yoke_tensor **box = yl_new_tensor(L, b);
    tensor = yl_tensor_arg(L, b, 1, "data", "self");
    YL_CALL(L, b, tensor, yoke_tensor_detach(tensor, box));
}

/* Pushes x.T: a view with the axes in reverse order. */
static void push_reversed(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    int64_t axes[YOKE_MAX_NDIM];
    yoke_tensor **box = yl_new_tensor(L, b);
    tensor = yl_tensor_arg(L, b, 1, "T", "self");
    const int64_t ndim = yoke_tensor_ndim(tensor);
    for (int64_t i = 0; i < ndim; ++i) axes[i] = ndim - 1 - i;
    YL_CALL(L, b, tensor, yoke_permute(tensor, axes, ndim, box));
}

/* Pushes x.mT: a view with the last two axes exchanged. Raises for fewer than two axes. */
static void push_transposed(lua_State *L, Binding *b, yoke_tensor *tensor)
{
    yoke_tensor **box = yl_new_tensor(L, b);
    tensor = yl_tensor_arg(L, b, 1, "mT", "self");
    const int64_t ndim = yoke_tensor_ndim(tensor);
    if (ndim < 2)
        yl_raise(L, b, YOKE_E_VALUE, "mT",
                 "the tensor has %I axes; a matrix, or a batch of matrices, has two or more",
                 (lua_Integer)ndim);
    YL_CALL(L, b, tensor, yoke_transpose(tensor, -2, -1, box));
}

static const YlField kFields[] = {
    {"shape", push_shape},     {"strides", push_strides},
    {"dtype", push_dtype},     {"device", push_device},
    {"ndim", push_ndim},       {"numel", push_numel},
    {"nbytes", push_nbytes},   {"itemsize", push_itemsize},
    {"is_leaf", push_is_leaf}, {"requires_grad", push_requires_grad},
    {"grad", push_grad},       {"T", push_reversed},
    {"mT", push_transposed},   {"data", push_data},
    {"is_cuda", push_is_cuda}, {"retains_grad", push_retains_grad},
};

/* ---- Identity ---------------------------------------------------------------------------------------- */

static int is_contiguous(lua_State *L)
{
    lua_pushboolean(L, yoke_tensor_is_contiguous(
                           yl_tensor_arg(L, yl_binding(L), 1, "is_contiguous", "self")) == 1);
    return 1;
}

static int storage_id(lua_State *L)
{
    yoke_tensor *tensor = yl_tensor_arg(L, yl_binding(L), 1, "storage_id", "self");
    lua_pushinteger(L, (lua_Integer)yoke_tensor_storage_id(tensor));
    return 1;
}

static int storage_nbytes(lua_State *L)
{
    yoke_tensor *tensor = yl_tensor_arg(L, yl_binding(L), 1, "storage_nbytes", "self");
    lua_pushinteger(L, yoke_tensor_storage_nbytes(tensor));
    return 1;
}

static int data_ptr(lua_State *L)
{
    yoke_tensor *tensor = yl_tensor_arg(L, yl_binding(L), 1, "data_ptr", "self");
    lua_pushinteger(L, (lua_Integer)(intptr_t)yoke_tensor_data(tensor));
    return 1;
}

static int shares_memory(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor *x = yl_tensor_arg(L, b, 1, "shares_memory", "a");
    lua_pushboolean(L, yoke_shares_memory(x, yl_tensor_arg(L, b, 2, "shares_memory", "b")) == 1);
    return 1;
}

/* ---- Placement --------------------------------------------------------------------------------------- */

static int to(lua_State *L, yoke_device *device, yoke_dtype dtype, int32_t non_blocking)
{
    Binding *b = yl_binding(L);
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "to", "self");
    YL_CALL(L, b, tensor, yoke_tensor_to_v2(tensor, device, dtype, non_blocking, box));
    yl_count(L, b, *box, tensor);
    return 1;
}

/* Pushes the keyword `name` of the table at 2, and returns its place. */
static int keyword(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, 2);
    return lua_gettop(L);
}

/* Reads where `call` moves a tensor: (device, dtype), (dtype), or a table with the first `count` names. */
static void read_place(lua_State *L, const char *call, int count, const char *signature,
                       yoke_device **where, yoke_dtype *kind)
{
    static const char *const names[] = {"device", "dtype", "non_blocking"};
    Binding *b = yl_binding(L);
    yl_tensor_arg(L, b, 1, call, "self");
    const int given = lua_gettop(L) - 1;
    if (given < 1 || given > 2)
        yl_raise(L, b, YOKE_E_VALUE, call, "%d arguments; it takes 1, 2 or a table: %s", given,
                 signature);
    const Target device = {b, call, "device"}, dtype = {b, call, "dtype"};
    *where = NULL;
    *kind = YOKE_NONE;
    if (lua_type(L, 2) == LUA_TTABLE) {
        yl_check_keywords(L, b, 2, call, names, count, signature);
        *where = yl_need_device(L, device, keyword(L, "device"));
        *kind = yl_need_dtype(L, dtype, keyword(L, "dtype"));
        return;
    }
    if (yl_test_tensor(L, b, 2)) {
        yoke_tensor *other = yl_tensor_arg(L, b, 2, call, "device");
        *where = yoke_tensor_device(other);
        *kind = yl_need_dtype(L, dtype, 3);
        if (*kind == YOKE_NONE) *kind = yoke_tensor_dtype(other);
        return;
    }
    if (lua_gettop(L) == 2 && lua_type(L, 2) == LUA_TSTRING &&
        !yoke_dtype_from_name(yl_need_text(L, device, 2), kind))
        return;
    *where = yl_need_device(L, device, 2);
    *kind = yl_need_dtype(L, dtype, 3);
}

/* Implements x:to(device, dtype), x:to(dtype), x:to{device=, dtype=, non_blocking=}: returns the moved tensor. */
static int tensor_to(lua_State *L)
{
    yoke_device *where;
    yoke_dtype kind;
    read_place(L, "to", 3, "to(device, dtype, non_blocking)", &where, &kind);
    const int place = lua_type(L, 2) == LUA_TTABLE ? keyword(L, "non_blocking") : 0;
    const int is_given = place && !lua_isnil(L, place);
    return to(L, where, kind,
              is_given ? yl_bool_arg(L, yl_binding(L), place, "to", "non_blocking") : 0);
}

/* Implements x:to_(device, dtype), x:to_(dtype), x:to_{device=, dtype=}: moves x itself and returns x. */
static int tensor_to_in_place(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *where;
    yoke_dtype kind;
    read_place(L, "to_", 2, "to_(device, dtype)", &where, &kind);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "to_", "self");
    YL_CALL(L, b, tensor, yoke_tensor_to_(tensor, where, kind));
    lua_settop(L, 1);
    yl_count(L, b, tensor, NULL);
    return 1;
}

static int tensor_cpu(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_device *cpu = NULL;
    yl_tensor_arg(L, b, 1, "cpu", "self");
    lua_settop(L, 1); /* the result must not become 'self' */
    yl_check(L, b, yoke_device_open("cpu", &cpu));
    yoke_device_release(cpu); /* stays valid: yoke/device.h */
    return to(L, cpu, YOKE_NONE, 0);
}

/* ---- As a value of Lua -------------------------------------------------------------------------------- */

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

/* Implements #x: returns the length of axis 0. Raises for a tensor without axes. */
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

/* Implements ==, which Lua calls for two different userdata. Raises for two tensors, and returns false for any other
 * pair. */
static int tensor_equal(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (yl_test_tensor(L, b, 1) && yl_test_tensor(L, b, 2))
        return yl_raise(
            L, b, YOKE_E_TYPE, "tensor",
            "== and ~= give a single boolean in Lua and do not compare tensors; compare elements with yoke.eq(a, b) or yoke.ne(a, b), all elements with yoke.eq(a, b):all():item(), single values with a:item() == b:item(), objects with rawequal(a, b)");
    lua_pushboolean(L, 0);
    return 1;
}

static int tensor_order(lua_State *L)
{
    return yl_raise(
        L, yl_binding(L), YOKE_E_TYPE, "tensor",
        "<, <=, > and >= give a single boolean in Lua and do not compare tensors; compare elements with yoke.lt, le, gt or ge (a, b), single values with a:item() < b:item()");
}

/* Implements tostring(x) by the formatter of yoke/format.lua, or, until the formatter is loaded, by the dtype alone.
 * A closed tensor gives "tensor(closed)". */
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

static void set_fields(lua_State *L)
{
    lua_getfield(L, -1, "tensor_methods");
    for (size_t i = 0; i < sizeof kFields / sizeof *kFields; ++i) {
        lua_pushlightuserdata(L, (void *)&kFields[i]);
        lua_setfield(L, -2, kFields[i].name);
    }
    lua_pop(L, 1);
}

void yl_open_tensor_fields(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"is_contiguous", is_contiguous},
                                       {"storage_id", storage_id},
                                       {"storage_nbytes", storage_nbytes},
                                       {"data_ptr", data_ptr},
                                       {"is_closed", tensor_is_closed},
                                       {"to", tensor_to},
                                       {"to_", tensor_to_in_place},
                                       {"cpu", tensor_cpu},
                                       {NULL, NULL}};
    static const luaL_Reg events[] = {{"__len", tensor_length}, {"__tostring", tensor_tostring},
                                      {"__eq", tensor_equal},   {"__lt", tensor_order},
                                      {"__le", tensor_order},   {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"is_tensor", is_tensor}, {"shares_memory", shares_memory}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_set_tensor_methods(L, b, methods);
    yl_set_tensor_events(L, b, events);
    set_fields(L);
}
